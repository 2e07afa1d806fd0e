"""Quick rules: what the most frequent operations return, worked out without running them on stand-ins.

torch's own rules for tensors without data are written in Python and load a symbolic algebra system at their first use,
which takes seconds. A rule takes the operation's own arguments and gives a `Spec`, or several in a tuple; it raises
`Declined` (or fails to take the arguments) where it isn't sure. Tests check every rule against the real operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .layouts import Declined, Spec, broadcast, dim_of, is_dense, is_zero, packed, pointwise, registering

QUICK: dict[str, Callable[..., Any]] = {}

#: what a rule answers when the operation changes its first argument and returns it
IN_PLACE: Any = type("InPlace", (), {"__repr__": lambda self: "IN_PLACE"})()

#: operations whose result never requires grad, whatever their arguments do
WITHOUT_GRAD = frozenset(
    "zeros_like ones_like full_like empty_like rand_like randn_like bernoulli bincount histc".split()
)

quick = registering(QUICK)


def common_dtype(a: Any, b: Any) -> torch.dtype:
    """The dtype in which two operands are combined."""
    return torch.result_type(getattr(a, "fake", a), getattr(b, "fake", b))


def need_tensors(*values: Any) -> None:
    """Decline numbers where torch takes tensors only."""
    if not all(isinstance(value, torch.Tensor) for value in values):
        raise Declined


def need_float(*tensors: torch.Tensor) -> None:
    """Decline anything but floating point tensors of one dtype."""
    if any(not t.dtype.is_floating_point or t.dtype != tensors[0].dtype for t in tensors):
        raise Declined


# -- element by element ----------------------------------------------------------------------------------------------


@quick(
    "sin cos tan exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sigmoid tanh erf erfc reciprocal asin acos "
    "atan sinh cosh"
)
def float_unary(x: torch.Tensor) -> Spec:
    """Functions that make integers floating point."""
    dtype = x.dtype if x.dtype.is_floating_point or x.dtype.is_complex else torch.get_default_dtype()
    return *pointwise([x], dtype), dtype


@quick("neg square __neg__")
def number_unary(x: torch.Tensor) -> Spec:
    """Functions that keep the dtype, of numbers."""
    if x.dtype is torch.bool:
        raise Declined
    return *pointwise([x]), x.dtype


@quick("floor ceil round trunc sign")
def real_unary(x: torch.Tensor, *, decimals: int = 0) -> Spec:
    """Functions that keep the dtype, of floating point numbers."""
    need_float(x)
    return *pointwise([x]), x.dtype


@quick("abs __abs__ absolute")
def absolute(x: torch.Tensor) -> Spec:
    if x.dtype.is_complex or x.dtype is torch.bool:
        raise Declined
    return *pointwise([x]), x.dtype


def activation(place: int | None) -> Any:
    """The rule of activations whose option `inplace`, if they have one, comes at this place behind the tensor."""

    def rule(x: torch.Tensor, *args: Any, **kwargs: Any) -> Spec:
        need_float(x)
        given = args[place] if place is not None and place < len(args) else kwargs.get("inplace", False)
        if type(given) is not bool:
            raise Declined
        return IN_PLACE if given else (*pointwise([x]), x.dtype)

    return rule


quick("relu silu mish selu hardswish hardsigmoid relu6")(activation(0))
quick("elu celu leaky_relu")(activation(1))
quick("hardtanh threshold _threshold")(activation(2))
quick("gelu softplus logsigmoid softsign hardshrink softshrink tanhshrink")(activation(None))


def operands(a: Any, b: Any) -> list[torch.Tensor]:
    """The tensors among two operands, of which one is a tensor."""
    tensors = [value for value in (a, b) if isinstance(value, torch.Tensor)]
    if not tensors or any(not isinstance(v, (torch.Tensor, bool, int, float)) for v in (a, b)):
        raise Declined
    return tensors


def elementwise(a: Any, b: Any, dtype: torch.dtype) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of a result of two operands, one of which may be a number."""
    tensors = operands(a, b)
    return pointwise(tensors, dtype, len(tensors) == 1)


@quick("add mul __add__ __radd__ __mul__ __rmul__ multiply fmod remainder mod __mod__")
def arithmetic(a: Any, b: Any) -> Spec:
    """Arithmetic in the operands' common dtype."""
    dtype = common_dtype(a, b)
    if dtype is torch.bool or dtype.is_complex:
        raise Declined
    return *elementwise(a, b, dtype), dtype


