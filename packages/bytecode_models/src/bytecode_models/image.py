"""Code objects as plain data: written by the interpreter that compiled them, read by any other.

`python -m bytecode_models.image FILE` writes a file's code objects as JSON. It needs no model of the interpreter.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from .tables import Positions, read_locations

TEXTS = ("co_name", "co_qualname", "co_filename")
NUMBERS = (
    "co_firstlineno",
    "co_flags",
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_nlocals",
    "co_stacksize",
)
NAMES = ("co_names", "co_varnames", "co_cellvars", "co_freevars")
BYTES = ("co_code", "co_exceptiontable", "co_linetable")


class CodeImage:
    """A code object of any release: the attributes of `types.CodeType`, and constants that are images or plain data."""

    co_names: tuple[str, ...]
    co_varnames: tuple[str, ...]
    co_cellvars: tuple[str, ...]
    co_freevars: tuple[str, ...]
    co_code: bytes
    co_exceptiontable: bytes
    co_linetable: bytes
    co_firstlineno: int
    co_flags: int
    co_nlocals: int
    co_stacksize: int
    co_name: str
    co_qualname: str
    co_filename: str

    def __init__(self, data: dict[str, Any]) -> None:
        for name in (*TEXTS, *NUMBERS):
            setattr(self, name, data[name])
        for name in NAMES:
            setattr(self, name, tuple(data[name]))
        for name in BYTES:
            setattr(self, name, b64decode(data[name]))
        self.co_consts = tuple(map(_load, data["co_consts"]))

    def co_positions(self) -> Iterator[Positions]:
        """Positions of each code unit."""
        for units, positions in read_locations(self.co_linetable, self.co_firstlineno):
            for _ in range(units):
                yield positions

    def __repr__(self) -> str:
        return f"<image of code object {self.co_name}, file {self.co_filename!r}, line {self.co_firstlineno}>"


Code = CodeType | CodeImage


def dump(code: CodeType) -> dict[str, Any]:
    """The data of which `CodeImage` makes the code object again."""
    data: dict[str, Any] = {name: getattr(code, name) for name in (*TEXTS, *NUMBERS, *NAMES)}
    data |= {name: b64encode(getattr(code, name)).decode() for name in BYTES}
    return data | {"co_consts": [_dump(const) for const in code.co_consts]}


def _dump(value: Any) -> Any:
    if isinstance(value, CodeType):
        return {"code": dump(value)}
    if isinstance(value, tuple):
        return {"tuple": [_dump(item) for item in value]}
    if isinstance(value, frozenset):
        return {"frozenset": sorted(map(_dump, value), key=repr)}
    if isinstance(value, slice):
        return {"slice": [_dump(item) for item in (value.start, value.stop, value.step)]}
    if isinstance(value, (float, complex)):
        return {type(value).__name__: repr(value)}  # what literal_eval doesn't read: inf, nan
    return "..." if value is ... else repr(value)


def _load(data: Any) -> Any:
    if isinstance(data, str):
        return ast.literal_eval(data)
    ((kind, content),) = data.items()
    if kind == "code":
        return CodeImage(content)
    if kind in ("float", "complex"):
        return {"float": float, "complex": complex}[kind](content)
    items = map(_load, content)
    return slice(*items) if kind == "slice" else {"tuple": tuple, "frozenset": frozenset}[kind](items)


def image_of(code: CodeType) -> CodeImage:
    """The image of a code object of the running interpreter."""
    return CodeImage(dump(code))


def compiled_by(python: str, file: str) -> CodeImage:
    """The code object of a file as another interpreter compiles it. OSError or CalledProcessError if it can't."""
    root = str(Path(__file__).parents[1])
    program = f"import sys; sys.path.append({root!r}); from bytecode_models.image import main; main()"
    done = subprocess.run([python, "-c", program, file], capture_output=True, text=True, check=True)
    return CodeImage(json.loads(done.stdout))


def compile_file(file: str) -> CodeType:
    """The code object of a source file."""
    return compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)


def main() -> None:
    """Write the image of a file."""
    json.dump(dump(compile_file(sys.argv[1])), sys.stdout)


if __name__ == "__main__":
    main()
