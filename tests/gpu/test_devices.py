"""Graphs for a GPU with numbers on the CPU, as optimizers keep their step counts: traced with fake tensors."""

import pytest
import torch
from gpu.helpers import assert_same
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from backend_gpu.errors import Unsupported
from backend_gpu.lower.decompositions import decompositions
from backend_gpu.lower.graph import lower
from backend_gpu.lower.numbers import on_device, overwriting
from backend_gpu.lower.registry import LOWERINGS
from backend_gpu.pipeline import compile_program
from backend_gpu.report import GraphReport
from backend_gpu.runtime.device import Interpreter

DEVICE = torch.device("meta")  # stands for a GPU: every build of PyTorch makes fake tensors there


def step(counts, parameters, gradients):
    for count, p, g in zip(counts, parameters, gradients):
        new = count + 1
        bias = 1 - 0.9 ** new.double()
        p.copy_(p - g * (0.1 / bias))
        count.copy_(new)
    return (counts[0] * 2,)


def arguments(device, make=torch.randn):
    counts = [torch.full((), float(number)) for number in range(3)]
    return [counts, *([make(size, device=device) for size in ((4, 3), (5,), (70,))] for _ in range(2))]


@pytest.fixture
def traced():
    table = {op: rule for op, rule in decompositions().items() if op not in LOWERINGS}
    with FakeTensorMode():
        fakes = arguments(DEVICE, torch.empty)
        return make_fx(step, decomposition_table=table, tracing_mode="real")(*fakes)


def test_an_optimizers_step_with_counts_on_the_cpu_is_one_kernel(traced):
    report = GraphReport()
    compiled = compile_program(traced, DEVICE, Interpreter(), report)
    assert report.kernels == 1
    called = [name for name, _ in report.aten_calls]
    assert (called.count("aten.stack"), called.count("aten._to_copy")) == (1, 1)  # all counts in one copy
    assert set(called) == {"aten.stack", "aten._to_copy", "aten.add", "aten.mul"}
    assert compiled.never_recorded is not None


def test_numbers_are_the_same_on_the_device_and_inputs_elsewhere_are_overwritten(traced):
    moved, overwritten = on_device(traced, DEVICE)
    assert overwritten == [0, 1, 2]
    for node in moved.graph.nodes:
        if "device" in node.kwargs:
            node.kwargs = {**node.kwargs, "device": torch.device("cpu")}
    moved.recompile()
    torch.manual_seed(0)
    want = arguments("cpu")
    got = [[value.clone() for value in values] for values in want]
    flat = [value for values in got for value in values]
    run = overwriting(lambda args: torch.fx.Interpreter(moved).run(*args), overwritten)
    assert_same([*run(flat)], [*step(*want)])
    assert_same(got, want)


def test_no_kernel_touches_memory_elsewhere():
    def mixed(x, y):
        return (x + 1, torch.ops.aten.expand.default(y, [3, 4]).clone())

    with FakeTensorMode():
        gm = make_fx(mixed, tracing_mode="real")(torch.empty(4, device=DEVICE), torch.empty(4))
    graph, calls = lower(gm, DEVICE)
    assert "aten.clone" in {name for name, _ in calls}
    with FakeTensorMode():
        gm = make_fx(lambda x, y: (y.copy_(y * 2), x + 1)[1], tracing_mode="real")(
            torch.empty(4, device=DEVICE), torch.empty(4)
        )
    with pytest.raises(Unsupported, match="on cpu, is overwritten"):
        lower(gm, DEVICE)
