"""Quick rules (see `shapes`) for products, normalisation, convolution, attention, look-ups and joining."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch

from ..reasons import Break
from .layouts import (
    Declined,
    Spec,
    broadcast,
    dense_like,
    dim_of,
    formatted,
    is_packed,
    is_zero,
    packed,
    suggests_channels_last,
)
from .shapes import need_float, quick

INDEX_TYPES = (torch.int64, torch.int32)

# -- products --------------------------------------------------------------------------------------------------------


@quick("linear")
def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> Spec:
    """`x @ weight.T + bias`."""
    need_float(x, weight, *(() if bias is None else (bias,)))
    if weight.dim() != 2 or x.dim() == 0 or x.shape[-1] != weight.shape[1]:
        raise Declined
    if bias is not None and bias.shape != weight.shape[:1]:
        raise Declined
    return packed((*x.shape[:-1], weight.shape[0]), x.dtype)


@quick("matmul __matmul__")
def matmul(a: torch.Tensor, b: torch.Tensor) -> Spec:
    """Matrix products, over batches of the same number of dimensions or with one matrix on the right."""
    need_float(a, b)
    if a.dim() < 2 or b.dim() < 2 or a.shape[-1] != b.shape[-2] or (b.dim() > 2 and a.dim() < 3):
        raise Declined
    batch = a.shape[:-2] if b.dim() == 2 else broadcast([a.shape[:-2], b.shape[:-2]])
    return packed((*batch, a.shape[-2], b.shape[-1]), a.dtype)


@quick("mm")
def mm(a: torch.Tensor, b: torch.Tensor) -> Spec:
    """One matrix product."""
    if a.dim() != 2 or b.dim() != 2:
        raise Declined
    return matmul(a, b)


@quick("bmm")
def bmm(a: torch.Tensor, b: torch.Tensor) -> Spec:
    """A batch of matrix products."""
    if a.dim() != 3 or b.dim() != 3 or a.shape[0] != b.shape[0]:
        raise Declined
    return matmul(a, b)


@quick("addmm baddbmm")
def addmm(bias: torch.Tensor, *factors: torch.Tensor, beta: Any = 1, alpha: Any = 1, **named: torch.Tensor) -> Spec:
    """A matrix product, or a batch of them, added to something."""
    a, b = (*factors, *[named[name] for name in ("mat1", "mat2", "batch1", "batch2") if name in named])
    need_float(bias, a, b)
    shape, _, dtype = mm(a, b) if a.dim() == 2 else bmm(a, b)
    if broadcast([bias.shape, shape]) != shape:
        raise Declined
    return packed(shape, dtype)


@quick("outer")
def outer(a: torch.Tensor, b: torch.Tensor) -> Spec:
    """Every product of two vectors' elements."""
    need_float(a, b)
    if a.dim() != 1 or b.dim() != 1:
        raise Declined
    return packed((a.shape[0], b.shape[0]), a.dtype)


@quick("mv")
def mv(a: torch.Tensor, b: torch.Tensor) -> Spec:
    """A matrix times a vector."""
    need_float(a, b)
    if a.dim() != 2 or b.dim() != 1 or a.shape[1] != b.shape[0]:
        raise Declined
    return packed(a.shape[:1], a.dtype)


# -- normalisation ---------------------------------------------------------------------------------------------------


def affine(x: torch.Tensor, *parameters: torch.Tensor | None) -> None:
    """Decline unless everything is floating point and `x` contiguous."""
    need_float(x, *(p for p in parameters if p is not None))
    if not x.is_contiguous():
        raise Declined


