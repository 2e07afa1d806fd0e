"""The table from ATen operations to the functions that lower them, and what these functions share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..ir.build import Builder
from ..ir.index import Expr, Index
from ..ir.nodes import COMPUTED, Node

aten = torch.ops.aten
prims = torch.ops.prims

Lowering = Callable[..., Any]
LOWERINGS: dict[Any, Lowering] = {}


class NotLowered(Exception):
    """This use of an operation has no lowering: it goes to ATen."""


class Lower(Builder, ABC):
    """A builder that knows what the operation being lowered is expected to return: `val`, torch's fake result."""

    val: Any = None
    fake_arguments: tuple[Any, ...] = ()
    joined: dict[Node, tuple[int, list[Node]]]
    """What was joined along a dimension, and of which pieces."""
    copies = 0
    """How many copies were made that must not be shared."""

    @abstractmethod
    def to_index(self, value: Any) -> Index:
        """A size of torch's as an index; the driver knows the symbols."""

    def out_shape(self, position: int | None = None) -> tuple[Index, ...]:
        """The shape of the result, or of one of several results."""
        val = self.val if position is None else self.val[position]
        return tuple(self.to_index(size) for size in val.shape)

    @property
    def out_dtype(self) -> torch.dtype:
        """The dtype of the result."""
        return self.val.dtype if isinstance(self.val, torch.Tensor) else self.val[0].dtype

    def operand(self, value: Any, dtype: torch.dtype, shape: Sequence[Index] | None = None) -> Node:
        """A tensor, number or size, in this dtype and of this shape."""
        shape = self.out_shape() if shape is None else tuple(shape)
        if isinstance(value, Node):
            return self.expand(self.cast(value, dtype), shape)
        if isinstance(value, Expr):
            return self.index(value, shape, dtype)
        return self.const(value, dtype, shape)

    def common_dtype(self, *values: Any) -> torch.dtype:
        """What eager promotes these operands to, given as torch saw them."""
        result: Any = None
        for value in values:
            if value is None:
                continue
            probe = _probe(value)
            result = probe if result is None else torch.empty(
                (1,) * max(_ndim(result), _ndim(probe)), dtype=torch.result_type(result, probe), device="meta"
            )
        return result.dtype if isinstance(result, torch.Tensor) else torch.result_type(result, result)


def _ndim(value: Any) -> int:
    return value.ndim if isinstance(value, torch.Tensor) else 0


def _probe(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty((1,) * value.ndim, dtype=value.dtype, device="meta")
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        return 1 if isinstance(value, torch.SymInt) else 1.0
    return value


def lowers(*operations: Any) -> Callable[[Lowering], Lowering]:
    """Register a lowering for operations, by overload or for all overloads of a packet."""

    def register(function: Lowering) -> Lowering:
        for operation in operations:
            overloads = [operation]
            if hasattr(operation, "overloads"):
                overloads = [getattr(operation, name) for name in operation.overloads()]
            for overload in overloads:
                LOWERINGS[overload] = function
        return function

    return register


def named(name: str, namespace: Any = aten) -> list[Any]:
    """The overloads of an operation that a torch may not have, without the `out` ones."""
    packet = getattr(namespace, name, None)
    if packet is None:
        return []
    return [getattr(packet, overload) for overload in packet.overloads() if "out" not in overload]


def normal_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """Axes as non-negative numbers; None and, as in ATen, an empty list mean all."""
    if axes is None or (isinstance(axes, (list, tuple)) and not axes):
        return tuple(range(ndim))
    if isinstance(axes, int):
        axes = [axes]
    return tuple(sorted({axis % ndim if ndim else 0 for axis in axes})) if ndim else ()


def computed(*nodes: Any) -> None:
    """Raise `NotLowered` where kernels don't compute with a dtype."""
    for node in nodes:
        if isinstance(node, Node) and node.dtype not in COMPUTED:
            raise NotLowered(f"dtype {node.dtype}")
