"""Real objects become values here: by their type, with the guards that the value relies on from the start."""

from __future__ import annotations

import enum
import gc
import inspect
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..library.folding import CONST_TYPES
from ..library.registry import POLYFILLS, RULES
from ..reasons import Break
from ..sources import Source
from ..suspended import Suspended
from ..torch_api import OPERATOR_TYPES
from ..torch_api import Tensor as RealTensor
from ..torch_types import device_types
from ..values import (
    FALSE,
    NONE,
    TRUE,
    Bound,
    Cell,
    Const,
    DictObj,
    ExcObj,
    Func,
    GenObj,
    Host,
    Known,
    ListObj,
    Obj,
    Opaque,
    SetObj,
    SliceObj,
    Tensor,
    TupleObj,
    Value,
)

FUNCTION = types.FunctionType
CELL = types.CellType
#: descriptors of C whose `__get__` gives a bound C method
C_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)
HEAP_TYPE = 1 << 9
IMMUTABLE_TYPE = 1 << 8

#: types whose objects are told apart by identity: nothing about them changes that isn't asked for separately
BY_IDENTITY = (
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.CodeType,
)


def is_heap(cls: type) -> bool:
    """Whether `cls` was made by a class statement (or is otherwise mutable)."""
    return not cls.__flags__ & IMMUTABLE_TYPE


def base_layout(cls: type) -> type:
    """The nearest base written in C: it decides what an instance holds besides attributes."""
    for base in cls.__mro__:
        if not base.__flags__ & HEAP_TYPE or base.__flags__ & IMMUTABLE_TYPE:
            return base
    return object


