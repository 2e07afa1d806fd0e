"""Every lowering under Triton's interpreter against eager."""

import pytest
import torch
import torch.nn.functional as F
from gpu.helpers import assert_same, checked_reports, run
from gpu.programs import tensors

import dynacore

UNARY = (
    "exp exp2 log2 log10 log1p expm1 sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh atanh erf "
    "erfc sigmoid lgamma erfinv neg abs floor ceil round trunc sign isnan isinf square relu"
).split()
BINARY = "add sub mul div maximum minimum fmax fmin remainder fmod atan2 eq lt ge ne copysign floor_divide".split()
INTEGER = "add sub mul div maximum remainder fmod bitwise_and bitwise_or bitwise_xor eq lt floor_divide".split()
X, Y = tensors((5, 7), (5, 7))
INTS = torch.arange(-17, 18).view(5, 7), (torch.arange(35) % 4 + 1).view(5, 7)
ROWS = torch.tensor([4, 0, 4, 2])


def test_unary_operations():
    run(lambda x: [getattr(torch, name)(x) for name in UNARY], (X * 0.3).clamp(-0.99, 0.99))


def test_unary_operations_on_half():
    run(lambda x: [getattr(torch, name)(x) for name in ("exp", "sigmoid", "tanh", "neg", "square")], X.half())


def test_binary_operations():
    run(lambda x, y: [getattr(torch, name)(x, y) for name in BINARY], X, Y)
    run(lambda x, y: torch.pow(x, y), X.abs() + 0.1, Y)


def test_integer_operations():
    run(lambda x, y: [getattr(torch, name)(x, y) for name in INTEGER], *INTS)
    run(lambda x, y: [x / y, x // y, x % y, x > 3, x + 0.5, ~x, x.bool() & y.bool()], *INTS)


def test_numbers_beside_tensors_of_every_dtype():
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.uint8):
        run(lambda x: [x * 2 + 1, x - 0.1, x > 1, x.float() / 3], (X.abs() * 3).to(dtype))


def test_padding_of_every_dtype():
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.uint8, torch.bool):
        run(lambda x: F.pad(x, (1, 2), value=3), (X.abs() * 3).to(dtype))


def test_promotion():
    run(lambda x, y: [x + y, x * y.half(), torch.where(x > 0, x, y)], X, Y.half())
    run(lambda x, n: [x + n, x.half() * n], X, torch.tensor(0.1, dtype=torch.float64))


