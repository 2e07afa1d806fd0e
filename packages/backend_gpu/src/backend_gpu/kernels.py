"""The launchers of a program: one source for all kernels that differ in names and the number of rows only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dynacore import torch_api

from .alternatives import alternatives
from .check_program import check_program
from .config import config
from .ir.loops import Loops, check_loops
from .program import OUT_VARIANTS, expect, view, write_program
from .render.signature import signature
from .render.source import Source, render
from .render.tiles import Tile, choose
from .report import Choice
from .runtime.choosing import Chooser
from .runtime.device import Device
from .runtime.launch import Launcher
from .schedule.buffers import Plan
from .schedule.products import precision
from .schedule.steps import Schedule, Step


class Kernels:
    """The launchers of one program. With `note`, which gets to know each choice, each has alternatives to choose from;
    those of an `inner` program, which is an alternative itself, aren't programs."""

    def __init__(
        self, device: Device, torch_device: torch.device, note: Callable[[Choice], None] | None = None,
        inner: bool = False,
    ):  # fmt: skip
        self.device, self.torch_device, self.note, self.inner = device, torch_device, note, inner
        self.launchers: dict[str, Launcher | Chooser] = {}
        self._names: dict[str, str] = {}

    def name(self, step: Step) -> str:
        """The name of the launcher for a kernel."""
        kernel = step.kernel
        assert kernel is not None
        tile = choose(kernel, self.device.interpreted)
        key = signature(kernel, tile)
        if self.note is not None:
            # With other tiles the masks that kernels need differ by their rows.
            key += f"\nrows {[str(part.x) for part in kernel.parts or (kernel,)]}"
        if key not in self._names:
            while kernel.name in self.launchers:
                kernel.name += "_"
            self._names[key] = kernel.name
            self.launchers[kernel.name] = self._launcher(step, kernel, tile, key)
        return self._names[key]

    def launcher(self, kernel: Loops, tile: Tile) -> Launcher:
        """The launcher of a kernel with this tile."""
        return Launcher(render(kernel, tile), self.device, self.torch_device)

    def _launcher(self, step: Step, kernel: Loops, tile: Tile, key: str) -> Launcher | Chooser:
        if self.note is None:
            return self.launcher(kernel, tile)
        outputs = {id(node.attrs.get("into", node)) for node in kernel.outputs}
        written = [position for position, buffer in enumerate(kernel.buffers) if id(buffer) in outputs]
        found = alternatives(step, kernel, tile, self)
        chooser = Chooser(render(kernel, tile), key, found, len(kernel.buffers), written, self.device, self.note)
        if kernel.form == "product":
            # A template multiplies as ATen was set to when it was made; when that changes, ATen does it.
            wanted, dtype = kernel.stmts[0].attrs["precision"], kernel.stmts[0].attrs["left"].buffer.dtype
            chooser.holds = None if dtype != torch.float32 else lambda: precision(dtype) == wanted
        return chooser

    def assemble(self, plan: Schedule) -> tuple[Callable[[list[Any]], Any], str]:
        """The program of a schedule, which takes a list of arguments and empties it; and its text."""
        if config.check:
            for step in plan.steps:
                if step.kernel is not None:
                    check_loops(step.kernel)
        memory = Plan(plan, lambda node: node.op == "item" and node.inputs[0].attrs["target"] in OUT_VARIANTS,
                      rows_open=self.note is not None)  # fmt: skip
        program = write_program(plan, memory, self.name)
        if config.check:
            check_program(program.actions, plan.graph, {name: made.source for name, made in self.launchers.items()})
        names: dict[str, Any] = {
            **torch_api.size_functions(), "torch": torch, "aten": torch.ops.aten, "empty": torch.empty_strided,
            "view": view, "expect": expect, **program.constants, **self.launchers,
        }  # fmt: skip
        exec(compile(program.text, "<backend_gpu program>", "exec"), names)
        return names["run"], program.text

    def part(self, plan: Schedule, kernel: Loops) -> Part:
        """A program for what one kernel does."""
        inner = Kernels(self.device, self.torch_device, self.note, inner=True)
        run, _ = inner.assemble(plan)
        return Part(run, len(kernel.buffers), len(kernel.symbols), inner.sources())

    def rendered(self) -> list[Source]:
        """What was rendered, each kernel once."""
        return [launcher.source for launcher in self.launchers.values()]

    def sources(self) -> list[Source]:
        """What runs as long as nothing was measured."""
        return [source for launcher in self.launchers.values() for source in launcher.sources()]


class Part:
    """A program that stands where a kernel might: it takes the kernel's arguments, and needs no numbers but symbols."""

    def __init__(self, run: Callable[[list[Any]], Any], tensors: int, symbols: int, sources: list[Source]):
        self._run, self._tensors, self._symbols, self._sources = run, tensors, symbols, sources

    def sources(self) -> list[Source]:
        """The kernels in it."""
        return self._sources

    def __call__(self, *arguments: Any) -> None:
        self._run([*arguments[: self._tensors], *arguments[len(arguments) - self._symbols :]])
