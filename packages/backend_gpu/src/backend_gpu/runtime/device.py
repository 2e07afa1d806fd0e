"""What the runtime asks of a device, as narrow as it can be, and the two devices there are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol

import torch

from ..errors import BackendUnavailable, CompileFailure
from ..render.source import Source
from .clock import Clock
from .loading import load


class Device(Protocol):
    """Runs kernels. `prepare` gives the callable that launches one: `launch(grid, *arguments)`."""

    interpreted: bool
    name: str
    """What measurements hold for."""
    clock: Clock | None
    """What measures; None where times say nothing."""
    shared_memory: int
    """The bytes of fast memory that a program may use."""

    def warm(self, sources: Sequence[Source]) -> list[CompileFailure]:
        """Compile kernels before they are needed. Returns what went wrong."""
        ...

    def prepare(self, source: Source) -> Any:
        """A launcher for a kernel."""
        ...

    def stream_key(self) -> int | None:
        """Identifies the stream that kernels are launched on now; None while what is launched on it is recorded."""
        ...


class Interpreter:
    """Runs kernels one program after the other, on CPU tensors, under Triton's interpreter."""

    interpreted = True
    name = "interpreter"
    clock: Clock | None = None
    shared_memory = 1 << 30

    def warm(self, sources: Sequence[Source]) -> list[CompileFailure]:
        return []

    def prepare(self, source: Source) -> Any:
        _assert_for_real()
        function = load(source)
        constexprs = source.constexprs

        def launch(grid: int, *arguments: Any) -> None:
            function[(grid,)](*arguments, **constexprs)

        return launch

    def stream_key(self) -> int | None:
        return 0


def _assert_for_real() -> None:
    """Make the interpreter obey `tl.device_assert`, which kernels use for positions that tensors hold."""
    from dataclasses import replace

    from triton.runtime.interpreter import interpreter_builder

    interpreter_builder.options = replace(interpreter_builder.options, debug=True, sanitize_overflow=False)


def interpreting() -> bool:
    """Whether the user asked for Triton's interpreter."""
    return os.environ.get("TRITON_INTERPRET", "0") not in ("", "0", "false", "False")


def triton_missing() -> str | None:
    """Why Triton can't be used, or None."""
    try:
        import triton  # noqa: F401
    except ImportError as error:
        return f"Triton can't be imported ({error}); install triton, or use backend='inductor' or 'eager'"
    return None


def device_for(device: torch.device) -> Device:
    """The device that kernels for tensors on `device` run on. Raises `BackendUnavailable` with what to do."""
    if (missing := triton_missing()) is not None:
        raise BackendUnavailable(missing)
    if device.type == "cpu":
        if not interpreting():
            raise BackendUnavailable(
                "backend 'gpu' got CPU tensors. Move the model and its inputs to a GPU; or set the environment "
                "variable TRITON_INTERPRET=1 before Triton is imported, to run the kernels under Triton's interpreter "
                "(slow, for tests)"
            )
        from ..render.mathlib import INTERPRETED

        if not INTERPRETED:
            raise BackendUnavailable("TRITON_INTERPRET=1 was set after Triton had been imported; set it before that")
        return Interpreter()
    if device.type == "cuda":
        from .gpu import Gpu

        return Gpu(device)
    raise BackendUnavailable(f"backend 'gpu' runs on CUDA and ROCm devices, not on {device.type!r}")
