"""Lowerings of pointwise operations, casts and tensors made of one number."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..ir.index import Expr
from ..ir.nodes import Node, dims
from .registry import Lower, NotLowered, computed, lowers, named, prims

UNARY_FLOAT = (
    "exp", "exp2", "log", "log2", "log10", "log1p", "expm1", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "sigmoid", "lgamma", "erfinv",
)  # fmt: skip
UNARY_SAME = ("neg", "abs", "bitwise_not")
ROUNDING = ("floor", "ceil", "round", "trunc")
BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "maximum": "maximum", "minimum": "minimum", "fmax": "fmax",
    "fmin": "fmin", "remainder": "remainder", "fmod": "fmod", "atan2": "atan2", "copysign": "copysign",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "bitwise_left_shift": "shift_left",
    "bitwise_right_shift": "shift_right",
}  # fmt: skip
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def _register_unary(name: str, op: str, floats: bool) -> None:
    @lowers(*named(name))
    def lowering(b: Lower, x: Node, **_: Any) -> Node:
        dtype = b.out_dtype if floats else x.dtype
        return b.pointwise(op, b.operand(x, dtype))


for _name in UNARY_FLOAT:
    _register_unary(_name, _name, True)
for _name in UNARY_SAME:
    _register_unary(_name, _name, False)


def _register_rounding(name: str) -> None:
    @lowers(*[overload for overload in named(name) if "decimals" not in str(overload)])
    def lowering(b: Lower, x: Node) -> Node:
        return b.pointwise(name, x) if x.dtype.is_floating_point else x


for _name in ROUNDING:
    _register_rounding(_name)


def _register_binary(name: str, op: str) -> None:
    @lowers(*named(name), *(named(name, prims) if name in ("add", "sub", "mul", "maximum", "minimum") else []))
    def lowering(b: Lower, x: Any, y: Any, alpha: Any = 1) -> Node:
        dtype = b.out_dtype
        right = b.operand(y, dtype)
        if alpha != 1:
            right = b.pointwise("mul", right, b.const(alpha, dtype, right.shape))
        if dtype == torch.bool and op in ("add", "mul", "maximum", "minimum"):
            return b.pointwise("or" if op in ("add", "maximum") else "and", b.operand(x, dtype), right)
        return b.pointwise(op, b.operand(x, dtype), right)


for _name, _op in BINARY.items():
    _register_binary(_name, _op)


def _register_comparison(name: str) -> None:
    @lowers(*named(name), *named(name, prims))
    def lowering(b: Lower, x: Any, y: Any) -> Node:
        dtype = b.common_dtype(*b.fake_arguments[:2])
        if dtype == torch.bool:
            dtype = torch.int8
        return b.pointwise(name, b.operand(x, dtype), b.operand(y, dtype))


for _name in COMPARISONS:
    _register_comparison(_name)


@lowers(*named("div"), *named("true_divide"), *named("div", prims))
def div(b: Lower, x: Any, y: Any, rounding_mode: str | None = None) -> Node:
    dtype = b.out_dtype
    op = {None: "div", "floor": "floor_div", "trunc": "trunc_div"}[rounding_mode]
    if b.val is not None and not dtype.is_floating_point and op == "div":
        op = "trunc_div"  # prims.div of integers
    return b.pointwise(op, b.operand(x, dtype), b.operand(y, dtype))


@lowers(*named("floor_divide"))
def floor_divide(b: Lower, x: Any, y: Any) -> Node:
    return b.pointwise("floor_div", b.operand(x, b.out_dtype), b.operand(y, b.out_dtype))


@lowers(*named("pow"))
def power(b: Lower, x: Any, y: Any) -> Node:
    dtype = b.out_dtype
    if isinstance(y, (int, float)) and not isinstance(y, bool):
        base = b.operand(x, dtype)
        if y == 0:
            return b.const(1, dtype, base.shape)
        if y == 1:
            return base
        if y == 0.5 and dtype.is_floating_point:
            return b.pointwise("sqrt", base)
        if y == -0.5 and dtype.is_floating_point:
            return b.pointwise("rsqrt", base)
        if y == -1 and dtype.is_floating_point:
            return b.pointwise("reciprocal", base)
        if y in (2, 3):
            wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
            wide_base = b.cast(base, wide)
            square = b.pointwise("mul", wide_base, wide_base)
            return b.cast(square if y == 2 else b.pointwise("mul", square, wide_base), dtype)
    if not dtype.is_floating_point:
        return _integer_power(b, b.operand(x, dtype), b.operand(y, dtype), y if isinstance(y, int) else None)
    return b.pointwise("pow", b.operand(x, dtype), b.operand(y, dtype))


def _integer_power(b: Lower, base: Node, exponent: Node, known: int | None) -> Node:
    """By squaring. Negative exponents leave something of 1 and -1 alone."""
    dtype, shape = base.dtype, base.shape
    computed(base)
    if dtype == torch.bool:
        raise NotLowered("powers of flags")
    zero, one = b.const(0, dtype, shape), b.const(1, dtype, shape)
    result, square = one, base
    bits = known.bit_length() if known is not None else 8 * dtype.itemsize - (dtype != torch.uint8)
    for bit in range(bits):
        if known is None:
            bit_set = b.pointwise("ne", b.pointwise("and", exponent, b.const(1 << bit, dtype, shape)), zero)
            result = b.pointwise("where", bit_set, b.pointwise("mul", result, square), result)
        elif known >> bit & 1:
            result = b.pointwise("mul", result, square)
        square = b.pointwise("mul", square, square)
    if known is not None or dtype == torch.uint8:
        return result
    minus = b.const(-1, dtype, shape)
    odd = b.pointwise("ne", b.pointwise("and", exponent, one), zero)
    of_minus = b.pointwise("where", odd, minus, one)
    rest = b.pointwise("where", b.pointwise("eq", base, minus), of_minus, zero)
    rest = b.pointwise("where", b.pointwise("eq", base, one), one, rest)
    return b.pointwise("where", b.pointwise("lt", exponent, zero), rest, result)


@lowers(*named("logical_not"))
def logical_not(b: Lower, x: Node) -> Node:
    return b.pointwise("logical_not", x)


def _register_logical(name: str, op: str) -> None:
    @lowers(*named(name))
    def lowering(b: Lower, x: Any, y: Any) -> Node:
        return b.pointwise(op, b.operand(x, torch.bool), b.operand(y, torch.bool))


for _name, _op in (("logical_and", "and"), ("logical_or", "or"), ("logical_xor", "xor")):
    _register_logical(_name, _op)


@lowers(*named("isnan"))
def isnan(b: Lower, x: Node) -> Node:
    return b.pointwise("isnan", x) if x.dtype.is_floating_point else b.const(False, torch.bool, x.shape)


@lowers(*named("isinf"))
def isinf(b: Lower, x: Node) -> Node:
    return b.pointwise("isinf", x) if x.dtype.is_floating_point else b.const(False, torch.bool, x.shape)


@lowers(*named("relu"))
def relu(b: Lower, x: Node) -> Node:
    return b.pointwise("maximum", x, b.const(0, x.dtype, x.shape))


@lowers(*named("sign"), *named("sgn"))
def sign(b: Lower, x: Node) -> Node:
    if x.dtype == torch.bool:
        return x
    zero, one = b.const(0, x.dtype, x.shape), b.const(1, x.dtype, x.shape)
    minus = zero if x.dtype == torch.uint8 else b.const(-1, x.dtype, x.shape)
    negative = b.pointwise("where", b.pointwise("lt", x, zero), minus, zero)
    if x.dtype.is_floating_point:
        negative = b.pointwise("where", b.pointwise("isnan", x), x, negative)
        zero_or = b.pointwise("where", b.pointwise("gt", x, zero), one, negative)
        return b.pointwise("where", b.pointwise("isnan", x), zero, zero_or)
    return b.pointwise("where", b.pointwise("gt", x, zero), one, negative)


@lowers(*named("where"))
def where(b: Lower, condition: Node, x: Any = None, y: Any = None) -> Node:
    if x is None:
        raise NotLowered("where with one argument")
    dtype = b.out_dtype
    return b.pointwise("where", b.operand(condition, torch.bool), b.operand(x, dtype), b.operand(y, dtype))


@lowers(*named("clamp"), *named("clamp_min"), *named("clamp_max"))
def clamp(b: Lower, x: Node, min: Any = None, max: Any = None, **_: Any) -> Node:
    dtype = b.out_dtype
    result = b.operand(x, dtype)
    if min is not None:
        result = b.pointwise("maximum", result, b.operand(min, dtype))
    if max is not None:
        result = b.pointwise("minimum", result, b.operand(max, dtype))
    return result


@lowers(*named("clamp_max"))
def clamp_max(b: Lower, x: Node, max: Any) -> Node:
    return clamp(b, x, None, max)


@lowers(*named("_to_copy"))
def to_copy(b: Lower, x: Node, dtype: Any = None, device: Any = None, layout: Any = None, **_: Any) -> Node:
    if layout not in (None, torch.strided) or b.val.device != b.device or b.fake_arguments[0].device != b.device:
        raise NotLowered("a copy between devices or layouts")
    return b.cast(x, b.out_dtype)


@lowers(*named("convert_element_type", prims))
def convert_element_type(b: Lower, x: Node, dtype: torch.dtype) -> Node:
    return b.cast(x, dtype)


@lowers(*named("clone"), *named("alias"), *named("detach"), *named("lift_fresh_copy"), *named("contiguous"))
def clone(b: Lower, x: Node, **_: Any) -> Node:
    return x


@lowers(*named("full"), *named("scalar_tensor"))
def full(b: Lower, *arguments: Any, **_: Any) -> Node:
    return b.operand(arguments[-1], b.out_dtype)


@lowers(*named("full_like"), *named("new_full"))
def full_like(b: Lower, *arguments: Any, **_: Any) -> Node:
    return b.operand(arguments[-1], b.out_dtype)


def _register_filled(name: str, value: int) -> None:
    @lowers(*named(name))
    def lowering(b: Lower, *_: Any, **__: Any) -> Node:
        return b.const(value, b.out_dtype, b.out_shape())


for _prefix, _value in (("zeros", 0), ("ones", 1), ("empty", 0)):
    for _name in (_prefix, f"{_prefix}_like", f"new_{_prefix}", f"{_prefix}_strided", f"new_{_prefix}_strided"):
        if _name not in ("ones_strided", "zeros_strided"):
            _register_filled(_name, _value)


@lowers(*named("empty_permuted"))
def empty_permuted(b: Lower, *_: Any, **__: Any) -> Node:
    return b.const(0, b.out_dtype, b.out_shape())


@lowers(*named("iota", prims))
def iota(b: Lower, length: Any, *, start: Any, step: Any, dtype: torch.dtype, **_: Any) -> Node:
    (i,) = dims(b.out_shape())
    return b.index(start + i * step, b.out_shape(), dtype)


@lowers(*named("arange"))
def arange(b: Lower, *arguments: Any, step: Any = None, **_: Any) -> Node:
    start, _, by = {1: (0, *arguments, 1), 2: (*arguments, 1), 3: arguments}[len(arguments)]
    by = by if step is None else step
    (i,) = dims(b.out_shape())
    if all(isinstance(value, (int, Expr)) for value in (start, by)):
        return b.index(start + i * by, b.out_shape(), b.out_dtype)
    wide = torch.float64 if b.out_dtype == torch.float64 else torch.float32
    scaled = b.pointwise("mul", b.index(i, b.out_shape(), wide), b.operand(by, wide))
    return b.cast(b.pointwise("add", scaled, b.operand(start, wide)), b.out_dtype)


@lowers(*named("fill"))
def fill(b: Lower, x: Node, value: Any) -> Node:
    return b.operand(value, b.out_dtype)


@lowers(*named("copy"))
def copy(b: Lower, x: Node, source: Node, non_blocking: bool = False) -> Node:
    return b.operand(source, x.dtype, x.shape)


@lowers(*named("gelu"))
def gelu(b: Lower, x: Node, approximate: str = "none") -> Node:
    """In one piece, rounded once: eager does so, too."""
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    wide = b.cast(x, dtype)

    def number(value: float) -> Node:
        return b.const(value, dtype, x.shape)

    half = b.pointwise("mul", number(0.5), wide)
    if approximate == "tanh":
        cube = b.pointwise("mul", b.pointwise("mul", wide, wide), wide)
        inner = b.pointwise("add", wide, b.pointwise("mul", number(0.044715), cube))
        curve = b.pointwise("tanh", b.pointwise("mul", number(math.sqrt(2 / math.pi)), inner))
    else:
        curve = b.pointwise("erf", b.pointwise("mul", wide, number(math.sqrt(0.5))))
    return b.cast(b.pointwise("mul", half, b.pointwise("add", number(1.0), curve)), x.dtype)


@lowers(*named("silu"))
def silu(b: Lower, x: Node) -> Node:
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    wide = b.cast(x, dtype)
    computed(x)
    return b.cast(b.pointwise("mul", wide, b.pointwise("sigmoid", wide)), x.dtype)
