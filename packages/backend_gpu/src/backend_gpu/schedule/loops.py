"""Last decisions on a loop program: rows held whole or looped over, and softmax's two reductions in one pass."""

from __future__ import annotations

from dataclasses import replace

from ..ir.loops import Loops, R, Stmt
from ..ir.nodes import MAX_PERSISTENT
from ..render.tiles import reads_across

ACROSS_LIMIT = 64


def finish(kernel: Loops) -> Loops:
    """Decide how the rows of a kernel are run over."""
    if kernel.form != "rows":
        return kernel
    mark_softmax(kernel)
    limit = ACROSS_LIMIT if reads_across(kernel) and kernel.x != 1 else MAX_PERSISTENT
    if scans(kernel) or isinstance(kernel.r, int) and kernel.r <= limit:
        return kernel
    found = looped(kernel)
    if isinstance(kernel.r, int) and kernel.r <= 2 * MAX_PERSISTENT:
        found.whole = kernel
    return found


def scans(kernel: Loops) -> bool:
    """Whether a kernel needs its rows whole."""
    return any(stmt.op == "scan" for stmt in kernel.stmts)


def looped(kernel: Loops) -> Loops:
    """The same kernel, its rows looped over instead of held whole."""
    stmts = [replace(stmt, attrs=dict(stmt.attrs)) for stmt in kernel.stmts]
    found = replace(kernel, stmts=stmts, persistent=False)
    if online(found):
        restage(found)
    last = max(stmt.stage for stmt in stmts)
    for stmt in stmts:
        if stmt.op == "store" and stmt.dims & R and stmt.attrs["buffer"].op == "input":
            stmt.stage = last  # no pass may read what an earlier one has overwritten
    return found


def _exponential(kernel: Loops, stmt: Stmt) -> tuple[int, int] | None:
    """The statements `(v, m)` if a reduction sums exp(v - m) with m the maximum of v along r."""
    if stmt.op != "reduce" or stmt.attrs["kind"] != "sum":
        return None
    inner = kernel.stmts[stmt.args[0]]
    if inner.op != "exp":
        return None
    difference = kernel.stmts[inner.args[0]]
    if difference.op != "sub":
        return None
    value, top = difference.args
    maximum = kernel.stmts[top]
    if maximum.op == "cast":
        top = maximum.args[0]
        maximum = kernel.stmts[top]
    if maximum.op != "reduce" or maximum.attrs["kind"] != "max":
        return None
    (of,) = maximum.args
    if of != value and not (kernel.stmts[value].op == "cast" and kernel.stmts[value].args[0] == of):
        return None
    return value, top


def mark_softmax(kernel: Loops) -> None:
    """A maximum that only softmax uses needs no care for NaN: the sum of the exponentials is NaN then, too."""
    for stmt in kernel.stmts:
        pair = _exponential(kernel, stmt)
        if pair is None:
            continue
        _, top = pair
        uses = [number for number, other in enumerate(kernel.stmts) if top in other.args]
        if all(kernel.stmts[number].op == "sub" for number in uses):
            kernel.stmts[top].attrs["no_nan"] = True


def online(kernel: Loops) -> bool:
    """Make each sum of exponentials run in the pass of its maximum. Returns whether there was one."""
    found = False
    taken: set[int] = set()
    for stmt in kernel.stmts:
        pair = _exponential(kernel, stmt)
        if pair is None or pair[1] in taken:
            continue
        value, top = pair
        if kernel.stmts[value].dtype != stmt.dtype or not kernel.stmts[top].attrs.get("no_nan"):
            continue
        if kernel.stmts[value].dims != 3 or kernel.stmts[top].dtype != stmt.dtype:
            continue
        taken.add(top)
        stmt.op, stmt.args = "online", (value,)
        stmt.attrs["partner"] = top
        kernel.stmts[top].attrs["online"] = True
        found = True
    return found


def restage(kernel: Loops) -> None:
    """Count anew how many reductions come before each statement."""
    from ..render.body import index_values

    for stmt in kernel.stmts:
        before = [kernel.stmts[argument].stage for argument in stmt.args]
        before += [kernel.stmts[int(name[1:])].stage for name in index_values(stmt)]
        stmt.stage = max(before, default=0) + (stmt.op in ("reduce", "online"))
