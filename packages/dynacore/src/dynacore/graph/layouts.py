"""Shapes and strides as torch lays out results: the arithmetic that the quick rules of `shapes` share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

#: what a quick rule answers for one result: shape, strides, dtype
Spec = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]


class Declined(Exception):
    """A quick rule doesn't cover this case; the operation is run on stand-ins instead."""


# -- sizes that only the graph's run tells ----------------------------------------------------------------------------
#
# Nothing can be decided on them. Shapes must hold for whatever they turn out to be, so what a shape depends on is left
# to the interpreter. Strides are worked out as for sizes above one: nobody is told them, and whether a tensor is
# contiguous is told only where it is for all sizes.


def registering(table: dict[str, Any]) -> Callable[[str], Callable[[Any], Any]]:
    """A decorator that puts a rule into `table`, under the names of the operations that it covers."""

    def named(names: str) -> Callable[[Any], Any]:
        def register(rule: Any) -> Any:
            table.update(dict.fromkeys(names.split(), rule))
            return rule

        return register

    return named


def computed(size: Any) -> bool:
    """Whether only the graph's run tells the size."""
    return type(size) is not int and getattr(size, "computed", False)


def is_zero(size: Any) -> bool:
    """Whether a size is 0, as far as strides go."""
    return not computed(size) and size == 0


def is_one(size: Any) -> bool:
    """Whether a size is 1, as far as strides go."""
    return not computed(size) and size == 1


def same(a: Any, b: Any) -> bool:
    """Whether two sizes or strides are equal, as far as strides go."""
    if computed(a):
        return a.surely_equals(b)
    return b.surely_equals(a) if computed(b) else a == b


def all_same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether sizes or strides are equal one by one, as far as strides go."""
    return len(a) == len(b) and all(map(same, a, b))


def below(a: Any, b: Any) -> bool:
    """Whether one stride is smaller than another."""
    if computed(a):
        return a.surely_divides(b)
    return not b.surely_divides(a) if computed(b) else a < b


# -- layouts ----------------------------------------------------------------------------------------------------------


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size if computed(size) else max(size, 1)
    return tuple(reversed(strides))


def channels_last(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a batch of images (or volumes) whose channels are innermost."""
    order = [1, *range(len(shape) - 1, 1, -1), 0]
    strides, step = [0] * len(shape), 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim] if computed(shape[dim]) else max(shape[dim], 1)
    return tuple(strides)


def packed(shape: Iterable[int], dtype: torch.dtype) -> Spec:
    """A contiguous result."""
    shape = tuple(shape)
    if any(map(is_zero, shape)):
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
            if computed(size) or computed(result[place]):
                result[place] = joined(result[place], size)
            elif size != 1:
                if result[place] not in (1, size):
                    raise Declined
                result[place] = size
    return tuple(result)


def joined(a: Any, b: Any) -> Any:
    """The size to which two sizes broadcast of which only the graph's run tells one: equal, or one of them is 1."""
    if type(a) is int and a == 1:
        return b
    if not (type(b) is int and b == 1 or a == b):
        raise Declined
    return a


def is_packed(x: torch.Tensor) -> bool:
    """Whether the strides are those of `packed`: dimensions of size one may have others in a contiguous tensor."""
    return all_same(x.stride(), contiguous(x.shape))


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
    same_shape = not number and all(all_same(t.shape, shape) for t in tensors)
    if same_shape:
        if all(t.is_contiguous() for t in tensors):
            return shape, contiguous(shape)
    else:
        shape = broadcast([t.shape for t in tensors])
    if any(map(is_zero, shape)):
        raise Declined
    if same_shape and len(shape) == 4 and all(t.is_contiguous(memory_format=torch.channels_last) for t in tensors):
        return shape, channels_last(shape)
    if same_shape and all(all_same(t.stride(), tensors[0].stride()) for t in tensors) and is_dense(tensors[0]):
        return shape, tensors[0].stride()
    return shape, ordered_strides(shape, [operand_strides(t, shape) for t in tensors])


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill the memory between the first and the last, each once."""
    if is_packed(tensor):
        return True
    step = 1
    rows = [(st, si) for st, si in zip(tensor.stride(), tensor.shape, strict=True) if not is_one(si)]
    for stride, size in sorted(rows, key=functools.cmp_to_key(by_stride)):
        if not same(stride, step):
            return False
        step *= size
    return True


def by_stride(a: tuple[Any, Any], b: tuple[Any, Any]) -> int:
    """The order of two dimensions, each (stride, size), from the innermost."""
    if same(a[0], b[0]):
        return 0 if same(a[1], b[1]) else -1 if below(a[1], b[1]) else 1
    return -1 if below(a[0], b[0]) else 1


def dense_like(x: torch.Tensor) -> tuple[int, ...]:
    """The strides of a new tensor laid out as `x` is."""
    return x.stride() if is_dense(x) else ordered_strides(x.shape, [x.stride()])


def operand_strides(tensor: torch.Tensor, shape: Sequence[int]) -> list[int]:
    """The tensor's strides over the common shape: 0 where it is repeated."""
    missing = len(shape) - tensor.dim()
    own = [
        0 if is_one(size) and not is_one(shape[missing + place]) else stride
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
        if is_zero(strides[a]) or is_zero(strides[b]):
            continue
        if not same(strides[a], strides[b]):
            return -1 if below(strides[a], strides[b]) else 1
        if not same(shape[a], shape[b]) and below(shape[b], shape[a]):
            return 1
    return 0
