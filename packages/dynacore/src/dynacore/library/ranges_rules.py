"""range: one whose bounds vary is an expression until its numbers are asked for."""

from __future__ import annotations

from typing import Any

from ..values import FALSE, Const, Host, Value
from .registry import rule


@rule(range)
def range_call(m: Any, *bounds: Value) -> Value:
    ints = len(bounds) in (1, 2, 3) and all(m.is_number(v) and v.cls is int for v in bounds)
    has_step = len(bounds) < 3 or type(bounds[2]) is Const and bounds[2].value != 0
    if ints and has_step and Host in map(type, bounds):
        return m.host(f"range({', '.join(['{}'] * len(bounds))})", bounds, range(*map(m.example_of, bounds)))
    return m.fold(range, list(bounds), {})


def parts(m: Any, numbers: Value) -> tuple[Value, Value, int]:
    """Where a range begins and ends, and its step."""
    if type(numbers) is not Host:
        real = m.constant_of(numbers)
        return Const(real.start), Const(real.stop), real.step
    bounds = numbers.operands
    start, stop = bounds[:2] if len(bounds) > 1 else (Const(0), bounds[0])
    return start, stop, m.example_of(bounds[2]) if len(bounds) > 2 else 1


@rule(range.__len__)
def range_len(m: Any, numbers: Value, /) -> Value:
    if type(numbers) is not Host:
        return m.fold(range.__len__, [numbers], {})
    start, stop, step = parts(m, numbers)
    way = m.binary("-", stop, start, False) if step > 0 else m.binary("-", start, stop, False)
    steps = m.binary("//", m.binary("+", way, Const(abs(step) - 1), False), Const(abs(step)), False)
    return m.host_binary("max", Const(0), steps) if type(steps) is Host else Const(max(0, steps.value))


@rule(range.__contains__)
def range_contains(m: Any, numbers: Value, item: Value, /) -> Value:
    start, stop, step = parts(m, numbers)
    if step != 1 or item.cls is not int or Host not in (type(numbers), type(item)):
        return m.fold(range.__contains__, [numbers, m.settle(item)], {})
    after = m.compare(">=", item, start)
    return m.compare("<", item, stop) if m.decide_if_open(after) else FALSE
