"""Quick rules (see `shapes`) for mathematical functions, statistics, sorting, searching and writing by index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from .layouts import Declined, Spec, broadcast, dim_of, is_packed, is_zero, packed, pointwise
from .shapes import (
    arithmetic,
    elementwise,
    float_unary,
    need_float,
    need_tensors,
    quick,
    reduced,
    reduction,
    softmax,
    total,
)
from .shapes_nn import INDEX_TYPES, cat, repeat


def need_packed(*tensors: torch.Tensor) -> None:
    """Decline anything but contiguous tensors with the usual strides."""
    if not all(map(is_packed, tensors)):
        raise Declined


# -- element by element ----------------------------------------------------------------------------------------------

quick("erfinv lgamma digamma sinc i0 asinh acosh atanh deg2rad rad2deg special_expit special_erfcx")(float_unary)
quick("softmin")(softmax)
quick("nansum prod")(total)


@quick("logit nan_to_num frac sgn")
def options_only(x: torch.Tensor, *args: Any, **named: Any) -> Spec:
    """Functions of floating point numbers, with options that are numbers."""
    need_float(x)
    return *pointwise([x]), x.dtype


@quick("signbit isposinf isneginf")
def question(x: torch.Tensor) -> Spec:
    need_float(x)
    return *pointwise([x]), torch.bool


@quick("copysign logaddexp logaddexp2 atan2 arctan2 hypot nextafter heaviside fmax fmin")
def float_binary(a: torch.Tensor, b: torch.Tensor) -> Spec:
    """Functions of two tensors of floating point numbers."""
    need_tensors(a, b)
    need_float(a, b)
    return arithmetic(a, b)


@quick("xlogy special_xlogy special_xlog1py")
def x_log_y(a: Any, b: Any) -> Spec:
    """The same, where one may be a number."""
    need_float(*[value for value in (a, b) if isinstance(value, torch.Tensor)])
    return arithmetic(a, b)


@quick("polar complex")
def complex_number(a: torch.Tensor, b: torch.Tensor) -> Spec:
    """Complex numbers from two real ones."""
    need_tensors(a, b)
    need_float(a, b)
    dtypes = {torch.float32: torch.complex64, torch.float64: torch.complex128}
    if a.dtype not in dtypes:
        raise Declined
    return *elementwise(a, b, a.dtype), dtypes[a.dtype]


@quick("__lshift__ __rshift__ __rlshift__ __rrshift__ lshift rshift bitwise_left_shift bitwise_right_shift")
def shift(a: Any, b: Any) -> Spec:
    """Shifts of integers by integers."""
    dtype = torch.result_type(a, b)
    if dtype is torch.bool or dtype.is_floating_point or dtype.is_complex:
        raise Declined
    return *elementwise(a, b, dtype), dtype


@quick("clamp_min clamp_max")
def clamp_one_side(x: torch.Tensor, bound: Any) -> Spec:
    """Clamping to a number, or to a tensor's."""
    need_float(x)
    if isinstance(bound, torch.Tensor):
        return float_binary(x, bound)
    return *pointwise([x]), x.dtype


@quick("isclose")
def isclose(a: torch.Tensor, b: torch.Tensor, *args: Any, **named: Any) -> Spec:
    """Whether floating point numbers are nearly equal."""
    need_tensors(a, b)
    need_float(a, b)
    need_packed(a, b)
    return packed(broadcast([a.shape, b.shape]), torch.bool)


@quick("float_power")
def float_power(x: torch.Tensor, exponent: Any) -> Spec:
    """Powers in double precision."""
    if not isinstance(x, torch.Tensor) or type(exponent) not in (int, float) or x.dtype.is_complex:
        raise Declined
    need_packed(x)
    return packed(x.shape, torch.float64)


@quick("prelu")
def prelu(x: torch.Tensor, weight: torch.Tensor) -> Spec:
    """A slope for each channel, or one for all."""
    need_float(x, weight)
    need_packed(x)
    if weight.dim() > 1 or (weight.numel() != 1 and (x.dim() < 2 or weight.shape[0] != x.shape[1])):
        raise Declined
    return packed(x.shape, x.dtype)


@quick("normal exponential geometric cauchy log_normal")
def drawn(x: torch.Tensor, *args: Any, generator: None = None, **named: Any) -> Spec:
    """Random numbers in a tensor's place."""
    if not isinstance(x, torch.Tensor) or any(isinstance(v, torch.Tensor) for v in (*args, *named.values())):
        raise Declined
    need_float(x)
    need_packed(x)
    return packed(x.shape, x.dtype)


