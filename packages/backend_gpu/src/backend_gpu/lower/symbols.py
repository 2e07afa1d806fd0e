"""Symbolic sizes: from torch's to ours, and where their numbers are found in a call."""

from __future__ import annotations

from typing import Any

import torch

from dynacore import torch_api

from ..errors import Unsupported
from ..ir.index import UNBOUNDED, Expr, Index, add, bounds, div, mod, mul, total, var


def is_symbolic(value: Any) -> bool:
    """Whether a number isn't known before the call."""
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


class Symbols:
    """The symbols of one graph. `places` says for each which input, and which dimension (-1: itself), has it."""

    def __init__(self) -> None:
        self.places: dict[str, tuple[int, int]] = {}
        self.hints: dict[str, int] = {}

    def note_tensor(self, tensor: torch.Tensor, position: int) -> None:
        """Learn symbols from the sizes of an input."""
        for dimension, size in enumerate(tensor.shape):
            self._note(size, position, dimension)

    def note_number(self, value: Any, position: int) -> Index:
        """Learn a symbol from an input that is a number itself."""
        self._note(value, position, -1)
        return value if isinstance(value, int) else self.index(value)

    def _note(self, size: Any, position: int, dimension: int) -> None:
        if isinstance(size, torch.SymInt):
            expression = torch_api.sympy_expression(size)
            if expression.is_Symbol and str(expression) not in self.places:
                self.places[str(expression)] = (position, dimension)
                self.hints[str(expression)] = torch_api.hint(size)

    def index(self, value: Any) -> Index:
        """A symbolic number of torch's as an index."""
        if isinstance(value, int):
            return value
        if not isinstance(value, torch.SymInt):
            raise Unsupported(f"a symbolic {type(value).__name__}")
        return self._convert(torch_api.sympy_expression(value))

    def _convert(self, expression: Any) -> Index:
        if expression.is_Integer:
            return int(expression)
        if expression.is_Symbol:
            return symbol(str(expression))
        kind = type(expression).__name__
        parts = [self._convert(part) for part in expression.args]
        if expression.is_Add:
            return total(parts)
        if expression.is_Mul:
            result: Index = 1
            for part in parts:
                result = mul(result, part)
            return result
        if expression.is_Pow and isinstance(parts[1], int) and parts[1] > 0:
            return _power(parts[0], parts[1])
        if kind in ("FloorDiv", "CleanDiv"):
            return div(parts[0], parts[1])
        if kind in ("Mod", "PythonMod"):
            return mod(parts[0], parts[1])
        if kind == "Max":
            for part in parts:
                if all(bounds(add(part, mul(other, -1)))[0] >= 0 for other in parts):
                    return part
        raise Unsupported(f"a size that is a {kind}")


def _power(base: Index, exponent: int) -> Index:
    result: Index = 1
    for _ in range(exponent):
        result = mul(result, base)
    return result


def symbol(name: str) -> Expr:
    """The variable of a symbolic size: at least 2, since torch makes 0 and 1 constants."""
    return var(name, UNBOUNDED, 2)
