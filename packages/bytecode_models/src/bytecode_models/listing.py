"""A code object as text: its neutral instructions, and below each raw one if these are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType

from .decode import Program, raw_instructions
from .model import current
from .ops import Instr


def listing(program: Program, code: CodeType, *, raw: bool = False) -> Iterator[str]:
    """One line per neutral instruction, below a line per raw one where these are asked for."""
    targets = {instr.target for instr in program.instrs}
    heads = dict(_raw_lines(code)) if raw else {}
    line = None
    for instr, depth in zip(program.instrs, program.depths, strict=True):
        while heads and min(heads) <= instr.offset:
            yield heads.pop(min(heads))
        shown = instr.line if instr.line != line else None
        line = instr.line
        mark = ">>" if instr.index in targets else "  "
        yield f"{shown or '':>5} {mark} {instr.index:>4}  [{'-' if depth is None else depth:>2}] {describe(instr)}"


def describe(instr: Instr) -> str:
    """The operation with its operands, where it may jump, and where its exceptions go."""
    operands = [repr(operand) for operand in (instr.a, instr.b, instr.c) if operand is not None]
    text = f"{instr.op.name:<18} {', '.join(operands)}"
    if instr.target is not None:
        text += f" -> {instr.target}"
    if instr.handler is not None:
        target, depth, lasti = instr.handler
        text += f"  (except {target}, depth {depth}{', lasti' if lasti else ''})"
    return text.rstrip()


def _raw_lines(code: CodeType) -> Iterator[tuple[int, str]]:
    model = current()
    names = {number: name for name, number in model.numbers.items()}
    for opcode, _, instruction in raw_instructions(code, model):
        yield instruction.offset, f"{'':>8} offset {instruction.offset}: {names[opcode]} {instruction.arg}"
