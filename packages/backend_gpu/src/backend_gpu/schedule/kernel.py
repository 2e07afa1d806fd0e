"""From a set of tensors and loops over them to a loop program; `Misfit` where these tensors don't fit these loops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ..ir.index import UNBOUNDED, Index, Var, is_below, mul, of_atom, substitute, total, variables
from ..ir.loops import Loops, R, Stmt, X, value_var
from ..ir.nodes import Guard, Node, dim_values, freeze
from ..ir.pointwise import TABLE
from .domain import Domain

FULL, ROW, SCALAR, TOTAL = "full", "row", "scalar", "total"
ALONG = ("reduce", "scan")
"""Statements that need the elements of a row side by side."""
MAX_BUFFERS = 60
MAX_STMTS = 4000
IN_MEMORY = ("input", "item", "layout", "reduce", "scan", "scatter")


class Misfit(Exception):
    """These tensors can't be computed in one kernel over these loops."""


def level_of(node: Node, domain: Domain) -> str:
    """Whether a tensor has an element per (x, r), per row, or one that all rows are reduced to."""
    x, r = domain.x, domain.r
    if node.op == "reduce":
        source = node.inputs[0]
        if node.numel == x and source.numel == mul(x, r):
            return ROW
        if node.numel == 1 and source.numel == x and x != 1:
            return TOTAL
    elif node.op == "scan":
        if Domain(node.shape, node.attrs["dims"]).r == r and node.numel == mul(x, r):
            return FULL
    elif node.op == "layout":
        if node.numel == mul(x, r):
            return FULL
        if node.numel == x:
            return ROW
        if node.numel == 1:
            return SCALAR
    raise Misfit(f"{node.name} doesn't have the elements of {domain}")


