"""`python -m bytecode_models dis FILE[:FUNCTION] [--raw]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from .decode import Program, decode, raw_instructions
from .model import current
from .ops import Instr


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bytecode_models", description="Look at neutral instructions.")
    commands = parser.add_subparsers(dest="command", required=True)
    dis = commands.add_parser("dis", help="list the neutral instructions of a source file's code objects")
    dis.add_argument("where", metavar="FILE[:FUNCTION]", help="a Python file, and a qualified name in it")
    dis.add_argument("--raw", action="store_true", help="show the raw instructions too")
    options = parser.parse_args(arguments)
    file, function = options.where, None
    if not Path(file).exists():
        file, _, function = file.rpartition(":")
    if not Path(file).is_file():
        parser.error(f"no such file: {options.where}")
    module = compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)
    codes = [code for code in nested_codes(module) if function in (None, code.co_qualname)]
    if not codes:
        parser.error(f"{file} defines no function {function}")
    for code in codes:
        print(f"{code.co_qualname} (line {code.co_firstlineno})")
        print("\n".join(listing(decode(code), code, raw=options.raw)), end="\n\n")
    return 0


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """`code` and every code object among its constants."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from nested_codes(const)


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


if __name__ == "__main__":
    sys.exit(main())
