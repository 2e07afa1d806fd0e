"""What two kernels have in common if one source serves both: everything but names and the number of rows."""

from __future__ import annotations

from ..ir.index import Expr
from ..ir.loops import Loops, Matrix
from ..ir.nodes import Node, freeze
from .tiles import Tile, even, needs_64_bits


def signature(kernel: Loops, tile: Tile) -> str:
    """A text that is equal for kernels with the same body; tensors are numbered by their place among the parameters."""
    numbers = {buffer: position for position, buffer in enumerate(kernel.buffers)}
    return "\n\n".join(_body(part, tile, numbers) for part in kernel.parts or (kernel,))


def _body(kernel: Loops, tile: Tile, numbers: dict[Node, int]) -> str:
    lines = [f"{kernel.form} {kernel.r} {kernel.persistent} {tile!r} {even(kernel, tile)} {needs_64_bits(kernel)}"]
    lines += [str(buffer.dtype) for buffer in kernel.buffers]
    for stmt in kernel.stmts:
        attrs = []
        for key, value in stmt.attrs.items():
            attrs.append((key, _text(value, numbers)))
        lines.append(f"{stmt.op} {stmt.args} {stmt.dtype} {stmt.dims} {stmt.stage} {stmt.finish} {attrs}")
    return "\n".join(lines)


def _text(value: object, numbers: dict[Node, int]) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_text(item, numbers) for item in value)})"
    if isinstance(value, Node):
        return f"buffer {numbers[value]}"
    if isinstance(value, Matrix):
        return _text((value.buffer, value.offset, value.steps), numbers)
    return str(value) if isinstance(value, (int, Expr)) else str(freeze(value))
