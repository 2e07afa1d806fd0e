"""The loops that a kernel runs over, and where in them the elements of a tensor are."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.index import Expr, Index, flatten, product, unflatten, var
from ..ir.nodes import Node, Shape


@dataclass(frozen=True)
class Domain:
    """Rows `x` and positions `r` along a row of a tensor of `shape`; `axes` are the dimensions that a row runs over."""

    shape: Shape
    axes: tuple[int, ...] = ()

    @property
    def kept(self) -> Shape:
        return tuple(size for d, size in enumerate(self.shape) if d not in self.axes)

    @property
    def reduced(self) -> Shape:
        return tuple(self.shape[d] for d in self.axes)

    @property
    def x(self) -> Index:
        return product(self.kept)

    @property
    def r(self) -> Index:
        return product(self.reduced)

    @property
    def x_var(self) -> Index:
        return var("x", self.x) if self.x != 1 else 0

    @property
    def r_var(self) -> Index:
        return var("r", self.r) if self.r != 1 else 0

    def element(self) -> tuple[Index, ...]:
        """The index of element (x, r) in a tensor of `shape`."""
        kept = list(unflatten(self.x_var, self.kept))
        along = list(unflatten(self.r_var, self.reduced))
        return tuple(along.pop(0) if d in self.axes else kept.pop(0) for d in range(len(self.shape)))

    def full(self, shape: Shape) -> tuple[Index, ...]:
        """The index of element (x, r) in a tensor of another shape with as many elements."""
        if shape == self.shape:
            return self.element()
        return unflatten(flatten(self.element(), self.shape), shape)

    def row(self, shape: Shape) -> tuple[Index, ...]:
        """The index of row x in a tensor with one element a row."""
        return unflatten(self.x_var, shape)


def domain_of(node: Node) -> Domain:
    """The loops that compute one node by itself."""
    if node.op in ("reduce", "scan"):
        return Domain(node.inputs[0].shape, node.attrs["dims"])
    if node.op == "scatter":
        return Domain(node.inputs[1].shape)
    return Domain(node.shape)


def is_number(value: Index) -> bool:
    """Whether an index is known."""
    return not isinstance(value, Expr)
