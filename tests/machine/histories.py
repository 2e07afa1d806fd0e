"""Programs: containers whose past shows, containers that contain themselves, and classes that refuse a protocol."""

from __future__ import annotations

import itertools
import types
from collections import OrderedDict, deque

from machine.oracle import program, say

import dynacore


def ordered():
    return OrderedDict(a=1, b=2, c=3)


def move(d):
    d.move_to_end("a")


def add(d):
    d["z"] = 1


def add_and_remove(d):
    d["z"] = 1
    del d["z"]


def replace(d):
    d["a"] = 5


def remove(d):
    del d["b"]


def take(d):
    d.popitem()


def empty(d):
    d.clear()


def refill(d):
    d.clear()
    d.update(x=1, y=2, z=3)


CHANGES = (add, add_and_remove, replace, remove, take, empty, refill)
WAYS = (iter, reversed, lambda d: iter(d.values()), lambda d: reversed(d.items()))


def drain(iterator):
    """Everything that an iterator still gives, and what it says twice."""
    said = []
    for _ in range(2):
        try:
            said.append(list(iterator))
        except RuntimeError as error:
            said.append(str(error))
    return said


@program(*[(ordered, change, way, n) for change in (*CHANGES, move) for way in WAYS for n in (1, 3)])
def ordered_dicts_under_their_iterators(make, change, way, n):
    d = make()
    iterator = way(d)
    for _ in range(n):
        next(iterator)
    change(d)
    dynacore.graph_break()
    return drain(iterator), type(iterator).__name__, d


@program(*[(dict, change, way, n) for change in CHANGES for way in WAYS[:2] for n in (1, 3)])
def dicts_under_their_iterators(kind, change, way, n):
    d = kind(a=1, b=2, c=3)
    iterator = way(d)
    for _ in range(n):
        next(iterator)
    change(d)
    dynacore.graph_break()
    return drain(iterator), type(iterator).__name__, d


@program((OrderedDict,), (dict,), (deque,), (set,))
def iterators_over_nothing(kind):
    container = kind()
    iterator = iter(container)
    if isinstance(container, dict):
        container["a"] = 1
    elif isinstance(container, set):
        container.add(1)
    else:
        container.append(1)
    dynacore.graph_break()
    return drain(iterator)


class Refuses:
    __iter__ = None

    def __getitem__(self, index):
        return (1, 2)[index]


class RefusesToSearch:
    __contains__ = None

    def __iter__(self):
        return iter((1, 2))


class NoIterator:
    def __iter__(self):
        return 3


class Raises:
    def __iter__(self):
        raise TypeError("its own")


class Items(list):
    __iter__ = None


class Searched(list):
    __contains__ = None


class Table(dict):
    __iter__ = None


class Unhashable(tuple):
    __hash__ = None


class Sized(list):
    __len__ = None


class Compared(list):
    __eq__ = None


class Text(str):
    __reversed__ = None


REFUSALS = (Refuses, RefusesToSearch, NoIterator, Raises, Items, Searched, Table, Unhashable, Sized, Compared, Text)
USES = {
    "in": lambda o: 2 in o,
    "not in": lambda o: 2 not in o,
    "list": list,
    "star": lambda o: [*o],
    "unpack": lambda o: (lambda a, b: a)(*o),
    "join": lambda o: ",".join(o),
    "loop": lambda o: [item for item in o],  # noqa: C416
    "key": lambda o: {}.get(o),
    "member": lambda o: o in set(),
    "truth": lambda o: 1 if o else 2,
    "equal": lambda o: (o == 1, o != 1),
    "reversed": lambda o: list(reversed(o)),
    "union": lambda o: type(o) | {1},
}


@program(*[(cls, use) for cls in REFUSALS for use in USES])
def classes_that_refuse(cls, use):
    try:
        return say(USES[use](cls()))
    except TypeError as error:
        return str(error)


@program()
def unions():
    return [repr(x) for x in (None | int, int | None, None | list[int], list[int] | None, int | (str | None))]


@program()
def mapping_proxies():
    proxy = types.MappingProxyType({"a": 1})
    try:
        proxy.b = 1
    except AttributeError as error:
        return str(proxy), repr(proxy), f"{proxy}", str(error)


def own_list(kind):
    items = [1, kind]
    items.append(items)
    return items


def own_dict(kind):
    table = {"a": kind}
    table["b"] = [table]
    return table


def through_a_tuple(kind):
    items = [kind]
    items.append((items, 2))
    return items


@program(*[(make, break_) for make in (own_list, own_dict, through_a_tuple) for break_ in (False, True)])
def containers_in_themselves(make, break_):
    container = make(int)
    if break_:
        dynacore.graph_break()
    texts = [repr(container), f"{container}", str([container]), "%s" % (container,)]
    try:
        texts.append(container == make(int))
    except RecursionError as error:
        texts.append(str(error))
    try:
        texts.append(container < make(int))
    except (TypeError, RecursionError) as error:
        texts.append(str(error))
    try:
        texts.append({}.get((container,)))
    except TypeError as error:
        texts.append(str(error))
    return texts, container == container, container in [container], len(container)  # noqa: PLR0124


class Node:
    def __repr__(self):
        return "Node"


def node_in(make):
    node = Node()
    node.back = made = make(node)
    return made, node.back is made


def list_in(make):
    items = []
    items.append(make(items))
    return items[0], len(items)


