"""From an instance of our classes to the C object that it stands for; objects that errors name like the program's."""

from __future__ import annotations

import builtins
import collections
import functools
import itertools
import math
import operator
from collections.abc import Iterable
from typing import Any

from .registry import STANDS_FOR

#: the modules that expressions may use
MODULES = {module.__name__: module for module in (builtins, collections, functools, itertools, math, operator)}


def expression(cls: Any, attributes: Iterable[str]) -> str:
    """A format over the attributes of an instance of `cls` that makes the C object."""
    text = cls.rebuild
    return text(attributes) if callable(text) else text


def real_object(obj: Any) -> Any:
    """The C object for an instance that an earlier entry left; anything else as it is."""
    cls = type(obj)
    if cls not in STANDS_FOR:
        return obj
    own = vars(obj)
    return eval(expression(cls, own).format(**{name: name for name in own}), {**MODULES, **own})


def c_name(cls: type) -> str:
    """The name by which the errors of C code call a class: where C made it, its module is part of that."""
    other: Any = int if not issubclass(cls, int) else list
    try:
        other.__new__(cls)
    except TypeError as error:  # int.__new__(NAME): NAME is not a subtype of int
        return str(error).partition("(")[2].partition("):")[0]
    raise AssertionError(f"{cls} is an {other}")


def named_like(cls: type, **namespace: Any) -> Any:
    """An object of a class with the names of `cls`: errors say of it what they say of an instance of `cls`."""
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return type(c_name(cls), (), {**namespace, **names})()


def empty_slot_text(cls: type, name: str) -> str:
    """The text of the error about a slot of `cls` without a value."""
    try:
        getattr(named_like(cls, __slots__=(name,)), name)
    except AttributeError as error:
        return str(error)
    raise AssertionError(f"a slot {name} has a value from the start")


def wrong_receiver_text(descriptor: Any, cls: type) -> str:
    """The text of the error about a descriptor of C on an instance of `cls`, which isn't of its class."""
    instance = named_like(cls)
    try:
        descriptor.__get__(instance, type(instance))
    except TypeError as error:
        return str(error)
    raise AssertionError(f"{descriptor!r} applies to {cls.__name__}")