@quick("layer_norm")
def layer_norm(
    x: torch.Tensor, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Spec:
    """Normalised over the last dimensions."""
    affine(x, weight, bias)
    shape = tuple(normalized_shape)
    if tuple(x.shape[x.dim() - len(shape) :]) != shape or any(
        p is not None and p.shape != shape for p in (weight, bias)
    ):
        raise Declined
    return packed(x.shape, x.dtype)


@quick("rms_norm")
def rms_norm(x: torch.Tensor, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Spec:
    """Scaled by the root of the mean square over the last dimensions."""
    return layer_norm(x, normalized_shape, weight)


@quick("group_norm")
def group_norm(x: torch.Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Spec:
    """Normalised over groups of channels."""
    need_float(x, *(p for p in (weight, bias) if p is not None))
    if x.dim() < 2 or x.shape[1] % num_groups or any(p is not None and p.shape != x.shape[1:2] for p in (weight, bias)):
        raise Declined
    return formatted(x.shape, x.dtype, x)


@quick("batch_norm")
def batch_norm(
    x: torch.Tensor,
    mean: Any,
    var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    *args: Any,
    **named: Any,
) -> Spec:
    """Normalised over the batch, or with the statistics given."""
    need_float(x, *(p for p in (mean, var, weight, bias) if p is not None))
    statistics = (mean, var, weight, bias)
    if training and x.numel() == x.shape[1]:
        raise Declined
    if (
        (mean is None and not training)
        or x.dim() < 2
        or any(p is not None and p.shape != x.shape[1:2] for p in statistics)
    ):
        raise Declined
    return packed(x.shape, x.dtype) if x.is_contiguous() else formatted(x.shape, x.dtype, x)


# -- convolution -----------------------------------------------------------------------------------------------------


def per_dim(value: Any, ndim: int) -> tuple[int, ...]:
    """A number for each spatial dimension."""
    values = (value,) * ndim if type(value) is int else tuple(value)
    if len(values) == 1:
        values *= ndim
    if len(values) != ndim or any(type(n) is not int for n in values):
        raise Declined
    return values


def window(sizes: Sequence[int], kernel: Any, stride: Any, padding: Any, dilation: Any) -> list[int]:
    """How many places a sliding window has along each dimension."""
    ndim = len(sizes)
    rows = zip(sizes, *(per_dim(v, ndim) for v in (kernel, stride, padding, dilation)), strict=True)
    places = [(size + 2 * p - d * (k - 1) - 1) // s + 1 if s > 0 else 0 for size, k, s, p, d in rows]
    if any(n < 1 for n in places):
        raise Declined
    return places


def convolved(shape: tuple[int, ...], x: torch.Tensor, weight: torch.Tensor) -> Spec:
    """The result of a convolution, with channels innermost if an argument suggests that."""
    if len(shape) == 5 and (suggests_channels_last(x) or suggests_channels_last(weight)):
        raise Break("op-failed-on-meta", "a convolution of volumes with their channels innermost")
    if len(shape) != 3:
        return formatted(shape, x.dtype, x, weight)
    # A sequence is convolved as an image of one line.
    line = (x if x.is_contiguous() else torch.empty(x.shape, device=x.device)).unsqueeze(2)
    (batch, channels, _, length), strides, dtype = formatted(
        (*shape[:2], 1, shape[2]), x.dtype, line, weight.unsqueeze(2)
    )
    return (batch, channels, length), (*strides[:2], strides[3]), dtype


def conv(ndim: int) -> Any:
    """The rule of a convolution over `ndim` dimensions."""

    def rule(
        x: torch.Tensor, weight: torch.Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Spec:  # fmt: skip
        need_float(x, weight, *(() if bias is None else (bias,)))
        if x.dim() != ndim + 2 or weight.dim() != ndim + 2 or x.shape[1] != weight.shape[1] * groups:
            raise Declined
        if weight.shape[0] % groups:
            raise Declined
        if bias is not None and bias.shape != weight.shape[:1]:
            raise Declined
        if padding == "same":
            if per_dim(stride, ndim) != (1,) * ndim:
                raise Declined
            places = list(x.shape[2:])
        else:
            edge = 0 if padding == "valid" else padding
            places = window(x.shape[2:], tuple(weight.shape[2:]), stride, edge, dilation)
        return convolved((x.shape[0], weight.shape[0], *places), x, weight)

    return rule


def conv_transpose(ndim: int) -> Any:
    """The rule of a transposed convolution over `ndim` dimensions."""

    def rule(
        x: torch.Tensor, weight: torch.Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
    ) -> Spec:  # fmt: skip
        need_float(x, weight, *(() if bias is None else (bias,)))
        if x.dim() != ndim + 2 or weight.dim() != ndim + 2 or x.shape[1] != weight.shape[0] or x.shape[1] % groups:
            raise Declined
        channels = weight.shape[1] * groups
        if bias is not None and bias.shape != (channels,):
            raise Declined
        options = (per_dim(v, ndim) for v in (tuple(weight.shape[2:]), stride, padding, output_padding, dilation))
        rows = zip(x.shape[2:], *options, strict=True)
        if any(extra >= max(s, d) for _, _, s, _, extra, d in rows):
            raise Declined
        options = (per_dim(v, ndim) for v in (tuple(weight.shape[2:]), stride, padding, output_padding, dilation))
        rows = zip(x.shape[2:], *options, strict=True)
        places = [(size - 1) * s - 2 * p + d * (k - 1) + extra + 1 for size, k, s, p, extra, d in rows]
        return convolved((x.shape[0], channels, *places), x, weight)

    return rule


for _ndim in (1, 2, 3):
    quick(f"conv{_ndim}d")(conv(_ndim))
    quick(f"conv_transpose{_ndim}d")(conv_transpose(_ndim))


def pooled(ndim: int, x: torch.Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any = 1) -> Spec:
    """Pooling over the last `ndim` dimensions: of images in any layout, of others where they are contiguous."""
    need_float(x)
    if x.dim() not in (ndim + 1, ndim + 2) or not (ndim == 2 or is_packed(x)):
        raise Declined
    if any(2 * p > k for p, k in zip(per_dim(padding, ndim), per_dim(kernel, ndim), strict=True)):
        raise Declined
    shape = (*x.shape[:-ndim], *window(x.shape[-ndim:], kernel, stride or kernel, padding, dilation))
    return formatted(shape, x.dtype, x) if ndim == 2 else packed(shape, x.dtype)


def with_indices(spec: Spec) -> tuple[Spec, Spec]:
    """A result, and where its elements were."""
    return spec, (*spec[:2], torch.int64)


@quick("max_pool2d")
def max_pool2d(
    x: torch.Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    if ceil_mode or per_dim(dilation, 2) != (1, 1):
        raise Declined
    spec = pooled(2, x, kernel_size, stride, padding)
    return with_indices(spec) if return_indices else spec


#: ways of interpolation -> numbers of dimensions that they're for
INTERPOLATIONS = {"nearest": (3, 4, 5), "linear": (3,), "bilinear": (4,), "bicubic": (4,), "trilinear": (5,)}


@quick("interpolate")
def interpolate(
    x: torch.Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
    recompute_scale_factor: Any = None, antialias: bool = False,
) -> Spec:  # fmt: skip
    """Images, sequences or volumes made larger or smaller."""
    need_float(x)
    ndim = x.dim() - 2
    if x.dim() not in INTERPOLATIONS.get(mode, ()) or recompute_scale_factor or antialias:
        raise Declined
    if (mode == "nearest" and align_corners is not None) or (size is None) == (scale_factor is None):
        raise Declined
    if ndim != 2 and not is_packed(x):
        raise Declined
    if size is not None:
        places = per_dim(size, ndim)
    else:
        scales = (scale_factor,) * ndim if isinstance(scale_factor, (int, float)) else tuple(scale_factor)
        places = tuple(math.floor(float(n) * scale) for n, scale in zip(x.shape[2:], scales, strict=True))
    if min(places) < 1:
        raise Declined
    return formatted((*x.shape[:2], *places), x.dtype, x)


@quick("max_pool1d")
def max_pool1d(
    x: torch.Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Spec:  # fmt: skip
    """Pooling of sequences, by the kernel for tensors that don't learn."""
    need_float(x)
    if ceil_mode or return_indices or x.dim() != 3 or (x.requires_grad and torch.is_grad_enabled()):
        raise Declined
    if 2 * per_dim(padding, 1)[0] > per_dim(kernel_size, 1)[0]:
        raise Declined
    places = window(x.shape[-1:], kernel_size, stride or kernel_size, padding, dilation)
    return packed((*x.shape[:-1], *places), x.dtype)


@quick("avg_pool2d")
def avg_pool2d(
    x: torch.Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Spec:  # fmt: skip
    if ceil_mode or divisor_override is not None:
        raise Declined
    return pooled(2, x, kernel_size, stride, padding)


@quick("adaptive_avg_pool2d")
def adaptive_avg_pool2d(x: torch.Tensor, output_size: Any) -> Spec:
    """Pooling of images to a given size."""
    need_float(x)
    if x.dim() not in (3, 4):
        raise Declined
    return formatted((*x.shape[:-2], *per_dim(output_size, 2)), x.dtype, x)


# -- attention -------------------------------------------------------------------------------------------------------


@quick("scaled_dot_product_attention")
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Any = None, enable_gqa: bool = False,
) -> Spec:  # fmt: skip
    """Attention by the fused kernel, whose result is laid out as the queries are: stand-ins know another kernel."""
    need_float(q, k, v)
    if q.dim() == k.dim() == v.dim() == 3:
        return attention_of_one_head(q, k, v, attn_mask, dropout_p)
    batch, heads, _, width = q.shape
    kv_heads = k.shape[1]
    if k.shape != v.shape or k.shape[0] != batch or k.shape[3] != width or (attn_mask is not None and is_causal):
        raise Declined
    if heads != kv_heads and not (enable_gqa and heads % kv_heads == 0):
        raise Declined
    if attn_mask is not None and not fits(attn_mask, q, k):
        raise Declined
    masked_with_grad = attn_mask is not None and attn_mask.requires_grad
    empty = any(map(is_zero, (*q.shape, *k.shape)))
    if dropout_p or masked_with_grad or not torch.backends.cuda.flash_sdp_enabled() or empty:
        return packed(q.shape, q.dtype)
    if any(t.stride(-1) != 1 for t in (q, k, v)):
        raise Declined
    return tuple(q.shape), dense_like(q), q.dtype


def attention_of_one_head(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any, dropout_p: float) -> Spec:
    """Attention without a dimension of heads, which the fused kernel takes in some releases of torch."""
    batch, length, width = q.shape
    if k.shape != (batch, k.shape[1], width) or v.shape[:2] != k.shape[:2]:
        raise Declined
    if mask is not None and broadcast([mask.shape, (batch, length, k.shape[1])]) != (batch, length, k.shape[1]):
        raise Declined
    spec = packed((batch, length, v.shape[2]), q.dtype)
    plainly = v.shape != k.shape or dropout_p or (mask is not None and mask.requires_grad)
    if plainly or is_packed(q) or not fused_without_heads():
        return spec
    if any(t.stride(-1) != 1 for t in (q, k, v)):
        raise Declined
    return spec[0], dense_like(q), q.dtype


@functools.cache
def fused_without_heads() -> bool:
    """Whether this torch's fused kernel takes such queries: its results are laid out as they are."""
    q = torch.zeros(3, 2, 4, device="cpu").transpose(0, 1)
    with torch.no_grad():
        return torch.nn.functional.scaled_dot_product_attention(q, q, q).stride() == q.stride()


def fits(mask: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> bool:
    """Whether an attention mask has the right dtype and broadcasts to the scores."""
    scores = (*q.shape[:3], k.shape[2])
    return mask.dtype in (torch.bool, q.dtype) and mask.dim() in (2, 4) and broadcast([mask.shape, scores]) == scores


@quick("multi_head_attention_forward")
def multi_head_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, width: int, num_heads: int, in_weight: Any, in_bias: Any,
    bias_k: Any, bias_v: Any, add_zero_attn: bool, dropout_p: float, out_weight: torch.Tensor,
    out_bias: Any, training: bool = True,
    key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None, k_proj_weight: Any = None, v_proj_weight: Any = None,
    static_k: Any = None, static_v: Any = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Spec, Spec | None]:  # fmt: skip
    """A whole attention layer over batches, and the weights that it gave if they are wanted."""
    unusual = (bias_k, bias_v, static_k, static_v, q_proj_weight)
    if add_zero_attn or use_separate_proj_weight or any(o is not None for o in unusual):
        raise Declined
    need_float(q, k, v, in_weight, out_weight, *(b for b in (in_bias, out_bias) if b is not None))
    if q.dim() != 3 or k.shape != v.shape or q.shape[1:] != k.shape[1:] or q.shape[2] != width or width % num_heads:
        raise Declined
    if in_weight.shape != (3 * width, width) or out_weight.shape != (width, width):
        raise Declined
    length, batch, _ = q.shape
    heads = () if average_attn_weights else (num_heads,)
    weights = packed((batch, *heads, length, k.shape[0]), q.dtype) if need_weights else None
    return packed(q.shape, q.dtype), weights


@quick("_transformer_encoder_layer_fwd")
def encoder_layer(x: torch.Tensor, *args: Any) -> Spec:
    """The fused layer of `nn.TransformerEncoderLayer`, whose module has checked the arguments."""
    need_float(x)
    if x.dim() != 3:
        raise Declined
    return packed(x.shape, x.dtype)


@quick("_native_multi_head_attention")
def native_attention(q: torch.Tensor, *args: Any, need_weights: bool = True, **named: Any) -> tuple[Spec, None]:
    """The fused layer of `nn.MultiheadAttention`, whose module has checked the arguments."""
    if len(args) > 8 and need_weights is True:
        need_weights = args[9] if len(args) > 9 else True
    need_float(q)
    if q.dim() != 3 or need_weights:
        raise Declined
    return packed(q.shape, q.dtype), None


# -- look-ups and joining --------------------------------------------------------------------------------------------


@quick("embedding")
def embedding(
    index: torch.Tensor, weight: torch.Tensor, padding_idx: Any = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Spec:  # fmt: skip
    """Rows of `weight`."""
    if index.dtype not in INDEX_TYPES or weight.dim() != 2 or max_norm is not None:
        raise Declined
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise Declined
    return packed((*index.shape, weight.shape[1]), weight.dtype)


@quick("gather")
def gather(x: torch.Tensor, dim: int, index: torch.Tensor) -> Spec:
    """Elements along one dimension."""
    dim = dim_of(dim, x.dim())
    if index.dtype is not torch.int64 or index.dim() != x.dim() or x.dim() == 0:
        raise Declined
    if any(i > s for place, (i, s) in enumerate(zip(index.shape, x.shape, strict=True)) if place != dim):
        raise Declined
    return packed(index.shape, x.dtype)


@quick("index_select")
def index_select(x: torch.Tensor, dim: int, index: torch.Tensor) -> Spec:
    """Slices along one dimension."""
    dim = dim_of(dim, x.dim())
    if index.dtype not in INDEX_TYPES or index.dim() != 1 or not is_packed(x) or x.dim() == 0:
        raise Declined
    return packed((*x.shape[:dim], index.shape[0], *x.shape[dim + 1 :]), x.dtype)


@quick("getitem __getitem__")
def getitem(x: torch.Tensor, index: Any) -> Spec:
    """Rows picked by tensors of integers for the leading dimensions."""
    indices = index if isinstance(index, tuple) else (index,)
    if any(isinstance(i, torch.Tensor) and i.dtype in (torch.bool, torch.uint8) for i in indices):
        raise Break("data-dependent-shape", "getitem: how many elements a mask picks depends on its values")
    if not indices or len(indices) > x.dim() or not is_packed(x):
        raise Declined
    if any(not isinstance(i, torch.Tensor) or i.dtype is not torch.int64 or i.dim() == 0 for i in indices):
        raise Declined
    return packed((*broadcast([i.shape for i in indices]), *x.shape[len(indices) :]), x.dtype)


@quick("cat concat concatenate")
def cat(tensors: Sequence[torch.Tensor], dim: int = 0, *, axis: int | None = None) -> Spec:
    """Tensors of one dtype, one after the other."""
    dtype = tensors[0].dtype
    if any(t.dtype != dtype for t in tensors):
        raise Declined
    tensors = [
        t for t in tensors if t.dim() != 1 or not is_zero(t.shape[0])
    ]  # torch ignores these whatever the others' shape
    first = tensors[0]
    if first.dim() == 0:
        raise Declined
    dim = dim_of(dim if axis is None else axis, first.dim())
    size = 0
    for t in tensors:
        if t.dim() != first.dim():
            raise Declined
        if t.shape[:dim] != first.shape[:dim] or t.shape[dim + 1 :] != first.shape[dim + 1 :]:
            raise Declined
        size += t.shape[dim]
    shape = (*first.shape[:dim], size, *first.shape[dim + 1 :])
    return formatted(shape, dtype, first) if all(map(suggests_channels_last, tensors)) else packed(shape, dtype)


@quick("roll")
def roll(x: torch.Tensor, shifts: Any, dims: Any = ()) -> Spec:
    """Elements moved around along some dimensions."""
    places = [dims] if isinstance(dims, int) else list(dims)
    moves = [shifts] if isinstance(shifts, int) else list(shifts)
    if len(places) != len(moves) and (places or len(moves) != 1):
        raise Declined
    for place in places:
        dim_of(place, x.dim())
    if suggests_channels_last(x):
        raise Break("op-failed-on-meta", "roll of images with their channels innermost")
    if not is_packed(x):
        raise Declined
    return packed(x.shape, x.dtype)


@quick("stack")
def stack(tensors: Sequence[torch.Tensor], dim: int = 0) -> Spec:
    """Contiguous tensors of one shape and dtype along a new dimension."""
    first = tensors[0]
    dim = dim_of(dim, first.dim() + 1)
    if any(t.dtype != first.dtype or t.shape != first.shape or not is_packed(t) for t in tensors):
        raise Declined
    return packed((*first.shape[:dim], len(tensors), *first.shape[dim:]), first.dtype)


@quick("repeat")
def repeat(x: torch.Tensor, *sizes: Any) -> Spec:
    """Copies of `x` along each dimension."""
    times = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if len(times) < x.dim() or any(type(n) is not int or n < 1 for n in times):
        raise Declined
    shape = (1,) * (len(times) - x.dim()) + tuple(x.shape)
    return packed(tuple(n * size for n, size in zip(times, shape, strict=True)), x.dtype)


@quick("one_hot")
def one_hot(x: torch.Tensor, num_classes: int) -> Spec:
    """Classes as vectors; how many there are is known."""
    if x.dtype is not torch.int64 or type(num_classes) is not int or num_classes < 1:
        raise Declined
    return packed((*x.shape, num_classes), torch.int64)


@quick("index_add")
def index_add(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> Spec:
    """Slices added at places along one dimension."""
    if x.dim() == 0 or source.dtype is not x.dtype or index.dtype not in INDEX_TYPES or index.dim() != 1:
        raise Declined
    dim = dim_of(dim, x.dim())
    if source.shape != (*x.shape[:dim], index.shape[0], *x.shape[dim + 1 :]) or not is_packed(x):
        raise Declined
    return packed(x.shape, x.dtype)


@quick("scatter_add")
def scatter_add(x: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor) -> Spec:
    """Elements added at places along one dimension."""
    if src.dtype is not x.dtype or index.dtype is not torch.int64 or not is_packed(x):
        raise Declined
    dim = dim_of(dim, x.dim())
    if x.dim() == 0 or not index.dim() == src.dim() == x.dim():
        raise Declined
    if any(i > s for i, s in zip(index.shape, src.shape, strict=True)):
        raise Declined
    if any(i > s for place, (i, s) in enumerate(zip(index.shape, x.shape, strict=True)) if place != dim):
        raise Declined
    return packed(x.shape, x.dtype)
