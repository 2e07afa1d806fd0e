"""torch's own state, of the thread and of the process, as far as it changes what operations do.

The machine tracks what captured code sets (`TorchState`); reading it there gives the tracked value. A setter is a node
of the graph too, so that later operations run in the right mode and the state ends as plain Python leaves it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import torch_memory
from ..sources import Source
from ..torch_api import (
    SWITCHES,
    Switch,
    autocast_nesting,
    dispatch_mode_depth,
    function_mode_depth,
    functorch_interpreter,
    global_state_check,
    sdp_priority_order,
    set_grad_enabled,
)
from . import ops

ALWAYS = "what operations give, and which follow, depends on it"
COMPILED = "kernels look when they run, a compiler perhaps when it compiles"
OF_ONE = "the same, of one operation"
RUN = "only when kernels run"

#: torch's state, and when it matters to what was captured; what follows from that is in docs/guards.md
MATTERS = {
    "grad mode": ALWAYS,
    "inference mode": ALWAYS,
    "autocast": ALWAYS,
    "default dtype": ALWAYS,
    "default device": ALWAYS,
    "deterministic algorithms": ALWAYS,
    "number of threads": ALWAYS,
    "torch function modes": ALWAYS,
    "torch dispatch modes": ALWAYS,
    "torch.func transforms": ALWAYS,
    "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction": ALWAYS,
    "torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction": ALWAYS,
    **{switch.name: COMPILED for switch in SWITCHES},
    "order of attention's kernels": OF_ONE,
    "torch.backends.opt_einsum": OF_ONE,
    "random numbers": RUN,
    "flushing of denormal numbers": RUN,
    "anomaly mode": RUN,
    "hooks for saved tensors": RUN,
    "preferred libraries": RUN,
}

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


def sdp_priorities() -> tuple[int, ...]:
    """Which kernels for attention are tried first."""
    return tuple(sdp_priority_order())


def einsum_strategy() -> tuple[Any, ...]:
    """In which order `einsum` contracts."""
    return torch.backends.opt_einsum.enabled, torch.backends.opt_einsum.strategy


SWITCHES_OF = {
    "scaled_dot_product_attention": sdp_priorities,
    "multi_head_attention_forward": sdp_priorities,
    "einsum": einsum_strategy,
}
"""Operation -> what decides about its kernels alone, and has to be asked for."""


def rely_on_switch(root: Source, switch: Switch) -> Any:
    """A switch's value, which guards then hold it to."""
    value = switch.ask()
    root.checks.setdefault(("switch", switch.name), ("switch", (switch.ask, value)))
    return value


def rely_on_switches(root: Source, graph: torch.fx.GraphModule) -> None:
    """Whatever a compiler may look at when it is given this graph."""
    for switch in SWITCHES:
        rely_on_switch(root, switch)
    for node in graph.graph.nodes:
        ask = SWITCHES_OF.get(node.target if isinstance(node.target, str) else ops.name_of(node.target))
        if ask is not None:
            kind = torch_memory.check_of(sdp_priority_order if ask is sdp_priorities else ask, "switch")
            root.checks.setdefault(("switch", ask.__name__), (kind, (ask, ask())))
