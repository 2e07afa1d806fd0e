"""How many kernels the patterns of models take, with their numbers against eager; forward, and as stated backward."""

import pytest
import torch
from gpu.helpers import checked_reports, forward_kernels, run, run_with_gradients
from gpu.programs import ONE_KERNEL, dropout_residual_norm, tensors

import backend_gpu
import dynacore

BACKWARD = {"layer_norm": 2, "rms_norm": 2, "softmax": 1, "log_softmax": 1, "gelu": 1, "gelu_tanh": 1, "swiglu": 1}


@pytest.mark.parametrize("name", ONE_KERNEL)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
def test_one_kernel_forward(name, dtype):
    function, arguments = ONE_KERNEL[name]
    reports = run(function, *arguments(dtype))
    assert forward_kernels(reports) == 1
    assert not reports[0].aten_calls


@pytest.mark.parametrize("name", BACKWARD)
def test_kernels_backward(name):
    function, arguments = ONE_KERNEL[name]
    forward, backward = run_with_gradients(function, *arguments(torch.float32))
    assert (forward.kernels, backward.kernels) == (1, BACKWARD[name])


def test_dropout_residual_norm_is_one_kernel_and_keeps_no_mask():
    arguments = [value.requires_grad_() for value in tensors((6, 37), (6, 37), (37,), (37,))]
    torch.manual_seed(1)
    result = dynacore.compile(dropout_residual_norm, backend="gpu", fullgraph=True)(*arguments)
    result.sum().backward()
    forward, _ = checked_reports()
    assert forward.kernels == 1
    assert "bool[" not in forward.graph.splitlines()[-1]
    kept = [line for line in forward.graph.splitlines() if "layout" in line and "bool" in line]
    assert not kept


def test_the_same_seed_gives_the_same_dropout_forward_and_backward():
    compiled = dynacore.compile(torch.nn.functional.dropout, backend="gpu")
    results = []
    for seed in (1, 1, 2):
        x = torch.ones(64, 8, requires_grad=True)
        torch.manual_seed(seed)
        y = compiled(x, 0.25, True)
        y.sum().backward()
        assert torch.equal(y.detach(), x.grad)  # of ones: the gradient is the mask, scaled
        assert set(y.unique().tolist()) == {0.0, float(torch.tensor(1 / 0.75))}
        results.append(y.detach())
    assert torch.equal(results[0], results[1]) and not torch.equal(results[0], results[2])
    assert 0.15 < float((results[0] == 0).float().mean()) < 0.35
    assert all(not report.failures for report in backend_gpu.reports())
