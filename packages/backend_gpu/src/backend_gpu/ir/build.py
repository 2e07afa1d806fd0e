"""Makes nodes: equal nodes are one node, views of views are one view, and what changes nothing is left out."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import torch

from .index import Index, bounds, is_below, substitute
from .nodes import Guard, Node, Shape, dim_values, dims, freeze
from .pointwise import result_dtype

MAX_INLINE_GUARDS = 4
EMPTY = {"sum": 0, "prod": 1, "squares": 0, "max": 0, "min": 1}
"""What reductions of no elements give; of extremes only those of flags get here."""


class Builder:
    """Makes the nodes of one graph. `name` and `where` are given to the nodes made next."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.name = "t"
        self.where = ""
        self._known: dict[Any, Node] = {}
        self._taken: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """A name for a node, close to `name`."""
        name = re.sub(r"\W", "_", name) or "t"
        count = self._taken.get(name)
        self._taken[name] = (count or 0) + 1
        return name if count is None else self.unique(f"{name}_{count}")

    def node(self, op: str, inputs: Sequence[Node], shape: Sequence[Index], dtype: torch.dtype, **attrs: Any) -> Node:
        """A node, or the equal one that was made before. Each `input`, `extern` and `scatter` is made anew."""
        if op in ("input", "extern", "scatter"):
            return Node(op, tuple(inputs), tuple(shape), dtype, attrs, self.unique(self.name), self.where)
        if 0 in tuple(shape) and op not in ("const", "item", "layout"):
            return self.const(0, dtype, shape)  # nothing to compute, and sizes of 0 divide nothing
        key = (op, tuple(map(id, inputs)), tuple(shape), dtype, freeze(attrs))
        found = self._known.get(key)
        if found is None:
            found = Node(op, tuple(inputs), tuple(shape), dtype, attrs, self.unique(self.name), self.where)
            self._known[key] = found
        return found

    def const(self, value: bool | int | float, dtype: torch.dtype, shape: Sequence[Index] = ()) -> Node:
        """One number everywhere. For half types it keeps the precision it was given with."""
        if dtype == torch.bool:
            value = bool(value)
        elif dtype.is_floating_point:
            value = float(value)
        elif not math.isfinite(value):
            value = 0  # what such a cast gives is undefined; it has to be an integer
        else:
            value = int(value)
        return self.node("const", (), shape, dtype, value=value)

    def index(self, expr: Index, shape: Sequence[Index], dtype: torch.dtype = torch.int64) -> Node:
        """An expression of the element's own indices."""
        if isinstance(expr, int):
            return self.const(expr, dtype, shape)
        node = self.node("index", (), shape, torch.int64, expr=expr)
        return self.cast(node, dtype)

    def view(
        self, source: Node, shape: Sequence[Index], index: Sequence[Index], guards: Sequence[Guard] = (), fill: Any = 0
    ) -> Node:
        """The tensor of `shape` whose elements are those of `source` at `index`, an index in `i0, i1, …`."""
        shape, index, guards = tuple(shape), tuple(index), tuple(g for g in guards if not always(g))
        if source.op == "const" and not guards:
            return self.const(source.attrs["value"], source.dtype, shape)
        if guards and fill is not None:
            # ATen gives a float for tensors of any dtype.
            fill = float(fill) if source.dtype.is_floating_point else int(fill)
        if not guards and shape == source.shape and index == dims(shape):
            return source
        if source.op in ("view", "gather") and (merged := self._merge(source, shape, index, guards, fill)) is not None:
            return merged
        if source.op == "index" and not guards:
            expr = substitute(source.attrs["expr"], dim_values(source.shape, index))
            return self.index(expr, shape)
        return self.node("view", (source,), shape, source.dtype, index=index, guards=guards, fill=fill if guards else 0)

    def _merge(
        self, inner: Node, shape: Shape, index: tuple[Index, ...], guards: tuple[Guard, ...], fill: Any
    ) -> Node | None:
        if inner.op == "gather" and (guards or len(inner.inputs) > 1):
            return None
        old = inner.attrs.get("guards", ())
        if guards and old and freeze(fill) != freeze(inner.attrs["fill"]) or len(guards) + len(old) > MAX_INLINE_GUARDS:
            return None
        if guards and old:
            return None  # the outer guard bounds the index that the inner one is written in
        values = dim_values(inner.shape, index)
        composed = tuple(substitute(part, values) for part in inner.attrs["index"])
        kept = tuple((substitute(e, values), substitute(a, values), substitute(b, values)) for e, a, b in old)
        return self.view(inner.inputs[0], shape, composed, guards or kept, fill if guards else inner.attrs["fill"])

    def pointwise(self, name: str, *inputs: Node) -> Node:
        """A pointwise operation of operands that have one shape and the dtypes that it expects."""
        dtype = result_dtype(name, tuple(source.dtype for source in inputs))
        return self.node(name, inputs, inputs[0].shape, dtype)

    def cast(self, source: Node, dtype: torch.dtype) -> Node:
        """The values in another dtype, as `Tensor.to` gives them."""
        if source.dtype == dtype:
            return source
        if source.op == "const" and not (source.dtype.is_floating_point and dtype.is_floating_point):
            value = source.attrs["value"]
            if dtype == torch.bool or math.isfinite(value) and (not isinstance(value, float) or abs(value) < 2**31):
                return self.const(value, dtype, source.shape)
        return self.node("cast", (source,), source.shape, dtype)

    def expand(self, source: Node, shape: Sequence[Index]) -> Node:
        """Broadcast to a shape."""
        shape = tuple(shape)
        if source.shape == shape:
            return source
        own = dims(shape)[len(shape) - len(source.shape) :]
        index = [0 if size == 1 else i for size, i in zip(source.shape, own)]
        return self.view(source, shape, index)

    def reduce(self, kind: str, source: Node, axes: Sequence[int], keepdim: bool = False) -> Node:
        """A reduction over `axes`; of none it is the source. Flags are reduced as the numbers 0 and 1."""
        axes = tuple(sorted(axes))
        if source.dtype == torch.bool and axes:
            found = self.reduce(kind, self.cast(source, torch.int32), axes, keepdim)
            return found if kind in ("argmax", "argmin") else self.cast(found, torch.bool)
        kept = [size for d, size in enumerate(source.shape) if d not in axes]
        dtype = torch.int64 if kind in ("argmax", "argmin") else source.dtype
        if any(source.shape[axis] == 0 for axis in axes):
            made = self.const(EMPTY[kind], dtype, kept)
        elif axes:
            made = self.node("reduce", (source,), kept, dtype, kind=kind, dims=axes)
        else:
            made = source if kind != "squares" else self.pointwise("sub", source, source)  # NaN stays NaN
        if not keepdim:
            return made
        shape = tuple(1 if d in axes else size for d, size in enumerate(source.shape))
        return self.view(made, shape, [i for d, i in enumerate(dims(shape)) if d not in axes])

    def size_of(self, value: Index, dtype: torch.dtype, shape: Sequence[Index] = ()) -> Node:
        """A size as a tensor of numbers."""
        return self.index(value, shape, dtype)


def always(guard: Guard) -> bool:
    """Whether a guard holds for every index."""
    expr, low, high = guard
    return isinstance(low, int) and bounds(expr)[0] >= low and is_below(expr - low, high - low)
