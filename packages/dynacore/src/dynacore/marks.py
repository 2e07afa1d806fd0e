"""What a program says about itself: run this uncompiled, break here, this size varies."""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

import torch

from . import environment
from .errors import ArgumentError
from .module import wrap_module
from .torch_api import TORCHS_CAPTURE

T = TypeVar("T")

DYNAMIC_ATTRIBUTE = "_dynacore_dynamic"
"""On a tensor: dict from dimension to (min, max), either of which may be None."""
STATIC_ATTRIBUTE = "_dynacore_static"
"""On a tensor: set of dimensions."""


class Disabled:
    """What `disable()` gives: a decorator and a context manager under which nothing is compiled."""

    def __init__(self, recursive: bool, reason: str | None) -> None:
        self.recursive = recursive
        self.reason = reason

    def __call__(self, target: T) -> T:
        return _disable(target, self)

    def __enter__(self) -> None:
        _depth_changer()(+1)

    def __exit__(self, *exc_info: object) -> None:
        _depth_changer()(-1)


@overload
def disable(fn: None = None, *, recursive: bool = True, reason: str | None = None) -> Disabled: ...
@overload
def disable(fn: T, *, recursive: bool = True, reason: str | None = None) -> T: ...
def disable(fn: Any = None, *, recursive: bool = True, reason: str | None = None) -> Any:
    """Have a function always run as plain Python, also when captured code calls it.

    Works as `disable(f)`, as a decorator with and without arguments, and as `with disable():`. Functions and modules
    give a wrapper; a class is changed in place. With `recursive=False` compiled functions that it calls stay compiled.
    """
    disabled = Disabled(recursive, reason)
    return disabled if fn is None else _disable(fn, disabled)


def _disable(target: Any, disabled: Disabled) -> Any:
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(_disable(target.__func__, disabled))
    if isinstance(target, types.MethodType):
        return types.MethodType(_disable(target.__func__, disabled), target.__self__)
    if isinstance(target, type):
        return _disable_class(target, disabled)
    if not callable(target):
        raise ArgumentError(f"dynacore.disable(fn): fn must be callable, not {target!r}")
    if isinstance(target, torch.nn.Module):
        return wrap_module(target, disabled)
    return target if is_disabled(target) else _wrapper(target, disabled)


def _disable_class(cls: type, disabled: Disabled) -> type:
    for name in ("__init__", "__call__"):
        method = getattr(cls, name, None)
        if isinstance(method, types.FunctionType) and not is_disabled(method):
            setattr(cls, name, _wrapper(method, disabled))
    return cls


def _wrapper(function: Callable[..., Any], disabled: Disabled) -> Callable[..., Any]:
    step = 1 if disabled.recursive else 0
    depth = _depth_changer()

    def disabled_call(*args: Any, **kwargs: Any) -> Any:
        depth(step)
        try:
            return function(*args, **kwargs)
        finally:
            depth(-step)

    functools.update_wrapper(disabled_call, function)
    _reasons[disabled_call] = disabled.reason or ""
    return disabled_call


def _depth_changer() -> Callable[[int], int]:
    """Changes how many disabled calls this thread is in."""
    return environment.extension().disable_depth if environment.ready() else lambda step: 0


_reasons: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def _wrapper_code() -> types.CodeType:
    """The code object of all functions made by `_wrapper`. functools.wraps doesn't copy it, as it would a mark."""
    constants = _wrapper.__code__.co_consts
    return next(c for c in constants if isinstance(c, types.CodeType) and c.co_name == "disabled_call")


_WRAPPER_CODE = _wrapper_code()


def is_disabled(function: object) -> bool:
    """Whether `disable` made this function. torch.compiler.disable counts too."""
    if type(function) is not types.FunctionType:
        return False
    return function.__code__ is _WRAPPER_CODE or "_torchdynamo_disable" in function.__dict__


def disable_reason(function: object) -> str:
    """The reason given to `disable`, or an empty string."""
    return _reasons.get(function, "")


def graph_break(msg: str = "") -> None:
    """End the graph here when captured. `msg` is shown as the break's detail."""


def is_graph_break(function: object) -> bool:
    """Whether this is `graph_break`, ours or the one of torch."""
    return function is graph_break or (
        getattr(function, "__name__", None) == "graph_break"
        and getattr(function, "__module__", "").startswith(TORCHS_CAPTURE)
    )