def table_in(make):
    table = {1: 2, 3: 4}
    table[1] = made = make(table)
    return made, table[1] is made


AROUND = (
    lambda o: frozenset([o]), lambda o: (o, 1), lambda o: {o}, lambda o: {o: 1}, lambda o: slice(o, 1),
    lambda o: o.__repr__, lambda o: {"x": [frozenset([o])]}, lambda o: OrderedDict({o: o}), lambda o: lambda x=o: x,
    lambda o: ValueError(o, [o]), lambda o: ({"a": [o]}, o),
    lambda o: deque([o]), lambda o: [o].__iter__(), lambda o: {o: 1}.values(),
)  # fmt: skip


@program(*[(node_in, make, break_) for make in AROUND for break_ in (False, True)])
def cycles_through_nodes(build, make, break_):
    made, same = build(make)
    if break_:
        dynacore.graph_break()
    return made, same


def start(table):
    iterator = iter(table)
    next(iterator)
    return iterator


@program(
    *[(list_in, make, break_) for make in (tuple, iter, lambda o: (o, 2)) for break_ in (False, True)],
    *[(table_in, make, break_) for make in (start, dict.items, lambda t: (t,)) for break_ in (False, True)],
)
def cycles_through_containers(build, make, break_):
    made, same = build(make)
    if break_:
        dynacore.graph_break()
    return same, type(made).__name__, list(made) if same is True and type(made) is type(iter({})) else None


class Equal:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return say("eq", self.n, isinstance(other, Equal) and self.n == other.n)

    __hash__ = object.__hash__


ITEMS = (
    lambda a, b: a == b, lambda a, b: a != b, lambda a, b: a.items() == b.items(),
    lambda a, b: ("a", b["a"]) in a.items(), lambda a, b: ("a", Equal(1)) in a.items(),
    lambda a, b: a.items() <= b.items(), lambda a, b: a["a"] in b.values(),
    lambda a, b: list(a.values()) == list(b.values()), lambda a, b: a.items() == [("a", b["a"])],
)  # fmt: skip


@program(*[(compare, n) for compare in ITEMS for n in (1, 2)])
def items_with_an_equality_in_python(compare, n):
    return compare({"a": Equal(1)}, {"a": Equal(n)})


class Sized:
    def __iter__(self):
        say("iter")
        return iter("abc")

    def __len__(self):
        return say("len", 3)


class Hinted:
    """Its iterator tells how many there are, too, and so do errors."""

    def __init__(self, size=2):
        self.size = size

    def __iter__(self):
        say("iter")
        return HintedIterator(self.size)

    def __length_hint__(self):
        say("hint")
        if isinstance(self.size, type):
            raise self.size("no hint")
        return self.size


class HintedIterator:
    def __init__(self, size):
        self.left = 3
        self.size = size

    def __iter__(self):
        say("iterator")
        return self

    def __next__(self):
        say("next")
        if not self.left:
            raise StopIteration
        self.left -= 1
        return "x"

    def __length_hint__(self):
        return say("iterator's hint", 2)


class SizedList(list):
    def __len__(self):
        return say("len", 1)


class SizedTuple(tuple):
    def __len__(self):
        return say("len", 1)


class SizedDict(dict):
    def __len__(self):
        raise TypeError(say("len"))


class Failing(list):
    def __len__(self):
        raise ValueError(say("len"))


class Subscripted:
    def __getitem__(self, index):
        return "abc"[index]

    def __len__(self):
        return say("len", -1)


def collect(*args):
    return args


def unpacked(o):
    first, *rest = o
    *start, last = o
    return first, rest, start, last


def unpacked_too_short(o):
    a, b, c, d, *rest = o
    return rest


def assigned(o):
    items = [1]
    items[:] = o
    items += o
    items.extend(o)
    return items


TAKES = {
    "list": list, "tuple": tuple, "sorted": sorted, "star": lambda o: [1, *o], "tuples": lambda o: (*o, 1),
    "arguments": lambda o: collect(*o), "more arguments": lambda o: collect(1, *o),
    "set": lambda o: ({*o}, set(o), frozenset(o)), "unpack": unpacked, "too short": unpacked_too_short,
    "assign": assigned, "join": ",".join, "init": lambda o: SizedList(o) == ["a"],
    "product": lambda o: list(itertools.product(o, o)),
    "zip": lambda o: list(zip(o, o)), "dict": lambda o: dict([o, o]), "deque": deque,
    "update": lambda o: dict.fromkeys(o),
    "comprehension": lambda o: [item for item in o], "max": max, "iter": lambda o: list(iter(o)),
}  # fmt: skip
GIVEN = (
    Sized, Hinted, lambda: Hinted(NotImplemented), lambda: Hinted(-1), lambda: Hinted("a"), lambda: Hinted(TypeError),
    lambda: Hinted(KeyError), lambda: Hinted(1 << 80), lambda: SizedList("ab"), lambda: SizedTuple("ab"),
    lambda: SizedDict(a=1, b=2), lambda: Failing("ab"), Subscripted, object,
)  # fmt: skip


@program(*[(make, take) for make in GIVEN for take in TAKES])
def lengths_that_are_asked_for(make, take):
    try:
        return TAKES[take](make())
    except (TypeError, ValueError, OverflowError, KeyError) as error:
        return type(error), str(error)
