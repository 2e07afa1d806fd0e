"""A matrix product and the pointwise kernel behind it as one kernel: tiles of the product stay where they are computed.

Which is faster, this or ATen's product and the kernel behind it, nobody knows before it was measured: the step keeps
the two that it was made of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..ir.index import (
    Atom,
    Index,
    Var,
    contiguous_strides,
    div,
    mod,
    mul,
    of_atom,
    product,
    substitute,
    total,
    var,
    variables,
)  # fmt: skip
from ..ir.loops import Loops, Matrix, R, Stmt, X, buffers_read
from ..ir.nodes import Node, Ref
from ..ir.pointwise import HALVES, TABLE
from ..lower.memory import same_strides, strided
from .groups import kept_by
from .steps import Schedule, Step, combined, step_of

aten = torch.ops.aten
FORMS: dict[Any, tuple[int | None, int, int]] = {
    aten.mm.default: (None, 0, 1), aten.bmm.default: (None, 0, 1),
    aten.addmm.default: (0, 1, 2), aten.baddbmm.default: (0, 1, 2),
}  # fmt: skip
"""ATen's products: which arguments are the bias and the two factors."""
IN_TAILS = frozenset(TABLE) | {"const", "index", "load", "store"}
"""The statements that may stand behind a product."""


@dataclass(frozen=True)
class Product:
    """`scale` times the product of two matrices in `batches`, plus `bias_scale` times the bias."""

    result: Node
    left: Matrix
    right: Matrix
    batches: Index
    rows: Index
    columns: Index
    count: Index
    scale: float = 1
    bias: Matrix | None = None
    bias_scale: float = 1

    @property
    def factors(self) -> tuple[Node, Node]:
        return self.left.buffer, self.right.buffer


def precision(dtype: torch.dtype) -> str | None:
    """How Triton is to multiply numbers of a dtype, as ATen is set to at this moment; None where it can't."""
    if dtype in HALVES:
        return "ieee"
    setting = torch.backends.cuda.matmul.fp32_precision
    return {"none": "ieee", "ieee": "ieee", "tf32": "tf32"}.get(setting) if torch.version.hip is None else "ieee"


def read_product(step: Step) -> Product | None:
    """The product that a step is, if it's one that kernels compute."""
    extern = step.extern
    if extern is None or extern.attrs["target"] not in FORMS or len(step.writes) != 1:
        return None
    (result,) = step.writes
    bias, *factors = (
        None if which is None else _operand(extern, which) for which in FORMS[extern.attrs["target"]]
    )
    scales = [extern.attrs["kwargs"].get(name, 1) for name in ("alpha", "beta")]
    if not all(isinstance(value, (int, float)) for value in scales) or bias is not None and not scales[1]:
        return None  # a bias that doesn't count isn't even read
    if result.dtype not in (torch.float32, *HALVES) or precision(result.dtype) is None:
        return None
    left, right = factors
    assert left is not None and right is not None
    nodes = [left, right] if bias is None else [left, right, bias]
    if any(node.dtype != result.dtype for node in nodes):
        return None
    *outer, rows, columns = result.shape
    batches = product(outer)
    matrices = [_matrix(node, batches) for node in (left, right)]
    wide = None if bias is None else _matrix(bias, batches, result.shape)
    if matrices[0] is None or matrices[1] is None or (bias is not None and wide is None):
        return None
    return Product(result, matrices[0], matrices[1], batches, rows, columns, left.shape[-1],
                   scales[0], wide, scales[1])  # fmt: skip


def _operand(extern: Node, which: int) -> Node:
    reference = extern.attrs["args"][which]
    assert isinstance(reference, Ref)
    return extern.inputs[reference.position]


def _matrix(node: Node, batches: Index, spread: tuple[Index, ...] | None = None) -> Matrix | None:
    """Where a factor's elements are; those of a bias, which is broadcast, as elements of the shape `spread`."""
    found = strided(node)
    if found is None:
        return None
    base, steps, offset = found
    wanted = spread or node.shape
    own = [0] * (len(wanted) - len(steps)) + [
        0 if size == 1 else step for size, step in zip(node.shape, steps)
    ]
    return Matrix(base, offset, (own[-3] if len(own) > 2 and batches != 1 else 0, own[-2], own[-1]))


# --- from two steps to one -------------------------------------------------------------------------------------------