VIEWS = {
    "slice": lambda x: x[1:4, ::3] * 2,
    "slice from the end": lambda x: x[-2:, -3:-1] + 1,
    "cat": lambda x: torch.cat([x, x[:, :2], x.flip(1)], 1) + 1,
    "stack": lambda x: torch.stack([x, x * 2], 1),
    "pad": lambda x: F.pad(x, (1, 2, 3, 0), value=2.5) * 2,
    "pad of integers": lambda x: F.pad(x.long(), (0, 1), value=-100) + 1,
    "crop": lambda x: F.pad(x, (-1, 2)) + 1,
    "flip": lambda x: x.flip(0, 1) + x,
    "roll": lambda x: x.roll(3, 1) + x,
    "transpose": lambda x: (x.t() * 2, x.t().contiguous()),
    "permute": lambda x: x.view(5, 7, 1).permute(2, 1, 0) + 1,
    "expand": lambda x: x[:, :1].expand(5, 7) * x,
    "repeat": lambda x: x.repeat(2, 3) + 1,
    "tril": lambda x: (x.tril(1), x.triu(-1)),
    "diagonal": lambda x: x.diagonal() * 2,
    "diagonal_scatter": lambda x: torch.diagonal_scatter(x, x[:3, 0], -2) + x.diagonal_scatter(x[:, 1], 2),
    "unfold": lambda x: x.unfold(1, 3, 2) * 2,
    "as_strided": lambda x: torch.as_strided(x, (3, 3), (2, 1)) * 2,
    "select": lambda x: x[2] + x[:, 3][:1],
    "select_scatter": lambda x: torch.select_scatter(x, x[0] * 2, 0, 2),
    "slice_scatter": lambda x: torch.slice_scatter(x, x[:2] * 2, 0, 1, 5, 2),
    "split": lambda x: [part + 1 for part in x.split(3, 1)],
    "chunk of reshaped": lambda x: [part * 2 for part in x.reshape(7, 5).chunk(2, 0)],
    "outputs that are views": lambda x: (x, x + 1, x.t(), (x + 1).t(), x.clone()),
    "full, arange, eye": lambda x: (x + torch.arange(7), torch.full((3,), 2.5) + 1, torch.eye(5) * x[:, :5]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name):
    run(VIEWS[name], X)


REDUCTIONS = {
    "sum": lambda x: (x.sum(), x.sum(0), x.sum(1, keepdim=True), x.sum((0, 1))),
    "mean": lambda x: (x.mean(), x.mean(0), x.mean(-1)),
    "variance": lambda x: (x.var(-1), x.std(0), torch.var_mean(x, 1, correction=0)),
    "extremes": lambda x: (x.amax(1), x.amin(0), x.max(), x.min(1), x.max(0)),
    "positions": lambda x: (x.argmax(-1), x.argmin(0), x.argmax(), x.argmax(1, keepdim=True)),
    "truth": lambda x: ((x > 0).any(-1), (x > -9).all(), (x > 0).sum(-1)),
    "product": lambda x: x.prod(-1),
    "norm": lambda x: (x.norm(dim=-1), torch.linalg.vector_norm(x)),
    "logsumexp": lambda x: x.logsumexp(-1),
    "running": lambda x: (x.cumsum(-1) * 2, x.cumsum(0), (x > 0).cumsum(1), x.cumprod(-1), x.softmax(-1).cumsum(-1)),
    "down a column": lambda x: F.softmax(x, 0),
    "middle": lambda x: x.view(5, 7, 1).expand(5, 7, 3).sum(1),
    "with what reads it": lambda x: (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1) * x.sum(),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    run(REDUCTIONS[name], X)


def test_extremes_of_flags():
    run(lambda x: ((x > 0).amin(0), (x > 0).amax(1), (x > 0).max(), (x > 0).max(1), (x[:0] > 0).any(0)), X)
    run(lambda x: (x.all(1, keepdim=True).amax(1), x.long().bool().int() + 1), X)


def test_reductions_of_nan_and_infinity():
    x = torch.tensor([[1.0, float("nan"), 3.0], [4.0, 5.0, 6.0], [float("-inf")] * 3])
    run(lambda x: (x.amax(1), x.max(), x.argmax(1), x.argmin(1), x.softmax(1), x.sum(1)), x)


LONG = {
    "softmax": lambda x: F.softmax(x, -1),
    "layer norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "extremes": lambda x: (x.argmax(-1), x.amax(-1), x.argmin(-1), x.sum(-1)),
    "cross-entropy": lambda x: F.cross_entropy(x, torch.tensor([3, 20000])),
    "everything": lambda x: (x.sum(), x.max()),
}


@pytest.mark.parametrize("name", LONG)
def test_rows_too_long_to_be_held(name):
    run(LONG[name], tensors((2, 20011))[0])


POSITIONS = {
    "embedding": lambda x: F.embedding(ROWS, x) * 2,
    "gather": lambda x: x.gather(1, (ROWS % 3).view(4, 1)) + 1,
    "rows": lambda x: x[ROWS] + 1,
    "elements": lambda x: x[ROWS, ROWS - 2] + 1,
    "rows and slice": lambda x: x[:, ROWS] * 2,
    "index_select": lambda x: x.index_select(1, ROWS) + 1,
    "take_along_dim": lambda x: torch.take_along_dim(x, x.argmax(1, keepdim=True), 1),
    "index_put": lambda x: torch.index_put(x, (torch.tensor([1, 3]),), torch.ones(7)),
    "index_put, added": lambda x: torch.index_put(x, (ROWS,), x[:4], accumulate=True),
    "mask": lambda x: torch.index_put(x, (x > 0,), x.new_zeros(())),
    "masked_fill": lambda x: x.masked_fill(x > 0, -1e9),
    "scatter": lambda x: torch.scatter(x, 1, torch.tensor([[1], [2], [3], [4], [5]]), 1.5),
    "scatter_add": lambda x: torch.scatter_add(x, 0, ROWS.view(4, 1).expand(4, 7), x[:4] * 2),
    "index_add": lambda x: torch.index_add(x, 0, ROWS, x[:4]) + 1,
    "one_hot": lambda x: F.one_hot(ROWS, 6) + 1,
    "interpolate": lambda x: F.interpolate(x.view(1, 1, 5, 7), scale_factor=2),
    "interpolate, bilinear": lambda x: F.interpolate(x.view(1, 1, 5, 7), scale_factor=2, mode="bilinear"),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_held_by_tensors(name):
    run(POSITIONS[name], X)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1), (), (3,), (2, 3, 1, 5)])
def test_odd_shapes(shape):
    x = torch.ones(shape)
    run(lambda x: (x * 2, x.sum(), x + x.sum(-1, keepdim=True)) if x.ndim else (x * 2, x.sum()), x)


def test_strides():
    x = torch.arange(48.0).view(8, 6)
    for view in (x.t(), x[::2, 1:5], x[:, :1].expand(8, 6), x.view(2, 4, 6).transpose(0, 1)):
        run(lambda x: (x * 2, x.softmax(-1), x.contiguous(), x.sum(0)), view)


def test_losses():
    t = torch.tensor([1, 0, 6, -100, 3])
    run(lambda x, y: (F.mse_loss(x, y), F.binary_cross_entropy_with_logits(x, y.sigmoid()), F.huber_loss(x, y)), X, Y)
    run(lambda x: (F.cross_entropy(x, t), F.nll_loss(x, t, reduction="sum")), X)
    run(lambda x: F.cross_entropy(x, t, reduction="none", label_smoothing=0.1), X)


def test_matrix_products_and_what_follows():
    w, b = tensors((4, 7), (4,))
    reports = run(lambda x: F.gelu(F.linear(x, w, b)) + 1, X)
    assert [name for name, _ in reports[0].aten_calls] == ["aten.addmm"]
    assert "addmm.out" in reports[0].program
    run(lambda x: (x @ w.t()).softmax(-1) @ w, X)


def test_inputs_that_are_overwritten():
    def swap(x, y):
        old = x.clone()
        x.copy_(y.flip(0))
        y.copy_(old + 1)
        x.add_(y.sum())
        return x * 2

    def shift(x, y):
        x[1:] = x[:-1].clone()
        y.mul_(x)
        return y.sum(), x.cumsum(0)

    for function in (swap, shift):
        want, got = [X.clone(), Y.clone()], [X.clone(), Y.clone()]
        expected = function(*want)
        assert_same(dynacore.compile(function, backend="gpu", fullgraph=True)(*got), expected)
        assert_same(got, want)
        checked_reports()
