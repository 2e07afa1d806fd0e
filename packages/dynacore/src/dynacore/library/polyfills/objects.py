"""Calls of the object model that go on in Python: making an instance, attribute access with a default, C callables
that only pass a call on."""

from __future__ import annotations

from ..registry import polyfill


@polyfill(type.__call__)
def type_call(cls, /, *args, **kwargs):
    obj = cls.__new__(cls, *args, **kwargs)
    if isinstance(obj, cls):
        type(obj).__init__(obj, *args, **kwargs)
    return obj


def getattr_or(obj, name, default, /):
    """getattr with a default."""
    try:
        return getattr(obj, name)
    except AttributeError:
        return default


@polyfill(hasattr)
def hasattr_(obj, name, /):
    try:
        getattr(obj, name)
    except AttributeError:
        return False
    return True


def get_items(obj, keys, /):
    """operator.itemgetter(*keys)(obj) for several keys."""
    items = []
    for key in keys:
        items.append(obj[key])
    return tuple(items)


def get_attributes(obj, paths, /):
    """operator.attrgetter: each path is a tuple of names."""
    found = []
    for path in paths:
        value = obj
        for name in path:
            value = getattr(value, name)
        found.append(value)
    return tuple(found)


def get_attribute(obj, path, /):
    """operator.attrgetter of one dotted name."""
    for name in path:
        obj = getattr(obj, name)
    return obj


def call_method(obj, name, args, kwargs, /):
    """operator.methodcaller"""
    return getattr(obj, name)(*args, **kwargs)


def truth_of_call(function, /, *args):
    """bool() of a call's result, as isinstance takes that of __instancecheck__."""
    return bool(function(*args))
