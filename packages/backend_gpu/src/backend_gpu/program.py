"""The program of a graph: Python source that allocates, launches kernels and calls ATen, one line for each step."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .actions import Action, Allocate, Call, Drop, Launch, Operand, Return, Take, source_of
from .errors import Unsupported
from .ir.index import Expr, Index
from .ir.loops import Loops
from .ir.nodes import Node, Ref
from .lower.memory import same_strides, strided
from .render.text import IndexText
from .schedule.buffers import Plan
from .schedule.steps import Schedule, Step

OUT_VARIANTS = {
    torch.ops.aten.mm.default: "mm.out",
    torch.ops.aten.bmm.default: "bmm.out",
    torch.ops.aten.addmm.default: "addmm.out",
    torch.ops.aten.baddbmm.default: "baddbmm.out",
}
"""ATen operations that write into memory that the program has allocated."""

SYMBOL = re.compile(r"\bs_?\d+\b")
"""What names of symbolic sizes look like."""
RESERVED = {"args", "aten", "torch", "empty", "view", "expect", "run", "device"}


@dataclass
class ProgramText:
    """A program: its actions, and the objects that they name."""

    actions: list[Action]
    constants: dict[str, Any]

    @property
    def text(self) -> str:
        """The Python source."""
        return source_of(self.actions)


def write_program(schedule: Schedule, plan: Plan, name_kernel: Callable[[Step], str]) -> ProgramText:
    """The program of a schedule. `name_kernel` gives the name of the launcher for a step that is a kernel."""
    return _Writer(schedule, plan, name_kernel).write()


class _Writer:
    def __init__(self, schedule: Schedule, plan: Plan, name_kernel: Callable[[Step], str]):
        self.schedule, self.plan, self.name_kernel = schedule, plan, name_kernel
        self.graph = schedule.graph
        self.actions: list[Action] = []
        self.constants: dict[str, Any] = {"device": self.graph.device}
        self.names: dict[Node, str] = {}
        self._taken = RESERVED | self.graph.sizes.keys()
        self.index = IndexText({})

    def write(self) -> ProgramText:
        take = self._take()
        self.actions.append(take)
        for number, step in enumerate(self.schedule.steps):
            for node, source in self.plan.allocate[number]:
                self._allocate(node, source)
                if source is not None and source not in map(self.plan.home, step.reads):
                    self.actions.append(Drop([self.names.pop(source)]))
            if step.kernel is not None:
                self._kernel(step, step.kernel)
            else:
                self._extern(step)
            dead = [self.names[node] for node in self.plan.dead[number] if node in self.names]
            if dead:
                self.actions.append(Drop(sorted(dead)))
        strides = self.graph.strides
        outputs = [self._output(value, strides.get(position)) for position, value in enumerate(self.graph.outputs)]
        self.actions.append(Return(outputs))
        take.sizes += self._sizes()
        return ProgramText(self.actions, self.constants)

    def name(self, node: Node) -> str:
        """The variable of a tensor."""
        if node not in self.names and "constant" in node.attrs:
            self.names[node] = self.constant(node.attrs["constant"], node.name)
        if node not in self.names:
            base = re.sub(r"\W", "_", node.name) or "t"
            base = f"{base}_" if keyword.iskeyword(base) or base in self.constants or SYMBOL.fullmatch(base) else base
            name, count = base, 1
            while name in self._taken:
                name, count = f"{base}_{count}", count + 1
            self._taken.add(name)
            self.names[node] = name
        return self.names[node]

    def _input(self, position: int) -> str:
        value = self.graph.inputs[position]
        return self.name(value) if isinstance(value, Node) else f"number{position}"

    def _take(self) -> Take:
        names = [self._input(position) for position in range(len(self.graph.inputs))]
        tensors = {name: value for name, value in zip(names, self.graph.inputs) if isinstance(value, Node)}
        return Take(names, tensors)

    def _sizes(self) -> list[tuple[str, str]]:
        """The symbolic sizes that the program needs, and where their numbers come from."""
        wanted = set(SYMBOL.findall(source_of(self.actions)))
        found: list[tuple[str, str]] = []
        for symbol, place in reversed(self.graph.sizes.items()):
            if symbol in wanted:
                found.insert(0, (symbol, place.formula or self._input(place.input) + place.what))
                wanted |= set(SYMBOL.findall(place.formula))
        lost = wanted - self.graph.sizes.keys() - self._taken - self.constants.keys()
        if lost:
            raise Unsupported(f"sizes that no input shows ({', '.join(sorted(lost))})")
        return found

    def sizes(self, values: tuple[Index, ...]) -> str:
        """A tuple of sizes as source."""
        inner = ", ".join(map(self.index.write, values))
        return f"({inner},)" if len(values) == 1 else f"({inner})"

    def constant(self, value: Any, hint: str) -> str:
        """A name for an object that can't be written down."""
        for name, known in self.constants.items():
            if known is value:
                return name
        name = re.sub(r"\W", "_", hint)
        while name in self.constants or name in self._taken:
            name += "_"
        self._taken.add(name)
        self.constants[name] = value
        return name

    def _allocate(self, node: Node, source: Node | None) -> None:
        shape, strides = self.sizes(node.shape), self.sizes(node.layout())
        name = self.name(node)
        if source is None:
            value = f"empty({shape}, {strides}, dtype={node.dtype}, device=device)"
        elif source.shape == node.shape and same_strides(node.shape, source.layout(), node.layout()):
            value = self.names[source]
        else:
            value = f"view({self.names[source]}, {shape}, {strides}, 0)"
        self.actions.append(Allocate(name, node, None if source is None else self.names[source], value))

    def _kernel(self, step: Step, kernel: Loops) -> None:
        launcher = self.name_kernel(step)
        tensors = [self.name(self.plan.home(buffer)) for buffer in kernel.buffers]
        counts = [part.x for part in kernel.parts or (kernel,)]
        if kernel.form == "product":
            attrs = kernel.stmts[0].attrs
            counts = [attrs["rows"], kernel.r, attrs["batches"]]
        numbers = [*map(self.index.write, counts), *kernel.symbols]
        reduces = any(stmt.op == "reduce" for stmt in kernel.stmts)
        idle = not kernel.parts and kernel.x == 0 or (kernel.r == 0 and not reduces)
        self.actions.append(Launch(launcher, kernel, tensors, numbers, idle))

    def operand(self, node: Node, wanted: tuple[Index, ...] | None = None) -> Operand:
        """A tensor for ATen or for the caller: a variable, or a view of one."""
        node = self.plan.home(node)
        if node in self.names:
            return Operand(self.names[node], self.names[node])
        found = strided(node)
        assert found is not None, node.text()
        base, strides, offset = found
        strides = wanted or strides
        name = self.name(self.plan.home(base))
        text = f"view({name}, {self.sizes(node.shape)}, {self.sizes(strides)}, {self.index.write(offset)})"
        return Operand(name, text, node.shape, strides, offset)

    def _extern(self, step: Step) -> None:
        node = step.extern
        assert node is not None
        target = node.attrs["target"]
        reads: list[Operand] = []
        arguments = [self._argument(value, node, reads) for value in node.attrs["args"]]
        arguments += [f"{key}={self._argument(value, node, reads)}" for key, value in node.attrs["kwargs"].items()]
        items = list(step.writes)
        if target in OUT_VARIANTS and len(items) == 1 and self.plan.preallocated(items[0]):
            name = self.name(items[0])
            source = f"aten.{OUT_VARIANTS[target]}({', '.join(arguments)}, out={name})"
            self.actions.append(Call(target, reads, source, out=(name, items[0])))
            return
        call = f"{self.constant(target, str(target).replace('.', '_'))}({', '.join(arguments)})"
        made = []
        for item in items:
            layout = f"expect({{}}, {self.sizes(item.shape)}, {self.sizes(item.layout())})"
            made.append((self.name(item), item, item.attrs["which"], layout))
        self.actions.append(Call(target, reads, call if node.attrs["many"] else f"({call},)", made))

    def _argument(self, value: Any, node: Node, reads: list[Operand]) -> str:
        if isinstance(value, Ref):
            reads.append(self.operand(node.inputs[value.position]))
            return reads[-1].text
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(self._argument(item, node, reads) for item in value)}]"
        if isinstance(value, Expr):
            return self.index.write(value)
        if isinstance(value, (bool, int, str)) or value is None:
            return repr(value)
        if isinstance(value, float):
            return repr(value) if value == value and abs(value) != float("inf") else f'float("{value}")'
        return self.constant(value, f"const_{type(value).__name__}")

    def _output(self, value: Any, strides: tuple[Index, ...] | None) -> Operand | str:
        if isinstance(value, Node):
            return self.operand(value, strides)
        if isinstance(value, Expr):
            return self.index.write(value)
        return repr(value) if isinstance(value, (int, float, bool)) or value is None else self.constant(value, "const")


def view(base: torch.Tensor, size: Any, stride: Any, offset: int) -> torch.Tensor:
    """Another view of a tensor's memory, from `offset` elements behind its start."""
    return torch.as_strided(base, size, stride, base.storage_offset() + offset)


def expect(value: torch.Tensor, size: Any, stride: Any) -> torch.Tensor:
    """What ATen returned, laid out as the kernels expect it."""
    if value.stride() == stride or 0 in size:
        return value
    if all(s == 1 or a == b for s, a, b in zip(size, value.stride(), stride)):
        return value
    return torch.empty_strided(size, stride, dtype=value.dtype, device=value.device).copy_(value)
