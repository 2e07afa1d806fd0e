"""Programs over classes and their instances."""

import abc
import collections
import copy
import dataclasses
import enum
import functools
import inspect
import typing
import weakref

import torch
from library.programs import BREAKS, PROGRAMS, attempt, program

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
        x, d.name, d.shout, len(d), bool(d), d == Dog("bello"), d != Dog("q"), hash(d) == hash("bello"),
        getattr(d, "size"), getattr(d, "nope", "default"), hasattr(d, "nope"), hasattr(d, "dyn_x"), d.dyn_abc,
        getattr(d, "dyn_q", None), vars(Dog("v")), isinstance(d, Animal), isinstance(d, (int, Dog)),
        isinstance(3, int | str), isinstance(True, int), issubclass(Dog, Animal),
        isinstance([], collections.abc.Sequence), isinstance({}, collections.abc.Sequence),
        isinstance(d, collections.abc.Sized), isinstance("magic", Magic), isinstance(d, Magic), type(d) is Dog,
        type(d).__name__, type(3) is int, callable(len), callable(3), callable(Dog), callable(d), s.a,
        hasattr(s, "b"), attempt(getattr, s, "b"), attempt(getattr, d, "missing"), attempt(Animal), Odd(4),
        type(Odd("s")) is Odd, Magic().extra, d.legs, Dog.legs, super(Dog, d).legs, isinstance(x, type(x)),
        d in [1, Dog("bello")], [Dog("a"), Dog("b")].index(Dog("b")), [Dog("a"), 1].count(Dog("a")),
        id(Dog) == id(Dog), hash(Dog) == hash(Dog),
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
        x, color is Color.RED, color.name, color.value, color.low, Color("b") is Color.BLUE, Color["RED"].value,
        level > 2, level + 1, color in (Color.RED,), {Color.RED: 1}.get(color), isinstance(level, int),
        color == Color.RED, f"{level:d}", int(level),
    )  # fmt: skip


@program()
def dataclasses_(x):
    c = Config(3, ratio=0.25)
    c.names.append("n")
    return (
        x * c.size, c.names, c.ratio, Config(1) == Config(1), Version(1, 2) < Version(1, 3),
        hash(Version(1)) == hash(Version(1, 0)), attempt(setattr, Version(1), "major", 2),
        [f.name for f in dataclasses.fields(c)], dataclasses.replace(Version(1), minor=5).minor,
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
    twice = d.twice(n), Derived.twice(n)
    return x * d.v, d.who(), method(), Base.who(d), twice, method.__self__ is d, Base.__init__(d, 4), d.v


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


# -- what libraries do -------------------------------------------------------------------------------------------------


def chunked(a, /, b, *rest, c: int = 3, **more) -> int:
    return c


class Chunks:
    def __repr__(self):
        return "Chunks()"

    def forward(self, hidden, mask=None):
        return hidden


@functools.wraps(chunked)
def wrapper(*args, **kwargs):
    return chunked(*args, **kwargs)


@program((Chunks().forward,), (chunked,), (wrapper,), (lambda q: q,))
def signatures(x, function):
    parameters = inspect.signature(function).parameters
    names = [(name, parameter.kind.name, parameter.default) for name, parameter in parameters.items()]
    return x, len(parameters), list(parameters), names, "c" in parameters, parameters.get("zz")


KINDS = frozenset({list, tuple, Chunks})
WATCHED = Chunks()
REFERENCE = weakref.ref(WATCHED)


@program()
def types_in_sets(x):
    return x, list in KINDS, type(x) in KINDS, Chunks in KINDS, len(KINDS), REFERENCE() is WATCHED


@program((list[int], int), (dict[str, int], str))
def unions(x, a, b):
    union = a | None
    questions = typing.get_args(union), typing.get_origin(a), typing.get_args(3)
    return x, str(union), isinstance(3, b | None), isinstance(None, b | None), str(a), questions


class Settings:
    def __init__(self):
        self.sizes = [1, {"deep": (2, [3])}]
        self.dtype = torch.float32
        self.kind = Color.RED
        self.shared = self.sizes


SETTINGS = Settings()


@program()
def copies(x):
    c = copy.deepcopy(SETTINGS)
    c.sizes[1]["deep"][1].append(4)
    s = copy.copy(SETTINGS)
    s.extra = 1
    made = [1, (2, [3])]
    made.append(copy.deepcopy(made))
    return (
        x, c.sizes, c.shared is c.sizes, c.sizes is SETTINGS.sizes, SETTINGS.sizes, s.sizes is SETTINGS.sizes, c.dtype,
        c.kind, hasattr(SETTINGS, "extra"), copy.copy({"a": [1]}), copy.deepcopy((1, "a")), made, type(c) is Settings,
    )  # fmt: skip
