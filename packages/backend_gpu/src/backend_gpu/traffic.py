"""Bytes that kernels move, and the least that any kernels could: known from a schedule, without running it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .ir.index import Index, evaluate, variables
from .ir.loops import Loops, R, Stmt, X
from .ir.nodes import Node
from .schedule.groups import kept_by
from .schedule.steps import Schedule, Step


@dataclass(frozen=True)
class Traffic:
    """Bytes moved by all kernels of a schedule, and the least possible."""

    moved: int
    least: int

    @property
    def ratio(self) -> float:
        """1.0 is perfect."""
        return self.moved / self.least if self.least else 1.0


def _number(value: Index) -> int:
    """A size; a symbolic one counts as 64."""
    return evaluate(value, {v.name: 64 for v in variables(value)})


def _elements(stmt: Stmt, kernel: Loops) -> int:
    """How many elements of its buffer a statement touches at most."""
    count = 1
    if any(v.name.startswith("v") for v in variables(stmt.attrs["index"])):
        count = (_number(kernel.x) if stmt.dims & X else 1) * (_number(kernel.r) if stmt.dims & R else 1)
    else:
        names = {v.name for v in variables(stmt.attrs["index"])}
        count = (_number(kernel.x) if "x" in names else 1) * (_number(kernel.r) if "r" in names else 1)
    return min(count, _number(stmt.attrs["buffer"].numel))


def passes(kernel: Loops) -> dict[int, int]:
    """How often each load is done: once, or once for each loop over r that needs it."""
    if kernel.form != "rows" or kernel.persistent:
        return {position: 1 for position, stmt in enumerate(kernel.stmts) if stmt.op == "load"}
    from .render.body import Body
    from .render.source import Writer
    from .render.tiles import choose

    body = Body(Writer(kernel, choose(kernel)))
    counts: dict[int, int] = {p: 0 if s.dims & R else 1 for p, s in enumerate(kernel.stmts) if s.op == "load"}
    for stage in range(max(stmt.stage for stmt in kernel.stmts) + 1):
        for position in body.wanted(stage):
            if position in counts and kernel.stmts[position].dims & R:
                counts[position] += 1
    return counts


def touched(kernel: Loops) -> tuple[dict[Node, int], dict[Node, int]]:
    """Elements read and written of each buffer. What one pass reads twice comes from the cache the second time."""
    reads: dict[Node, int] = {}
    writes: dict[Node, int] = {}
    for part in kernel.parts or (kernel,):
        counts = passes(part)
        for position, stmt in enumerate(part.stmts):
            if stmt.op == "load":
                buffer = stmt.attrs["buffer"]
                reads[buffer] = max(reads.get(buffer, 0), counts[position] * _elements(stmt, part))
            elif stmt.op == "store":
                buffer = stmt.attrs["buffer"]
                writes[buffer] = max(writes.get(buffer, 0), _elements(stmt, part))
                if stmt.attrs["kind"] == "add":
                    reads[buffer] = max(reads.get(buffer, 0), _elements(stmt, part))
    return reads, writes


def _bytes(elements: dict[Node, int]) -> int:
    return sum(count * node.dtype.itemsize for node, count in elements.items())


def measure(plan: Schedule) -> Traffic:
    """The traffic of a schedule.

    A region is a set of kernels that hand tensors to each other without a call of ATen in between; the least it has to
    move is what comes from outside, once, and what is needed outside, once.
    """
    steps = [step for step in plan.steps if step.kernel is not None]
    moved = sum(sum(map(_bytes, touched(step.kernel))) for step in steps if step.kernel is not None)
    return Traffic(moved, sum(_least(region, plan) for region in _regions(plan)))


def _levels(plan: Schedule) -> dict[int, int]:
    """For each step, how many calls of ATen there are before it at most."""
    made: dict[Node, int] = {}
    levels = {}
    for number, step in enumerate(plan.steps):
        level = max((made.get(node, 0) for node in step.reads), default=0)
        levels[number] = level
        for node in step.writes:
            made[node] = level + (step.extern is not None)
    return levels


def _regions(plan: Schedule) -> Iterable[list[Step]]:
    levels = _levels(plan)
    maker = {node: number for number, step in enumerate(plan.steps) for node in step.writes}
    region: dict[int, int] = {}
    for number, step in enumerate(plan.steps):
        if step.kernel is None:
            continue
        region[number] = number
        for node in step.reads:
            source = maker.get(node)
            if source in region and levels[source] == levels[number]:
                old, new = region[number], region[source]
                region = {key: new if value == old else value for key, value in region.items()}
    for name in sorted(set(region.values())):
        yield [plan.steps[number] for number, value in region.items() if value == name]


def _least(region: list[Step], plan: Schedule) -> int:
    inside = {id(step) for step in region}
    made = {node for step in region for node in step.writes}
    needed = {node for value in plan.graph.outputs if isinstance(value, Node) for node in kept_by(value)}
    needed |= {target for target, _ in plan.graph.mutations}
    for step in plan.steps:
        if id(step) not in inside:
            needed.update(step.reads)
    total = 0
    reads: dict[Node, int] = {}
    for step in region:
        assert step.kernel is not None
        per_pass = {node: min(count, _number(node.numel)) for node, count in touched(step.kernel)[0].items()}
        for node, count in per_pass.items():
            if node not in made:
                reads[node] = max(reads.get(node, 0), count)
        written = touched(step.kernel)[1]
        total += _bytes({node: count for node, count in written.items() if node in needed or node.op == "input"})
    return total + _bytes(reads)
