"""The pointwise operations: arity, dtype of the result, and how Triton writes them. One row each."""

from __future__ import annotations

from dataclasses import dataclass

import torch

HALVES = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Pointwise:
    """`triton` is a template over the operands; `bool_result` for comparisons; `cost` is about the number of
    instructions.

    Half types are computed in fp32 and rounded to the result's dtype, operation by operation, as eager does it.
    """

    arity: int
    triton: str
    bool_result: bool = False
    cost: int = 1


def _rows(arity: int, cost: int = 1, **templates: str) -> dict[str, Pointwise]:
    return {name: Pointwise(arity, text, cost=cost) for name, text in templates.items()}


TABLE: dict[str, Pointwise] = {
    **_rows(1, exp="tl.exp({0})", exp2="tl.exp2({0})", log="tl.log({0})", log2="tl.log2({0})", cost=4),
    **_rows(1, sqrt="math.sqrt({0})", rsqrt="math.rsqrt({0})", reciprocal="math.reciprocal({0})", cost=4),
    **_rows(1, sin="tl.sin({0})", cos="tl.cos({0})", erf="tl.erf({0})", sigmoid="math.sigmoid({0})", cost=10),
    **{
        name: Pointwise(1, f"math.{name}({{0}})", cost=15)
        for name in (
            "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "expm1", "log1p",
            "log10", "erfc", "lgamma", "erfinv",
        )
    },
    **_rows(1, floor="tl.floor({0})", ceil="tl.ceil({0})", round="math.nearbyint({0})", trunc="math.trunc({0})"),
    "neg": Pointwise(1, "-({0})"),
    "abs": Pointwise(1, "tl.abs({0})"),
    "bitwise_not": Pointwise(1, "~({0})"),
    "logical_not": Pointwise(1, "({0}) == 0", bool_result=True),
    "isnan": Pointwise(1, "({0}) != ({0})", bool_result=True),
    "isinf": Pointwise(1, "tl.abs({0}) == float('inf')", bool_result=True),
    "add": Pointwise(2, "({0}) + ({1})"),
    "sub": Pointwise(2, "({0}) - ({1})"),
    "mul": Pointwise(2, "({0}) * ({1})"),
    "div": Pointwise(2, "math.div({0}, {1})", cost=4),
    "floor_div": Pointwise(2, "math.floor_div({0}, {1})", cost=10),
    "trunc_div": Pointwise(2, "math.trunc_div({0}, {1})", cost=8),
    "remainder": Pointwise(2, "math.remainder({0}, {1})", cost=10),
    "fmod": Pointwise(2, "math.fmod({0}, {1})", cost=10),
    "pow": Pointwise(2, "math.pow({0}, {1})", cost=20),
    "atan2": Pointwise(2, "math.atan2({0}, {1})", cost=20),
    "copysign": Pointwise(2, "math.copysign({0}, {1})"),
    "maximum": Pointwise(2, "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)"),
    "minimum": Pointwise(2, "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)"),
    "fmax": Pointwise(2, "tl.maximum({0}, {1})"),
    "fmin": Pointwise(2, "tl.minimum({0}, {1})"),
    "and": Pointwise(2, "({0}) & ({1})"),
    "or": Pointwise(2, "({0}) | ({1})"),
    "xor": Pointwise(2, "({0}) ^ ({1})"),
    "shift_left": Pointwise(2, "({0}) << ({1})"),
    "shift_right": Pointwise(2, "({0}) >> ({1})"),
    **{
        name: Pointwise(2, f"({{0}}) {sign} ({{1}})", bool_result=True)
        for name, sign in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))
    },
    "where": Pointwise(3, "tl.where({0}, {1}, {2})"),
    "cast": Pointwise(1, ""),
    "bitcast": Pointwise(1, ""),
    "uniform": Pointwise(2, "math.uniform({0}, {1})", cost=60),
    "normal": Pointwise(2, "math.normal({0}, {1})", cost=90),
}


def result_dtype(name: str, dtypes: tuple[torch.dtype, ...]) -> torch.dtype:
    """The dtype of a result, for all operations but casts."""
    if TABLE[name].bool_result:
        return torch.bool
    if name in ("uniform", "normal"):
        return torch.float32
    return dtypes[-1]


def expected_dtypes(name: str, dtypes: tuple[torch.dtype, ...]) -> bool:
    """Whether operands of these dtypes fit together."""
    if name == "where":
        return dtypes[0] == torch.bool and dtypes[1] == dtypes[2]
    if name in ("uniform", "normal"):
        return dtypes == (torch.int64, torch.int64)
    return len(set(dtypes)) == 1