def with_products(plan: Schedule) -> None:
    """Make one step of each product and the kernel that is its first reader, where that kernel allows it."""
    for step in list(plan.steps):
        found = read_product(step)
        if found is None or 0 in (found.batches, found.rows, found.columns, found.count):
            continue
        at = plan.steps.index(step)
        reader = next((n for n in range(at + 1, len(plan.steps)) if found.result in plan.steps[n].reads), None)
        if reader is None:
            continue
        between = plan.steps[at + 1 : reader + 1]
        if {_home(n) for other in between for n in other.writes} & {_home(n) for n in step.reads}:
            continue  # a factor is overwritten before the reader, or by it
        tails, rest = _apart(plan.steps[reader])
        tail = next((t for t in tails if found.result in t.reads), None)
        if tail is None or tail.kernel is None or not fits(tail.kernel, found):
            continue
        others = [s for s in [*plan.steps[:reader], *plan.steps[reader + 1 :], *rest(tail)] if s is not step]
        joined = _joined(step, tail, found, _needed(found.result, others, plan))
        plan.steps[reader : reader + 1] = [*rest(tail), joined]
        del plan.steps[at]


def _home(node: Node) -> Node:
    while node.op == "scatter":
        node = node.inputs[0]
    return node


def _needed(result: Node, others: Iterable[Step], plan: Schedule) -> bool:
    """Whether anybody but the kernel behind it needs a product."""
    kept = [kept_by(value) for value in plan.graph.outputs if isinstance(value, Node)]
    return any(result in step.reads for step in others) or any(result in nodes for nodes in kept)


def _apart(step: Step) -> tuple[list[Step], Any]:
    """The kernels that run side by side in a step as steps of their own; and what is left of it without one of them."""
    kernel = step.kernel
    if kernel is None or not kernel.parts:
        return [step], lambda taken: []
    steps = [step_of(part) for part in kernel.parts]

    def rest(taken: Step) -> list[Step]:
        left = [part for part in kernel.parts if part is not taken.kernel]
        return [step_of(left[0] if len(left) == 1 else combined(left, kernel.name))]

    return steps, rest


def fits(tail: Loops, found: Product) -> bool:
    """Whether a kernel computes, for each element of a product, what needs no other element of it."""
    result = found.result
    if tail.form != "pointwise" or tail.x != result.numel or tail.x == 1:
        return False
    if not same_strides(result.shape, result.layout(), contiguous_strides(result.shape)):
        return False
    here = var("x", tail.x)
    for stmt in tail.stmts:
        if stmt.op not in IN_TAILS or stmt.finish:
            return False
        if stmt.op == "load" and stmt.attrs["buffer"] is result:
            if stmt.attrs["index"] != here or stmt.attrs["guards"]:
                return False
        if stmt.op == "store" and (stmt.attrs["kind"] != "set" or stmt.attrs["buffer"].op == "scatter"):
            return False
    return any(stmt.op == "load" and stmt.attrs["buffer"] is result for stmt in tail.stmts)


def _joined(step: Step, tail: Step, found: Product, stored: bool) -> Step:
    assert tail.kernel is not None and step.extern is not None
    joined = step_of(_Tail(found, tail.kernel).kernel(stored, step.extern.where))
    joined.instead = [step, tail]
    return joined