# -- reductions ------------------------------------------------------------------------------------------------------


@quick("std_mean var_mean")
def two_statistics(x: torch.Tensor, dim: Any = None, keepdim: Any = False, **named: Any) -> tuple[Spec, Spec]:
    """Variance and mean, or deviation and mean."""
    need_float(x)
    if named.keys() - {"unbiased", "correction"} or isinstance(dim, bool):
        raise Declined
    spec = reduction(x, dim, keepdim, x.dtype)
    return spec, spec


@quick("nanmean")
def nanmean(x: torch.Tensor, dim: Any = None, keepdim: Any = False) -> Spec:
    need_float(x)
    return reduction(x, dim, keepdim, x.dtype)


@quick("count_nonzero")
def count_nonzero(x: torch.Tensor, dim: Any = None) -> Spec:
    return reduction(x, dim, False, torch.int64)


@quick("aminmax")
def aminmax(x: torch.Tensor, *, dim: Any = None, keepdim: Any = False) -> Any:
    """The least and the largest element."""
    need_float(x)
    return torch.return_types.aminmax([reduction(x, dim, keepdim, x.dtype)] * 2)


@quick("dist")
def dist(a: torch.Tensor, b: torch.Tensor, p: Any = 2) -> Spec:
    """The norm of a difference."""
    need_float(a, b)
    broadcast([a.shape, b.shape])
    return packed((), a.dtype)


@quick("dot vdot")
def dot(a: torch.Tensor, b: torch.Tensor) -> Spec:
    """The product of two vectors."""
    if a.dim() != 1 or b.shape != a.shape or a.dtype is not b.dtype:
        raise Declined
    return packed((), a.dtype)


@quick("trace")
def trace(x: torch.Tensor) -> Spec:
    """The sum of a matrix's diagonal."""
    need_float(x)
    if x.dim() != 2:
        raise Declined
    return packed((), x.dtype)


@quick("cdist")
def cdist(a: torch.Tensor, b: torch.Tensor, p: Any = 2.0, compute_mode: Any = None) -> Spec:
    """The distance of every row to every row."""
    need_float(a, b)
    if min(a.dim(), b.dim()) < 2 or a.shape[-1] != b.shape[-1]:
        raise Declined
    return packed((*broadcast([a.shape[:-2], b.shape[:-2]]), a.shape[-2], b.shape[-2]), a.dtype)


@quick("cosine_similarity")
def cosine_similarity(a: torch.Tensor, b: torch.Tensor, dim: int = 1, eps: float = 1e-8) -> Spec:
    """The cosine between vectors along one dimension."""
    need_float(a, b)
    need_packed(a, b)
    shape = broadcast([a.shape, b.shape])
    dim = dim_of(dim, len(shape))
    return packed((*shape[:dim], *shape[dim + 1 :]), a.dtype)


@quick("pairwise_distance")
def pairwise_distance(a: torch.Tensor, b: torch.Tensor, p: Any = 2.0, eps: float = 1e-6, keepdim: Any = False) -> Spec:
    """The distance of every row to the other's row."""
    need_float(a, b)
    need_packed(a, b)
    shape = broadcast([a.shape, b.shape])
    if not shape or type(keepdim) is not bool:
        raise Declined
    return packed((*shape[:-1], 1) if keepdim else shape[:-1], a.dtype)


# -- sorting and searching -------------------------------------------------------------------------------------------


def ordered(x: torch.Tensor, dim: int) -> int:
    """The dimension along which a contiguous tensor is put in order."""
    need_packed(x)
    if x.dim() == 0 or x.dtype.is_complex:
        raise Declined
    return dim_of(dim, x.dim())


