"""What was captured: a `Record` per entry, for whoever collects on this thread, and process-wide counters."""

from __future__ import annotations

import contextlib
import threading
import types
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .reasons import BreakSite


@dataclass(slots=True)
class Record:
    """One capture: the entry that it made, or the reason why there is none."""

    code: types.CodeType
    line: int
    """Where the entry starts: the function's first line, or the line of the instruction that it continues at."""
    at_start: bool = True
    """False for an entry that continues inside a function."""
    graph: Any = None
    """The `torch.fx.GraphModule`, or None where no tensor operation was captured."""
    n_ops: int = 0
    guards: dict[str, int] = field(default_factory=dict)
    """How many guards of each kind."""
    stop: BreakSite | None = None
    """Where this entry hands over to plain Python; None where it runs to the end."""
    seconds: float = 0.0
    sizes: tuple[str, ...] = ()
    """What must hold of sizes and numbers that vary, as conditions in Python."""

    entry_guards: Any = None
    """The entry's `_C.Guards`, which tell how its facts are kept."""

    @property
    def name(self) -> str:
        """The captured function's qualified name."""
        return self.code.co_qualname


class _Collectors(threading.local):
    def __init__(self) -> None:
        self.stack: list[list[Record]] = []


_collectors = _Collectors()
counters: Counter[str] = Counter()
"""Counts since the last reset: `entries`, `graphs`, `operations`, `breaks` and `break:<code>`."""


def collecting() -> bool:
    """Whether anybody on this thread wants records."""
    return bool(_collectors.stack)


def add(record: Record) -> None:
    """Report one capture. The record, with its graph, is kept by the collectors alone."""
    counters["entries"] += 1
    counters["operations"] += record.n_ops
    if record.graph is not None:
        counters["graphs"] += 1
    if record.stop is not None:
        counters["breaks"] += 1
        counters[f"break:{record.stop.code}"] += 1
    for records in _collectors.stack:
        records.append(record)


@contextlib.contextmanager
def collect() -> Iterator[list[Record]]:
    """Collect the records of captures that this thread makes inside the `with` block."""
    records: list[Record] = []
    _collectors.stack.append(records)
    try:
        yield records
    finally:
        # By identity: two empty lists compare equal.
        _collectors.stack[:] = [other for other in _collectors.stack if other is not records]


def reset() -> None:
    """Set all counters to zero."""
    counters.clear()