@quick("sub rsub __sub__ __rsub__")
def subtraction(a: Any, b: Any) -> Spec:
    """Subtraction, which bools don't have."""
    if any(type(v) is bool or getattr(v, "dtype", None) is torch.bool for v in (a, b)):
        raise Declined
    return arithmetic(a, b)


@quick("maximum minimum")
def larger(a: torch.Tensor, b: torch.Tensor) -> Spec:
    """The larger of two tensors' elements."""
    need_tensors(a, b)
    return arithmetic(a, b)


@quick("truediv div true_divide divide __truediv__ __rtruediv__")
def division(a: Any, b: Any, *, rounding_mode: str | None = None) -> Spec:
    """Division, whose result is an integer only where integers are divided and it is rounded."""
    dtype = common_dtype(a, b)
    if dtype.is_complex or (rounding_mode is not None and dtype is torch.bool):
        raise Declined
    if not dtype.is_floating_point and rounding_mode is None:
        dtype = torch.get_default_dtype()
    return *elementwise(a, b, dtype), dtype


@quick("pow __pow__")
def power(a: Any, b: Any) -> Spec:
    """Powers of floating point numbers. Those of a number lie in order, however the exponents do."""
    dtype = common_dtype(a, b)
    if not dtype.is_floating_point:
        raise Declined
    if type(a) in (int, float):
        return packed(b.shape, dtype)
    return *elementwise(a, b, dtype), dtype


@quick("__rpow__")
def power_of(exponent: torch.Tensor, base: Any) -> Spec:
    """The same, asked of the exponent."""
    return power(base, exponent)


@quick("floordiv floor_divide __floordiv__")
def floor_division(a: Any, b: Any) -> Spec:
    """Division that rounds down."""
    return subtraction(a, b)


@quick("eq ne lt le gt ge __eq__ __ne__ __lt__ __le__ __gt__ __ge__")
def comparison(a: Any, b: Any) -> Spec:
    """Comparisons."""
    dtype = common_dtype(a, b)
    if dtype.is_complex:
        raise Declined
    return *elementwise(a, b, dtype), torch.bool


@quick("isin")
def isin(x: torch.Tensor, among: torch.Tensor, **named: Any) -> Spec:
    """Which elements are among others; the kernel lays the answer out in order."""
    need_tensors(x, among)
    return packed(x.shape, torch.bool)


@quick("logical_and logical_or logical_xor")
def logical(a: torch.Tensor, b: torch.Tensor) -> Spec:
    """Logic on tensors."""
    need_tensors(a, b)
    return comparison(a, b)


@quick("and_ or_ xor __and__ __or__ __xor__ bitwise_and bitwise_or bitwise_xor")
def bitwise(a: Any, b: Any) -> Spec:
    """Bitwise operations."""
    dtype = common_dtype(a, b)
    if dtype.is_floating_point or dtype.is_complex:
        raise Declined
    return *elementwise(a, b, dtype), dtype


@quick("invert __invert__ bitwise_not")
def inversion(x: torch.Tensor) -> Spec:
    """Bits turned round."""
    if x.dtype.is_floating_point or x.dtype.is_complex:
        raise Declined
    return *pointwise([x]), x.dtype


@quick("logical_not")
def negation(x: torch.Tensor) -> Spec:
    return *pointwise([x]), torch.bool


@quick("where")
def where(condition: torch.Tensor, a: Any, b: Any) -> Spec:
    """`torch.where` with three arguments."""
    if condition.dtype is not torch.bool:
        raise Declined
    dtype = common_dtype(a, b)
    values = operands(a, b)
    pointwise(values, dtype)
    return *pointwise([condition, *values], None, len(values) == 1), dtype


@quick("isnan isinf isfinite")
def is_special(x: torch.Tensor) -> Spec:
    """Questions about floating point numbers."""
    need_float(x)
    return *pointwise([x]), torch.bool


