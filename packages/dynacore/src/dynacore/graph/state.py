"""torch's own state, of the thread and of the process, as far as it changes what operations do.

The machine tracks what captured code sets (`TorchState`); reading it there gives the tracked value. A setter is a node
of the graph too, so that later operations run in the right mode and the state ends as plain Python leaves it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..torch_api import (
    autocast_nesting,
    dispatch_mode_depth,
    function_mode_depth,
    functorch_interpreter,
    global_state_check,
    set_grad_enabled,
)

#: devices whose autocast settings are tracked
AUTOCAST_DEVICES = ("cpu", "cuda", "xpu", "mps")


#: functions that set what `TorchState` tracks; the last of them only forgets what can be computed again
SETTERS = frozenset((
    set_grad_enabled,
    torch.set_autocast_enabled,
    torch.set_autocast_dtype,
    torch.set_autocast_cache_enabled,
    torch.autocast_increment_nesting,
    torch.autocast_decrement_nesting,
    torch.clear_autocast_cache,
))  # fmt: skip


class TorchState:
    """The modes in force at one point of the captured program."""

    __slots__ = ("autocast", "autocast_cache", "autocast_dtype", "autocast_nesting", "grad", "inference")

    def __init__(self) -> None:
        self.grad = torch.is_grad_enabled()
        self.inference = torch.is_inference_mode_enabled()
        self.autocast = {device: torch.is_autocast_enabled(device) for device in AUTOCAST_DEVICES}
        self.autocast_dtype = {device: torch.get_autocast_dtype(device) for device in AUTOCAST_DEVICES}
        self.autocast_cache = torch.is_autocast_cache_enabled()
        self.autocast_nesting: int | None = None  # read when the program first changes it

    @property
    def casts(self) -> bool:
        """Whether autocast is on for any device."""
        return True in self.autocast.values()

    def restore(self, setters: frozenset) -> None:
        """Give torch this state, as far as `setters` change it."""
        if set_grad_enabled in setters:
            set_grad_enabled(self.grad)
        for device in AUTOCAST_DEVICES:
            if torch.set_autocast_enabled in setters:
                torch.set_autocast_enabled(device, self.autocast[device])
            if torch.set_autocast_dtype in setters:
                torch.set_autocast_dtype(device, self.autocast_dtype[device])
        if torch.set_autocast_cache_enabled in setters:
            torch.set_autocast_cache_enabled(self.autocast_cache)
        while self.autocast_nesting is not None and autocast_nesting() > self.autocast_nesting:
            torch.autocast_decrement_nesting()
        if not setters.isdisjoint((torch.autocast_decrement_nesting, torch.clear_autocast_cache)):
            torch.clear_autocast_cache()


def torch_state_checks() -> list[tuple[Callable[[], Any], Any]]:
    """(callable, expected) pairs under which what was captured now stays true; each is one cheap C call."""
    return [
        (global_state_check(), True),
        (torch.is_inference_mode_enabled, torch.is_inference_mode_enabled()),
        (function_mode_depth, 0),
        (dispatch_mode_depth, 0),
        (functorch_interpreter, None),
    ]


def capture_allowed() -> str | None:
    """None, or the reason why nothing can be captured in torch's present state."""
    if function_mode_depth():
        return "a __torch_function__ mode (or torch.set_default_device) is active"
    if dispatch_mode_depth():
        return "a __torch_dispatch__ mode is active"
    if functorch_interpreter() is not None:
        return "a torch.func transform is active"
    return None
