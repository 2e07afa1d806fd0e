"""Attribute access, as `Objects/object.c` (generic), `typeobject.c` (types, super) and `moduleobject.c` define it."""

from __future__ import annotations

import abc
import collections
import functools
import types
from typing import Any

from .. import torch_memory
from .._C import attribute_slots
from ..library.folding import SPECIAL_METHODS
from ..library.registry import RULES, STANDS_FOR
from ..library.stand_ins import empty_slot_text, wrong_receiver_text
from ..reasons import Break
from ..torch_types import immutable_types
from ..values import (
    DELETED,
    PUSHED,
    Bound,
    Cell,
    Const,
    DictObj,
    ExcObj,
    Func,
    GenObj,
    Host,
    Known,
    Obj,
    Opaque,
    Super,
    Tensor,
    TupleObj,
    Value,
)
from .wrapping import C_METHODS, FUNCTION, base_layout, is_heap

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()

GENERIC_GET = object.__getattribute__
GENERIC_SET = object.__setattr__
GENERIC_DEL = object.__delattr__
TYPE_GET = type.__getattribute__
MODULE_GET = types.ModuleType.__getattribute__
SUPER_GET = super.__getattribute__

METHOD = types.MethodType
#: what special methods usually are
METHODS = (FUNCTION, *C_METHODS)
#: methods whose absence a class declares by None
MAY_BE_NONE = ("__hash__", "__iter__", "__contains__", "__reversed__")
MAXLEN = vars(collections.deque)["maxlen"]
C_FIELDS = (types.MemberDescriptorType, types.GetSetDescriptorType)


def python_type(value: Value) -> type:
    """The class that the program sees: a polyfill object passes for the C object it stands for."""
    return STANDS_FOR.get(value.cls, value.cls)


