"""Lowerings of reads and writes at positions that other tensors hold."""

from __future__ import annotations

from typing import Any

import torch

from ..ir.index import Index, contiguous_strides
from ..ir.nodes import Node, dims, gathered
from .registry import Lower, NotLowered, lowers, named


def position(b: Lower, index: Node, size: Index, shape: Any) -> Node:
    """Positions as int64 of this shape, counted from the end where negative."""
    index = b.expand(b.cast(index, torch.int64), shape)
    negative = b.pointwise("lt", index, b.const(0, torch.int64, shape))
    wrapped = b.pointwise("add", index, b.size_of(size, torch.int64, shape))
    return b.pointwise("where", negative, wrapped, index)


def _positive(b: Lower, index: Node, shape: Any) -> Node:
    """Positions that eager refuses when negative."""
    return b.expand(b.cast(index, torch.int64), shape)


@lowers(*named("gather"))
def gather(b: Lower, x: Node, dim: int, index: Node, sparse_grad: bool = False) -> Node:
    shape = index.shape
    if not x.shape or not shape:
        raise NotLowered("gather of a number")
    dim %= len(x.shape)
    at: list[Index] = list(dims(shape))
    at[dim] = gathered(0, x.shape[dim])
    return b.node("gather", (x, _positive(b, index, shape)), shape, x.dtype, index=tuple(at))


@lowers(*named("embedding"))
def embedding(b: Lower, weight: Node, index: Node, *_: Any, **__: Any) -> Node:
    shape = (*index.shape, *weight.shape[1:])
    own = dims(shape)
    at = b.view(b.cast(index, torch.int64), shape, own[: len(index.shape)])
    inner = (gathered(0, weight.shape[0]), *own[len(index.shape) :])
    return b.node("gather", (weight, at), shape, weight.dtype, index=inner)


def _plan(b: Lower, x: Node, indices: list[Any]) -> tuple[tuple[Index, ...], list[Node], tuple[Index, ...]]:
    """What advanced indexing reads: the result's shape, the positions in it, and the index into `x`."""
    indices = [*indices, *[None] * (len(x.shape) - len(indices))]
    given = [d for d, index in enumerate(indices) if index is not None]
    if any(indices[d].dtype in (torch.bool, torch.uint8) for d in given):
        raise NotLowered("indexing with a mask")
    if len(indices) != len(x.shape) or not given:
        raise NotLowered("indexing with a mask")
    block: tuple[Index, ...] = broadcast([indices[d].shape for d in given])
    together = given == list(range(given[0], given[-1] + 1))
    before = [d for d in range(given[0]) if indices[d] is None] if together else []
    after = [d for d in range(len(x.shape)) if indices[d] is None and d not in before]
    shape = (*[x.shape[d] for d in before], *block, *[x.shape[d] for d in after])
    own = dims(shape)
    middle = own[len(before) : len(before) + len(block)]
    places = dict(zip([*before, *after], [*own[: len(before)], *own[len(before) + len(block) :]]))
    at: list[Index] = []
    positions: list[Node] = []
    for d, index in enumerate(indices):
        if index is None:
            at.append(places[d])
            continue
        inner = middle[len(middle) - len(index.shape) :]
        read = b.view(index, shape, [0 if size == 1 else i for size, i in zip(index.shape, inner)])
        at.append(gathered(len(positions), x.shape[d]))
        positions.append(position(b, read, x.shape[d], shape))
    return shape, positions, tuple(at)


def broadcast(shapes: list[Any]) -> tuple[Index, ...]:
    """The shape that these broadcast to."""
    result: list[Index] = []
    for shape in shapes:
        for place in range(1, len(shape) + 1):
            size = shape[-place]
            if place > len(result):
                result.insert(0, size)
            elif result[-place] == 1:
                result[-place] = size
    return tuple(result)


@lowers(*named("index"))
def index(b: Lower, x: Node, indices: list[Any]) -> Node:
    shape, positions, at = _plan(b, x, indices)
    if 0 in shape:
        return b.const(0, x.dtype, shape)
    return b.node("gather", (x, *positions), shape, x.dtype, index=at)


@lowers(*named("index_put"))
def index_put(b: Lower, x: Node, indices: list[Any], values: Node, accumulate: bool = False) -> Node:
    given = [i for i in indices if i is not None]
    if len(given) == 1 and given[0].dtype == torch.bool and not values.shape and not accumulate:
        mask = given[0]
        if indices.index(mask) == 0 and mask.shape == x.shape[: len(mask.shape)]:
            spread = b.view(mask, x.shape, dims(x.shape)[: len(mask.shape)])
            return b.pointwise("where", spread, b.expand(b.cast(values, x.dtype), x.shape), x)
    shape, positions, at = _plan(b, x, indices)
    return scatter_into(b, x, b.expand(values, shape), positions, at, "add" if accumulate else "set")


def scatter_into(b: Lower, x: Node, values: Node, positions: list[Node], at: Any, kind: str) -> Node:
    """A scatter node. Sums of half types are kept in fp32 until all are in."""
    if 0 in values.shape:
        return x
    wide = x.dtype
    if kind == "add" and x.dtype in (torch.float16, torch.bfloat16):
        wide = torch.float32
    if kind == "add" and wide in (torch.bool, torch.int8, torch.uint8, torch.int16):
        raise NotLowered("adding small integers at positions")
    # The copy that is written into: memory that nothing else reads, whatever else has the same values.
    b.copies += 1
    base = b.node("layout", (b.cast(x, wide),), x.shape, wide, strides=contiguous_strides(x.shape), copy=-b.copies)
    made = b.node("scatter", (base, b.cast(values, wide), *positions), x.shape, wide, index=tuple(at), kind=kind)
    return b.cast(made, x.dtype)


def _along(b: Lower, x: Node, dim: int, index: Node, values: Node, kind: str) -> Node:
    if not x.shape or not index.shape:
        raise NotLowered("scatter into a number")
    dim %= len(x.shape)
    at: list[Index] = list(dims(index.shape))
    at[dim] = gathered(0, x.shape[dim])
    cut = b.view(values, index.shape, dims(index.shape))
    return scatter_into(b, x, cut, [_positive(b, index, index.shape)], at, kind)


@lowers(*named("scatter_add"))
def scatter_add(b: Lower, x: Node, dim: int, index: Node, source: Node) -> Node:
    return _along(b, x, dim, index, source, "add")


@lowers(torch.ops.aten.scatter.src, torch.ops.aten.scatter.value)
def scatter(b: Lower, x: Node, dim: int, index: Node, source: Any) -> Node:
    values = source if isinstance(source, Node) else b.const(source, x.dtype, index.shape)
    return _along(b, x, dim, index, values, "set")


@lowers(*named("embedding_dense_backward"))
def embedding_dense_backward(b: Lower, grad: Node, index: Node, rows: Any, padding: int, scale_by_freq: bool) -> Node:
    if scale_by_freq:
        raise NotLowered("gradients scaled by frequency")
    own = dims(grad.shape)
    at = b.view(b.cast(index, torch.int64), grad.shape, own[: len(index.shape)])
    values = grad
    if padding >= 0:
        kept = b.pointwise("ne", at, b.const(padding, torch.int64, grad.shape))
        values = b.pointwise("where", kept, grad, b.const(0, grad.dtype, grad.shape))
    shape = b.out_shape()
    base = b.const(0, grad.dtype, shape)
    inner = (gathered(0, shape[0]), *own[len(index.shape) :])
    return scatter_into(b, base, values, [at], inner, "add")
