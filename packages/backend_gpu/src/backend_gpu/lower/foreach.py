"""Operations over lists of tensors, as optimizers use them: each by itself; the schedule puts them side by side."""

from __future__ import annotations

from typing import Any

from ..ir.nodes import Node
from . import pointwise
from .registry import LOWERINGS, Lower, computed, lowers, named

LOADED = (pointwise,)
PLAIN = (
    "add", "sub", "mul", "div", "maximum", "minimum", "pow", "clamp_min", "clamp_max", "sqrt", "rsqrt", "neg", "abs",
    "exp", "log", "reciprocal", "sigmoid", "tanh", "sign", "erf", "sin", "cos", "floor", "ceil", "round", "trunc",
)  # fmt: skip


def _fused(b: Lower, base: Any, first: Any, second: Any, value: Any, op: str) -> Node:
    """`base + value * (first op second)`, rounded as eager rounds it: once for half types."""
    dtype = b.out_dtype
    computed(base)
    scaled = b.pointwise(op, b.operand(first, dtype), b.operand(second, dtype))
    if value != 1:
        scaled = b.pointwise("mul", scaled, b.operand(value, dtype))
    return b.pointwise("add", b.operand(base, dtype), scaled)


def addcmul(b: Lower, base: Any, first: Any, second: Any, value: Any = 1) -> Node:
    """`base + value * first * second`."""
    return _fused(b, base, first, second, value, "mul")


def addcdiv(b: Lower, base: Any, first: Any, second: Any, value: Any = 1) -> Node:
    """`base + value * first / second`."""
    return _fused(b, base, first, second, value, "div")


def lerp(b: Lower, start: Any, end: Any, weight: Any) -> Node:
    """`start + weight * (end - start)`, from the nearer end."""
    dtype = b.out_dtype
    first, last, share = b.operand(start, dtype), b.operand(end, dtype), b.operand(weight, dtype)
    way = b.pointwise("sub", last, first)
    near = b.pointwise("add", first, b.pointwise("mul", share, way))
    rest = b.pointwise("sub", b.const(1, dtype, share.shape), share)
    far = b.pointwise("sub", last, b.pointwise("mul", rest, way))
    size = b.pointwise("abs", share)
    return b.pointwise("where", b.pointwise("lt", size, b.const(0.5, dtype, size.shape)), near, far)


def _register(name: str, function: Any) -> None:
    for overload in named(f"_foreach_{name}"):

        @lowers(overload)
        def lowering(b: Lower, *arguments: Any, **keywords: Any) -> list[Node]:
            results, fakes, val = [], b.fake_arguments, b.val
            for position, one in enumerate(val):
                b.val = one
                b.fake_arguments = tuple(_item(value, position) for value in fakes)
                mine = [_item(value, position) for value in arguments]
                results.append(function(b, *mine, **{key: _item(v, position) for key, v in keywords.items()}))
            b.val, b.fake_arguments = val, fakes
            return results


def _item(value: Any, position: int) -> Any:
    return value[position] if isinstance(value, (list, tuple)) else value


for _name in PLAIN:
    _overloads = [overload for overload in named(_name) if overload in LOWERINGS]
    if _overloads:
        _register(_name, LOWERINGS[_overloads[0]])
for _name, _function in (("addcmul", addcmul), ("addcdiv", addcdiv), ("lerp", lerp)):
    _register(_name, _function)


@lowers(*named("_foreach_copy"))
def foreach_copy(b: Lower, into: list[Node], values: list[Node], non_blocking: bool = False) -> list[Node]:
    return [b.expand(b.cast(value, x.dtype), x.shape) for x, value in zip(into, values)]
