"""A code object as text: its neutral instructions, and beside them the raw ones if these are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from .decode import Program, raw_instructions
from .model import VersionModel
from .ops import Instr, Op

RAW_COLUMN = 84


def listing(program: Program, model: VersionModel | None = None) -> Iterator[str]:
    """One line per neutral instruction; with the model, what it is in raw ones stands beside it."""
    targets = {instr.target for instr in program.instrs}
    raw = raw_texts(program, model) if model else {}
    line = None
    for instr, depth in zip(program.instrs, program.depths, strict=True):
        shown = instr.line if instr.line != line else None
        line = instr.line
        mark = ">>" if instr.index in targets else "  "
        text = f"{shown or '':>5} {mark} {instr.index:>4}  [{'-' if depth is None else depth:>2}] {describe(instr)}"
        beside = raw.pop(instr.offset, None)
        yield text if beside is None else f"{text:<{RAW_COLUMN}} {beside}"


def describe(instr: Instr) -> str:
    """The operation with its operands, where it may jump, and where its exceptions go."""
    wanted = 1 if instr.op is Op.LOAD_CONST else 0  # operands that may be None
    operands = [repr(o) for n, o in enumerate((instr.a, instr.b, instr.c)) if o is not None or n < wanted]
    text = f"{instr.op.name:<18} {', '.join(operands)}"
    if instr.target is not None:
        text += f" -> {instr.target}"
    if instr.handler is not None:
        target, depth, lasti = instr.handler
        text += f"  (except {target}, depth {depth}{', lasti' if lasti else ''})"
    return text.rstrip()


def raw_texts(program: Program, model: VersionModel) -> dict[int, str]:
    """By offset: the raw instruction, behind those that are folded into it."""
    names = {number: name for name, number in model.numbers.items()}
    offsets = {instr.offset for instr in program.instrs}
    texts: dict[int, str] = {}
    folded: list[str] = []
    for opcode, _, raw in raw_instructions(program.code, model):
        folded.append(f"{raw.offset:>4} {names[opcode]} {raw.arg}")
        if raw.offset in offsets:
            texts[raw.offset] = ", ".join(folded)
            folded.clear()
    return texts
