"""The stages in order, each a function from one form to the next, with a checker between them."""

from __future__ import annotations

from typing import Any

import torch

from . import torch_api
from .config import config
from .ir.check import check_graph
from .ir.loops import Loops, check_loops
from .ir.nodes import Graph
from .lower.graph import lower
from .program import OUT_VARIANTS, expect, view, write_program
from .render.signature import signature
from .render.source import Source, render
from .render.tiles import choose
from .report import GraphReport
from .runtime.device import Device
from .runtime.launch import Launcher
from .schedule.buffers import Plan
from .schedule.plan import Schedule, schedule
from .simplify import simplify


class Kernels:
    """The kernels of a process: one source for all that differ in names and the number of rows only."""

    def __init__(self, device: Device, torch_device: torch.device):
        self.device, self.torch_device = device, torch_device
        self.by_signature: dict[str, tuple[str, Launcher]] = {}
        self.names: set[str] = set()

    def launcher(self, kernel: Loops) -> tuple[str, Launcher]:
        """The name and the launcher for a kernel."""
        tile = choose(kernel, self.device.interpreted)
        key = signature(kernel, tile)
        if key not in self.by_signature:
            while kernel.name in self.names:
                kernel.name += "_"
            self.names.add(kernel.name)
            source = render(kernel, tile)
            self.by_signature[key] = (kernel.name, Launcher(source, self.device, self.torch_device))
        return self.by_signature[key]


def compile_program(
    gm: torch.fx.GraphModule, torch_device: torch.device, device: Device, report: GraphReport
) -> Any:
    """The program of a graph of ATen operations: a function of a list of inputs, which it empties."""
    graph, calls = lower(gm, torch_device)
    report.aten_calls = list(calls)
    _check(graph)
    simplify(graph)
    _check(graph)
    report.graph = str(graph)
    plan = schedule(graph)
    _check_schedule(plan)
    report.schedule = str(plan)
    kernels = Kernels(device, torch_device)
    memory = Plan(plan, lambda node: node.op == "item" and node.inputs[0].attrs["target"] in OUT_VARIANTS)
    launchers: dict[str, Launcher] = {}

    def name_kernel(kernel: Loops) -> tuple[str, bool]:
        name, launcher = kernels.launcher(kernel)
        launchers[name] = launcher
        return name, bool(launcher.source.partials)

    program = write_program(plan, memory, name_kernel)
    report.kernels = sum(step.kernel is not None for step in plan.steps)
    report.sources = [launcher.source.text for launcher in launchers.values()]
    report.program = program.text
    names: dict[str, Any] = {
        "torch": torch, "aten": torch.ops.aten, "empty": torch.empty_strided, "view": view, "expect": expect,
        **program.constants, **launchers,
    }  # fmt: skip
    exec(compile(program.text, "<backend_gpu program>", "exec"), names)
    return names["run"]


def sources_of(plan: Schedule) -> list[Source]:
    """The sources of all kernels as they would be for a GPU."""
    return [render(step.kernel, choose(step.kernel)) for step in plan.steps if step.kernel is not None]


def _check(graph: Graph) -> None:
    if config.check:
        check_graph(graph)


def _check_schedule(plan: Schedule) -> None:
    if config.check:
        for step in plan.steps:
            if step.kernel is not None:
                check_loops(step.kernel)


def lowered_names() -> set[str]:
    """The ATen operations that have a lowering."""
    from .lower.registry import LOWERINGS

    return {torch_api.packet_name(operation) for operation in LOWERINGS}