class KernelBuilder:
    """Writes the loop program of one kernel. `buffers` are the tensors read and written, `stored` those that stay."""

    def __init__(self, domain: Domain, members: Iterable[Node], stored: set[Node]):
        self.domain = domain
        self.members = list(members)
        self.inside = set(self.members)
        self.stored = stored
        self.stmts: list[Stmt] = []
        self.buffers: dict[Node, None] = {}
        self.done: dict[Node, int] = {}
        self._memo: dict[Any, int] = {}
        self._equal: dict[Any, int] = {}
        self._levels = {node: level_of(node, domain) for node in self.members if node.op != "scatter"}

    def build(self, name: str) -> Loops:
        """The loop program of all members."""
        for node in self.members:
            self.member(node)
        for node in self.members:
            if node in self.stored:
                self._store(node)
        if len(self.stmts) > MAX_STMTS or len(self.buffers) > MAX_BUFFERS:
            raise Misfit("too much for one kernel")
        outputs = [node for node in self.members if node in self.stored]
        form = "pointwise" if self.domain.r == 1 and not any(s.op in ALONG for s in self.stmts) else "rows"
        places = sorted({node.where for node in self.members if node.where})
        return Loops(name, form, self.domain.x, self.domain.r, self.stmts, list(self.buffers), outputs, where=places)

    # --- members: the tensors that this kernel is for ------------------------------------------------------------

    def member(self, node: Node) -> int:
        """The statement with the value of a member at its own element."""
        if node not in self.done:
            if node.op == "scatter":
                self.done[node] = self._scatter(node)
            elif node.op == "reduce":
                self.done[node] = self._reduce(node)
            elif node.op == "scan":
                self.done[node] = self._scan(node)
            else:
                self.done[node] = self.value(node.inputs[0], self.element(node), ())
        return self.done[node]

    def element(self, node: Node) -> tuple[Index, ...]:
        """The index of the element that (x, r) computes of a member."""
        level = self._levels[node]
        if node.op == "scan":
            return Domain(node.shape, node.attrs["dims"]).element()
        if level == FULL:
            return self.domain.full(node.shape)
        if level == ROW:
            return self.domain.row(node.shape)
        return tuple(0 for _ in node.shape)

    def _reduce(self, node: Node) -> int:
        source, axes, kind = node.inputs[0], node.attrs["dims"], node.attrs["kind"]
        domain = Domain(source.shape, axes)
        if self._levels[node] == TOTAL:
            value = self.value(source, self.domain.row(source.shape), ())
            if kind not in ("sum", "max", "min", "prod") or self.stmts[value].dims & R or self.stmts[value].finish:
                raise Misfit("not a value per row, known before the end")
            return self.emit(Stmt("grid", (value,), node.dtype, 0, finish=True, attrs={"kind": kind}, node=node))
        along = domain.reduced
        flat = unflatten_pair(self.domain, domain)
        value = self.value(source, flat, ())
        stmt = self.stmts[value]
        if stmt.finish:
            raise Misfit("reduces what is known at the end only")
        attrs = {"kind": kind, "count": self.domain.r, "along": along}
        return self.emit(Stmt("reduce", (value,), node.dtype, X, stmt.stage + 1, attrs=attrs, node=node))

    def _scan(self, node: Node) -> int:
        value = self.value(node.inputs[0], self.element(node), ())
        stmt = self.stmts[value]
        if stmt.finish or self.domain.x == 1 and stmt.stage:
            raise Misfit("a scan of what is reduced first")
        return self.emit(Stmt("scan", (value,), node.dtype, X | R, attrs={"kind": node.attrs["kind"]}, node=node))

    def _scatter(self, node: Node) -> int:
        value_node = node.inputs[1]
        element = self.domain.element()
        positions = [self.value(index, element, ()) for index in node.inputs[2:]]
        value = self.value(value_node, element, ())
        values = dim_values(value_node.shape, element)
        target, guards = self._gathered(node, positions, node.inputs[0].shape, values, ())
        offset = total(mul(part, step) for part, step in zip(target, node.layout()))
        self.buffers.setdefault(node)
        attrs = {"buffer": node, "index": offset, "guards": guards, "kind": node.attrs["kind"]}
        return self.emit(Stmt("store", (value,), node.dtype, X, attrs=attrs, node=node))

    def _store(self, node: Node) -> None:
        if node.op == "scatter":
            return
        value = self.done[node]
        stmt = self.stmts[value]
        level = self._levels[node]
        dims = {FULL: X | R, ROW: X, SCALAR: 0, TOTAL: 0}[level]
        if self.domain.r == 1:
            dims &= X
        if stmt.dims & ~dims:
            raise Misfit("a value per more elements than its tensor has")
        # A number that each row has at hand is written where all rows have read what it overwrites: at the end.
        at_end = self._levels[node] == SCALAR and node.attrs.get("into") is not None and self.domain.x != 1
        if level in (SCALAR, TOTAL) and not (stmt.finish or at_end) and self.domain.x != 1:
            raise Misfit("every row would write the same")
        target = node.attrs.get("into", node)
        offset = total(mul(part, step) for part, step in zip(self.element(node), target.layout()))
        if node.attrs.get("into") is not None:
            self._check_overwrite(target, offset)
        self.buffers.setdefault(target)
        attrs = {"buffer": target, "index": offset, "guards": (), "kind": "set"}
        self.emit(Stmt("store", (value,), node.dtype, dims, stmt.stage, stmt.finish or at_end, attrs, node))

    def _check_overwrite(self, target: Node, offset: Index) -> None:
        for stmt in self.stmts:
            if stmt.op == "load" and stmt.attrs["buffer"] is target and stmt.attrs["index"] != offset:
                raise Misfit(f"{target.name} is overwritten where another element reads it")

    # --- values ---------------------------------------------------------------------------------------------------

    def emit(self, stmt: Stmt) -> int:
        """Add a statement, or find the equal one."""
        key = (stmt.op, stmt.args, stmt.dtype, freeze(stmt.attrs)) if stmt.op not in ("store", "check") else None
        if key is not None and (found := self._equal.get(key)) is not None:
            return found
        for argument in stmt.args:
            other = self.stmts[argument]
            if stmt.op not in ("reduce", "grid"):
                stmt.stage = max(stmt.stage, other.stage)
                stmt.finish |= other.finish
                stmt.dims |= other.dims
        self.stmts.append(stmt)
        if key is not None:
            self._equal[key] = len(self.stmts) - 1
        return len(self.stmts) - 1

    def value(self, node: Node, index: tuple[Index, ...], guards: tuple[Guard, ...]) -> int:
        """The statement with the value of `node` at `index`; only to be relied on where the guards hold."""
        key = (id(node), index, guards)
        if (found := self._memo.get(key)) is None:
            found = self._memo[key] = self._value(node, index, guards)
        return found

    def _value(self, node: Node, index: tuple[Index, ...], guards: tuple[Guard, ...]) -> int:
        if node in self.inside:
            return self.member(node) if index == self.element(node) else self._elsewhere(node, index, guards)
        if node.op in IN_MEMORY:
            return self._load(node, index, guards, 0)
        if node.op == "view":
            return self._view(node, index, guards)
        if node.op == "gather":
            return self._gather(node, index, guards)
        if node.op == "const":
            return self.emit(Stmt("const", (), node.dtype, attrs={"value": node.attrs["value"]}, node=node))
        if node.op == "index":
            expr = substitute(node.attrs["expr"], dim_values(node.shape, index))
            return self._index(expr, node)
        if node.op not in TABLE:
            raise Misfit(f"{node.op} isn't computed in kernels")
        args = tuple(self.value(source, index, guards) for source in node.inputs)
        return self.emit(Stmt(node.op, args, node.dtype, node=node))

    def _elsewhere(self, node: Node, index: tuple[Index, ...], guards: tuple[Guard, ...]) -> int:
        """A member at another element than (x, r): computed once more where that takes one element a row only."""
        if node.op == "layout" and node.attrs.get("into") is None:
            value = self.value(node.inputs[0], index, guards)
            if self.stmts[value].dims != X | R:
                return value
        raise Misfit(f"{node.name} is needed at another element than the one computed")

    def _index(self, expr: Index, node: Node | None) -> int:
        if isinstance(expr, int):
            return self.emit(Stmt("const", (), torch.int64, attrs={"value": expr}, node=node))
        stmt = Stmt("index", (), torch.int64, self._dims([expr]), attrs={"expr": expr}, node=node)
        self._depend(stmt, [expr])
        return self.emit(stmt)

    def _dims(self, parts: Iterable[Index]) -> int:
        dims = 0
        for part in parts:
            for variable in variables(part):
                dims |= {"x": X, "r": R}.get(variable.name, 0)
        return dims

    def _depend(self, stmt: Stmt, parts: Iterable[Index]) -> None:
        """Take over what a statement depends on through values in its indices."""
        for part in parts:
            for variable in variables(part):
                if variable.name.startswith("v"):
                    other = self.stmts[int(variable.name[1:])]
                    stmt.dims |= other.dims
                    stmt.stage = max(stmt.stage, other.stage)
                    stmt.finish |= other.finish

    def _load(self, node: Node, index: tuple[Index, ...], guards: tuple[Guard, ...], fill: Any) -> int:
        offset = total(mul(part, step) for part, step in zip(index, node.layout()))
        self.buffers.setdefault(node)
        parts = [offset, *(part for guard in guards for part in guard)]
        attrs = {"buffer": node, "index": offset, "guards": guards, "fill": fill}
        stmt = Stmt("load", (), node.dtype, self._dims(parts), attrs=attrs, node=node)
        self._depend(stmt, parts)
        return self.emit(stmt)

    def _view(self, node: Node, index: tuple[Index, ...], guards: tuple[Guard, ...]) -> int:
        values = dim_values(node.shape, index)
        source = node.inputs[0]
        inner = tuple(substitute(part, values) for part in node.attrs["index"])
        own = tuple(
            (substitute(e, values), substitute(low, values), substitute(high, values))
            for e, low, high in node.attrs["guards"]
        )
        own = tuple(guard for guard in own if not holds(guard))
        if not own:
            return self.value(source, inner, guards)
        both = merge_guards(guards, own)
        fill = node.attrs["fill"]
        if fill is None:
            return self.value(source, inner, both)
        if not guards and source not in self.inside and source.op in IN_MEMORY:
            return self._load(source, inner, both, fill)
        value = self.value(source, inner, both)
        condition = self._condition(own)
        other = self.emit(Stmt("const", (), node.dtype, attrs={"value": fill}, node=node))
        return self.emit(Stmt("where", (condition, value, other), node.dtype, node=node))

    def _condition(self, guards: tuple[Guard, ...]) -> int:
        result: int | None = None
        for expr, low, high in guards:
            value = self._index(expr, None)
            for op, limit in (("ge", low), ("lt", high)):
                part = self.emit(Stmt(op, (value, self._index(limit, None)), torch.bool))
                result = part if result is None else self.emit(Stmt("and", (result, part), torch.bool))
        assert result is not None
        return result

    def _gather(self, node: Node, index: tuple[Index, ...], guards: tuple[Guard, ...]) -> int:
        source, *positions = node.inputs
        values = dim_values(node.shape, index)
        found = [self.value(position, index, guards) for position in positions]
        inner, inside = self._gathered(node, found, source.shape, values, guards)
        if source not in self.inside and source.op in IN_MEMORY:
            return self._load(source, inner, inside, 0)
        return self.value(source, inner, inside)

    def _gathered(
        self, node: Node, positions: list[int], sizes: tuple[Index, ...], values: dict[Any, Index],
        guards: tuple[Guard, ...],
    ) -> tuple[tuple[Index, ...], tuple[Guard, ...]]:  # fmt: skip
        """The index with the values of positions in it, and the guards under which it is inside."""
        inside = guards
        for number, (position, size) in enumerate(zip(positions, _gathered_sizes(node, sizes))):
            stmt = self.stmts[position]
            at: Index = of_atom(value_var(position, size))
            anywhere: Index = of_atom(Var(f"v{position}", UNBOUNDED, -UNBOUNDED))
            if stmt.op == "const":
                at = anywhere = stmt.attrs["value"]
            values[Var(f"j{number}", size)] = at
            if not is_below(anywhere, size):
                self.emit(Stmt("check", (position,), torch.int64, attrs={"size": size, "guards": guards}, node=node))
                inside = (*inside, (anywhere, 0, size))
        return tuple(substitute(part, values) for part in node.attrs["index"]), inside


def _gathered_sizes(node: Node, sizes: tuple[Index, ...]) -> list[Index]:
    """The size that each gathered position is below, in order."""
    found: dict[int, Index] = {}
    for part in node.attrs["index"]:
        for variable in variables(part):
            if variable.name.startswith("j"):
                found[int(variable.name[1:])] = variable.high
    return [found[number] for number in sorted(found)]


def unflatten_pair(own: Domain, other: Domain) -> tuple[Index, ...]:
    """The element of the other domain's tensor that (x, r) of the own one is."""
    if own == other:
        return own.element()
    if own.x != other.x or own.r != other.r:
        raise Misfit("other loops")
    return other.element()


def holds(guard: Guard) -> bool:
    """Whether a guard is always true."""
    from ..ir.build import always

    return always(guard)


def merge_guards(outer: tuple[Guard, ...], inner: tuple[Guard, ...]) -> tuple[Guard, ...]:
    """All guards, each once."""
    return tuple(dict.fromkeys((*outer, *inner)))
