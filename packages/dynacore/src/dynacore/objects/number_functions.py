"""Functions of numbers that needn't be known while capturing: where a function can't fail, the entry calls it.

Each has the condition under which it gives a number of the same type as in the captured call, and raises nothing. A
guard holds every call to that condition; where the captured call itself doesn't meet it, the numbers are specialised.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import torch

ALWAYS = ""
FINITE = "-1e300 <= {0} <= 1e300"  # an int beyond is no float
KNOWN_AS_FLOAT = "not 1e300 < abs({0}) < inf"  # infinite, NaN, or finite as above
POWER = (
    "(0 <= {0} <= 1 and 0 <= {1} <= 1e300"
    " or 1e-100 <= {0} <= 1e100 and -3 <= {1} <= 3"
    " or -1e100 <= {0} <= 1e100 and {1} in (1, 2, 3))"
)

Row = tuple[Any, str, str]
"""A function, how the entry computes it, and when it can."""


def math_functions(names: str, domain: str) -> list[Row]:
    """Rows for functions of one number."""
    return [(getattr(math, name), f"math.{name}({{0}})", domain) for name in names.split()]


def table(*rows: Row) -> dict[tuple[Any, int], tuple[str, str]]:
    """The rows by function and number of arguments."""
    return {(function, text.count("{")): (text, domain) for function, text, domain in rows}


ON_NUMBERS = table(
    *math_functions("floor ceil trunc fabs sin cos tan atan tanh asinh erf erfc degrees radians", FINITE),
    *math_functions("isnan isinf isfinite", KNOWN_AS_FLOAT),
    *math_functions("sqrt", "0 <= {0} <= 1e300"),
    *math_functions("log log2 log10", "0 < {0} <= 1e300"),
    *math_functions("log1p", "-1 < {0} <= 1e300"),
    *math_functions("exp expm1 sinh cosh", "-700 <= {0} <= 700"),
    (int, "int({0})", FINITE),
    (float, "float({0})", FINITE),
    (abs, "abs({0})", ALWAYS),
    (round, "round({0})", FINITE),
    (round, "round({0}, {1})", f"{FINITE} and -300 <= {{1}} <= 300"),
    (float.is_integer, "float.is_integer({0})", ALWAYS),
)
ON_INTS = table(
    *math_functions("isqrt", "0 <= {0}"),
    (math.gcd, "math.gcd({0}, {1})", ALWAYS),
    (math.lcm, "math.lcm({0}, {1})", ALWAYS),
    (int.bit_length, "int.bit_length({0})", ALWAYS),
    (int.bit_count, "int.bit_count({0})", ALWAYS),
    (int.__index__, "int({0})", ALWAYS),
    (bin, "bin({0})", ALWAYS),
    (hex, "hex({0})", ALWAYS),
    (oct, "oct({0})", ALWAYS),
    (chr, "chr({0})", "0 <= {0} < 0x110000"),
    (operator.lshift, "({0} << {1})", "0 <= {1} <= 4096"),
    (operator.rshift, "({0} >> {1})", "0 <= {1}"),
    (operator.pow, "({0} ** {1})", "0 <= {1} <= 4096"),
)
#: where one of the numbers is a float
ON_FLOATS = table((operator.pow, "({0} ** {1})", POWER))
#: by what an entry runs: what a graph runs, in a form that takes torch's symbols too where there is one
IN_GRAPHS = {
    text: function
    for rows in (ON_NUMBERS, ON_INTS, ON_FLOATS)
    for (function, _), (text, _) in rows.items()
    if getattr(function, "__module__", "") in ("math", "builtins", "_operator")
} | {"float({0})": torch.sym_float, "int({0})": torch.sym_int, "abs({0})": operator.abs}


def function_of(text: str) -> Any:
    """What computes a function of numbers in a graph; None for what isn't one of these."""
    return IN_GRAPHS.get(text)


def how_to_call(function: Any, numbers: list[Any]) -> tuple[str, str] | None:
    """How an entry calls `function` on numbers of these types, and when it can; None where it isn't known to."""
    key = function, len(numbers)
    try:
        return ON_NUMBERS.get(key) or (ON_FLOATS if float in map(type, numbers) else ON_INTS).get(key)
    except TypeError:  # not hashable
        return None


def can_call(condition: str, numbers: list[Any]) -> bool:
    """Whether the condition holds of these numbers."""
    return condition == ALWAYS or eval(condition.format(*map(repr, numbers)), {"inf": math.inf, "nan": math.nan})


__all__ = ["ALWAYS", "FINITE", "can_call", "function_of", "how_to_call"]
