"""Shapes and strides as torch lays out results: the arithmetic that the quick rules of `shapes` share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

#: what a quick rule answers for one result: shape, strides, dtype
Spec = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]


class Declined(Exception):
    """A quick rule doesn't cover this case; the operation is run on stand-ins instead."""


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def channels_last(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a batch of images (or volumes) whose channels are innermost."""
    order = [1, *range(len(shape) - 1, 1, -1), 0]
    strides, step = [0] * len(shape), 1
    for dim in order:
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def packed(shape: Iterable[int], dtype: torch.dtype) -> Spec:
    """A contiguous result."""
    shape = tuple(shape)
    if 0 in shape:
        raise Declined
    return shape, contiguous(shape), dtype


def dim_of(dim: int, ndim: int) -> int:
    """A dimension counted from the front; out of range is for the real call to report."""
    if type(dim) is not int or not -max(ndim, 1) <= dim < max(ndim, 1):
        raise Declined
    return dim % max(ndim, 1)


def broadcast(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The common shape of operands."""
    ndim = max(len(shape) for shape in shapes)
    result = [1] * ndim
    for shape in shapes:
        for place, size in enumerate(shape, ndim - len(shape)):
            if size != 1:
                if result[place] not in (1, size):
                    raise Declined
                result[place] = size
    return tuple(result)


def is_packed(x: torch.Tensor) -> bool:
    """Whether the strides are those of `packed`: dimensions of size one may have others in a contiguous tensor."""
    return x.stride() == contiguous(x.shape)


def suggests_channels_last(x: torch.Tensor) -> bool:
    """Whether torch takes the tensor for a batch of images (or volumes) whose channels are innermost."""
    if x.dim() not in (4, 5):
        return False
    shape, strides = x.shape, x.stride()
    smallest = 0
    if strides[1] == 0:
        return False
    for dim in (1, *range(x.dim() - 1, 1, -1), 0):
        if shape[dim] == 0 or strides[dim] < smallest or (dim == 0 and smallest == strides[1]):
            return False
        smallest = strides[dim] * max(shape[dim], 1)
    return True


def formatted(shape: Iterable[int], dtype: torch.dtype, *tensors: torch.Tensor) -> Spec:
    """A result with channels innermost if one of the tensors suggests that, else a contiguous one."""
    spec = packed(shape, dtype)
    if any(suggests_channels_last(x) for x in tensors):
        return spec[0], channels_last(spec[0]), dtype
    return spec


def pointwise(
    tensors: Sequence[torch.Tensor], dtype: torch.dtype | None = None, number: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of the result of an operation applied element by element, computed in `dtype`.

    `number` says that a number is an operand too: torch broadcasts it, and looks at the strides more closely.
    """
    if dtype is not None and any(t.dtype is not dtype and not is_dense(t) for t in tensors):
        raise Declined  # it is converted first, into another layout
    shape = tuple(tensors[0].shape)
    same_shape = not number and all(t.dim() == len(shape) and t.shape == shape for t in tensors)
    if same_shape:
        if all(t.is_contiguous() for t in tensors):
            return shape, contiguous(shape)
    else:
        shape = broadcast([t.shape for t in tensors])
    if 0 in shape:
        raise Declined
    if same_shape and len(shape) == 4 and all(t.is_contiguous(memory_format=torch.channels_last) for t in tensors):
        return shape, channels_last(shape)
    if same_shape and all(t.stride() == tensors[0].stride() for t in tensors) and is_dense(tensors[0]):
        return shape, tensors[0].stride()
    return shape, ordered_strides(shape, [operand_strides(t, shape) for t in tensors])


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill the memory between the first and the last, each once."""
    step = 1
    for stride, size in sorted((st, si) for st, si in zip(tensor.stride(), tensor.shape, strict=True) if si != 1):
        if stride != step:
            return False
        step *= size
    return True


def dense_like(x: torch.Tensor) -> tuple[int, ...]:
    """The strides of a new tensor laid out as `x` is."""
    return x.stride() if is_dense(x) else ordered_strides(x.shape, [x.stride()])


def operand_strides(tensor: torch.Tensor, shape: Sequence[int]) -> list[int]:
    """The tensor's strides over the common shape: 0 where it is repeated."""
    missing = len(shape) - tensor.dim()
    own = [
        0 if size == 1 and shape[missing + place] != 1 else stride
        for place, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True))
    ]
    return [0] * missing + own


def ordered_strides(shape: Sequence[int], operands: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Dense strides in the operands' order of dimensions; the first that tells two dimensions apart decides."""
    order = list(range(len(shape) - 1, -1, -1))
    for start in range(1, len(order)):
        place = start
        for other in range(start - 1, -1, -1):
            verdict = compare(order[other], order[place], shape, operands)
            if verdict > 0:
                order[other], order[place] = order[place], order[other]
                place = other
            elif verdict < 0:
                break
    strides, step = [0] * len(shape), 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def compare(a: int, b: int, shape: Sequence[int], operands: Sequence[Sequence[int]]) -> int:
    """Whether dimension `a` lies further out (1) or further in (-1) than `b`; 0 when no operand tells."""
    for strides in operands:
        if strides[a] == 0 or strides[b] == 0:
            continue
        if strides[a] != strides[b]:
            return -1 if strides[a] < strides[b] else 1
        if shape[a] > shape[b]:
            return 1
    return 0
