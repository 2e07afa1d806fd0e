"""Relations between integers as small programs, which C evaluates without calling Python.

A program is a flat tuple of (step, operand) pairs in postfix order: `LOAD` pushes one of the check's handed objects,
`CONST` a number, all others combine the two numbers on top. The relation holds when what is left isn't 0. What isn't
an int, or leaves the range of 64 bits on the way, makes it fail.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..sources import Source
from ..values import Const, Host, Value

LOAD, CONST, ADD, SUB, MUL, DIV, MOD, LT, LE, EQ, NE, MIN, MAX = range(13)

FUNCTIONS: dict[int, Callable[[int, int], int]] = {
    ADD: operator.add, SUB: operator.sub, MUL: operator.mul, DIV: operator.floordiv, MOD: operator.mod,
    LT: operator.lt, LE: operator.le, EQ: operator.eq, NE: operator.ne, MIN: min, MAX: max,
}  # fmt: skip
SYMBOLS = {
    "+": ADD, "-": SUB, "*": MUL, "//": DIV, "%": MOD, "<": LT, "<=": LE, "==": EQ, "!=": NE, "min": MIN, "max": MAX,
}  # fmt: skip
#: comparisons by the one with its operands exchanged
EXCHANGED = {">": "<", ">=": "<="}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
MAX_STACK = 32
WORD = 1 << 63


class Program(tuple):
    """The steps, and what they say in the program's own words: all of it, and the numbers that it is about."""

    text: str = ""
    names: str = ""

    def __repr__(self) -> str:
        return self.text


class Inexpressible(Exception):
    """The relation isn't one of integers."""


def program(condition: Value, outcome: Any) -> tuple[Program, list[Source]] | None:
    """The program of "`condition` comes out as `outcome`" and what it loads; None where it isn't one of integers."""
    writer = _Writer()
    try:
        text = writer.condition(condition, outcome)
    except Inexpressible:
        return None
    made = Program(writer.steps)
    made.text = text
    made.names = ", ".join(dict.fromkeys(map(str, writer.leaves)))
    return made, writer.leaves


class _Writer:
    def __init__(self) -> None:
        self.steps: list[int] = []
        self.leaves: list[Source] = []
        self.depth = 0

    def condition(self, value: Value, outcome: Any) -> str:
        """The steps of a comparison, or of a number's comparison with what it was."""
        if type(value) is Host and value.text == "bool({})":
            return self.condition(value.operands[0], outcome)
        if type(value) is Host and value.cls is bool and type(outcome) is bool:
            symbol = value.symbol
            if symbol not in OPPOSITE:
                raise Inexpressible
            return self.comparison(symbol if outcome else OPPOSITE[symbol], *value.operands)
        if type(outcome) is int:
            return self.comparison("==", value, Const(outcome))
        raise Inexpressible

    def comparison(self, symbol: str, a: Value, b: Value) -> str:
        """The steps of a comparison; what is symmetric is told in alphabetical order."""
        if symbol in ("==", "!=") and a.source is not None and b.source is not None and str(b.source) < str(a.source):
            a, b = b, a
        if symbol in EXCHANGED:
            right, left = self.number(b), self.number(a)
            self.add(SYMBOLS[EXCHANGED[symbol]])
        else:
            left, right = self.number(a), self.number(b)
            self.add(SYMBOLS[symbol])
        return f"{bare(left)} {symbol} {bare(right)}"

    def number(self, value: Any) -> str:
        """The steps of an int; gives its text."""
        if type(value) is Const and type(value.value) is int and -WORD <= value.value < WORD:
            self.add(CONST, value.value)
            return str(value.value)
        if type(value) is not Host or value.cls is not int:
            raise Inexpressible
        if value.source is not None:
            if value.source not in self.leaves:
                self.leaves.append(value.source)
            self.add(LOAD, self.leaves.index(value.source))
            return str(value.source)
        symbol = value.symbol
        if symbol not in SYMBOLS:
            raise Inexpressible
        left, right = self.number(value.operands[0]), self.number(value.operands[1])
        self.add(SYMBOLS[symbol])
        return f"{symbol}({bare(left)}, {bare(right)})" if symbol.isalpha() else f"({left} {symbol} {right})"

    def add(self, step: int, operand: int = 0) -> None:
        """Append a step."""
        self.steps += (step, operand)
        self.depth += 1 if step in (LOAD, CONST) else -1
        if self.depth > MAX_STACK:
            raise Inexpressible


def bare(text: str) -> str:
    """An expression without the parentheses around all of it."""
    return text[1:-1] if text.startswith("(") else text


def is_program(steps: tuple, n_loaded: int) -> bool:
    """Whether C would take the steps for a program over so many objects."""
    if len(steps) % 2 or not all(type(number) is int and -WORD <= number < WORD for number in steps):
        return False
    depth = 0
    for kind, operand in zip(steps[::2], steps[1::2], strict=True):
        if not LOAD <= kind <= MAX or kind == LOAD and not 0 <= operand < n_loaded:
            return False
        depth += 1 if kind in (LOAD, CONST) else -1
        if not 1 <= depth <= MAX_STACK:
            return False
    return depth == 1


def holds(steps: Sequence[int], loaded: Sequence[Any]) -> bool:
    """Whether a program holds of these objects: the twin of what C does."""
    stack: list[int] = []
    for kind, operand in zip(steps[::2], steps[1::2], strict=True):
        if kind == CONST:
            stack.append(operand)
        elif kind == LOAD:
            if type(loaded[operand]) is not int:
                return False
            stack.append(loaded[operand])
        else:
            right, left = stack.pop(), stack.pop()
            if right == 0 and kind in (DIV, MOD) or (left == -WORD and right == -1 and kind in (DIV, MOD)):
                return False
            stack.append(int(FUNCTIONS[kind](left, right)))
        if not -WORD <= stack[-1] < WORD:
            return False
    return bool(stack[-1])
