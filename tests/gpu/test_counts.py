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


def adamw(parameters, gradients, means, squares):
    for p, g, m, v in zip(parameters, gradients, means, squares):
        mean = m * 0.9 + g * 0.1
        square = v * 0.999 + g * g * 0.001
        p.copy_(p * (1 - 1e-4) - 1e-3 * (mean / 0.271) / ((square / 0.002997).sqrt() + 1e-8))
        m.copy_(mean)
        v.copy_(square)


def foreach_adamw(parameters, gradients, means, squares):
    torch._foreach_lerp_(means, gradients, 0.1)
    torch._foreach_mul_(squares, 0.999)
    torch._foreach_addcmul_(squares, gradients, gradients, 0.001)
    root = torch._foreach_sqrt(squares)
    torch._foreach_add_(root, 1e-8)
    torch._foreach_addcdiv_(parameters, means, root, -1e-3)


@pytest.mark.parametrize("step", [adamw, foreach_adamw], ids=["loop", "foreach"])
def test_an_optimizer_step_over_a_group_is_one_kernel(step):
    shapes = [(7, 5), (5,), (3, 4, 2), (300,), (1,)]
    want, got = ([*(tensors(*shapes) for _ in range(3)), [t.abs() for t in tensors(*shapes)]] for _ in range(2))
    step(*want)
    dynacore.compile(step, backend="gpu", fullgraph=True)(*got)
    for one, other in zip(got, want):
        for left, right in zip(one, other):
            torch.testing.assert_close(left, right)
    assert [report.kernels for report in checked_reports()] == [1]


@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"amsgrad": True}], ids=["default", "foreach", "amsgrad"])
def test_the_step_of_torchs_adamw_is_one_kernel(options):
    """The numbers of the steps are overwritten where the last program has read them."""

    def trained(compiled):
        torch.manual_seed(0)
        parameters = [torch.nn.Parameter(torch.randn(shape)) for shape in ((7, 5), (5,), (3, 4, 2), (300,))]
        optimizer = torch.optim.AdamW(parameters, lr=0.01, **options)
        step = dynacore.compile(optimizer.step, backend="gpu", fullgraph=True) if compiled else optimizer.step
        for _ in range(3):
            for p in parameters:
                p.grad = torch.randn_like(p)
            step()
        state = [value for one in optimizer.state.values() for value in one.values()]
        return [value.detach() for value in (*parameters, *state)]

    want = trained(False)
    backend_gpu.clear_reports()
    for one, other in zip(trained(True), want, strict=True):
        torch.testing.assert_close(one, other)
    reports = checked_reports()
    assert [report.kernels for report in reports] == [2, 1]  # the first step makes its state
    assert not any(report.aten_calls for report in reports)