class Wrapping:
    """Making values, and the bookkeeping of what was read and changed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[int, Value] = {}  # id(real object) -> its one value
        self.keep: list[Any] = []  # so that these ids stay valid
        self.touched: dict[int, Obj] = {}  # changed values, in order of their first change
        self.advanced: dict[Any, Value] = {}  # iterators of the interpreter from which the entry takes an item
        self.generators: list[GenObj] = []  # those made here
        self.relations: list[tuple] = []  # ("same", source, source), ("rel", text, operands, outcome)
        self.inside: set[tuple[int, ...]] = set()  # the containers that are being looked into
        self.steps_host: list[tuple] = []  # host calls of the entry, in order

    # -- constants -----------------------------------------------------------------------------------------------------

    def const(self, obj: Any) -> Value:
        """The value of an object that needs no source: an immutable literal, or an object used by identity."""
        if obj is None:
            return NONE
        if obj is True:
            return TRUE
        if obj is False:
            return FALSE
        cls = type(obj)
        if cls in CONST_TYPES:
            return Const(obj)
        if cls is tuple:
            return TupleObj([self.const(o) for o in obj])
        if cls is frozenset or cls is slice:
            return Const(obj)
        if cls in BY_IDENTITY or isinstance(obj, type) or cls is FUNCTION:
            return self.identified(obj)
        return Known(obj)

    def identified(self, obj: Any) -> Known:
        """An object used by identity. A program may assign the class of modules, and of classes if it made both."""
        source, cls = self.root.child("const", obj), type(obj)
        if issubclass(cls, types.ModuleType) or issubclass(cls, type) and is_heap(cls):
            source.check("type", cls)
        return Known(obj, source)

    def known(self, obj: Any) -> Value:
        """A real object found through a guarded class or module: its facts are read under a constant root."""
        return self.wrap(obj, self.root.child("const", obj))

    def is_none(self, value: Value) -> bool:
        """Whether `value` is None."""
        return type(value) is Const and value.value is None

    def is_constant(self, value: Value) -> bool:
        """Whether the whole value is known and can be rebuilt here."""
        try:
            self.constant_of(value)
        except Break:
            return False
        return True

    def constant_of(self, value: Value) -> Any:
        """The real object of a wholly constant value; `Break` when it isn't."""
        kind = type(value)
        if kind is Const:
            return value.value
        if kind is Known:
            self.pin(value)
            return value.obj
        if kind is TupleObj and not value.attrs:
            items = [self.constant_of(item) for item in value.items]
            if value.cls is tuple:
                return tuple(items)
            if value.obj is not None:
                return value.obj
            return tuple.__new__(value.cls, items) if base_layout(value.cls) is tuple else value.cls(items)
        if kind is SliceObj:
            return slice(*(self.constant_of(item) for item in value.items))
        if kind in (ListObj, DictObj):
            with self.entered(value):
                if value.cls is list:
                    return [self.constant_of(item) for item in value.items]
                if value.cls is dict:
                    return {self.constant_of(k): self.constant_of(v) for k, v in self.d_items(value)}
        if kind is SetObj and value.cls in (set, frozenset):
            return value.cls(self.constant_of(v) for v in value.items.values())
        if kind is Host:
            return self.specialise(value).value
        raise Break("not-constant", f"{value.cls.__name__}")

    @contextmanager
    def entered(self, *values: Value) -> Iterator[None]:
        """Look into containers, once at a time: one that contains itself has no end."""
        mark = tuple(map(id, values))
        if mark in self.inside:
            raise Break("not-constant", "a container that contains itself")
        self.inside.add(mark)
        try:
            yield
        finally:
            self.inside.discard(mark)

    # -- objects from outside ------------------------------------------------------------------------------------------

    def wrap(self, obj: Any, source: Source) -> Value:
        """The value of a real object found at `source`; one value per object, however it is reached."""
        cls = type(obj)
        if cls in CONST_TYPES:
            return self.wrap_constant(obj, cls, source)
        known = self.seen.get(id(obj))
        if known is not None:
            if known.source is not source and known.source is not None:
                self.same_object(known, obj, source)
            return known
        value = self.make_value(obj, cls, source)
        self.seen[id(obj)] = value
        self.keep.append(obj)
        return value

    def same_object(self, known: Value, obj: Any, source: Source) -> None:
        """Guard that a second way to a known object still leads to it."""
        if type(known) is Known and ("is" in {name for name, _ in source.checks.values()}):
            return
        if type(known) is Known and (isinstance(obj, BY_IDENTITY) or known.source.accessor == "const"):
            source.check("is", obj)
            return
        self.relations.append(("same", known.source, source))

    def wrap_constant(self, obj: Any, cls: type, source: Source) -> Value:
        """A constant, guarded by its value; a scalar that is known to vary stays open."""
        if (cls is int or cls is float) and self.varies(obj, source):
            known = self.seen.get(id(source))
            if known is None:
                source.check("type", cls)
                known = self.seen[id(source)] = Host(obj, source)
            return known
        if obj is None or obj is True or obj is False or obj is Ellipsis:
            source.check("is", obj)
        else:
            source.check("eq", obj)
        return Const(obj, source)

    def varies(self, obj: Any, source: Source) -> bool:
        """Whether the scalar at `source` should stay unspecialised."""
        if self.open_scalars and (source.accessor == "arg" or source.accessor == "call"):
            return True
        if self.sizes_vary and source.accessor == "arg" and type(obj) is int and obj not in (0, 1):
            return True
        return bool(self.dynamic) and source.steps in self.dynamic

    def make_value(self, obj: Any, cls: type, source: Source) -> Value:
        """The value of an object that is met for the first time."""
        maker = MAKERS.get(cls)
        if maker is not None:
            return maker(self, obj, source)
        if issubclass(cls, (type, types.ModuleType, *OPERATOR_TYPES)):  # isinstance would ask the object
            return by_identity(self, obj, source)
        if issubclass(cls, RealTensor):
            try:
                return self.graph.tensor_input(obj, source)
            except Break as cause:
                source.check("type", cls)
                return Opaque(obj, source, (cause.code, cause.detail))
        source.check("type", cls)
        if issubclass(cls, enum.Enum) or cls in device_types():
            source.check("is" if issubclass(cls, enum.Enum) or cls is not device_types()[0] else "eq", obj)
            return Known(obj, source)
        layout = base_layout(cls)
        if layout is not object:
            return self.make_subclass(obj, cls, layout, source)
        if not is_heap(cls):
            return Known(obj, source)
        return Obj(cls, obj, source)

    def make_subclass(self, obj: Any, cls: type, layout: type, source: Source) -> Value:
        """An instance of a class derived from a builtin one."""
        if issubclass(layout, BaseException):
            return ExcObj(cls, lambda: self.exception_args(obj, source), obj, source)
        if layout is tuple:
            source.check("len", tuple.__len__(obj))
            items = [self.wrap(item, source.child("item", i)) for i, item in enumerate(tuple.__iter__(obj))]
            return TupleObj(items, cls, obj, source)
        if layout is list:
            return lazy_list(self, obj, cls, source)
        if issubclass(layout, dict):
            return DictObj(cls, obj, source)
        if layout in CONST_TYPES:
            if not self.is_plain(cls):
                return Opaque(obj, source, ("operator-unknown", cls.__name__))
            source.check("is", obj)  # two that are equal may have other attributes
            return Const(obj, source)
        return Known(obj, source)

    def exception_args(self, obj: BaseException, source: Source) -> list[Value]:
        """The arguments of a real exception."""
        args = source.child("slot", "args")
        args.check("type", tuple)
        args.check("len", len(obj.args))
        return [self.wrap(item, args.child("item", i)) for i, item in enumerate(obj.args)]

    # -- bookkeeping ---------------------------------------------------------------------------------------------------

    def pin(self, value: Value) -> None:
        """Rely on the identity of a real object."""
        source = value.source
        if source is not None and source.accessor != "const":
            source.check("is", value.obj)  # type: ignore[attr-defined]

    def touch(self, value: Value) -> None:
        """Note that `value` is about to change."""
        if not value.changed:  # type: ignore[attr-defined]
            value.changed = True  # type: ignore[attr-defined]
            self.touched[id(value)] = value  # type: ignore[assignment]

    def class_source(self, cls: type) -> Source:
        """Where facts about a class are guarded."""
        return self.root.child("const", cls)


