"""Objects and types: making instances, attribute access by name, isinstance, super, identity and hashes."""

from __future__ import annotations

import abc
import types
import typing
import weakref
from types import FunctionType
from typing import Any

from ..reasons import Break
from ..values import (
    DELETED,
    FALSE,
    NONE,
    PUSHED,
    TRUE,
    Cell,
    Const,
    ExcObj,
    Func,
    Host,
    Known,
    Obj,
    Raised,
    Super,
    Tensor,
    TupleObj,
    Value,
)
from .arguments import attribute_name, is_callable, real_class
from .folding import is_literal
from .polyfills import objects, support
from .registry import RULES, rule

# -- instances -------------------------------------------------------------------------------------------------------


@rule(object)
def object_call(m: Any) -> Value:
    return Obj(object)


@rule(object.__new__)
def object_new(m: Any, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
    kind = m.constant_of(cls)
    new = m.lookup_type(kind, "__new__")
    if (args or kwargs) and not overrides(new) and m.lookup_type(kind, "__init__") is object.__init__:
        m.throw(TypeError, f"{m.name_of(kind)}() takes no arguments")
    if (args or kwargs) and overrides(new):
        m.throw(TypeError, "object.__new__() takes exactly one argument (the type to instantiate)")
    layout = next(base for base in kind.__mro__ if type(vars(base).get("__new__")) is types.BuiltinFunctionType)
    if layout is not object:
        raise Break("construct-unknown", kind.__name__)
    if m.lookup_type(kind, "__del__") is not m.lookup_type(object, "__del__"):
        raise Break("finalizer", kind.__name__)
    return m.new_object(kind)


def overrides(new: Any) -> bool:
    """Whether a class has its own `__new__`."""
    return getattr(new, "__func__", new) is not object.__new__


@rule(object.__init__)
def object_init(m: Any, self: Value, /, *args: Value, **kwargs: Value) -> Value:
    if args or kwargs:
        if m.lookup_type(self.cls, "__init__") is not object.__init__:
            m.throw(TypeError, "object.__init__() takes exactly one argument (the instance to initialize)")
        if not overrides(m.lookup_type(self.cls, "__new__")):
            refused = f"{m.name_of(self.cls)}.__init__() takes exactly one argument (the instance to initialize)"
            m.throw(TypeError, refused)
    return NONE


@rule(object.__init_subclass__)
def object_init_subclass(m: Any, *args: Value) -> Value:
    return NONE


@rule(type.__call__)
def type_call(m: Any, cls: Value, /, *args: Value, **kwargs: Value) -> Any:
    return m.type_call(cls, list(args), kwargs)


@rule(BaseException.__new__)
def exception_new(m: Any, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
    return ExcObj(m.constant_of(cls), list(args))


@rule(BaseException.__init__)
def exception_init(m: Any, self: Value, /, *args: Value) -> Value:
    if not isinstance(self, ExcObj):
        raise Break("call-arguments", "BaseException.__init__")
    m.touch(self)
    self.fields["args"] = TupleObj(args)
    return NONE


# -- attributes ------------------------------------------------------------------------------------------------------


@rule(getattr)
def getattr_call(m: Any, obj: Value, name: Value, default: Value | None = None, /) -> Any:
    if default is None:
        return m.getattr(obj, attribute_name(m, name))
    found = quick(m, obj, attribute_name(m, name))
    if found is None:
        return m.push_python(objects.getattr_or, [obj, name, default], {})
    return default if found is DELETED else found


@rule(hasattr)
def hasattr_call(m: Any, obj: Value, name: Value, /) -> Any:
    if type(obj) is Host:
        return m.const(hasattr(obj.cls, attribute_name(m, name)))
    found = quick(m, obj, attribute_name(m, name))
    if found is None:
        return m.push_python(objects.hasattr_, [obj, name], {})
    return FALSE if found is DELETED else TRUE


def quick(m: Any, obj: Value, name: str) -> Any:
    """The attribute, DELETED when there is none, None when finding out may run Python code."""
    if m.lookup_type(obj.cls, "__getattribute__") is not object.__getattribute__ and type(obj) is not Tensor:
        return None
    if type(m.lookup_type(obj.cls, "__getattr__")) is FunctionType:
        return None
    on_class = m.lookup_type(obj.cls, name)
    if type(on_class) is property or type(getattr(type(on_class), "__get__", None)) is FunctionType:
        return None
    try:
        found = m.getattr(obj, name)
    except Raised as raised:
        if issubclass(raised.value.cls, AttributeError):
            return DELETED
        raise
    if found is PUSHED:
        raise AssertionError(f"reading {name} of {obj.cls.__name__} ran Python code")
    return found


@rule(setattr)
def setattr_call(m: Any, obj: Value, name: Value, value: Value, /) -> Any:
    return store(m, obj, attribute_name(m, name), value)


@rule(delattr)
def delattr_call(m: Any, obj: Value, name: Value, /) -> Any:
    return store(m, obj, attribute_name(m, name), DELETED)


def store(m: Any, obj: Value, name: str, value: Any) -> Any:
    """Set or delete an attribute through the class's method for it; the result is None whatever that returns."""
    method = "__delattr__" if value is DELETED else "__setattr__"
    on_class = m.lookup_type(obj.cls, name)
    in_python = type(m.lookup_type(obj.cls, method)) is FunctionType or type(on_class) is property
    in_python = in_python or type(getattr(type(on_class), method.replace("attr", ""), None)) is FunctionType
    if not in_python:
        m.delattr(obj, name) if value is DELETED else m.setattr(obj, name, value)
        return NONE
    if value is DELETED:
        return m.push_python(objects.delete_attribute, [obj, Const(name)], {})
    return m.push_python(objects.set_attribute, [obj, Const(name), value], {})


@rule(object.__getattribute__)
def object_getattribute(m: Any, self: Value, name: Value, /) -> Any:
    text = attribute_name(m, name)
    if not isinstance(self, (Obj, Const, Known)) or type(self) in (Super, Func):
        raise Break("attribute-unknown", f"{self.cls.__name__}.{text}")
    found = m.generic_getattr(self, self.cls, text)
    if isinstance(found, Value) or found is PUSHED:
        return found
    return m.throw(AttributeError, m.no_attribute(self, text), name=text, obj=self)


@rule(object.__setattr__)
def object_setattr(m: Any, self: Value, name: Value, value: Value, /) -> Any:
    result = m.generic_setattr(self, attribute_name(m, name), value)
    return PUSHED if result is PUSHED else NONE


@rule(object.__delattr__)
def object_delattr(m: Any, self: Value, name: Value, /) -> Any:
    result = m.generic_setattr(self, attribute_name(m, name), DELETED)
    return PUSHED if result is PUSHED else NONE


@rule(vars)
def vars_call(m: Any, *obj: Value) -> Any:
    if not obj:
        raise Break("locals-inspection", "vars()")
    return m.getattr(obj[0], "__dict__")


# -- types -----------------------------------------------------------------------------------------------------------


@rule(type)
def type_of(m: Any, obj: Value, *rest: Value, **kwargs: Value) -> Value:
    if rest or kwargs:
        raise Break("class-body", "type()")
    return m.const(real_class(obj))


@rule(isinstance)
def isinstance_call(m: Any, obj: Value, classes: Value, /) -> Any:
    return check(m, real_class(obj), classes, obj)


@rule(issubclass)
def issubclass_call(m: Any, cls: Value, classes: Value, /) -> Any:
    if not isinstance(cls, Known) or not isinstance(cls.obj, type):
        raise Break("call-arguments", "issubclass")
    return check(m, m.constant_of(cls), classes, None)


def _union(method: Any) -> None:
    """The rule of `|` between classes and their like."""

    def union_type(m: Any, a: Value, b: Value, /) -> Value:
        return m.const(method(m.constant_of(a), m.constant_of(b)))

    rule(method)(union_type)


for _cls in (type, types.UnionType, types.GenericAlias):
    _union(_cls.__or__)
    _union(_cls.__ror__)


@rule(type.__instancecheck__)
def type_instancecheck(m: Any, cls: Value, obj: Value, /) -> Value:
    return m.const(nominal(m, real_class(obj), m.constant_of(cls), obj))


@rule(support.is_instance)
def is_instance(m: Any, obj: Value, cls: Value, /) -> Value:
    return m.const(m.is_subclass(real_class(obj), m.constant_of(cls)))


@rule(support.defines)
def defines(m: Any, obj: Value, name: Value, /) -> Value:
    return m.const(m.special_method(obj.cls, m.constant_of(name)) is not m.lookup_type(object, "__len__"))


@rule(support.c_name)
def name_in_errors(m: Any, cls: Value, /) -> Value:
    return Const(m.name_of(m.constant_of(cls)))


@rule(type.__subclasscheck__)
def type_subclasscheck(m: Any, cls: Value, sub: Value, /) -> Value:
    return m.const(nominal(m, m.constant_of(sub), m.constant_of(cls), None))


@rule(abc.ABCMeta.__instancecheck__)
def abc_instancecheck(m: Any, cls: Value, obj: Value, /) -> Value:
    return m.const(by_abc(m, real_class(obj), m.constant_of(cls), obj))


@rule(abc.ABCMeta.__subclasscheck__)
def abc_subclasscheck(m: Any, cls: Value, sub: Value, /) -> Value:
    return m.const(by_abc(m, m.constant_of(sub), m.constant_of(cls), None))


def check(m: Any, kind: type, classes: Value, obj: Value | None) -> Any:
    """isinstance (with `obj`) or issubclass: classes one by one, each asked by its metaclass."""
    pending: list[Any] = []
    for cls in flattened(m, classes):
        answer = one_class(m, kind, cls, obj)
        if answer is True:
            return TRUE if not pending else m.push_python(objects.any_check, [TupleObj([*pending, TRUE])], {})
        if answer is not False:
            pending.append(answer)
    return m.push_python(objects.any_check, [TupleObj(pending)], {}) if pending else FALSE


def flattened(m: Any, classes: Value) -> list[type]:
    """The classes in a class, a union, or a nested tuple of these."""
    if type(classes) is TupleObj:
        return [cls for item in classes.items for cls in flattened(m, item)]
    real = m.constant_of(classes)
    if isinstance(real, types.UnionType) or typing.get_origin(real) is typing.Union:
        real = real.__args__
    if isinstance(real, tuple):
        return [cls for item in real for cls in flattened(m, m.const(item))]
    if not isinstance(real, type) or isinstance(real, types.GenericAlias):
        raise Break("call-arguments", "isinstance() of something that isn't a class")
    return [real]


def one_class(m: Any, kind: type, cls: type, obj: Value | None) -> Any:
    """Whether it is an instance (subclass) of `cls`; a call to make, as a tuple value, where Python code decides."""
    if obj is not None and kind is cls:
        return True
    name = "__subclasscheck__" if obj is None else "__instancecheck__"
    method = m.lookup_type(type(cls), name)
    if method in (type.__instancecheck__, type.__subclasscheck__):
        return nominal(m, kind, cls, obj)
    if method in (abc.ABCMeta.__instancecheck__, abc.ABCMeta.__subclasscheck__):
        return by_abc(m, kind, cls, obj)
    if getattr(cls, "_is_protocol", False) and obj is not None:
        raise Break("attribute-unknown", f"isinstance() of the protocol {cls.__name__}")
    if getattr(cls, "_is_protocol", None) is False and issubclass(type(cls), abc.ABCMeta):
        return by_abc(m, kind, cls, obj)  # an ordinary class derived from a protocol
    if type(method) is FunctionType:
        return TupleObj([m.const(method), m.const(cls), m.const(kind) if obj is None else obj])
    if id(method) in RULES:
        return m.truth(m.call(m.known(method), [m.const(cls), m.const(kind) if obj is None else obj], {}))
    raise Break("metaclass", type(cls).__name__)


def nominal(m: Any, kind: type, cls: type, obj: Value | None) -> bool:
    """`type.__instancecheck__`: by the MRO, then by what `obj.__class__` says."""
    if m.is_subclass(kind, cls):
        return True
    if obj is not None:
        check_class(m, kind)
    return False


#: types whose instances pass for another object
PROXIES = (weakref.ProxyType, weakref.CallableProxyType)


def check_class(m: Any, kind: type) -> None:
    """Leave to the interpreter what instances of `kind` call their class, where that may be another one."""
    in_python = type(m.lookup_type(kind, "__getattribute__")) is FunctionType
    if in_python or kind in PROXIES or m.lookup_type(kind, "__class__") is not object.__dict__["__class__"]:
        raise Break("attribute-unknown", f"{kind.__name__}.__class__")


def by_abc(m: Any, kind: type, cls: type, obj: Value | None) -> bool:
    """An abstract base class's answer. It is remembered by the class itself: a positive one for good, a negative one
    until a class is registered somewhere."""
    if obj is not None:
        check_class(m, kind)
    answer = issubclass(kind, cls)
    if not answer:
        m.check_registered()
    return answer


@rule(super)
def super_call(m: Any, *args: Value) -> Value:
    start, receiver = args if len(args) == 2 else implicit_super(m) if not args else (None, None)
    if start is None or receiver is None or not isinstance(start, Known):
        raise Break("call-arguments", "super()")
    return m.make_super(start.obj, receiver)


def implicit_super(m: Any) -> tuple[Value | None, Value | None]:
    """The class and the first argument of the function that calls super()."""
    frame = m.frames[-1]
    names = frame.program.names
    if "__class__" not in names or not frame.code.co_argcount:
        return None, None
    found = [frame.slots[names.index(name)] for name in ("__class__", frame.code.co_varnames[0])]
    start, receiver = (m.cell_contents(v) if isinstance(v, Cell) else v for v in found)
    return start, receiver


# -- identity, hashes, calling ---------------------------------------------------------------------------------------


@rule(callable)
def callable_call(m: Any, obj: Value, /) -> Value:
    m.lookup_type(obj.cls, "__call__")
    return m.const(is_callable(obj))


@rule(id)
def id_call(m: Any, obj: Value, /) -> Value:
    """The address of an object from outside, which is relied on by identity."""
    real = getattr(obj, "obj", None)
    if real is None:
        raise Break("unknown-value", "id()")
    m.pin(obj)
    return Const(id(real))


@rule(hash)
def hash_call(m: Any, obj: Value, /) -> Any:
    method = m.special_method(obj.cls, "__hash__")
    if type(method) is FunctionType and not isinstance(obj, Const):
        return m.push_python(objects.hash_, [m.const(method), obj], {})
    if method is None:
        m.throw(TypeError, f"unhashable type: '{m.name_of(obj.cls)}'")
    if type(obj) is Known:
        m.pin(obj)
        return Const(hash(obj.obj))
    real = m.constant_of(obj) if type(obj) in (Const, Host, TupleObj) else None
    if (real is None and type(obj) is not Const) or not is_literal(real):
        raise Break("hash-unknown", obj.cls.__name__)
    return Const(hash(real))


@rule(object.__eq__)
def object_eq(m: Any, self: Value, other: Value, /) -> Value:
    return TRUE if m.identical(self, other) else m.const(NotImplemented)


@rule(object.__ne__)
def object_ne(m: Any, self: Value, other: Value, /) -> Any:
    if type(m.special_method(self.cls, "__eq__")) is FunctionType:
        raise Break("compare-unknown", self.cls.__name__)
    return FALSE if m.identical(self, other) else m.const(NotImplemented)


def _typing(function: Any) -> None:
    """The rule of a question to a type expression, which never changes."""

    def ask(m: Any, expression: Value, /) -> Value:
        return m.const(function(m.constant_of(expression)))

    rule(function)(ask)


for _function in (typing.get_args, typing.get_origin):
    _typing(_function)