@quick("lerp addcmul addcdiv")
def combination(*values: Any) -> Spec:
    """Three tensors of one dtype, or two and a number."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    if len(values) != 3 or len(tensors) < 2 or tensors != list(values[: len(tensors)]):
        raise Declined
    need_float(*tensors)
    return *pointwise(tensors), tensors[0].dtype


@quick("masked_fill")
def masked_fill(x: torch.Tensor, mask: torch.Tensor, value: Any) -> Spec:
    """A copy of `x`, filled where the mask says."""
    if mask.dtype is not torch.bool or isinstance(value, (torch.Tensor, complex)):
        raise Declined
    if broadcast([x.shape, mask.shape]) != x.shape or not x.is_contiguous():
        raise Declined
    if isinstance(value, float) and not x.dtype.is_floating_point:
        raise Declined
    return packed(x.shape, x.dtype)


@quick("clamp clip")
def clamp(x: torch.Tensor, low: Any = None, high: Any = None, **named: Any) -> Spec:
    """Clamping to numbers, or to tensors' elements."""
    bounds = (low, high, named.pop("min", None), named.pop("max", None))
    if named or any(isinstance(b, complex) for b in bounds) or all(b is None for b in bounds):
        raise Declined
    tensors = [x, *(b for b in bounds if isinstance(b, torch.Tensor))]
    need_float(*tensors)
    return *pointwise(tensors), x.dtype


