"""Numbers that a graph gives: `.item()`, `int()` and `float()` of tensors under `capture_scalar_outputs`."""

import pytest
import torch
from capture.compare import Graphs, difference

import dynacore


def scaled(x):
    return x * x.sum().item() - x.max().item() / 2


def returned(x):
    return x.sum().item(), x + 1, (x.sum() > 1).item(), int(x.long().max()), float(x[0])


def arithmetic(x):
    n = x.long().sum().item()
    return n * 2 + 1, x[0].item() * x.shape[0], -n, f"{x.sum().item():.2f}", [n]


def branching(x):
    return x + 1 if x.sum().item() > 1 else x - 1


def sliced(x):
    return x[: x.long().max().item()]


def divided(x):
    return x + 1, 10 // (x.long().sum().item() or 1)


def drawn(x):
    return torch.zeros(abs(int(x.long().sum())) % 4 + 1), x.tolist(), x.sum().item() is None


def large(x):
    return (x.double() * 2**40).long().sum().item() * 2**40


PROGRAMS = {scaled: 0, returned: 0, arithmetic: 0, branching: 1, sliced: 1, divided: 1, drawn: 2, large: 0}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(program, backend):
    with dynacore.config.patch(capture_scalar_outputs=True):
        compiled = dynacore.compile(program, backend=backend)
        for values in ([1.0, 2.0], [3.0, 4.0], [0.5, 1.0], [-1.0, 1.0]):
            x = torch.tensor(values)
            assert difference(compiled(x), program(x)) is None


@pytest.mark.parametrize(("program", "breaks"), PROGRAMS.items(), ids=[program.__name__ for program in PROGRAMS])
def test_breaks_only_where_python_needs_the_number(program, breaks):
    with dynacore.config.patch(capture_scalar_outputs=True):
        explained = dynacore.explain(program)(torch.tensor([1.0, 2.0]))
    assert explained.graph_break_count <= breaks


def test_without_the_setting_it_breaks():
    assert dynacore.explain(scaled)(torch.ones(2)).graph_break_count == 1


def test_one_graph_for_all_values():
    graphs = Graphs()
    with dynacore.config.patch(capture_scalar_outputs=True):
        compiled = dynacore.compile(scaled, backend=graphs, fullgraph=True)
        for value in range(5):
            x = torch.full((3,), float(value))
            assert torch.equal(compiled(x), scaled(x))
    assert len(graphs) == 1


def test_errors_are_those_of_plain_python():
    with dynacore.config.patch(capture_scalar_outputs=True):
        compiled = dynacore.compile(lambda x: x.item() + 1, backend="eager")
        assert compiled(torch.ones(1)) == 2.0
        with pytest.raises(RuntimeError, match="a Tensor with 3 elements cannot be converted to Scalar"):
            compiled(torch.ones(3))
