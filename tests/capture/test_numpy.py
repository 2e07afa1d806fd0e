"""NumPy's numbers in captured code: constants, as in plain Python to the type."""

import math

import pytest
import torch
from capture.compare import Graphs

import dynacore

numpy = pytest.importorskip("numpy")


class Settings:
    scale, count, nothing = numpy.float32(0.5), numpy.int64(3), numpy.float32("nan")


def functions_of_numbers(x):
    return x * numpy.sqrt(4.0) + numpy.log(x.shape[0]), numpy.log(2.0)


def reductions_of_shapes(x):
    return x.view(int(numpy.prod(x.shape))) + numpy.float32(2), numpy.prod(x.shape), numpy.max(x.shape)


def arithmetic(x):
    s = Settings
    return x * s.scale + s.count // 2, s.scale * x, s.scale + 1, 2 - s.count, -s.scale, s.count


def comparisons(x):
    n = Settings.count
    return n > 2, n == 3, n != numpy.float32(3), n in [1, 3], x > n, x + 1 if n < 5 else x


def text(x):
    return f"{Settings.scale:.3f}", str(Settings.count), float(Settings.scale), Settings.count.item(), x + 1


def slices(x):
    n = Settings.count
    y = torch.arange(12).view(n, 4)
    y[:n, n:] = 0
    return x[: n - 1], y[:n], y[: n - 1, n - 2 :: n - 1]


def nan(x):
    return x * Settings.nothing


PROGRAMS = (functions_of_numbers, reductions_of_shapes, arithmetic, comparisons, text, slices, nan)


def parts(result):
    return [(type(part), part.tolist() if isinstance(part, torch.Tensor) else part) for part in result]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_one_graph(function):
    x = torch.randn(3, 4)
    graphs = Graphs()
    compiled = dynacore.compile(function, backend=graphs, fullgraph=True)
    for _ in range(2):
        assert repr(parts(compiled(x))) == repr(parts(function(x)))
    assert len(graphs) == 1
    assert "np." not in graphs.modules[0].code  # there, NumPy has no name


def test_another_number_is_noticed():
    compiled = dynacore.compile(arithmetic, backend="eager", fullgraph=True)
    x = torch.randn(2)
    before = Settings.scale
    try:
        for scale in (before, numpy.float32(0.75), 0.75, numpy.float64(0.75)):
            Settings.scale = scale
            assert repr(parts(compiled(x))) == repr(parts(arithmetic(x)))
    finally:
        Settings.scale = before


def test_warnings_come_when_the_program_runs():
    compiled = dynacore.compile(lambda x: x * numpy.log(0.0), backend="eager")
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            assert compiled(torch.ones(())).item() == -math.inf


def test_arrays_are_left_to_the_interpreter():
    def function(x):
        return x + torch.from_numpy(numpy.arange(4.0)).float() * Settings.count, numpy.array([1, 2]) * Settings.count

    x = torch.randn(4)
    compiled = dynacore.compile(function, backend="eager")
    for _ in range(2):
        ours, theirs = compiled(x), function(x)
        assert torch.equal(ours[0], theirs[0])
        assert ours[1].tolist() == theirs[1].tolist()
