"""Callables that only pass a call on: functools.partial, operator.itemgetter and its kin, bound methods."""

from __future__ import annotations

import functools
import inspect
import operator
import types
import weakref
from typing import Any

from ..reasons import Break
from ..values import Bound, Const, DictObj, Known, Obj, TupleObj, Value
from .arguments import is_callable, is_installed
from .folding import is_literal
from .polyfills import constructors, objects
from .registry import rule


@rule(functools.partial.__call__)
def partial_call(m: Any, self: Value, /, *args: Value, **kwargs: Value) -> Any:
    function, first, named = (m.getattr(self, name) for name in ("func", "args", "keywords"))
    pairs = {m.constant_of(key): value for key, value in m.d_items(named)}
    return m.call(function, [*first.items, *args], {**pairs, **kwargs})


@rule(constructors.make_from_iterator)
def make_from_iterator(m: Any, function: Value, iterator: Value, /) -> Any:
    signature = m.signature_of(function)
    frame = m.frame_for(signature.code, signature.globals, signature.closure, m.is_ours(function))
    frame.slots[0] = iterator
    return m.make_generator(function, frame, iterated=True)


@rule(types.MethodType)
def method_new(m: Any, function: Value, receiver: Value, /) -> Value:
    if not is_callable(function) or m.is_none(receiver):
        raise Break("call-arguments", "MethodType")
    return Bound(function, receiver, types.MethodType)


@rule(types.MethodType.__call__)
def method_call(m: Any, self: Value, /, *args: Value, **kwargs: Value) -> Any:
    return m.call(self, list(args), kwargs)


@rule(types.FunctionType.__call__)
def function_call(m: Any, self: Value, /, *args: Value, **kwargs: Value) -> Any:
    return m.call(self, list(args), kwargs)


@rule(types.FunctionType.__get__)
def function_get(m: Any, self: Value, obj: Value, owner: Value | None = None, /) -> Value:
    if m.is_none(obj) and owner is not None and not m.is_none(owner):
        return self
    return Bound(self, obj, types.MethodType)


@rule(inspect.signature)
def signature(m: Any, function: Value, /) -> Value:
    """The signature of a Python function or method: it follows from the function's fields, which are guarded."""
    real = function.func if type(function) is Bound and function.cls is types.MethodType else function
    if type(real) is not Known or type(real.obj) is not types.FunctionType:
        raise Break("call-unknown-callable", "inspect.signature")
    inner: Any = real
    while True:
        m.pin(inner)
        m.signature_of(inner)
        if "__signature__" in vars(inner.obj) or len(vars(inner.obj)) > 1:
            raise Break("call-unknown-callable", "inspect.signature")
        if "__wrapped__" not in vars(inner.obj):
            break
        inner = m.getattr(inner, "__wrapped__")
        if type(inner) is not Known or type(inner.obj) is not types.FunctionType:
            raise Break("call-unknown-callable", "inspect.signature")
    return signature_value(m, inspect.signature(real.obj if real is function else types.MethodType(real.obj, inspect)))


def signature_value(m: Any, real: inspect.Signature) -> Value:
    """A new Signature object with the real one's contents."""
    parameters = real.parameters.copy()
    mapping = DictObj(type(parameters))
    mapping.items = {name: (Const(name), m.known(parameter)) for name, parameter in parameters.items()}
    proxy, made = Obj(objects.MappingProxy), Obj(inspect.Signature)
    proxy.attrs["mapping"] = mapping
    made.attrs.update(_parameters=proxy, _return_annotation=m.known(real.return_annotation))
    return made


@rule(type(functools.lru_cache(len)).__call__)
def cached_call(m: Any, self: Value, /, *args: Value, **kwargs: Value) -> Value:
    """A cached function of an installed library, called with constants ("is this package there?"): its answer is true.

    What isn't an immutable constant is the object in the cache, and is looked at there. A cache of the user's own is
    left alone: how often it was asked, and when its function ran, can be seen.
    """
    wrapper = m.constant_of(self)
    function = getattr(wrapper, "__wrapped__", None)
    if not is_installed(function):
        raise Break("call-unknown-c-function", "a function with functools.lru_cache")
    real = [cached_argument(m, arg) for arg in args]
    named = {name: cached_argument(m, value) for name, value in kwargs.items()}
    try:
        answer = wrapper(*real, **named)
    except Exception as error:
        raise Break("call-unknown-c-function", function.__qualname__) from error
    if is_literal(answer) and is_immutable(answer):
        return m.const(answer)
    if wrapper(*real, **named) is not answer:
        raise Break("call-unknown-c-function", function.__qualname__)
    return m.known(answer)


