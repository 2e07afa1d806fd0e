"""Codecs of the exception table and the location table of a code object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

Positions = tuple[int | None, int | None, int | None, int | None]

_MORE = 0x40  # another six bits follow
_ENTRY = 0x80  # first byte of an entry, in both tables
_ONE_LINE, _LINE_ONLY, _LONG, _NOWHERE = 10, 13, 14, 15  # kinds of location; below: columns packed into the kind
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


def read_locations(table: bytes, first_line: int) -> Iterator[tuple[int, Positions]]:
    """(code units, positions) for the entries of a location table, one after the other."""
    data = iter(table)
    line = first_line
    for head in data:
        kind, units = head >> 3 & 15, (head & 7) + 1
        if kind == _NOWHERE:
            yield units, (None, None, None, None)
        elif kind == _LONG:
            line += _read_signed(data)
            end_line = line + _read_little_endian(data)
            columns = [_read_little_endian(data) - 1 for _ in range(2)]
            start, end = (None if column < 0 else column for column in columns)
            yield units, (line, end_line, start, end)
        elif kind == _LINE_ONLY:
            line += _read_signed(data)
            yield units, (line, line, None, None)
        elif kind >= _ONE_LINE:
            line += kind - _ONE_LINE
            yield units, (line, line, next(data), next(data))
        else:
            packed = next(data)
            start = kind << 3 | packed >> 4
            yield units, (line, line, start, start + (packed & 15))


def write_locations(first_line: int, ranges: Iterable[tuple[int, Positions]]) -> bytes:
    """The inverse of `read_locations`; ranges may be longer than an entry can be."""
    table = bytearray()
    line = first_line
    for units, positions in ranges:
        while units:
            length = min(units, _UNITS_PER_LOCATION)
            to = line if positions[0] is None else positions[0]
            table += _location(length, to - line, positions)
            line = to
            units -= length
    return bytes(table)


def _location(length: int, delta: int, positions: Positions) -> bytes:
    """One entry, in the form that CPython's compiler would choose."""
    line, end_line, start, end = positions
    if line is None:
        return _head(_NOWHERE, length)
    one_line = end_line is None or end_line == line
    if start is None or end is None:
        if one_line:
            return _head(_LINE_ONLY, length) + _signed(delta)
    elif one_line:
        if not delta and start < 80 and 0 <= end - start < 16:
            return _head(start >> 3, length) + bytes([(start & 7) << 4 | end - start])
        if 0 <= delta < 3 and start < 128 and end < 128:
            return _head(_ONE_LINE + delta, length) + bytes([start, end])
    rest = ((end_line or line) - line, *(0 if column is None else column + 1 for column in (start, end)))
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


def _read_signed(data: Iterator[int]) -> int:
    number = _read_little_endian(data)
    return -(number >> 1) if number & 1 else number >> 1


def _read_little_endian(data: Iterator[int]) -> int:
    number = shift = 0
    for byte in data:
        number |= (byte & 0x3F) << shift
        shift += 6
        if not byte & _MORE:
            break
    return number


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
