"""Quick rules (see `shapes`) for recurrent layers, pooling, padding, rearranging, and further losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .layouts import Declined, Spec, is_packed, packed
from .shapes import dropout, need_float, quick
from .shapes_math import need_packed
from .shapes_nn import per_dim, pooled, with_indices

# -- recurrent layers ------------------------------------------------------------------------------------------------


def layer_output(x: torch.Tensor, hidden: torch.Tensor, flags: Sequence[Any]) -> Spec:
    """What a layer gives for every step. The flags: biases, layers, dropout, training, both directions, batch first."""
    *_, bidirectional, batch_first = flags
    need_float(x, hidden)
    if len(flags) != 6 or x.dim() != 3 or hidden.dim() != 3:
        raise Declined
    width = hidden.shape[2] * (2 if bidirectional else 1)
    if not batch_first:
        return packed((x.shape[0], x.shape[1], width), x.dtype)
    batch, steps = x.shape[:2]
    packed((batch, steps, width), x.dtype)
    return (batch, steps, width), (width, batch * width, 1), x.dtype  # computed step by step, then transposed


@quick("lstm")
def lstm(x: torch.Tensor, hidden: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], *flags: Any) -> Any:
    """A layer whose state has two parts."""
    h, c = hidden
    return layer_output(x, h, flags), packed(h.shape, x.dtype), packed(c.shape, x.dtype)


@quick("gru rnn_tanh rnn_relu")
def gru(x: torch.Tensor, hidden: torch.Tensor, weights: Sequence[torch.Tensor], *flags: Any) -> Any:
    """A layer whose state is its last output."""
    return layer_output(x, hidden, flags), packed(hidden.shape, x.dtype)


@quick("lstm_cell")
def lstm_cell(x: torch.Tensor, hidden: Sequence[torch.Tensor], *weights: Any) -> tuple[Spec, Spec]:
    """One step of a layer whose state has two parts."""
    h, c = hidden
    need_float(x, h, c)
    return packed(h.shape, x.dtype), packed(c.shape, x.dtype)


@quick("gru_cell rnn_tanh_cell rnn_relu_cell")
def gru_cell(x: torch.Tensor, hidden: torch.Tensor, *weights: Any) -> Spec:
    """One step of a layer whose state is its last output."""
    need_float(x, hidden)
    return packed(hidden.shape, x.dtype)


# -- normalisation and dropout ---------------------------------------------------------------------------------------

quick("dropout1d dropout2d dropout3d")(dropout)


@quick("alpha_dropout feature_alpha_dropout")
def alpha_dropout(x: torch.Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Spec:
    """Dropout that keeps mean and variance; off unless asked for."""
    return dropout(x, p, training, inplace)


@quick("instance_norm")
def instance_norm(x: torch.Tensor, *statistics: Any, **named: Any) -> Spec:
    """Every channel of every example normalised on its own."""
    need_float(x, *(t for t in (*statistics, *named.values()) if isinstance(t, torch.Tensor)))
    need_packed(x)
    if x.dim() < 3:
        raise Declined
    return packed(x.shape, x.dtype)


@quick("local_response_norm")
def local_response_norm(x: torch.Tensor, *options: Any, **named: Any) -> Spec:
    """Every element divided by the size of its neighbours in other channels."""
    need_float(x)
    need_packed(x)
    if x.dim() < 3:
        raise Declined
    return packed(x.shape, x.dtype)


# -- pooling, of tensors whose channels aren't innermost -------------------------------------------------------------


def max_pool(ndim: int) -> Any:
    """The rule of largest elements under a window, with where they were if that is wanted."""

    def rule(
        x: torch.Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        if ceil_mode:
            raise Declined
        spec = pooled(ndim, x, kernel_size, stride, padding, dilation)
        return with_indices(spec) if return_indices else spec

    return rule


def max_pool_with_indices(ndim: int) -> Any:
    """The rule of the function that always says where the elements were."""
    rule = max_pool(ndim)

    def always(x: torch.Tensor, *args: Any, return_indices: bool = True, **named: Any) -> Any:
        return with_indices(rule(x, *args[:5], **named))

    return always


def avg_pool(ndim: int) -> Any:
    """The rule of averages under a window."""

    def rule(
        x: torch.Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: Any = None,
    ) -> Spec:  # fmt: skip
        if ceil_mode or divisor_override is not None:
            raise Declined
        return pooled(ndim, x, kernel_size, stride, padding)

    return rule


def adaptive(ndim: int) -> Any:
    """The rule of pooling to a given size."""

    def rule(x: torch.Tensor, output_size: Any, return_indices: bool = False) -> Any:
        need_float(x)
        need_packed(x)
        if x.dim() not in (ndim + 1, ndim + 2):
            raise Declined
        spec = packed((*x.shape[:-ndim], *per_dim(output_size, ndim)), x.dtype)
        return with_indices(spec) if return_indices else spec

    return rule


quick("max_pool3d")(max_pool(3))
for _ndim in (1, 2, 3):
    quick(f"max_pool{_ndim}d_with_indices")(max_pool_with_indices(_ndim))
for _ndim in (2, 3):  # torch has another function of the name for sequences
    quick(f"adaptive_max_pool{_ndim}d")(adaptive(_ndim))
for _ndim in (1, 3):
    quick(f"avg_pool{_ndim}d")(avg_pool(_ndim))
    quick(f"adaptive_avg_pool{_ndim}d")(adaptive(_ndim))


# -- rearranging -----------------------------------------------------------------------------------------------------


@quick("pixel_shuffle")
def pixel_shuffle(x: torch.Tensor, upscale_factor: int) -> Spec:
    """Channels become finer pixels."""
    need_packed(x)
    r = upscale_factor
    if x.dim() < 3 or type(r) is not int or r < 1 or x.shape[-3] % (r * r):
        raise Declined
    *batch, channels, height, width = x.shape
    return packed((*batch, channels // (r * r), height * r, width * r), x.dtype)


@quick("pixel_unshuffle")
def pixel_unshuffle(x: torch.Tensor, downscale_factor: int) -> Spec:
    """Pixels become channels."""
    need_packed(x)
    r = downscale_factor
    if x.dim() < 3 or type(r) is not int or r < 1 or x.shape[-1] % r or x.shape[-2] % r:
        raise Declined
    *batch, channels, height, width = x.shape
    return packed((*batch, channels * r * r, height // r, width // r), x.dtype)


@quick("glu")
def glu(x: torch.Tensor, dim: int = -1) -> Spec:
    """One half of a dimension, scaled by the other."""
    need_float(x)
    need_packed(x)
    if not -x.dim() <= dim < x.dim() or x.shape[dim] % 2:
        raise Declined
    dim %= x.dim()
    return packed((*x.shape[:dim], x.shape[dim] // 2, *x.shape[dim + 1 :]), x.dtype)


@quick("gumbel_softmax")
def gumbel_softmax(x: torch.Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Spec:
    """Softmax of disturbed scores."""
    need_float(x)
    need_packed(x)
    if not -x.dim() <= dim < x.dim():
        raise Declined
    return packed(x.shape, x.dtype)


@quick("bilinear")
def bilinear(a: torch.Tensor, b: torch.Tensor, weight: torch.Tensor, bias: Any = None) -> Spec:
    """A form of two vectors for each output."""
    need_float(a, b, weight)
    need_packed(a, b)
    if a.dim() < 2 or a.shape[:-1] != b.shape[:-1] or weight.shape[1:] != (a.shape[-1], b.shape[-1]):
        raise Declined
    return packed((*a.shape[:-1], weight.shape[0]), a.dtype)


@quick("pad")
def pad(x: torch.Tensor, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Spec:
    """Edges mirrored or repeated; constant ones are laid out by the operation itself."""
    if mode not in ("reflect", "replicate") or len(pad) % 2 or any(type(n) is not int or n < 0 for n in pad):
        raise Declined
    need_packed(x)
    n = len(pad) // 2
    if x.dim() not in (n + 1, n + 2):
        raise Declined
    shape = list(x.shape)
    for place in range(n):
        before, after = pad[2 * place : 2 * place + 2]
        if mode == "reflect" and max(before, after) >= shape[-1 - place]:
            raise Declined
        shape[-1 - place] += before + after
    return packed(shape, x.dtype)


@quick("grid_sample")
def grid_sample(
    x: torch.Tensor, grid: torch.Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Any = None
) -> Spec:
    """Pixels at places that a grid says."""
    need_float(x, grid)
    need_packed(x, grid)
    if x.dim() not in (4, 5) or grid.dim() != x.dim() or grid.shape[0] != x.shape[0] or grid.shape[-1] != x.dim() - 2:
        raise Declined
    return packed((*x.shape[:2], *grid.shape[1:-1]), x.dtype)


# -- losses ----------------------------------------------------------------------------------------------------------

def reduced_loss(elements: Sequence[int], reduction: Any, dtype: torch.dtype) -> Spec:
    """A loss for each element, or one number."""
    if reduction not in ("none", "mean", "sum"):
        raise Declined
    return packed(elements if reduction == "none" else (), dtype)


#: options of losses that don't change the result's shape
LOSS_OPTIONS = frozenset("margin p eps swap log_target log_input full delta beta pos_weight weight".split())


def check_loss(named: dict[str, Any], reduction: str, *tensors: Any) -> None:
    """Decline what isn't floating point, losses of elements that aren't contiguous, and the old names of reductions."""
    need_float(*tensors)
    if reduction == "none":
        need_packed(*tensors)
    if any(value is not None and name not in LOSS_OPTIONS for name, value in named.items()):
        raise Declined


@quick(
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div "
    "soft_margin_loss hinge_embedding_loss poisson_nll_loss"
)
def loss_of_elements(x: torch.Tensor, target: torch.Tensor, *, reduction: str = "mean", **named: Any) -> Spec:
    """Losses of every element, with options."""
    check_loss(named, reduction, x, target)
    if x.shape != target.shape:
        raise Declined
    return packed((), x.dtype) if reduction == "batchmean" else reduced_loss(x.shape, reduction, x.dtype)


@quick("gaussian_nll_loss margin_ranking_loss")
def loss_of_three(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, *, reduction: str = "mean", **named: Any) -> Spec:
    """Losses of the elements of three tensors."""
    check_loss(named, reduction, x, y, z)
    if not x.shape == y.shape == z.shape:
        raise Declined
    return reduced_loss(x.shape, reduction, x.dtype)


@quick("triplet_margin_loss")
def loss_of_rows(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, *, reduction: str = "mean", **named: Any) -> Spec:
    """Losses of three tensors' vectors."""
    check_loss(named, reduction, x, y, z)
    if not x.shape == y.shape == z.shape or x.dim() == 0:
        raise Declined
    return reduced_loss(x.shape[:-1], reduction, x.dtype)


