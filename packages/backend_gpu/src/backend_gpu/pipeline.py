"""The stages in order, each a function from one form to the next, with a checker between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from .config import config
from .errors import Unsupported
from .ir.check import check_graph
from .ir.nodes import Graph
from .kernels import Kernels
from .lower.graph import lower
from .lower.numbers import on_device, overwriting
from .report import GraphReport
from .runtime.device import Device
from .schedule.plan import schedule
from .simplify import simplify
from .split import split


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
    recorded = never_recorded(gm, torch_device)
    gm, overwritten = on_device(gm, torch_device)
    graph, calls = lower(gm, torch_device)
    report.aten_calls = list(calls)
    _check(graph)
    simplify(graph)
    _check(graph)
    if not tune:  # else cut rows are an alternative that is measured
        split(graph)
        _check(graph)
    report.graph = str(graph)
    plan = schedule(graph, products=tune)
    report.schedule = str(plan)
    report.kernels = sum(step.kernel is not None for step in plan.steps)
    kernels = Kernels(device, torch_device, report.choices.append if tune else None)
    run, report.program = kernels.assemble(plan)
    report.sources = [source.text for source in kernels.rendered()]
    for failure in device.warm(kernels.sources()):
        raise Unsupported(str(failure))
    targets = {id(target) for target, _ in plan.graph.mutations}
    mutated = [position for position, node in enumerate(graph.inputs) if id(node) in targets]
    return Compiled(overwriting(run, overwritten), mutated, recorded)


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
