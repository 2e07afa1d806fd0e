"""A kernel as a loop program: statements in single assignment over the variables x (rows) and r (along a row).

Every statement's value belongs to one element (x, r), to a row (x alone), to a place along the row (r alone) or to the
whole kernel. Statements:

    const, index      a number; an expression of x, r and of values (`v7` in an expression is the value of statement 7)
    load, store       a buffer at an index, under guards; a store may add (`kind="add"`)
    check             that a value is inside 0:size
    <name>            a row of `pointwise.TABLE`
    reduce            along r: kind sum, prod, max, min, argmax, argmin, squares (of the distance from the mean)
    scan              along r: kind cumsum, cumprod
    online            the sum of exp(v - max of v), together with that maximum, in one pass
    grid              a reduction of a row's value over all rows; what uses it runs in the kernel's last program
    product           of two matrices (attrs `left`, `right`: `Matrix`), summed over `count`; the first statement of a
                      kernel of the form product, whose rows are the `rows` of each of its `batches`
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from .index import Index, Var, bounds, mul, not_negative, total, var, variables
from .nodes import SHORT, Node
from .pointwise import TABLE

X, R = 1, 2
"""Bits of `Stmt.dims`."""
REDUCTIONS = ("sum", "prod", "max", "min", "argmax", "argmin", "squares")


@dataclass(frozen=True)
class Matrix:
    """A factor of a product: its element (b, i, j), b for the batch, is at `offset` and `steps` of each in the buffer.
    """

    buffer: Node
    offset: Index
    steps: tuple[Index, Index, Index]

    def __str__(self) -> str:
        place = self.offset + total(mul(var(name), step) for name, step in zip("bij", self.steps))
        return f"{self.buffer.name}[{place}]"


@dataclass(slots=True)
class Stmt:
    """One statement. `stage` counts the reductions along r that have to be done before it."""

    op: str
    args: tuple[int, ...]
    dtype: torch.dtype
    dims: int = 0
    stage: int = 0
    finish: bool = False
    """Whether it runs in the last program only."""
    attrs: dict[str, Any] = field(default_factory=dict)
    node: Node | None = None


@dataclass(slots=True)
class Loops:
    """One kernel. `form` is pointwise, rows (one or more rows a program), product (a tile of a product a program, and
    what is computed of it), or combo: `parts` side by side, which are pointwise kernels that need nothing of each
    other."""

    name: str
    form: str
    x: Index
    r: Index
    stmts: list[Stmt]
    buffers: list[Node]
    """The tensors that it reads and writes, in the order of its parameters."""
    outputs: list[Node]
    persistent: bool = True
    where: list[str] = field(default_factory=list)
    parts: list[Loops] = field(default_factory=list)
    whole: Loops | None = None
    """The same with rows held whole, where they are looped over and might be."""

    @property
    def symbols(self) -> list[str]:
        """The symbolic sizes in its indices."""
        found = {v.name for part in (self, *self.parts) for v in variables(part.r)}
        for stmt in (*self.stmts, *(stmt for part in self.parts for stmt in part.stmts)):
            for value in indices(stmt):
                found |= {v.name for v in variables(value) if v.name.startswith("s")}
        return sorted(found)

    def __str__(self) -> str:
        if self.parts:
            return "\n".join([f"kernel {self.name}: side by side", *map(str, self.parts)])
        kind = {"pointwise": "", "product": f" r={self.r}"}.get(
            self.form, f" r={self.r} {'persistent' if self.persistent else 'looped'}"
        )
        lines = [f"kernel {self.name}: {self.form} x={self.x}{kind}"]
        lines += [f"  {stmt_text(number, stmt)}" for number, stmt in enumerate(self.stmts)]
        return "\n".join(lines)


def stmt_text(number: int, stmt: Stmt) -> str:
    """One line of a loop program's printed form."""
    attrs = stmt.attrs
    arguments = ", ".join(f"v{argument}" for argument in stmt.args)
    guard = " ".join(f"if {low} <= {expr} < {high}" for expr, low, high in attrs.get("guards", ()))
    level = {0: "", X: " per x", R: " per r", X | R: " per x, r"}[stmt.dims]
    tail = f"{level}{' at the end' if stmt.finish else ''}"
    if stmt.op == "load":
        text = f"{attrs['buffer'].name}[{attrs['index']}] {guard}".rstrip()
        return f"v{number}: {SHORT[stmt.dtype]} = load {text}{tail}"
    if stmt.op == "store":
        sign = "+=" if attrs["kind"] == "add" else "="
        return f"store {attrs['buffer'].name}[{attrs['index']}] {sign} {arguments} {guard}".rstrip() + tail
    if stmt.op == "product":
        text = f"{attrs['left']} by {attrs['right']} over {attrs['count']}, {attrs['precision']}"
        return f"v{number}: {SHORT[stmt.dtype]} = product {text}{tail}"
    if stmt.op == "check":
        return f"check 0 <= {arguments} < {attrs['size']} {guard}".rstrip()
    detail = {"const": attrs.get("value"), "index": attrs.get("expr")}.get(stmt.op, arguments)
    kind = f" {attrs['kind']}" if stmt.op in ("reduce", "grid", "scan") else ""
    return f"v{number}: {SHORT[stmt.dtype]} = {stmt.op}{kind} {detail}{tail}"


