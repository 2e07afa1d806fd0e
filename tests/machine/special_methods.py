"""Programs: what the interpreter does around special methods: results that it checks, receivers, fallbacks, proxies."""

from __future__ import annotations

import collections
import copy
import operator
import weakref

from machine.classes import Base
from machine.oracle import program, say


def attempts(*functions):
    """What each gives, or the error that it raises."""
    out = []
    for function in functions:
        try:
            out.append(function())
        except Exception as error:
            out.append((type(error).__name__, str(error)))
    return out


class Blocked:
    __contains__ = None

    def __iter__(self):
        return self

    def __int__(self):
        return "x"

    def __index__(self):
        return True


class Borrows:
    append, upper = list.append, str.upper


@program()
def results_and_receivers():
    thing, borrows = Blocked(), Borrows()
    return attempts(
        lambda: 1 in thing, lambda: iter(thing), lambda: list(thing), lambda: [*thing], lambda: list(zip(thing)),
        lambda: int(thing), lambda: float(thing), lambda: [1, 2][thing], lambda: list(map(str, thing)),
        lambda: borrows.append, lambda: borrows.upper(),
    )  # fmt: skip


class Made:
    def __init__(self, result):
        self.result = result
        return result  # noqa: PLE0101 — the interpreter refuses it


@program((None,), (3,))
def what_init_returns(x):
    class Lazy:
        def __init__(self):
            yield 1

    return attempts(lambda: Made(x), lambda: Made([x]), Lazy)


class Left:
    def __iadd__(self, other):
        return say("iadd", NotImplemented)

    __ipow__ = __iadd__


class Right(Left):
    def __radd__(self, other):
        return say("radd", 2)

    __rpow__ = __radd__


class Both(Left):
    def __add__(self, other):
        return say("add", 4)

    __pow__ = __add__


@program()
def inplace_falls_back():
    left, right, both = Left(), Right(), Both()
    a = b = left
    a += right
    b **= right
    both += right
    return a, b, both, attempts(lambda: operator.iadd(left, 1), lambda: operator.ipow(left, left))


class Proxy:
    def __init__(self, behind):
        self._behind = behind

    def __getattribute__(self, name):
        behind = object.__getattribute__(self, "_behind")
        return behind if name == "_behind" else getattr(behind, name)


KEPT = Base(3)


@program(lambda: (Proxy(Base(1)),), lambda: (Base(1),), lambda: (weakref.proxy(KEPT),), (5,))
def class_of_proxies(obj):
    return isinstance(obj, Base), isinstance(obj, (str, Base)), obj.__class__ is Base, type(obj) is Base


class Described:
    def __init__(self, function):
        self.function = function

    def __get__(self, obj, owner):
        say("get")
        return self.function


class Sized:
    __len__ = Described(lambda: 3)
    __reversed__ = Described(lambda: iter("cba"))


@program()
def methods_by_descriptors():
    return len(Sized()), list(reversed(Sized()))


@program()
def equality_of_relatives():
    count = collections.Counter("aab")
    return (
        count == {"a": 2, "b": 1}, {"a": 2, "b": 1} == count, count != {"a": 2}, count == 5,
        collections.deque([1]) == [1], [1] == collections.deque([1]), {1} in {frozenset({1})},
        attempts(lambda: {frozenset({1}), 2}.remove({3})), {1} in frozenset({2}), {1, 2} == frozenset({2, 1}),
    )  # fmt: skip


@program()
def set_of_sets():
    s = {frozenset({1, 2}), 3}
    s.discard({1, 2})
    return s


class Number(int):
    def __eq__(self, other):
        return "equal"

    __hash__ = int.__hash__


class Named(str):
    pass


def named(text, note):
    made = Named(text)
    made.note = note
    return made


@program(lambda: (Number(3), named("k", 1)), lambda: (Number(4), named("k", 2)))
def equal_constants_are_not_one(number, name):
    return number + 1, {name: number}, name.note, number == 7, [number, name]


@program()
def fields_of_super():
    class Over(Base):
        def look(self):
            above = super()
            return above.__thisclass__ is Over, above.__self__ is self, above.__self_class__ is Over

    return Over(1).look()


@program(lambda: (Base(1),))
def what_attribute_errors_name(obj):
    out = []
    for read in (lambda: obj.some, lambda: object.__getattribute__(obj, "other"), lambda: Base.more):
        try:
            read()
        except AttributeError as error:
            out.append((str(error), error.name, error.obj in (obj, Base)))
    return out


class Words:
    def __str__(self):
        return 1

    def __repr__(self):
        return b"x"

    def __format__(self, spec):
        return None

    def __len__(self):
        return 2**70


@program()
def texts_and_lengths_are_checked():
    words = Words()
    return attempts(
        lambda: str(words), lambda: repr(words), lambda: f"{words}", lambda: format(words, "x"), lambda: len(words)
    )


class SetOnly:
    def __set__(self, obj, value):
        say("set", value)


class Holds:
    item = SetOnly()


@program(lambda: (Holds(),))
def descriptors_without_get(given):
    made = Holds()
    made.item = 1
    given.item = 2
    return made, given, type(made.item)


@program()
def classes_made_by_type():
    made = type("Made", (Base,), {"extra": 1})
    return made.__module__, made(2).extra, type("Plain", (), {}).__module__


@program()
def copies_of_ordered_dicts_with_attributes():
    kept = collections.OrderedDict(a=[1])
    kept.note = [2]
    copied = copy.copy(kept)
    return kept, copied, copied.note is kept.note
