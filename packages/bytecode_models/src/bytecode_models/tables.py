"""Codecs of the exception table and the location table of a code object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

Positions = tuple[int | None, int | None, int | None, int | None]

_MORE = 0x40  # another six bits follow
_ENTRY = 0x80  # first byte of an entry, in both tables
_LINE_ONLY, _LONG, _NOWHERE = 13, 14, 15  # kinds of location
_UNITS_PER_LOCATION = 8


class Protected(NamedTuple):
    """A range of byte offsets whose exceptions go to `target`."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


def read_exception_table(table: bytes) -> Iterator[Protected]:
    """The entries, sorted by start."""
    numbers = _read_big_endian(table)
    for start in numbers:
        length, target, packed = next(numbers), next(numbers), next(numbers)
        yield Protected(2 * start, 2 * (start + length), 2 * target, packed >> 1, bool(packed & 1))


def write_exception_table(entries: Iterable[Protected]) -> bytes:
    """The inverse of `read_exception_table`."""
    table = bytearray()
    for entry in entries:
        at = len(table)
        for number in (
            entry.start // 2,
            (entry.end - entry.start) // 2,
            entry.target // 2,
            entry.depth << 1 | entry.lasti,
        ):
            table += _big_endian(number)
        table[at] |= _ENTRY
    return bytes(table)


def write_locations(first_line: int, ranges: Iterable[tuple[int, Positions]]) -> bytes:
    """Locations for (code units, positions) one after the other, and one more unit that goes back to `first_line`."""
    table = bytearray()
    line = first_line
    for units, positions in ranges:
        while units:
            length = min(units, _UNITS_PER_LOCATION)
            to = line if positions[0] is None else positions[0]
            table += _location(length, to - line, positions)
            line = to
            units -= length
    return bytes(table + _location(1, first_line - line, (first_line, None, None, None)))


def _location(length: int, delta: int, positions: Positions) -> bytes:
    line, end_line, column, end_column = positions
    if line is None:
        return _head(_NOWHERE, length)
    if end_line is None or column is None or end_column is None:
        return _head(_LINE_ONLY, length) + _signed(delta)
    rest = (end_line - line, column + 1, end_column + 1)
    return _head(_LONG, length) + _signed(delta) + b"".join(map(_little_endian, rest))


def _head(kind: int, length: int) -> bytes:
    return bytes([_ENTRY | kind << 3 | length - 1])


def _signed(number: int) -> bytes:
    return _little_endian(-number << 1 | 1 if number < 0 else number << 1)


def _little_endian(number: int) -> bytes:
    out = bytearray()
    while number >= _MORE:
        out.append(number & 0x3F | _MORE)
        number >>= 6
    return bytes([*out, number])


def _big_endian(number: int) -> bytes:
    out = [number & 0x3F]
    while number := number >> 6:
        out.append(number & 0x3F | _MORE)
    return bytes(reversed(out))


def _read_big_endian(table: bytes) -> Iterator[int]:
    number = 0
    for byte in table:
        number = number << 6 | byte & 0x3F
        if not byte & _MORE:
            yield number
            number = 0
