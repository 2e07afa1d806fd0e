"""Symbolic sizes: from torch's to ours, and where their numbers are found in a call."""

from __future__ import annotations

from typing import Any

import torch

from dynacore import torch_api

from ..errors import Unsupported
from ..ir.build import Builder
from ..ir.index import UNBOUNDED, Expr, Index, Var, add, bounds, div, mod, mul, product, total
from ..ir.nodes import Node, Place


def is_symbolic(value: Any) -> bool:
    """Whether a number isn't known before the call."""
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


class Symbols:
    """The symbols of one graph: torch's, and one for each size that no index expresses, computed before the kernels."""

    def __init__(self) -> None:
        self._known: dict[str, Var] = {}
        self._computed: dict[Any, str] = {}
        self._shown: list[tuple[Index, Place]] = []
        """What inputs show: numbers, and sizes of tensors."""
        self._of: Any = None

    def note_tensor(self, tensor: torch.Tensor, position: int) -> None:
        """Learn what an input shows."""
        for dimension, value in enumerate(tensor.shape):
            if isinstance(value, torch.SymInt):
                self._shown.append((self.index(value), Place(position, f".shape[{dimension}]")))

    def note_number(self, value: Any, position: int) -> Index:
        """Learn from an input that is a number itself."""
        index = self.index(value)
        self._shown.append((index, Place(position)))
        return index

    def places(self) -> dict[str, Place]:
        """Where the numbers are found, each behind those that it takes. What can't be found isn't among them."""
        found: dict[str, Place] = {}
        for value, place in self._shown:
            if isinstance(value, Expr) and value.is_atom() and str(value) in self._known:
                found.setdefault(str(value), place)
        for expression, name in self._computed.items():
            if name not in found and all(str(s) in found for s in expression.free_symbols):
                found[name] = Place(formula=torch_api.source_of(expression))
        return found

    def index(self, value: Any) -> Index:
        """A symbolic number of torch's as an index."""
        if isinstance(value, int):
            return value
        if not isinstance(value, torch.SymInt):
            raise Unsupported(f"a symbolic {type(value).__name__}")
        self._of = value
        return self._convert(torch_api.sympy_expression(value))

    def _convert(self, expression: Any) -> Index:
        if expression.is_Integer:
            return int(expression)
        if expression.is_Symbol:
            return self._symbol(str(expression), expression)
        parts = [self._convert(part) for part in expression.args if part.is_integer]
        made = _arithmetic(expression, parts) if len(parts) == len(expression.args) else None
        if made is not None:
            return made
        if not expression.is_integer:
            raise Unsupported(f"a size that is {expression}")
        name = self._computed.setdefault(expression, f"s_{len(self._computed)}")
        return self._symbol(name, expression)

    def _symbol(self, name: str, expression: Any) -> Expr:
        """The variable of a number that isn't known before the call, with the least value that it is known to have."""
        if not name.startswith("s"):
            raise Unsupported(f"the number {name}, which depends on data")
        if name not in self._known:
            low = torch_api.least(self._of, expression)
            self._known[name] = Var(name, UNBOUNDED, -UNBOUNDED if low is None else max(low, -UNBOUNDED))
        return Expr({(self._known[name],): 1})

    def number(self, b: Builder, value: Any) -> Index | Node:
        """A symbolic number: an int as an index, a float as a tensor without dimensions."""
        if not isinstance(value, torch.SymFloat):
            return self.index(value)
        self._of = value
        return self._float(b, torch_api.sympy_expression(value))

    def _float(self, b: Builder, expression: Any) -> Node:
        kind = type(expression).__name__
        if kind == "ToFloat":
            (expression,) = expression.args
        if expression.is_integer:
            return b.index(self._convert(expression), (), torch.float64)
        if expression.is_number:
            return b.const(float(expression), torch.float64)
        if kind not in FLOATS:
            raise Unsupported(f"a number that is {expression}")
        first, *rest = (self._float(b, part) for part in expression.args)
        for other in rest:
            first = b.pointwise(FLOATS[kind], first, other)
        return first


FLOATS = {"Add": "add", "Mul": "mul", "IntTrueDiv": "div", "FloatTrueDiv": "div", "Max": "maximum", "Min": "minimum"}
"""Operations of symbolic floats."""


def _arithmetic(expression: Any, parts: list[Index]) -> Index | None:
    """An operation of torch's on indices, if indices have it."""
    kind = type(expression).__name__
    if expression.is_Add:
        return total(parts)
    if expression.is_Mul:
        return product(parts)
    if expression.is_Pow and isinstance(parts[1], int) and parts[1] > 0:
        return product([parts[0]] * parts[1])
    if kind in ("FloorDiv", "CleanDiv") and bounds(parts[1])[0] > 0:
        return div(parts[0], parts[1])
    if kind in ("Mod", "PythonMod") and bounds(parts[1])[0] > 0:
        return mod(parts[0], parts[1])
    if kind == "Max":
        for part in parts:
            if all(bounds(add(part, mul(other, -1)))[0] >= 0 for other in parts):
                return part
    return None
