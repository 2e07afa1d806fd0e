"""Programs: expressions, operators, numbers, strings, subscripts, comprehensions, matching."""

from __future__ import annotations

import enum
import math
import operator
from collections import namedtuple
from dataclasses import dataclass, field

from machine.oracle import program, say


@program((7, 3), (-7, 3), (0, 1), (1.5, 2), (True, False), ("a", 2), (2**70, 3))
def binary_operators(a, b):
    out = []
    for f in (
        operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    ):
        try:
            out.append(f(a, b))
        except Exception as error:
            out.append((type(error).__name__, str(error)))
    try:
        out += [a & b, a | b, a ^ b, a << b, a >> b]
    except Exception as error:
        out.append((type(error).__name__, str(error)))
    return out


@program((7, 3), (2.5, -1), ("x", 3), ([1], 2))
def inplace_operators(a, b):
    before = a
    a *= b
    c = a
    try:
        a -= 1
        a //= 2
        a **= 2
        a %= 5
        a /= 2
    except TypeError as error:
        return a, before is a, str(error)
    return a, c, before


@program((1, 2), (1, 1.0), (float("nan"), 1), ("a", "b"), (1, "a"), ((1, 2), (1, 3)), ([1], [1]), (None, None))
def comparisons(a, b):
    out = [a == b, a != b, a is b, a is not b]
    try:
        out += [a < b, a <= b, a > b, a >= b]
    except TypeError as error:
        out.append(str(error))
    return out


@program((1, 2, 3), (3, 2, 1), (0, 0, 0), (2, 5, 3))
def chained(a, b, c):
    return (
        a < b < c, a <= b == b >= c, not a, a and b or c, a or b and c, (a if b else c),
        0 < say("mid", b) < 3 < say("no", c),
    )  # fmt: skip


@program((5,), (-5,), (2.5,), (-0.0,), (True,), ("s",), (None,))
def unary(a):
    out = [not a]
    for f in (operator.neg, operator.pos, operator.invert, abs):
        try:
            out.append(f(a))
        except TypeError as error:
            out.append(str(error))
    return out


