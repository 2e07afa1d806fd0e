"""A graph of tensors: what `lower` makes, `simplify` rewrites and `schedule` cuts into kernels.

Every node is one tensor. Shapes are explicit: pointwise nodes have inputs of their own shape and dtype, and what eager
does implicitly (broadcasting, promotion, negative indices) has been spelled out by `lower`. The operations:

    input     a tensor that the program gets; attrs: strides
    const     one number everywhere; attrs: value
    index     an integer expression of the element's own indices i0, i1, …; attrs: expr
    view      another node's element; attrs: index (of the source, in i0, …), guards, fill
    gather    as view, where the index also holds j0, j1, …: the values of the further inputs
    <name>    a pointwise operation, a row of `pointwise.TABLE`
    reduce    attrs: kind, dims
    scan      a running sum or product along a dimension; attrs: kind, dims
    scatter   a copy of the first input into which the second is written or added; attrs: index (in i0, …, j0, …), kind
    layout    the same values, put into memory; attrs: strides, and into where an input is overwritten
    extern    an ATen operation; attrs: target, args, kwargs, outs. Its tensors are `item` nodes
    item      one tensor of an extern node; attrs: which, strides

A guard is `(expr, low, high)`: the source is read where `low <= expr < high` for all guards. Elsewhere the value is
`fill`, or anything at all where that is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from .index import Expr, Index, Var, contiguous_strides, product, var

Guard = tuple[Index, Index, Index]
Shape = tuple[Index, ...]

SHORT = {
    torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.bool: "bool",
    torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8",
    torch.complex64: "c64", torch.complex128: "c128",
}  # fmt: skip
MAX_PERSISTENT = 16384
"""The longest row that one program keeps whole."""
COMPUTED = frozenset(SHORT) - {torch.complex64, torch.complex128}
"""The dtypes that kernels compute with; tensors of others go through ATen."""


@dataclass(frozen=True)
class Ref:
    """The place of an input among the arguments of an extern node."""

    position: int


@dataclass(frozen=True)
class Place:
    """Where the number behind a symbolic size is found: an input shows it (`what` of it), or it's a formula of others.
    """

    input: int = -1
    what: str = ""
    formula: str = ""


@dataclass(eq=False, slots=True)
class Node:
    """One tensor. Two nodes are equal only if they are the same object."""

    op: str
    inputs: tuple[Node, ...]
    shape: Shape
    dtype: torch.dtype
    attrs: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    where: str = ""
    """File and line of the user's program."""
    strides: Shape | None = None
    """The strides that eager would give it, in elements, where they are known to matter."""

    @property
    def numel(self) -> Index:
        return product(self.shape)

    def layout(self) -> Shape:
        """The strides of its buffer, in elements."""
        if "strides" in self.attrs:
            return self.attrs["strides"]
        return self.strides if self.strides is not None else contiguous_strides(self.shape)

    def text(self) -> str:
        """One line of the graph's printed form."""
        shape = ", ".join(map(str, self.shape))
        arguments = [node.name for node in self.inputs]
        arguments += [f"{key}={_attr_text(value)}" for key, value in self.attrs.items() if value not in ((), None)]
        line = f"{self.name}: {SHORT.get(self.dtype, self.dtype)}[{shape}] = {self.op}({', '.join(arguments)})"
        return f"{line}  # {self.where}" if self.where else line


def _attr_text(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_attr_text, value))}]"
    if isinstance(value, Ref):
        return f"${value.position}"
    return str(value)


@dataclass(eq=False)
class Graph:
    """A graph: its inputs in order, what it returns, and which inputs it overwrites with what at its end."""

    inputs: list[Node | Index]
    outputs: list[Any]
    """Nodes, indices, and constants that are returned as they are."""
    mutations: list[tuple[Node, Node]] = field(default_factory=list)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    sizes: dict[str, Place] = field(default_factory=dict)
    """Where the number behind each symbolic size is found."""
    strides: dict[int, Shape] = field(default_factory=dict)
    """The strides of outputs, by position: those of dimensions of one element address nothing, but callers see them."""

    def roots(self) -> list[Node]:
        """The nodes that have to be computed."""
        return [node for node in self.outputs if isinstance(node, Node)] + [value for _, value in self.mutations]

    def nodes(self) -> list[Node]:
        """Every node that is needed, inputs of a node before it."""
        placed = [node for node in self.inputs if isinstance(node, Node)]
        return topological([*placed, *self.roots()])

    def __str__(self) -> str:
        lines = [node.text() for node in self.nodes()]
        lines += [f"overwrite {target.name} with {value.name}" for target, value in self.mutations]
        outputs = ", ".join(value.name if isinstance(value, Node) else str(value) for value in self.outputs)
        return "\n".join([*lines, f"return {outputs}"])


def topological(roots: Iterable[Node]) -> list[Node]:
    """All nodes behind the roots, inputs first. No recursion: chains may be long."""
    done: dict[Node, None] = {}
    for root in roots:
        stack: list[tuple[Node, Iterator[Node]]] = []
        if root not in done:
            stack.append((root, iter(root.inputs)))
        while stack:
            node, rest = stack[-1]
            for source in rest:
                if source not in done:
                    stack.append((source, iter(source.inputs)))
                    break
            else:
                done[node] = None
                stack.pop()
    return list(done)


def users(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """Who reads each node."""
    found: dict[Node, list[Node]] = {}
    for node in nodes:
        found.setdefault(node, [])
        for source in dict.fromkeys(node.inputs):
            found.setdefault(source, []).append(node)
    return found


def dims(shape: Sequence[Index]) -> tuple[Expr, ...]:
    """The variables i0, i1, … of a shape."""
    return tuple(var(f"i{position}", size) for position, size in enumerate(shape))


def dim_values(shape: Sequence[Index], values: Sequence[Index]) -> dict[Any, Index]:
    """What to substitute for i0, i1, … of a shape."""
    return {Var(f"i{position}", size): value for position, (size, value) in enumerate(zip(shape, values))}


def gathered(position: int, size: Index) -> Expr:
    """The variable j0, j1, …: a value of a further input of a gather, known to be below `size`."""
    return var(f"j{position}", size)


def freeze(value: Any) -> Any:
    """A hashable form of an attribute, in which 1, 1.0 and True differ, as do 0.0 and -0.0."""
    if isinstance(value, (list, tuple)):
        return tuple(map(freeze, value))
    if isinstance(value, Mapping):
        return tuple((key, freeze(item)) for key, item in value.items())
    if isinstance(value, (bool, int, float, complex)):
        return type(value), repr(value)
    return value
