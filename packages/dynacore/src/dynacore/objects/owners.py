"""Attributes read from classes, modules, super objects, bound methods and tensors, each by its own algorithm."""

from __future__ import annotations

import types
from typing import Any

from ..library.arguments import refuse
from ..reasons import Break
from ..values import DELETED, Bound, Const, DictObj, Known, Super, Tensor, Value
from .attributes import C_FIELDS, C_METHODS, METHOD, MISSING
from .wrapping import FUNCTION, is_heap

#: what a module's dict holds for a lazy import; None where there are none
LAZY_IMPORT = getattr(types, "LazyImportType", None)


class OwnerAttributes:
    """`type.__getattribute__`, `module.__getattribute__`, `super.__getattribute__` and a tensor's attributes."""

    def type_getattr(self, v: Known, name: str) -> Any:
        """`type.__getattribute__`, without the error."""
        cls = v.obj
        meta = type(cls)
        on_meta = self.lookup_type(meta, name)
        if on_meta is not MISSING and self.is_descriptor(on_meta) and self.is_data(on_meta):
            return self.type_field(on_meta, v, meta, name)
        found = self.lookup_type(cls, name)
        if found is not MISSING:
            return self.get_from_class(found, cls, name)
        if on_meta is not MISSING:
            if self.is_descriptor(on_meta):
                return self.get_descriptor(on_meta, v, meta, name)
            return self.class_value(meta, name, on_meta)
        return MISSING

    def type_field(self, found: Any, v: Known, meta: type, name: str) -> Value:
        """`__name__`, `__mro__`, `__dict__` … of a class."""
        if name in (
            "__name__",
            "__qualname__",
            "__module__",
            "__mro__",
            "__bases__",
            "__base__",
            "__flags__",
            "__doc__",
        ):
            real = found.__get__(v.obj, meta)
            if is_heap(v.obj) and name != "__flags__":
                return self.wrap(real, self.class_source(v.obj).child("slot", name))
            return self.const(real)
        if name == "__class__":
            return self.const(meta)
        if type(found) is property or type(type(found).__dict__.get("__get__")) is FUNCTION:
            return self.get_descriptor(found, v, meta, name)
        raise Break("attribute-unknown", f"{v.obj.__name__}.{name}")

    def get_from_class(self, found: Any, cls: type, name: str) -> Any:
        """What reading a class attribute through the class gives."""
        kind = type(found)
        if kind is FUNCTION:
            return self.const(found)
        if kind is classmethod:
            return self.bind_class(found.__func__, self.const(cls))
        if kind is staticmethod:
            return self.known(found.__func__)
        if kind is types.ClassMethodDescriptorType:
            return Bound(Known(found), self.const(cls), types.BuiltinMethodType)
        if kind in C_METHODS or kind in C_FIELDS or kind is property or kind is types.BuiltinFunctionType:
            return self.const(found) if kind is not property else Known(found, self.root.child("const", found))
        if not self.is_descriptor(found):
            return self.class_value(cls, name, found)
        getter = self.lookup_type(kind, "__get__")
        if type(getter) is FUNCTION:
            return self.call_real_function(getter, [self.known(found), self.const(None), self.const(cls)])
        raise Break("attribute-unknown", f"{cls.__name__}.{name}")

    def method_getattr(self, v: Bound, name: str) -> Value:
        """An attribute of a bound method: its own, then its function's."""
        if name == "__func__":
            return v.func
        if name == "__self__":
            return v.self
        if name == "__class__" or name.startswith("__") and name in METHOD.__dict__ and name not in ("__doc__",):
            raise Break("attribute-unknown", f"method.{name}")
        return self.getattr(v.func, name)

    def module_getattr(self, v: Known, name: str) -> Any:
        """An attribute of a module: from its dict, its class (lazy modules have their own) or a `__getattr__`."""
        namespace, cls = self.module_dict(v.obj), type(v.obj)
        on_class = self.lookup_type(cls, name)
        descriptor = on_class is not MISSING and self.is_descriptor(on_class)
        found = None if descriptor and self.is_data(on_class) else self.d_get_str(namespace, name)
        if found is not None:
            self.check_imported(found, name)
            return found
        if on_class is not MISSING:
            return self.get_descriptor(on_class, v, cls, name) if descriptor else self.class_value(cls, name, on_class)
        hook = self.d_get_str(namespace, "__getattr__")
        if hook is not None:
            return self.call(hook, [Const(name)], {})
        hook = self.lookup_type(type(v.obj), "__getattr__")
        if type(hook) is FUNCTION:
            return self.call_real_function(hook, [v, Const(name)])
        hook = self.lookup_type(cls, "__getattr__")
        if hook is not MISSING:
            return self.call_real_function(hook, [v, Const(name)])
        own = self.d_get_str(namespace, "__name__")
        called = "" if own is None else f" '{self.constant_of(own)}'"
        self.throw(AttributeError, f"module{called} has no attribute '{name}'", name=name, obj=v)

    def check_imported(self, found: Value, name: str) -> None:
        """The first read of a name that was imported lazily imports it, and replaces what stands for it."""
        if found.cls is LAZY_IMPORT:
            raise Break("import", name)

    def module_dict(self, module: Any) -> DictObj:
        """The namespace of a module."""
        return self.wrap(module.__dict__, self.root.child("const", module.__dict__))  # type: ignore[return-value]

    def super_getattr(self, v: Super, name: str) -> Any:
        """`super.__getattribute__`."""
        if name == "__class__":
            return self.const(super)
        mro = self.mro_of(v.kind)
        for base in mro[[one is v.start for one in mro].index(True) + 1 :]:
            nearest = self.lookup_type(base, name)
            if nearest is not MISSING and is_heap(base):  # a class in between that gains the name is noticed by this
                self.mro_fact(self.class_source(base), name, nearest)
            found = base.__dict__.get(name, MISSING)
            if found is not MISSING:
                return self.get_for_super(found, base, v, name)
        own = {"__thisclass__": self.const(v.start), "__self__": v.self, "__self_class__": self.const(v.kind)}.get(name)
        if own is not None:
            return own
        if hasattr(super, name):
            raise Break("attribute-unknown", f"super.{name}")
        self.throw(AttributeError, f"'super' object has no attribute '{name}'", name=name, obj=v)

    def make_super(self, start: type, receiver: Value) -> Super:
        """`super(start, receiver)`."""
        is_class = isinstance(receiver, Known) and isinstance(receiver.obj, type)
        if is_class and self.is_subclass(receiver.obj, start):  # type: ignore[attr-defined]
            return Super(start, receiver, receiver.obj)  # type: ignore[attr-defined]
        if not self.is_subclass(receiver.cls, start):
            self.rely_on_names(start)
            refuse(self, super, start, receiver.obj if is_class else self.named_like(receiver.cls))  # type: ignore[attr-defined]
        return Super(start, receiver, receiver.cls)

    def get_for_super(self, found: Any, base: type, v: Super, name: str) -> Any:
        """Bind what super found in `base` to the receiver (or to the class in a classmethod)."""
        if not self.is_descriptor(found):
            return self.class_value(base, name, found)
        if isinstance(v.self, Known) and v.self.obj is v.kind:
            if type(found) is FUNCTION:
                return self.const(found)
            return self.get_from_class(found, v.kind, name)
        if type(found) is staticmethod:
            return self.known(found.__func__)
        return self.get_descriptor(found, v.self, v.kind, name)

    def tensor_getattr(self, v: Tensor, name: str) -> Any:
        """An attribute of a tensor: metadata, a method, or what the user put there."""
        own = v.attrs.get(name)
        if own is not None and own is not DELETED:
            return own
        found = self.lookup_type(v.cls, name)
        if type(found) is FUNCTION and v.cls.__module__.startswith("torch"):
            return Bound(Known(found), v, METHOD)
        if found is not MISSING and type(found) in (FUNCTION, *C_METHODS):
            return self.get_descriptor(found, v, v.cls, name)
        value = self.graph.attribute(v, name)
        if value is not None:
            return value
        if found is not MISSING:
            if not self.is_descriptor(found):
                return self.class_value(v.cls, name, found)
            if type(found) is property and not v.cls.__module__.startswith("torch"):
                return self.get_descriptor(found, v, v.cls, name)
            raise Break("attribute-unknown", f"Tensor.{name}")
        self.throw(AttributeError, f"'{self.name_of(v.cls)}' object has no attribute '{name}'", name=name, obj=v)
