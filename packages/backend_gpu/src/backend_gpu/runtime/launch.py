"""Launchers: what a program calls for a kernel. They know the grid and the extra arguments of the finishing step."""

from __future__ import annotations

from typing import Any

import torch

from ..render.source import Source
from ..schedule.groups import MAX_PARTS
from .device import Device

_counters: dict[tuple[torch.device, int], torch.Tensor] = {}


def counters(device: torch.device, stream: int | None) -> torch.Tensor:
    """Numbers that are 0 between kernels. Kernels of one stream run one after the other, and each leaves them 0.

    While a stream is being recorded nothing runs, and what is recorded may run beside anything, or never. So a recorded
    kernel has its own, and setting them to 0 is recorded before it.
    """
    if stream is None:
        return torch.zeros(MAX_PARTS, dtype=torch.int32, device=device)
    key = (device, stream)
    if key not in _counters:
        _counters[key] = torch.zeros(MAX_PARTS, dtype=torch.int32, device=device)
    return _counters[key]


class Launcher:
    """Launches one kernel: `launcher(*tensors, xnumel, *symbols)`."""

    def __init__(self, source: Source, device: Device, torch_device: torch.device):
        self.source = source
        self._device = device
        self._torch_device = torch_device
        self._launch: Any = None
        self._block = source.tile.x
        self._columns = source.tile.r if source.tile.k else 0
        self._first = len(source.parameters) - source.sizes - len(source.symbols)
        self._first -= (source.partials > 0) + (source.counters > 0)
        self._last = self._first + source.sizes
        self._wide = ("partials_ptr", "*fp64") in source.parameters

    def sources(self) -> list[Source]:
        """The one kernel that it launches."""
        return [self.source]

    def __call__(self, *arguments: Any) -> None:
        launch = self._launch
        if launch is None:
            launch = self._launch = self._device.prepare(self.source)
        if self._columns:
            rows, columns, batches = arguments[self._first : self._last]
            grid = (-rows // self._block) * (-columns // self._columns) * batches
        else:
            grid = 0
            for count in arguments[self._first : self._last]:
                grid -= -count // self._block
        if self.source.counters:
            grid = max(grid, 1)  # without any row, too, the last program writes the result
            if self.source.partials:
                dtype = torch.float64 if self._wide else torch.float32
                partials = torch.empty(self.source.partials * grid, dtype=dtype, device=self._torch_device)
                arguments = (*arguments, partials)
            stream = self._device.stream_key()
            try:
                launch(grid, *arguments, counters(self._torch_device, stream))
            except BaseException:
                if stream is not None:  # programs that were stopped have counted, and nobody has counted back
                    _counters.pop((self._torch_device, stream), None)
                raise
        elif grid:
            launch(grid, *arguments)
