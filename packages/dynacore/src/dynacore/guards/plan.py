"""From the sources of a capture to the guard tree of an entry."""

from __future__ import annotations

from typing import Any

from ..graph.state import torch_state_checks
from ..sources import Source
from ..torch_api import tensor_checker
from ..values import Host, Value
from .twin import constants_equal, evaluate


class Scalar:
    """A number that an entry assumes constant; whether it was another one at a miss."""

    __slots__ = ("chain", "expected", "steps")

    def __init__(self, source: Source, expected: Any):
        self.steps = source.steps
        self.expected = expected
        chain: tuple = (source.accessor, source.key, (), 0, ())
        node = source.parent
        while node is not None:
            chain = (node.accessor, node.key, (), -1, (chain,))
            node = node.parent
        self.chain = chain

    def varied(self, state: list[Any]) -> bool:
        """Whether the state has another number of the same type there."""
        handed, _ = evaluate(self.chain, 1, state)
        return (
            handed is not None
            and type(handed[0]) is type(self.expected)
            and not constants_equal(handed[0], self.expected)
        )


class Plan:
    """Lays out the tree: which object is handed at which index, and what is checked where."""

    def __init__(self, root: Source, handed: list[Source], relations: list[tuple], dynamic: bool = False):
        self.index = {id(source): i for i, source in enumerate(handed)}
        self.handed = list(handed)
        self.tensors: list[Any] = []
        self.kinds: dict[str, int] = {}
        self.scalars: list[Scalar] = []  # numbers assumed constant
        self.relations = self.relation_checks(relations)
        children = tuple(node for node in (self.node(child) for child in root.children.values()) if node is not None)
        checks: list[tuple] = [("call0_is", pair) for pair in torch_state_checks()]
        if self.tensors:
            checks.append(("tensors", tensor_checker(self.tensors)))
        checks += self.relations
        self.tree = ("root", None, tuple(checks), -1, children)

    def hand(self, source: Source) -> int:
        """The index of a handed object."""
        at = self.index.get(id(source))
        if at is None:
            at = self.index[id(source)] = len(self.handed)
            self.handed.append(source)
        return at

    def relation_checks(self, relations: list[tuple]) -> list[tuple]:
        """Checks on several handed objects at once, each one only once."""
        checks: dict[tuple, tuple] = {}
        for kind, a, b in relations:
            if kind in ("same", "differ"):
                mark: tuple = (kind, id(a), id(b))
                check: tuple = (kind, (self.hand(a), self.hand(b)))
            else:
                text, leaves = render(a)
                mark = (kind, text, repr(b), tuple(id(leaf) for leaf in leaves))
                check = ("rel", (condition(text, len(leaves), b), tuple(self.hand(leaf) for leaf in leaves)))
            if mark not in checks:
                checks[mark] = check
                self.kinds[kind] = self.kinds.get(kind, 0) + 1
        return list(checks.values())

    def node(self, source: Source) -> tuple | None:
        """The tuple of one source, or None when nothing below it matters."""
        children = tuple(node for node in map(self.node, source.children.values()) if node is not None)
        checks = []
        for name, argument in source.checks.values():
            self.kinds[name] = self.kinds.get(name, 0) + 1
            if name == "eq" and type(argument) in (int, float):
                self.scalars.append(Scalar(source, argument))
            if name == "tensor":
                checks.append(("tensor", len(self.tensors)))
                self.tensors.append(argument)
            else:
                checks.append((name, argument))
        handed = self.index.get(id(source), -1)
        if not children and not checks and handed < 0:
            return None
        return source.accessor, source.key, tuple(checks), handed, children


def render(value: Value) -> tuple[str, list[Source]]:
    """A host expression over the names a0, a1, … and the sources behind them."""
    leaves: list[Source] = []

    def text(v: Any) -> str:
        if type(v) is not Host:
            return repr(v.value)
        if v.source is None:
            return v.text.format(*map(text, v.operands))
        if v.source not in leaves:
            leaves.append(v.source)
        return f"a{leaves.index(v.source)}"

    return text(value), leaves


def condition(text: str, n: int, outcome: Any) -> Any:
    """A predicate that holds when the expression has the value it had."""
    arguments = ", ".join(f"a{i}" for i in range(n))
    holds = {True: text, False: f"not {text}"}[outcome] if type(outcome) is bool else f"{text} == {outcome!r}"
    return eval(f"lambda {arguments}: {holds}", {"nan": float("nan"), "inf": float("inf")})
