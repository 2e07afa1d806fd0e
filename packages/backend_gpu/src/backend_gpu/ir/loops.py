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
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from .index import Index, Var, bounds, not_negative, variables
from .nodes import SHORT, Node
from .pointwise import TABLE

X, R = 1, 2
"""Bits of `Stmt.dims`."""
REDUCTIONS = ("sum", "prod", "max", "min", "argmax", "argmin", "squares")


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
    """One kernel. `form` is pointwise, rows (one or more rows a program), or combo: `parts` side by side, which are
    pointwise kernels that need nothing of each other."""

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
        kind = "" if self.form == "pointwise" else f" r={self.r} {'persistent' if self.persistent else 'looped'}"
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


def _inside(stmt: Stmt, kernel: Loops) -> bool:
    """Whether an access without guards is inside its buffer; symbolic sizes are taken to be right."""
    index, buffer = stmt.attrs["index"], stmt.attrs["buffer"]
    if stmt.attrs.get("guards") or kernel.x == 0 or kernel.r == 0:
        return True
    high = bounds(index)[1]
    extent: Index = 1
    for size, step in zip(buffer.shape, buffer.layout()):
        extent = extent + (size - 1) * step if not isinstance(size, int) or size else 0
    return not_negative(index) and (not isinstance(extent, int) or high < extent)


def value_var(number: int, size: Index) -> Var:
    """The variable that stands for the value of a statement in an index."""
    return Var(f"v{number}", size)
