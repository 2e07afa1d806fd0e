"""Calls of the object model that go on in Python: attribute access with a default, C callables that pass a call on."""

from __future__ import annotations

import functools
import types
from sys import maxsize

from ..registry import polyfill
from .support import at_capture, c_name, unusual


def getattr_or(obj, name, default, /):
    """getattr with a default."""
    try:
        return getattr(obj, name)
    except AttributeError:
        return default


def hasattr_(obj, name, /):
    """hasattr"""
    try:
        getattr(obj, name)
    except AttributeError:
        return False
    return True


def set_attribute(obj, name, value, /):
    """setattr, by the class's own method."""
    type(obj).__setattr__(obj, name, value)


def delete_attribute(obj, name, /):
    """delattr, by the class's own method."""
    type(obj).__delattr__(obj, name)


def get_items(obj, keys, /):
    """operator.itemgetter(*keys)(obj) for several keys."""
    items = []
    for key in keys:
        items.append(obj[key])
    return tuple(items)


def get_attribute(obj, path, /):
    """operator.attrgetter of one dotted name."""
    for name in path:
        obj = getattr(obj, name)
    return obj


def get_attributes(obj, paths, /):
    """operator.attrgetter of several names."""
    found = []
    for path in paths:
        found.append(get_attribute(obj, path))
    return tuple(found)


def call_method(obj, name, args, kwargs, /):
    """operator.methodcaller"""
    return getattr(obj, name)(*args, **kwargs)


def any_check(checks, /):
    """isinstance or issubclass where metaclasses decide: calls as (method, class, argument), or True, in order."""
    for check in checks:
        if check is True or check[0](check[1], check[2]):
            return True
    return False


def text_of(method, name, obj, /):
    """str() or repr() by a Python method."""
    text = method(obj)
    if not isinstance(text, str):
        return unusual(repr if name == "__repr__" else str, name, obj, text)
    return text


def length(method, obj, /):
    """len() by a Python method."""
    size = method(obj)
    if not hasattr(size, "__index__"):
        raise TypeError(f"'{c_name(type(size))}' object cannot be interpreted as an integer")
    size = size.__index__()
    if size < 0:
        raise ValueError("__len__() should return >= 0")
    if size > maxsize:
        raise OverflowError("cannot fit 'int' into an index-sized integer")
    return size


def formatted(method, obj, spec, /):
    """format() by a Python method."""
    result = method(obj, spec)
    if not isinstance(result, str):
        return unusual(format, "__format__", obj, result, spec)
    return result


def hash_(method, obj, /):
    """hash() by a Python method."""
    result = method(obj)
    if not isinstance(result, int):
        raise TypeError("__hash__ method should return an integer")
    return result if type(result) is int and 0 <= result < 2**61 else as_hash(result)


@at_capture
def as_hash(number, /):
    """What hash() makes of a number that a method gave."""
    return hash(type("", (), {"__hash__": lambda self: number})())


def partial_text(attributes):
    """A real partial, with what the program put into its `__dict__`."""
    text = "functools.partial({func}, *{args}, **{keywords})"
    others = ", ".join(f"{name}={{{name}}}" for name in attributes if name not in ("func", "args", "keywords"))
    return f"[it for it in [{text}] if it.__dict__.update({others}) is None][0]" if others else text


@polyfill(functools.partial)
class Partial:
    rebuild = staticmethod(partial_text)

    def __init__(self, func, /, *args, **keywords):
        if type(func) is functools.partial:
            args = func.args + args
            keywords = {**func.keywords, **keywords}
            func = func.func
        if not callable(func):
            raise TypeError("the first argument must be callable")
        self.func = func
        self.args = args
        self.keywords = keywords

    def __call__(self, /, *args, **keywords):
        return self.func(*self.args, *args, **{**self.keywords, **keywords})


@polyfill(types.MappingProxyType)
class MappingProxy:
    rebuild = "type(type.__dict__)({mapping})"

    def __init__(self, mapping, /):
        if not hasattr(mapping, "__getitem__") or isinstance(mapping, (list, tuple)):
            raise TypeError(f"mappingproxy() argument must be a mapping, not {c_name(type(mapping))}")
        self.mapping = mapping

    def __len__(self):
        return len(self.mapping)

    def __getitem__(self, key):
        return self.mapping[key]

    def __contains__(self, key):
        return key in self.mapping

    def __iter__(self):
        return iter(self.mapping)

    def __reversed__(self):
        return reversed(self.mapping)

    def __repr__(self):
        return f"mappingproxy({self.mapping!r})"

    def __str__(self):
        return str(self.mapping)

    def __eq__(self, other):
        return self.mapping == other

    def __hash__(self):
        return hash(self.mapping)

    def __or__(self, other):
        return self.mapping | other

    def keys(self):
        return self.mapping.keys()

    def values(self):
        return self.mapping.values()

    def items(self):
        return self.mapping.items()

    def get(self, key, default=None, /):
        return self.mapping.get(key, default)

    def copy(self):
        return self.mapping.copy()


@polyfill(functools.cached_property.__get__)
def cached_property_get(self, instance, owner=None):
    """Without the lock that some releases take: no other thread sees the state of a capture."""
    if instance is None:
        return self
    name = self.attrname
    if name is None:
        raise TypeError("Cannot use cached_property instance without calling __set_name__ on it.")
    try:
        values = instance.__dict__
    except AttributeError:
        refused = f"No '__dict__' attribute on {type(instance).__name__!r} instance to cache {name!r} property."
        raise TypeError(refused) from None
    if name not in values:
        values[name] = self.func(instance)
    return values[name]
