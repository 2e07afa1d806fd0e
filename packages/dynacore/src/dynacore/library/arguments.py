"""What rules share: reading arguments, raising what C code raises, equality of items."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..reasons import Break
from ..values import PUSHED, Bound, Const, Func, Host, ItemsIter, Known, SeqIter, Tensor, TupleObj, Value
from .polyfills import constructors
from .registry import STANDS_FOR


def real_class(v: Value) -> type:
    """The class that the program sees."""
    return STANDS_FOR.get(v.cls, v.cls)


def refuse(m: Any, function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Raise what `function` raises for these real arguments: stand-ins that it refuses as it would the program's."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        return m.throw_real(error)
    raise Break("call-arguments", getattr(function, "__qualname__", repr(function)))


def as_index(m: Any, v: Value) -> int:
    """An argument that C code takes by `__index__`."""
    if type(v) is Host:
        v = m.specialise(v)
    if type(v) is not Const:
        raise Break("tensor-to-python" if type(v) is Tensor else "call-arguments", f"{v.cls.__name__} as an index")
    if not hasattr(v.value, "__index__"):
        return m.throw(TypeError, f"'{m.name_of(v.cls)}' object cannot be interpreted as an integer")
    return v.value.__index__() + 0


def attribute_name(m: Any, v: Value) -> str:
    """The name given to getattr and its like."""
    name = m.constant_of(v)
    if not isinstance(name, str):
        raise Break("call-arguments", "a name that isn't a string")
    return name if type(name) is str else str.__str__(name)


def items_of(m: Any, v: Value) -> list[Value] | None:
    """All items of `v`, or None when iterating over it runs Python code."""
    try:
        return m.iterate(v)
    except Break as cause:
        if cause.code != "iterate-unknown":
            raise
        return None


def asks(m: Any, v: Value) -> bool:
    """Whether Python code tells C how many items there may be."""
    if type(v) is Tensor or v.cls in STANDS_FOR:
        return False
    return any(type(m.special_method(v.cls, name)) is FunctionType for name in ("__len__", "__length_hint__"))


def listed(m: Any, v: Value) -> list[Value] | None:
    """All items of `v` as list() takes them, or None when that runs Python code."""
    return None if asks(m, v) else items_of(m, v)


tupled = listed if constructors.TUPLE_ASKS else items_of


def same(m: Any, a: Value, b: Value) -> bool | None:
    """Equality as containers take it, identity first; None when Python code or a tensor decides."""
    if a is b or (type(a) is Const and type(b) is Const and a.value is b.value):
        return True
    return m.equal(m.settle(a), m.settle(b))


def find(m: Any, items: Any, wanted: Value, start: int = 0, stop: int | None = None) -> int | None:
    """The index of the first item equal to `wanted`, -1 when there is none, None when Python code decides."""
    for index in range(start, len(items) if stop is None else stop):
        equal = same(m, items[index], wanted)
        if equal is None:
            return None
        if equal:
            return index
    return -1


#: where installed libraries live
INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def is_installed(function: Any) -> bool:
    """Whether it is a Python function of an installed library, not of the program itself."""
    return type(function) is FunctionType and function.__code__.co_filename.startswith(INSTALLED)


def callable_class(cls: type) -> bool:
    """Whether instances can be called."""
    return any("__call__" in vars(base) for base in cls.__mro__)


def is_callable(v: Value) -> bool:
    """callable()"""
    if isinstance(v, (Func, Bound)):
        return True
    return callable(v.obj) if isinstance(v, Known) else callable_class(v.cls)


def contains(m: Any, items: Any, wanted: Value) -> Any:
    """Whether an item equals `wanted`, as a bool value."""
    index = find(m, items, wanted)
    if index is None:
        return m.push_python(constructors.contains, [TupleObj(items), wanted], {})
    return m.const(index >= 0)


def as_bool(m: Any, result: Any) -> Any:
    """The value of a Python bool; PUSHED stays (the pushed frame gives a bool)."""
    return result if result is PUSHED else m.const(result)


def is_iterator(v: Value) -> bool:
    """Whether walking over `v` uses it up."""
    return isinstance(v, (SeqIter, ItemsIter))
