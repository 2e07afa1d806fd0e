"""Whether what was captured depends on which of the tensors from outside require a gradient.

Where grad mode is off, no operation records anything and no result requires a gradient, whatever its arguments do.
So what the program doesn't ask for needs no guard there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from .failures import node_name, torchs_own
from .state import SETTERS, TorchState

#: attributes of tensors that tell of it
TELLING = frozenset(("requires_grad", "is_leaf", "retains_grad", "grad_fn", "grad"))
#: operations that refuse tensors which require a gradient, in whichever mode, or that change whether they do
HEEDING = frozenset(("requires_grad_", "resize_", "resize_as_", "set_", "detach_"))


def matter(graph: Graph, before: TorchState) -> bool:
    """Whether the operations, begun in this state, depend on it."""
    return before.grad or before.casts or any(map(heeds, graph.nodes))


def heeds(node: Node) -> bool:
    """Whether the operation may look at it even where grad mode is off, or turns that on."""
    if node.op not in ("call_function", "call_method") or node.target is getattr:
        return False
    name = node_name(node)
    if name == "scaled_dot_product_attention":  # which kernel it is depends on the mask
        return any(map(may_require_grad, (*node.args[3:4], node.kwargs.get("attn_mask"))))
    if name in HEEDING or node.target in SETTERS:
        return True
    return node.op == "call_function" and not torchs_own(node.target)


def may_require_grad(argument: Any) -> bool:
    """Whether a tensor of its type can."""
    example = argument.meta.get("example_value") if isinstance(argument, Node) else None
    return argument is not None and not (isinstance(example, torch.Tensor) and example.dtype is torch.bool)
