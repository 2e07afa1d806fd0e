"""Operations whose results' layouts rules work out for open sizes: one graph, which says of them what torch does.

The programs return shapes and strides beside the results, so that a wrong rule shows.
"""

import copy

import pytest
import torch
import torch.nn.functional as F
from capture.compare import Graphs, difference
from torch import nn

import dynacore
from dynacore import torch_api
from dynacore.graph import symbolic

SIZES = [(4, 6), (3, 9), (7, 5), (2, 2), (5, 12), (8, 3)]


def rows(n, m):
    return torch.randn(n, m, 8)


def transposed(n, m):
    return torch.randn(m, n, 8).transpose(0, 1)


def vectors(n, m):
    return torch.randn(n, 8)


def images(n, m):
    return torch.randn(n, 4, m + 3, m + 3)


def sounds(n, m):
    return torch.randn(n, 4, m + 6)


def seeded(make):
    torch.manual_seed(0)
    return make()


def bags(n, m):
    return torch.randint(0, 9, (n, m))


LAYERS = {
    "lstm": (lambda: nn.LSTM(8, 6), rows),
    "lstm, batch first": (lambda: nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True), rows),
    "gru": (lambda: nn.GRU(8, 6, batch_first=True), rows),
    "rnn": (lambda: nn.RNN(8, 6), rows),
    "lstm cell": (lambda: nn.LSTMCell(8, 6), vectors),
    "gru cell": (lambda: nn.GRUCell(8, 6), vectors),
    "conv1d": (lambda: nn.Sequential(nn.Conv1d(4, 8, 3, 2, 1), nn.MaxPool1d(2), nn.AdaptiveAvgPool1d(2)), sounds),
    "conv transpose": (lambda: nn.ConvTranspose1d(4, 2, 2, stride=2), sounds),
    "norms": (
        lambda: nn.Sequential(nn.InstanceNorm2d(4), nn.LocalResponseNorm(2), nn.AdaptiveAvgPool2d((3, 2))),
        images,
    ),
    "same padding": (
        lambda: nn.Sequential(nn.Conv2d(4, 3, 3, padding="same"), nn.Conv2d(3, 2, 2, padding="valid")),
        images,
    ),
    "places of the largest": (lambda: nn.MaxPool2d(2, return_indices=True), images),
    "pooling": (lambda: nn.Sequential(nn.LPPool2d(2, 2), nn.AdaptiveMaxPool2d((2, 1))), lambda n, m: images(n, m) ** 2),
    "blocks": (lambda: lambda x: (F.unfold(x, 2), F.fold(F.unfold(x, 2), x.shape[2:], 2)), images),
    "sizes": (
        lambda: nn.Sequential(nn.Upsample(scale_factor=1.5), nn.Upsample(scale_factor=2, mode="bilinear")),
        images,
    ),
    "pixels": (lambda: nn.Sequential(nn.PixelShuffle(2), nn.PixelUnshuffle(2)), images),
    "padding": (lambda: nn.Sequential(nn.ReflectionPad2d(1), nn.ReplicationPad2d(2), nn.CircularPad2d(1)), images),
    "activations": (
        lambda: nn.Sequential(nn.PReLU(), nn.Softshrink(), nn.Tanhshrink(), nn.Hardshrink(), nn.GLU()),
        rows,
    ),
    "bag": (lambda: nn.EmbeddingBag(10, 4), bags),
    "bilinear": (lambda: (lambda layer: lambda x: layer(x, x))(nn.Bilinear(8, 8, 3)), vectors),
}

