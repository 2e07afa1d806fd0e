"""Small functions that use the standard library's C callables: `PROGRAMS` maps a name to (function, arguments of each call).

Each takes a tensor first. The ones named in `BREAKS` can't be one graph; all others must be.
"""

from __future__ import annotations

import abc
import collections
import dataclasses
import enum
import functools
import itertools
import math
import operator
import typing

PROGRAMS = {}
BREAKS = set()


def program(*calls, breaks=False):
    """Register a function with the arguments (after the tensor) of each call to make."""

    def register(function):
        PROGRAMS[function.__name__] = (function, calls or ((),))
        if breaks:
            BREAKS.add(function.__name__)
        return function

    return register


def attempt(function, *args, **kwargs):
    """What a call gives, or its exception's type and text."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)


# -- lists -------------------------------------------------------------------------------------------------------------


@program((3,), (4,))
def list_methods(x, n):
    a = [1, 2, 3]
    a.append(n)
    a.extend(range(2))
    a.extend(v * 2 for v in (5, 6))
    a.insert(1, "i")
    a.insert(-100, "first")
    b = a.pop(), a.pop(0)
    a.remove(2)
    a.reverse()
    c = a.copy()
    a.clear()
    return x, a, b, c, c.index(n), c.count(1), len(c), 3 in c, "no" in c


@program()
def list_errors(x):
    return x, [
        attempt([].pop), attempt([1].pop, 3), attempt([1].remove, 2), attempt([1, 2].index, 5), attempt([1, 2, 1].index, 1, 1),
        attempt(lambda: [1][4]), attempt(lambda: [1]["a"]), attempt(list, 3), attempt([1].extend, 4),
    ]  # fmt: skip


@program()
def list_operators(x):
    a = [1, 2]
    b = a
    b += (3,)
    b += (v for v in "xy")
    c = a + [x] * 2
    a *= 2
    c[1:2] = [7, 8, 9]
    del c[0]
    del c[-1:]
    return x, a, b is a, c[:4], [[0]] * 2, 2 * [1], a == [1, 2, 3, "x", "y"] * 2, a[::-1], list(reversed(a))


@program()
def list_sort(x):
    pairs = [(2, "b"), (1, "z"), (2, "a")]
    pairs.sort(key=lambda p: p[0])
    words = sorted(["bb", "a", "ccc"], key=len, reverse=True)
    tensors = sorted([x, x + 1], key=lambda t: t.dim())
    return pairs, words, tensors, sorted("hello"), sorted([3, 1, 2], reverse=True), attempt(sorted, [1, "a"])


class Stack(list):
    def push(self, item):
        self.append(item)
        return self

    def __getitem__(self, index):
        return super().__getitem__(index) * 10


@program()
def list_subclass(x):
    s = Stack([1, 2]).push(3)
    s.extend([4])
    return x * s[1], list(s), len(s), s.pop(), type(s).__name__, s


@program(([1, 2],), ([3, 4],), ([5, 6, 7],))
def list_given(x, a):
    a.append(len(a))
    a[0] = "changed"
    first, *rest = a
    return x, first, rest


# -- deques ------------------------------------------------------------------------------------------------------------


@program()
def deques(x):
    d = collections.deque([1, 2, 3])
    d.append(4)
    d.appendleft(0)
    d.extend("ab")
    d.extendleft("cd")
    d.rotate(2)
    taken = d.pop(), d.popleft()
    d[0] = "set"
    return x, list(d), taken, d[0], d[-1], len(d), 3 in d, d.count(3), attempt(collections.deque().pop), list(reversed(d))


@program((collections.deque([1, 2], 2),), (collections.deque([1, 2], 2),))
def deque_given(x, d):
    d.append(5)
    return x, list(d)


# -- tuples ------------------------------------------------------------------------------------------------------------

Point = collections.namedtuple("Point", "x y", defaults=(7,))


class Typed(typing.NamedTuple):
    a: int
    b: str = "b"

    def both(self):
        return f"{self.a}{self.b}"


@program()
def tuples(x):
    t = (1, 2, 2, None)
    return (
        x, t.index(2), t.count(2), t + (3,), t * 2, t[1:], t[-1], tuple("ab"), tuple(v for v in t), tuple([1]), tuple(),
        attempt(t.index, 9), attempt(lambda: t[9]), 2 in t, t == (1, 2, 2, None), t < (1, 3), hash((1, "a")) == hash((1, "a")),
    )  # fmt: skip


@program()
def named_tuples(x):
    p = Point(x, 2)
    q = p._replace(y=3)
    return p.x + q.y, p.y, q._asdict()["y"], Point(1), Typed(1).both(), Typed(4, "c")[1], p._fields, Point._make([1, 2]), q


# -- dicts -------------------------------------------------------------------------------------------------------------


@program(("b",), ("z",), ("b",))
def dict_methods(x, key):
    d = {"a": 1, "b": 2}
    d["c"] = x
    got = d.get(key), d.get(key, "none"), d.setdefault(key, 5), d.pop(key), d.pop(key, None)
    d.update({"q": 1}, r=2)
    d.update([("s", 3), ["t", 4]])
    last = d.popitem()
    e = d.copy()
    d.clear()
    return x, got, last, d, list(e), list(e.keys()), [k for k, v in e.items()], len(e), "a" in e, e.keys() - {"a"}


@program()
def dict_makers(x):
    return (
        x, dict(), dict(a=1), dict({"a": 1}, b=2), dict([("a", 1)]), dict(zip("ab", range(2))), dict.fromkeys("ab"),
        dict.fromkeys([1, 2], 0), {**{"a": 1}, "b": 2}, {"a": 1} | {"b": 2}, dict((k, v) for k, v in zip("xy", "12")),
        attempt(dict, [1]), attempt(dict, [(1, 2, 3)]), attempt(dict, 3), attempt({}.popitem), attempt({}.pop, "k"),
        attempt(lambda: {}["k"]),
    )  # fmt: skip


@program()
def dict_order_and_views(x):
    d = {"a": 1, "b": 2, "c": 3}
    del d["a"]
    d["a"] = 4
    d |= {"b": 9}
    return (
        x, list(d), list(d.values()), list(reversed(d)), list(reversed(d.items())), sorted(d.keys() & {"a", "b", "z"}),
        ("a", 4) in d.items(), 9 in d.values(), d == {"b": 9, "c": 3, "a": 4}, len(d.items()), max(d, key=d.get),
    )  # fmt: skip


@program(({"a": 1, "b": 2},), ({"a": 1, "b": 2},), ({"b": 5},))
def dict_given(x, d):
    d["new"] = d.pop("b")
    d.setdefault("a", 0)
    return x, sorted(d)


@program()
def dict_changed_while_iterated(x):
    d = {"a": 1}

    def grow():
        for key in d:
            d[key + key] = 1

    return x, attempt(grow)


@program((collections.OrderedDict(a=1, b=2, c=3), "a"), (collections.OrderedDict(a=1, b=2, c=3), "b"))
def ordered_dicts(x, d, key):
    d.move_to_end(key)
    first = d.popitem(last=False)
    made = collections.OrderedDict([("p", 1), ("q", 2)], r=3)
    made.move_to_end("r", last=False)
    return x, list(d), first, list(made), type(made.copy()), made == collections.OrderedDict(made), list(reversed(made))


class Counting(dict):
    def __missing__(self, key):
        return f"no {key}"


@program()
def default_dicts(x):
    d = collections.defaultdict(list)
    d["a"].append(1)
    d["a"].append(2)
    d["b"]
    n = collections.defaultdict(int, {"k": 1})
    for letter in "hello":
        n[letter] += 1
    c = Counting(a=1)
    return x, d, dict(n), c["a"], c["z"], c.get("z"), "z" in c, attempt(lambda: collections.defaultdict(None)["k"])


@program()
def counters(x):
    c = collections.Counter("banana")
    c.update("bn")
    return x, c.most_common(1), c["zzz"], sum(c.values()), dict(c)


@program()
def chain_maps(x):
    m = collections.ChainMap({"a": 1}, {"a": 2, "b": 3})
    return x, m["a"], m["b"], len(m), "z" in m, sorted(m)


# -- sets --------------------------------------------------------------------------------------------------------------


@program()
def set_methods(x):
    s = {3, 1, 2}
    s.add(10)
    s.discard(99)
    s.remove(1)
    t = set([2, 3, 5])
    u = frozenset("ab")
    s2 = s.copy()
    s2 |= {7}
    s2 -= {2}
    s2.update([8], (9,))
    return (
        x, s | t, s & t, s - t, s ^ t, s.union(t, [1]), s.issubset(t), s >= {2}, s.isdisjoint({4}), len(s), 2 in s, s2,
        u | {"c"}, u == {"a", "b"}, attempt({1}.remove, 5), attempt(set().pop), sorted(s), min(s), {x}.pop(), s < (s | {0}),
    )  # fmt: skip


@program()
def set_order(x):
    s = {17, 1, 33, 9, 25}
    s.add(2)
    s.discard(1)
    t = set(range(20, 0, -3))
    t.update({64, 128, 1, 9})
    return x, list(s), list(t), [v for v in s & t], list({"only"}), list(set("aaa")), list(frozenset([40, 8, 0]))


@program(({3, 11, 19},), ({19, 11, 3},), ({1},))
def set_given(x, s):
    order = list(s)
    s.add(27)
    return x, order, 27 in s, len(s)


# -- text --------------------------------------------------------------------------------------------------------------


class Loud:
    def __str__(self):
        return "loud"

    def __repr__(self):
        return "<Loud>"

    def __format__(self, spec):
        return f"loud:{spec}"


@program((3, "n"), (4, "m"))
def texts(x, n, name):
    loud = Loud()
    return (
        x, f"{n}:{name!r:>5}|{n:03d}|{1.5:.2f}", "%s-%d %r" % (name, n, name), "{} {a}".format(n, a=name), str(n), repr(name),
        str(loud), repr(loud), f"{loud}|{loud!r}|{loud:x}", "-".join(["a", name]), "-".join(str(v) for v in range(n)),
        name.upper(), "a,b".split(","), " x ".strip(), "abc".replace("b", "-"), "abc".startswith("ab"), str([1, "a", (2,)]),
        str({"k": None}), str(b"x", "ascii"), str(1.0), str(None), str(True), "a" * 3, "abc"[::-1], "abc".index("c"),
        attempt("abc".index, "z"), attempt(int, "zz"), "x".join("abc"), "%(a)s" % {"a": 1}, "ab" in "cab", str(int),
        format(3, ">4"), format("a"), "a{}".format([1]), ascii("ä"), str(x.dtype), f"{x.shape}", chr(65) + str(ord("a")),
    )  # fmt: skip


@program()
def text_errors(x):
    return x, attempt("-".join, [1]), attempt("{}".format), attempt(lambda: "%d" % "a"), attempt(format, 3, "zz"), str(KeyError("k")), str(ValueError(1, 2))


# -- numbers -----------------------------------------------------------------------------------------------------------


@program((3, 2.5), (4, -1.5))
def numbers(x, n, f):
    return (
        x, int(f), int("12"), int("ff", 16), float(n), float("1e3"), bool(n), bool(""), complex(n, 1).imag, abs(f), round(f),
        round(f, 1), divmod(n, 2), pow(n, 2), pow(n, 2, 5), max(n, 2), min(n, f), max([1, n]), min("b", "a"), sum([1, n, f]),
        math.sqrt(16), math.floor(f), math.prod([n, 2]), math.pi, math.gcd(12, n), math.isnan(f), n.bit_length(), f.is_integer(),
        (n).__add__(1), int.from_bytes(b"\x01\x02", "big"), float.fromhex("0x1p3"), n.real, range(n)[1:], len(range(n)),
        2 in range(n), hash(1.0) == hash(1), attempt(lambda: 1 / 0), attempt(math.sqrt, -1), attempt(int, "x"), sum([0.1] * 10),
    )  # fmt: skip


@program()
def operators(x):
    return (
        operator.add(x, 1), operator.add(1, 2), operator.itemgetter(1)([4, 5]), operator.itemgetter("a", "b")({"a": 1, "b": 2}),
        operator.attrgetter("ndim")(x), operator.attrgetter("shape", "ndim")(x), operator.methodcaller("upper")("a"),
        operator.methodcaller("sum", dim=0)(x), operator.not_(0), operator.contains([1], 1), operator.getitem([1, 2], 0),
        operator.lt(1, 2), operator.is_(None, None), operator.index(3), operator.truth([]), operator.concat([1], [2]),
        operator.neg(3), operator.matmul(x, x), operator.call(lambda v: v + 1, 2), operator.mul([1], 2), operator.iadd([1], [2]),
    )  # fmt: skip


# -- iteration ---------------------------------------------------------------------------------------------------------


@program((3,), (4,))
def builtin_iteration(x, n):
    it = iter([1, 2, 3])
    calls = iter([4, 5, 0, 6]).__next__
    return (
        x, list(zip(range(n), "abcdef")), list(enumerate("ab", 1)), list(map(lambda a, b: a * b, [1, 2], [3, 4])),
        list(filter(None, [0, 1, 2])), list(filter(lambda v: v > 1, range(n))), any(v > 2 for v in range(n)), all([1, 0]),
        sum((v for v in range(n)), 10), sum([[1], [2]], []), max(range(n), key=lambda v: -v), min([], default="d"), next(it),
        next(it), next(iter([]), "end"), list(it), list(iter(calls, 0)), list(reversed(range(n))), sorted({"b": 1, "a": 2}),
        dict(enumerate("ab")), set(map(str, range(n))) == {str(v) for v in range(n)}, list(zip(*[(1, 2), (3, 4)])),
        attempt(lambda: list(zip([1], [], strict=True))), attempt(next, iter([])), attempt(min, []), sum(x),
    )  # fmt: skip


def naturals():
    n = 0
    while True:
        yield n
        n += 1


@program((3,), (5,))
def itertools_all(x, n):
    odd = lambda v: v % 2  # noqa: E731
    first, second = itertools.tee(iter(range(n)))
    return (
        x, list(itertools.accumulate(range(n))), list(itertools.accumulate([2, 3], operator.mul, initial=1)),
        list(itertools.chain("a", [1], (2,))), list(itertools.chain.from_iterable(["ab", "c"])),
        list(itertools.combinations(range(n), 2)), list(itertools.combinations_with_replacement("ab", 2)),
        list(itertools.compress("abc", [1, 0, 1])), list(itertools.islice(itertools.count(n, 2), 3)),
        list(itertools.islice(itertools.cycle("ab"), 5)), list(itertools.dropwhile(odd, [1, 3, 2, 1])),
        list(itertools.filterfalse(odd, range(n))), [(k, list(g)) for k, g in itertools.groupby("aabc")],
        list(itertools.islice(naturals(), 1, n, 2)), list(itertools.pairwise(range(n))), list(itertools.permutations(range(3))),
        list(itertools.product("ab", repeat=2)), list(itertools.repeat(n, 2)), list(itertools.starmap(pow, [(2, n)])),
        list(itertools.takewhile(odd, [1, 3, 2, 1])), list(first), list(second), repr(itertools.count(n)),
        list(itertools.zip_longest(range(n), "ab", fillvalue="-")),
    )  # fmt: skip


@program()
def iterators_handed_out(x):
    z = zip([1, 2, 3], "abc")
    c = itertools.count(5)
    i = itertools.islice(range(10), 2, None, 3)
    next(z), next(c), next(i)
    return x, z, c, i, map(str, [1]), enumerate("ab"), itertools.chain([1], [2]), filter(None, [0, 1]), iter([1, 2])


@program(lambda: (zip([1, 2, 3], [4, 5, 6]),), lambda: (itertools.count(3),), lambda: (iter([7, 8]),), lambda: (naturals(),), breaks=True)
def iterators_given(x, it):
    return x + 1, next(it), next(it)


# -- functools ---------------------------------------------------------------------------------------------------------


def joined(*args, **kwargs):
    return args, kwargs


add_three = functools.partial(joined, 3, key="k")


@functools.singledispatch
def kind_of(v):
    return "object"


@kind_of.register
def _(v: int):
    return "int"


@functools.wraps(joined)
def wrapping(*args):
    return joined(*args)


class Cached:
    def __init__(self):
        self.runs = 0

    @functools.cached_property
    def table(self):
        self.runs += 1
        return [self.runs]

    method = functools.partialmethod(joined, "bound")


@program()
def functools_all(x):
    c = Cached()
    p = functools.partial(add_three, 4, other=1)
    return (
        x, functools.reduce(operator.add, [1, 2, 3]), functools.reduce(lambda a, b: a * b, range(1, 5), 2), add_three(1), p(5, key=2),
        wrapping(1), wrapping.__name__, c.table, c.table is c.table, c.runs, attempt(functools.reduce, max, []),
    )  # fmt: skip


# -- objects -----------------------------------------------------------------------------------------------------------


class Animal(abc.ABC):
    legs = 4

    @abc.abstractmethod
    def noise(self): ...


class Dog(Animal):
    def __init__(self, name="dog"):
        self.name = name

    def noise(self):
        return "wuff"

    def __eq__(self, other):
        return isinstance(other, Dog) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __len__(self):
        return len(self.name)

    def __getattr__(self, name):
        if name.startswith("dyn_"):
            return name[4:]
        raise AttributeError(name)

    @property
    def shout(self):
        return self.noise().upper()

    @shout.setter
    def shout(self, value):
        self.name = value
        return "ignored"


class Odd:
    def __new__(cls, v):
        return v * 2 if isinstance(v, int) else super().__new__(cls)

    def __init__(self, v):
        self.v = v


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class Meta(type):
    def __instancecheck__(cls, obj):
        return obj == "magic"

    def __call__(cls, *args):
        made = super().__call__(*args)
        made.extra = args
        return made


class Magic(metaclass=Meta):
    pass


class Color(enum.Enum):
    RED = 1
    BLUE = "b"

    @property
    def low(self):
        return self.name.lower()


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


@dataclasses.dataclass
class Config:
    size: int
    names: list = dataclasses.field(default_factory=list)
    ratio: float = 0.5


@dataclasses.dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int = 0


@program()
def objects(x):
    d = Dog("rex")
    s = Slotted(1)
    d.size = 3
    setattr(d, "extra", x)
    setattr(d, "shout", "bello")
    return (
        x, d.name, d.shout, len(d), bool(d), d == Dog("bello"), d != Dog("q"), hash(d) == hash("bello"), getattr(d, "size"),
        getattr(d, "nope", "default"), hasattr(d, "nope"), hasattr(d, "dyn_x"), d.dyn_abc, getattr(d, "dyn_q", None), vars(Dog("v")),
        isinstance(d, Animal), isinstance(d, (int, Dog)), isinstance(3, int | str), isinstance(True, int), issubclass(Dog, Animal),
        isinstance([], collections.abc.Sequence), isinstance({}, collections.abc.Sequence), isinstance(d, collections.abc.Sized),
        isinstance("magic", Magic), isinstance(d, Magic), type(d) is Dog, type(d).__name__, type(3) is int, callable(len), callable(3),
        callable(Dog), callable(d), s.a, hasattr(s, "b"), attempt(getattr, s, "b"), attempt(getattr, d, "missing"), attempt(Animal),
        Odd(4), type(Odd("s")) is Odd, Magic().extra, d.legs, Dog.legs, super(Dog, d).legs, isinstance(x, type(x)), d in [1, Dog("bello")],
        [Dog("a"), Dog("b")].index(Dog("b")), [Dog("a"), 1].count(Dog("a")), id(Dog) == id(Dog), hash(Dog) == hash(Dog),
    )  # fmt: skip


@program()
def deleting_attributes(x):
    d = Dog("rex")
    d.tail = 1
    del d.tail
    d.ear = 2
    delattr(d, "ear")
    return x, hasattr(d, "tail"), attempt(delattr, d, "ear"), sorted(vars(d))


@program((Color.RED, Level.HIGH), (Color.BLUE, Level.LOW))
def enums(x, color, level):
    return (
        x, color is Color.RED, color.name, color.value, color.low, Color("b") is Color.BLUE, Color["RED"].value, level > 2, level + 1,
        color in (Color.RED,), {Color.RED: 1}.get(color), isinstance(level, int), color == Color.RED, f"{level:d}", int(level),
    )  # fmt: skip


@program()
def dataclasses_(x):
    c = Config(3, ratio=0.25)
    c.names.append("n")
    return (
        x * c.size, c.names, c.ratio, Config(1) == Config(1), Version(1, 2) < Version(1, 3), hash(Version(1)) == hash(Version(1, 0)),
        attempt(setattr, Version(1), "major", 2), [f.name for f in dataclasses.fields(c)], dataclasses.replace(Version(1), minor=5).minor,
    )  # fmt: skip


class Base:
    def __init__(self, v):
        self.v = v

    def who(self):
        return "base"

    @classmethod
    def make(cls, v):
        return cls(v)

    @staticmethod
    def twice(v):
        return v * 2


class Derived(Base):
    def __init__(self, v):
        super().__init__(v + 1)

    def who(self):
        return super().who() + "+" + super(Derived, self).who()

    @classmethod
    def make(cls, v):
        return super().make(v * 10)


@program((1,), (2,))
def inheritance(x, n):
    d = Derived.make(n)
    method = d.who
    return x * d.v, d.who(), method(), Base.who(d), d.twice(n), Derived.twice(n), method.__self__ is d, Base.__init__(d, 4), d.v


@program()
def exceptions(x):
    class Mine(Exception):
        def __init__(self, code, text):
            super().__init__(text)
            self.code = code

    try:
        raise Mine(3, "t")
    except Mine as error:
        seen = error.code, str(error), error.args
    return x, seen, attempt(lambda: {}[()]), isinstance(KeyError("k"), LookupError)


PROGRAMS["exceptions"] = (exceptions, ((),))
BREAKS.add("exceptions")  # a class is defined
