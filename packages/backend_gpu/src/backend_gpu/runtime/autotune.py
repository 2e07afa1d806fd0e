"""Measuring kernels: which tile is fastest on this device, kept between processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch

from ..ir.loops import Loops
from ..render.tiles import Tile
from ..report import warn_once
from . import cache

REPEATS = 20


def candidates(kernel: Loops, first: Tile) -> list[Tile]:
    """The tiles worth measuring, the one that is chosen without measuring first."""
    found = [first]
    if kernel.form in ("pointwise", "combo"):
        found += [replace(first, x=x, warps=warps) for x in (256, 512, 1024, 2048) for warps in (2, 4, 8)]
    elif first.persistent:
        found += [replace(first, warps=w) for w in (first.warps // 2, first.warps * 2) if 1 <= w <= 32]
        found += [replace(first, x=x) for x in (first.x // 2, first.x * 2) if x >= 1 and x * first.r <= 16384]
    else:
        found += [replace(first, r=r, warps=warps, stages=stages) for r in (1024, 2048, 4096) for warps in (4, 8, 16)
                  for stages in (1, 3)]  # fmt: skip
    return list(dict.fromkeys(found))


def best(
    key: str, tiles: Sequence[Tile], launcher: Callable[[Tile], Callable[..., None]], arguments: Sequence[Any],
    written: Sequence[int], time: Callable[[Callable[[], None]], float],
) -> Tile:  # fmt: skip
    """The fastest tile for these arguments: the one noted under `key`, or measured now.

    What a kernel writes (`written`, positions) is put back afterwards. `time` gives the seconds of a call. A tile that
    doesn't compile or run loses; without memory to measure, the first one is taken.
    """
    name = f"tile_{cache.key_of(key)}.json"
    noted = cache.read(name)
    if noted is not None:
        tile = _tile_of(noted)
        if tile is not None and tile in tiles:
            return tile
    try:
        saved = [(arguments[position], arguments[position].clone()) for position in written]
    except torch.OutOfMemoryError:
        warn_once("autotune memory", "backend 'gpu': no memory to measure kernels with; their usual tiles are taken.")
        return tiles[0]
    results: list[tuple[float, int]] = []
    for number, tile in enumerate(tiles):
        try:
            run = launcher(tile)
            results.append((time(lambda run=run: run(*arguments)), number))  # type: ignore[misc]
        except Exception:
            if number == 0:
                raise
        finally:
            for target, value in saved:
                target.copy_(value)
    tile = tiles[min(results)[1]]
    cache.write(name, json.dumps(asdict(tile)).encode())
    return tile


def _tile_of(data: bytes) -> Tile | None:
    try:
        return Tile(**json.loads(data))
    except (TypeError, ValueError):
        return None


def time_on_gpu(call: Callable[[], None]) -> float:
    """Seconds a call takes on the current CUDA device, the median of several."""
    call()
    times = []
    for _ in range(REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return sorted(times)[len(times) // 2]


class Tuned:
    """A launcher that measures at its first call."""

    def __init__(
        self, kernel: Loops, key: str, first: Tile, launcher: Callable[[Tile], Any], written: Sequence[int],
        time: Callable[[Callable[[], None]], float],
    ):  # fmt: skip
        self.kernel, self._key, self._first = kernel, key, first
        self._make, self._written, self._time = launcher, written, time
        self._chosen: Any = None
        self.tile = first
        self.source = launcher(first).source

    def __call__(self, *arguments: Any) -> None:
        if self._chosen is None:
            tiles = candidates(self.kernel, self._first)
            self.tile = best(self._key, tiles, self._make, arguments, self._written, self._time)
            self._chosen = self._make(self.tile)
            self.source = self._chosen.source
        self._chosen(*arguments)
