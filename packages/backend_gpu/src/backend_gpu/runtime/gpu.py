"""CUDA and ROCm devices: kernels compiled for what is there, launched with what Triton's launcher needs and no more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from dynacore import torch_api

from ..errors import CompileFailure
from ..render.source import Source
from .clock import Clock
from .compiling import ALIGNED, compile_request, request
from .workers import Workers

REPEATS = 20
FLUSHED = 256 << 20
"""Bytes that are written so that a device's cache holds nothing else."""
_workers: Workers | None = None
_lock = threading.Lock()


def workers() -> Workers:
    """The pool of this process."""
    global _workers
    with _lock:
        if _workers is None:
            _workers = Workers()
        return _workers


class Gpu:
    """One GPU."""

    interpreted = False

    def __init__(self, device: torch.device):
        from triton.runtime import driver

        self.device = device
        self.index = device.index if device.index is not None else torch.cuda.current_device()
        target = driver.active.get_current_target()
        self.target = (target.backend, target.arch, target.warp_size)
        self.name = f"{torch.cuda.get_device_name(self.index)} {target.backend} {target.arch}"
        properties = torch.cuda.get_device_properties(self.index)
        one = properties.shared_memory_per_block
        self.shared_memory = getattr(properties, "shared_memory_per_block_optin", one) or one
        self.clock: Clock | None = GpuClock(self.index)

    def stream_key(self) -> int | None:
        return None if torch.cuda.is_current_stream_capturing() else torch_api.current_raw_stream(self.index)

    def prepare(self, source: Source) -> Any:
        return GpuLauncher(self, source)

    def warm(self, sources: Sequence[Source]) -> list[CompileFailure]:
        """Compile kernels at the same time in other processes; this process then finds them in Triton's cache."""
        wanted = [request(source, self.target, usual_divisible(source)) for source in sources]
        answers = workers().compile_all(wanted)
        return [answer for answer in answers if isinstance(answer, CompileFailure)]


class GpuClock:
    """Times calls by events, each with a cache that holds none of its data.

    Flushing the cache takes longer than the host needs to queue the call behind it, so that what is measured is the
    device's work alone, as it is in a recorded program.
    """

    def __init__(self, index: int):
        self._index = index

    def ready(self) -> bool:
        return not torch.cuda.is_current_stream_capturing()

    def seconds(self, name: str, call: Callable[[], None]) -> float:
        with torch.cuda.device(self._index):
            return self._seconds(call)

    def _seconds(self, call: Callable[[], None]) -> float:
        call()
        flush = torch.empty(FLUSHED, dtype=torch.int8, device="cuda")
        times = []
        for _ in range(REPEATS):
            flush.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) / 1e3)
        return sorted(times)[len(times) // 2]


def usual_divisible(source: Source) -> tuple[int, ...]:
    """What is divisible by 16 for tensors that the allocator made: all pointers."""
    return tuple(position for position, (_, kind) in enumerate(source.parameters) if kind.startswith("*"))


class GpuLauncher:
    """Launches one kernel. A variant is compiled for each pattern of aligned pointers that occurs: mostly one."""

    def __init__(self, device: Gpu, source: Source):
        self._device, self._source = device, source
        self._pointers = usual_divisible(source)
        self._variants: dict[tuple[int, ...], tuple[Any, ...]] = {}
        self._constants = tuple(source.constexprs.values())
        self._index = device.index

    def __call__(self, grid: int, *arguments: Any) -> None:
        pointers = [arguments[position].data_ptr() for position in self._pointers]
        divisible = self._pointers
        for pointer in pointers:
            if pointer % ALIGNED:
                divisible = tuple(p for p, at in zip(self._pointers, pointers) if at % ALIGNED == 0)
                break
        variant = self._variants.get(divisible)
        if variant is None:
            variant = self._variants[divisible] = self._compile(divisible)
        run, function, packed = variant
        stream = torch_api.current_raw_stream(self._index)
        run(grid, 1, 1, stream, function, packed, None, None, None, *arguments, *self._constants)

    def _compile(self, divisible: tuple[int, ...]) -> tuple[Any, ...]:
        try:
            compiled = compile_request(request(self._source, self._device.target, divisible))
            return compiled.run, compiled.function, compiled.packed_metadata
        except Exception as error:
            raise CompileFailure(f"kernel {self._source.name}: {type(error).__name__}: {error}") from error
