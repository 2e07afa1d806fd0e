"""The steps of a program in order: kernels as loop programs, and calls of ATen."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir.loops import Loops
from ..ir.nodes import Graph, Node


@dataclass
class Step:
    """One step of a program: a kernel, or an ATen call (`extern`). `reads` and `writes` are tensors in memory."""

    kernel: Loops | None
    extern: Node | None
    reads: list[Node]
    writes: list[Node]
    instead: list[Step] = field(default_factory=list)
    """The steps that a product with what follows it was made of."""


@dataclass
class Schedule:
    """The steps in order, and the graph that they compute."""

    graph: Graph
    steps: list[Step] = field(default_factory=list)

    def __str__(self) -> str:
        lines = []
        for step in self.steps:
            if step.kernel is not None:
                lines.append(str(step.kernel))
            else:
                assert step.extern is not None
                reads = ", ".join(node.name for node in step.reads)
                lines.append(f"call {step.extern.attrs['target']}({reads}) -> {', '.join(n.name for n in step.writes)}")
        return "\n".join(lines)


def step_of(kernel: Loops) -> Step:
    """The step that a kernel is."""
    writes = [node.attrs.get("into", node) for node in kernel.outputs]
    return Step(kernel, None, [node for node in kernel.buffers if node not in writes], writes)


def combined(parts: list[Loops], name: str) -> Loops:
    """Kernels that run side by side in one."""
    buffers = list(dict.fromkeys(buffer for part in parts for buffer in part.buffers))
    outputs = [node for part in parts for node in part.outputs]
    places = sorted({place for part in parts for place in part.where})
    return Loops(name, "combo", 0, 1, [], buffers, outputs, where=places, parts=parts)
