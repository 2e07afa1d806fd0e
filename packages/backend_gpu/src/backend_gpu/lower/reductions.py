"""Lowerings of reductions and scans. Half types accumulate in fp32, integers in int64, as in eager."""

from __future__ import annotations

from typing import Any

import torch

from ..ir.index import Index, product
from ..ir.nodes import MAX_PERSISTENT, Node
from .registry import Lower, NotLowered, computed, lowers, named, normal_axes, prims

HALVES = (torch.float16, torch.bfloat16)


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype that sums of a dtype are kept in."""
    return torch.float32 if dtype in HALVES else dtype


def _sum(b: Lower, x: Node, dim: Any, keepdim: bool, dtype: torch.dtype) -> Node:
    axes = normal_axes(dim, len(x.shape))
    summed = b.reduce("sum", b.cast(x, wide(dtype)), axes, keepdim)
    return b.cast(summed, dtype)


@lowers(*named("sum"))
def sum_(b: Lower, x: Node, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Node:
    return _sum(b, x, dim, keepdim, b.out_dtype)


@lowers(*named("sum", prims))
def prims_sum(b: Lower, x: Node, dim: Any, output_dtype: Any = None) -> Node:
    return _sum(b, x, dim, False, b.out_dtype)


@lowers(*named("prod"))
def prod(b: Lower, x: Node, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Node:
    axes = normal_axes(dim, len(x.shape))
    return b.cast(b.reduce("prod", b.cast(x, wide(b.out_dtype)), axes, keepdim), b.out_dtype)


def _count(b: Lower, x: Node, axes: tuple[int, ...], dtype: torch.dtype, shape: Any) -> Node:
    number: Index = product(x.shape[axis] for axis in axes)
    return b.index(number, shape, dtype) if not isinstance(number, int) else b.const(number, dtype, shape)


@lowers(*named("mean"))
def mean(b: Lower, x: Node, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Node:
    axes, kind = normal_axes(dim, len(x.shape)), wide(b.out_dtype)
    summed = b.reduce("sum", b.cast(x, kind), axes, keepdim)
    return b.cast(b.pointwise("div", summed, _count(b, x, axes, kind, summed.shape)), b.out_dtype)


def _moments(b: Lower, x: Node, dim: Any, correction: Any, keepdim: bool) -> tuple[Node, Node]:
    """Variance and mean in the wide dtype. `variance` is a reduction of its own: one pass over the data."""
    axes, kind = normal_axes(dim, len(x.shape)), wide(x.dtype)
    values = b.cast(x, kind)
    summed = b.reduce("sum", values, axes, keepdim)
    average = b.pointwise("div", summed, _count(b, x, axes, kind, summed.shape))
    squares = b.reduce("squares", values, axes, keepdim)
    number: Index = product(x.shape[axis] for axis in axes)
    correction = 1 if correction is None else correction
    if isinstance(number, int):
        left = number - correction
        divisor = b.const(max(left, 0), kind, squares.shape)
    else:
        exact = b.index(number, squares.shape, kind)
        divisor = b.pointwise("sub", exact, b.const(correction, kind, squares.shape))
        divisor = b.pointwise("maximum", divisor, b.const(0, kind, squares.shape))
    return b.pointwise("div", squares, divisor), average


def _var_arguments(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, Any, bool]:
    """dim, correction, keepdim of the overloads of var and var_mean."""
    dim: Any = keywords.get("dim")
    correction: Any = keywords.get("correction", 1)
    unbiased = keywords.get("unbiased")
    keepdim = bool(keywords.get("keepdim", False))
    rest = list(arguments)
    if rest and isinstance(rest[0], bool):
        unbiased = rest.pop(0)
    elif rest:
        dim = rest.pop(0)
        if rest:
            unbiased = rest.pop(0)
        if rest:
            keepdim = rest.pop(0)
    if unbiased is not None:
        correction = 1 if unbiased else 0
    return dim, correction, keepdim


@lowers(*named("var"))
def var(b: Lower, x: Node, *arguments: Any, **keywords: Any) -> Node:
    computed(x)
    dim, correction, keepdim = _var_arguments(arguments, keywords)
    return b.cast(_moments(b, x, dim, correction, keepdim)[0], b.out_dtype)


@lowers(*named("var_mean"))
def var_mean(b: Lower, x: Node, *arguments: Any, **keywords: Any) -> tuple[Node, Node]:
    computed(x)
    dim, correction, keepdim = _var_arguments(arguments, keywords)
    variance, average = _moments(b, x, dim, correction, keepdim)
    return b.cast(variance, b.out_dtype), b.cast(average, b.out_dtype)


def _nonempty(x: Node, axes: tuple[int, ...]) -> None:
    if any(x.shape[axis] == 0 for axis in axes):
        raise NotLowered("an empty reduction without a neutral element")


def _register_extreme(name: str, kind: str) -> None:
    @lowers(*named(name), *named(name, prims))
    def lowering(b: Lower, x: Node, dim: Any = None, keepdim: bool = False, **_: Any) -> Node:
        axes = normal_axes(dim, len(x.shape))
        _nonempty(x, axes)
        return b.reduce(kind, x, axes, keepdim)


_register_extreme("amax", "max")
_register_extreme("amin", "min")


def _register_valued(name: str, kind: str) -> None:
    @lowers(*[overload for overload in named(name) if "other" not in str(overload)])
    def lowering(b: Lower, x: Node, dim: Any = None, keepdim: bool = False) -> Any:
        axes = normal_axes(dim, len(x.shape))
        _nonempty(x, axes)
        if not isinstance(b.val, (tuple, list)):
            return b.reduce(kind, x, axes)
        at = b.reduce(f"arg{kind}", x, axes, keepdim) if x.shape else b.const(0, torch.int64)
        return b.reduce(kind, x, axes, keepdim), at


_register_valued("max", "max")
_register_valued("min", "min")


def _register_place(name: str) -> None:
    @lowers(*named(name))
    def lowering(b: Lower, x: Node, dim: Any = None, keepdim: bool = False) -> Node:
        from .views import reshape

        if dim is None:
            x = reshape(b, x, (x.numel,))
        axes = normal_axes(dim if dim is not None else 0, len(x.shape))
        _nonempty(x, axes)
        found = b.reduce(name, x, axes, keepdim and dim is not None) if axes else b.const(0, torch.int64)
        return b.expand(found, b.out_shape()) if dim is None else found


_register_place("argmax")
_register_place("argmin")


def _register_truth(name: str, kind: str) -> None:
    @lowers(*named(name))
    def lowering(b: Lower, x: Node, dim: Any = None, keepdim: bool = False) -> Node:
        flags = b.cast(b.cast(x, torch.bool), torch.int32)
        found = b.reduce(kind, flags, normal_axes(dim, len(x.shape)), keepdim)
        return b.cast(b.cast(found, torch.bool), b.out_dtype)


_register_truth("any", "max")
_register_truth("all", "min")


def _register_scan(name: str, kind: str) -> None:
    @lowers(*named(name))
    def lowering(b: Lower, x: Node, dim: int, dtype: Any = None) -> Node:
        if not x.shape or x.shape[dim] == 1:
            return b.cast(x, b.out_dtype)
        dim %= len(x.shape)
        size = x.shape[dim]
        if not isinstance(size, int) or size > MAX_PERSISTENT:
            raise NotLowered("a scan over more than a program can hold")
        made = b.node("scan", (b.cast(x, wide(b.out_dtype)),), x.shape, wide(b.out_dtype), kind=kind, dims=(dim,))
        return b.cast(made, b.out_dtype)


_register_scan("cumsum", "cumsum")
_register_scan("cumprod", "cumprod")
