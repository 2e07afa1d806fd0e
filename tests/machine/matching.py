"""Programs: class and mapping patterns, with what CPython refuses."""

import collections
import enum

from machine.oracle import program, say


def pattern_class(name, *bases, **namespace):
    return type(name, bases, namespace)


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x=1, y=2):
        self.x, self.y = x, y


class Number(int):
    pass


class Text(str):
    __match_args__ = ("length",)
    length = property(len)


class Record(dict):
    pass


class Fields(collections.namedtuple("Fields", "first second")):
    pass


class Choice(enum.IntEnum):
    ONE = 1


class Meta(type):
    @property
    def __match_args__(cls):
        say("asked for its __match_args__")
        return ("x",)


class ByMeta(metaclass=Meta):
    x = 5


class Failing(type):
    @property
    def __match_args__(cls):
        raise LookupError("no __match_args__")


class ByFailing(metaclass=Failing):
    pass


class Lazy:
    __match_args__ = ("here", "gone")

    @property
    def here(self):
        say("here")
        return "here"

    def __getattr__(self, name):
        say("getattr", name)
        raise AttributeError(name)


class Broken:
    @property
    def x(self):
        raise KeyError("x")


class TupleOfItsOwn(tuple):
    pass


class Name(str):
    pass


REFUSED = {
    "list": pattern_class("Refused", __match_args__=["a"], a=1),
    "none": pattern_class("Refused", __match_args__=None),
    "tuple subclass": pattern_class("Refused", __match_args__=TupleOfItsOwn(["a"]), a=1),
    "int": pattern_class("Refused", __match_args__=("a", 2), a=1),
    "str subclass": pattern_class("Refused", __match_args__=(Name("a"),), a=1),
    "first missing": pattern_class("Refused", __match_args__=("a", 2)),
    "twice": pattern_class("Refused", __match_args__=("a", "a"), a=1),
    "too few": pattern_class("Refused", __match_args__=("a",), a=1),
    "empty": pattern_class("Refused", __match_args__=()),
    "nothing": pattern_class("Refused"),
    "number": pattern_class("Refused", Number, __match_args__=()),
    "deque": collections.deque,
    "ordered": collections.OrderedDict,
    "object": object,
}  # fmt: skip


@program(*((name,) for name in REFUSED))
def refused_patterns(name):
    cls = REFUSED[name]
    subject, out = cls(), []

    def one():
        match subject:
            case cls(a):
                return "one", a
        return "nothing"

    def two():
        match subject:
            case cls(a, b):
                return "two", a, b
        return "nothing"

    def keyword():
        match subject:
            case cls(a, a=b):
                return "keyword", a, b
        return "nothing"

    def other():
        match name:
            case cls(a, b):
                return "two", a, b
        return "nothing"

    for attempt in (one, two, keyword, other):
        try:
            out.append(attempt())
        except Exception as error:
            out.append((type(error), str(error)))
    return out


@program(
    (Point(),), (Point(0),), (7,), (True,), (Number(7),), (Text("abc"),), (Record(a=1),), ({"a": 1},), ([1],),
    ((1, 2),),
    (Fields(1, 2),), (Choice.ONE,), (2.5,), (b"x",), (bytearray(b"x"),), ({1},), (frozenset([1]),), (1j,), (None,),
    (ByMeta(),), (ByFailing(),), (Lazy(),), (Broken(),), (collections.deque([1]),),
)  # fmt: skip
def patterns_by_position(subject):
    match subject:
        case Point(0, y=y):
            return "origin", y
        case Point(x, y):
            return "point", x, y
        case Fields(first, second):
            return "fields", first, second
        case bool(x) | Choice(x) | Number(x) | Record(x):
            return "self", x
        case Text(n):
            return "length", n
        case int(real=x, imag=0):
            return "int", x
        case float(x) | str(x) | bytes(x) | bytearray(x) | set(x) | frozenset(x) | list(x) | dict(x) | tuple(x):
            return type(x), x
        case ByMeta(x):
            return "by meta", x
        case Lazy(here, gone):
            return "lazy", here, gone
    try:
        match subject:
            case ByFailing(x) | Broken(x=x) | complex(x):
                return "never", x
    except Exception as error:
        return type(error), str(error)
    return "nothing"


@program((1,), ("int",), (None,))
def patterns_that_are_no_classes(subject):
    out = []
    for kind in (len, int | str, 5, list[int]):
        try:
            match subject:
                case kind():
                    out.append("matched")
                case _:
                    out.append("not matched")
        except TypeError as error:
            out.append(str(error))
    return out


class Key:
    A, B, C = "a", "a", "c"


class GetsNothing(dict):
    def get(self, key, default=None):
        say("get", key)
        return default


@program(
    ({"a": 1},), ({},), ({"c": 3},), ({"a": 1, "c": 3},), (Record(a=1, c=4),), (GetsNothing(a=1),),
    (collections.OrderedDict(c=1, a=2),), (collections.defaultdict(int, a=2),), ([],),
)  # fmt: skip
def mapping_patterns(subject):
    out = []
    try:
        match subject:
            case {Key.C: c, "a": a, **rest}:
                out.append(("both", c, a, rest))
            case {Key.A: a}:
                out.append(("a", a))
            case {}:
                out.append("mapping")
    finally:
        out.append("left")
    try:
        match subject:
            case {Key.A: a, Key.B: b}:
                out.append(("twice", a, b))
            case {"a": _, "c": 4}:
                out.append("c is 4")
    except ValueError as error:
        out.append(str(error))
    return out