@program((1, 0), (1.0, 0.0), (5, 2))
def divisions(a, b):
    out = []
    try:
        out.append(a / b)
    except ZeroDivisionError as error:
        out.append(str(error))
    try:
        out.append(a // b)
    except ZeroDivisionError as error:
        out.append(str(error))
    try:
        out.append(a % b)
    except ZeroDivisionError as error:
        out.append(str(error))
    try:
        out.append(divmod(a, b))
    except ZeroDivisionError as error:
        out.append(str(error))
    return out


@program((float("inf"), 0.0), (float("nan"), -0.0), (1e308, 10.0), (-1.5, 0.5))
def floats(a, b):
    return [
        a * b, a + b, -b, math.copysign(1, b), a == a, a != a, int(b), round(b), str(a), repr(b), math.isnan(a),
        b**0, a > b,
    ]  # fmt: skip


@program((3.7,), (-3.5,), (2.5,), (1e20,), (True,))
def conversions(x):
    return int(x), float(x), bool(x), complex(x), str(x), round(x), round(x, 1), x.__class__, hash(x), x.real, x.imag


@program((10,), (255,), (-42,), (0,))
def integers(n):
    return (
        n.bit_length(), bin(n), hex(n), oct(n), n.to_bytes(2, "big", signed=True), divmod(n, 7), pow(n, 2, 5),
        f"{n:,}", f"{n:+d}", f"{n:#x}",
    )  # fmt: skip


@program(("ab", 3, 2.5), ("", -1, 1e10), ("é", 0, float("inf")))
def formats(s, i, f):
    w = 8
    return (
        f"{s}|{s!r}|{s!a}|{s!s:>{w}}|{i:05d}|{i:<{w}}|{f:.2f}|{f:{w}.{2}e}|{{}}|{i + 1=}|{s:^{w}}",
        "%s %d %5.1f %r" % (s, i, f if f < 1e300 else 1.0, s),
        "{} {1}".replace("1", "") .format(s, i),
        "{0} {a} {0!r:>5} {b[0]}".format(i, a=s, b=[f]),
        s + "x" * 3,
        "".join([s, "-", str(i)]),
    )


@program(("hello world",), ("",), ("AbC",), ("a,b,,c",))
def string_methods(s):
    return (
        s.upper(), s.title(), s.split(), s.split(","), s.partition(" "), s.replace("l", "L", 1), s.find("o"),
        s.startswith(("he", "A")),
        s.strip("h"), s[::-1], s[1:-1], s[:3], len(s), "b" in s, s.count("l"), s.isalpha(), sorted(s), list(s),
        s.encode(), s.center(15, "*"),
        s.zfill(4), s.join("xy"), s.casefold(), s.swapcase(), max(s, default="none"), s < "h", s * 2,
    )  # fmt: skip


@program((list(range(10)),), (tuple(range(5)),), ("abcdefgh",), (range(3, 20, 2),))
def slicing(seq):
    i, j = 1, -1
    out = [seq[0], seq[-1], seq[i:j], seq[::2], seq[::-1], seq[5:1:-1], seq[:], seq[100:], seq[-3:], seq[slice(1, 3)]]
    try:
        out.append(seq[50])
    except IndexError as error:
        out.append(str(error))
    try:
        out.append(seq["x"])
    except TypeError as error:
        out.append(str(error))
    return out


@program(([0, 1, 2, 3, 4, 5],))
def slice_assignment(items):
    alias = items
    items[1:3] = ["a", "b", "c"]
    items[::2] = [None] * len(items[::2])
    del items[0]
    del items[-2:]
    items[len(items) :] = (7, 8)
    items[1:1] = items
    try:
        items[::2] = [1]
    except ValueError as error:
        say(str(error))
    try:
        items[1:2] = 5
    except TypeError as error:
        say(str(error))
    return items is alias, items


@program(([[1, 2], [3]], 2), ([[]], 0), ([], 1))
def list_comprehensions(rows, k):
    x = "outer"
    flat = [x * k for row in rows for x in row if x % 2]
    return (
        flat, [[y + len(rows) for y in row] for row in rows], x, [(a, b) for a in range(k) for b in range(a)],
        [f() for f in [lambda: k for _ in rows]],
    )  # fmt: skip


@program(({"a": 1, "b": 2},), ({},))
def other_comprehensions(d):
    inverse = {v: k for k, v in d.items()}
    names = {k.upper() for k in d}
    lazy = (v for v in d.values())
    return (
        inverse, sorted(names), list(lazy), {k: {k2: v for k2 in d} for k, v in d.items()}, dict(zip(d, range(5))),
        {**d, "z": 0, **inverse},
    )  # fmt: skip


@program((3,), (0,))
def walrus(n):
    total = 0
    while (m := n - 1) >= 0:
        total += (n := m)
    return total, m, n, [y := 1, y**2], [last := i for i in range(3)], last


Pair = namedtuple("Pair", "left right", defaults=[0])


class Color(enum.Enum):
    RED = 1
    BLUE = "b"


class Flag(enum.IntFlag):
    A = 1
    B = 2


@dataclass(order=True)
class Box:
    x: int
    y: int = 0
    tags: list = field(default_factory=list, compare=False)

    def __post_init__(self):
        self.total = self.x + self.y


@program(
    (0,), ((1, 2, 3),), ([],), ({"kind": "k", "at": (1, 2), "more": 3},), (Pair(0, 1),), (Box(1, 2),), (Box(0),),
    (None,), (2.5,), ("text",), (Color.RED,), (b"x",),
)  # fmt: skip
def matching(subject):
    match subject:
        case 0 | 1:
            return "small"
        case Pair(0, r):
            return "pair", r
        case [x, y, *rest] if x:
            return "sequence", x, y, rest
        case []:
            return "empty"
        case {"kind": str(kind), "at": [a, _], **others}:
            return "mapping", kind, a, others
        case Box(x=0):
            return "zero box"
        case Box(tags=[]) as box:
            return "box", box.x, box.total
        case Color.RED:
            return "red"
        case str() | bytes() as text:
            return "text", len(text)
        case None:
            return "none"
    return "nothing"


@program((Color.RED,), (Color.BLUE,), (Flag.A,), (Flag.A | Flag.B,))
def enums(c):
    return (
        c.name, c.value, c is Color.RED, c == 1, isinstance(c, Color), str(c), repr(c), [m for m in type(c)],
        type(c)(c.value) is c, {c: 1}[c], Flag.A | Flag.B, bool(c), hash(c) == hash(c),
    )  # fmt: skip


@program((1, 2), (0, 0))
def dataclasses_(a, b):
    p, q = Box(a, b), Box(a)
    p.tags.append(q)
    out = [p == q, p < Box(a, b + 1), repr(q), q.total, p.tags[0] is q, p.__dict__, Box(1) == Box(1, 0, [3])]
    try:
        Box()
    except TypeError as error:
        out.append(str(error))
    return p, out


@program((1, "x"), ((), None))
def namedtuples(a, b):
    p = Pair(a, b)
    left, right = p
    out = [
        p.left is left, p[1], p._replace(left=5), p._asdict(), Pair(3), Pair._make([1, 2]), p == (a, b), len(p),
        repr(p), isinstance(p, tuple), p + (1,), p[:1], hash(Pair(1, 2)) == hash((1, 2)),
    ]  # fmt: skip
    try:
        p.left = 3
    except AttributeError as error:
        out.append(str(error))
    return p, out


@program(([3, 1, 2],), (["b", "a"],), ([],), ([(1, "b"), (1, "a"), (0, "z")],))
def ordering(items):
    out = [sorted(items), sorted(items, reverse=True), sorted(items, key=lambda v: str(v)[-1]), list(reversed(items))]
    try:
        out += [min(items), max(items), min(items, key=str), max(items, key=lambda v: repr(v))]
    except ValueError as error:
        out.append(str(error))
    items.sort(key=lambda v: repr(v), reverse=True)
    return out, items


@program(([1, 0, 2],), ([],), ([None, "", 5],))
def reductions(items):
    return (
        any(items), all(items), sum(v or 0 for v in items), len(items), list(enumerate(items, 1)),
        list(zip(items, "abc")), list(map(bool, items)),
        list(filter(None, items)), any(say("any", v) for v in items), all(say("all", v) for v in items),
        sum([[v] for v in items], []),
    )  # fmt: skip


@program((1, 2, 3), (0, "", None))
def short_circuit(a, b, c):
    out = []
    out.append(say("a", a) and say("b", b) or say("c", c))
    out.append((say("d", a) or say("e", b)) and say("f", c))
    if not (say("g", a) and not say("h", b)) or say("i", c):
        out.append("branch")
    out.append([say(1, a), say(2, b)][say(3, 0)])
    x = {say("key", "k"): say("value", 1), "m": say("second", 2)}
    out.append(x)
    return out


@program((5,), (3,))
def argument_order(n):
    def f(*args, **kwargs):
        return args, kwargs

    return (
        f(say("x", n), *[say("y", 1), 2], say("z", 3), k=say("k", 4), **{"m": say("m", 5)}),
        say("last", [say("i", n)][0]),
    )  # fmt: skip


@program((1, 1), (2, 3), (1000, 1000))
def identities(a, b):
    x, y = [a], [b]
    t = (x, x)
    return (
        a is a, x is y, x == y, t[0] is t[1], t == ([a], [a]), x is x, None is None, () is (), (x,) == (x,),
        [x].index(x), x in [y], y not in [x],
    )  # fmt: skip


@program((10,), (1,))
def lambdas(n):
    compose = lambda f, g: lambda x: f(g(x))
    inc, double = lambda x: x + 1, lambda x, k=2: x * k
    return (
        compose(inc, double)(n), compose(double, inc)(n), (lambda *a, **k: (a, k))(n, z=1),
        [f(n) for f in (inc, double)], (lambda: (yield))().__class__.__name__,
    )  # fmt: skip


@program((3,), (0,))
def conditional(n):
    return (
        "many" if n > 2 else "few" if n else "none", [i if i % 2 else -i for i in range(n)], (n or "zero"),
        (n and "some"),
    )  # fmt: skip


@program(([1, 2, 3], {"a": 1}), ([], {}))
def star_displays(items, d):
    a, *b = [0, *items]
    *c, e = (*items, "end")
    (f, [g, *h]), i = (1, [2, *items]), 3
    return a, b, c, e, f, g, h, i, [*items, *items], {*items, 1}, (*d,), {**d, "b": 2}, [*d.items()]


@program(((1, 2),), ((1, 2, 3),), ([1],), ("ab",), ({1: 2, 3: 4},), (5,), (iter([1, 2]),), (range(2),))
def unpacking(items):
    try:
        a, b = items
    except (ValueError, TypeError) as error:
        return type(error).__name__, str(error)
    return a, b


@program((1,), (5,))
def bytes_and_ranges(n):
    b = bytes([n, n + 1]) + b"x"
    r = range(n, n * 10, n)
    return (
        b[0], b[1:], b.hex(), list(b), len(r), r[1], r[-1], r[::2], n in r, 7 in r, list(r)[:3],
        r == range(n, n * 10, n), r.start, r.stop, b"a" < b, bytearray(b) == b,
    )  # fmt: skip


@program((2,), (-1,))
def complex_numbers(n):
    c = complex(n, 1) * 2j
    return c, c.real, c.imag, c.conjugate(), abs(complex(3, 4)), c == c, c + 1, -c, c**2


@program((1, 2.0), (0, 0.0), (-1, -0.0))
def number_keys(a, b):
    d = {1: "int", 1.0: "float", True: "bool", 0: "zero"}
    s = {a, b, False, 0.0}
    return d, d.get(a), d.get(b, "none"), len(s), a in s, sorted(s), {a: 1, float(a): 2}


@program((1,), (None,))
def ellipsis_and_friends(x):
    return ..., NotImplemented, x is ..., [..., x], {...: x}, __debug__, () == (), "" or x, x.__class__.__name__
