"""A Python function around a callable that is none, so that everything compiled is a function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any, cast

from torch.nn import Module

FILENAME = "<dynacore>"
"""`co_filename` of every shim; its frames are no part of the user's program."""


def shim(target: Callable[..., Any]) -> FunctionType:
    """A function that calls `target`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    return _finish(call, target)


def forward_shim(model: Any) -> FunctionType:
    """A function that calls `model.forward`, looked up at each call."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return model.forward(*args, **kwargs)

    return _finish(call, model.forward)


def _finish(call: Callable[..., Any], wrapped: Callable[..., Any]) -> FunctionType:
    """Give a shim the name, text and signature of what it calls; not its `__dict__`, which may be a model's."""
    function = cast(FunctionType, functools.update_wrapper(call, wrapped, updated=()))
    if not isinstance(getattr(wrapped, "__name__", None), str):
        function.__name__ = type(wrapped).__name__
        function.__qualname__ = type(wrapped).__qualname__
    name, qualname = function.__name__, function.__qualname__
    function.__code__ = _named(function.__code__, name, qualname)
    return function


@functools.lru_cache(maxsize=1024)
def _named(code: CodeType, name: str, qualname: str) -> CodeType:
    """One code object for all shims of that name: functions share captures by their code."""
    return code.replace(co_filename=FILENAME, co_name=name, co_qualname=qualname)


def parameters(target: Any) -> tuple[str, ...]:
    """The names of the positional parameters of a callable, as far as they are easily told."""
    if isinstance(target, Module):
        target = target.forward
    if type(target) is functools.partial:
        return parameters(target.func)[len(target.args) :]
    if isinstance(target, MethodType):
        return parameters(target.__func__)[1:]
    if isinstance(target, FunctionType):
        return target.__code__.co_varnames[: target.__code__.co_argcount]
    method = next((vars(base)["__call__"] for base in type(target).__mro__ if "__call__" in vars(base)), None)
    return parameters(method)[1:] if isinstance(method, FunctionType) else ()


def is_shim(code: CodeType) -> bool:
    """Whether this is the code of a function made here."""
    return code.co_filename == FILENAME