def by_identity(m: Any, obj: Any, source: Source) -> Value:
    """Functions in C, types, modules, code."""
    if source.accessor != "const":
        source.check("is", obj)
    return m.identified(obj)


def function(m: Any, obj: Any, source: Source) -> Value:
    """A Python function: by identity where it was found in a stable place, by its code where it is passed about."""
    if source.accessor == "const":
        return Known(obj, source)
    if source.rooted:
        source.check("is", obj)
        return Known(obj, m.root.child("const", obj))
    source.check("func_code", obj.__code__)
    return Known(obj, source)


def list_value(m: Any, obj: list, source: Source) -> Value:
    """A list, whose items are read when they are asked for."""
    source.check("type", list)
    return lazy_list(m, obj, list, source)


def lazy_list(m: Any, obj: list, cls: type, source: Source) -> ListObj:
    """The value of a list or of an instance of a subclass."""

    def items() -> list[Value]:
        source.check("len", list.__len__(obj))
        return [m.wrap(item, source.child("item", i)) for i, item in enumerate(list.__iter__(obj))]

    value = ListObj([], cls, obj, source)
    value.loader = items
    return value


def tuple_value(m: Any, obj: tuple, source: Source) -> Value:
    """A tuple with all its items."""
    source.check("type", tuple)
    source.check("len", len(obj))
    return TupleObj([m.wrap(item, source.child("item", i)) for i, item in enumerate(obj)], tuple, obj, source)


def slice_value(m: Any, obj: slice, source: Source) -> Value:
    """A slice, by its bounds."""
    source.check("type", slice)
    bounds = tuple(m.wrap(getattr(obj, name), source.child("slot", name)) for name in ("start", "stop", "step"))
    return Const(obj) if all(type(bound) is Const for bound in bounds) else SliceObj(bounds)


