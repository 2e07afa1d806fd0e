"""A pre-norm transformer block with rotary embedding and SwiGLU, written out."""

import torch
import torch.nn.functional as F
from gpu.programs import rms_norm, rotary, swiglu


def block(x, cos, sin, norm1, q, k, v, o, norm2, gate, up, down):
    """`x` is batch, length, width; the weights are matrices (out, in). Heads of the width of `cos`."""
    batch, length, width = x.shape
    heads = width // cos.shape[-1]

    def split(t):
        return t.view(batch, length, heads, -1).transpose(1, 2)

    h = rms_norm(x, norm1)
    rotated = rotary(split(F.linear(h, q)), split(F.linear(h, k)), cos, sin)
    attended = F.scaled_dot_product_attention(*rotated, split(F.linear(h, v)), is_causal=True)
    x = x + F.linear(attended.transpose(1, 2).reshape(batch, length, width), o)
    h = rms_norm(x, norm2)
    return x + F.linear(swiglu(F.linear(h, gate), F.linear(h, up)), down)


def block_arguments(batch=2, length=8, width=32, heads=4, hidden=48, dtype=torch.float32):
    """Its arguments."""
    generator = torch.Generator().manual_seed(0)

    def make(*shape):
        return (torch.randn(shape, generator=generator) / 4).to(dtype)

    head = width // heads
    return [
        make(batch, length, width), make(length, head), make(length, head), make(width), make(width, width),
        make(width, width), make(width, width), make(width, width), make(width), make(hidden, width),
        make(hidden, width), make(width, hidden),
    ]  # fmt: skip