class Attributes:
    """getattr, setattr, delattr and what they rest on."""

    # -- types ---------------------------------------------------------------------------------------------------------

    def lookup_type(self, cls: type, name: str) -> Any:
        """What `_PyType_Lookup` finds for `name` on `cls`, guarded; MISSING when there is nothing."""
        for base in cls.__mro__:
            found = base.__dict__.get(name, MISSING)
            if found is not MISSING:
                break
        else:
            found = MISSING
        if is_heap(cls):
            source = self.class_source(cls)
            if found is MISSING:
                source.check("mro_lacks", name)
            elif self.is_descriptor(found) or self.is_data(found) or name[:2] == "__":
                self.mro_fact(source, name, found)
            else:  # what hides it may do so only as long as it is no property
                source.child("mro", name).check("type", type(found))
        return found

    def special_method(self, cls: type, name: str) -> Any:
        """The function that C calls for an operator, found on the class: Python's, C's own, None where that means
        something, or MISSING.

        What else a program may put there is bound first, by rules of its own: that is left to the interpreter.
        """
        found = self.lookup_type(cls, name)
        known = found is MISSING or type(found) in METHODS or found is None and name in MAY_BE_NONE
        if is_heap(cls) and not known:
            raise Break("attribute-unknown", f"{cls.__name__}.{name} is no function")
        return found

    def mro_of(self, cls: type) -> tuple[type, ...]:
        """A class's MRO, which is another one once a program has assigned `__bases__`."""
        mro = cls.__mro__
        if is_heap(cls):
            self.class_source(cls).check("mro_eq", mro)
        return mro

    def is_subclass(self, cls: type, base: type) -> bool:
        """`PyType_IsSubtype`: no metaclass is asked."""
        return cls is base or any(one is base for one in self.mro_of(cls))

    def is_plain(self, cls: type, names: set[str] = SPECIAL_METHODS) -> bool:
        """Whether C works with instances of `cls` without running Python code: these methods are C's."""
        return not is_heap(cls) or all(
            found is MISSING or type(found) in C_METHODS
            for found in [self.lookup_type(cls, name) for name in sorted(names)]
        )

    def check_registered(self) -> None:
        """Guard that no abstract class registers another class from now on."""
        check = torch_memory.check_of(abc.get_cache_token, "state"), (abc.get_cache_token, abc.get_cache_token())
        self.root.checks.setdefault(("call0_is", "abc"), check)

    def overtaken(self) -> bool:
        """Whether a class was registered since such an answer: what capture imports does that, too."""
        check = self.root.checks.get(("call0_is", "abc"))
        return check is not None and check[1][1] != abc.get_cache_token()

    def mro_fact(self, source: Any, name: str, found: Any) -> None:
        """Guard that a class's attribute is this very object."""
        mark = ("mro_is", name)
        if mark not in source.checks:
            source.checks[mark] = ("mro_is", (name, found))

    def is_descriptor(self, found: Any) -> bool:
        """Whether the object's own type takes part in attribute access."""
        return self.kind_has(type(found), "__get__")

    def kind_has(self, kind: type, name: str) -> bool:
        """Whether a descriptor's class has a method, which may come and go."""
        return self.lookup_type(kind, name) is not MISSING if is_heap(kind) else hasattr(kind, name)

    def class_value(self, cls: type, name: str, found: Any) -> Value:
        """The value of a class attribute that isn't a descriptor."""
        if not is_heap(cls):
            return self.const(found)
        return self.wrap(found, self.class_source(cls).child("mro", name))

    # -- reading -------------------------------------------------------------------------------------------------------

    def getattr(self, v: Value, name: str) -> Any:
        """`v.name`; PUSHED when Python code has to run for it."""
        kind = type(v)
        if kind is Super:
            return self.super_getattr(v, name)
        if kind is Tensor:
            return self.tensor_getattr(v, name)
        if kind is Opaque:
            raise Break(*v.why)
        cls = v.cls
        getter = self.lookup_type(cls, "__getattribute__")
        if getter is GENERIC_GET or type(getter) is not FUNCTION and generic_slots(cls)[0]:
            hook = self.lookup_type(cls, "__getattr__")
            found = self.generic_getattr(v, cls, name, hook if type(hook) is FUNCTION else None)
        elif getter is TYPE_GET:
            found = self.type_getattr(v, name)
        elif getter is MODULE_GET:
            return self.module_getattr(v, name)
        elif cls is METHOD and type(v) is Bound:
            return self.method_getattr(v, name)
        elif type(getter) is FUNCTION:
            hook = self.lookup_type(cls, "__getattr__")
            if hook is MISSING:
                return self.call_real_function(getter, [v, Const(name)])
            return self.push_python(getattribute_then_getattr, [self.const(getter), self.const(hook), v, Const(name)])
        else:
            raise Break("attribute-unknown", f"{cls.__name__}.{name}")
        if found is not MISSING:
            return found
        hook = self.lookup_type(cls, "__getattr__")
        if type(hook) is FUNCTION:
            return self.call_real_function(hook, [v, Const(name)])
        if hook is not MISSING:
            raise Break("attribute-unknown", f"{cls.__name__}.{name}")
        self.throw(AttributeError, self.no_attribute(v, name), name=name, obj=v)

    def no_attribute(self, v: Value, name: str) -> str:
        """CPython's text for a missing attribute."""
        if isinstance(v, Known) and isinstance(v.obj, type):
            return f"type object '{self.name_of(v.obj)}' has no attribute '{name}'"
        cls = python_type(v)
        if type(self.lookup_type(cls, name)) is types.MemberDescriptorType:
            self.rely_on_names(cls)
            return empty_slot_text(cls, name)
        return f"'{self.name_of(cls)}' object has no attribute '{name}'"

    def generic_getattr(self, v: Value, cls: type, name: str, hook: Any = None) -> Any:
        """`PyObject_GenericGetAttr`, without the error. `hook` answers for an AttributeError of a getter in Python."""
        found = self.lookup_type(cls, name)
        descriptor = found is not MISSING and self.is_descriptor(found)
        if descriptor and self.is_data(found):
            return self.get_descriptor(found, v, cls, name, hook)
        own = self.instance_attr(v, name)
        if own is not MISSING:
            return own
        if descriptor:
            return self.get_descriptor(found, v, cls, name, hook)
        if found is not MISSING:
            return self.class_value(cls, name, found)
        return MISSING

    def is_data(self, found: Any) -> bool:
        """Whether a descriptor takes precedence over the instance's own attributes."""
        kind = type(found)
        return self.kind_has(kind, "__set__") or self.kind_has(kind, "__delete__")

    def instance_attr(self, v: Value, name: str) -> Any:
        """The object's own attribute, from its overlay or its real `__dict__`."""
        kind = type(v)
        if kind is Host:
            return MISSING
        if kind is Const:
            return MISSING if not hasattr(v.value, "__dict__") else self.real_attr(v, v.value, name)
        if kind is not Known:
            namespace = v.namespace  # type: ignore[attr-defined]
            if namespace is not None:
                return self.d_get_str(namespace, name) or MISSING
            own = v.attrs.get(name)  # type: ignore[attr-defined]
            if own is not None:
                return MISSING if own is DELETED else own
            if v.obj is None:  # type: ignore[attr-defined]
                return MISSING
        return self.real_attr(v, v.obj, name)  # type: ignore[attr-defined]

    def real_attr(self, v: Value, obj: Any, name: str) -> Any:
        """The attribute in a real object's `__dict__`, with its guard."""
        namespace = instance_dict(obj)
        if namespace is None:
            return MISSING
        source = v.source
        if source is None:
            source = self.root.child("const", obj)
        owner = source.child("dict")
        shadow = self.seen.get(id(namespace))
        if type(shadow) is DictObj and shadow.changed:
            entry = shadow.items.get(name)
            if entry is not None:
                return MISSING if entry is DELETED else entry[1]
        if name in namespace:
            return self.wrap(namespace[name], owner.child("key", name))
        owner.check("lacks", name)
        return MISSING

    def call_getter(self, getter: Any, args: list[Value], v: Value, name: str, hook: Any) -> Any:
        """Run a getter written in Python; its AttributeError is for `__getattr__`, where there is one."""
        if hook is None:
            return self.call_real_function(getter, args)
        return self.push_python(
            getter_then_getattr, [self.known(getter), TupleObj(args), self.const(hook), v, Const(name)]
        )

    def get_descriptor(self, found: Any, v: Value, cls: type, name: str, hook: Any = None) -> Any:
        """`type(found).__get__(found, v, cls)`."""
        kind = type(found)
        if kind is FUNCTION:
            return Bound(self.const(found), v, METHOD)
        if kind is property:
            if found.fget is None:
                raise Break("attribute-unknown", f"{cls.__name__}.{name}")
            return self.call_getter(found.fget, [v], v, name, hook)
        if kind is classmethod:
            return self.bind_class(found.__func__, self.const(cls))
        if kind is staticmethod:
            return self.known(found.__func__)
        if kind in C_METHODS or kind in C_FIELDS:
            self.check_applies(found, v)
        if kind in C_METHODS:
            return Bound(
                Known(found),
                v,
                types.BuiltinMethodType if kind is types.MethodDescriptorType else types.MethodWrapperType,
            )
        if kind in C_FIELDS:
            return self.get_field(found, v, cls, name)
        if kind is types.ClassMethodDescriptorType:
            return Bound(Known(found), self.const(cls), types.BuiltinMethodType)
        getter = self.lookup_type(kind, "__get__")
        if type(getter) is FUNCTION:
            return self.call_getter(getter, [self.known(found), v, self.const(cls)], v, name, hook)
        if id(getter) in RULES:
            return RULES[id(getter)](self, Known(found), v, self.const(cls))
        raise Break("attribute-unknown", f"{cls.__name__}.{name} ({kind.__name__})")

    def check_applies(self, found: Any, v: Value) -> None:
        """What a class in C defines binds only to its instances, wherever else a class may have put it."""
        cls = python_type(v)
        if found.__objclass__ not in cls.__mro__:
            if type(found) is types.WrapperDescriptorType:  # refused by itself, or by the call that it is loaded for
                raise Break("attribute-unknown", f"{cls.__name__}.{found.__name__}")
            self.rely_on_names(cls)
            self.rely_on_names(found.__objclass__)
            self.throw(TypeError, wrong_receiver_text(found, cls))

    def bind_class(self, func: Any, cls: Value) -> Value:
        """A classmethod's function bound to the class."""
        if type(func) is FUNCTION:
            return Bound(self.known(func), cls, METHOD)
        raise Break("attribute-unknown", f"classmethod of {type(func).__name__}")

    def get_field(self, found: Any, v: Value, cls: type, name: str) -> Any:
        """A slot or a getset of C: modelled for what we make, read for what exists."""
        own = Const(v.maxlen) if found is MAXLEN and v.obj is None else self.model_field(v, name)
        if own is not MISSING:
            return own
        if type(found) is types.MemberDescriptorType and isinstance(v, Obj):
            own = v.attrs.get(name)
            if own is DELETED or (own is None and v.obj is None and is_heap(found.__objclass__)):
                return MISSING
            if own is not None:
                return own
        obj = getattr(v, "obj", None)
        if obj is None:
            if type(v) is Host:
                v = self.specialise(v)
            if type(v) is Const:
                return self.const_field(found, v)
            raise Break("attribute-unknown", f"{cls.__name__}.{name}")
        if found.__objclass__ in FROZEN or found.__objclass__ in immutable_types():
            self.pin(v)
            return self.const(found.__get__(obj, type(obj)))
        if type(found) is types.GetSetDescriptorType and not self.readable_field(found, v):
            raise Break("attribute-unknown", f"{cls.__name__}.{name}")
        source = v.source or self.root.child("const", obj)
        try:
            real = found.__get__(obj, type(obj))
        except AttributeError:
            source.child("call", SlotIsEmpty(found)).check("is", True)
            return MISSING
        return self.wrap(real, source.child("slot", name))

    def const_field(self, found: Any, v: Const) -> Value:
        """`(1).real`, `range.start`: a pure function of the constant."""
        return self.const(found.__get__(v.value, type(v.value)))

    def readable_field(self, found: Any, v: Value) -> bool:
        """Whether a C getter may be called while capturing: it gives the same object each time and does nothing."""
        return (found.__objclass__.__name__, found.__name__) in STABLE_FIELDS

    def model_field(self, v: Value, name: str) -> Any:
        """Fields of C objects that we model: functions, cells, generators, exceptions; `__class__` and `__dict__`."""
        if name == "__class__":
            return self.const(python_type(v))
        if name == "__dict__":
            return self.namespace_of(v)
        if type(v) is Func or (type(v) is Known and type(v.obj) is FUNCTION):
            return self.function_field(v, name)
        if type(v) is Bound and v.cls is METHOD:
            return {"__func__": v.func, "__self__": v.self}.get(name, MISSING)
        if type(v) is Bound and name == "__self__":
            return v.self
        if type(v) is Cell and name == "cell_contents":
            contents = self.cell_contents(v)
            if contents is None:
                self.throw(ValueError, "Cell is empty")
            return contents
        if type(v) is GenObj:
            raise Break("attribute-unknown", f"generator.{name}")
        if type(v) is TupleObj and name in getattr(base_layout(v.cls), "__match_args__", ()):
            return v.items[base_layout(v.cls).__match_args__.index(name)]  # a field of a structseq
        if isinstance(v, ExcObj):
            return self.exception_field(v, name)
        return MISSING

    def exception_field(self, v: ExcObj, name: str) -> Any:
        """Fields of exceptions."""
        if name in v.fields:
            return v.fields[name]
        if name == "args":
            return TupleObj(v.args)
        if name == "value" and issubclass(v.cls, StopIteration):
            return v.args[0] if v.args else self.const(None)
        if name in EXCEPTION_FIELDS:
            if v.obj is not None:
                return self.wrap(getattr(v.obj, name), v.source.child("slot", name))  # type: ignore[union-attr]
            return self.const(EXCEPTION_FIELDS[name])
        raise Break("attribute-unknown", f"{v.cls.__name__}.{name}")

    def chained(self, v: ExcObj, before: ExcObj) -> None:
        """Make `before` the context of `v`, which may not come again in that chain: as `_PyErr_SetObject` does."""
        link: Any = before
        seen: set[int] = set()  # the program may have made a cycle
        while isinstance(link, ExcObj) and id(link) not in seen:
            seen.add(id(link))
            # A real exception can't refer to one made here, but through what was set here.
            context = link.fields.get("__context__") if v.obj is None else self.exception_field(link, "__context__")
            if context is v:
                self.set_exception_field(link, "__context__", self.const(None))
                break
            link = context
        self.set_exception_field(v, "__context__", before)

    def namespace_of(self, v: Value) -> Any:
        """`v.__dict__` of an instance or module."""
        obj = getattr(v, "obj", None)
        if isinstance(v, Obj) and not isinstance(v, Bound):
            return v.namespace or self.open_namespace(v)
        if obj is None or isinstance(obj, type):
            raise Break("attribute-unknown", "__dict__")
        namespace = instance_dict(obj)
        if namespace is None:
            return MISSING
        source = v.source or self.root.child("const", obj)
        return self.wrap(namespace, source.child("dict"))

    def open_namespace(self, v: Obj) -> Any:
        """From now on the attributes of `v` live in a dict that the program may hold."""
        if not has_dict(v.cls):
            return MISSING
        if v.obj is None:
            v.namespace = DictObj()
            v.namespace.instance = v
        else:
            v.namespace = self.wrap(instance_dict(v.obj), v.source.child("dict"))  # type: ignore[union-attr, assignment]
        for name in [name for name in v.attrs if not self.is_slot(v.cls, name)]:
            value = v.attrs.pop(name)
            if value is DELETED:
                self.d_del(v.namespace, Const(name))
            else:
                self.d_set(v.namespace, Const(name), value)
        return v.namespace

    def is_slot(self, cls: type, name: str) -> bool:
        """Whether an attribute is stored in a slot of the object."""
        return type(self.lookup_type(cls, name)) is types.MemberDescriptorType