def dict_value(m: Any, obj: dict, source: Source) -> Value:
    """A dict; nothing of it is assumed until it is asked for."""
    if source.accessor != "const":
        source.check("type", dict)
    return DictObj(dict, obj, source)


def set_value(m: Any, obj: Any, source: Source) -> Value:
    """A set or frozenset: guarded as a whole, since its items have no places."""
    source.check("type", type(obj))
    if any(type(item) not in CONST_TYPES for item in obj):
        return Known(obj, source)
    contents = frozenset(obj)
    node = source.child("call", frozenset)
    node.check("eq", contents)
    value = SetObj(type(obj), obj, source)
    value.items = {item: m.const(item) for item in obj}
    return value


def method_value(m: Any, obj: types.MethodType, source: Source) -> Value:
    """A bound method: its function and its receiver."""
    if id(obj) in RULES:
        source.check("is", obj)
        return Known(obj, source)
    source.check("type", types.MethodType)
    func = m.wrap(obj.__func__, source.child("method", "func"))
    return Bound(func, m.wrap(obj.__self__, source.child("method", "self")), types.MethodType, obj, source)


def builtin_value(m: Any, obj: Any, source: Source) -> Value:
    """A function of C; bound to an object that isn't a module or type, it is that type's descriptor and the object."""
    receiver = obj.__self__
    if receiver is None or isinstance(receiver, (types.ModuleType, type)):
        return by_identity(m, obj, source)
    if not isinstance(inspect.getattr_static(type(receiver), obj.__name__, None), types.MethodDescriptorType):
        source.check("is", obj)  # that says all: its name and what it is bound to never change
        return Known(obj, source)
    descriptor = m.lookup_type(type(receiver), obj.__name__)
    source.check("type", type(obj))
    source.check("true", SameMethod(obj.__name__))
    return Bound(m.const(descriptor), m.wrap(receiver, source.child("slot", "__self__")), type(obj), obj, source)


class SameMethod:
    """Guard predicate: a C method of that name."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, method: Any) -> bool:
        return method.__name__ == self.name

    def __repr__(self) -> str:
        return f"is a method named {self.name}"


def cell_value(m: Any, obj: Any, source: Source) -> Value:
    """A closure cell; its contents are read when asked for."""
    source.check("type", CELL)
    return Cell(None, obj, source)


def proxy_value(m: Any, obj: Any, source: Source) -> Value:
    """A read-only view of a mapping: an object of ours around the mapping below."""
    source.check("type", types.MappingProxyType)
    value = Obj(POLYFILLS[id(types.MappingProxyType)], obj, source)
    value.attrs["mapping"] = m.wrap(behind_proxy(obj), source.child("call", behind_proxy))
    return value


def behind_proxy(proxy: Any) -> Any:
    """The mapping that a mappingproxy shows: nothing but the garbage collector tells."""
    return gc.get_referents(proxy)[0]


def open_value(m: Any, obj: Any, source: Source) -> Value:
    """Something that we don't look into."""
    source.check("type", type(obj))
    return Known(obj, source)


def suspended_value(m: Any, obj: Suspended, source: Source) -> Value:
    """A generator left by an earlier entry."""
    return m.suspended_value(obj, source)


MAKERS: dict[type, Any] = {
    Suspended: suspended_value,
    list: list_value,
    tuple: tuple_value,
    dict: dict_value,
    slice: slice_value,
    set: set_value,
    frozenset: set_value,
    FUNCTION: function,
    CELL: cell_value,
    types.MethodType: method_value,
    types.BuiltinFunctionType: builtin_value,
    types.ModuleType: by_identity,
    types.MethodDescriptorType: by_identity,
    types.WrapperDescriptorType: by_identity,
    types.CodeType: by_identity,
    type: by_identity,
    property: by_identity,
    staticmethod: by_identity,
    classmethod: by_identity,
    types.MappingProxyType: proxy_value,
    types.GeneratorType: open_value,
}

__all__ = ["FUNCTION", "Func", "Tensor", "Wrapping", "base_layout", "is_heap"]
