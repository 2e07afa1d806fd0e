"""Random numbers from counters: a seed drawn from torch's generator, and the element's position.

An operation that draws is decomposed before the graph is split into forward and backward, into one seed and numbers
that depend on the seed alone. So the backward graph keeps the seed and makes the same numbers again, instead of keeping
a mask.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from ..ir.index import flatten
from ..ir.nodes import Node, dims
from .registry import Lower, lowers

KEYS = ((0x9E3779B9, 0xBB67AE85), (0xD2511F53, 0xCD9E8D57))
LOW = 0xFFFFFFFF


def philox(seed: torch.Tensor, counter: torch.Tensor) -> torch.Tensor:
    """32 random bits for each 64-bit counter, as int64: Philox 4x32 with 10 rounds, in torch's own operations."""
    c0, c1 = counter & LOW, (counter >> 32) & LOW
    c2, c3 = torch.zeros_like(counter), torch.zeros_like(counter)
    k0, k1 = (seed & LOW).expand_as(counter), ((seed >> 32) & LOW).expand_as(counter)
    (add0, add1), (mul0, mul1) = KEYS
    for _ in range(10):
        high0, low0 = _multiply(c0, mul0)
        high1, low1 = _multiply(c2, mul1)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + add0) & LOW, (k1 + add1) & LOW
    return torch.stack((c0, c1))


def _multiply(value: torch.Tensor, factor: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The high and the low half of a product of 32-bit numbers, without overflowing 64 signed bits."""
    low, high = value & 0xFFFF, value >> 16
    first, second = low * factor, high * factor
    lower = first + ((second & 0xFFFF) << 16)
    return ((second >> 16) + (lower >> 32)) & LOW, lower & LOW


def to_unit(bits: torch.Tensor) -> torch.Tensor:
    """Numbers in [0, 1) from the 24 upper of 32 bits."""
    return (bits >> 8).to(torch.float32) * 2.0**-24


@torch.library.custom_op("backend_gpu::seed", mutates_args=(), tags=[torch.Tag.nondeterministic_seeded])
def seed(device: torch.device) -> torch.Tensor:
    """A fresh seed from the device's generator."""
    return torch.randint(0, 2**62, (), dtype=torch.int64, device=device)


@seed.register_fake
def _(device: torch.device) -> torch.Tensor:
    return torch.empty((), dtype=torch.int64, device=device)


@torch.library.custom_op("backend_gpu::uniform", mutates_args=())
def uniform(seed: torch.Tensor, shape: list[int]) -> torch.Tensor:
    """fp32 numbers in [0, 1), one for each position."""
    counter = torch.arange(math.prod(shape), dtype=torch.int64, device=seed.device)
    return to_unit(philox(seed, counter)[0]).reshape(shape)


@torch.library.custom_op("backend_gpu::normal", mutates_args=())
def normal(seed: torch.Tensor, shape: list[int]) -> torch.Tensor:
    """fp32 numbers of the standard normal distribution, one for each position."""
    counter = torch.arange(math.prod(shape), dtype=torch.int64, device=seed.device)
    first, second = philox(seed, counter)
    radius = torch.sqrt(-2.0 * torch.log(to_unit(first).clamp(min=1.0e-7)))
    return (radius * torch.cos(6.283185307179586 * to_unit(second))).reshape(shape)


@uniform.register_fake
@normal.register_fake
def _(seed: torch.Tensor, shape: list[int]) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.float32, device=seed.device)


RANDOM = (torch.ops.backend_gpu.uniform.default, torch.ops.backend_gpu.normal.default)
SEED = torch.ops.backend_gpu.seed.default


def _register(operation: Any, name: str) -> None:
    @lowers(operation)
    def lowering(b: Lower, seed: Node, _: Any) -> Node:
        shape = b.out_shape()
        counter = b.index(flatten(dims(shape), shape), shape)
        return b.pointwise(name, b.expand(seed, shape), counter)


_register(RANDOM[0], "uniform")
_register(RANDOM[1], "normal")


# --- decompositions ------------------------------------------------------------------------------------------------


def _uniform(like: torch.Tensor) -> torch.Tensor:
    return torch.ops.backend_gpu.uniform(torch.ops.backend_gpu.seed(like.device), list(like.shape))


def _native_dropout(x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
    mask = _uniform(x) >= p
    return torch.where(mask, x * (1.0 / (1.0 - p)), 0), mask


def _bernoulli(x: torch.Tensor, p: Any = None, *, generator: Any = None) -> torch.Tensor:
    if generator is not None:
        return NotImplemented
    limit = x if p is None or isinstance(p, torch.Generator) else p
    return (_uniform(x) < limit).to(x.dtype)


def _rand_like(x: torch.Tensor, *, dtype: Any = None, **_: Any) -> torch.Tensor:
    return _uniform(x).to(x.dtype if dtype is None else dtype)


def _randn_like(x: torch.Tensor, *, dtype: Any = None, **_: Any) -> torch.Tensor:
    drawn = torch.ops.backend_gpu.normal(torch.ops.backend_gpu.seed(x.device), list(x.shape))
    return drawn.to(x.dtype if dtype is None else dtype)


def _rand(size: list[int], *, dtype: Any = None, device: Any = None, **_: Any) -> torch.Tensor:
    return _fresh(torch.ops.backend_gpu.uniform, size, dtype, device)


def _randn(size: list[int], *, dtype: Any = None, device: Any = None, **_: Any) -> torch.Tensor:
    return _fresh(torch.ops.backend_gpu.normal, size, dtype, device)


def _fresh(draw: Any, size: list[int], dtype: Any, device: Any) -> torch.Tensor:
    device = torch.get_default_device() if device is None else torch.device(device)
    made = draw(torch.ops.backend_gpu.seed(device), list(size))
    return made.to(torch.get_default_dtype() if dtype is None else dtype)


aten = torch.ops.aten
DECOMPOSITIONS: dict[Any, Any] = {
    aten.native_dropout.default: _native_dropout,
    aten.bernoulli.default: _bernoulli,
    aten.bernoulli.p: _bernoulli,
    aten.rand_like.default: _rand_like,
    aten.randn_like.default: _randn_like,
    aten.rand.default: _rand,
    aten.randn.default: _randn,
}
"""Operations that draw, as one seed and numbers made of it."""
