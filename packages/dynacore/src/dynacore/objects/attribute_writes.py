"""Setting and deleting attributes: `PyObject_GenericSetAttr` and the descriptors that take part in it."""

from __future__ import annotations

import types
from typing import Any

from ..reasons import Break
from ..values import DELETED, Const, ExcObj, Func, Obj, Opaque, Tensor, TupleObj, Value
from .attributes import (
    FUNCTION_FIELDS,
    GENERIC_DEL,
    GENERIC_SET,
    MISSING,
    generic_slots,
    has_dict,
    instance_dict,
    python_type,
)
from .wrapping import FUNCTION, is_heap


class AttributeWrites:
    """setattr and delattr."""

    def setattr(self, v: Value, name: str, value: Value) -> Any:
        """`v.name = value`; PUSHED when Python code has to run for it (its result is to be dropped)."""
        if type(v) is Opaque:
            raise Break(*v.why)
        setter = self.special_method(v.cls, "__setattr__")
        if (setter is GENERIC_SET or type(setter) is not FUNCTION and generic_slots(v.cls)[1]) and type(
            v
        ) is not Tensor:
            return self.generic_setattr(v, name, value)
        if type(setter) is FUNCTION and type(v) is not Tensor:
            return self.call_real_function(setter, [v, Const(name), value])
        raise Break("setattr-unknown", f"{v.cls.__name__}.{name}")

    def delattr(self, v: Value, name: str) -> Any:
        """`del v.name`."""
        if type(v) is Opaque:
            raise Break(*v.why)
        setter = self.special_method(v.cls, "__delattr__")
        if setter is GENERIC_DEL or type(setter) is not FUNCTION and generic_slots(v.cls)[1]:
            return self.generic_setattr(v, name, DELETED)
        if type(setter) is FUNCTION:
            return self.call_real_function(setter, [v, Const(name)])
        raise Break("setattr-unknown", f"{v.cls.__name__}.{name}")

    def generic_setattr(self, v: Value, name: str, value: Value) -> Any:
        """`PyObject_GenericSetAttr`; DELETED deletes."""
        cls = v.cls
        found = self.lookup_type(cls, name)
        if found is not MISSING and self.is_data(found):
            return self.set_descriptor(found, v, cls, name, value)
        if not isinstance(v, Obj):
            raise Break("setattr-unknown", f"{cls.__name__}.{name}")
        if not has_dict(cls if self.frames[-1].trusted else python_type(v)):
            raise Break("setattr-unknown", f"{cls.__name__}.{name}")
        if value is DELETED and self.instance_attr(v, name) is MISSING:
            self.throw(AttributeError, f"'{self.name_of(cls)}' object has no attribute '{name}'")
        if (
            v.namespace is None
            and v.obj is not None
            and (v.attrs.get(name) is DELETED or id(instance_dict(v.obj)) in self.seen)
        ):
            self.open_namespace(v)  # what comes back comes last
        if v.namespace is not None:
            if value is DELETED:
                self.d_del(v.namespace, Const(name))
            else:
                self.d_set(v.namespace, Const(name), value)
            return None
        self.touch(v)
        if value is DELETED and (v.obj is None or not self.has_own(v, name)):
            del v.attrs[name]
        else:
            v.attrs[name] = value
        return None

    def has_own(self, v: Obj, name: str) -> bool:
        """Whether a real object has the attribute in its `__dict__`, guarded."""
        found = name in instance_dict(v.obj)  # type: ignore[operator]
        v.source.child("dict").check("has" if found else "lacks", name)  # type: ignore[union-attr]
        return found

    def set_descriptor(self, found: Any, v: Value, cls: type, name: str, value: Value) -> Any:
        """`type(found).__set__(found, v, value)`."""
        if type(found) is property:
            function = found.fdel if value is DELETED else found.fset
            if function is None:
                # The error's text knows how the property got its name.
                raise Break("setattr-unknown", f"{cls.__name__}.{name}")
            return self.call_real_function(function, [v] if value is DELETED else [v, value])
        if type(found) is types.MemberDescriptorType and isinstance(v, Obj) and is_heap(cls):
            if value is DELETED:
                raise Break("setattr-unknown", f"del {cls.__name__}.{name}")
            self.touch(v)
            v.attrs[name] = value
            return None
        if type(v) is Func and name in FUNCTION_FIELDS and value is not DELETED:
            return self.set_function_field(v, name, value)
        if isinstance(v, ExcObj) and value is not DELETED:
            return self.set_exception_field(v, name, self.checked_field(v, name, value))
        setter = self.lookup_type(type(found), "__delete__" if value is DELETED else "__set__")
        if type(setter) is FUNCTION:
            return self.call_real_function(
                setter, [self.known(found), v] if value is DELETED else [self.known(found), v, value]
            )
        raise Break("setattr-unknown", f"{cls.__name__}.{name}")

    def set_exception_field(self, v: ExcObj, name: str, value: Value) -> None:
        """Fields of an exception that C keeps."""
        self.touch(v)
        v.fields[name] = value
        if name == "__cause__":
            v.fields["__suppress_context__"] = self.const(True)

    def checked_field(self, v: ExcObj, name: str, value: Value) -> Value:
        """What assigning to an exception's field stores."""
        if name == "args":
            return TupleObj(self.iterate(value))
        if name in ("__cause__", "__context__") and (self.is_none(value) or isinstance(value, ExcObj)):
            return value
        if name == "__suppress_context__" and type(value) is Const and type(value.value) is bool:
            return value
        raise Break("setattr-unknown", f"{v.cls.__name__}.{name}")
