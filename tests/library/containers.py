"""Programs over lists, deques, tuples, dicts and sets."""

import collections
import enum
import operator
import typing

import numpy as np
from library.programs import attempt, program

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
        attempt([].pop), attempt([1].pop, 3), attempt([1].remove, 2), attempt([1, 2].index, 5),
        attempt([1, 2, 1].index, 1, 1), attempt(operator.getitem, [1], 4), attempt(operator.getitem, [1], "a"),
        attempt(list, 3), attempt([1].extend, 4),
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


class Place:
    def __init__(self, at):
        self.at = at

    def __index__(self):
        return self.at


class Ordinal(enum.IntEnum):
    FIRST = 1
    THIRD = 3


@program((2,), (3,), (0,), breaks=True)
def slices_to_objects(x, n):
    a, t = list(range(8)), tuple(range(8))
    a[Place(1) : Place(3)] = ["new"]
    del a[: Place(2)]
    return x, a, a[Place(1) : n], t[n : np.int8(6)], t[Ordinal.FIRST : Ordinal.THIRD], a[False:True], a[:: Place(2)]


@program()
def slice_errors(x):
    bad = [slice("a", 1), slice(None, 1.5), slice([1], None), slice(slice(1), 2), slice(None, None, 0), slice((), 1, 0)]
    given = [attempt(operator.getitem, sequence, key) for key in bad for sequence in ([1, 2], (1, 2))]
    put = [attempt(operator.setitem, [1, 2], key, [3]) for key in bad]
    return x, given, put, [attempt(operator.delitem, [1, 2], key) for key in bad]


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
    ends = d[0], d[-1], len(d), 3 in d, d.count(3)
    return x, list(d), taken, ends, attempt(collections.deque().pop), list(reversed(d))


@program((collections.deque([1, 2], 2),), (collections.deque([1, 2], 2),), breaks=True)
def deque_given(x, d):
    d.append(5)
    return x, list(d), d.maxlen


@program((0,), (2,), (2,), (5,))
def deques_bounded(x, n):
    d = collections.deque(maxlen=n)
    for i in range(4):
        d.append(x + i)
    d.appendleft("left")
    few, twice = collections.deque([1, 2, 3], 2), collections.deque("ab", 3) * 2
    used_up = collections.deque(map(few.append, d), maxlen=0)
    copied = d.copy()
    copied.extend([7, 8, 9])
    bounds = [q.maxlen for q in (d, few, twice, used_up, copied, collections.deque())]
    return x, d, few, twice, used_up, copied, bounds, attempt(few.insert, 0, 0), list(reversed(few))


class Window(collections.deque):
    def __init__(self, items):
        super().__init__(items, 2)
        self.seen = len(items)


class Shadowed(collections.deque):
    __slots__ = ("maxlen",)


@program()
def deques_of_classes(x):
    window = Window([1, 2, 3])
    window.append(x)
    shadowed = Shadowed([1, 2, 3])
    shadowed.maxlen = 2
    shadowed.append(x)
    return window, window.maxlen, window.seen, shadowed, shadowed.maxlen


@program()
def deque_errors(x):
    return x, [
        attempt(collections.deque, [1], -1), attempt(collections.deque, [1], "a"),
        attempt(collections.deque, [1], 2**70),
    ]  # fmt: skip


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
        x, t.index(2), t.count(2), t + (3,), t * 2, t[1:], t[-1], tuple("ab"), tuple(v for v in t), tuple([1]),
        tuple(), attempt(t.index, 9), attempt(lambda: t[9]), 2 in t, t == (1, 2, 2, None), t < (1, 3),
        hash((1, "a")) == hash((1, "a")),
    )  # fmt: skip


@program()
def named_tuples(x):
    p = Point(x, 2)
    q = p._replace(y=3)
    typed = Typed(1).both(), Typed(4, "c")[1]
    return p.x + q.y, p.y, q._asdict()["y"], Point(1), typed, p._fields, Point._make([1, 2]), q


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
        dict.fromkeys([1, 2], 0), {**{"a": 1}, "b": 2}, {"a": 1} | {"b": 2},
        dict((k, v) for k, v in zip("xy", "12")), attempt(dict, [1]), attempt(dict, [(1, 2, 3)]), attempt(dict, 3),
        attempt({}.popitem), attempt({}.pop, "k"), attempt(lambda: {}["k"]),
    )  # fmt: skip


@program()
def dict_order_and_views(x):
    d = {"a": 1, "b": 2, "c": 3}
    del d["a"]
    d["a"] = 4
    d |= {"b": 9}
    return (
        x, list(d), list(d.values()), list(reversed(d)), list(reversed(d.items())),
        sorted(d.keys() & {"a", "b", "z"}), ("a", 4) in d.items(), 9 in d.values(), d == {"b": 9, "c": 3, "a": 4},
        len(d.items()), max(d, key=d.get),
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
    return x, list(d), first, list(made), type(made.copy()), list(reversed(made))


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
        x, s | t, s & t, s - t, s ^ t, s.union(t, [1]), s.issubset(t), s >= {2}, s.isdisjoint({4}), len(s), 2 in s,
        s2, u | {"c"}, u == {"a", "b"}, attempt({1}.remove, 5), attempt(set().pop), sorted(s), min(s), {x}.pop(),
        s < (s | {0}),
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
