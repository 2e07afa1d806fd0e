"""Which callables are pure: with constant arguments they can be called while capturing.

The principle comes first: whatever C defines on an immutable built-in type depends on its arguments alone. Functions of
modules such as `math` are added as a whole; only single exceptions are named.
"""

from __future__ import annotations

import cmath
import math
import re
import struct
import types
from typing import Any

from .registry import PURE

#: types whose objects are known by value
CONST_TYPES: set[type] = {
    type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis), type(NotImplemented),
}  # fmt: skip

#: immutable types written in C whose methods are pure
IMMUTABLE = {*CONST_TYPES, slice, tuple, frozenset, re.Pattern, re.Match}

#: classes whose construction is pure
PURE_CLASSES = {bool, int, float, complex, bytes, range}

#: methods that every type has and that look at more than the value, or that give an iterator
IMPURE_METHODS = frozenset({
    "__init__", "__new__", "__init_subclass__", "__subclasshook__", "__getattribute__", "__setattr__", "__delattr__",
    "__dir__", "__reduce__", "__reduce_ex__", "__sizeof__", "__iter__", "__reversed__", "__class__",
    "__class_getitem__", "__copy__", "__deepcopy__", "finditer", "scanner",
})  # fmt: skip

#: methods that turn any argument into text or compare with it, which may run Python code: rules take care of them
OPEN_METHODS: set[Any] = {
    str.format, str.format_map, str.__mod__, str.__rmod__, str.join, bytes.join, bytes.__mod__, bytes.__rmod__,
    re.Pattern.sub, re.Pattern.subn,
    *(vars(tuple)[name] for name in vars(tuple) if callable(vars(tuple)[name])),
    *(vars(frozenset)[name] for name in vars(frozenset) if callable(vars(frozenset)[name])),
    *(vars(slice)[name] for name in vars(slice) if callable(vars(slice)[name])),
}  # fmt: skip
_OPEN_IDS = {id(method) for method in OPEN_METHODS}

#: modules of C functions that compute; some of a module's functions come from others
PURE_MODULES = {
    function.__module__
    for module in (math, cmath)
    for function in vars(module).values()
    if type(function) is types.BuiltinFunctionType
}

#: built-in functions that ask nothing but the type of their argument
PURE_FUNCTIONS = {
    id(function)
    for function in (abs, bin, chr, divmod, hex, oct, ord, pow, round, struct.calcsize, struct.pack, struct.unpack)
}

#: special methods of numbers and strings: what C calls for operators, functions and conversions
SPECIAL_METHODS = {
    name
    for cls in (int, float, complex, str, bytes)
    for name, method in vars(cls).items()
    if type(method) is types.WrapperDescriptorType or name in ("__format__", "__round__", "__complex__", "__bytes__")
} - {"__getattribute__"}
#: those that neither give text nor a hash
NUMERIC_METHODS = SPECIAL_METHODS - {"__repr__", "__str__", "__format__", "__hash__"}

METHOD_TYPES = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)


def is_pure(function: Any) -> bool:
    """Whether `function` may be called while capturing when all its arguments are constants."""
    if id(function) in PURE or id(function) in PURE_FUNCTIONS:
        return True
    kind = type(function)
    if kind in METHOD_TYPES:
        return (
            function.__objclass__ in IMMUTABLE
            and function.__name__ not in IMPURE_METHODS
            and id(function) not in _OPEN_IDS
        )
    if kind is types.BuiltinFunctionType:
        owner = function.__self__
        if isinstance(owner, type):
            return function.__name__ != "__new__" and (owner in PURE_CLASSES or owner is str)
        return function.__module__ in PURE_MODULES
    return kind is type and function in PURE_CLASSES


def is_literal(obj: Any) -> bool:
    """Whether a real object consists of plain constants: formatting, comparing or hashing it runs no Python code."""
    kind = type(obj)
    if kind in CONST_TYPES:
        return True
    if kind in (tuple, list, set, frozenset):
        return all(is_literal(item) for item in obj)
    if kind is dict:
        return all(is_literal(key) and is_literal(value) for key, value in obj.items())
    return kind is slice and is_literal((obj.start, obj.stop, obj.step))