@quick("dropout")
def dropout(x: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Spec:
    """Dropout that is on: when it is off the argument itself comes back."""
    need_float(x)
    if not training or not 0 < p < 1 or not x.is_contiguous():
        raise Declined
    if inplace:
        return IN_PLACE
    return packed(x.shape, x.dtype)


# -- reductions ------------------------------------------------------------------------------------------------------


def reduced(x: torch.Tensor, dim: Any, keepdim: Any) -> tuple[int, ...]:
    """The shape after reducing `dim`, one dimension or several or all."""
    if type(keepdim) is not bool:
        raise Declined
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        dims = set(range(x.dim()))
    else:
        places = [dim_of(d, x.dim()) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
        dims = set(places)
        if len(dims) != len(places):
            raise Declined
    if keepdim:
        return tuple(1 if place in dims else size for place, size in enumerate(x.shape))
    return tuple(size for place, size in enumerate(x.shape) if place not in dims)


def reduction(x: torch.Tensor, dim: Any, keepdim: Any, dtype: torch.dtype) -> Spec:
    """The result of reducing a contiguous tensor."""
    if not x.is_contiguous() or any(map(is_zero, x.shape)):
        raise Declined
    return packed(reduced(x, dim, keepdim), dtype)


@quick("sum")
def total(x: torch.Tensor, dim: Any = None, keepdim: Any = False, *, dtype: torch.dtype | None = None) -> Spec:
    """Sums; of integers as int64."""
    if dtype is None:
        dtype = x.dtype if x.dtype.is_floating_point or x.dtype.is_complex else torch.int64
    return reduction(x, dim, keepdim, dtype)


@quick("mean var std")
def mean(x: torch.Tensor, dim: Any = None, keepdim: Any = False, **named: Any) -> Spec:
    """Statistics of floating point numbers."""
    need_float(x)
    if named.keys() - {"unbiased", "correction"} or isinstance(dim, bool):
        raise Declined
    return reduction(x, dim, keepdim, x.dtype)


@quick("logsumexp")
def logsumexp(x: torch.Tensor, dim: Any, keepdim: Any = False) -> Spec:
    need_float(x)
    return reduction(x, dim, keepdim, x.dtype)


@quick("linalg_vector_norm")
def vector_norm(x: torch.Tensor, ord: Any = 2, dim: Any = None, keepdim: Any = False) -> Spec:
    """Norms of vectors."""
    need_float(x)
    if type(ord) not in (int, float):
        raise Declined
    return reduction(x, dim, keepdim, x.dtype)


@quick("norm")
def norm(x: torch.Tensor, p: Any = "fro", dim: Any = None, keepdim: Any = False) -> Spec:
    """`torch.norm` of vectors, or over everything."""
    if p == "fro" and isinstance(dim, (tuple, list)) and len(dim) > 1:
        raise Declined
    return vector_norm(x, 2 if p == "fro" else p, dim, keepdim)


@quick("normalize")
def normalize(x: torch.Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Spec:
    """Vectors made to length one."""
    if out is not None:
        raise Declined
    shape, _, dtype = vector_norm(x, p, dim, True)
    return *pointwise([x, torch.empty(shape, dtype=dtype, device=x.device).expand(x.shape)]), dtype


@quick("amax amin")
def extremum(x: torch.Tensor, dim: Any = (), keepdim: Any = False) -> Spec:
    return reduction(x, dim, keepdim, x.dtype)


@quick("argmax argmin")
def argument(x: torch.Tensor, dim: Any = None, keepdim: Any = False) -> Spec:
    if dim is None and keepdim is not False:
        raise Declined
    return reduction(x, dim, keepdim, torch.int64)


@quick("any all")
def any_all(x: torch.Tensor, dim: Any = None, keepdim: Any = False) -> Spec:
    if x.dtype is torch.uint8:
        raise Declined
    return reduction(x, dim, keepdim, torch.bool)


@quick("softmax log_softmax")
def softmax(x: torch.Tensor, dim: Any, *args: Any, dtype: torch.dtype | None = None, **named: Any) -> Spec:
    """Softmax over one dimension."""
    if args or named.keys() - {"_stacklevel"} or not x.is_contiguous():
        raise Declined
    if dtype is None:
        need_float(x)
    elif not dtype.is_floating_point:
        raise Declined
    dim_of(dim, x.dim())
    return packed(x.shape, dtype or x.dtype)


@quick("cumsum cumprod")
def cumulative(x: torch.Tensor, dim: Any) -> Spec:
    dim_of(dim, x.dim())
    if not x.is_contiguous() or x.dtype.is_complex:
        raise Declined
    return packed(x.shape, x.dtype if x.dtype.is_floating_point else torch.int64)


@quick("flip")
def flip(x: torch.Tensor, *dims: Any) -> Spec:
    """Backwards along some dimensions."""
    places = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    if len({dim_of(d, x.dim()) for d in places}) != len(places) or not x.is_contiguous():
        raise Declined
    return packed(x.shape, x.dtype)


@quick("tril triu")
def triangle(x: torch.Tensor, diagonal: int = 0) -> Spec:
    if x.dim() < 2 or not x.is_contiguous() or type(diagonal) is not int:
        raise Declined
    return packed(x.shape, x.dtype)


# -- factories -------------------------------------------------------------------------------------------------------


@quick("rand randn")
def random(*sizes: Any, dtype: torch.dtype | None = None, device: Any = None, **named: Any) -> Spec:
    """Random numbers of a given size."""
    shape = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if named or any(type(n) is not int or n < 0 for n in shape):
        raise Declined
    dtype = dtype or torch.get_default_dtype()
    if not dtype.is_floating_point:
        raise Declined
    return packed(shape, dtype)


@quick("rand_like randn_like")
def random_like(x: torch.Tensor) -> Spec:
    """Random numbers like a contiguous tensor."""
    need_float(x)
    return like(x)


@quick("zeros_like ones_like empty_like")
def like(x: torch.Tensor, *, dtype: torch.dtype | None = None, device: Any = None, **named: Any) -> Spec:
    """A new tensor laid out as `x` is."""
    if named or not is_dense(x) or any(map(is_zero, x.shape)):
        raise Declined
    return tuple(x.shape), x.stride(), dtype or x.dtype


@quick("full_like")
def full_like(x: torch.Tensor, fill_value: Any, **named: Any) -> Spec:
    """A constant like a contiguous tensor."""
    if type(fill_value) not in (int, float) or not x.dtype.is_floating_point:
        raise Declined
    return like(x, **named)


@quick("randint")
def randint(*arguments: Any, dtype: torch.dtype = torch.int64, device: Any = None) -> Spec:
    """Random integers below a number, or between two."""
    *bounds, size = arguments
    low, high = bounds if len(bounds) == 2 else (0, *bounds)
    if type(low) is not int or type(high) is not int or not low < high or dtype is not torch.int64:
        raise Declined
    if any(type(n) is not int or n < 0 for n in size):
        raise Declined
    return packed(size, dtype)


@quick("linspace")
def linspace(start: Any, end: Any, steps: int, *, dtype: torch.dtype | None = None, device: Any = None) -> Spec:
    """Evenly spaced numbers."""
    if any(type(v) not in (int, float) for v in (start, end)) or type(steps) is not int or steps < 1:
        raise Declined
    dtype = dtype or torch.get_default_dtype()
    if not dtype.is_floating_point:
        raise Declined
    return packed((steps,), dtype)


@quick("eye")
def eye(n: int, m: int | None = None, *, dtype: torch.dtype | None = None, device: Any = None) -> Spec:
    """The identity matrix."""
    shape = (n, n if m is None else m)
    if any(type(size) is not int or size < 1 for size in shape):
        raise Declined
    return packed(shape, dtype or torch.get_default_dtype())
