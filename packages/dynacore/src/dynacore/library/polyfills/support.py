"""What the polyfills share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..registry import rule

Function = TypeVar("Function", bound=Callable)


def at_capture(function: Function) -> Function:
    """A helper that isn't run as a frame: it is called while capturing, on constants, and may use the real thing."""

    def fold(m: Any, *args: Any, **kwargs: Any) -> Any:
        return m.fold(function, list(args), kwargs)

    rule(function)(fold)
    return function
