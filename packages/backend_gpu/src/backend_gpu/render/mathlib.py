"""Functions that Triton's language lacks, or has in a form that rounds otherwise than eager does.

Kernels name them `math.<name>`. Compiled, they are Triton code over the vendor's device library. The interpreter has no
device library; there the same names compute with NumPy, so that what is tested under it is everything but the library.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math as _math
from typing import Any

import triton
import triton.language as tl

INTERPRETED = type(tl.sum).__name__ == "InterpretedFunction"
"""Whether Triton was imported under TRITON_INTERPRET=1."""

if INTERPRETED:
    import numpy as np
    from triton.runtime.interpreter import TensorHandle

    def _apply(function: Any, *operands: Any) -> Any:
        first = next(operand for operand in operands if isinstance(operand, tl.tensor))
        arrays = [operand.handle.data if isinstance(operand, tl.tensor) else operand for operand in operands]
        with np.errstate(all="ignore"):
            result = np.asarray(function(*arrays)).astype(first.handle.data.dtype)
        # A number's handle holds an array of one element; the result is a block only where an operand is.
        block = any(isinstance(operand, tl.tensor) and operand.type.is_block() for operand in operands)
        kind = tl.core.block_type(first.dtype, list(result.shape)) if block else first.dtype
        return tl.core.tensor(TensorHandle(result, first.handle.dtype), kind)

    def _elementwise(function: Any) -> Any:
        return lambda *operands: _apply(function, *operands)

    def _lift(function: Any) -> Any:
        return _elementwise(np.vectorize(function, otypes=[float]))

    def _erfinv(value: float) -> float:
        import torch

        return float(torch.erfinv(torch.tensor(value, dtype=torch.float64)))

    def _lgamma(value: float) -> float:
        return _math.inf if value <= 0 and value == int(value) else _math.lgamma(value)

    def _sigmoid(value: Any) -> Any:
        return 1 / (1 + np.exp(-value))

    def _divided(x: Any, y: Any) -> Any:
        return np.divide(x, y) if np.asarray(x).dtype.kind == "f" else np.floor_divide(x, y)

    def _int_or(function: Any, other: Any) -> Any:
        def choose(x: Any, y: Any) -> Any:
            if np.asarray(x).dtype.kind == "f":
                return function(x, y)
            safe = np.where(np.asarray(y) == 0, 1, y)
            return other(x, safe)

        return choose

    def dot(a: Any, b: Any, sums: Any, input_precision: str) -> Any:
        """The interpreter holds numbers of bf16 as integers, and multiplies these."""
        if a.dtype == tl.bfloat16:
            a, b = a.to(tl.float32), b.to(tl.float32)
        return tl.dot(a, b, sums, input_precision=input_precision)

    tan, asin, acos, atan = map(_elementwise, (np.tan, np.arcsin, np.arccos, np.arctan))
    sinh, cosh, tanh = map(_elementwise, (np.sinh, np.cosh, np.tanh))
    asinh, acosh, atanh = map(_elementwise, (np.arcsinh, np.arccosh, np.arctanh))
    expm1, log1p, log10 = map(_elementwise, (np.expm1, np.log1p, np.log10))
    nearbyint, trunc = _elementwise(np.rint), _elementwise(np.trunc)
    erfc, lgamma, erfinv = _lift(_math.erfc), _lift(_lgamma), _lift(_erfinv)
    pow, atan2, copysign = map(_elementwise, (np.power, np.arctan2, np.copysign))
    sigmoid = _elementwise(_sigmoid)
    rsqrt = _elementwise(lambda x: 1 / np.sqrt(x))
    reciprocal = _elementwise(lambda x: 1 / x)
    div = _elementwise(np.divide)
    floor_div = _elementwise(_int_or(lambda x, y: np.floor(x / y), np.floor_divide))
    trunc_div = _elementwise(_int_or(lambda x, y: np.trunc(x / y), lambda x, y: np.trunc(x / y)))
    remainder = _elementwise(_int_or(np.mod, np.mod))
    fmod = _elementwise(_int_or(np.fmod, np.fmod))
else:
    from .devicelib import *  # noqa: F403

    dot = tl.dot


@triton.jit
def sqrt(x):
    """Rounded to nearest."""
    if x.dtype == tl.float32:
        result = tl.sqrt_rn(x)
    else:
        result = tl.sqrt(x)
    return result


@triton.jit
def philox(seed, counter):
    """Two blocks of 32 random bits for 64-bit counters: Philox 4x32 with 10 rounds. Twin: `lower.random.philox`."""
    low = tl.full([], 0xFFFFFFFF, tl.uint64)
    mul0, mul1 = tl.full([], 0xD2511F53, tl.uint64), tl.full([], 0xCD9E8D57, tl.uint64)
    add0, add1 = tl.full([], 0x9E3779B9, tl.uint64), tl.full([], 0xBB67AE85, tl.uint64)
    shift = tl.full([], 32, tl.uint64)
    position = counter.to(tl.uint64)
    key = seed.to(tl.uint64) + position * 0
    c0, c1 = position & low, position >> shift
    c2, c3 = position * 0, position * 0
    k0, k1 = key & low, key >> shift
    for _ in tl.static_range(10):
        first, second = c0 * mul0, c2 * mul1
        c0, c1, c2, c3 = (second >> shift) ^ c1 ^ k0, second & low, (first >> shift) ^ c3 ^ k1, first & low
        k0, k1 = (k0 + add0) & low, (k1 + add1) & low
    return c0, c1


@triton.jit
def unit(bits):
    """Numbers in [0, 1) from the 24 upper of 32 bits."""
    return (bits >> tl.full([], 8, tl.uint64)).to(tl.int32).to(tl.float32) * 5.9604644775390625e-08


@triton.jit
def uniform(seed, counter):
    """fp32 numbers in [0, 1)."""
    first, _ = philox(seed, counter)
    return unit(first)


@triton.jit
def normal(seed, counter):
    """fp32 numbers of the standard normal distribution."""
    first, second = philox(seed, counter)
    radius = tl.sqrt(-2.0 * tl.log(tl.maximum(unit(first), 1.0e-7)))
    return radius * tl.cos(6.283185307179586 * unit(second))


@triton.jit
def multiply(x, y):
    """For reductions that are products."""
    return x * y
