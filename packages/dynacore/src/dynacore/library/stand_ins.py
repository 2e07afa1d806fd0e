"""From an instance of one of our classes to the C object that it stands for."""

from __future__ import annotations

import builtins
import collections
import functools
import itertools
import operator
from collections.abc import Iterable
from typing import Any

from .registry import STANDS_FOR

#: the modules that expressions may use
MODULES = {module.__name__: module for module in (builtins, collections, functools, itertools, operator)}


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
