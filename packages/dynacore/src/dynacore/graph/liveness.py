"""Dead operations: only those go whose absence can't be noticed."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from . import ops

#: operations that make a tensor out of nothing
FACTORIES = frozenset("zeros ones full arange zeros_like ones_like full_like new_zeros new_ones".split())


def remove_dead(graph: Graph) -> None:
    """Erase operations and inputs without users that have no effect, draw no random numbers and can't fail."""
    for node in reversed(list(graph.nodes)):
        if not node.users and removable(node):
            graph.erase_node(node)


def removable(node: Node) -> bool:
    """Whether nothing but the node's result depends on it."""
    if node.op == "placeholder":
        return True
    if node.op == "output" or node.meta.get("mutates"):
        return False
    if node.target is operator.getitem:
        # Indices inside of a tensor or a list may be out of range, which only the run finds.
        return not any(isinstance(index, (Node, list, tuple)) for index in index_parts(node.args[1]))
    if node.target is getattr:
        return True
    name = node.target if isinstance(node.target, str) else ops.name_of(node.target)
    if name in FACTORIES or name == "size" or ops.is_view_op(name):
        return True
    tags = ops.overload_tags(name.strip("_"))
    result = node.meta.get("example_value")
    # Integer arithmetic may divide by zero.
    return torch.Tag.pointwise in tags and torch.Tag.nondeterministic_seeded not in tags and is_float(result)


def index_parts(index: Any) -> tuple:
    """The parts of an index."""
    return index if isinstance(index, tuple) else (index,)


def is_float(result: Any) -> bool:
    """Whether the operation gives one floating point tensor."""
    return isinstance(result, torch.Tensor) and result.dtype.is_floating_point