def is_immutable(literal: Any) -> bool:
    """Whether no list, dict or set is in a constant."""
    return all(map(is_immutable, literal)) if isinstance(literal, tuple) else not isinstance(literal, (list, dict, set))


def cached_argument(m: Any, value: Value) -> Any:
    """The key in a cache: an immutable constant, or an object from outside that is equal to itself alone."""
    if type(value) is Obj and value.obj is not None and not value.changed and m.by_identity(value):
        m.pin(value)
        return value.obj
    real = m.constant_of(value)
    in_c = type(value) is TupleObj and type(m.special_method(value.cls, "__hash__")) is not types.FunctionType
    if not is_literal(tuple(real) if in_c else real):
        raise Break("call-unknown-c-function", "a function with functools.lru_cache")
    return real


@rule(weakref.ref.__call__)
def dereference(m: Any, self: Value, /) -> Value:
    """What a weak reference found outside refers to."""
    if type(self) is not Known or type(self.obj) is not weakref.ref:
        raise Break("weakref", self.cls.__name__)
    if self.obj() is not None and not m.nothing_dropped():
        raise Break("weakref", "something that it refers to may have been dropped")
    source = (self.source or m.root.child("const", self.obj)).child("call", Dereference.instance)
    return m.wrap(self.obj(), source)


class Dereference:
    """Guard accessor: the referent of a weak reference."""

    instance: Dereference

    def __call__(self, reference: weakref.ref) -> Any:
        return reference()

    def __repr__(self) -> str:
        return "referent"


Dereference.instance = Dereference()


# -- operator --------------------------------------------------------------------------------------------------------


def made(m: Any, kind: type, args: tuple[Value, ...], kwargs: dict[str, Value] | None = None) -> Value:
    """An itemgetter, attrgetter or methodcaller of constants: it never changes."""
    real = [m.constant_of(arg) for arg in args]
    named = {name: m.constant_of(value) for name, value in (kwargs or {}).items()}
    try:
        return Known(kind(*real, **named))
    except TypeError as error:
        return m.throw(TypeError, *error.args)


def parts(self: Value, kind: type) -> Any:
    """What an itemgetter, attrgetter or methodcaller was made of."""
    if type(self) is not Known or type(self.obj) is not kind:
        raise Break("call-arguments", kind.__name__)
    return self.obj.__reduce__()


@rule(operator.itemgetter)
def itemgetter_new(m: Any, *keys: Value) -> Value:
    return made(m, operator.itemgetter, keys)


@rule(operator.attrgetter)
def attrgetter_new(m: Any, *names: Value) -> Value:
    return made(m, operator.attrgetter, names)


@rule(operator.methodcaller)
def methodcaller_new(m: Any, name: Value, /, *args: Value, **kwargs: Value) -> Value:
    return made(m, operator.methodcaller, (name, *args), kwargs)


@rule(operator.itemgetter.__call__)
def itemgetter_call(m: Any, self: Value, obj: Value, /) -> Any:
    keys = parts(self, operator.itemgetter)[1]
    m.pin(self)
    values = [m.const(key) for key in keys]
    if len(keys) == 1:
        return m.getitem(obj, values[0])
    return m.push_python(objects.get_items, [obj, TupleObj(values)], {})


@rule(operator.attrgetter.__call__)
def attrgetter_call(m: Any, self: Value, obj: Value, /) -> Any:
    names = parts(self, operator.attrgetter)[1]
    m.pin(self)
    paths = [TupleObj([Const(part) for part in name.split(".")]) for name in names]
    if len(paths) == 1:
        return m.push_python(objects.get_attribute, [obj, paths[0]], {})
    return m.push_python(objects.get_attributes, [obj, TupleObj(paths)], {})


@rule(operator.methodcaller.__call__)
def methodcaller_call(m: Any, self: Value, obj: Value, /) -> Any:
    maker, arguments, *_ = parts(self, operator.methodcaller)
    m.pin(self)
    named = {} if maker is operator.methodcaller else maker.keywords
    # __reduce__ gives (methodcaller, (name, ...)), or with keywords (partial(methodcaller, name, **keywords), args).
    name, *args = arguments if maker is operator.methodcaller else (*maker.args, *arguments)
    keywords = DictObj()
    keywords.items = {key: (Const(key), m.const(value)) for key, value in named.items()}
    return m.push_python(
        objects.call_method, [obj, Const(name), TupleObj([m.const(arg) for arg in args]), keywords], {}
    )