OPERATIONS = {
    "sort": lambda x: (x.sort(1), torch.sort(x, descending=True), x.argsort(0)),
    "topk": lambda x: (torch.topk(x, 2, -1), torch.topk(x, 2, 1)),
    "extremes": lambda x: (
        x.max(1),
        x.max(),
        x.min(-1, keepdim=True),
        torch.max(x, x * 2),
        x.aminmax(dim=1),
        x.aminmax(),
    ),
    "medians": lambda x: (x.median(), x.median(1), x.kthvalue(1, 1), x.mode(1)),
    "cumulative": lambda x: (x.cummax(1), x.logcumsumexp(1), x.cummin(0), torch.diff(x, dim=2)),
    "products": lambda x: (
        x @ torch.ones(8),
        x[0, 0] @ x[0, 1],
        x[0, 0] @ torch.ones(8, 3),
        torch.dot(x[0, 0], x[0, 1]),
    ),
    "sums of products": lambda x: (
        x.baddbmm(batch1=x @ torch.ones(8, 3), batch2=torch.ones(x.shape[0], 3, 8), beta=1.0, alpha=0.5),
        torch.addmm(x[0], mat1=x[0], mat2=torch.ones(8, 8)),
    ),
    "einsum": lambda x: (
        torch.einsum("bld,bmd->blm", x, x),
        torch.einsum("...d,de->...e", x, torch.ones(8, 3)),
        torch.einsum("blhd,bmhd->bhlm", *(x.unflatten(2, (2, 4)),) * 2),
        torch.einsum("bld->db", x),
    ),
    "distances": lambda x: (torch.cdist(x, x), F.cosine_similarity(x, x, -1), F.pairwise_distance(x, x)),
    "stacks": lambda x: (torch.hstack([x, x]), torch.vstack([x, x]), torch.column_stack([x[:, 0], x[:, 1]])),
    "tiles": lambda x: (torch.tile(x, (2,)), x.tile(2, 1, 1), x.repeat_interleave(2)),
    "searches": lambda x: (torch.bucketize(x, torch.arange(4.0)), torch.isin(x, x[0, 0]), torch.count_nonzero(x, 1)),
    "pointwise": lambda x: (torch.atan2(x, x), x.nan_to_num(), x.lgamma(), torch.xlogy(x, x), torch.isclose(x, x)),
    "statistics": lambda x: (torch.var_mean(x, 1), torch.std_mean(x), x.nansum(), x.nanmean(1), x.histc(4)),
    "places": lambda x: (
        torch.take_along_dim(x, x.argsort(1), 1),
        x.take(torch.tensor([0, 1])),
        x.index_fill(1, torch.tensor(0), 0.0),
    ),
    "picked": lambda x: (
        x[:, [0, 1]],
        x[..., torch.tensor([1, 0])],
        x[torch.arange(x.shape[0]), 0],
        x[torch.arange(2), :, 1:3],
    ),
    "new": lambda x: (
        torch.full_like(x, 3),
        torch.arange(x.shape[1] - 1, -1, -1),
        torch.arange(0.0, x.shape[1]),
        torch.randperm(3).shape,
    ),
    "spectrum": lambda x: (
        torch.fft.fft(x),
        torch.fft.fft(x, dim=1),
        torch.fft.fft2(x),
        torch.fft.rfft(x, dim=2),
        torch.fft.irfft(torch.view_as_complex(x.unflatten(2, (4, 2)).contiguous())),
        torch.fft.fftshift(x, 1),
        torch.fft.fftfreq(x.shape[1]),
    ),
    "matrices": lambda x: (
        torch.linalg.inv(spread(x)),
        torch.linalg.det(spread(x)),
        torch.linalg.slogdet(spread(x)),
        torch.linalg.cholesky(spread(x)),
        torch.linalg.eigvalsh(spread(x)),
        torch.linalg.solve(spread(x), spread(x)),
        torch.linalg.lu_factor(spread(x)),
        torch.matrix_exp(spread(x) / 50),
        torch.linalg.matrix_power(spread(x), 2),
    ),
    "norms": lambda x: (
        torch.linalg.norm(x),
        torch.linalg.norm(x, dim=1),
        torch.linalg.matrix_norm(x),
        torch.linalg.vector_norm(x, dim=(0, 2)),
        x.renorm(2, 0, 1.0),
    ),
    "more products": lambda x: (
        torch.kron(x[0], torch.ones(2, 2)),
        torch.tensordot(x, x, ([1], [1])),
        torch.inner(x[0], x[1]),
        torch.linalg.multi_dot([x[0], x[0].t(), x[0]]),
        torch.addmv(x[0, :, 0], x[0], x[0, 0]),
        torch.linalg.cross(x[..., :3], x[..., 1:4]),
    ),
    "diagonals": lambda x: (
        torch.diag(x[0, :, 0]),
        torch.diag(x[0, :, 0], 1),
        torch.diag(spread(x)[0]),
        spread(x).diagonal(dim1=1, dim2=2),
        torch.diag_embed(x[..., 0]),
        torch.diagflat(x[0]),
        torch.block_diag(x[0], x[1]),
        torch.tril_indices(x.shape[1], x.shape[1]),
        [torch.tril_indices(x.shape[1] + 2, x.shape[1] + 2, k) for k in (-1, 1)],
        [torch.triu_indices(x.shape[1] + 2, x.shape[1] + 2, offset=k) for k in (-1, 0, 1)],
    ),
    "grids": lambda x: (
        torch.meshgrid(torch.arange(x.shape[0]), torch.arange(3), indexing="xy"),
        torch.cartesian_prod(x[0, :, 0], x[0, :, 1]),
    ),
    "windows": lambda x: (x.unfold(2, 3, 2), torch.hann_window(x.shape[1]), torch.trapezoid(x, dim=1)),
    "turned": lambda x: (torch.rot90(x), torch.rot90(x, 2, (1, 2)), torch.dstack([x, x]), torch.dstack([x[0], x[0]])),
    "parts of dimensions": lambda x: (
        torch.quantile(x, 0.5),
        torch.quantile(x, torch.tensor([0.1, 0.5]), dim=1),
        x.nanquantile(0.3, 0, keepdim=True),
        torch.hstack([x, x]).hsplit([1]),
        torch.vstack([x, x]).vsplit([1]),
        x.tensor_split(4, 2),
        x.narrow_copy(1, 0, 2),
    ),
    "put together": lambda x: (
        x.masked_scatter(x > 0, x * 2),
        x.slice_scatter(x[:1], 0, 0, 1),
        x.select_scatter(x[0], 0, 0),
        nn.utils.rnn.pad_sequence([x, x]),
        torch.tensor([x.shape[0], 2]),
        torch.polar(x.abs(), x).abs(),
    ),
    "names of parameters": lambda x: (
        torch.matmul(input=x, other=torch.ones(8, 2)),
        torch.softmax(input=x.contiguous(), dim=1),
        F.linear(input=x, weight=torch.ones(3, 8)),
        F.layer_norm(input=x.contiguous(), normalized_shape=(8,)),
        torch.permute(input=x, dims=(1, 0, 2)),
        x.expand(size=(x.shape[0], x.shape[1], 8)),
        torch.reshape(x, shape=(-1, 4)),
        torch.max(input=x, dim=1),
        torch.sum(input=x, dim=0, dtype=torch.float64),
        F.scaled_dot_product_attention(query=x, key=x, value=x),
        torch.cat(tensors=[x, x], dim=1),
    ),
    "complex": lambda x: (torch.view_as_real(torch.view_as_complex(x.unflatten(2, (4, 2)).contiguous()) * 1j),),
    "losses": lambda x: (
        F.kl_div(x, x),
        F.smooth_l1_loss(x, x, beta=0.5),
        F.soft_margin_loss(x, x),
        F.poisson_nll_loss(x, x),
    ),
}


