"""Shapes of results where sizes vary, of operations whose results are dense.

A rule gives the shape, or a list of shapes, from the operation's arguments, as those of `shapes_views` do. The strides
follow from it: dimensions lie in the order that the stand-in's have. That order is the operation's own or its
arguments', and no matter of sizes above one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .layouts import Declined, broadcast, computed, registering
from .ops import overload_tags
from .shapes_nn import per_dim, window
from .shapes_views import numbers, place
from .sizes import Shaped, Size, example, product

Shape = tuple[Any, ...]
SHAPES: dict[str, Callable[..., Any]] = {}

shape = registering(SHAPES)


def rule_of(name: str) -> Callable[..., Any] | None:
    """The rule of an operation; those that torch calls pointwise share one."""
    rule = SHAPES.get(name)
    if rule is None and torch.Tag.pointwise in overload_tags(name.strip("_")):
        return pointwise
    return rule


def in_order(sizes: Sequence[Any], result: torch.Tensor) -> tuple[Any, ...]:
    """The strides of a dense tensor of this shape whose dimensions lie as those of `result` do."""
    if len(sizes) != result.dim() or any(computed(size) and example(size) < 2 for size in sizes):
        raise Declined
    strides: list[Any] = [0] * len(sizes)
    step: Any = 1
    for dim in sorted(range(len(sizes)), key=lambda d: (result.stride(d), result.shape[d], -d)):
        if result.stride(dim) != example(step):
            raise Declined
        strides[dim] = step
        step = step * sizes[dim]
    return tuple(strides)


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def with_size(x: Shaped, dim: Any, size: Any) -> Shape:
    """The tensor's shape with another size in one place."""
    dim = place(dim, x.dim())
    return (*x.shape[:dim], size, *x.shape[dim + 1 :])


def without(x: Shaped, dim: Any, keepdim: Any = False) -> Shape:
    """The tensor's shape without some dimensions, or with ones there; without any if `dim` is None."""
    dims = dim if isinstance(dim, (tuple, list)) else range(x.dim()) if dim is None else (dim,)
    gone = {place(d, x.dim()) for d in dims}
    if type(keepdim) is not bool:
        raise Declined
    return tuple([1 if d in gone else size for d, size in enumerate(x.shape) if keepdim or d not in gone])


class Same(tuple):
    """The shape of each of the results, however many there are."""


# -- element by element -----------------------------------------------------------------------------------------------


@shape("isclose lshift rshift __lshift__ __rshift__ float_power masked_scatter polar complex")
def pointwise(*args: Any, out: Any = None, **named: Any) -> Shape:
    """Operations applied element by element."""
    tensors = [value for value in (*args, *named.values()) if is_tensor(value)]
    if out is not None or not tensors:
        raise Declined
    return tuple(broadcast([x.shape for x in tensors]))


@shape(
    "sort argsort msort cummax cummin logcumsumexp softmin instance_norm local_response_norm prelu softshrink "
    "tanhshrink hardshrink log_sigmoid logsigmoid rrelu _threshold bernoulli index_fill index_copy scatter "
    "scatter_reduce index_put full_like nan_to_num fft_fftshift fft_ifftshift "
    "slice_scatter select_scatter diagonal_scatter put renorm gradient"
)
def like_first(x: Shaped, *args: Any, **named: Any) -> Any:
    """The shape of the first argument."""
    if named.get("out") is not None:
        raise Declined
    return Same(x.shape)


@shape("bucketize")
def bucketize(x: Shaped, boundaries: Any, **named: Any) -> Shape:
    return tuple(x.shape)


@shape("searchsorted")
def searchsorted(boundaries: Any, values: Shaped, **named: Any) -> Shape:
    return tuple(values.shape)


@shape("take")
def take(x: Shaped, index: Shaped) -> Shape:
    return tuple(index.shape)


