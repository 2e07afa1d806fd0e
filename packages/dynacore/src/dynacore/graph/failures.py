"""What becomes of a call when its graph raises.

Plain Python would have raised at one operation: handlers and `with` blocks around it run, and what the program did
before it stays done. So the frame is run once more, from where the entry began, by the interpreter. That is right as
long as the graph left nothing behind: no random numbers were drawn, no tensor from outside was changed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node

from .. import logs
from ..errors import DynacoreError
from . import liveness, ops
from .state import SETTERS, TorchState

#: random operations of torch.nn.functional whose name isn't ATen's
RANDOM = ("dropout", "gumbel", "fractional", "rrelu", "multi_head_attention")


@dataclass(frozen=True)
class Failing:
    """What is known of a graph that may raise."""

    setters: frozenset  # functions that it calls to set torch's state
    changed: frozenset[Node]  # the inputs whose versions tell whether it has changed anything yet
    repeatable: bool  # whether it may run again when they tell that nothing was


@dataclass(frozen=True)
class Recovery:
    """Called by an entry whose graph raised."""

    failing: Failing
    before: TorchState  # as it was when the entry began
    again: Callable[[Any, list[Any]], Any]  # runs a state, at a start that of a call of the function, as plain Python
    data: Any  # the point's, which says where this is

    def __call__(self, error: BaseException, function: Any, state: list[Any], unchanged: bool) -> Any:
        """What the entry returns in place of its result; None: the error is raised."""
        self.before.restore(self.failing.setters)
        programs = isinstance(error, Exception) and not isinstance(error, DynacoreError)
        if not (programs and unchanged and self.failing.repeatable):
            return None
        if logs.enabled("graph_breaks"):
            what = f"a graph raised {type(error).__name__}: {error}"
            logs.emit("graph_breaks", f"{what}\n  {self.data.describe()}\n  This call goes on as plain Python.")
        return self.again(function, state)


def failing(graph: Graph, repeatable: bool) -> Failing | None:
    """What has to be prepared for the case that the graph raises; None: it can't, or nothing can be done."""
    if not can_fail(graph):
        return None
    changed = changed_inputs(graph) if repeatable else None
    setters = frozenset(node.target for node in graph.nodes if is_setter(node))
    return Failing(setters, frozenset(changed or ()), changed is not None) if setters or changed is not None else None


def can_fail(graph: Graph) -> bool:
    """Whether an operation of the graph may raise when it runs."""
    return any(not is_setter(node) and not liveness.removable(node) for node in graph.nodes)


def is_setter(node: Node) -> bool:
    """Whether the operation sets torch's state."""
    return node.op == "call_function" and node.target in SETTERS


def changed_inputs(graph: Graph) -> list[Node] | None:
    """The inputs whose versions tell whether the graph has changed anything yet; None: it can't be told."""
    found: dict[Node, None] = {}
    for node in graph.nodes:
        if is_setter(node) or liveness.removable(node):
            continue
        if not repeatable(node):
            return None
        if node.meta.get("mutates"):
            for argument in node.all_input_nodes:
                root = root_of(argument)
                if root is None:
                    return None
                if root.op == "placeholder":
                    found[root] = None
    return list(found)


def root_of(node: Node) -> Node | None:
    """What `node` may be a view of; None: a tensor whose versions don't tell of the view's changes."""
    while node.op != "placeholder" and node.all_input_nodes:
        name = node_name(node)
        if name in ("detach", "data") or node.target is getattr and "data" in node.args:
            return None
        if not (ops.is_view_op(name) or node.target in (operator.getitem, getattr) or name == "__getitem__"):
            return node
        node = node.all_input_nodes[0]
    example = node.meta.get("example_value")
    return None if isinstance(example, torch.Tensor) and example.is_inference() else node


def repeatable(node: Node) -> bool:
    """Whether the operation, run twice, does the same as run once, but for tensors that it changes."""
    name = node_name(node)
    if torch.Tag.nondeterministic_seeded in ops.overload_tags(name.strip("_")) or any(part in name for part in RANDOM):
        return node.kwargs.get("training") is False and "dropout" in name or always_given(node, name)
    return node.op == "call_method" or torchs_own(node.target)


def always_given(node: Node, name: str) -> bool:
    """Whether attention is computed without dropout."""
    return name == "scaled_dot_product_attention" and len(node.args) < 5 and not node.kwargs.get("dropout_p")


def torchs_own(function: Any) -> bool:
    """Whether the function is one of torch's: what others wrote may have effects of its own."""
    if type(function) in ops.OPERATOR_TYPES:
        return str(function).startswith("aten")
    return str(getattr(function, "__module__", "")).partition(".")[0] in ("torch", "_operator", "None")


def node_name(node: Node) -> str:
    return node.target if isinstance(node.target, str) else ops.name_of(node.target)


def versions(*tensors: torch.Tensor) -> list[int]:
    """How often each tensor was changed in place."""
    return [tensor._version for tensor in tensors]
