"""Index expressions, numbers and dtypes as Triton source."""

from __future__ import annotations

import math

import torch

from ..ir.index import Atom, Div, Expr, Index, Mod, Var
from ..ir.nodes import Guard

TYPES = {
    torch.float32: "tl.float32", torch.float64: "tl.float64", torch.float16: "tl.float16",
    torch.bfloat16: "tl.bfloat16", torch.bool: "tl.int1", torch.int8: "tl.int8", torch.int16: "tl.int16",
    torch.int32: "tl.int32", torch.int64: "tl.int64", torch.uint8: "tl.uint8",
}  # fmt: skip
POINTERS = {
    torch.float32: "*fp32", torch.float64: "*fp64", torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.bool: "*i1",
    torch.int8: "*i8", torch.int16: "*i16", torch.int32: "*i32", torch.int64: "*i64", torch.uint8: "*u8",
}  # fmt: skip


def number(value: bool | int | float, dtype: torch.dtype) -> str:
    """A constant. What would lose digits as a plain literal, or has no other operand to take a type from, is typed."""
    if isinstance(value, float) and not math.isfinite(value):
        text = f'float("{value}")'
    else:
        text = repr(value)
    if dtype == torch.bfloat16 and value:
        return typed_number(value, dtype)
    if dtype in (torch.float64, torch.int64) and not (isinstance(value, int) and abs(value) < 2**31):
        return f"tl.full([], {text}, {TYPES[dtype]})"
    return text


def typed_number(value: bool | int | float, dtype: torch.dtype) -> str:
    """A constant that has its dtype whatever stands beside it. Triton's interpreter makes none of bf16."""
    if dtype == torch.bfloat16:
        return f"{typed_number(value, torch.float32)}.to(tl.bfloat16)"
    text = f'float("{value}")' if isinstance(value, float) and not math.isfinite(value) else repr(value)
    return f"tl.full([], {text}, {TYPES[dtype]})"


class IndexText:
    """Writes index expressions; `names` gives the source of variables, and of parts that were given a name."""

    def __init__(self, names: dict[str, str]):
        self.names = names
        self.parts: dict[Atom, str] = {}

    def write(self, index: Index) -> str:
        """An index as Triton source."""
        if isinstance(index, int):
            return str(index)
        terms = []
        for monomial, c in sorted(index.terms.items(), key=lambda item: (not item[0], str(item[0]))):
            factors = [self.atom(atom) for atom in monomial]
            if not factors:
                terms.append(str(c))
            elif c == -1:
                terms.append("-" + "*".join(factors))
            else:
                terms.append("*".join([*([str(c)] if c != 1 else []), *factors]))
        return " + ".join(terms).replace("+ -", "- ")

    def atom(self, atom: Atom) -> str:
        """One factor."""
        if atom in self.parts:
            return self.parts[atom]
        if isinstance(atom, Var):
            return self.names.get(atom.name, atom.name)
        assert isinstance(atom, (Div, Mod))
        sign = "//" if isinstance(atom, Div) else "%"
        return f"({self._wrapped(atom.value)} {sign} {self._wrapped(atom.by)})"

    def _wrapped(self, index: Index) -> str:
        text = self.write(index)
        return text if isinstance(index, int) or (isinstance(index, Expr) and index.is_atom()) else f"({text})"

    def condition(self, guards: tuple[Guard, ...]) -> list[str]:
        """The conditions of guards, those left out that the range of an expression makes true."""
        from ..ir.index import bounds

        texts = []
        for expr, low, high in guards:
            least, most = bounds(expr)
            if not (isinstance(low, int) and least >= low):
                texts.append(f"({self.write(expr)} >= {self.write(low)})")
            if not (isinstance(high, int) and most < high):
                texts.append(f"({self.write(expr)} < {self.write(high)})")
        return texts
