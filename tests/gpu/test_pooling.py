"""Pooling and its gradients are kernels, with eager's positions and divisors; powers of integers are exact."""

import pytest
import torch
import torch.nn.functional as F
from gpu.helpers import run, run_with_gradients
from gpu.programs import tensors

POOLS = {
    "max": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max, without overlap": lambda x: F.max_pool2d(x, 2),
    "max, ceil": lambda x: F.max_pool2d(x, (3, 2), (1, 2), ceil_mode=True),
    "max, positions": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
    "max, 1": lambda x: F.max_pool1d(x[0], 3, 2),
    "max, 3": lambda x: F.max_pool3d(x, 2),
    "mean": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "mean, ceil": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    "mean, without padding": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "mean, divisor": lambda x: F.avg_pool2d(x, 2, divisor_override=3),
    "mean, gaps": lambda x: F.avg_pool2d(x, (1, 2), 3),
    "mean, 1": lambda x: F.avg_pool1d(x[0], 3, 2, 1),
    "mean, 3": lambda x: F.avg_pool3d(x, 2, 1, 1),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, (7, 3)),
    "adaptive, 1": lambda x: F.adaptive_avg_pool2d(x, 1),
}
UNEVEN = {
    "different windows": lambda x: F.adaptive_avg_pool2d(x, (2, 4)),
    "dilation": lambda x: F.max_pool2d(x, 2, dilation=2),
    "large windows": lambda x: F.avg_pool2d(F.pad(x, (0, 9, 0, 9)), 9),
}


@pytest.mark.parametrize("name", POOLS)
def test_pooling_is_one_kernel_forward_and_backward(name):
    (x,) = tensors((2, 3, 7, 9))
    forward, backward = run_with_gradients(POOLS[name], x)
    assert not forward.aten_calls and not backward.aten_calls
    assert (forward.kernels, backward.kernels) == (1, 1)


@pytest.mark.parametrize("name", UNEVEN)
def test_other_pooling_goes_to_aten(name):
    forward, _ = run_with_gradients(UNEVEN[name], *tensors((2, 3, 7, 9)))
    assert forward.aten_calls


def test_pooling_of_half_types_and_other_layouts():
    (x,) = tensors((2, 3, 7, 9))
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        run_with_gradients(lambda x: (F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1)), x.to(dtype))
    run_with_gradients(lambda x: (F.max_pool2d(x, 2), F.avg_pool2d(x, 2)), x.to(memory_format=torch.channels_last))


def test_the_largest_is_the_first_and_nan_is_larger():
    x = torch.tensor([1.0, 1, 2, 2, float("nan"), 3, -float("inf"), -float("inf"), 0, -0.0, 5, 5]).repeat(3, 1, 4, 1)
    run(lambda x: F.max_pool2d(x, 2, return_indices=True), x)
    run(lambda x: F.max_pool2d(x, 3, 1, 1, return_indices=True), x)


POWERS = {
    "squares": lambda x, n: (x**2, x**3, x**11),
    "flipped": lambda x, n: (2**n, (-1) ** n, x**n),
    "negative": lambda x, n: (x**-n, (x % 3 - 1) ** -n),
    "narrow": lambda x, n: (x.to(torch.int8) ** 4, x.to(torch.uint8) ** n.to(torch.uint8), x.int() ** n.int()),
}


@pytest.mark.parametrize("name", POWERS)
def test_powers_of_integers(name):
    reports = run(POWERS[name], torch.arange(-12, 12).view(4, 6), torch.arange(24).view(4, 6) * 3 % 67)
    assert not reports[0].aten_calls
