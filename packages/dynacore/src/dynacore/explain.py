"""`dynacore.explain`: run a function freshly compiled, and tell what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from . import environment, stats
from .api import compile_afresh
from .errors import ArgumentError
from .guards.coverage import covered, summary
from .reasons import BreakSite
from .stats import Record


@dataclass(frozen=True)
class BreakCost:
    """What one place that breaks costs: what continues behind it, in every call that comes through."""

    site: BreakSite
    entries: int
    """How many captures end here."""
    continuations: int
    """How many captures start behind it."""
    graphs: int
    operations: int
    guards: int
    """Graphs, operations and guards of those that start behind it."""


class Explanation:
    """What capture made of a function; `str()` of it is a report."""

    def __init__(self, name: str, records: Sequence[Record], result: Any) -> None:
        self.name = name
        self.records = tuple(records)
        self.result = result
        """What the call returned."""
        self.graphs = tuple(record.graph for record in records if record.graph is not None)
        self.graph_count = len(self.graphs)
        self.op_count = sum(record.n_ops for record in records)
        self.break_costs = tuple(_costs(records))
        self.breaks = tuple(cost.site for cost in self.break_costs)
        self.graph_break_count = len(self.breaks)
        self.guards = Counter[str]()
        for record in records:
            self.guards.update(record.guards)
        self.facts = tuple(
            fact for record in records if record.entry_guards is not None for fact in covered(record.entry_guards)
        )
        """How each fact below globals, classes and other constants is kept: watched, polled, or looked up each time."""
        self.seconds = sum(record.seconds for record in records)

    def __repr__(self) -> str:
        return (
            f"<Explanation of {self.name}: {_count(self.graph_count, 'graph')}, {_count(self.op_count, 'operation')}, "
            f"{_count(len(self.breaks), 'break')}>"
        )

    def __str__(self) -> str:
        parts = [self._headline(), *self._entry_lines(), self._guard_line(), *self._break_lines()]
        return "\n".join(part for part in parts if part)

    def _headline(self) -> str:
        return (
            f"{self.name}: {_count(self.graph_count, 'graph')} with {_count(self.op_count, 'operation')}, "
            f"{_count(len(self.breaks), 'place')} where capture breaks, captured in {self.seconds * 1e3:.0f} ms"
        )

    def _entry_lines(self) -> list[str]:
        lines = ["Entries, in the order of their capture:"] if self.records else ["Nothing was captured."]
        for number, record in enumerate(self.records, 1):
            start = "from its start" if record.at_start else f"from line {record.line}"
            end = f"breaks at line {record.stop.line} [{record.stop.code}]" if record.stop else "to the end"
            graph = "no graph" if record.graph is None else _count(record.n_ops, "operation")
            lines.append(f"  {number}. {record.name} {start}: {graph}, {_guards(record)}, {end}")
            if record.sizes:
                lines.append(f"     while {' and '.join(record.sizes)}")
        return lines

    def _guard_line(self) -> str:
        if not self.guards:
            return ""
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.guards.most_common())
        kept = f"\nOf what is not an argument: {summary(self.facts)}" if self.facts else ""
        return f"Guards: {self.guards.total()} ({kinds}){kept}"

    def _break_lines(self) -> list[str]:
        lines: list[str] = []
        for number, cost in enumerate(self.break_costs, 1):
            lines.append(cost.site.describe(f"Break {number} of {len(self.break_costs)}"))
            behind = f"{_count(cost.continuations, 'entry', 'entries')} behind it"
            work = f"{_count(cost.graphs, 'graph')} and {_count(cost.operations, 'operation')}"
            checks = f"{_count(cost.guards, 'guard')} to check each time"
            lines.append(f"  cost: this instruction runs as plain Python; {behind}, with {work}, {checks}")
        return lines


def explain(f: Callable[..., Any]) -> Callable[..., Explanation]:
    """Have a function explained: `dynacore.explain(f)(*args)` runs it once and tells what capture made of that call.

    The function is compiled afresh, with what it was compiled with if it was, else with backend "eager". With
    `fullgraph=True` it is explained as if without.
    """
    if isinstance(f, type) or not callable(f):
        raise ArgumentError(f"dynacore.explain(f): give a function, module or callable object, not {f!r}")

    def run(*args: Any, **kwargs: Any) -> Explanation:
        if not environment.ready():
            return Explanation(_name(f), (), f(*args, **kwargs))
        compiled = compile_afresh(f)
        with stats.collect() as records:
            result = compiled(*args, **kwargs)
        return Explanation(_name(f), records, result)

    return run


def _costs(records: Sequence[Record]) -> list[BreakCost]:
    """One row per place that breaks, in order. What starts behind a break is the capture made right after it."""
    places: dict[tuple[str, int, str], list[tuple[BreakSite, Record | None]]] = {}
    for record, following in zip_longest(records, records[1:]):
        if (site := record.stop) is not None:
            behind = following if following is not None and not following.at_start else None
            places.setdefault((site.file, site.line, site.code), []).append((site, behind))
    return [_cost(rows[0][0], len(rows), [record for _, record in rows if record]) for rows in places.values()]


def _cost(site: BreakSite, entries: int, behind: list[Record]) -> BreakCost:
    return BreakCost(
        site=site,
        entries=entries,
        continuations=len(behind),
        graphs=sum(record.graph is not None for record in behind),
        operations=sum(record.n_ops for record in behind),
        guards=sum(sum(record.guards.values()) for record in behind),
    )


def _guards(record: Record) -> str:
    return _count(sum(record.guards.values()), "guard")


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def _name(f: Callable[..., Any]) -> str:
    return getattr(f, "__qualname__", None) or type(f).__qualname__