class _Tail:
    """Writes the loop program of a product and its tail: rows of the product, and positions along them."""

    def __init__(self, found: Product, tail: Loops):
        self.product, self.tail = found, tail
        self.stmts: list[Stmt] = []
        self.rows = mul(found.batches, found.rows)
        self.x: Index = var("x", self.rows) if self.rows != 1 else 0
        self.r: Index = var("r", found.columns) if found.columns != 1 else 0
        self.here = mul(self.x, found.columns) + self.r
        """The place of element (x, r) in the product."""

    def kernel(self, stored: bool, where: str) -> Loops:
        result = self.product.result
        value = self._value()
        numbers: dict[int, int] = {}
        for position, stmt in enumerate(self.tail.stmts):
            if stmt.op == "load" and stmt.attrs["buffer"] is result:
                numbers[position] = value
            else:
                numbers[position] = self._statement(stmt, numbers)
        outputs = list(self.tail.outputs)
        if stored:
            attrs = {"buffer": result, "index": self.here, "guards": (), "kind": "set"}
            self._emit(Stmt("store", (value,), result.dtype, X | R, attrs=attrs, node=result))
            outputs.append(result)
        read = [buffer for stmt in self.stmts for buffer in buffers_read(stmt)]
        buffers = dict.fromkeys([*read, *(b for b in self.tail.buffers if b is not result)])
        if stored:
            buffers.setdefault(result)
        places = sorted({*self.tail.where, *([where] if where else [])})
        name = f"{result.name}_{self.tail.name}"[-60:].lstrip("_0123456789")
        return Loops(name, "product", self.rows, self.product.columns, self.stmts, list(buffers), outputs, where=places)

    def _emit(self, stmt: Stmt) -> int:
        self.stmts.append(stmt)
        return len(self.stmts) - 1

    def _op(self, op: str, dtype: torch.dtype, *args: int, node: Node | None = None) -> int:
        return self._emit(Stmt(op, args, dtype, X | R, node=node))

    def _number(self, value: float) -> int:
        return self._emit(Stmt("const", (), torch.float32, attrs={"value": float(value)}))

    def _value(self) -> int:
        """The product as ATen gives it: summed, scaled and added to in fp32, then rounded."""
        p, wide = self.product, torch.float32
        attrs = {"left": p.left, "right": p.right, "count": p.count, "rows": p.rows, "batches": p.batches,
                 "precision": precision(p.result.dtype)}  # fmt: skip
        value = self._emit(Stmt("product", (), wide, X | R, attrs=attrs))
        if p.scale != 1:
            value = self._op("mul", wide, value, self._number(p.scale))
        if p.bias is not None:
            bias = self._bias(p.bias)
            if p.bias_scale != 1:
                bias = self._op("mul", wide, bias, self._number(p.bias_scale))
            value = self._op("add", wide, value, bias)
        return value if p.result.dtype == wide else self._op("cast", p.result.dtype, value, node=p.result)

    def _bias(self, bias: Matrix) -> int:
        p = self.product
        along = unbatched(self.x, p.rows, p.batches)
        index = bias.offset + total(mul(i, step) for i, step in zip((*along, self.r), bias.steps))
        attrs = {"buffer": bias.buffer, "index": index, "guards": (), "fill": 0}
        loaded = self._emit(Stmt("load", (), bias.buffer.dtype, _dims([index], []), attrs=attrs, node=bias.buffer))
        if bias.buffer.dtype == torch.float32:
            return loaded
        return self._emit(Stmt("cast", (loaded,), torch.float32, self.stmts[loaded].dims))

    def _statement(self, stmt: Stmt, numbers: dict[int, int]) -> int:
        """A statement of the tail with x written in rows and positions along them."""
        old = Var("x", self.tail.x)
        values: dict[Atom, Index] = {old: self.here}

        def rewrite(index: Index) -> Index:
            for variable in variables(index):
                if variable.name.startswith("v"):
                    number = numbers[int(variable.name[1:])]
                    values[variable] = of_atom(Var(f"v{number}", variable.high, variable.low))
            return substitute(index, values)

        attrs = dict(stmt.attrs)
        for key in ("index", "expr"):
            if key in attrs:
                attrs[key] = rewrite(attrs[key])
        if "guards" in attrs:
            attrs["guards"] = tuple((rewrite(a), rewrite(b), rewrite(c)) for a, b, c in attrs["guards"])
        args = tuple(numbers[argument] for argument in stmt.args)
        parts = [attrs[key] for key in ("index", "expr") if key in attrs]
        parts += [part for guard in attrs.get("guards", ()) for part in guard]
        dims = X | R if stmt.op == "store" else _dims(parts, self.stmts)
        for argument in args:
            dims |= self.stmts[argument].dims
        return self._emit(replace(stmt, args=args, dims=dims, attrs=attrs))


def unbatched(x: Index, rows: Index, batches: Index) -> tuple[Index, Index]:
    """Batch and row of a row among those of all batches."""
    return (0, x) if batches == 1 else (div(x, rows), mod(x, rows))


def _dims(parts: Iterable[Index], stmts: list[Stmt]) -> int:
    dims = 0
    for part in parts:
        for variable in variables(part):
            dims |= {"x": X, "r": R}.get(variable.name, 0)
            if variable.name.startswith("v"):
                dims |= stmts[int(variable.name[1:])].dims
    return dims
