"""Why calls miss their entries: what kept changing, where the program reads it, and what to do about it."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .guards.twin import Failure

SHOWN = 5
"""How many of a fact's values a message names."""

#: check -> what to do about a fact that keeps changing
REMEDIES = {
    "tensor": "Mark the dimension that changes with dynacore.mark_dynamic, or compile with dynamic=True.",
    "tensors": "Mark the dimension that changes with dynacore.mark_dynamic, or compile with dynamic=True.",
    "ints": "The program decides by it: pad to fewer sizes, or decide inside the graph, by torch.where on a tensor.",
    "eq": "Make the value constant, or pass what varies as a tensor.",
    "len": "Pass the items as one stacked tensor, or pad them to one length.",
    "keys": "Build the dict with the same keys in the same order.",
    "is": "Create the object once, outside of what is called again and again.",
    "func_code": "Create the function once, outside of what is called again and again.",
    "type": "Compile one function for each type, or convert the argument before the call.",
    "state": "Set torch's modes once around the loop, not in turn from call to call.",
}
RAISE_LIMIT = "Or raise dynacore.config.recompile_limit."


class Misses:
    """Those of one point, since it was last forgotten."""

    def __init__(self) -> None:
        self.all: list[Failure] = []

    def add(self, miss: Failure) -> None:
        """Remember one."""
        self.all.append(miss)

    def explain(self) -> str:
        """The fact that changed most often: its values, its line and the remedy."""
        if not self.all:
            return f"What changed isn't known. {RAISE_LIMIT}"
        paths = [miss.path for miss in self.all]
        worst = max(dict.fromkeys(paths), key=paths.count)
        misses = [miss for miss in self.all if miss.path == worst]
        last = misses[-1]
        first = [] if last.name == "ints" else [misses[0].check.removeprefix("the value ")]
        values = list(dict.fromkeys([*first, *(miss.seen for miss in misses)]))
        more = [f"and {len(values) - SHOWN} more"] if len(values) > SHOWN else []
        lines = [f"`{worst}` kept changing: {', '.join([*values[:SHOWN], *more])}"]
        if last.where is not None:
            file, line = last.where
            text = linecache.getline(file, line).strip()
            lines.append(f'it is used in File "{file}", line {line}' + (f"\n      {text}" if text else ""))
        lines.append(f"{REMEDIES.get(last.name, REMEDIES['eq'])} {RAISE_LIMIT}")
        return "\n  ".join(lines)
