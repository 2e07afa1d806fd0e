"""Which tensors lie in memory, with which strides, and what has to be put there for ATen and for the caller."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..ir.build import Builder
from ..ir.index import (
    Index,
    Var,
    add,
    coefficient,
    contiguous_strides,
    mul,
    substitute,
    total,
    unflatten,
    variables,
)  # fmt: skip
from ..ir.nodes import Node, Shape, dims

IN_MEMORY = ("input", "item", "layout", "scatter")
"""Nodes that have a buffer of their own, whatever the schedule."""


def strided(node: Node) -> tuple[Node, Shape, Index] | None:
    """The buffer, strides and offset (in elements) through which ATen can read a node without a copy, if it can."""
    if node.op in IN_MEMORY:
        return node, node.layout(), 0
    if node.op != "view" or node.attrs["guards"]:
        return None
    if "over" in node.attrs:
        return node.inputs[0], *node.attrs["over"]
    inner = strided(node.inputs[0])
    if inner is None:
        return None
    base, steps, offset = inner
    position = add(offset, total(mul(part, step) for part, step in zip(node.attrs["index"], steps)))
    strides: list[Index] = []
    for d, size in enumerate(node.shape):
        factor = coefficient(position, Var(f"i{d}", size))
        if factor is None:
            return None
        strides.append(factor)
    start = substitute(position, {Var(f"i{d}", size): 0 for d, size in enumerate(node.shape)})
    if any(v.name.startswith("i") for part in (start, *strides) for v in variables(part)):
        return None
    if any(isinstance(step, int) and step < 0 for step in strides):
        return None
    return base, tuple(strides), start


def same_strides(shape: Sequence[Index], left: Sequence[Index], right: Sequence[Index]) -> bool:
    """Whether strides address the same elements: those of dimensions of one element don't count."""
    return 0 in tuple(shape) or all(size == 1 or a == b for size, a, b in zip(shape, left, right))


def dense_order(shape: Shape, strides: Shape) -> list[int] | None:
    """The dimensions from the outermost in memory on, if the strides are those of a permuted contiguous tensor."""
    wanted: Index = 1
    order: list[int] = []
    left = [d for d, size in enumerate(shape) if size != 1]
    while left:
        found = next((d for d in left if strides[d] == wanted), None)
        if found is None:
            return None
        left.remove(found)
        order.insert(0, found)
        wanted = mul(wanted, shape[found])
    return [*(d for d, size in enumerate(shape) if size == 1), *order]


def is_dense(shape: Shape, strides: Shape) -> bool:
    """Whether the strides are those of a permutation of a contiguous tensor."""
    return dense_order(shape, strides) is not None


def at_position(shape: Shape, strides: Shape, over: Shape, steps: Shape, offset: Index) -> list[Index]:
    """Where in a dense tensor the elements lie that a tensor of shape `over` reads from its memory by `steps`."""
    order = dense_order(shape, strides) or []
    position = total([offset, *(mul(i, step) for i, step in zip(dims(over), steps))])
    found = unflatten(position, tuple(shape[d] for d in order))
    return [found[order.index(d)] for d in range(len(shape))]


def place(b: Builder, node: Node, strides: Shape | None = None, alias: bool = True, copy: int = 0) -> Node:
    """A node that lies in memory with these strides and holds the same values.

    Where `alias` is allowed that may be the node itself, or a view of another's memory.
    """
    if strides is None or not is_dense(node.shape, strides):
        exact = None if strides is None else strides
        strides = contiguous_strides(node.shape)
    else:
        exact = strides
    if alias:
        found = _as_it_is(b, node, exact)
        if found is not None:
            return found
    return b.node("layout", (node,), node.shape, node.dtype, strides=strides, copy=copy)


def _as_it_is(b: Builder, node: Node, strides: Shape | None) -> Node | None:
    found = strided(node)
    if found is not None:
        return node if strides is None or same_strides(node.shape, found[1], strides) else None
    if node.op != "view" or node.attrs["guards"]:
        return None
    source = node.inputs[0]
    if not isinstance(source.numel, int) or not isinstance(node.numel, int) or source.numel > node.numel:
        return None
    base = b.node(
        "layout", (source,), source.shape, source.dtype,
        strides=source.strides if source.strides is not None else contiguous_strides(source.shape), copy=0,
    )  # fmt: skip
    over = b.view(base, node.shape, node.attrs["index"])
    found = strided(over)
    if found is not None and (strides is None or same_strides(node.shape, found[1], strides)):
        return over
    return None


def fake_strides(value: torch.Tensor) -> Sequence[object]:
    """The strides torch expects, or nothing for layouts without strides."""
    return value.stride() if value.layout == torch.strided else ()
