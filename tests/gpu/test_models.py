"""Whole small models, forward and gradients, against eager; and that nothing but what belongs there goes to ATen."""

import copy

import pytest
import torch
from gpu.helpers import checked_reports
from gpu.models import MODELS

import backend_gpu
import dynacore

BELONGS_TO_ATEN = {
    "aten.mm", "aten.addmm", "aten.bmm", "aten.convolution", "aten.convolution_backward",
}  # fmt: skip
"""Besides attention, which has another name for each device."""


def step(module, call, arguments):
    """The loss of a call and the gradients of all parameters."""
    result = call(**arguments)
    loss = result if isinstance(result, torch.Tensor) else result.loss
    loss.backward()
    return loss.detach(), {name: p.grad for name, p in module.named_parameters()}


@pytest.mark.parametrize("name", MODELS)
def test_model(name):
    torch.manual_seed(0)
    module, arguments = MODELS[name]()
    twin = copy.deepcopy(module)
    want, expected = step(module, module, arguments)
    backend_gpu.clear_reports()
    got, gradients = step(twin, dynacore.compile(twin, backend="gpu"), arguments)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    assert {n for n, g in gradients.items() if g is None} == {n for n, g in expected.items() if g is None}
    for parameter, gradient in expected.items():
        if gradient is not None:
            torch.testing.assert_close(gradients[parameter], gradient, rtol=1e-4, atol=1e-5)
    for buffer, value in module.named_buffers():
        torch.testing.assert_close(twin.get_buffer(buffer), value)
    calls = {call for report in checked_reports() for call, _ in report.aten_calls}
    assert {call for call in calls if not call.startswith("aten._scaled_dot_product_")} <= BELONGS_TO_ATEN
