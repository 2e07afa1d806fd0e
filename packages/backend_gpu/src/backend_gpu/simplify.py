"""Rewrites of a tensor graph that keep its values: what does nothing is left out, numbers are computed beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from .ir.nodes import Graph, Node, topological
from .ir.pointwise import HALVES

Rule = Callable[[Node], Node | None]


def simplify(graph: Graph) -> None:
    """Rewrite a graph in place until no rule applies."""
    replaced: dict[Node, Node] = {}

    def current(node: Node) -> Node:
        while node in replaced:
            node = replaced[node]
        return node

    for node in topological(graph.roots()):
        if any(source in replaced for source in node.inputs):
            node.inputs = tuple(map(current, node.inputs))
        for _ in range(8):
            found = _rewrite(node)
            if found is None:
                break
            replaced[node] = found
            if node.strides is not None and found.strides is None and found.op not in ("view", "input", "const"):
                found.strides = node.strides
            node = found
    graph.outputs = [current(value) if isinstance(value, Node) else value for value in graph.outputs]
    graph.mutations = [(target, current(value)) for target, value in graph.mutations]


def _rewrite(node: Node) -> Node | None:
    for rule in RULES.get(node.op, ()):
        found = rule(node)
        if found is not None and found is not node:
            return found
    return None


def _constant(node: Node) -> float | None:
    return node.attrs["value"] if node.op == "const" else None


def _number(node: Node, value: float) -> Node:
    return Node("const", (), node.shape, node.dtype, {"value": value}, node.name, node.where)


def _neutral(position: int, value: float) -> Rule:
    """Drop an operand that changes nothing."""

    def rule(node: Node) -> Node | None:
        if _constant(node.inputs[position]) == value and node.dtype != torch.bool:
            if value == 0 and node.dtype.is_floating_point and node.op == "add":
                return None  # -0.0 + 0.0 is 0.0
            return node.inputs[1 - position]
        return None

    return rule


def _fold(function: Callable[[float, float], float]) -> Rule:
    """Compute an operation of two numbers; in half types only where that is exact in any case."""

    def rule(node: Node) -> Node | None:
        left, right = map(_constant, node.inputs)
        if left is None or right is None or node.dtype in HALVES or node.dtype == torch.float32:
            return None
        result = function(left, right)
        if not node.dtype.is_floating_point and not -(2**31) < result < 2**31:
            return None
        return _number(node, float(result) if node.dtype.is_floating_point else int(result))

    return rule


def _double_cast(node: Node) -> Node | None:
    """A cast of a cast that lost nothing is one cast."""
    source = node.inputs[0]
    if source.op != "cast":
        return None
    first = source.inputs[0]
    if not _keeps(first.dtype, source.dtype):
        return None
    if first.dtype == node.dtype:
        return first
    return Node("cast", (first,), node.shape, node.dtype, {}, node.name, node.where)


def _keeps(narrow: torch.dtype, wide: torch.dtype) -> bool:
    """Whether every value of one dtype is a value of the other."""
    if narrow == torch.bool or narrow == wide:
        return True
    if wide == torch.bool:
        return False
    if narrow.is_floating_point:
        return wide.is_floating_point and wide.itemsize > narrow.itemsize
    if wide.is_floating_point:
        return torch.iinfo(narrow).bits <= {8: 52, 4: 24, 2: 8}[wide.itemsize] // (1 if wide != torch.bfloat16 else 2)
    a, b = torch.iinfo(narrow), torch.iinfo(wide)
    return a.min >= b.min and a.max <= b.max


def _same_choice(node: Node) -> Node | None:
    condition, yes, no = node.inputs
    if yes is no:
        return yes
    value = _constant(condition)
    return None if value is None else yes if value else no


RULES: dict[str, tuple[Rule, ...]] = {
    "add": (_neutral(0, 0), _neutral(1, 0), _fold(lambda a, b: a + b)),
    "sub": (_fold(lambda a, b: a - b), lambda n: n.inputs[0] if _constant(n.inputs[1]) == 0
            and math.copysign(1, _constant(n.inputs[1]) or 0.0) > 0 else None),
    "mul": (_neutral(0, 1), _neutral(1, 1), _fold(lambda a, b: a * b)),
    "div": (lambda n: n.inputs[0] if _constant(n.inputs[1]) == 1 else None,),
    "cast": (_double_cast,),
    "where": (_same_choice,),
}  # fmt: skip
