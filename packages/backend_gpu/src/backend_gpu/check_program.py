"""The checker of programs: follows every memory from where it is allocated to where it is let go.

A variable may be read while it owns its memory and something was written there. Memory passes to the variable that
takes it over when that one is written; from then on the old variable is as good as gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .actions import Action, Allocate, Call, Drop, Launch, Operand, Return, Take
from .ir.check import IRError
from .ir.index import Index, product, variables
from .ir.loops import Loops, Stmt, buffers_read
from .ir.nodes import Graph, Node
from .lower.memory import same_strides
from .render.source import Source
from .render.text import POINTERS


@dataclass
class Memory:
    """One piece of memory: how many elements of which dtype, who owns it, whether the program may overwrite it."""

    node: Node
    owner: str
    given: bool = False
    written: bool = False


def check_program(actions: Sequence[Action], graph: Graph, sources: Mapping[str, Source]) -> None:
    """Raise `IRError` where a program reads what isn't there, overwrites what is needed, or keeps what isn't."""
    checker = _Checker(graph, sources)
    for action in actions:
        checker.action = action
        checker.check(action)
    checker.require(bool(actions) and isinstance(actions[-1], Return), "a program ends with what it returns")


class _Checker:
    def __init__(self, graph: Graph, sources: Mapping[str, Source]):
        self.sources = sources
        self.graph = graph
        self.overwritten = {target for target, _ in graph.mutations}
        self.action: Action | None = None
        self.held: dict[str, Memory] = {}
        """What each live variable holds."""
        self.nodes: dict[str, Node] = {}
        self.returned = False

    def require(self, condition: object, text: str) -> None:
        if not condition:
            lines = "" if self.action is None else "; ".join(self.action.lines())
            raise IRError(f"{text}: {lines}")

    def check(self, action: Action) -> None:
        """One action; what is held afterwards."""
        self.require(not self.returned, "behind the return")
        if isinstance(action, Take):
            for name, node in action.tensors.items():
                self._give(name, node)
        elif isinstance(action, Allocate):
            self._allocate(action)
        elif isinstance(action, Launch):
            self._launch(action)
        elif isinstance(action, Call):
            self._call(action)
        elif isinstance(action, Drop):
            for name in action.names:
                self.require(name in self.held, f"{name} isn't there")
                self.require(not self.held[name].given, f"{name} isn't the program's to let go")
                del self.held[name]
        else:
            self._return(action)

    # --- variables ------------------------------------------------------------------------------------------------

    def _give(self, name: str, node: Node) -> None:
        self.held[name] = Memory(node, name, given=True, written=True)
        self.nodes[name] = node

    def _known(self, name: str, node: Node | None = None) -> Memory:
        """The memory of a variable; that of a constant is there from the start."""
        if name not in self.held and node is not None and "constant" in node.attrs:
            self._give(name, node)
        self.require(name in self.held, f"{name} isn't there")
        return self.held[name]

    def _allocate(self, action: Allocate) -> None:
        self.require(action.name not in self.held, f"{action.name} is there already")
        if action.source is None:
            self.held[action.name] = Memory(action.node, action.name)
        else:
            memory = self._known(action.source)
            old = self.nodes[action.source]
            self.require(not memory.given, f"the memory of {action.source} is the caller's")
            self.require(memory.owner == action.source, f"the memory of {action.source} was taken over before")
            self.require(old.dtype == action.node.dtype and old.numel == action.node.numel, "memory of another size")
            self.held[action.name] = memory
        self.nodes[action.name] = action.node

    def _read(self, name: str, node: Node | None = None) -> None:
        memory = self._known(name, node)
        self.require(memory.owner == name, f"{name} was overwritten by {memory.owner}")
        self.require(memory.written, f"{name} is read before anything was written")

    def _write(self, name: str) -> None:
        memory = self._known(name)
        self.require(not memory.given or self.nodes[name] in self.overwritten, f"{name} may not be overwritten")
        memory.owner, memory.written = name, True

    def _operand(self, operand: Operand) -> None:
        self._read(operand.name, self._constant(operand.name))
        if operand.shape is None or 0 in operand.shape:
            return
        node = self.nodes[operand.name]
        last = operand.offset + _extent(operand.shape, operand.strides) - 1
        inside = not isinstance(last, int) or not isinstance(_span(node), int) or 0 <= last < _span(node)  # type: ignore[operator]
        self.require(inside, f"a view past the end of {operand.name}")

    def _constant(self, name: str) -> Node | None:
        return next((n for n in self.graph.nodes() if "constant" in n.attrs and n.name == name), None)

    # --- steps ----------------------------------------------------------------------------------------------------

    def _launch(self, action: Launch) -> None:
        kernel, source = action.kernel, self.sources[action.launcher]
        self.require(len(action.tensors) == len(kernel.buffers), "a variable for each buffer")
        given = [POINTERS[buffer.dtype] for buffer in kernel.buffers]
        expected = [kind for name, kind in source.parameters if name not in ("partials_ptr", "counter_ptr")]
        self.require(expected[: len(given)] == given, f"the kernel takes {expected}")
        self.require(len(expected) == len(given) + len(action.numbers), "a number for each size and symbol")
        names = dict(zip(kernel.buffers, action.tensors))
        for buffer, name in names.items():
            self._known(name, buffer)
            node = self.nodes[name]
            self.require(node.dtype == buffer.dtype, f"{name} is of another dtype than {buffer.name}")
            same = node.shape == buffer.shape and same_strides(node.shape, node.layout(), buffer.layout())
            self.require(same or node is buffer, f"{name} isn't laid out as {buffer.name}")
        reads, writes = accesses(kernel)
        for buffer in kernel.buffers:
            if buffer in reads and not action.idle:
                self._read(names[buffer])
        for buffer in writes:
            self._check_in_place(kernel, buffer, names, action.idle)
        for buffer, stores in writes.items():
            full = action.idle or buffer in reads or any(_covers(store, buffer, kernel) for store in stores)
            self.require(full or self.held[names[buffer]].given, f"{names[buffer]} is written in part")
            self._write(names[buffer])

    def _check_in_place(self, kernel: Loops, written: Node, names: dict[Node, str], idle: bool) -> None:
        """What a kernel writes may lie where it reads only if each element is read where it is written, before."""
        memory = self._known(names[written])
        for other in kernel.buffers:
            if idle or kernel.parts and other is written or self.held[names[other]] is not memory:
                continue
            again = kernel.parts or kernel.form == "rows" and not kernel.persistent
            factor = kernel.form == "product" and other in buffers_read(kernel.stmts[0])
            self.require(not factor and (other is written or not again),
                         f"{names[written]} overwrites {names[other]} in a kernel that reads it again")  # fmt: skip
            stores = [(p, s) for p, s in enumerate(kernel.stmts) if s.op == "store" and s.attrs["buffer"] is written]
            loads = [(p, s) for p, s in enumerate(kernel.stmts) if s.op == "load" and s.attrs["buffer"] is other]
            for position, load in loads:
                fine = all(position < p and load.attrs["index"] == s.attrs["index"] and not s.finish for p, s in stores)
                self.require(fine, f"{names[written]} overwrites another element of {names[other]} than it reads")

    def _call(self, action: Call) -> None:
        for operand in action.reads:
            self._operand(operand)
        if action.out is not None:
            name, node = action.out
            memory = self._known(name)
            self.require(self.nodes[name] is node, f"{name} isn't laid out as the result")
            self.require(all(self.held[o.name] is not memory for o in action.reads), f"{name} is read and written")
            self._write(name)
        for name, node, _, text in action.made:
            self.require(name not in self.held, f"{name} is there already")
            self.require(text.startswith("expect("), f"nobody looks at the layout of {name}")
            self.held[name], self.nodes[name] = Memory(node, name, written=True), node

    def _return(self, action: Return) -> None:
        kept = set()
        for value in action.values:
            if isinstance(value, Operand):
                self._operand(value)
                kept.add(id(self.held[value.name]))
        self.returned = True
        left = [name for name, memory in self.held.items() if not memory.given and id(memory) not in kept]
        self.require(not left, f"{', '.join(left)} should have been let go")


def accesses(kernel: Loops) -> tuple[set[Node], dict[Node, list[Stmt]]]:
    """The buffers that a kernel reads, and its stores into each that it writes; what is added to is read as well."""
    reads: set[Node] = set()
    writes: dict[Node, list[Stmt]] = {}
    for part in kernel.parts or (kernel,):
        for stmt in part.stmts:
            reads.update(buffers_read(stmt))
            if stmt.op == "store":
                writes.setdefault(stmt.attrs["buffer"], []).append(stmt)
                if stmt.attrs["kind"] == "add" or stmt.attrs["buffer"].op == "scatter" or stmt.attrs["guards"]:
                    reads.add(stmt.attrs["buffer"])
    return reads, writes


def _covers(store: Stmt, buffer: Node, kernel: Loops) -> bool:
    """Whether a store runs over as many elements as its buffer has; with symbolic sizes that isn't known."""
    count = product({v.name: v.high for v in variables(store.attrs["index"]) if v.name in ("x", "r")}.values())
    return buffer.numel in (0, count) or not isinstance(count, int) or not isinstance(buffer.numel, int)


def _extent(shape: tuple[Index, ...], strides: tuple[Index, ...]) -> Index:
    total: Index = 1
    for size, step in zip(shape, strides):
        total = total + (size - 1) * step
    return total


def _span(node: Node) -> Index:
    """How many elements of memory a tensor spans."""
    return _extent(node.shape, node.layout()) if 0 not in node.shape else 0
