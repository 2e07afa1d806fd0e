"""Layouts of views, copies and new tensors where sizes vary.

Where nothing varies these operations are run on stand-ins, which is quick for them. A rule takes the operation's
arguments, with `sizes.Shaped` for tensors and `sizes.Size` for numbers that vary, and gives shape and strides of the
result, or several in a tuple or list. It needn't refuse what the operation refuses: that raises when the graph runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch

from ..reasons import Break
from .layouts import Declined, broadcast, computed, contiguous, dense_like, formatted, is_packed, registering, same
from .sizes import Shaped, Size, fixed, product

Layout = tuple[tuple, tuple]
VIEWS: dict[str, Callable[..., Any]] = {}

layout = registering(VIEWS)


def numbers(values: Sequence[Any]) -> tuple:
    """Numbers given one by one or in one sequence."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = values[0]
    if not all(type(value) in (int, Size) for value in values):
        raise Declined
    return tuple(values)


def place(dim: Any, ndim: int) -> int:
    """A dimension counted from the front."""
    if type(dim) is not int or not -ndim <= dim < ndim:
        raise Declined
    return dim % ndim


def new(shape: Sequence[Any]) -> Layout:
    """A contiguous tensor."""
    return tuple(shape), contiguous(shape)


# -- another shape ---------------------------------------------------------------------------------------------------


