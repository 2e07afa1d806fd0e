"""Programs that tests and benchmarks share, each with its arguments, made small."""

import torch
import torch.nn.functional as F


def softmax(x):
    return F.softmax(x, -1)


def log_softmax(x):
    return F.log_softmax(x, -1)


def layer_norm(x, w, b):
    return F.layer_norm(x, x.shape[-1:], w, b)


def rms_norm(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def gelu(x):
    return F.gelu(x)


def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


def swiglu(gate, up):
    return F.silu(gate) * up


def rotate_half(t):
    first, second = t.chunk(2, -1)
    return torch.cat((-second, first), -1)


def rotary(q, k, cos, sin):
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def dropout_residual_norm(x, residual, w, b):
    return F.layer_norm(F.dropout(x, 0.25, True) + residual, x.shape[-1:], w, b)


def cross_entropy(logits, target):
    return F.cross_entropy(logits, target)


def group_norm(x, w, b):
    return F.group_norm(x, 2, w, b)


def bias_gelu_residual(x, b, residual):
    return F.gelu(x + b) + residual


def linear_gelu(x, w, b):
    return F.gelu(F.linear(x, w, b))


def linear_residual(x, w, residual):
    return F.linear(x, w) + residual


def linear_swiglu(x, gate, up):
    return F.silu(F.linear(x, gate)) * F.linear(x, up)


def tensors(*shapes, dtype=torch.float32):
    generator = torch.Generator().manual_seed(sum(map(sum, shapes)))
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


ONE_KERNEL = {
    "softmax": (softmax, lambda d: tensors((6, 37), dtype=d)),
    "log_softmax": (log_softmax, lambda d: tensors((6, 37), dtype=d)),
    "layer_norm": (layer_norm, lambda d: tensors((6, 37), (37,), (37,), dtype=d)),
    "rms_norm": (rms_norm, lambda d: tensors((6, 37), (37,), dtype=d)),
    "gelu": (gelu, lambda d: tensors((6, 37), dtype=d)),
    "gelu_tanh": (gelu_tanh, lambda d: tensors((6, 37), dtype=d)),
    "swiglu": (swiglu, lambda d: tensors((6, 37), (6, 37), dtype=d)),
    "rotary": (rotary, lambda d: tensors((2, 4, 5, 8), (2, 4, 5, 8), (2, 1, 5, 8), (2, 1, 5, 8), dtype=d)),
    "cross_entropy": (cross_entropy, lambda d: [*tensors((6, 37), dtype=d), torch.tensor([0, 36, 5, -100, 7, 1])]),
    "group_norm": (group_norm, lambda d: tensors((2, 4, 3, 3), (4,), (4,), dtype=d)),
    "bias_gelu_residual": (bias_gelu_residual, lambda d: tensors((6, 37), (37,), (6, 37), dtype=d)),
}
