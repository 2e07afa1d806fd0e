"""What measures alternatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Measures calls on a device."""

    def ready(self) -> bool:
        """Whether anything can be measured now."""
        ...

    def seconds(self, name: str, call: Callable[[], None]) -> float:
        """How long a call of an alternative takes."""
        ...
