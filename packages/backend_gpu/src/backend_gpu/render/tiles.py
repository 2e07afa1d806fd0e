"""How large a piece of a kernel one program computes, and with how many warps: by size, before anything is measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir.index import Index, Var, bounds, coefficient
from ..ir.loops import Loops, buffers_read

LOOP_STEP = 2048
MANY = 1 << 20


@dataclass(frozen=True)
class Tile:
    """`x` rows by `r` elements a program, `warps` warps, `stages` of software pipelining; of a product, `k` factors at
    a time."""

    x: int
    r: int = 1
    warps: int = 4
    stages: int = 1
    persistent: bool = True
    k: int = 0

    def __str__(self) -> str:
        sizes = " x ".join(map(str, (self.x, *(size for size in (self.r, self.k) if size > 1))))
        return f"{sizes}, {self.warps} warps" + (f", {self.stages} stages" if self.stages > 1 else "")


def even(kernel: Loops, tile: Tile) -> bool:
    """Whether no tile reaches past the last row."""
    rows = kernel.stmts[0].attrs["rows"] if kernel.form == "product" else kernel.x
    return tile.x == 1 or isinstance(rows, int) and rows % tile.x == 0


def power(value: int) -> int:
    """The least power of two that isn't smaller."""
    return 1 << max(value - 1, 0).bit_length()


def size(index: Index, otherwise: int = 1024) -> int:
    """A size, or for a symbolic one a guess."""
    return index if isinstance(index, int) else otherwise


def reads_across(kernel: Loops) -> bool:
    """Whether most of what a row kernel reads is contiguous from row to row instead of along the row."""
    along = across = 0
    for stmt in kernel.stmts:
        if stmt.op == "load" and stmt.dims == 3:
            r = coefficient(stmt.attrs["index"], Var("r", kernel.r))
            x = coefficient(stmt.attrs["index"], Var("x", kernel.x))
            along += r == 1
            across += x == 1 or r not in (0, 1)
    return across > along


def choose(kernel: Loops, interpreted: bool = False) -> Tile:
    """The tile of a kernel."""
    if kernel.parts:
        return _pointwise(max(kernel.parts, key=lambda part: size(part.x)), interpreted)
    if kernel.form == "pointwise":
        return _pointwise(kernel, interpreted)
    if kernel.form == "product":
        rows = size(kernel.stmts[0].attrs["rows"])
        return Tile(max(16, min(128, power(rows))), max(16, min(64, power(size(kernel.r)))), 4, 3, k=32)
    rows, length = size(kernel.x), size(kernel.r)
    if reads_across(kernel) and rows > 1:
        persistent = kernel.persistent
        r = power(length) if persistent else min(power(length), 64)
        tile = Tile(min(power(rows), max(1, 2048 // r)), r, 4 if r <= 1024 else warps_for(r), 1, persistent)
    elif kernel.persistent:
        r = power(length)
        tile = Tile(max(1, min(1024 // r, power(rows))), r, warps_for(r), 1, True)
    else:
        tile = Tile(1, LOOP_STEP, 8, 1, False)
    if interpreted:
        wide = max(1, min(power(rows), 16384 // tile.r))
        tile = replace(tile, x=wide)
    return tile


def warps_for(elements: int) -> int:
    """Warps for a tile of so many elements: about 8 to 16 elements a thread."""
    return max(1, min(16, power(elements // 512)))


def _pointwise(kernel: Loops, interpreted: bool) -> Tile:
    count = size(kernel.x, MANY)
    if interpreted:
        return Tile(max(1, min(power(count), 8192)))
    block = 1024 if count >= 1 << 17 else 512 if count >= 1 << 14 else 256
    return Tile(min(block, max(power(count), 32)), 1, 4 if block >= 512 else 2)


def needs_64_bits(kernel: Loops) -> bool:
    """Whether an index may not fit into 31 bits."""
    limit = (1 << 31) - 1
    for stmt in kernel.stmts:
        buffers = [*buffers_read(stmt), *([stmt.attrs["buffer"]] if stmt.op == "store" else [])]
        for buffer in buffers:
            extent = sum(size(s, limit) * size(step, limit) for s, step in zip(buffer.shape, buffer.layout()))
            if extent > limit:
                return True
        if stmt.op in ("load", "store") and bounds(stmt.attrs["index"])[1] > limit and not stmt.attrs["guards"]:
            return True
    return size(kernel.x, limit + 1) > limit - (1 << 16)
