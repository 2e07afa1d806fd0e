"""Which facts cost a call nothing, which a look, and which a search: what `explain` and the log `guards` tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .spec import Node
from .twin import describe, step_text

HOW = ("watched", "polled", "looked up")
"""From the cheapest on: the interpreter tells of a change; a word of memory is compared; it is searched for."""


@dataclass(frozen=True)
class Covered:
    """How one fact is kept."""

    path: str
    how: str
    """One of `HOW`."""
    what: str
    """`dict`, `class` or `function` if it is watched; the kind of word that is polled; `way` or `check` otherwise."""

    def __str__(self) -> str:
        return f"{self.path}: {self.how} ({self.what})"


def paths(tree: Node) -> list[str]:
    """Each node's way in Python's notation, in the order in which the extension numbers them."""

    def below(node: Node, path: str) -> Iterator[str]:
        yield path
        for child in node[4]:
            starts = node[0] == "root"
            yield from below(child, start_text(child) if starts else step_text(path, child[0], child[1]))

    return list(below(tree, "root"))


def start_text(node: Node) -> str:
    """What a root's child starts from."""
    accessor, key = node[:2]
    if accessor == "arg":
        return f"argument {key}"
    if accessor == "weak":
        return "a weakly held object"
    if isinstance(key, dict) and isinstance(key.get("__name__"), str):
        return f"the globals of {key['__name__']}"
    return describe(key)


def covered(guards: Any) -> list[Covered]:
    """All facts below constants, as they are kept now."""
    names = paths(guards.tree)
    return [Covered(names[index], how, what) for index, how, what in guards.coverage()]


def summary(facts: Iterable[Covered]) -> str:
    """How many are kept how, in one line."""
    counts = Counter((fact.how, fact.what) for fact in facts)
    parts = []
    for how in HOW:
        kinds = [(what, n) for (kind, what), n in counts.most_common() if kind == how]
        if kinds:
            parts.append(f"{sum(n for _, n in kinds)} {how} ({', '.join(f'{n} {what}' for what, n in kinds)})")
    return ", ".join(parts)
