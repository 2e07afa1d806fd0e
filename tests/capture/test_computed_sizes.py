"""Sizes that depend on the values of tensors, under `capture_dynamic_output_shape_ops`. Plain Python is the oracle."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from capture.compare import Graphs, difference
from torch import nn

import dynacore


def outcome(function, x):
    """What a call gives, or type and text of what it raises."""
    try:
        return function(x)
    except Exception as error:
        return type(error), str(error)


def agree(compiled, function, x):
    ours, plain = outcome(compiled, x.clone()), outcome(function, x.clone())
    wrong = difference(ours, plain)
    assert wrong is None, f"{wrong} for {x}"


#: from no element to all, and sizes 0 and 1 in each place
INPUTS = [
    torch.tensor([[1.0, -2, 3], [-4, 5, 6]]),
    torch.tensor([[1.0, -2, -3], [-4, -5, -6]]),
    -torch.ones(2, 3),
    torch.full((2, 3), 2.0),
    torch.tensor([[-1.0, -2, -3], [4, 5, 6]]),
    torch.arange(6.0).view(3, 2).t() - 1,
    torch.arange(12.0).view(4, 3) - 4,
    torch.arange(20.0).view(5, 4) - 10,
    torch.ones(1, 1),
    torch.ones(0, 3),
]


@pytest.fixture(autouse=True)
def settings():
    dynacore.reset()
    with dynacore.config.patch(
        capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True, on_internal_error="raise"
    ):
        yield


# -- the operations ---------------------------------------------------------------------------------------------------


def masks(x):
    m = x > 0
    return x[m], x.masked_select(m), torch.masked_select(x, x[0] > 0), x[m] * 2 + 1, x[m] - (x * 2)[m]


def rows_and_columns(x):
    rows, columns = x.sum(1) > 0, x.sum(0) > 0
    return x[rows], x[:, columns], x[rows, 0], x[None, :, columns].shape, x[1:][:, columns], x[..., columns].sum(1)


def places(x):
    i, (a, b) = x.nonzero(), torch.where(x > 0)
    first, _ = (x > 0).nonzero(as_tuple=True)
    return i, i.shape, len(i), i.numel(), i.t(), i + 1, i.float().mean(0), x[a, b], a * b, torch.argwhere(x > 0), first


def unique(x):
    x = x.long()
    u, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    return u, inverse, counts, u * counts, u.shape[0], torch.unique_consecutive(x), x.flatten().unique(dim=0)


def counted(x):
    x = x.long().abs().flatten()
    return torch.bincount(x), torch.bincount(x, minlength=3), torch.bincount(x, x.double()), F.one_hot(x)


def repeated(x):
    times = torch.arange(x.shape[0])
    return (
        torch.repeat_interleave(x, times, 0),
        x.repeat_interleave(x.long().abs().flatten()),
        times.repeat_interleave(times),
    )


# -- what is done with them -------------------------------------------------------------------------------------------


def computed_with(x):
    y = x[x.sum(1) > 0]
    weight = torch.ones(x.shape[1], 2)
    return (
        y @ weight,
        y.mean(1),
        y.mean(),
        F.softmax(y, -1),
        y[:, 0],
        y.sum(0),
        F.layer_norm(y, (x.shape[1],)),
        y.std(0),
    )


def reshaped(x):
    y = x[x.sum(1) > 0]
    n = y.shape[0]
    return (
        y.view(n, -1, 1), y.reshape(-1), y.unsqueeze(1).expand(-1, 2, -1), y.repeat(2, 1), torch.stack([y, y]),
        y.t().shape,
    )  # fmt: skip


def broadcast(x):
    y = x[x.sum(1) > 0]
    return (
        y + torch.ones(x.shape[1]),
        y + torch.ones(1, x.shape[1]),
        y[:, None] + y[:, None],
        y[:, :1] * y,
        y[:, :1] - y[:, 1:2],
    )


def joined(x):
    a, b = x[x > 0], x[x <= 0]
    return torch.cat([a, b]), torch.cat([a, a]), a.shape[0] + b.shape[0], torch.outer(a, b), a[:, None] * b[None, :]


def new_tensors(x):
    n = x[x > 0].shape[0]
    return (
        torch.zeros(n),
        torch.ones(n, 3).sum(0),
        torch.arange(n),
        x.new_full((n, 2), 1.0),
        torch.full((2,), n),
        torch.eye(n),
    )


def numbers(x):
    y = x[x > 0]
    n = y.shape[0]
    return (
        n,
        n * 2 + 1,
        n // 2,
        n % 3,
        n / 2,
        -n,
        abs(n),
        [n],
        f"{n} of {x.numel()}",
        y.shape,
        (n, *x.shape),
        y.size(0) - n,
    )


def sliced(x):
    n = (x > 0).nonzero().shape[0]
    flat = x.flatten()
    return flat[:n], flat[n:], n, flat[1:][:n]


def rows_that_may_not_be_there(x):
    y = x[x.sum(1) > 0]
    return y[:1], y[1:], y[:-1], y[-1:], y[::2], y[1:] - y[:-1], y[1:-1], y[:2, 1:], len(y[1:]), torch.zeros(len(y[:2]))


def functions_of_numbers(x):
    n = x[x > 0].numel()
    return (
        x / max(n, 1), min(n, 3), x * float(n), n**2, math.sqrt(n), math.log(n + 1), math.ceil(n / 2), (n + 1) ** -0.5,
        int(n / 3), round(n / 4), x * abs(n - 2), f"{x[x > 0].shape}", str([n, n / 2]), x.sum() / max(n, x.numel()),
    )  # fmt: skip


def keys_and_texts(x):
    n = x[x > 0].shape[0]
    return {n: 1, "n": n}, {(n, 2): x + 1}, f"{n:>4}", "%d of %s" % (n, n), "{} {n}".format(n, n=n), "n" + str(n)


def looked_up(x):
    i = torch.unique(x.long().abs())
    table = torch.arange(40.0).view(20, 2)
    return (
        F.embedding(i, table),
        table[i],
        torch.zeros(20).index_add(0, i, i.float()),
        table.index_select(0, i),
        table[i, 1:],
    )


def written_through(x):
    y = x.clone()
    y[y > 0] = 5
    y[y.sum(1) > 0] += 1
    y[y < 0] *= 2
    return y


def changed_mask(x):
    """The same tensor, changed in between, counts another number of elements."""
    m = x > 0
    a = x[m]
    m.logical_not_()
    return a, x[m], torch.zeros(a.shape[0]), torch.zeros(x[m].shape[0])


def checked(x):
    n = x[x > 0].shape[0]
    torch._check(n > 0)
    return torch.zeros(n) + 1


def checked_item(x):
    n = (x > 0).sum().item()
    torch._check(n >= 0, lambda: "less than nothing")
    torch._check(n <= x.numel())
    return x.flatten()[:n], torch.zeros(n), torch.arange(n)


# -- what needs the number --------------------------------------------------------------------------------------------


def branching(x):
    y = x[x > 0]
    return y + 1 if y.shape[0] > 2 else y - 1


def counting(x):
    total = 0
    for i in range(x[x > 0].shape[0]):
        total += i
    return total, x + total


def iterating(x):
    return sum(row for row in x[x > 0])


def keys(x):
    n = x[x > 0].numel()
    return {n: 1, 2: 2}, n == 2, n > 1, bool(n), [0] * n


def one_or_equal(x):
    """Broadcasts where one of two numbers is 1, and is an error where they differ."""
    return x[x > 0] + x[x < 0]


def one_or_more(x):
    y = x[x > 0]
    return y.squeeze(), y.expand(4)


def layouts(x):
    y = x[x > 0]
    return y.is_contiguous(), y.stride(), x.nonzero().stride(), x.nonzero().is_contiguous(), x.nonzero().contiguous()


def same_shapes(x):
    return x[x > 0].is_same_size(x[x < 0]), x[x > 0].shape == x[x < 0].shape


def listed(x):
    return torch.where(x > 0)[0].tolist(), x[x > 0].max()


def asked_for(x):
    return torch.unique(x, sorted=True, return_counts=True), x[torch.tensor(True)], x.t().unique(return_inverse=True)


WHOLE = [
    masks, rows_and_columns, places, unique, counted, repeated, computed_with, reshaped, broadcast, joined, new_tensors,
    numbers, looked_up, written_through, rows_that_may_not_be_there,
    functions_of_numbers, keys_and_texts, sliced, changed_mask, checked, checked_item,
]  # fmt: skip
BREAKING = [
    branching, counting, iterating, keys, one_or_equal, one_or_more, layouts, same_shapes, listed, asked_for
]  # fmt: skip


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("program", WHOLE + BREAKING, ids=lambda program: program.__name__)
def test_programs(program, dynamic):
    compiled = dynacore.compile(program, backend="eager", dynamic=dynamic)
    for x in INPUTS:
        agree(compiled, program, x)


@pytest.mark.parametrize("program", WHOLE, ids=lambda program: program.__name__)
def test_one_graph_for_all_values(program):
    graphs = Graphs()
    compiled = dynacore.compile(program, backend=graphs, fullgraph=True)
    for x in INPUTS[:5]:
        agree(compiled, program, x)
    assert len(graphs) == 1


def test_without_the_setting_the_graph_ends():
    with dynacore.config.patch(capture_dynamic_output_shape_ops=False):
        assert dynacore.explain(masks)(INPUTS[0]).graph_break_count


@pytest.mark.parametrize("program", [branching, iterating, one_or_equal], ids=lambda program: program.__name__)
def test_what_needs_the_number_ends_the_graph(program):
    explained = dynacore.explain(program)(INPUTS[1])
    assert "host-value-branch" in {site.code for site in explained.breaks}


AOT = [rows_that_may_not_be_there, masks, places, computed_with, broadcast, new_tensors, checked, counted]


@pytest.mark.parametrize("program", AOT, ids=lambda program: program.__name__)
def test_programs_through_aot_autograd(program):
    compiled = dynacore.compile(program, backend="aot_eager")
    for x in INPUTS[:5]:
        agree(compiled, program, x)


def test_a_compiler_that_wants_the_number_leaves_the_graph_as_it_is(caplog):
    def program(x):
        return F.one_hot(x.long().abs()) + 1

    compiled = dynacore.compile(program, backend="aot_eager")
    for x in INPUTS[:4]:
        agree(compiled, program, x)
    assert "runs operation by operation" in caplog.text


class Experts(nn.Module):
    """Each row goes through the layer that it is for."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        chosen = weights.argmax(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            (rows,) = torch.where(chosen == i)
            out = out.index_add(0, rows, expert(x[rows]) * weights[rows, i : i + 1])
        return out


class Masked(nn.Module):
    """A loss over some elements."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        return y[y > 0].square().sum() + y[(y > 0).any(1)].sum(1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", [Experts, Masked])
def test_training(kind, backend):
    torch.manual_seed(0)
    model = kind()
    twin = copy.deepcopy(model)
    compiled = dynacore.compile(model, backend=backend, fullgraph=True)
    for n in (5, 2, 9):
        x = torch.randn(n, 4, requires_grad=True)
        own = x.detach().clone().requires_grad_()
        for run, given in ((compiled, x), (twin, own)):
            run(given).sum().backward()
        torch.testing.assert_close(x.grad, own.grad)
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