def indices(stmt: Stmt) -> Iterable[Index]:
    """Every index in a statement."""
    for key in ("index", "expr", "size"):
        if key in stmt.attrs:
            yield stmt.attrs[key]
    for guard in stmt.attrs.get("guards", ()):
        yield from guard
    if stmt.op == "product":
        yield from (stmt.attrs[key] for key in ("count", "rows", "batches"))
        for matrix in (stmt.attrs["left"], stmt.attrs["right"]):
            yield from (matrix.offset, *matrix.steps)


def buffers_read(stmt: Stmt) -> list[Node]:
    """The buffers that a statement reads."""
    if stmt.op == "product":
        return [stmt.attrs["left"].buffer, stmt.attrs["right"].buffer]
    return [stmt.attrs["buffer"]] if stmt.op == "load" else []


def check_loops(kernel: Loops) -> None:
    """Raise `IRError` where a loop program isn't well formed or may leave a buffer."""
    from .check import IRError

    def require(condition: object, number: int, text: str) -> None:
        if not condition:
            raise IRError(f"{text}: {stmt_text(number, kernel.stmts[number])} in\n{kernel}")

    for part in kernel.parts:
        check_loops(part)
    for number, stmt in enumerate(kernel.stmts):
        require(all(argument < number for argument in stmt.args), number, "used before it is there")
        arguments = [kernel.stmts[argument] for argument in stmt.args]
        if stmt.op in TABLE:
            require(len(arguments) == TABLE[stmt.op].arity, number, "number of operands")
            require(all(a.dims & ~stmt.dims == 0 for a in arguments), number, "a value per more than its operands")
        if stmt.op in ("reduce", "online"):
            require(stmt.dims & R == 0, number, "a reduction that is still per r")
        if not stmt.finish:
            require(stmt.op == "grid" or not any(a.finish for a in arguments), number, "reads what is known at the end")
        for index in indices(stmt):
            for variable in variables(index):
                if variable.name.startswith("v"):
                    require(int(variable.name[1:]) < number, number, "an index used before it is there")
        if stmt.op in ("load", "store"):
            require(stmt.attrs["buffer"] in kernel.buffers, number, "not among the buffers")
            require(_inside(stmt, kernel), number, "may be outside its buffer")
        if stmt.op == "product":
            require(kernel.form == "product" and number == 0, number, "a product is the first of its kernel")
            require(kernel.x == mul(stmt.attrs["rows"], stmt.attrs["batches"]), number, "other rows")
            require(all(buffer in kernel.buffers for buffer in buffers_read(stmt)), number, "not among the buffers")
            require(_factors_inside(stmt, kernel.r), number, "may be outside its buffer")


def _inside(stmt: Stmt, kernel: Loops) -> bool:
    """Whether an access without guards is inside its buffer; symbolic sizes are taken to be right."""
    index, buffer = stmt.attrs["index"], stmt.attrs["buffer"]
    if stmt.attrs.get("guards") or kernel.x == 0 or kernel.r == 0:
        return True
    high = bounds(index)[1]
    extent = _extent(buffer)
    return not_negative(index) and (not isinstance(extent, int) or high < extent)


def _extent(buffer: Node) -> Index:
    extent: Index = 1
    for size, step in zip(buffer.shape, buffer.layout()):
        extent = extent + (size - 1) * step if not isinstance(size, int) or size else 0
    return extent


def _factors_inside(stmt: Stmt, columns: Index) -> bool:
    """Whether the last element of each factor is inside its buffer; symbolic sizes are taken to be right."""
    batches, rows, count = (stmt.attrs[key] for key in ("batches", "rows", "count"))
    for matrix, sizes in ((stmt.attrs["left"], (rows, count)), (stmt.attrs["right"], (count, columns))):
        steps = zip((batches, *sizes), matrix.steps)
        last = matrix.offset + total(mul(size - 1, step) for size, step in steps)
        extent = _extent(matrix.buffer)
        if isinstance(last, int) and isinstance(extent, int) and last >= extent:
            return False
    return True


def value_var(number: int, size: Index) -> Var:
    """The variable that stands for the value of a statement in an index."""
    return Var(f"v{number}", size)
