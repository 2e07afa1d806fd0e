"""`python -m bytecode_models dis FILE[:FUNCTION] [--raw]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from .decode import decode
from .listing import listing


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


if __name__ == "__main__":
    sys.exit(main())
