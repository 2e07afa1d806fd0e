"""A product in a kernel: which tile of it a program computes, and the loop over what is summed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.index import Index
from ..ir.loops import Matrix, Stmt

if TYPE_CHECKING:
    from .body import Body
    from .source import Writer

BAND = 8
"""Programs that follow each other compute tiles of so many rows of tiles, column by column: what they read is the same
for many of them, and still in the cache."""
NAMES = {
    "program", "down", "across", "band", "height", "batch", "batches", "row", "rnumel", "k", "k_in", "left_at",
    "right_at",
}  # fmt: skip
"""The names that the lines below use."""


def product_of(stmts: list[Stmt]) -> Stmt:
    """The product of a kernel of that form."""
    return stmts[0]


def variables(w: Writer) -> None:
    """The place of the program's tile: x (a row among those of all batches) and r, with their masks."""
    line = w.lines.append
    batched = product_of(w.kernel.stmts).attrs["batches"] != 1
    line("program = tl.program_id(0)" + (".to(tl.int64)" if w.wide else ""))
    line("down = tl.cdiv(xnumel, XBLOCK)")
    line("across = tl.cdiv(rnumel, RBLOCK)")
    if batched:
        line("batch = program // (down * across)")
        line("program = program % (down * across)")
    line(f"band = program // ({BAND} * across) * {BAND}")
    line(f"height = tl.minimum(down - band, {BAND})")
    line(f"row = (band + program % ({BAND} * across) % height) * XBLOCK + tl.arange(0, XBLOCK)[:, None]")
    line(f"r = program % ({BAND} * across) // height * RBLOCK + tl.arange(0, RBLOCK)[None, :]")
    if not w.x_even:
        line("x_in = row < xnumel")
    if not w.r_even:
        line(f"r_in = r < {w.rows_end()}")
    line("x = batch * xnumel + row" if batched else "x = row")


def write_product(body: Body, position: int, stmt: Stmt) -> None:
    """The loop over k."""
    w, name = body.w, body.name(position)
    count: Index = stmt.attrs["count"]
    even = isinstance(count, int) and count % w.tile.k == 0
    left, right = stmt.attrs["left"], stmt.attrs["right"]
    batched = stmt.attrs["batches"] != 1
    body.line("k = tl.arange(0, KBLOCK)")
    body.line(f"left_at = {_start(body, left, 'row', 'k[None, :]', batched)}")
    body.line(f"right_at = {_start(body, right, 'k[:, None]', 'r', batched)}")
    body.line(f"{name} = tl.zeros([XBLOCK, RBLOCK], tl.float32)")
    body.line(f"for start in range(0, {w.index.write(count)}, KBLOCK):")
    if not even:
        body.line(f"    k_in = k < {w.index.write(count)} - start")
    masks = [
        _mask([*([] if w.x_even else ["x_in"]), *([] if even else ["k_in[None, :]"])]),
        _mask([*([] if even else ["k_in[:, None]"]), *([] if w.r_even else ["r_in"])]),
    ]
    factors = f"tl.load(left_at{masks[0]}), tl.load(right_at{masks[1]})"
    body.line(f'    {name} = math.dot({factors}, {name}, input_precision="{stmt.attrs["precision"]}")')
    body.line(f"    left_at += {_step(body, left.steps[2])}")
    body.line(f"    right_at += {_step(body, right.steps[1])}")


def _mask(conditions: list[str]) -> str:
    return f", mask={' & '.join(conditions)}, other=0.0" if conditions else ""


def _step(body: Body, step: Index) -> str:
    return _times(body, "KBLOCK", step)


def _times(body: Body, name: str, step: Index) -> str:
    if step == 1:
        return name
    text = body.w.index.write(step)
    return f"{name} * {text}" if isinstance(step, int) or step.is_atom() else f"{name} * ({text})"


def _start(body: Body, matrix: Matrix, row: str, column: str, batched: bool) -> str:
    """The addresses of the first tile; those of a batch begin where the batch does."""
    parts = [body.w.pointers[matrix.buffer]]
    if matrix.offset != 0:
        parts.append(body.w.index.write(matrix.offset))
    if batched and matrix.steps[0] != 0:
        parts.append(_times(body, "batch", matrix.steps[0]))
    wide = ".to(tl.int64)" if body.w.wide else ""
    parts += [_times(body, name + wide if name[0] == "k" else name, step)
              for name, step in zip((row, column), matrix.steps[1:])]  # fmt: skip
    return " + ".join(parts)
