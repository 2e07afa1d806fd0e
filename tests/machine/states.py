"""Programs whose calls differ in what an entry assumed: types, aliases, attributes, classes, globals, handlers."""

from __future__ import annotations

import sys
import types

from machine.oracle import program, say


class Point:
    label = "class"

    def __repr__(self):
        return f"Point({self.x!r}, {self.y!r})"

    def __init__(self, x, y=0):
        self.x, self.y = x, y

    def norm(self):
        return abs(self.x) + abs(self.y)

    def __eq__(self, other):
        return type(other) is Point and (self.x, self.y) == (other.x, other.y)

    def __hash__(self):
        return hash((self.x, self.y))


class Other:
    def __init__(self, x):
        self.x = x

    def norm(self):
        return ("other", self.x)


def same(make):
    def call():
        made = make()
        return made, made

    return call


@program(
    lambda: ([1], [2]), same(lambda: [1]), lambda: ([1, 2], [1]), lambda: ((1,), [1]), lambda: ([[1]], [1]),
    same(lambda: [[]]),
)  # fmt: skip
def two_lists(a, b):
    try:
        a.append(3)
        b.append(4)
        a[0] = b[-1]
    except AttributeError as error:
        return str(error)
    return a == b, a is b, a + b, len(a)


@program(
    lambda: (Point(1), Point(2)), same(lambda: Point(3)), lambda: (Point(1), Other(1)),
    lambda: (Point(-1.5), Point("s")), lambda: (Other([1]), Point(0)),
)  # fmt: skip
def two_objects(a, b):
    a.x = b.x
    b.seen = a
    try:
        return a == b, a is b, a.norm(), b.norm(), {a: 1}.get(b), getattr(b, "label", None), vars(a) is vars(b)
    except TypeError as error:
        return str(error)


def shadowed(**more):
    def call():
        p = Point(1, 2)
        vars(p).update(more)
        return (p,)

    return call


@program(
    shadowed(), shadowed(label="own"), shadowed(norm=len), shadowed(z=1), shadowed(label=None), lambda: (Other(2),),
)
def instance_attributes(p):
    out = [getattr(p, "label", "none"), hasattr(p, "z")]
    try:
        out.append(p.norm())
    except TypeError as error:
        out.append(str(error))
    p.z = out
    return out


@program(
    ({"a": 1},), ({"a": 1, "b": 2},), ({"b": 2, "a": 1},), ({},), ({"a": None},), ({"a": [1]},), ({1: 1},),
    ({"a": 1.0},), ({"a": True},),
)  # fmt: skip
def dict_states(d):
    out = [d.get("a"), "b" in d, len(d), list(d)]
    d["new"] = d.pop("a", "none")
    if "b" in d:
        del d["b"]
    d["b"] = 0
    return out, d


@program(
    (1,), (2,), (1.0,), (True,), ("1",), (None,), ((1,),), ([1],), (-0.0,), (0.0,), (float("nan"),), (2**40,),
    (b"1",),
)  # fmt: skip
def argument_types(x):
    try:
        y = x + x
    except TypeError as error:
        y = str(error)
    return y, type(x).__name__, x == 1, not x, isinstance(x, (int, str)), [x], x if x else "falsy"


@program(
    lambda: (lambda: 1,), lambda: (lambda: 2,), lambda: (len,), lambda: (Point,), lambda: (Point(1).norm,),
    lambda: ([1, 2].append,), lambda: (types.SimpleNamespace(a=1),),
)  # fmt: skip
def callable_kinds(f):
    for args in ((), ([1, 2],), (1, 2)):
        try:
            say(args, f(*args))
        except TypeError as error:
            say(str(error))
    return f


LEVEL = 0


def set_level(value):
    global LEVEL
    LEVEL = value


def level(value, make=lambda: ()):
    def call():
        set_level(value)
        return make()

    return call


@program(level(1), level(2), level("s"), level(1), level(None))
def global_states():
    global LEVEL
    before = LEVEL
    LEVEL = [before]
    inner = (lambda: LEVEL)()
    return before, inner is LEVEL, LEVEL


def patched(**methods):
    def call():
        for name in ("norm2", "label"):
            if name in vars(Point):
                delattr(Point, name)
        for name, value in methods.items():
            setattr(Point, name, value)
        return (Point(2),)

    return call


@program(
    patched(), patched(label="a"), patched(label="b"), patched(norm2=lambda self: self.x * 2),
    patched(norm2=property(lambda self: "property")), patched(),
)  # fmt: skip
def class_states(p):
    out = [getattr(p, "label", "none"), hasattr(Point, "norm2")]
    two = getattr(p, "norm2", None)
    out.append(two() if callable(two) else two)
    return out


@program((0,), (1,), (2,), (1,))
def called_in_handler(i):
    """The function's caller handles an exception, or this one does, while it is entered."""
    return handled_twice(i)


def handled_twice(i):
    out = [repr(sys.exc_info()[1])]
    try:
        if i:
            raise KeyError(i)
        out.append("no error")
    except KeyError as error:
        out += [repr(error.__context__), repr(sys.exc_info()[1])]
        say("handled")
    out.append(repr(sys.exc_info()[1]))
    if i == 2:
        raise ValueError(out)
    return out


def nested(kind):
    def call():
        inner = [kind]
        return inner, {"inner": inner, "again": [inner, inner]}

    return call


@program(
    nested(1), nested("a"), lambda: ([1], {"inner": [1], "again": [[1], [1]]}),
    lambda: ([], {"inner": [], "again": [[]]}),
)  # fmt: skip
def nested_aliases(inner, outer):
    inner.append("x")
    outer["inner"].append("y")
    for item in outer["again"]:
        item.append("z")
    outer["again"].append(inner)
    return [item is inner for item in outer["again"]], outer["inner"] is inner


@program((iter([1, 2, 3]),), (iter((1,)),), (iter({}),), ([5],), ("ab",), ({1: 2},), (range(2),))
def iterables(items=()):
    first = next(iter(items), "none")
    return first, list(items), sum(1 for _ in items)
