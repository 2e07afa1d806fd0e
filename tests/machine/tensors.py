"""Programs over tensors with a hard instruction in every kind of place."""

from __future__ import annotations

import contextlib
import sys

import torch
from machine.oracle import program, say

X = torch.tensor([1.0, -2.0, 3.0])


def x():
    return (X.clone(),)


@program(x)
def straight(t):
    u = t * 2
    say("sum", u.sum().item())
    v = u + t
    say("v", v.tolist())
    return u, v.relu()


@program(x)
def for_range(t):
    for i in range(4):
        t = t * 2 + i
        say(i, t.tolist())
        t = t - 1
    return t


@program(x)
def for_kinds(t):
    for k in [1, 2]:
        say("list", k)
        t = t + k
    for name, k in {"a": 1, "b": 2}.items():
        say(name, k)
        t = t * k
    for a, b in zip([1, 2], (t, t * 2)):
        say("zip", a, b.tolist())
        t = t + a * b
    for i, row in enumerate([t, t + 1]):
        say("enumerate", i)
        t = t + row
    for v in (k * 2 for k in range(3)):
        say("generator", v)
        t = t - v
    for v in halves(t):
        say("halves", v.tolist())
        t = t + v
    return t


def halves(t):
    for k in (2, 4):
        say("half", k)
        yield t / k


@program(x)
def while_loop(t):
    n = 0
    while n < 3 and t.sum() < 50:
        n += 1
        t = t * 2
        say("while", n)
    else:
        say("ended")
    return t, n


@program((X.clone(), 1), (-X.clone(), 1), (X.clone(), 0))
def branches(t, flag):
    if t.sum() > 0:
        t = t + 1
    elif flag:
        t = t - 1
    y = t * 2 if t.mean() > 0 else t * 3
    if flag and t.max() > 1 or t.min() < -1:
        y = y + t
    z = 0 < t.sum() < 10
    return y, z, not t.sum(), bool(t[0] > 0) and say("and", 1), t.sum() > 0 or say("or", 2)


@program(x)
def item_into_python(t):
    n = int(t.sum().item())
    values = t.tolist()
    out = [t * k for k in range(n)]
    size = len(values) + n
    return out, size, torch.zeros(size), f"{t[0].item():.2f}", t.shape[0] * n, round(float(t[1]), 1)


class Manager:
    def __init__(self, name, swallow=()):
        self.name, self.swallow = name, swallow

    def __enter__(self):
        say("enter", self.name, torch.is_grad_enabled())
        return self

    def __exit__(self, kind, value, traceback):
        say("exit", self.name, repr(value), torch.is_grad_enabled())
        return kind is not None and issubclass(kind, self.swallow)


@program(x)
def with_blocks(t):
    with torch.no_grad(), Manager("a"):
        u = t * 2
        say("inside", torch.is_grad_enabled(), u.requires_grad)
        with torch.enable_grad(), Manager("b", ValueError):
            v = u + 1
            say("deeper", torch.is_grad_enabled())
            raise ValueError("swallowed")
        w = v * 2
        say("after", torch.is_grad_enabled())
    say("outside", torch.is_grad_enabled())
    return u, v, w


@program((X.clone(), 0), (X.clone(), 1), (X.clone(), 2))
def handlers(t, i):
    out = []
    try:
        u = t + 1
        say("body")
        if i == 1:
            raise KeyError("k")
        out.append(u.view(2, 2) if i == 2 else u)
    except KeyError as error:
        say("key", repr(error))
        out.append(u * 2)
    except RuntimeError as error:
        out.append(str(error))
        say("runtime", repr(sys.exc_info()[0]))
    else:
        say("else")
        out.append(u * 3)
    finally:
        say("finally")
        out.append(t - 1)
    return out


@program(x)
def deep(t):
    def inner(v, k):
        say("inner", k)
        return v * k

    def middle(v):
        v = inner(v, 2) + inner(v, 3)
        say("middle")
        return v + 1

    for i in range(2):
        with Manager(i):
            t = middle(t) + i
            say("loop", i)
    return t


@program(x)
def in_expressions(t):
    a = torch.stack([t + 1, say("first", t * 2), t * 3])
    b = (t * 2) + say("middle", t) + (t * 4)
    c = [v * say("comprehension", k) for k, v in enumerate((t, t + 1))]
    d = {say("key", "k"): t * 2, "m": say("value", t)}
    e = torch.add(t * 2, say("argument", t), alpha=say("keyword", 2))
    f = (say("and", t) is not None) and t + 1
    return a, b, c, d, e, f, f"{say('f-string', 1)}", (lambda v: say("lambda", v) * 2)(t)


@program((X.clone(), 2.0), (X.clone(), 100.0))
def left_early(t, limit):
    for i in range(5):
        t = t * 2
        if t.max() > limit:
            say("left", i)
            break
        if t.min() < -20:
            continue
        t = t + 1
    else:
        say("not left")
    return t, i


@program(lambda: (lambda t: (t, [t, t + 1], {"t": t}))(X.clone()))
def mutations(t, items, d):
    t.add_(1)
    say(items[0].tolist())
    items[1].mul_(2)
    items.append(items[0] * 2)
    d["u"] = items[1]
    say(len(items))
    d["u"] += 1
    t[0] = 10
    items[0], items[1] = items[1], items[0]
    return d["t"] is t, items[1] is t, items[0] is d["u"], t


class Cell(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0
        self.calls = 0
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, t):
        self.calls += 1
        self.seen += t
        say("forward", self.calls)
        self.last = t * self.scale
        return self.last + self.seen


@program(lambda: (X.clone(), Cell()))
def modules(t, cell):
    a = cell(t)
    b = cell(a)
    cell.scale = 3.0
    return a, cell(b), cell.calls, cell.last is not a, dict(cell.named_buffers())


@program(x)
def errors_inside(t):
    def fail(v):
        w = v * 2
        say("about to fail")
        return w.reshape(7)

    try:
        fail(t)
    except RuntimeError as error:
        say(str(error))
        t = t + 1
    return fail(t)


@program(x)
def context_manager_generator(t):
    @contextlib.contextmanager
    def scaled(k):
        say("begin", k)
        try:
            yield t * k
        finally:
            say("end", k)

    with scaled(2) as a, scaled(3) as b:
        say("both", (a + b).tolist())
        c = a * b
    return c
