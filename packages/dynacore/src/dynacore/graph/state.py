"""torch's own state, of the thread and of the process, as far as it changes what operations do.

The machine tracks what captured code sets (`TorchState`); reading it there gives the tracked value. A setter is a node
of the graph too, so that later operations run in the right mode and the state ends as plain Python leaves it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..torch_api import (
    dispatch_mode_depth,
    function_mode_depth,
    functorch_interpreter,
    global_state_check,
)

#: devices whose autocast settings are tracked
AUTOCAST_DEVICES = ("cpu", "cuda", "xpu", "mps")


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