def spread(x):
    """A matrix for each of the first dimension, with an inverse."""
    return x @ x.transpose(1, 2) + 9 * torch.eye(x.shape[1])


def described(value):
    """Results, with the layout of each."""
    if isinstance(value, torch.Tensor):
        return value, value.shape, value.stride(), value.is_contiguous()
    return [described(item) for item in value] if isinstance(value, (tuple, list)) else value


def check(function, given, monkeypatch):
    followed = []
    original = symbolic.followed
    monkeypatch.setattr(symbolic, "followed", lambda *args: followed.append(args[0].name) or original(*args))

    def program(x):
        return described(function(x))

    graphs = Graphs()
    compiled = dynacore.compile(program, backend=graphs, dynamic=True)
    with torch.no_grad():
        for n, m in SIZES:
            x = given(n, m)
            wrong = difference(compiled(x), program(x))
            assert wrong is None, f"{wrong} for {tuple(x.shape)}"
    assert len(graphs) == 1 and not followed


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, monkeypatch):
    make, given = LAYERS[name]
    check(seeded(make), given, monkeypatch)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name, monkeypatch):
    check(OPERATIONS[name], rows, monkeypatch)


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "picked"])
def test_operations_on_tensors_in_another_order(name, monkeypatch):
    check(OPERATIONS[name], transposed, monkeypatch)


class Sounds(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(8, 8, 3, padding=1)

    def forward(self, x):
        return F.max_pool1d(F.relu(self.conv(x.transpose(1, 2))), 2).sum(2)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.inner(x).view(batch, length, 3, 2, 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.outer(y.transpose(1, 2).reshape(batch, length, 8)) * length


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("make", [Sounds, Attention, lambda: nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16))])
def test_one_artifact_learns_from_all_sizes(make, backend, monkeypatch):
    made = []
    original = torch_api.aot_eager
    monkeypatch.setattr(torch_api, "aot_eager", lambda *args: made.append(args) or original(*args))
    model = seeded(make)
    twin = copy.deepcopy(model)
    graphs = Graphs()
    compiled = dynacore.compile(model, backend=graphs if backend == "eager" else backend, dynamic=True)
    for n, m in SIZES[:4]:
        x = rows(n, m + 2).requires_grad_()
        own = x.detach().clone().requires_grad_()
        for run, given in ((compiled, x), (twin, own)):
            run(given).square().sum().backward()
        torch.testing.assert_close(x.grad, own.grad)
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    # Pooling of sequences that learn has no symbols in torch: AOTAutograd takes each length as it is.
    assert len(made) <= (0 if backend == "eager" else 4 if make is Sounds else 1)
    assert len(graphs) == (backend == "eager")


def test_a_dimension_that_changes_where_it_says_how_the_result_lies_in_memory():
    compiled = dynacore.compile(lambda x, dim: torch.fft.fft(x, dim=dim).stride(), backend="eager")
    for dim in (-1, -2, -3, 1, 0, 2):
        x = torch.ones(5, 6, 7)
        assert compiled(x, dim) == torch.fft.fft(x, dim=dim).stride()
