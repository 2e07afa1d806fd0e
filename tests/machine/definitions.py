"""Programs whose functions, classes and modules are redefined between the calls."""

from __future__ import annotations

import builtins
import enum
import types
from dataclasses import dataclass

from machine.oracle import program, say


class Base:
    def hello(self):
        return "base"

    def __len__(self):
        return 2


class Middle(Base):
    pass


class Child(Middle):
    def hello(self):
        return "child", super().hello(), super(Middle, self).hello()

    @classmethod
    def make(cls):
        return cls.__name__, hasattr(super(), "make")


class Mixin:
    def hello(self):
        return "mixin", super().hello()


def middle(hello=None, bases=(Base,)):
    def call():
        Middle.__bases__ = bases
        if "hello" in vars(Middle):
            del Middle.hello
        if hello is not None:
            Middle.hello = hello
        return (Child(),)

    return call


@program(middle(), middle(lambda self: "middle"), middle(lambda self: 5), middle(None, (Mixin, Base)), middle())
def super_lookups(c):
    return c.hello(), c.make(), len(c), [k.__name__ for k in type(c).__mro__], isinstance(c, Mixin)


class Before:
    kind = "before"

    def __init__(self):
        self.v = 1


class After:
    kind = "after"

    def extra(self):
        return self.v + 1


@program(lambda: (Before(),))
def class_assignment(o):
    out = [o.kind, hasattr(o, "extra")]
    o.__class__ = After
    out += [o.kind, o.extra(), type(o) is After, isinstance(o, Before)]
    return out


def helper(x, y=1, *, z=2):
    return x, y, z


ORIGINAL = helper.__code__


def redefined(defaults=(1,), kwdefaults=None, code=ORIGINAL):
    def call():
        helper.__code__ = code
        helper.__defaults__ = defaults
        helper.__kwdefaults__ = {"z": 2} if kwdefaults is None else kwdefaults
        return (5,)

    return call


@program(
    redefined(), redefined((7,)), redefined(([],)), redefined((1,), {"z": 9}),
    redefined(code=(lambda x, y=1, *, z=2: x * 10).__code__), redefined((1, 2)), redefined(),
)  # fmt: skip
def function_states(x):
    try:
        return helper(x), helper(x, 3), helper(y=4, x=x), helper.__defaults__
    except TypeError as error:
        return str(error)


def shadowing(**names):
    def call():
        for name in ("len", "undefined_before"):
            globals().pop(name, None)
        globals().update(names)
        return ([1, 2],)

    return call


@program(
    shadowing(), shadowing(len=lambda x: "shadow"), shadowing(undefined_before=3), shadowing(undefined_before=None),
    shadowing(),
)  # fmt: skip
def builtins_and_globals(x):
    try:
        return len(x), undefined_before
    except NameError as error:
        return len(x), str(error), error.name


def patched_builtin(value):
    def call():
        if value is None:
            vars(builtins).pop("patched_name", None)
        else:
            builtins.patched_name = value
        return ()

    return call


@program(patched_builtin(1), patched_builtin("s"), patched_builtin(None), patched_builtin(1))
def new_builtin():
    try:
        return patched_name
    except NameError as error:
        return str(error)


module = types.ModuleType("module")


def with_module(**names):
    def call():
        vars(module).clear()
        vars(module).update(names, __name__="module")
        return (module,)

    return call


@program(
    with_module(a=1), with_module(a=2), with_module(b=1), with_module(__getattr__=lambda name: name * 2),
    with_module(a=lambda: 3),
)  # fmt: skip
def module_attributes(m):
    try:
        a = m.a
    except AttributeError as error:
        a = str(error)
    m.c = [a]
    return a() if callable(a) else a, hasattr(m, "b"), m.c


def closure_over(value):
    def read():
        return value

    def write(new):
        nonlocal value
        value = new

    return read, write


READ, WRITE = closure_over(0)


def written(value):
    def call():
        WRITE(value)
        return ()

    return call


@program(written(1), written(2), written("s"), written([1]), written(1))
def closure_states():
    before = READ()
    WRITE([before])
    return before, READ(), READ.__closure__[0].cell_contents is READ()


@dataclass
class Config:
    size: int = 1
    names: tuple = ()


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


@program(
    (Config(), Mode.FAST), (Config(2), Mode.SLOW), (Config(1, ("a",)), Mode.FAST), (Config(names=[1]), "fast"),
    (None, None),
)  # fmt: skip
def configurations(config, mode):
    if config is None:
        return "none"
    size = config.size * 2 if mode is Mode.FAST else config.size
    match mode:
        case Mode.FAST:
            kind = "fast"
        case Mode():
            kind = mode.value
        case _:
            kind = "other"
    config.size += 1
    return size, kind, [n for n in config.names], mode in (Mode.FAST, "fast"), config == Config(2)


class Property:
    def __init__(self, v):
        self._v = v


def property_state(value):
    def call():
        if value is None:
            if "v" in vars(Property):
                del Property.v
        else:
            Property.v = value
        p = Property(3)
        return (p,)

    return call


@program(
    property_state(property(lambda self: self._v)), property_state(property(lambda self: -self._v)),
    property_state(7), property_state(None), property_state(classmethod(lambda cls: cls.__name__)),
    property_state(staticmethod(lambda: "static")), property_state(lambda self: "method"),
    property_state(property(lambda self: self._v)),
)  # fmt: skip
def descriptor_states(p):
    try:
        v = p.v
    except AttributeError as error:
        v = str(error)
    try:
        p.v = 9
    except AttributeError as error:
        say(str(error))
    return v() if callable(v) else v, vars(p)


@program()
def names_that_modules_lack():
    out = []
    for module in ("math", "xml"):
        try:
            if module == "math":
                from math import nonexistent  # noqa: F401
            else:
                from xml import dom, nothing  # noqa: F401
        except ImportError as error:
            out.append((str(error), error.name))
    return out