def is_compiled(function: object) -> bool:
    """Whether this is a compiled function."""
    return type(function) is environment.extension().Compiled


def unwrap_compiled(function: Any) -> types.FunctionType | None:
    """The Python function behind a compiled one; None for everything else."""
    return function.__wrapped__ if is_compiled(function) else None


def is_compiling() -> bool:
    """True in code under capture, else False. The machine answers for torch.compiler.is_compiling, which this asks."""
    return torch.compiler.is_compiling()


_allowed: weakref.WeakSet[Any] = weakref.WeakSet()


def allow_in_graph(fn: T) -> T:
    """Have captured code call this function as one opaque node of the graph. It must be pure. Returns `fn`.

    Takes a list or tuple of functions too.
    """
    if isinstance(fn, (list, tuple)):
        for one in fn:
            allow_in_graph(one)
        return fn
    if not callable(fn):
        raise ArgumentError(f"dynacore.allow_in_graph(fn): fn must be callable, not {fn!r}")
    try:
        _allowed.add(fn)
    except TypeError:
        raise ArgumentError(
            f"dynacore.allow_in_graph(fn): {fn!r} can't be hashed and weakly referenced; give a function"
        ) from None
    return fn


def allowed_count() -> int:
    """How many functions are allowed in graphs: what was captured before another one was may differ."""
    return len(_allowed)


def is_allowed_in_graph(function: object) -> bool:
    """Whether `allow_in_graph` was called with this function."""
    try:
        return function in _allowed
    except TypeError:
        return False


def mark_dynamic(
    t: torch.Tensor,
    index: int | Iterable[int],
    *,
    min: int | None = None,
    max: int | None = None,
) -> None:
    """Say that a tensor's size in this dimension (or these) varies from call to call, within `min` and `max`.

    The mark is kept on the tensor. Where the program needs the size to be a constant, `SpecialisedSizeError` says so.
    """
    _check_bounds("mark_dynamic", min, max)
    marked = dict(getattr(t, DYNAMIC_ATTRIBUTE, ()))
    for dim in _dimensions("mark_dynamic", t, index):
        size = t.shape[dim]
        if (min is not None and size < min) or (max is not None and size > max):
            raise ArgumentError(f"dynacore.mark_dynamic: dimension {dim} has size {size}, outside min={min}, max={max}")
        marked[dim] = (min, max)
    setattr(t, DYNAMIC_ATTRIBUTE, marked)
    setattr(t, STATIC_ATTRIBUTE, getattr(t, STATIC_ATTRIBUTE, set()) - marked.keys())


def mark_static(t: torch.Tensor, index: int | Iterable[int] | None = None) -> None:
    """Say that a tensor's size in this dimension (or these; by default all) doesn't vary."""
    dims = _dimensions("mark_static", t, range(_rank("mark_static", t)) if index is None else index)
    setattr(t, STATIC_ATTRIBUTE, getattr(t, STATIC_ATTRIBUTE, set()) | dims)
    dynamic = getattr(t, DYNAMIC_ATTRIBUTE, {})
    setattr(t, DYNAMIC_ATTRIBUTE, {dim: bounds for dim, bounds in dynamic.items() if dim not in dims})


def _rank(name: str, t: object) -> int:
    if not isinstance(t, torch.Tensor):
        raise ArgumentError(f"dynacore.{name}(t, index): t must be a tensor, not {t!r}")
    return t.dim()


def _dimensions(name: str, t: torch.Tensor, index: int | Iterable[int]) -> set[int]:
    rank = _rank(name, t)
    dims = {index} if isinstance(index, int) else set(index)
    for dim in dims:
        if isinstance(dim, bool) or not isinstance(dim, int) or not -rank <= dim < rank:
            raise ArgumentError(f"dynacore.{name}(t, index): no dimension {dim!r} in a tensor with {rank} dimensions")
    return {dim % rank for dim in dims}


def _check_bounds(name: str, low: int | None, high: int | None) -> None:
    for argument, bound in (("min", low), ("max", high)):
        if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int) or bound < 0):
            raise ArgumentError(f"dynacore.{name}: {argument} must be an integer of 0 or more, not {bound!r}")
    if low is not None and high is not None and low > high:
        raise ArgumentError(f"dynacore.{name}: min={low} is above max={high}")
