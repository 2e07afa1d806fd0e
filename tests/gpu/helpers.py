"""Runs a function with the backend and compares it with eager: values, dtypes, shapes and strides, and gradients."""

import torch

import backend_gpu
import dynacore

TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def flat(value):
    """The tensors and numbers in nested results."""
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flat(item)]
    if isinstance(value, dict):
        return flat(list(value.values()))
    return [value]


def assert_same(got, want, tolerance=None):
    """Both hold the same tensors."""
    got, want = flat(got), flat(want)
    assert len(got) == len(want)
    for one, other in zip(got, want):
        if not isinstance(other, torch.Tensor):
            assert one == other
            continue
        assert one.dtype == other.dtype and one.shape == other.shape
        assert one.stride() == other.stride() or one.numel() <= 1
        bound = tolerance or TOLERANCE.get(other.dtype, 0)
        torch.testing.assert_close(one, other, rtol=bound, atol=bound, equal_nan=True)


def run(function, *arguments, tolerance=None, fullgraph=True):
    """Compare one call with eager, compiled for its sizes alone. Returns the reports of what was compiled."""
    want = function(*arguments)
    backend_gpu.clear_reports()
    got = dynacore.compile(function, backend="gpu", fullgraph=fullgraph, dynamic=False)(*arguments)
    assert_same(got, want, tolerance)
    return checked_reports()


def checked_reports():
    """The reports since they were cleared. No graph was left to eager; none raised, which dynacore would hide."""
    reports = backend_gpu.reports()
    assert reports
    for report in reports:
        assert not report.eager and not report.failures, (report.eager, report.failures)
    return reports


def gradients(call, *arguments):
    """The results of a call and the gradients of all floating-point arguments."""
    leaves = [
        a.detach().clone().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a
        for a in arguments
    ]
    results = [value for value in flat(call(*leaves)) if isinstance(value, torch.Tensor)]
    total = sum((value.float() * torch.linspace(0.5, 1.5, value.numel()).view_as(value)).sum() for value in results
                if value.is_floating_point())  # fmt: skip
    total.backward()
    return [value.detach() for value in results], [leaf.grad for leaf in leaves if isinstance(leaf, torch.Tensor)]


def run_with_gradients(function, *arguments, tolerance=None):
    """Compare results and the gradients of all floating-point arguments. Returns the reports."""
    want = gradients(function, *arguments)
    backend_gpu.clear_reports()
    got = gradients(dynacore.compile(function, backend="gpu", fullgraph=True, dynamic=False), *arguments)
    assert_same(got, want, tolerance)
    return checked_reports()


def forward_kernels(reports):
    """How many kernels the forward graphs have."""
    return sum(report.kernels for report in reports if not report.backward)