@shape("glu")
def glu(x: Shaped, dim: int = -1) -> Shape:
    return with_size(x, dim, x.shape[place(dim, x.dim())] // 2)


# -- reductions and choices -------------------------------------------------------------------------------------------


@shape("max min")
def extremum(x: Shaped, dim: Any = None, keepdim: Any = False) -> Any:
    """Of all elements, along one dimension with the places, or of two tensors."""
    if is_tensor(dim):
        return pointwise(x, dim)
    return () if dim is None else Same(without(x, dim, keepdim))


@shape("median nanmedian mode")
def median(x: Shaped, dim: Any = None, keepdim: Any = False) -> Any:
    return () if dim is None else Same(without(x, dim, keepdim))


@shape("kthvalue")
def kthvalue(x: Shaped, k: Any, dim: Any = -1, keepdim: Any = False) -> Any:
    return Same(without(x, dim, keepdim))


@shape("aminmax")
def aminmax(x: Shaped, *, dim: Any = None, keepdim: Any = False) -> Any:
    return Same(without(x, dim, keepdim))


@shape("topk")
def topk(x: Shaped, k: Any, dim: Any = -1, largest: Any = True, sorted: Any = True) -> Any:
    return Same(with_size(x, dim, k))


@shape("count_nonzero nansum nanmean var_mean std_mean logsumexp sum mean amax amin any all prod std var norm")
def reduced(x: Shaped, dim: Any = None, keepdim: Any = False, **named: Any) -> Any:
    if named.keys() - {"correction", "unbiased", "dtype"} or isinstance(dim, bool) or dim == "fro":
        raise Declined
    return Same(without(x, dim or (None if dim != 0 else dim), keepdim))


@shape("quantile nanquantile")
def quantile(x: Shaped, q: Any, dim: Any = None, keepdim: Any = False, *, interpolation: str = "linear") -> Shape:
    """One for each part, in front."""
    return (*(q.shape if is_tensor(q) else ()), *without(x, dim, keepdim))


@shape("trapezoid trapz")
def trapezoid(y: Shaped, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Shape:
    if x is not None:
        raise Declined
    return without(y, dim)


@shape("histc")
def histc(x: Shaped, bins: int = 100, *args: Any, **named: Any) -> Shape:
    return numbers((bins,))


@shape("multinomial")
def multinomial(x: Shaped, num_samples: Any, *args: Any, **named: Any) -> Shape:
    return (*x.shape[:-1], num_samples)


@shape("cosine_similarity")
def cosine_similarity(a: Shaped, b: Shaped, dim: int = 1, eps: float = 1e-8) -> Shape:
    both = pointwise(a, b)
    dim = place(dim, len(both))
    return (*both[:dim], *both[dim + 1 :])


@shape("pairwise_distance")
def pairwise_distance(a: Shaped, b: Shaped, p: Any = 2.0, eps: Any = 1e-6, keepdim: Any = False) -> Shape:
    return (*pointwise(a, b)[:-1], *((1,) if keepdim else ()))


@shape(
    "kl_div smooth_l1_loss huber_loss mse_loss l1_loss binary_cross_entropy binary_cross_entropy_with_logits "
    "cross_entropy nll_loss poisson_nll_loss hinge_embedding_loss multilabel_soft_margin_loss multi_margin_loss "
    "soft_margin_loss triplet_margin_loss cosine_embedding_loss margin_ranking_loss"
)
def loss(*args: Any, reduction: str = "mean", size_average: Any = None, reduce: Any = None, **named: Any) -> Shape:
    """Losses that come to one number."""
    unusual = any(not is_tensor(value) and value is not None for value in args)
    if unusual or reduction not in ("mean", "sum", "batchmean") or size_average is not None or reduce is not None:
        raise Declined
    return ()


# -- products ---------------------------------------------------------------------------------------------------------


@shape("matmul __matmul__")
def matmul(a: Shaped, b: Shaped) -> Shape:
    """Products of which one side is a vector, or of different numbers of dimensions."""
    rows, columns = (() if a.dim() == 1 else a.shape[-2:-1]), (() if b.dim() == 1 else b.shape[-1:])
    batch = broadcast([a.shape[:-2], b.shape[:-2]])
    if a.shape[-1] != b.shape[-1 if b.dim() == 1 else -2]:
        raise Declined
    return (*batch, *rows, *columns)


@shape("dot vdot")
def dot(a: Shaped, b: Shaped) -> Shape:
    return ()


@shape("outer")
def outer(a: Shaped, b: Shaped) -> Shape:
    return (*a.shape, *b.shape)


@shape("cdist")
def cdist(a: Shaped, b: Shaped, *args: Any, **named: Any) -> Shape:
    return (*broadcast([a.shape[:-2], b.shape[:-2]]), a.shape[-2], b.shape[-2])


@shape("bilinear")
def bilinear(a: Shaped, b: Shaped, weight: Shaped, bias: Any = None) -> Shape:
    return (*a.shape[:-1], weight.shape[0])


@shape("scaled_dot_product_attention")
def attention(q: Shaped, k: Shaped, v: Shaped, *args: Any, **named: Any) -> Shape:
    return (*broadcast([q.shape[:-2], k.shape[:-2], v.shape[:-2]]), q.shape[-2], v.shape[-1])


@shape("einsum")
def einsum(equation: str, *operands: Any) -> Shape:
    """Sums of products, with dimensions named by letters."""
    tensors = operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    if not arrow:
        raise Declined
    sizes: dict[str, Any] = {}
    batches = []
    for letters, x in zip(inputs.split(","), tensors, strict=True):
        first, dots, last = letters.partition("...")
        end = x.dim() - len(last)
        for letter, size in (*zip(first, x.shape, strict=False), *zip(last, x.shape[end:], strict=True)):
            sizes[letter] = size if letter not in sizes else broadcast([(size,), (sizes[letter],)])[0]
        if dots:
            batches.append(x.shape[len(first) : end])
    first, dots, last = output.partition("...")
    batch = broadcast(batches) if dots else ()
    return (*[sizes[letter] for letter in first], *batch, *[sizes[letter] for letter in last])


# -- joining and repeating --------------------------------------------------------------------------------------------


def joined(shapes: Sequence[Shape], dim: int) -> Shape:
    """One after the other."""
    first = shapes[0]
    if any(other[:dim] != first[:dim] or other[dim + 1 :] != first[dim + 1 :] for other in shapes):
        raise Declined
    length: Any = 0
    for other in shapes:
        length = length + other[dim]
    return (*first[:dim], length, *first[dim + 1 :])


@shape("hstack")
def hstack(tensors: Sequence[Shaped]) -> Shape:
    return joined([x.shape for x in tensors], 0 if tensors[0].dim() == 1 else 1)


@shape("vstack row_stack")
def vstack(tensors: Sequence[Shaped]) -> Shape:
    return joined([(1, *x.shape) if x.dim() == 1 else x.shape for x in tensors], 0)


@shape("column_stack")
def column_stack(tensors: Sequence[Shaped]) -> Shape:
    return joined([(*x.shape, 1) if x.dim() == 1 else x.shape for x in tensors], 1)


def three_dims(x: Shaped) -> Shape:
    """The shape with dimensions of size one, up to three."""
    return (1, *x.shape, 1) if x.dim() == 1 else (*x.shape, 1) if x.dim() == 2 else tuple(x.shape)


@shape("dstack")
def dstack(tensors: Sequence[Shaped]) -> Shape:
    return joined([three_dims(x) for x in tensors], 2)


@shape("pad_sequence")
def pad_sequence(sequences: Sequence[Shaped], batch_first: bool = False, *args: Any, **named: Any) -> Shape:
    """As long as the longest of them."""
    length, *rest = sequences[0].shape
    for x in sequences[1:]:
        length = x.shape[0] if x.shape[0] > length else length
    return (len(sequences), length, *rest) if batch_first else (length, len(sequences), *rest)


@shape("rot90")
def rot90(x: Shaped, k: int = 1, dims: Any = (0, 1)) -> Shape:
    a, b = (place(d, x.dim()) for d in dims)
    sizes = list(x.shape)
    if k % 2:
        sizes[a], sizes[b] = sizes[b], sizes[a]
    return tuple(sizes)


@shape("narrow_copy")
def narrow_copy(x: Shaped, dim: Any, start: Any, length: Any) -> Shape:
    return with_size(x, dim, length)


@shape("atleast_2d")
def atleast_2d(x: Shaped) -> Shape:
    return (1, *x.shape) if x.dim() == 1 else tuple(x.shape)


@shape("tile")
def tile(x: Shaped, *dims: Any) -> Shape:
    times = numbers(dims)
    ndim = max(len(times), x.dim())
    rows = zip((1,) * (ndim - len(times)) + times, (1,) * (ndim - x.dim()) + tuple(x.shape), strict=True)
    return tuple([n * size for n, size in rows])


@shape("repeat_interleave")
def repeat_interleave(x: Shaped, repeats: Any, dim: None = None) -> Shape:
    if type(repeats) not in (int, Size) or dim is not None:
        raise Declined
    return (x.numel() * repeats,)


@shape("diff")
def diff(x: Shaped, n: int = 1, dim: int = -1) -> Shape:
    if n != 1:
        raise Declined
    return with_size(x, dim, x.shape[place(dim, x.dim())] - 1)


@shape("take_along_dim")
def take_along_dim(x: Shaped, index: Shaped, dim: Any = None) -> Shape:
    if dim is None or x.dim() != index.dim():
        raise Declined
    dim = place(dim, x.dim())
    both = broadcast([with_size(x, dim, 1), with_size(index, dim, 1)])
    return (*both[:dim], index.shape[dim], *both[dim + 1 :])


# -- layers -----------------------------------------------------------------------------------------------------------


@shape("lstm")
def lstm(x: Shaped, hidden: Any, params: Any, *flags: Any) -> Any:
    """A recurrent layer over sequences of one length."""
    h, c = hidden
    return [recurrent(x, h, flags), tuple(h.shape), tuple(c.shape)]


@shape("gru rnn_tanh rnn_relu")
def gru(x: Shaped, hidden: Shaped, params: Any, *flags: Any) -> Any:
    return [recurrent(x, hidden, flags), tuple(hidden.shape)]


def recurrent(x: Shaped, hidden: Shaped, flags: Sequence[Any]) -> Shape:
    """A layer's output. The flags: has_biases, num_layers, dropout, train, bidirectional, batch_first."""
    *_, bidirectional, _ = flags
    if len(flags) != 6 or x.dim() != 3 or not is_tensor(hidden):
        raise Declined
    return (*x.shape[:2], hidden.shape[-1] * (2 if bidirectional else 1))


@shape("gru_cell rnn_tanh_cell rnn_relu_cell")
def gru_cell(x: Shaped, hidden: Shaped, *weights: Any) -> Shape:
    return tuple(hidden.shape)


@shape("lstm_cell")
def lstm_cell(x: Shaped, hidden: Any, *weights: Any) -> Any:
    return [tuple(one.shape) for one in hidden]


@shape("conv1d")
def conv1d(
    x: Shaped, weight: Shaped, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Shape:
    if x.dim() != 3 or isinstance(padding, str):
        raise Declined
    return (x.shape[0], weight.shape[0], *window(x.shape[2:], tuple(weight.shape[2:]), stride, padding, dilation))


@shape("conv_transpose1d")
def conv_transpose1d(
    x: Shaped, weight: Shaped, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Shape:  # fmt: skip
    if x.dim() != 3:
        raise Declined
    (s,), (p,), (o,), (d,) = (per_dim(value, 1) for value in (stride, padding, output_padding, dilation))
    length = (x.shape[2] - 1) * s - 2 * p + d * (weight.shape[2] - 1) + o + 1
    return (x.shape[0], weight.shape[1] * groups, length)


@shape("avg_pool1d")
def avg_pool1d(x: Shaped, kernel: Any, stride: Any = None, padding: Any = 0, *args: Any, **named: Any) -> Shape:
    if args or named:
        raise Declined
    return (*x.shape[:-1], *window(x.shape[-1:], kernel, kernel if stride in (None, ()) else stride, padding, 1))


def adaptive(ndim: int) -> Callable[..., Shape]:
    """The rule of pooling to a given size, over `ndim` dimensions."""

    def rule(x: Shaped, output_size: Any, *args: Any, **named: Any) -> Shape:
        sizes: Any = (output_size,) * ndim if type(output_size) is int else tuple(output_size)
        own = x.shape[-ndim:]
        return Same((*x.shape[:-ndim], *[n if size is None else size for n, size in zip(own, sizes, strict=True)]))

    return rule


def powers(ndim: int) -> Callable[..., Shape]:
    """The rule of pooling by powers, over `ndim` dimensions."""

    def rule(x: Shaped, norm_type: Any, kernel: Any, stride: Any = None, ceil_mode: Any = False) -> Shape:
        if ceil_mode or x.dim() != ndim + 2:
            raise Declined
        return (*x.shape[:2], *window(x.shape[2:], kernel, kernel if stride in (None, ()) else stride, 0, 1))

    return rule


def largest(ndim: int) -> Callable[..., Shape]:
    """The rule of pooling with the places of what was chosen, over `ndim` dimensions."""

    def rule(
        x: Shaped, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: Any = False,
        return_indices: Any = False,
    ) -> Shape:  # fmt: skip
        if ceil_mode or x.dim() != ndim + 2:
            raise Declined
        own = kernel if stride in (None, ()) else stride
        return Same((*x.shape[:2], *window(x.shape[2:], kernel, own, padding, dilation)))

    return rule


for _ndim in (1, 2, 3):
    SHAPES[f"adaptive_avg_pool{_ndim}d"] = adaptive(_ndim)
    SHAPES[f"adaptive_max_pool{_ndim}d"] = adaptive(_ndim)
    SHAPES[f"lp_pool{_ndim}d"] = powers(_ndim)
    SHAPES[f"max_pool{_ndim}d"] = largest(_ndim)


@shape("pixel_shuffle")
def pixel_shuffle(x: Shaped, factor: int) -> Shape:
    *batch, channels, height, width = x.shape
    return (*batch, channels // factor**2, height * factor, width * factor)


@shape("pixel_unshuffle")
def pixel_unshuffle(x: Shaped, factor: int) -> Shape:
    *batch, channels, height, width = x.shape
    return (*batch, channels * factor**2, height // factor, width // factor)


@shape("pad")
def pad(x: Shaped, widths: Any, mode: str = "constant", value: Any = None) -> Shape:
    """Padding with what is at the border, in the last dimensions."""
    sizes = list(x.shape)
    for pair in range(len(widths) // 2):
        sizes[-1 - pair] = sizes[-1 - pair] + widths[2 * pair] + widths[2 * pair + 1]
    return tuple(sizes)


@shape("embedding_bag")
def embedding_bag(index: Shaped, weight: Shaped, offsets: Any = None, *args: Any, **named: Any) -> Shape:
    if not is_tensor(weight) or index.dim() != 2 or offsets is not None:
        raise Declined
    return (index.shape[0], weight.shape[1])


@shape("grid_sample")
def grid_sample(x: Shaped, grid: Shaped, *args: Any, **named: Any) -> Shape:
    return (*x.shape[:2], *grid.shape[1:-1])


@shape("affine_grid")
def affine_grid(theta: Shaped, size: Any, *args: Any, **named: Any) -> Shape:
    batch, _, *places = numbers((size,))
    return (batch, *places, len(places))


@shape("view_as_complex")
def view_as_complex(x: Shaped) -> Shape:
    return tuple(x.shape[:-1])


@shape("view_as_real")
def view_as_real(x: Shaped) -> Shape:
    return (*x.shape, 2)


@shape("fold col2im")
def fold(x: Shaped, output_size: Any, kernel: Any, *args: Any, **named: Any) -> Shape:
    """Images of blocks."""
    if x.dim() != 3:
        raise Declined
    places = (output_size,) * 2 if type(output_size) is int else numbers((output_size,))
    return (x.shape[0], x.shape[1] // product(per_dim(kernel, 2)), *places)


@shape("unfold im2col")
def unfold(x: Shaped, kernel: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Shape:
    """Blocks of images, one in each column."""
    if x.dim() != 4:
        raise Declined
    places = window(x.shape[2:], kernel, stride, padding, dilation)
    return (x.shape[0], x.shape[1] * product(per_dim(kernel, 2)), product(places))


@shape("fft_fft fft_ifft fft_fft2 fft_ifft2 fft_fftn fft_ifftn")
def fft(x: Shaped, n: None = None, dim: Any = None, norm: Any = None) -> Shape:
    """Along dimensions that say how the result is laid out."""
    dims = dim if isinstance(dim, (tuple, list)) else () if dim is None else (dim,)
    if n is not None or any(type(d) is not int for d in dims):
        raise Declined
    return tuple(x.shape)


@shape("fft_irfft")
def irfft(x: Shaped, n: Any = None, dim: int = -1, norm: Any = None) -> Shape:
    return with_size(x, dim, (x.shape[place(dim, x.dim())] - 1) * 2 if n is None else n)


@shape("fft_rfft")
def rfft(x: Shaped, n: None = None, dim: int = -1, norm: Any = None) -> Shape:
    if n is not None:
        raise Declined
    return with_size(x, dim, x.shape[place(dim, x.dim())] // 2 + 1)


# -- new tensors ------------------------------------------------------------------------------------------------------


@shape("randperm")
def randperm(n: Any, **named: Any) -> Shape:
    return (n,)


@shape("normal")
def normal(mean: Any, std: Any, size: Any = None, **named: Any) -> Shape:
    return pointwise(mean, std) if size is None else numbers((size,))


__all__ = ["SHAPES", "Same", "in_order", "rule_of"]
