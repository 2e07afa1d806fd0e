"""The files of a new release: the model, which says what differs from the release before, and the C header."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import port_report

MODEL = '''\
"""CPython {new}: what differs from {old}."""

from __future__ import annotations

from . import {module}
from .rules import numbered

NUMBERS = numbered("""
{numbers}
""")

CACHES = {{{caches}}}

{wanted}RULES = {{}}

MODEL = {module}.MODEL.successor(({major}, {minor}), NUMBERS, CACHES, RULES)
'''


def write_missing(
    package: Path,
    csrc: Path,
    known: tuple[int, int],
    release: tuple[int, int],
    old: dict[str, Any],
    new: dict[str, Any],
) -> Iterator[Path]:
    """Write what isn't there yet; the paths that were written."""
    model = package / "v{}{}.py".format(*release)
    if not model.exists():
        model.write_text(model_text(known, release, old, new), "utf-8")
        yield model
    header = csrc / "cpython_{}{}.h".format(*release)
    if not header.exists():
        newest = "cpython_{}{}.h".format(*known)
        text = (csrc / newest).read_text("utf-8")
        header.write_text(text.replace("{}.{}".format(*known), "{}.{}".format(*release)), "utf-8")
        yield header
        yield include(csrc / "cpython.c", newest, header.name, release)


def include(source: Path, newest: str, name: str, release: tuple[int, int]) -> Path:
    """Have cpython.c include the header for the release."""
    text = source.read_text("utf-8")
    before = f'#include "{newest}"\n'
    upper = f"0x{release[0]:02X}{release[1] + 1:02X}0000"
    source.write_text(text.replace(before, f'{before}#elif PY_VERSION_HEX < {upper}\n#include "{name}"\n', 1), "utf-8")
    return source


def model_text(known: tuple[int, int], release: tuple[int, int], old: dict[str, Any], new: dict[str, Any]) -> str:
    """The model as far as the interpreter's own tables tell it."""
    names = old["caches"].keys() | new["caches"].keys()
    caches = {name: new["caches"].get(name, 0) for name in sorted(names & new["numbers"].keys())}
    changed = {name: units for name, units in caches.items() if units != old["caches"].get(name, 0)}
    return MODEL.format(
        new="{}.{}".format(*release),
        old="{}.{}".format(*known),
        module="v{}{}".format(*known),
        major=release[0],
        minor=release[1],
        numbers=numbers_text(new["numbers"]),
        caches=", ".join(f'"{name}": {units}' for name, units in changed.items()),
        wanted=wanted_text(old, new),
    )


def numbers_text(numbers: dict[str, int]) -> str:
    """The opcodes in order of their numbers; a number stands where they don't go on from the one before."""
    words, last = [], -2
    for name, number in sorted(numbers.items(), key=lambda item: item[1]):
        words.append(f" {number} {name}" if number != last + 1 else name)
        last = number
    lines = textwrap.wrap(" ".join(words).strip(), 116, break_long_words=False, break_on_hyphens=False)
    return textwrap.indent("\n".join(lines), "    ")


def wanted_text(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Comments that name the opcodes to write rules for."""
    added = sorted(new["numbers"].keys() - old["numbers"].keys())
    parts = [
        ("Each needs a rule, or no stored code object contains it (internal=…):", added),
        ("Does something else to the stack than before:", port_report.reshaped(old, new)),
    ]
    lines = []
    for title, names in parts:
        if names:
            lines += [f"# {title}", *(f"#   {name}: {port_report.shape(new, name)}" for name in names)]
    return "\n".join(lines) + "\n" if lines else ""
