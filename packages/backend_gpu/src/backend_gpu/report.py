"""What became of each graph: its kernels, what went to ATen and why, and what was left to eager altogether."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dynacore import logs


@dataclass(frozen=True)
class Choice:
    """What was chosen for a kernel at these sizes, and the seconds that each alternative took."""

    kernel: str
    sizes: tuple[int, ...]
    chosen: str
    times: Mapping[str, float]

    def __str__(self) -> str:
        ranked = sorted(self.times.items(), key=lambda item: (item[0] != self.chosen, item[1]))
        times = "; ".join(f"{name} {seconds * 1e3:.4f} ms" for name, seconds in ranked[:4])
        more = f"; {len(ranked) - 4} slower ones" if len(ranked) > 4 else ""
        return f"{self.kernel} ({', '.join(map(str, self.sizes))}): {times}{more}"


@dataclass
class GraphReport:
    """One compiled graph. `graph`, `schedule`, `sources` and `program` are the printed forms of the stages."""

    backward: bool = False
    kernels: int = 0
    aten_calls: list[tuple[str, str]] = field(default_factory=list)
    """ATen operations that were asked for, with the reason; one entry for each call."""
    eager: str = ""
    """Why the whole graph runs operation by operation; empty where it is compiled."""
    graph: str = ""
    schedule: str = ""
    sources: list[str] = field(default_factory=list)
    program: str = ""
    compiled: Any = None
    recording: Any = None
    """What recording did in the modes that record: a `runtime.cudagraphs.Tally`."""
    choices: list[Choice] = field(default_factory=list)
    """What was chosen among alternatives in the modes that measure, with the times."""
    failures: list[str] = field(default_factory=list)
    """What calls of it raised."""

    def __str__(self) -> str:
        if self.eager:
            return f"{'backward' if self.backward else 'forward'}: runs through ATen, {self.eager}"
        calls = Counter(f"{name} ({reason})" for name, reason in self.aten_calls)
        direction = "backward" if self.backward else "forward"
        lines = [f"{direction}: {self.kernels} kernels, {sum(calls.values())} ATen calls"]
        lines += [f"  {count} x {call}" for call, count in sorted(calls.items())]
        lines += [f"  {choice}" for choice in self.choices]
        return "\n".join(lines)


_reports: list[GraphReport] = []
_lock = threading.Lock()
LIMIT = 256


def add(report: GraphReport) -> None:
    """Keep a report; the oldest go when there are too many."""
    with _lock:
        _reports.append(report)
        del _reports[:-LIMIT]


def reports() -> list[GraphReport]:
    """The reports of the graphs compiled since the last `clear_reports`, oldest first."""
    with _lock:
        return list(_reports)


def clear_reports() -> None:
    """Forget all reports."""
    with _lock:
        _reports.clear()


def warn_once(key: Any, text: str) -> None:
    """A message on dynacore's log, once in a process."""
    logs.warn_once(("backend_gpu", key), text)