def completed(shape: tuple, numel: Any) -> tuple:
    """The shape with what -1 stands for."""
    if -1 not in [n for n in shape if type(n) is int]:
        if not any(map(computed, (*shape, numel))) and product(shape) != numel:
            raise Declined
        return shape
    at = next(i for i, n in enumerate(shape) if type(n) is int and n == -1)
    rest = product(shape[:at] + shape[at + 1 :])
    return (*shape[:at], numel.over(rest) if computed(rest) else numel // rest, *shape[at + 1 :])


def view_strides(x: Shaped, shape: tuple) -> tuple | None:
    """The strides under which the same memory has another shape; None if there are none."""
    if is_packed(x):  # type: ignore[arg-type]
        return contiguous(shape)
    strides: list[Any] = [0] * len(shape)
    at, step, size, viewed = len(shape) - 1, x.strides[-1], 1, 1
    for dim in range(x.dim() - 1, -1, -1):
        size = size * x.shape[dim]
        if dim and (x.shape[dim - 1] == 1 or x.strides[dim - 1] == size * step):
            continue
        while at >= 0 and (viewed < size or shape[at] == 1):
            strides[at] = viewed * step
            viewed = viewed * shape[at]
            at -= 1
        if viewed != size:
            return None
        if dim:
            step, size, viewed = x.strides[dim - 1], 1, 1
    return tuple(strides) if at == -1 else None


@layout("view _unsafe_view")
def view(x: Shaped, *sizes: Any) -> Layout:
    if len(sizes) == 1 and isinstance(sizes[0], torch.dtype):
        raise Declined
    shape = completed(numbers(sizes), x.numel())
    strides = view_strides(x, shape)
    if strides is None:
        raise Declined
    return shape, strides


@layout("reshape")
def reshape(x: Shaped, *sizes: Any) -> Layout:
    """A view where that is possible, else a copy."""
    shape = completed(numbers(sizes), x.numel())
    strides = view_strides(x, shape)
    return new(shape) if strides is None else (shape, strides)


@layout("view_as reshape_as")
def reshape_as(x: Shaped, other: Shaped) -> Layout:
    return reshape(x, other.shape)


@layout("flatten ravel")
def flatten(x: Shaped, start_dim: int = 0, end_dim: int = -1) -> Layout:
    if not x.dim():
        raise Declined
    first, last = place(start_dim, x.dim()), place(end_dim, x.dim())
    return reshape(x, (*x.shape[:first], product(x.shape[first : last + 1]), *x.shape[last + 1 :]))


@layout("unflatten")
def unflatten(x: Shaped, dim: int, sizes: Any) -> Layout:
    dim = place(dim, x.dim())
    inner = completed(numbers(sizes), x.shape[dim])
    return reshape(x, (*x.shape[:dim], *inner, *x.shape[dim + 1 :]))


# -- the same elements in another order ------------------------------------------------------------------------------


def picked(x: Shaped, order: Sequence[int]) -> Layout:
    """Dimensions in this order."""
    return tuple([x.shape[d] for d in order]), tuple([x.strides[d] for d in order])


@layout("permute")
def permute(x: Shaped, *dims: Any) -> Layout:
    return picked(x, [place(d, x.dim()) for d in numbers(dims)])


@layout("transpose swapaxes swapdims")
def transpose(x: Shaped, a: int, b: int) -> Layout:
    order = list(range(x.dim()))
    a, b = place(a, x.dim()), place(b, x.dim())
    order[a], order[b] = order[b], order[a]
    return picked(x, order)


@layout("t")
def t(x: Shaped) -> Layout:
    return picked(x, range(x.dim() - 1, -1, -1))


@layout("movedim moveaxis")
def movedim(x: Shaped, source: Any, destination: Any) -> Layout:
    sources = [place(d, x.dim()) for d in ((source,) if type(source) is int else source)]
    targets = [place(d, x.dim()) for d in ((destination,) if type(destination) is int else destination)]
    rest = iter([d for d in range(x.dim()) if d not in sources])
    moved = dict(zip(targets, sources, strict=True))
    return picked(x, [moved[d] if d in moved else next(rest) for d in range(x.dim())])


@layout("getattr")
def attribute(x: Shaped, name: str) -> Layout:
    """`x.T`, `x.mT` and what else is spelled as an attribute."""
    if name == "mT" or name in ("T", "mH", "H") and x.dim() == 2 and not x.dtype.is_complex:
        return transpose(x, -1, -2)
    if name == "T":
        return t(x)
    if name == "data" or name == "real" and not x.dtype.is_complex:
        return x.shape, x.strides
    raise Declined


# -- dimensions of size one ------------------------------------------------------------------------------------------


@layout("unsqueeze")
def unsqueeze(x: Shaped, dim: int) -> Layout:
    dim = place(dim, x.dim() + 1)
    step = x.shape[dim] * x.strides[dim] if dim < x.dim() else 1
    return (*x.shape[:dim], 1, *x.shape[dim:]), (*x.strides[:dim], step, *x.strides[dim:])


@layout("squeeze")
def squeeze(x: Shaped, *dims: Any) -> Layout:
    chosen = {place(d, x.dim()) for d in numbers(dims)} if dims else range(x.dim())
    return picked(x, [d for d in range(x.dim()) if d not in chosen or x.shape[d] != 1])


@layout("expand broadcast_to")
def expand(x: Shaped, *sizes: Any) -> Layout:
    shape, strides = list(numbers(sizes)), [0] * len(numbers(sizes))
    missing = len(shape) - x.dim()
    for at in range(len(shape) - 1, -1, -1):
        own: Any = x.shape[at - missing] if at >= missing else 1
        beyond: Any = shape[at + 1] * strides[at + 1] if at + 1 < len(shape) else 1
        step = x.strides[at - missing] if at >= missing else beyond
        if type(shape[at]) is int and shape[at] == -1:
            shape[at] = own
        strides[at] = step if same(own, shape[at]) else 0
    return tuple(shape), tuple(strides)


@layout("expand_as")
def expand_as(x: Shaped, other: Shaped) -> Layout:
    return expand(x, other.shape)


# -- parts -----------------------------------------------------------------------------------------------------------


def bound(value: Any, size: Any, default: Any) -> Any:
    """One end of a slice, between 0 and the size."""
    if value is None:
        return default
    if computed(value) or computed(size):
        if value < 0:
            return size - size.smaller(-value)
        return value.smaller(size) if type(value) is Size else size.smaller(value)
    if value < 0:
        value = value + size
        return value if value >= 0 else 0
    return value if value <= size else size


def sliced(x: Shaped, dim: int, part: slice) -> Layout:
    """`x[..., part, ...]` along one dimension."""
    size, step = x.shape[dim], 1 if part.step is None else part.step
    if type(step) is not int or step < 1:
        raise Declined
    if any(type(end) not in (int, Size, type(None)) for end in (part.start, part.stop)):
        raise Declined
    start, stop = bound(part.start, size, 0), bound(part.stop, size, size)
    length = stop - start
    if computed(length):
        length = length.larger(0)
    elif length < 0:
        length = 0
    if step > 1:
        length = (length + step - 1) // step
    strides = (*x.strides[:dim], x.strides[dim] * step, *x.strides[dim + 1 :])
    return (*x.shape[:dim], length, *x.shape[dim + 1 :]), strides


def indexed(x: Shaped, index: Any, found: Sequence[Any], takes: Callable[[Any], int]) -> Layout:
    """Numbers, slices, None and Ellipsis around tensors that stand side by side, which pick elements.

    These give the dimensions `found`; `takes` says of how many dimensions each is.
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    plain = (int, slice, type(None), type(Ellipsis))
    picks = [type(part) not in plain for part in parts]
    named = sum(takes(part) if pick else part is not None and part is not Ellipsis for part, pick in zip(parts, picks))
    missing = [slice(None)] * (x.dim() - named)
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    parts[at : at + 1] = missing
    shape: list[Any] = []
    steps: list[Any] = []
    dim, groups, before = 0, 0, False
    for part in parts:
        pick = type(part) not in plain
        if pick:
            groups += not before
            shape += [] if before else found
            dim += takes(part)
        elif part is None:
            shape.append(1)
        else:
            if type(part) is slice:
                lengths, strides = sliced(x, dim, part)
                shape.append(lengths[dim])
                steps.append(strides[dim])
            dim += 1
        before = pick or (before and type(part) is int)
    # Else the result is laid out in another order.
    if groups != 1 or dim != x.dim() or not all(a is b or a >= b for a, b in pairwise(steps)):
        raise Declined
    return new(shape)


def picked_by(index: Any) -> Layout:
    """What tensors of integers, and lists of numbers, in an index give together."""
    parts = index if isinstance(index, tuple) else (index,)
    shapes = []
    for part in parts:
        if type(part) is list and all(type(n) is int for n in part):
            shapes.append((len(part),))
        elif isinstance(part, torch.Tensor):
            if part.dtype not in (torch.int64, torch.int32) or not part.dim() or not is_packed(part):
                raise Declined
            shapes.append(part.shape)
    return new(broadcast(shapes))


@layout("getitem __getitem__")
def getitem(x: Shaped, index: Any) -> Layout:
    """Numbers, slices, None and Ellipsis; tensors and lists of numbers among them."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(type(part) is list or isinstance(part, torch.Tensor) for part in parts):
        return indexed(x, index, picked_by(index)[0], lambda part: 1)
    if any(type(part) not in (int, Size, slice, type(None), type(Ellipsis)) for part in parts):
        raise Declined
    named = sum(part is not None and part is not Ellipsis for part in parts)
    if Ellipsis in [part for part in parts if type(part) is type(Ellipsis)]:
        at = next(i for i, part in enumerate(parts) if part is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (x.dim() - named)
    shape: list[Any] = []
    strides: list[Any] = []
    dim = 0
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(x.shape[dim] * x.strides[dim] if dim < x.dim() else 1)
            continue
        if type(part) is slice:
            sizes, steps = sliced(x, dim, part)
            shape.append(sizes[dim])
            strides.append(steps[dim])
        dim += 1
    return (*shape, *x.shape[dim:]), (*strides, *x.strides[dim:])


@layout("select")
def select(x: Shaped, dim: int, index: Any) -> Layout:
    dim = place(dim, x.dim())
    return picked(x, [d for d in range(x.dim()) if d != dim])


@layout("narrow")
def narrow(x: Shaped, dim: int, start: Any, length: Any) -> Layout:
    dim = place(dim, x.dim())
    if type(length) not in (int, Size):
        raise Declined
    return (*x.shape[:dim], length, *x.shape[dim + 1 :]), x.strides


@layout("unfold")
def unfold(x: Shaped, dim: int, size: int, step: int) -> Layout:
    """A window that slides along a dimension."""
    dim = place(dim, x.dim())
    length = (x.shape[dim] - size) // step + 1
    shape = (*x.shape[:dim], length, *x.shape[dim + 1 :], size)
    return shape, (*x.strides[:dim], x.strides[dim] * step, *x.strides[dim + 1 :], x.strides[dim])


@layout("diagonal")
def diagonal(x: Shaped, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Layout:
    a, b = place(dim1, x.dim()), place(dim2, x.dim())
    if type(offset) is not int or offset != 0 or a == b:
        raise Declined
    shape, strides = picked(x, [d for d in range(x.dim()) if d not in (a, b)])
    rows, columns = x.shape[a], x.shape[b]
    return (*shape, rows if rows <= columns else columns), (*strides, x.strides[a] + x.strides[b])


@layout("as_strided")
def as_strided(x: Shaped, size: Any, stride: Any, storage_offset: Any = None) -> Layout:
    return numbers((size,)), numbers((stride,))


@layout("meshgrid")
def meshgrid(*tensors: Any, indexing: str = "ij") -> list[Layout]:
    """Each along a dimension of its own."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    if any(x.dim() != 1 for x in tensors) or indexing not in ("ij", "xy") or len(tensors) < 2:
        raise Declined
    order = list(range(len(tensors)))
    if indexing == "xy":
        order[:2] = [1, 0]
    shape = tuple([tensors[i].shape[0] for i in order])
    return [(shape, tuple([x.strides[0] if k == i else 0 for k in order])) for i, x in enumerate(tensors)]


@layout("tensor_split")
def tensor_split(x: Shaped, parts: Any, dim: int = 0) -> tuple[Layout, ...]:
    """As many pieces of about one size, or cut at these places."""
    dim = place(dim, x.dim())
    if type(parts) is int and parts > 0:
        size, rest = x.shape[dim] // parts, fixed(x.shape[dim] % parts)
        return pieces(x, dim, [size + 1] * rest + [size] * (parts - rest))
    cuts = numbers((parts,))
    ends = zip((0, *cuts), (*cuts, x.shape[dim]), strict=True)
    return tuple([sliced(x, dim, slice(start, end)) for start, end in ends])


@layout("hsplit")
def hsplit(x: Shaped, parts: Any) -> tuple[Layout, ...]:
    return tensor_split(x, parts, 0 if x.dim() == 1 else 1)


@layout("vsplit")
def vsplit(x: Shaped, parts: Any) -> tuple[Layout, ...]:
    return tensor_split(x, parts, 0)


@layout("dsplit")
def dsplit(x: Shaped, parts: Any) -> tuple[Layout, ...]:
    return tensor_split(x, parts, 2)


def pieces(x: Shaped, dim: int, lengths: Sequence[Any]) -> tuple[Layout, ...]:
    return tuple([((*x.shape[:dim], n, *x.shape[dim + 1 :]), x.strides) for n in lengths])


@layout("split")
def split(x: Shaped, sizes: Any, dim: int = 0) -> tuple[Layout, ...]:
    """Pieces of one size, or of these."""
    dim = place(dim, x.dim())
    if type(sizes) in (tuple, list):
        return pieces(x, dim, numbers(sizes))
    if type(sizes) not in (int, Size):
        raise Declined
    whole, rest = fixed(x.shape[dim] // sizes), x.shape[dim] % sizes
    return pieces(x, dim, [sizes] * whole + ([rest] if rest != 0 or not whole else []))


@layout("chunk")
def chunk(x: Shaped, chunks: int, dim: int = 0) -> tuple[Layout, ...]:
    dim = place(dim, x.dim())
    if type(chunks) is not int or chunks < 1:
        raise Declined
    size = (x.shape[dim] + chunks - 1) // chunks
    if size * chunks == x.shape[dim]:
        return pieces(x, dim, [size] * chunks)
    return split(x, size, dim)


@layout("unbind")
def unbind(x: Shaped, dim: int = 0) -> tuple[Layout, ...]:
    dim = place(dim, x.dim())
    return (select(x, dim, 0),) * fixed(x.shape[dim])


# -- copies ----------------------------------------------------------------------------------------------------------


@layout("detach alias view_as_real")
def as_it_is(x: Shaped) -> Layout:
    return x.shape, x.strides


@layout("clone to type type_as float double half bfloat16 int long short bool byte char cpu cuda flip roll")
def copied(x: Shaped, *args: Any, **named: Any) -> Layout:
    """A tensor laid out as this one is, without gaps."""
    if named.get("memory_format") not in (None, torch.preserve_format):
        raise Declined
    return x.shape, dense_like(x)  # type: ignore[arg-type]


@layout("contiguous")
def made_contiguous(x: Shaped, memory_format: Any = torch.contiguous_format) -> Layout:
    if memory_format is not torch.contiguous_format:
        raise Declined
    if x.is_contiguous():
        return x.shape, x.strides
    if any(map(computed, x.shape)):
        raise Break("host-value-branch", "whether the tensor is contiguous")
    return new(x.shape)


@layout("repeat_interleave")
def repeat_interleave(x: Shaped, repeats: Any, dim: Any = None, *, output_size: Any = None) -> Layout:
    if type(repeats) not in (int, Size) or dim is None:
        raise Declined
    dim = place(dim, x.dim())
    return new((*x.shape[:dim], x.shape[dim] * repeats, *x.shape[dim + 1 :]))


@layout("repeat")
def repeat(x: Shaped, *sizes: Any) -> Layout:
    times = numbers(sizes)
    shape = (1,) * (len(times) - x.dim()) + x.shape
    return new([n * size for n, size in zip(times, shape, strict=True)])


@layout("pad")
def pad(x: Shaped, widths: Any, mode: str = "constant", value: Any = None) -> Layout:
    """Padding with a constant."""
    if mode != "constant" or len(widths) % 2 or len(widths) > 2 * x.dim():
        raise Declined
    shape = list(x.shape)
    for pair in range(len(widths) // 2):
        shape[-1 - pair] = shape[-1 - pair] + widths[2 * pair] + widths[2 * pair + 1]
    return formatted(shape, x.dtype, x)[:2]  # type: ignore[arg-type]


@layout("interpolate")
def interpolate(
    x: Shaped, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
    recompute_scale_factor: Any = None, antialias: bool = False,
) -> Layout:  # fmt: skip
    """Images and sequences made larger or smaller, by whole factors or to a given size."""
    ndim = x.dim() - 2
    if recompute_scale_factor or antialias or ndim not in (1, 2, 3):
        raise Declined
    if size is not None:
        places = numbers((size,)) * ndim if type(size) in (int, Size) else numbers((size,))
    else:
        scales = (scale_factor,) * ndim if isinstance(scale_factor, (int, float)) else scale_factor
        places = tuple([scaled(n, scale) for n, scale in zip(x.shape[2:], scales, strict=True)])
    return formatted((*x.shape[:2], *places), x.dtype, x)[:2]  # type: ignore[arg-type]


def scaled(n: Any, scale: float) -> Any:
    """`floor(n * scale)` where that is exact in integers."""
    above, below = float(scale).as_integer_ratio()
    if scale <= 0 or below > 1024:
        raise Declined
    return n * above // below if below > 1 else n * above


# -- new tensors -----------------------------------------------------------------------------------------------------


@layout("zeros ones empty rand randn")
def factory(*sizes: Any, size: Any = None, **named: Any) -> Layout:
    return new(numbers((size,) if size is not None else sizes))


@layout("full")
def full(size: Any, fill_value: Any, **named: Any) -> Layout:
    return new(numbers((size,)))


@layout("new_zeros new_ones new_empty")
def new_factory(x: Shaped, *sizes: Any, size: Any = None, **named: Any) -> Layout:
    return factory(*sizes, size=size)


@layout("new_full")
def new_full(x: Shaped, size: Any, fill_value: Any, **named: Any) -> Layout:
    return new(numbers((size,)))


@layout("randint")
def randint(*arguments: Any, size: Any = None, **named: Any) -> Layout:
    return new(numbers((arguments[-1] if size is None else size,)))


@layout("eye")
def eye(n: Any, m: Any = None, **named: Any) -> Layout:
    return new(numbers((n, n if m is None else m)))


@layout("arange")
def arange(*bounds: Any, start: Any = 0, end: Any = None, step: Any = 1, **named: Any) -> Layout:
    """`arange` of integers."""
    if len(bounds) == 1:
        end = bounds[0]
    elif bounds:
        start, end, step = (*bounds, step)[:3]
    start, end, step = (int(n) if type(n) is float and n.is_integer() else n for n in (start, end, step))
    if type(step) is not int or step == 0 or any(type(n) not in (int, Size) for n in (start, end)):
        raise Declined
    if step < 0:
        start, end, step = end, start, -step
    length = end - start if step == 1 else (end - start + step - 1) // step
    return new((length,))  # a negative one is an error


@layout("linspace")
def linspace(start: Any, end: Any, steps: Any, **named: Any) -> Layout:
    return new(numbers((steps,)))


@layout("sum mean amax amin any all argmax argmin prod")
def reduced(x: Shaped, dim: Any = None, keepdim: bool = False, **named: Any) -> Layout:
    """Reductions of tensors that aren't contiguous, which the quick rules leave out."""
    if dim is None or dim == () or isinstance(dim, bool):
        chosen = set(range(x.dim()))
    else:
        chosen = {place(d, x.dim()) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}
    kept = [(1 if d in chosen else size) for d, size in enumerate(x.shape) if keepdim or d not in chosen]
    return new(kept)
