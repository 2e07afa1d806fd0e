"""The functions of `mathlib` for compiled kernels: Triton code over the vendor's device library."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "copysign",
    "cosh",
    "div",
    "erfc",
    "erfinv",
    "expm1",
    "floor_div",
    "fmod",
    "lgamma",
    "log1p",
    "log10",
    "nearbyint",
    "pow",
    "reciprocal",
    "remainder",
    "rsqrt",
    "sigmoid",
    "sinh",
    "tan",
    "tanh",
    "trunc",
    "trunc_div",
]  # fmt: skip


@triton.jit
def tan(x):
    return libdevice.tan(x)


@triton.jit
def asin(x):
    return libdevice.asin(x)


@triton.jit
def acos(x):
    return libdevice.acos(x)


@triton.jit
def atan(x):
    return libdevice.atan(x)


@triton.jit
def sinh(x):
    return libdevice.sinh(x)


@triton.jit
def cosh(x):
    return libdevice.cosh(x)


@triton.jit
def tanh(x):
    return libdevice.tanh(x)


@triton.jit
def asinh(x):
    return libdevice.asinh(x)


@triton.jit
def acosh(x):
    return libdevice.acosh(x)


@triton.jit
def atanh(x):
    return libdevice.atanh(x)


@triton.jit
def expm1(x):
    return libdevice.expm1(x)


@triton.jit
def log1p(x):
    return libdevice.log1p(x)


@triton.jit
def log10(x):
    return libdevice.log10(x)


@triton.jit
def nearbyint(x):
    return libdevice.nearbyint(x)


@triton.jit
def trunc(x):
    return libdevice.trunc(x)


@triton.jit
def erfc(x):
    return libdevice.erfc(x)


@triton.jit
def lgamma(x):
    return libdevice.lgamma(x)


@triton.jit
def erfinv(x):
    return libdevice.erfinv(x)


@triton.jit
def pow(x, y):
    return libdevice.pow(x, y)


@triton.jit
def atan2(x, y):
    return libdevice.atan2(x, y)


@triton.jit
def copysign(x, y):
    return libdevice.copysign(x, y)


@triton.jit
def div(x, y):
    """Rounded to nearest, as eager divides."""
    if x.dtype == tl.float32:
        result = tl.div_rn(x, y)
    else:
        result = x / y
    return result


@triton.jit
def reciprocal(x):
    """1 / x, rounded to nearest."""
    return div(tl.full([], 1.0, x.dtype), x)


@triton.jit
def rsqrt(x):
    """1 / sqrt(x)."""
    return tl.rsqrt(x)


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def trunc_div(x, y):
    """Rounded towards zero; integers divided by zero give anything."""
    if x.dtype.is_floating():
        result = libdevice.trunc(div(x, y))
    else:
        result = x // y
    return result


@triton.jit
def floor_div(x, y):
    """Rounded down."""
    if x.dtype.is_floating():
        result = tl.floor(div(x, y))
    else:
        quotient = x // y
        result = tl.where(((x < 0) != (y < 0)) & (quotient * y != x), quotient - 1, quotient)
    return result


@triton.jit
def remainder(x, y):
    """With the sign of the divisor."""
    if x.dtype.is_floating():
        rest = libdevice.fmod(x, y)
    else:
        rest = x % y
    return tl.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


@triton.jit
def fmod(x, y):
    """With the sign of the dividend."""
    if x.dtype.is_floating():
        result = libdevice.fmod(x, y)
    else:
        result = x % y
    return result