#: (class, getter) pairs of C that may be read while capturing
STABLE_FIELDS = frozenset(
    {
        ("partial", "func"),
        ("partial", "args"),
        ("partial", "keywords"),
        ("method", "__doc__"),
        ("property", "__isabstractmethod__"),
        ("deque", "maxlen"),
    }
    | {("BaseException", "args"), ("slice", "start")}
)
#: fields of every exception, and what they are at first
EXCEPTION_FIELDS = {"__cause__": None, "__context__": None, "__suppress_context__": False}
#: types of C whose objects never change
FROZEN = (
    types.CodeType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
)
FUNCTION_FIELDS = frozenset(
    {
        "__name__",
        "__qualname__",
        "__doc__",
        "__module__",
        "__defaults__",
        "__kwdefaults__",
        "__annotations__",
        "__annotate__",
        "__type_params__",
    }
)


#: type without a Python hook -> whether its instances' attributes are (read, written) by the generic algorithm
generic_slots = functools.lru_cache(maxsize=4096)(attribute_slots)


def getattribute_then_getattr(getattribute, getattr_hook, obj, name):
    """`slot_tp_getattr_hook` of CPython."""
    try:
        return getattribute(obj, name)
    except AttributeError:
        return getattr_hook(obj, name)


def getter_then_getattr(getter, args, getattr_hook, obj, name):
    """A descriptor's getter, then `__getattr__`."""
    try:
        return getter(*args)
    except AttributeError:
        return getattr_hook(obj, name)


class SlotIsEmpty:
    """Guard accessor: whether a slot has no value."""

    def __init__(self, descriptor: Any):
        self.descriptor = descriptor

    def __call__(self, obj: Any) -> bool:
        try:
            self.descriptor.__get__(obj, type(obj))
        except AttributeError:
            return True
        return False


def instance_dict(obj: Any) -> dict | None:
    """The real `__dict__` of an object, without running its class's code."""
    try:
        found = GENERIC_GET(obj, "__dict__")
    except (AttributeError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def has_dict(cls: type) -> bool:
    """Whether instances have a `__dict__`."""
    return cls.__dictoffset__ != 0


__all__ = ["MISSING", "PUSHED", "Attributes", "has_dict", "instance_dict", "python_type"]