@quick("cosine_embedding_loss")
def cosine_loss(
    x: torch.Tensor, y: torch.Tensor, target: torch.Tensor, *, reduction: str = "mean", **named: Any
) -> Spec:
    """Losses of pairs of vectors that should point the same way, or not."""
    check_loss(named, reduction, x, y)
    if x.shape != y.shape or x.dim() != 2 or target.shape != x.shape[:1]:
        raise Declined
    return reduced_loss(target.shape, reduction, x.dtype)


@quick("multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss")
def loss_of_scores(x: torch.Tensor, target: torch.Tensor, *, reduction: str = "mean", **named: Any) -> Spec:
    """Losses of rows of scores."""
    check_loss(named, reduction, x)
    if x.dim() != 2 or target.shape not in (x.shape, x.shape[:1]) or not is_packed(target):
        raise Declined
    return reduced_loss(x.shape[:1], reduction, x.dtype)


@quick("cross_entropy nll_loss")
def class_loss(
    x: torch.Tensor, target: torch.Tensor, weight: Any = None, size_average: Any = None, ignore_index: int = -100,
    reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Spec:  # fmt: skip
    """Losses of class scores against class numbers."""
    need_float(x, *(() if weight is None else (weight,)))
    if size_average is not None or reduce is not None or target.dtype is not torch.int64 or not is_packed(x):
        raise Declined
    if x.dim() < 2 or target.shape != (x.shape[0], *x.shape[2:]) or not 0 <= label_smoothing <= 1:
        raise Declined
    if weight is not None and weight.shape != x.shape[1:2]:
        raise Declined
    return reduced_loss(target.shape, reduction, x.dtype)
