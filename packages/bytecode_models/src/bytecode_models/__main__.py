"""`python -m bytecode_models dis FILE[:FUNCTION] [--version 3.14] [--python PATH] [--raw]`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from .decode import decode
from .image import Code, CodeImage, compile_file, compiled_by
from .listing import listing
from .model import UnsupportedVersion, VersionModel, current, model_for


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bytecode_models", description="Look at neutral instructions.")
    commands = parser.add_subparsers(dest="command", required=True)
    dis = commands.add_parser("dis", help="list the neutral instructions of a source file's code objects")
    dis.add_argument("where", metavar="FILE[:FUNCTION]", help="a Python file, and a qualified name in it")
    dis.add_argument("--version", metavar="3.X", help="as this release compiles it; its interpreter has to be there")
    dis.add_argument("--python", metavar="PATH", help="that interpreter, if it isn't found as python3.X")
    dis.add_argument("--raw", action="store_true", help="show the raw instructions beside them")
    options = parser.parse_args(arguments)
    file, function = options.where, None
    if not Path(file).exists():
        file, _, function = file.rpartition(":")
    if not Path(file).is_file():
        parser.error(f"no such file: {options.where}")
    try:
        model, module = compiled(file, options.version, options.python)
    except (UnsupportedVersion, LookupError) as error:
        parser.error(str(error))
    codes = [code for code in nested_codes(module) if function in (None, code.co_qualname)]
    if not codes:
        parser.error(f"{file} defines no function {function}")
    for code in codes:
        print(f"{code.co_qualname} (line {code.co_firstlineno})")
        print("\n".join(listing(decode(code, model), model if options.raw else None)), end="\n\n")
    return 0


def compiled(file: str, version: str | None, python: str | None) -> tuple[VersionModel, Code]:
    """The model of a release and a file's code object as it compiles it. LookupError without that interpreter."""
    if version is None:
        return current(), compile_file(file)
    try:
        major, minor = map(int, version.split("."))
    except ValueError:
        raise LookupError(f"--version {version}: not a release such as 3.14") from None
    model = model_for((major, minor))
    if python is None and model is current():
        return model, compile_file(file)
    python = python or f"python{version}"
    try:
        return model, compiled_by(python, file)
    except OSError as error:
        raise LookupError(f"{python} can't be run ({error.strerror}); give its path with --python") from None
    except subprocess.CalledProcessError as error:
        if error.returncode == 127:  # what shells and pyenv's shims answer when they have no such command
            raise LookupError(f"{python} is no interpreter here; give its path with --python\n{error.stderr}") from None
        raise LookupError(f"{python} can't compile {file}:\n{error.stderr}") from None


def nested_codes(code: Code) -> Iterator[Code]:
    """`code` and every code object among its constants."""
    yield code
    for const in code.co_consts:
        if isinstance(const, (CodeType, CodeImage)):
            yield from nested_codes(const)


if __name__ == "__main__":
    sys.exit(main())
