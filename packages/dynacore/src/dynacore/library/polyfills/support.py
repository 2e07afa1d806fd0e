"""What the polyfills share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...marks import disable
from ..registry import rule
from ..stand_ins import c_name as c_name  # a rule answers, under a guard
from ..stand_ins import named_like

Function = TypeVar("Function", bound=Callable)


def at_capture(function: Function) -> Function:
    """A helper that isn't run as a frame: it is called while capturing, on constants, and may use the real thing."""

    def fold(m: Any, *args: Any, **kwargs: Any) -> Any:
        return m.fold(function, list(args), kwargs)

    rule(function)(fold)
    return function


@disable
def unusual(operation, name, obj, result, /, *args):
    """What the interpreter makes of a special method's result of another type: a warning, an error, its own words."""
    return operation(named_like(type(obj), **{name: lambda *_: result}), *args)


def is_instance(obj, cls, /):
    """Whether the object's class derives from `cls`, whatever its metaclass or its `__class__` say: a rule answers."""
    return type.__instancecheck__(cls, obj)


def without_our_lines(error: BaseException) -> BaseException:
    """An exception that left a polyfill's frame, the first in its traceback, without the lines of polyfills."""
    trace = error.__traceback__ and error.__traceback__.tb_next
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith("dynacore."):
        trace = trace.tb_next
    return error.with_traceback(trace)


def defines(obj, name, /):
    """Whether the object's class has a special method. A rule answers."""
    return hasattr(type(obj), name)


def iterator_or_none(obj, /):
    """iter() for C functions that have a text of their own for what can't be iterated."""
    try:
        return iter(obj)
    except TypeError:
        return None


def same(one, other, /):
    """The equality that containers use: identity first. A rule answers where no Python code is needed."""
    return True if one is other or one == other else False


def equal(one, other, /):
    """`==` of two objects that aren't one, as a bool."""
    return True if one == other else False
