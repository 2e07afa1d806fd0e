"""The description of one CPython release, and which one runs."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module

from .rules import Rule


class UnsupportedVersion(RuntimeError):
    """No model describes this Python."""


@dataclass(frozen=True)
class VersionModel:
    """What the decoder and the encoder need to know of a release."""

    release: tuple[int, int]
    numbers: dict[str, int]
    caches: dict[str, int]
    rules: dict[str, Rule]
    #: Opcodes that no stored code object contains.
    internal: frozenset[str] = frozenset()
    #: RESUME operand for a frame that goes on, chosen so that it handles no signals.
    resume_arg: int = 2
    #: By opcode number: units of inline cache, and the rule (None: unknown opcode).
    table: tuple[tuple[int, Rule | None], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        table: list[tuple[int, Rule | None]] = [(0, None)] * 256
        for name, number in self.numbers.items():
            table[number] = (self.caches.get(name, 0), self.rules.get(name))
        object.__setattr__(self, "table", tuple(table))

    def successor(
        self,
        release: tuple[int, int],
        numbers: dict[str, int],
        caches: dict[str, int],
        rules: dict[str, Rule],
        *,
        internal: Iterable[str] = (),
    ) -> VersionModel:
        """The model of the next release: the arguments name what differs, and opcodes without a number are gone."""
        return replace(
            self,
            release=release,
            numbers=numbers,
            internal=frozenset((*self.internal, *internal)) & numbers.keys(),
            caches={name: units for name, units in (self.caches | caches).items() if units and name in numbers},
            rules={name: rule for name, rule in self.rules.items() if name in numbers} | rules,
        )

    def emit(self, name: str, arg: int = 0) -> bytes:
        """One raw instruction with its EXTENDED_ARGs and empty caches."""
        if arg < 256:
            return bytes((self.numbers[name], arg)) + bytes(2 * self.caches.get(name, 0))
        extended = self.numbers["EXTENDED_ARG"]
        prefixes = [byte for shift in (24, 16, 8) if arg >> shift for byte in (extended, arg >> shift & 0xFF)]
        return bytes([*prefixes, self.numbers[name], arg & 0xFF]) + bytes(2 * self.caches.get(name, 0))

    def assemble(self, instructions: Iterable[tuple[str, int]]) -> bytes:
        """The raw instructions (name, operand) one after the other."""
        return b"".join(self.emit(*instruction) for instruction in instructions)


def releases() -> list[tuple[int, int]]:
    """The releases that have a model."""
    names = [module.name for module in pkgutil.iter_modules(import_module(__package__).__path__)]
    return sorted((int(name[1]), int(name[2:])) for name in names if name[0] == "v" and name[1:].isdecimal())


@cache
def model_for(release: tuple[int, int]) -> VersionModel:
    """The model of a release such as (3, 12)."""
    major, minor = release
    if release not in releases():
        raise UnsupportedVersion(_unsupported(f"CPython {major}.{minor}"))
    return import_module(f".v{major}{minor}", __package__).MODEL


@cache
def current() -> VersionModel:
    """The model of the running interpreter."""
    tag = sys.implementation.cache_tag or sys.implementation.name
    implementation, _, digits = tag.partition("-")
    if implementation != "cpython" or not digits.isdecimal():
        raise UnsupportedVersion(_unsupported(tag))
    return model_for((int(digits[0]), int(digits[1:])))


def _unsupported(what: str) -> str:
    known = ", ".join(f"{major}.{minor}" for major, minor in releases())
    return f"{what} has no bytecode model; supported: CPython {known}. How to add a release: docs/porting.md"
