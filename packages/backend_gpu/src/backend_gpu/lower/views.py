"""Lowerings of what moves elements without computing: views, slices, concatenation, padding."""

from __future__ import annotations

from typing import Any

import torch

from ..ir.index import Index, bounds, div, flatten, is_below, mod, total, unflatten
from ..ir.nodes import Guard, Node, dims
from .registry import Lower, NotLowered, lowers, named, prims


def reshape(b: Lower, x: Node, shape: tuple[Index, ...]) -> Node:
    """The elements in the same row-major order."""
    if 0 in shape:
        return b.const(0, x.dtype, shape)
    return b.view(x, shape, unflatten(flatten(dims(shape), shape), x.shape))


@lowers(*named("view"), *named("_unsafe_view"), *named("reshape"), *named("unsqueeze"), *named("squeeze"))
def view(b: Lower, x: Node, *arguments: Any) -> Node:
    if arguments and isinstance(arguments[0], torch.dtype):
        if arguments[0].itemsize != x.dtype.itemsize:
            raise NotLowered("a view as a dtype of another size")
        return b.node("bitcast", (x,), x.shape, arguments[0])
    return reshape(b, x, b.out_shape())


@lowers(*named("permute"))
def permute(b: Lower, x: Node, order: list[int]) -> Node:
    ndim = len(x.shape)
    order = [axis % ndim for axis in order]
    own = dims([x.shape[axis] for axis in order])
    return b.view(x, [x.shape[axis] for axis in order], [own[order.index(d)] for d in range(ndim)])


@lowers(*named("t"))
def t(b: Lower, x: Node) -> Node:
    return permute(b, x, list(reversed(range(len(x.shape)))))


@lowers(*named("transpose"))
def transpose(b: Lower, x: Node, first: int, second: int) -> Node:
    order = list(range(len(x.shape)))
    if not order:
        return x
    order[first], order[second] = order[second], order[first]
    return permute(b, x, order)


@lowers(*named("expand"))
def expand(b: Lower, x: Node, *_: Any, **__: Any) -> Node:
    return b.expand(x, b.out_shape())


@lowers(*named("broadcast_in_dim", prims))
def broadcast_in_dim(b: Lower, x: Node, shape: Any, axes: list[int]) -> Node:
    own = dims(b.out_shape())
    return b.view(x, b.out_shape(), [0 if size == 1 else own[axis] for size, axis in zip(x.shape, axes)])


def _start(start: Any, size: Index) -> Index:
    if start is None:
        return 0
    if isinstance(start, int) and start < 0:
        start = start + size
    low, _ = bounds(start)
    if isinstance(start, int) and isinstance(size, int):
        return max(0, min(start, size))
    if low < 0:
        raise NotLowered("a slice whose start may be negative")
    return start


