"""One plan of all memory: when each tensor is allocated, which dead one's memory it takes over, and when it dies."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.loops import Loops, buffers_read
from ..ir.nodes import Node
from .groups import kept_by
from .steps import Schedule, Step


class Plan:
    """`allocate[i]` lists what is allocated before step i, each with the tensor whose memory it takes, or None;
    `dead[i]` what is not needed behind it."""

    def __init__(self, schedule: Schedule, writes_out: Callable[[Node], bool], rows_open: bool = False):
        self.schedule = schedule
        self._rows_open = rows_open
        """Whether how rows are run over is still open: then no kernel of rows may write over what it reads."""
        self._writes_out = writes_out
        self._homes: dict[Node, Node] = {}
        self.allocate: list[list[tuple[Node, Node | None]]] = []
        self.dead: list[list[Node]] = []
        self._allocated: set[Node] = set()
        self._aliases()
        self._last = self._last_uses()
        self._run()

    def home(self, node: Node) -> Node:
        """The tensor in whose memory another one is made: an overwritten input, or what a scatter starts from."""
        while node in self._homes:
            node = self._homes[node]
        return node

    def preallocated(self, node: Node) -> bool:
        """Whether the memory for a result of ATen is there before it's called."""
        return node in self._allocated or node in self.schedule.graph.inputs

    def _aliases(self) -> None:
        for step in self.schedule.steps:
            for node in step.writes:
                if node.op == "scatter":
                    self._homes[node] = node.inputs[0]
            if step.kernel is not None:
                for node in step.kernel.outputs:
                    if node.attrs.get("into") is not None:
                        self._homes[node] = node.attrs["into"]

    def _touched(self, step: Step) -> set[Node]:
        return {self.home(node) for node in (*step.reads, *step.writes)}

    def _last_uses(self) -> dict[Node, int]:
        last: dict[Node, int] = {}
        for number, step in enumerate(self.schedule.steps):
            for node in self._touched(step):
                last[node] = number
        kept = len(self.schedule.steps)
        for value in self.schedule.graph.outputs:
            if isinstance(value, Node):
                for node in map(self.home, kept_by(value)):
                    last[node] = kept
        return last

    def _run(self) -> None:
        free: list[Node] = []
        inputs = {node for node in self.schedule.graph.inputs if isinstance(node, Node)}
        for number, step in enumerate(self.schedule.steps):
            made: list[tuple[Node, Node | None]] = []
            dying = [n for n in self._touched(step) if self._last.get(n) == number and n in self._allocated]
            taken: set[Node] = set()
            for node in map(self.home, step.writes):
                if is_given(node, inputs) or node in self._allocated or not self._is_allocated_here(step, node):
                    continue
                source = self._reusable(free, node)
                if source is not None:
                    free.remove(source)
                elif step.kernel is not None:
                    source = next((d for d in dying if d not in taken and self._in_place(step.kernel, d, node)), None)
                    if source is not None:
                        taken.add(source)
                made.append((node, source))
                self._allocated.add(node)
            self.allocate.append(made)
            dead = [n for n in self._touched(step) if self._last.get(n, -1) == number and not is_given(n, inputs)]
            kept = [n for n in dead if n in self._allocated and n not in taken]
            free += kept
            self.dead.append([n for n in dead if n not in kept])
        for node in free:  # nothing took over their memory: they are let go where they die
            self.dead[self._last[node]].append(node)

    def _is_allocated_here(self, step: Step, node: Node) -> bool:
        return step.kernel is not None or self._writes_out(node)

    def _reusable(self, free: list[Node], node: Node) -> Node | None:
        for source in reversed(free):
            if source.dtype == node.dtype and source.numel == node.numel:
                return source
        return None

    def _in_place(self, kernel: Loops, source: Node, node: Node) -> bool:
        """Whether a kernel may write a tensor over one that it reads: every element is read where it is written."""
        if source.dtype != node.dtype or source.numel != node.numel or kernel.parts:
            return False
        if kernel.form == "rows" and (self._rows_open or not kernel.persistent):
            return False
        if kernel.form == "product" and (source in map(self.home, buffers_read(kernel.stmts[0])) or node.op == "item"):
            return False  # other programs read a factor, too; and ATen writes a product before its tail reads anything
        stores = [s for s in kernel.stmts if s.op == "store"]
        written = {s.attrs["index"] for s in stores if self.home(s.attrs["buffer"]) is node}
        read = [s for s in kernel.stmts if s.op == "load" and self.home(s.attrs["buffer"]) is source]
        return all({s.attrs["index"]} == written and not s.attrs["guards"] for s in read) and not any(
            s.finish or self.home(s.attrs["buffer"]) is source for s in stores
        )


def is_given(node: Node, inputs: set[Node]) -> bool:
    """Whether the program neither allocates a tensor nor lets go of it."""
    return node in inputs or "constant" in node.attrs