@quick("sort")
def sort(x: torch.Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Any:
    """Elements in order, and where they were."""
    ordered(x, dim)
    return torch.return_types.sort([packed(x.shape, x.dtype), packed(x.shape, torch.int64)])


@quick("argsort")
def argsort(x: torch.Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Spec:
    """Where the elements in order were."""
    ordered(x, dim)
    return packed(x.shape, torch.int64)


@quick("topk")
def topk(x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The largest elements, and where they were."""
    dim = ordered(x, dim)
    if type(k) is not int or not 0 < k <= x.shape[dim]:
        raise Declined
    shape = (*x.shape[:dim], k, *x.shape[dim + 1 :])
    return torch.return_types.topk([packed(shape, x.dtype), packed(shape, torch.int64)])


@quick("kthvalue")
def kthvalue(x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest element, and where it was."""
    dim = ordered(x, dim)
    if type(k) is not int or not 0 < k <= x.shape[dim]:
        raise Declined
    shape = reduced(x, dim, keepdim)
    return torch.return_types.kthvalue([packed(shape, x.dtype), packed(shape, torch.int64)])


@quick("bucketize")
def bucketize(x: torch.Tensor, edges: torch.Tensor, *, out_int32: bool = False, right: bool = False) -> Spec:
    """Into which interval each element falls."""
    need_tensors(x, edges)
    need_packed(x)
    if edges.dim() != 1 or out_int32 is not False:
        raise Declined
    return packed(x.shape, torch.int64)


@quick("searchsorted")
def searchsorted(edges: torch.Tensor, x: torch.Tensor, *, right: bool = False) -> Spec:
    """The same, with the arguments the other way round."""
    return bucketize(x, edges)


@quick("histc")
def histc(x: torch.Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Spec:
    """How many elements fall into each of some intervals."""
    need_float(x)
    if type(bins) is not int or bins < 1:
        raise Declined
    return packed((bins,), x.dtype)


@quick("multinomial")
def multinomial(x: torch.Tensor, num_samples: int, replacement: bool = False) -> Spec:
    """Classes drawn by their weights."""
    need_float(x)
    if x.dim() not in (1, 2) or type(num_samples) is not int or num_samples < 1:
        raise Declined
    return packed((*x.shape[:-1], num_samples), torch.int64)


# -- reading and writing by index ------------------------------------------------------------------------------------


@quick("take")
def take(x: torch.Tensor, index: torch.Tensor) -> Spec:
    """Elements by their place in the whole tensor."""
    if index.dtype is not torch.int64:
        raise Declined
    need_packed(index)
    return packed(index.shape, x.dtype)


@quick("scatter")
def scatter(x: torch.Tensor, dim: int, index: torch.Tensor, src: Any = None, *, value: Any = None) -> Spec:
    """Elements written at places along one dimension."""
    written = src if value is None else value
    if index.dtype is not torch.int64 or x.dim() == 0 or index.dim() != x.dim():
        raise Declined
    if isinstance(written, torch.Tensor):
        if written.dtype is not x.dtype or written.dim() != x.dim():
            raise Declined
    elif type(written) not in (int, float):
        raise Declined
    dim_of(dim, x.dim())
    need_packed(x)
    return packed(x.shape, x.dtype)


@quick("scatter_reduce")
def scatter_reduce(
    x: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, reduce: str, *, include_self: bool = True
) -> Spec:
    """Elements combined with those at places along one dimension."""
    return scatter(x, dim, index, src)


@quick("index_copy index_fill")
def index_write(x: torch.Tensor, dim: int, index: torch.Tensor, source: Any) -> Spec:
    """Slices written at places along one dimension."""
    if x.dim() == 0 or index.dtype not in INDEX_TYPES or index.dim() != 1:
        raise Declined
    if isinstance(source, torch.Tensor) and source.dtype is not x.dtype:
        raise Declined
    dim_of(dim, x.dim())
    need_packed(x)
    return packed(x.shape, x.dtype)


@quick("index_put")
def index_put(x: torch.Tensor, indices: Sequence[Any], values: torch.Tensor, accumulate: bool = False) -> Spec:
    """Elements written at places that tensors of integers say."""
    if values.dtype is not x.dtype or not 0 < len(indices) <= x.dim():
        raise Declined
    if any(not isinstance(i, torch.Tensor) or i.dtype not in INDEX_TYPES for i in indices):
        raise Declined
    need_packed(x)
    return packed(x.shape, x.dtype)


@quick("tile")
def tile(x: torch.Tensor, *sizes: Any) -> Spec:
    """Copies along each dimension, the last ones if not all are named."""
    times = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    return repeat(x, (1,) * (x.dim() - len(times)) + tuple(times))


@quick("diff")
def diff(x: torch.Tensor, n: int = 1, dim: int = -1) -> Spec:
    """Differences of neighbours."""
    need_float(x)
    need_packed(x)
    if n != 1 or x.dim() == 0:
        raise Declined
    dim = dim_of(dim, x.dim())
    return packed((*x.shape[:dim], x.shape[dim] - 1, *x.shape[dim + 1 :]), x.dtype)


@quick("vstack row_stack")
def vstack(tensors: Sequence[torch.Tensor]) -> Spec:
    """Matrices, or vectors as rows, below each other."""
    if all(t.dim() == 1 for t in tensors) and len({t.shape for t in tensors}) == 1:
        if any(t.dtype is not tensors[0].dtype for t in tensors):
            raise Declined
        return packed((len(tensors), *tensors[0].shape), tensors[0].dtype)
    if any(t.dim() < 2 for t in tensors):
        raise Declined
    return cat(tensors, 0)


@quick("hstack")
def hstack(tensors: Sequence[torch.Tensor]) -> Spec:
    """Tensors side by side."""
    return cat(tensors, 0 if tensors[0].dim() == 1 else 1)


# -- products and factories ------------------------------------------------------------------------------------------


@quick("einsum")
def einsum(equation: str, *operands: Any) -> Spec:
    """Two tensors without repeated letters, by one product of batches of matrices."""
    tensors = operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    left, right = tensors
    inputs, arrow, out = equation.replace(" ", "").partition("->")
    first, second = inputs.split(",")
    letters = (*first, *second)
    if left.dtype is not right.dtype or not arrow or len(first) != left.dim() or len(second) != right.dim():
        raise Declined
    if any(len(set(part)) != len(part) or not part.isalpha() for part in (first, second, out or "a")):
        raise Declined
    sizes = dict(zip(letters, (*left.shape, *right.shape), strict=True))
    if any(sizes[c] != n or n < 2 for c, n in zip(letters, (*left.shape, *right.shape), strict=True)):
        raise Declined
    if not set(out) <= set(letters) or not set(first) & set(second) - set(out):
        raise Declined  # a mere product of elements is laid out by its operands
    both = [c for c in out if c in first and c in second]
    own = [[c for c in out if c in one and c not in both] for one in (first, second)]
    if list(out) not in (both + own[0] + own[1], both + own[1] + own[0]):
        raise Declined
    return packed((sizes[c] for c in out), left.dtype)


@quick("tensordot")
def tensordot(a: torch.Tensor, b: torch.Tensor, dims: Any = 2, out: None = None) -> Spec:
    """Sums of products over several dimensions."""
    if a.dtype is not b.dtype or isinstance(dims, torch.Tensor) or out is not None:
        raise Declined
    if type(dims) is int:
        left, right = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        left, right = ([dim_of(d, t.dim()) for d in places] for t, places in zip((a, b), dims, strict=True))
    if any(a.shape[i] != b.shape[j] for i, j in zip(left, right, strict=True)):
        raise Declined
    kept = [n for d, n in enumerate(a.shape) if d not in left] + [n for d, n in enumerate(b.shape) if d not in right]
    return packed(kept, a.dtype)


@quick("inner")
def inner(a: torch.Tensor, b: torch.Tensor) -> Spec:
    """Sums of products along the last dimensions."""
    if a.dtype is not b.dtype or min(a.dim(), b.dim()) < 1 or a.shape[-1] != b.shape[-1]:
        raise Declined
    return packed((*a.shape[:-1], *b.shape[:-1]), a.dtype)


@quick("logspace")
def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, device: Any = None) -> Spec:
    """Numbers evenly spaced in their logarithms."""
    dtype = dtype or torch.get_default_dtype()
    if any(type(v) not in (int, float) for v in (start, end, base)) or type(steps) is not int or steps < 1:
        raise Declined
    if not dtype.is_floating_point:
        raise Declined
    return packed((steps,), dtype)


@quick("arange")
def arange(*bounds: Any, dtype: torch.dtype | None = None, device: Any = None, **named: Any) -> Spec:
    """`arange` of numbers, in the default dtype unless all are integers."""
    if named or not 0 < len(bounds) < 4 or any(type(b) not in (int, float) for b in bounds):
        raise Declined
    start, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    whole = all(type(b) is int for b in bounds)
    length = len(range(start, end, step)) if whole else math.ceil((end - start) / step)
    if is_zero(length) or length < 0:
        raise Declined
    return packed((length,), dtype or (torch.int64 if whole else torch.get_default_dtype()))