@lowers(*named("slice"))
def slice_(b: Lower, x: Node, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Node:
    dim %= len(x.shape)
    own = list(dims(b.out_shape()))
    index: list[Index] = list(own)
    index[dim] = _start(start, x.shape[dim]) + own[dim] * step
    return b.view(x, b.out_shape(), index)


@lowers(*named("select"))
def select(b: Lower, x: Node, dim: int, at: Any) -> Node:
    dim %= len(x.shape)
    if isinstance(at, int) and at < 0:
        at = at + x.shape[dim]
    if not is_below(at, x.shape[dim]):
        raise NotLowered("an index that isn't known to be inside")
    along, pieces = b.joined.get(x, (-1, []))
    if along == dim and all(isinstance(size, int) for size in (at, *(piece.shape[dim] for piece in pieces))):
        while at >= pieces[0].shape[dim]:
            at, pieces = at - pieces[0].shape[dim], pieces[1:]
        x = pieces[0]
    own: list[Index] = list(dims(b.out_shape()))
    return b.view(x, b.out_shape(), [*own[:dim], at, *own[dim:]])


@lowers(*named("as_strided"))
def as_strided(b: Lower, x: Node, size: Any, stride: Any, offset: Any = None) -> Node:
    """Only of what lies in memory row by row, where positions are known."""
    fake = b.fake_arguments[0]
    if not fake.is_contiguous() or fake.storage_offset() != 0:
        raise NotLowered("as_strided of what isn't contiguous")
    shape = b.out_shape()
    position: Index = offset or 0
    for i, step in zip(dims(shape), stride):
        position = position + i * step
    if 0 in shape:
        return b.const(0, x.dtype, shape)
    if not is_below(position, x.numel):
        raise NotLowered("as_strided beyond its tensor")
    return b.view(x, shape, unflatten(position, x.shape))


@lowers(*named("flip"), *named("rev", prims))
def flip(b: Lower, x: Node, axes: list[int]) -> Node:
    axes = [axis % len(x.shape) for axis in axes] if x.shape else []
    own = dims(x.shape)
    return b.view(x, x.shape, [size - 1 - i if d in axes else i for d, (i, size) in enumerate(zip(own, x.shape))])


@lowers(*named("diagonal"))
def diagonal(b: Lower, x: Node, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Node:
    dim1, dim2 = dim1 % len(x.shape), dim2 % len(x.shape)
    own: list[Index] = list(dims(b.out_shape()))
    along = own.pop()
    index: list[Index] = []
    for d in range(len(x.shape)):
        index.append(along + max(-offset, 0) if d == dim1 else along + max(offset, 0) if d == dim2 else own.pop(0))
    return b.view(x, b.out_shape(), index)


@lowers(*named("unfold"))
def unfold(b: Lower, x: Node, dim: int, size: int, step: int) -> Node:
    if not x.shape:
        raise NotLowered("unfold of a number")
    dim %= len(x.shape)
    own: list[Index] = list(dims(b.out_shape()))
    within = own.pop()
    own[dim] = own[dim] * step + within
    return b.view(x, b.out_shape(), own)


@lowers(*named("repeat"))
def repeat(b: Lower, x: Node, _: Any) -> Node:
    own = dims(b.out_shape())[len(b.out_shape()) - len(x.shape) :]
    if 0 in x.shape:
        return b.const(0, x.dtype, b.out_shape())
    return b.view(x, b.out_shape(), [mod(i, size) for i, size in zip(own, x.shape)])


@lowers(*named("split"), *named("split_with_sizes"))
def split(b: Lower, x: Node, sizes: Any, dim: int = 0) -> list[Node]:
    dim %= len(x.shape)
    pieces: list[Node] = []
    start: Index = 0
    for position in range(len(b.val)):
        shape = b.out_shape(position)
        index: list[Index] = list(dims(shape))
        index[dim] = index[dim] + start
        pieces.append(b.view(x, shape, index))
        start = start + shape[dim]
    return pieces


@lowers(*named("unbind"))
def unbind(b: Lower, x: Node, dim: int = 0) -> list[Node]:
    dim %= len(x.shape)
    pieces = []
    for position in range(len(b.val)):
        own: list[Index] = list(dims(b.out_shape(position)))
        pieces.append(b.view(x, b.out_shape(position), [*own[:dim], position, *own[dim:]]))
    return pieces


@lowers(*named("cat"))
def cat(b: Lower, tensors: list[Node], dim: int = 0) -> Node:
    """A chain of choices by the index along `dim`, each piece read where it is."""
    shape, dtype = b.out_shape(), b.out_dtype
    pieces = [node for node in tensors if len(node.shape) == len(shape)]  # the legacy of empty 1-d tensors
    dim %= len(shape)
    own = dims(shape)
    result: Node | None = None
    start: Index = total(p.shape[dim] for p in pieces)
    for piece in reversed(pieces):
        size = piece.shape[dim]
        start = start - size
        if size == 0:
            continue
        index: list[Index] = list(own)
        index[dim] = own[dim] - start
        guard = (own[dim], start, start + size)
        read = b.view(b.cast(piece, dtype), shape, index, [guard], None)
        if result is None:
            result = read
        else:
            below = b.pointwise("lt", b.index(own[dim], shape), b.index(start + size, shape))
            result = b.pointwise("where", below, read, result)
    if result is None:
        return b.const(0, dtype, shape)
    b.joined[result] = dim, [b.cast(piece, dtype) for piece in pieces]
    return result


@lowers(*named("constant_pad_nd"))
def constant_pad_nd(b: Lower, x: Node, pad: list[int], value: Any = 0) -> Node:
    own = dims(b.out_shape())
    index: list[Index] = list(own)
    guards = []
    for position in range(len(pad) // 2):
        before, after = pad[2 * position], pad[2 * position + 1]
        d = len(own) - 1 - position
        if before or after:
            index[d] = own[d] - before
            guards.append((own[d], before, x.shape[d] + before))
    if 0 in x.shape:
        return b.const(value, x.dtype, b.out_shape())
    return b.view(x, b.out_shape(), index, guards, value)


def _scattered(b: Lower, x: Node, read: Node, inside: list[tuple[Any, Index, Index]], step: int, first: Index) -> Node:
    """`read` where the guards hold and the index is a multiple of the step from the first, else `x`."""
    condition: Node | None = None
    for expr, low, high in inside:
        value = b.index(expr, x.shape)
        at_least = b.pointwise("ge", value, b.index(low, x.shape))
        below = b.pointwise("lt", value, b.index(high, x.shape))
        part = b.pointwise("and", at_least, below)
        if step != 1:
            # Written so that the remainder is of a number that isn't negative where it counts.
            rest = b.index(mod(expr - first, step), x.shape)
            part = b.pointwise("and", part, b.pointwise("eq", rest, b.const(0, torch.int64, x.shape)))
        condition = part if condition is None else b.pointwise("and", condition, part)
    assert condition is not None
    return b.pointwise("where", condition, read, x)


@lowers(*named("slice_scatter"))
def slice_scatter(
    b: Lower, x: Node, source: Node, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Node:
    dim %= len(x.shape)
    source = b.cast(source, x.dtype)
    first = _start(start, x.shape[dim])
    count = source.shape[dim]
    own = dims(x.shape)
    if 0 in source.shape:
        return x
    index: list[Index] = list(own)
    index[dim] = div(own[dim] - first, step)
    guard = (own[dim], first, first + (count - 1) * step + 1)
    read = b.view(source, x.shape, index, [guard], None)
    if step == 1 and first == 0 and count == x.shape[dim]:
        return read
    return _scattered(b, x, read, [guard], step, first)


@lowers(*named("select_scatter"))
def select_scatter(b: Lower, x: Node, source: Node, dim: int, at: Any) -> Node:
    dim %= len(x.shape)
    if isinstance(at, int) and at < 0:
        at = at + x.shape[dim]
    own = list(dims(x.shape))
    read = b.view(b.cast(source, x.dtype), x.shape, own[:dim] + own[dim + 1 :])
    return _scattered(b, x, read, [(own[dim], at, at + 1)], 1, at)


@lowers(*named("diagonal_scatter"))
def diagonal_scatter(b: Lower, x: Node, source: Node, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Node:
    dim1, dim2 = dim1 % len(x.shape), dim2 % len(x.shape)
    if 0 in source.shape:
        return x
    own = dims(x.shape)
    along = own[dim1] - max(-offset, 0)
    on: list[Guard] = [(own[dim2] - own[dim1], offset, offset + 1), (along, 0, source.shape[-1])]
    others = [i for d, i in enumerate(own) if d not in (dim1, dim2)]
    read = b.view(b.cast(source, x.dtype), x.shape, [*others, along], on, None)
    return _scattered(b, x, read, on, 1, 0)


@lowers(*named("expand_copy"), *named("expand_as"))
def expand_copy(b: Lower, x: Node, *_: Any, **__: Any) -> Node:
    return b.expand(x, b.out_shape())


@lowers(*named("collapse_view", prims), *named("split_dim", prims))
def regroup(b: Lower, x: Node, *_: Any) -> Node:
    return reshape(b, x, b.out_shape())
