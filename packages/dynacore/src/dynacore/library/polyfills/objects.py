"""Calls of the object model that go on in Python: attribute access with a default, C callables that pass a call on."""

from __future__ import annotations


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


def length(method, obj, /):
    """len() by a Python method."""
    size = method(obj)
    if not hasattr(size, "__index__"):
        raise TypeError(f"'{type(size).__name__}' object cannot be interpreted as an integer")
    size = size.__index__()
    if size < 0:
        raise ValueError("__len__() should return >= 0")
    return size
