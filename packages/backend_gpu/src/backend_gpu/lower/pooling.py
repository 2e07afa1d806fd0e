"""Lowerings of pooling: each place of a window is a view with guards, and a result is the chain of what they give.

The gradient of an element is the sum over the windows that it is in: nothing is added to memory in any order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..ir.index import Expr, Index, div, mod
from ..ir.nodes import Guard, Node, dims
from .reductions import wide
from .registry import Lower, NotLowered, computed, lowers, named

LARGEST = 64
"""Up to so many elements a window is written out."""


@dataclass(frozen=True)
class Windows:
    """Windows over a tensor's last dimensions: of each its size, how many windows, their size, step and start."""

    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    kernel: tuple[int, ...]
    step: tuple[int, ...]
    pad: tuple[int, ...]

    @classmethod
    def of(cls, x: Sequence[Index], over: Sequence[Index], kernel: Any, step: Any, pad: Any) -> Windows:
        """The windows over a tensor of shape `x` that give one of shape `over`."""
        ndim = len(kernel) if len(kernel) > 1 else len(x) - 2
        step = step or kernel
        kernel, step, pad = (tuple(value) * (ndim if len(value) == 1 else 1) for value in (kernel, step, pad))
        sizes, counts = tuple(x[-ndim:]), tuple(over[-ndim:])
        if not all(isinstance(size, int) for size in (*sizes, *counts)):
            raise NotLowered("pooling of open sizes")
        found = cls(sizes, counts, kernel, step, pad)  # type: ignore[arg-type]
        if len(list(found.places())) > LARGEST:
            raise NotLowered(f"a window of more than {LARGEST} elements")
        return found

    def places(self) -> Iterator[tuple[int, ...]]:
        """The places within a window, in memory's order."""
        return itertools.product(*map(range, self.kernel))

    def inside(self, own: Sequence[Index], place: Sequence[int]) -> tuple[list[Index], list[Guard]]:
        """Where in the tensor a place of the window `own` lies, and the guards that say whether it does."""
        at = [i * s - p + k for i, s, p, k in zip(own, self.step, self.pad, place)]
        return at, [(position, 0, size) for position, size in zip(at, self.sizes)]

    def around(self, own: Sequence[Expr]) -> Iterator[tuple[list[Index], list[Guard]]]:
        """The windows that may hold the element `own`, in order, each with guards that say whether it does."""
        back = [range((k - 1) // s, -1, -1) for k, s in zip(self.kernel, self.step)]
        for steps in itertools.product(*back):
            window = [div(i + p, s) - n for i, p, s, n in zip(own, self.pad, self.step, steps)]
            guards: list[Guard] = [(w, 0, count) for w, count in zip(window, self.counts)]
            guards += [
                (mod(i + p, s) + n * s, 0, k)
                for i, p, s, n, k in zip(own, self.pad, self.step, steps, self.kernel)
                if (n + 1) * s > k
            ]
            yield window, guards


def _view(b: Lower, x: Node, shape: Any, at: list[Index], guards: list[Guard], fill: Any) -> Node:
    own = dims(shape)
    return b.view(x, shape, [*own[: len(own) - len(at)], *at], guards, fill)


def _divisor(b: Lower, windows: Windows, shape: Any, dtype: torch.dtype, include_pad: bool, given: int | None) -> Node:
    """By how much the sum of each window is divided."""
    own = dims(shape)[-len(windows.sizes) :]
    if given is not None:
        return b.const(given, dtype, shape)
    count: Node | None = None
    for d, (i, kernel) in enumerate(zip(own, windows.kernel)):
        low, high = (-windows.pad[d], windows.sizes[d] + windows.pad[d]) if include_pad else (0, windows.sizes[d])
        start = i * windows.step[d] - windows.pad[d]
        first = b.pointwise("maximum", b.index(start, shape), b.const(low, torch.int64, shape))
        last = b.pointwise("minimum", b.index(start + kernel, shape), b.const(high, torch.int64, shape))
        along = b.pointwise("sub", last, first)
        count = along if count is None else b.pointwise("mul", count, along)
    assert count is not None
    return b.cast(count, dtype)


def _whole(windows: Windows, include_pad: bool) -> bool:
    """Whether every window counts all of its places."""
    edges = zip(windows.counts, windows.step, windows.kernel, windows.pad, windows.sizes)
    inside = all((n - 1) * s + k <= size + 2 * p for n, s, k, p, size in edges)
    return inside and (include_pad or not any(windows.pad))


def _divide(b: Lower, x: Node, windows: Windows, include_pad: bool, given: int | None) -> Node:
    if given is None and _whole(windows, include_pad):
        given = len(list(windows.places()))
    return b.pointwise("div", x, _divisor(b, windows, x.shape, x.dtype, include_pad, given))


@lowers(*named("avg_pool2d"), *named("avg_pool3d"))
def avg_pool(
    b: Lower, x: Node, kernel: Any, step: Any = (), pad: Any = (0,), ceil: bool = False, include_pad: bool = True,
    divisor: int | None = None,
) -> Node:  # fmt: skip
    floats(x)
    shape = b.out_shape()
    windows = Windows.of(x.shape, shape, kernel, step, pad)
    source, summed = b.cast(x, wide(x.dtype)), None
    for place in windows.places():
        at, guards = windows.inside(dims(shape)[-len(windows.sizes) :], place)
        part = _view(b, source, shape, at, guards, 0)
        summed = part if summed is None else b.pointwise("add", summed, part)
    assert summed is not None
    return b.cast(_divide(b, summed, windows, include_pad, divisor), x.dtype)


@lowers(*named("avg_pool2d_backward"), *named("avg_pool3d_backward"))
def avg_pool_backward(
    b: Lower, grad: Node, x: Node, kernel: Any, step: Any, pad: Any, ceil: bool, include_pad: bool,
    divisor: int | None = None,
) -> Node:  # fmt: skip
    floats(grad)
    windows = Windows.of(x.shape, grad.shape, kernel, step, pad)
    share = _divide(b, b.cast(grad, wide(grad.dtype)), windows, include_pad, divisor)
    return b.cast(_gathered(b, share, x.shape, windows), grad.dtype)


def _gathered(b: Lower, values: Node, shape: Any, windows: Windows, at: Node | None = None) -> Node:
    """The sum of what windows give the elements that they hold; of one element each where `at` says which."""
    own = dims(shape)
    summed = b.const(0, values.dtype, shape)
    for window, guards in windows.around(own[-len(windows.sizes) :]):
        part = _view(b, values, shape, window, guards, 0)
        if at is not None:
            chosen = _view(b, at, shape, window, guards, -1)
            mine = b.index(_flat(own[-len(windows.sizes) :], windows.sizes), shape)
            part = b.pointwise("where", b.pointwise("eq", chosen, mine), part, b.const(0, values.dtype, shape))
        summed = b.pointwise("add", summed, part)
    return summed


def _flat(at: Sequence[Index], sizes: Sequence[int]) -> Index:
    position: Index = 0
    for i, size in zip(at, sizes):
        position = position * size + i
    return position


def floats(x: Node) -> None:
    """Raise `NotLowered` for integers."""
    computed(x)
    if not x.dtype.is_floating_point:
        raise NotLowered("pooling of integers")


@lowers(*named("max_pool2d_with_indices"), *named("max_pool3d_with_indices"))
def max_pool(
    b: Lower, x: Node, kernel: Any, step: Any = (), pad: Any = (0,), dilation: Any = (1,), ceil: bool = False
) -> tuple[Node, Node]:
    """The largest element, the first of equal ones, and its position; NaN is larger than all."""
    floats(x)
    if any(value != 1 for value in dilation):
        raise NotLowered("pooling with dilation")
    shape = b.out_shape(0)
    windows = Windows.of(x.shape, shape, kernel, step, pad)
    own = dims(shape)[-len(windows.sizes) :]
    best = b.const(-float("inf"), x.dtype, shape)
    at = b.const(0, torch.int64, shape)
    for i, s, p, size in zip(own, windows.step, windows.pad, windows.sizes):  # where nothing is larger: the first
        first = b.pointwise("maximum", b.index(i * s - p, shape), b.const(0, torch.int64, shape))
        at = b.pointwise("add", b.pointwise("mul", at, b.const(size, torch.int64, shape)), first)
    for place in windows.places():
        where, guards = windows.inside(own, place)
        value = _view(b, x, shape, where, guards, -float("inf"))
        larger = b.pointwise("or", b.pointwise("gt", value, best), b.pointwise("isnan", value))
        best = b.pointwise("where", larger, value, best)
        at = b.pointwise("where", larger, b.index(_flat(where, windows.sizes), shape), at)
    return best, at


@lowers(*named("max_pool2d_with_indices_backward"), *named("max_pool3d_with_indices_backward"))
def max_pool_backward(
    b: Lower, grad: Node, x: Node, kernel: Any, step: Any, pad: Any, dilation: Any, ceil: bool, indices: Node
) -> Node:
    floats(grad)
    if any(value != 1 for value in dilation):
        raise NotLowered("pooling with dilation")
    windows = Windows.of(x.shape, grad.shape, kernel, step, pad)
    return b.cast(_gathered(b, b.cast(grad, wide(grad.dtype)), x.shape, windows, indices), grad.dtype)


@lowers(*named("_adaptive_avg_pool2d_backward"), *named("_adaptive_avg_pool3d_backward"))
def adaptive_avg_pool_backward(b: Lower, grad: Node, x: Node) -> Node:
    floats(grad)
    kernel = _even(x.shape[1:], grad.shape[1:])  # dimensions that aren't pooled are as windows of one element
    windows = Windows.of(x.shape, grad.shape, kernel, kernel, (0,))
    share = _divide(b, b.cast(grad, wide(grad.dtype)), windows, True, None)
    return b.cast(_gathered(b, share, x.shape, windows), grad.dtype)


@lowers(*named("_adaptive_avg_pool2d"), *named("_adaptive_avg_pool3d"))
def adaptive_avg_pool(b: Lower, x: Node, size: Any) -> Node:
    kernel = _even(x.shape[-len(size) :], b.out_shape()[-len(size) :])
    return avg_pool(b, x, kernel)


def _even(sizes: Sequence[Index], counts: Sequence[Index]) -> tuple[int, ...]:
    """The windows' size where all are alike."""
    if not all(isinstance(n, int) and isinstance(m, int) and m and n % m == 0 for n, m in zip(sizes, counts)):
        raise NotLowered("adaptive pooling by windows of different sizes")
    return tuple(n // m for n, m in zip(sizes, counts))  # type: ignore[operator, misc]
