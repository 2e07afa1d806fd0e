"""Long reductions with few rows become two: pieces of rows, reduced by many programs, and what joins the pieces.

Which ones is a matter of size (`RULES`). The pieces are joined in a fixed order, so a result is the same every time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from .ir.build import Builder
from .ir.index import Index, contiguous_strides, product, total, unflatten
from .ir.nodes import Graph, Guard, Node, dims, gathered, topological


@dataclass(frozen=True)
class Rule:
    """Rows are cut where fewer than `programs_below` programs (each takes `rows` of them) would reduce at least
    `length_from` elements each; pieces have `shortest` to `longest` elements."""

    rows: int
    programs_below: int
    length_from: int
    shortest: int
    longest: int


RULES = {"along": Rule(1, 256, 1 << 16, 4096, 16384), "across": Rule(32, 256, 4096, 256, 4096)}
"""Along: the elements of a row lie side by side. Across: those of neighbouring rows do, as in a sum over a batch."""
TRIED = {"along": Rule(1, 1024, 1 << 14, 4096, 16384), "across": Rule(32, 1024, 1024, 256, 4096)}
"""Where cutting is worth a measurement."""
PROGRAMS = 1024
"""About how many programs a device is kept busy with."""
IN_ONE_KERNEL = ("sum", "max", "min")
"""Reductions of everything to one number that the schedule spreads over programs without a second kernel."""


def few_long_rows(rows: int, length: int, rule: Rule) -> bool:
    """Whether rows are to be cut."""
    return -(-rows // rule.rows) < rule.programs_below and length >= rule.length_from


@dataclass(frozen=True)
class Pieces:
    """How the rows of a tensor are cut: `count` pieces of `length` elements, the last one maybe shorter.

    `shape` is that of the tensor with its rows in pieces: the kept dimensions, the number of pieces, and what is along
    a piece. `index` is where in the tensor each element is, under `guards`.
    """

    count: int
    length: int
    shape: tuple[Index, ...]
    index: tuple[Index, ...]
    guards: tuple[Guard, ...]


def cut(shape: Sequence[Index], axes: Sequence[int], rules: Mapping[str, Rule] | None = None) -> Pieces | None:
    """How to cut the rows of a tensor that is reduced over `axes`, or None where they aren't to be."""
    kept = [size for d, size in enumerate(shape) if d not in axes]
    along = [shape[d] for d in axes]
    rows, length = product(kept), product(along)
    if not axes or not isinstance(rows, int) or not isinstance(length, int) or not isinstance(along[0], int):
        return None
    rule = (rules or RULES)["along" if rows == 1 or len(shape) - 1 in axes else "across"]
    if rows == 0 or not few_long_rows(rows, length, rule):
        return None
    wanted = max(1, PROGRAMS * rule.rows // rows)
    goal = min(max(-(-length // wanted), rule.shortest), rule.longest)
    even = next((n for n in range(goal, min(2 * goal, length)) if length % n == 0), None)
    if even is not None:
        inner: list[Index] = [even]
        count, piece = length // even, even
    else:
        rest = length // along[0]
        step = max(1, goal // rest)
        inner = [step, *along[1:]]
        count, piece = -(-along[0] // step), step * rest
    if count < 2:
        return None
    whole = (*kept, count, *inner)
    variables = dims(whole)
    first = len(kept)
    flat = total(i * s for i, s in zip(variables[first:], contiguous_strides((count, *inner))))
    if even is not None:
        places, guards = unflatten(flat, tuple(along)), ()
    else:
        outer = variables[first] * inner[0] + variables[first + 1]
        places = (outer, *variables[first + 2 :])
        guards = ((outer, 0, along[0]),) if count * inner[0] != along[0] else ()  # type: ignore[assignment]
    row, place = iter(variables[:first]), iter(places)
    index = tuple(next(place) if d in axes else next(row) for d in range(len(shape)))
    return Pieces(count, piece, whole, index, guards)


def split(graph: Graph, rules: Mapping[str, Rule] | None = None) -> bool:
    """Rewrite a graph in place: each long reduction with few rows becomes one of pieces and one that joins them.

    Returns whether there was one.
    """
    nodes = topological(graph.roots())
    kinds: dict[tuple[Node, tuple[int, ...]], set[str]] = {}
    for node in nodes:
        if node.op == "reduce":
            kinds.setdefault((node.inputs[0], node.attrs["dims"]), set()).add(node.attrs["kind"])
    builder = Builder(graph.device)
    replaced: dict[Node, Node] = {}
    for node in nodes:
        if node.op == "reduce":
            source, axes = node.inputs[0], node.attrs["dims"]
            pieces = cut(source.shape, axes, rules)
            if pieces is not None and not (node.numel == 1 and kinds[source, axes] <= set(IN_ONE_KERNEL)):
                builder.name, builder.where = node.name, node.where
                replaced[node] = _Cut(builder, source, axes, pieces).reduced(node, replaced)
        node.inputs = tuple(replaced.get(source, source) for source in node.inputs)
    graph.outputs = [replaced.get(value, value) if isinstance(value, Node) else value for value in graph.outputs]
    graph.mutations = [(target, replaced.get(value, value)) for target, value in graph.mutations]
    return bool(replaced)


class _Cut:
    """Reductions of one tensor in pieces. Reductions that differ in kind share what they have in common."""

    def __init__(self, builder: Builder, source: Node, axes: tuple[int, ...], pieces: Pieces):
        self.b, self.source, self.axes, self.pieces = builder, source, axes, pieces
        self.kept = len(source.shape) - len(axes)
        self.parts = pieces.shape[: self.kept + 1]
        """The shape of what is known of each piece."""
        self.along = tuple(range(self.kept + 1, len(pieces.shape)))

    def reduced(self, node: Node, replaced: dict[Node, Node]) -> Node:
        """What a reduction comes to."""
        kind = node.attrs["kind"]
        value = self._shifted(node, replaced) if kind == "sum" else None
        if value is not None:
            return self._exponentials(value)
        if kind == "squares":
            return self._squares()
        if kind in ("argmax", "argmin"):
            return self._position(kind)
        return self._join(kind, self._part(kind))

    def _pieces(self, source: Node, fill: float) -> Node:
        return self.b.view(source, self.pieces.shape, self.pieces.index, self.pieces.guards, fill)

    def _part(self, kind: str) -> Node:
        """A reduction of each piece."""
        return self.b.reduce(kind, self._pieces(self.source, neutral(kind, self.source.dtype)), self.along)

    def _join(self, kind: str, parts: Node) -> Node:
        return self.b.reduce(kind, parts, (self.kept,))

    def _spread(self, value: Node, shape: tuple[Index, ...]) -> Node:
        """A value per piece, or per row, for each element of a shape that begins with those dimensions."""
        return self.b.view(value, shape, dims(shape)[: len(value.shape)])

    def _position(self, kind: str) -> Node:
        """The first place of the extreme: the piece that has it, and the place in that piece."""
        inside, values = self._part(kind), self._part(kind[3:])
        start = self.b.index(dims(self.parts)[self.kept] * self.pieces.length, self.parts)
        places = self.b.pointwise("add", inside, start)
        piece = self._join(kind, values)
        index = (*dims(self.parts)[: self.kept], gathered(0, self.pieces.count))
        return self.b.node("gather", (places, piece), piece.shape, places.dtype, index=index)

    def _squares(self) -> Node:
        """The squared distances from the mean: those from each piece's own mean, and those of the means."""
        b, dtype, parts = self.b, self.source.dtype, self.parts
        length: Index = product(self.source.shape[d] for d in self.axes)
        sums = self._part("sum")
        counts = b.const(self.pieces.length, dtype, parts)
        if self.pieces.guards:
            left = b.index(length - dims(parts)[self.kept] * self.pieces.length, parts)
            counts = b.cast(b.pointwise("minimum", left, b.const(self.pieces.length, torch.int64, parts)), dtype)
        means = b.pointwise("div", sums, counts)
        if self.pieces.guards:
            own = b.pointwise("sub", self._pieces(self.source, 0), self._spread(means, self.pieces.shape))
            own = b.pointwise("mul", own, own)
            own = b.view(own, own.shape, dims(own.shape), self.pieces.guards, 0)
            own = b.reduce("sum", own, self.along)
        else:
            own = self._part("squares")
        whole = self._join("sum", sums)
        mean = b.pointwise("div", whole, b.const(length, dtype, whole.shape))  # type: ignore[arg-type]
        apart = b.pointwise("sub", means, self._spread(mean, parts))
        apart = b.pointwise("mul", counts, b.pointwise("mul", apart, apart))
        return self._join("sum", b.pointwise("add", own, apart))

    def _shifted(self, node: Node, replaced: dict[Node, Node]) -> Node | None:
        """`v` if a sum is that of exp(v - the maximum of v), as softmax has it."""
        inner = self.source
        if inner.op != "exp" or inner.inputs[0].op != "sub":
            return None
        value, top = inner.inputs[0].inputs
        if top.op != "view" or top.attrs["guards"]:
            return None
        known = self._join("max", _Cut(self.b, value, self.axes, self.pieces)._part("max"))
        wanted = [i for d, i in enumerate(dims(value.shape)) if d not in self.axes]
        same = top.inputs[0] is known and list(top.attrs["index"]) == wanted
        return value if same else None

    def _exponentials(self, value: Node) -> Node:
        """Each piece against its own maximum; then all of them against the greatest."""
        b, dtype = self.b, value.dtype
        cut_value = _Cut(b, value, self.axes, self.pieces)
        tops = cut_value._part("max")
        lowest = b.const(float("-inf"), dtype, self.parts)
        # A piece of nothing but -inf adds nothing, instead of exp(-inf + inf).
        base = b.pointwise("where", b.pointwise("eq", tops, lowest), b.const(0, dtype, self.parts), tops)
        elements = self._pieces(value, float("-inf"))
        sums = b.pointwise("exp", b.pointwise("sub", elements, self._spread(base, self.pieces.shape)))
        sums = b.reduce("sum", sums, self.along)
        top = self._join("max", tops)
        scale = b.pointwise("exp", b.pointwise("sub", tops, self._spread(top, self.parts)))
        return self._join("sum", b.pointwise("mul", sums, scale))


def neutral(kind: str, dtype: torch.dtype) -> float:
    """What an element outside the tensor counts as."""
    if kind in ("sum", "prod"):
        return 0 if kind == "sum" else 1
    lowest = kind in ("max", "argmax")
    if dtype.is_floating_point:
        return float("-inf") if lowest else float("inf")
    if dtype == torch.bool:
        return 0 if lowest else 1
    return torch.iinfo(dtype).min if lowest else torch.iinfo(dtype).max
