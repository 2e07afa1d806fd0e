"""Programs: operators of user classes, iteration by `__getitem__` and `__next__`, context managers."""

from __future__ import annotations

from machine.classes import Base
from machine.oracle import program, say


class Vector:
    def __init__(self, *xs):
        self.xs = xs

    def __add__(self, other):
        if not isinstance(other, Vector):
            return NotImplemented
        return Vector(*(a + b for a, b in zip(self.xs, other.xs)))

    def __radd__(self, other):
        return ("radd", other, self.xs)

    def __mul__(self, k):
        return Vector(*(x * k for x in self.xs))

    __rmul__ = __mul__

    def __imul__(self, k):
        self.xs = tuple(x * k for x in self.xs)
        return self

    def __neg__(self):
        return Vector(*(-x for x in self.xs))

    def __eq__(self, other):
        return isinstance(other, Vector) and self.xs == other.xs

    def __hash__(self):
        return hash(self.xs)

    def __lt__(self, other):
        return self.xs < other.xs

    def __getitem__(self, i):
        return self.xs[i]

    def __len__(self):
        return len(self.xs)

    def __contains__(self, x):
        say("contains", x)
        return x in self.xs

    def __bool__(self):
        return any(self.xs)

    def __repr__(self):
        return f"Vector{self.xs}"

    def __call__(self, f):
        return Vector(*map(f, self.xs))

    def __matmul__(self, other):
        return sum(a * b for a, b in zip(self, other))

    def __format__(self, spec):
        return f"<{spec}>"

    def __index__(self):
        return len(self.xs)

    def __iter__(self):
        say("iter")
        return iter(self.xs)


@program((1, 2), (0, 0))
def operator_overloading(a, b):
    v, w = Vector(a, b), Vector(b, a)
    u = v
    v *= 2
    out = [
        v + w, 5 + v, v * 2, 3 * w, -v, v == w, v != w, v < w, v > w, v[0], len(v), a in v, bool(v), not v, repr(v),
        str(v), f"{v:x}", f"{v!r}", v(lambda t: t + 1),
    ]  # fmt: skip
    out += [
        v @ w, [10, 20, 30][v], list(v), {v: 1, Vector(*v.xs): 2}, u is v, max(v, w), sorted([v, w]), v in [w, v],
        sum(v), tuple(v), [*v], "yes" if v else "no",
    ]  # fmt: skip
    for action in (lambda: v + 1, lambda: v - w, lambda: v < 1, lambda: v >> 1, lambda: ~v):
        try:
            out.append(action())
        except (TypeError, AttributeError) as error:
            out.append(str(error))
    return out


class Left:
    def __add__(self, other):
        say("Left.add")
        return NotImplemented

    def __radd__(self, other):
        say("Left.radd")
        return "radd"

    def __eq__(self, other):
        say("Left.eq")
        return NotImplemented


class Right(Left):
    def __radd__(self, other):
        say("Right.radd")
        return NotImplemented

    def __eq__(self, other):
        say("Right.eq")
        return NotImplemented


@program(())
def reflected():
    l, r = Left(), Right()
    out = [l == r, r == l, l != r, l == 1, l in [r, l]]
    for a, b in ((l, r), (r, l), (l, l), (1, l), (l, 1), (1, r)):
        try:
            out.append(a + b)
        except TypeError as error:
            out.append(str(error))
    return out


class Tagged:
    def __init__(self, tag):
        self.tag = tag

    def __eq__(self, other):
        return "eq", self.tag

    def __ne__(self, other):
        return "ne", self.tag

    def __lt__(self, other):
        return "lt", self.tag

    def __gt__(self, other):
        return "gt", self.tag

    def __add__(self, other):
        return "add", self.tag

    __radd__ = __add__


class Derived(Tagged):
    pass


class Overriding(Tagged):
    __gt__ = lambda self, other: "overridden"
    __radd__ = lambda self, other: "overridden"


@program(())
def who_is_asked_first():
    """A subclass is asked for comparisons that it inherits, but for operators only if it has its own."""
    a, b, c = Tagged("a"), Derived("b"), Overriding("c")
    out = []
    for x, y in ((a, b), (b, a), (a, c), (c, a), (b, c)):
        out += [x == y, x != y, x < y, x > y, x + y]
    return out


class Sequence:
    def __init__(self, n):
        self.n = n

    def __getitem__(self, i):
        say("item", i)
        if i >= self.n:
            raise IndexError(i)
        return i * 10


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n


@program((3,), (0,))
def iteration_protocols(n):
    s, c = Sequence(n), Countdown(n)
    out = [
        list(s), 10 in s, [x for x in c], list(c), next(c, "done"), list(zip(Sequence(n), Countdown(2))),
        [*Countdown(n)], sum(Countdown(n)), dict(enumerate(Countdown(n))),
    ]  # fmt: skip
    a, *rest = Countdown(n + 1)
    for x in Countdown(3):
        if x == 1:
            break
    else:
        out.append("never")
    return out, a, rest, x, iter(s).__class__.__name__


class Managed:
    def __init__(self, name, swallow=()):
        self.name, self.swallow = name, swallow

    def __enter__(self):
        say("enter", self.name)
        return self

    def __exit__(self, kind, value, traceback):
        say("exit", self.name, kind and kind.__name__, str(value))
        return kind is not None and issubclass(kind, self.swallow)


@program((0,), (1,), (2,))
def with_statements(n):
    out = []
    with Managed("a") as a, Managed("b", KeyError):
        out.append(a.name)
        if n == 1:
            raise KeyError("swallowed")
        out.append("body")
    with Managed("c", (ValueError, ZeroDivisionError)):
        out.append(1 // (n - 2))
    for i in range(3):
        with Managed(i):
            if i == 0:
                continue
            if i == 1:
                break
    return out


@program((1,))
def with_errors(x):
    out = []
    for manager in (x, Base(1), None):
        try:
            with manager:
                pass
        except (TypeError, AttributeError) as error:
            out.append((type(error).__name__, str(error)))
    return out
