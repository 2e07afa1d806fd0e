"""copy.copy and copy.deepcopy of containers, and of instances whose class leaves its copying to `object`.

Everything else is left to the interpreter as one call. Nothing is changed until all is known to be copied.
"""

from __future__ import annotations

import copy
import copyreg
import enum
import types
from collections import OrderedDict
from typing import Any

from ..reasons import Break
from ..torch_types import device_types
from ..values import DELETED, Const, DictObj, Func, Host, Known, ListObj, Obj, SetObj, TupleObj, Value
from .arguments import is_installed
from .registry import rule

#: types whose objects are their own copies
ATOMIC = (type, types.FunctionType, types.BuiltinFunctionType, types.CodeType, enum.Enum, range, property)
#: methods by which a class takes part in its copying
HOOKS = ("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs_ex__",
         "__getnewargs__", "__new__")  # fmt: skip


@rule(copy.copy)
def copy_call(m: Any, x: Value) -> Value:
    return shallow(m, x, lambda item: item)


@rule(copy.deepcopy)
def deepcopy_call(m: Any, x: Value, memo: Value | None = None) -> Value:
    if memo is not None and not m.is_none(memo):
        raise Break("construct-unknown", "deepcopy with a memo")
    made: dict[int, Value] = {}
    started: set[int] = set()

    def deep(item: Value) -> Value:
        if id(item) not in made:
            if id(item) in started:
                raise Break("construct-unknown", "deepcopy of an object that contains itself")
            started.add(id(item))
            made[id(item)] = shallow(m, item, deep)
        return made[id(item)]

    return deep(x)


def shallow(m: Any, x: Value, item: Any) -> Value:
    """A copy whose contents are those of `x` through `item`."""
    if type(x) in (Const, Host, Func) or is_atomic(x):
        return x
    if type(x) is TupleObj and x.cls is tuple:
        items = [item(value) for value in x.items]
        return x if all(new is old for new, old in zip(items, x.items, strict=True)) else TupleObj(items)
    if type(x) is ListObj and x.cls is list:
        return ListObj([item(value) for value in x.items])
    if type(x) is SetObj and x.cls is set:
        raise Break("construct-unknown", "a copy of a set")
    if type(x) is DictObj and x.cls in (dict, OrderedDict):
        if x.cls is OrderedDict and m.d_len(m.namespace_of(x)):
            raise Break("construct-unknown", "a copy of an OrderedDict with attributes")
        made = DictObj(x.cls)
        for key, value in m.d_items(x):
            made.items[m.key_of(key)] = (item(key), item(value))
        return made
    if type(x) is Obj and copied_by_object(m, x.cls):
        return instance(m, x, item)
    raise Break("construct-unknown", f"a copy of {x.cls.__name__}")


def is_atomic(x: Value) -> bool:
    """Whether an object is its own copy."""
    return type(x) is Known and (isinstance(x.obj, ATOMIC) or type(x.obj) in device_types())


def copied_by_object(m: Any, cls: type) -> bool:
    """Whether `object` alone decides how instances are copied: an empty instance that gets the same `__dict__`."""
    if cls in copy._deepcopy_dispatch or cls in copyreg.dispatch_table:
        return False
    if any("__slots__" in vars(base) for base in cls.__mro__[:-1]):
        return False
    for name in ("__getattribute__", "__getattr__"):
        method = m.lookup_type(cls, name)
        # A library's own attribute lookup is trusted to leave names like __dict__ alone.
        if type(method) is types.FunctionType and not is_installed(method):
            return False
    return all(m.lookup_type(cls, name) is m.lookup_type(object, name) for name in HOOKS)


def instance(m: Any, x: Obj, item: Any) -> Value:
    """A copy of an ordinary instance."""
    made = Obj(x.cls)
    if x.obj is not None or x.namespace is not None:
        for key, value in m.d_items(m.namespace_of(x)):
            made.attrs[m.constant_of(key)] = item(value)
    else:
        made.attrs = {name: item(value) for name, value in x.attrs.items() if value is not DELETED}
    return made
