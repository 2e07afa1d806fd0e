"""The stages in order, each a function from one form to the next, with a checker between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from dynacore import torch_api

from .check_program import check_program
from .config import config
from .errors import Unsupported
from .ir.check import check_graph
from .ir.loops import Loops, check_loops
from .ir.nodes import Graph
from .lower.graph import lower
from .program import OUT_VARIANTS, expect, view, write_program
from .render.signature import signature
from .render.source import Source, render
from .render.tiles import Tile, choose
from .report import GraphReport
from .runtime.autotune import Tuned, time_on_gpu
from .runtime.device import Device
from .runtime.launch import Launcher
from .schedule.buffers import Plan
from .schedule.plan import Schedule, schedule
from .simplify import simplify
from .split import split


class Kernels:
    """The kernels of one program: one source for all that differ in names and the number of rows only."""

    def __init__(self, device: Device, torch_device: torch.device, tune: bool = False):
        self.device, self.torch_device, self.tune = device, torch_device, tune
        self.launchers: dict[str, Launcher | Tuned] = {}
        self._names: dict[str, str] = {}

    def name(self, kernel: Loops) -> str:
        """The name of the launcher for a kernel."""
        tile = choose(kernel, self.device.interpreted)
        key = signature(kernel, tile)
        if key not in self._names:
            while kernel.name in self.launchers:
                kernel.name += "_"
            self._names[key] = kernel.name
            self.launchers[kernel.name] = self._launcher(kernel, tile, key)
        return self._names[key]

    def _launcher(self, kernel: Loops, tile: Tile, key: str) -> Launcher | Tuned:
        def make(one: Tile) -> Launcher:
            return Launcher(render(kernel, one), self.device, self.torch_device)

        if not self.tune or self.device.interpreted:
            return make(tile)
        outputs = {id(node.attrs.get("into", node)) for node in kernel.outputs}
        written = [position for position, buffer in enumerate(kernel.buffers) if id(buffer) in outputs]
        return Tuned(kernel, f"{self.device.name}\n{key}", tile, make, written, time_on_gpu)

    def sources(self) -> list[Source]:
        """What was rendered."""
        return [launcher.source for launcher in self.launchers.values()]


@dataclass
class Compiled:
    """A compiled program: `run` takes a list of inputs, which it empties. `mutated` are the inputs it overwrites, and
    `never_recorded` says why its work can't be recorded on a device, or is None."""

    run: Any
    mutated: list[int]
    never_recorded: str | None


def compile_program(
    gm: torch.fx.GraphModule, torch_device: torch.device, device: Device, report: GraphReport, tune: bool = False
) -> Compiled:
    """The program of a graph of ATen operations. Raises `Unsupported`."""
    graph, calls = lower(gm, torch_device)
    report.aten_calls = list(calls)
    _check(graph)
    simplify(graph)
    _check(graph)
    split(graph)
    _check(graph)
    report.graph = str(graph)
    plan = schedule(graph)
    _check_schedule(plan)
    report.schedule = str(plan)
    kernels = Kernels(device, torch_device, tune)
    memory = Plan(plan, lambda node: node.op == "item" and node.inputs[0].attrs["target"] in OUT_VARIANTS)
    program = write_program(plan, memory, kernels.name)
    if config.check:
        check_program(program.actions, graph, {name: made.source for name, made in kernels.launchers.items()})
    report.kernels = sum(step.kernel is not None for step in plan.steps)
    report.sources = [source.text for source in kernels.sources()]
    report.program = program.text
    for failure in device.warm(kernels.sources()):
        raise Unsupported(str(failure))
    names: dict[str, Any] = {
        **torch_api.size_functions(), "torch": torch, "aten": torch.ops.aten, "empty": torch.empty_strided,
        "view": view, "expect": expect, **program.constants, **kernels.launchers,
    }  # fmt: skip
    exec(compile(program.text, "<backend_gpu program>", "exec"), names)
    targets = {id(target) for target, _ in plan.graph.mutations}
    mutated = [position for position, node in enumerate(graph.inputs) if id(node) in targets]
    return Compiled(names["run"], mutated, never_recorded(gm, torch_device))


def never_recorded(gm: torch.fx.GraphModule, device: torch.device) -> str | None:
    """Why the work of a graph can't be recorded: some of it is on the CPU."""
    for node in gm.graph.nodes:
        val = node.meta.get("val")
        for value in val if isinstance(val, (list, tuple)) else (val,):
            if isinstance(value, torch.Tensor) and (value.device != device or device.type == "cpu"):
                return f"{node.name} is on {value.device}"
    return None


def _check(graph: Graph) -> None:
    if config.check:
        check_graph(graph)


def _check_schedule(plan: Schedule) -> None:
    if config.check:
        for step in plan.steps:
            if step.kernel is not None:
                check_loops(step.kernel)
