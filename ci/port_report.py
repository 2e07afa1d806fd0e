"""What differs between the opcodes of two releases, as their interpreters tell it (`models.dumps`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

LISTS = ("compare", "binary", "specials", "constants")


def report(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Lines, grouped by kind of difference."""
    numbers, before = new["numbers"], old["numbers"]
    added, removed = sorted(numbers.keys() - before.keys()), sorted(before.keys() - numbers.keys())
    yield from group("added", [f"{name}: {shape(new, name)}{guess(old, new, name, removed)}" for name in added])
    yield from group("removed", removed)
    common = sorted(numbers.keys() & before.keys())
    renumbered = [name for name in common if numbers[name] != before[name]]
    yield from group("renumbered", [f"{len(renumbered)} of {len(common)}"] if renumbered else [])
    yield from group("cache sizes", changes(old["caches"], new["caches"], common))
    yield from group("operands", changes(*({n: flags(f, n) for n in common} for f in (old, new)), common))
    yield from group("re-shaped", [f"{name}: {shape(old, name)} -> {shape(new, name)}" for name in reshaped(old, new)])
    for kind in LISTS:
        yield from group(kind, [f"{n}: {value}" for n, value in enumerate(new[kind]) if value not in old[kind]])
    for arguments, names in enumerate(new["intrinsics"]):
        yield from group(f"intrinsics of {arguments + 1}", [n for n in names if n not in old["intrinsics"][arguments]])


def group(title: str, lines: list[str]) -> Iterator[str]:
    """A title with its lines below it, when there are any."""
    if lines:
        yield f"{title}:"
        yield from (f"  {line}" for line in lines)
        yield ""


def changes(old: dict[str, Any], new: dict[str, Any], names: list[str]) -> list[str]:
    """`NAME: old -> new` for the names whose values differ."""
    return [f"{n}: {old.get(n, 0) or '-'} -> {new.get(n, 0) or '-'}" for n in names if old.get(n, 0) != new.get(n, 0)]


def flags(facts: dict[str, Any], name: str) -> str:
    """What kind of operand the opcode has."""
    return " ".join(flag[3:] for flag, names in facts["flags"].items() if name in names)


def reshaped(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Opcodes of both releases that do something else to the stack."""
    return sorted(n for n in old["effects"].keys() & new["effects"].keys() if old["effects"][n] != new["effects"][n])


def shape(facts: dict[str, Any], name: str) -> str:
    """Its operand and its effect on the stack, for operands 0, 1, 2 where they differ."""
    effects = ["/".join(map(str, row[:3])) for row in facts["effects"][name]]
    return f"effect {' jumping '.join(effects)}" + (f", operand {kind}" if (kind := flags(facts, name)) else "")


def guess(old: dict[str, Any], new: dict[str, Any], name: str, removed: list[str]) -> str:
    """Which of the removed opcodes it may be under another name."""
    alike = [gone for gone in removed if shape(old, gone) == shape(new, name)]
    return f" (as {', '.join(alike)} had)" if 0 < len(alike) <= 3 else ""
