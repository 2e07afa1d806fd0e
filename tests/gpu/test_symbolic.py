"""Symbolic sizes: one program, and its kernels, for every size; and what static sizes share."""

import pytest
import torch
import torch.nn.functional as F
from gpu.helpers import assert_same, checked_reports, gradients
from gpu.programs import layer_norm, softmax, tensors
from torch.fx.experimental.proxy_tensor import make_fx

import backend_gpu.lower.graph  # fills the table of lowerings
import dynacore
from backend_gpu.ir.nodes import SHORT
from backend_gpu.lower.decompositions import decompositions
from backend_gpu.lower.registry import LOWERINGS
from backend_gpu.pipeline import compile_program
from backend_gpu.render.signature import signature
from backend_gpu.render.tiles import choose
from backend_gpu.report import GraphReport

PROGRAMS = {
    "norm": (lambda x: F.layer_norm(x, (16,)) * 2, lambda n: [torch.randn(n, 4, 16)]),
    "softmax": (softmax, lambda n: [torch.randn(4, n + 20)]),
    "scores": (lambda x: (x @ x.transpose(1, 2)).softmax(-1), lambda n: [torch.randn(2, n, 8)]),
    "cat": (lambda x, y: torch.cat([x, y], 1) + 1, lambda n: [torch.randn(2, n), torch.randn(2, n + 2)]),
    "reshape": (lambda x: x.view(x.shape[0] * 2, 2, 4).transpose(0, 1).contiguous(), lambda n: [torch.randn(n, 2, 8)]),
    "sizes as numbers": (lambda x: x.sum(0) / x.shape[0], lambda n: [torch.randn(n, 6)]),
    "diagonal": (lambda x: x.diagonal() * 2, lambda n: [torch.randn(n, 7)]),
    "everything": (lambda x: (x - x.mean(0)).sum(), lambda n: [torch.randn(n, 6)]),
    "embedding": (lambda w, i: F.embedding(i, w), lambda n: [torch.randn(5, 6), torch.arange(2 * n).view(2, n) % 5]),
}


def device():
    from backend_gpu.runtime.device import device_for

    return device_for(torch.device("cpu"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_program_for_all_sizes(name):
    function, arguments = PROGRAMS[name]
    table = {op: rule for op, rule in decompositions().items() if op not in LOWERINGS}
    gm = make_fx(function, decomposition_table=table, tracing_mode="symbolic")(*arguments(3))
    report = GraphReport()
    compiled = compile_program(gm, torch.device("cpu"), device(), report)
    for size in (3, 5, 11):
        values = arguments(size)
        assert_same(compiled.run(list(values)), [function(*values)])
    assert "s" in report.program.split("return")[0]


COMPILED = {
    "norm and softmax": lambda x: (F.layer_norm(x, x.shape[-1:]), x.t().softmax(-1), x.var(0)),
    "padded": lambda x: F.pad(x, (0, 0, 0, 1)) * 2,
    "parts": lambda x: [part * 2 for part in x.chunk(2, 1)] + [x[: x.shape[0] // 2] + 1],
    "joined": lambda x: torch.cat([x, x.flip(0)], 0).relu(),
    "numbers": lambda x: (x * x.shape[0] / x.shape[1] + torch.arange(x.shape[1]), x.new_ones(x.shape[0] + 1)),
    "running": lambda x: x.roll(1, 0).cumsum(-1),
    "loss": lambda x: F.cross_entropy(x @ x.t(), torch.zeros(x.shape[0], dtype=torch.long)),
    "repeated": lambda x: x.repeat(2, 3).view(-1, 2).sum(1),
}


@pytest.mark.parametrize("name", COMPILED)
def test_other_sizes_compile_nothing(name):
    """Forward and backward: all sizes from the first on, and another batch size from the second on."""
    function = COMPILED[name]
    dynacore.reset()
    for dynamic, open_from, sizes in ((True, 0, ((4, 6), (7, 10), (20, 32))), (None, 1, ((4, 8), (5, 8), (7, 8)))):
        backend_gpu.clear_reports()
        compiled = dynacore.compile(lambda x: function(x), backend="gpu", fullgraph=True, dynamic=dynamic)
        counts = []
        for size in sizes:
            (x,) = tensors(size)
            assert_same(gradients(compiled, x), gradients(function, x))
            counts.append(len(checked_reports()))
        assert counts[open_from] == counts[-1]


def test_a_kernel_that_ends_in_the_last_program_runs_without_rows():
    compiled = dynacore.compile(lambda x: x[2:].sum(), backend="gpu", fullgraph=True, dynamic=True)
    for rows in (5, 3, 2):
        x = torch.ones(rows, 3)
        assert compiled(x) == x[2:].sum()


def test_a_kernel_that_was_stopped_leaves_nothing_behind():
    x, targets = torch.randn(5, 3), torch.tensor([0, 1, 2, 1, 7])
    compiled = dynacore.compile(F.cross_entropy, backend="gpu", fullgraph=True)
    with pytest.raises(IndexError):
        compiled(x, targets)
    targets[-1] = 0
    assert_same(compiled(x, targets), F.cross_entropy(x, targets))


def static_kernels(function, *shapes):
    """The signatures of a program's kernels, as they would be for a GPU."""
    from backend_gpu.lower.graph import lower
    from backend_gpu.schedule.plan import schedule

    table = {op: rule for op, rule in decompositions().items() if op not in LOWERINGS}
    gm = make_fx(function, decomposition_table=table, tracing_mode="fake")(*map(torch.empty, shapes))
    graph, _ = lower(gm, torch.device("cpu"))
    return [signature(step.kernel, choose(step.kernel)) for step in schedule(graph).steps]


def test_another_batch_size_compiles_nothing():
    first = static_kernels(layer_norm, (4096, 768), (768,), (768,))
    assert first == static_kernels(layer_norm, (8192, 768), (768,), (768,))
    assert static_kernels(F.gelu, (64, 4096)) == static_kernels(F.gelu, (256, 4096))
    assert first != static_kernels(layer_norm, (4096, 1024), (1024,), (1024,))


def test_large_tensors_are_indexed_with_64_bits():
    (small,), (large,) = static_kernels(F.gelu, (1 << 20,)), static_kernels(F.gelu, (1 << 32,))
    assert small.splitlines()[0].endswith("False") and large.splitlines()[0].endswith("True")


def test_every_dtype_has_a_name():
    assert {torch.float32, torch.bool, torch.int64} <= set(SHORT)
