"""Programs over text, numbers and iterators."""

import functools
import itertools
import math
import operator

from library.programs import attempt, program

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
        x, f"{n}:{name!r:>5}|{n:03d}|{1.5:.2f}", "%s-%d %r" % (name, n, name), "{} {a}".format(n, a=name), str(n),
        repr(name), str(loud), repr(loud), f"{loud}|{loud!r}|{loud:x}", "-".join(["a", name]),
        "-".join(str(v) for v in range(n)), name.upper(), "a,b".split(","), " x ".strip(), "abc".replace("b", "-"),
        "abc".startswith("ab"), str([1, "a", (2,)]), str({"k": None}), str(b"x", "ascii"), str(1.0), str(None),
        str(True), "a" * 3, "abc"[::-1], "abc".index("c"), attempt("abc".index, "z"), attempt(int, "zz"),
        "x".join("abc"), "%(a)s" % {"a": 1}, "ab" in "cab", str(int), format(3, ">4"), format("a"),
        "a{}".format([1]), ascii("ä"), str(x.dtype), f"{x.shape}", chr(65) + str(ord("a")),
    )  # fmt: skip


@program()
def text_errors(x):
    refused = attempt("-".join, [1]), attempt("{}".format), attempt(operator.mod, "%d", "a"), attempt(format, 3, "zz")
    return x, refused, str(KeyError("k")), str(ValueError(1, 2))


# -- numbers -----------------------------------------------------------------------------------------------------------


@program((3, 2.5), (4, -1.5))
def numbers(x, n, f):
    return (
        x, int(f), int("12"), int("ff", 16), float(n), float("1e3"), bool(n), bool(""), complex(n, 1).imag, abs(f),
        round(f), round(f, 1), divmod(n, 2), pow(n, 2), pow(n, 2, 5), max(n, 2), min(n, f), max([1, n]),
        min("b", "a"), sum([1, n, f]), math.sqrt(16), math.floor(f), math.prod([n, 2]), math.pi, math.gcd(12, n),
        math.isnan(f), n.bit_length(), f.is_integer(), (n).__add__(1), int.from_bytes(b"\x01\x02", "big"),
        float.fromhex("0x1p3"), n.real, range(n)[1:], len(range(n)), 2 in range(n), hash(1.0) == hash(1),
        attempt(lambda: 1 / 0), attempt(math.sqrt, -1), attempt(int, "x"), sum([0.1] * 10),
    )  # fmt: skip


@program()
def operators(x):
    return (
        operator.add(x, 1), operator.add(1, 2), operator.itemgetter(1)([4, 5]),
        operator.itemgetter("a", "b")({"a": 1, "b": 2}), operator.attrgetter("ndim")(x),
        operator.attrgetter("shape", "ndim")(x), operator.methodcaller("upper")("a"),
        operator.methodcaller("sum", dim=0)(x), operator.not_(0), operator.contains([1], 1),
        operator.getitem([1, 2], 0), operator.lt(1, 2), operator.is_(None, None), operator.index(3),
        operator.truth([]), operator.concat([1], [2]), operator.neg(3), operator.matmul(x, x),
        operator.call(lambda v: v + 1, 2), operator.mul([1], 2), operator.iadd([1], [2]),
    )  # fmt: skip


# -- iteration ---------------------------------------------------------------------------------------------------------


@program((3,), (4,))
def builtin_iteration(x, n):
    it = iter([1, 2, 3])
    calls = iter([4, 5, 0, 6]).__next__
    return (
        x, list(zip(range(n), "abcdef")), list(enumerate("ab", 1)), list(map(lambda a, b: a * b, [1, 2], [3, 4])),
        list(filter(None, [0, 1, 2])), list(filter(lambda v: v > 1, range(n))), any(v > 2 for v in range(n)),
        all([1, 0]), sum((v for v in range(n)), 10), sum([(1,), (2,)], ()), max(range(n), key=lambda v: -v),
        min([], default="d"), next(it), next(it), next(iter([]), "end"), list(it), list(iter(calls, 0)),
        list(reversed(range(n))), sorted({"b": 1, "a": 2}), dict(enumerate("ab")),
        set(map(str, range(n))) == {str(v) for v in range(n)}, list(zip(*[(1, 2), (3, 4)])),
        attempt(lambda: list(zip([1], [], strict=True))), attempt(next, iter([])), attempt(min, []), sum(x),
    )  # fmt: skip


def naturals():
    n = 0
    while True:
        yield n
        n += 1


@program((3,), (5,))
def itertools_all(x, n):
    odd = lambda v: v % 2
    first, second = itertools.tee(iter(range(n)))
    return (
        x, list(itertools.accumulate(range(n))), list(itertools.accumulate([2, 3], operator.mul, initial=1)),
        list(itertools.chain("a", [1], (2,))), list(itertools.chain.from_iterable(["ab", "c"])),
        list(itertools.combinations(range(n), 2)), list(itertools.combinations_with_replacement("ab", 2)),
        list(itertools.compress("abc", [1, 0, 1])), list(itertools.islice(itertools.count(n, 2), 3)),
        list(itertools.islice(itertools.cycle("ab"), 5)), list(itertools.dropwhile(odd, [1, 3, 2, 1])),
        list(itertools.filterfalse(odd, range(n))), [(k, list(g)) for k, g in itertools.groupby("aabc")],
        list(itertools.islice(naturals(), 1, n, 2)), list(itertools.pairwise(range(n))),
        list(itertools.permutations(range(3))), list(itertools.product("ab", repeat=2)),
        list(itertools.repeat(n, 2)), list(itertools.starmap(pow, [(2, n)])),
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


@program(
    lambda: (zip([1, 2, 3], [4, 5, 6]),),
    lambda: (itertools.count(3),),
    lambda: (iter([7, 8]),),
    lambda: (naturals(),),
    breaks=True,
)
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
        x, functools.reduce(operator.add, [1, 2, 3]), functools.reduce(lambda a, b: a * b, range(1, 5), 2),
        add_three(1), p(5, key=2), wrapping(1), wrapping.__name__, c.table, c.table is c.table, c.runs,
        attempt(functools.reduce, max, []),
    )  # fmt: skip


# -- numbers of a class of their own -----------------------------------------------------------------------------------


class Asked:
    """What says its number each time that it is asked, and counts that."""

    def __init__(self, number):
        self.number, self.times = number, 0

    def __index__(self):
        self.times += 1
        return self.number


class Odd(int):
    def __index__(self):
        return 99


@program(breaks=True)
def numbers_of_classes(x):
    return x, int(Odd(3)), operator.index(Odd(2)), float(Odd(4)), [1, 2, 3][Odd(1)], attempt(int, Asked("a"))


@program((2,), (3,), breaks=True)
def iterators_asked_for_numbers(x, n):
    one, two, many = Asked(1), Asked(2), Asked(n)
    found = [
        list(itertools.islice(range(9), one, many)), list(itertools.combinations("abc", two)),
        list(itertools.combinations_with_replacement("ab", many)), len(list(itertools.product("ab", repeat=many))),
        len(itertools.tee("ab", many)), attempt(itertools.islice, "ab", Asked("a")), attempt(itertools.tee, "a", "b"),
    ]  # fmt: skip
    return x, found, one.times, two.times, many.times
