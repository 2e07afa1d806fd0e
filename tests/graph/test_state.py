"""torch's state: the guards on it, and what forbids capture."""

import pytest
import torch

from dynacore.graph.state import TorchState, capture_allowed, torch_state_checks


def holds(checks):
    return all(callable_() == expected for callable_, expected in checks)


class Mode(torch.overrides.TorchFunctionMode):
    pass


class Dispatch(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


CHANGES = [
    torch.no_grad,
    torch.inference_mode,
    lambda: torch.inference_mode(True),
    lambda: torch.autocast("cpu"),
    lambda: torch.device("meta"),
    Mode,
    Dispatch,
]


@pytest.mark.parametrize("change", CHANGES)
def test_checks_notice_a_change_and_its_end(change):
    checks = torch_state_checks()
    assert holds(checks)
    with change():
        assert not holds(checks)
    assert holds(checks)


def test_checks_notice_settings_of_the_process():
    checks = torch_state_checks()
    for setter, value, old in (
        (torch.set_default_dtype, torch.float64, torch.float32),
        (torch.use_deterministic_algorithms, True, False),
        (torch.set_default_device, "meta", None),
    ):
        setter(value)
        try:
            assert not holds(checks), setter
        finally:
            setter(old)
        assert holds(checks), setter


def test_grad_mode_inside_inference_mode():
    with torch.inference_mode(), torch.enable_grad():
        checks = torch_state_checks()
        assert holds(checks)
    assert not holds(checks)


@pytest.mark.parametrize("mode", [Mode, Dispatch, lambda: torch.device("meta")])
def test_nothing_is_captured_under_modes(mode):
    assert capture_allowed() is None
    with mode():
        assert capture_allowed() is not None
    assert capture_allowed() is None


def test_nothing_is_captured_under_functorch():
    seen = []
    torch.func.grad(lambda x: (seen.append(capture_allowed()), x.sin())[1])(torch.tensor(1.0))
    assert seen == ["a torch.func transform is active"]


def test_the_state_is_read_as_it_is():
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
        state = TorchState()
    assert state.grad is False
    assert state.autocast["cpu"] is True
    assert state.autocast_dtype["cpu"] is torch.float16
    assert state.casts
    assert not TorchState().casts
