"""Alternatives: several ways of doing what one kernel does. They are timed where they run, and the fastest is used.

What was found is noted in the cache; another process doesn't measure again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from ..config import config
from ..render.source import Source
from ..render.tiles import power
from ..report import Choice, warn_once
from . import cache
from .clock import Clock
from .device import Device

MAX_SIZES = 4096
"""How many combinations of sizes are remembered before all are forgotten."""


class Way(Protocol):
    """What an alternative runs: it's called with the arguments of the kernel."""

    def __call__(self, *arguments: Any) -> None: ...

    def sources(self) -> list[Source]:
        """The kernels that have to be compiled for it."""


@dataclass(frozen=True)
class Alternative:
    """One way of doing what a kernel does; `make` makes it, once it's needed."""

    name: str
    make: Callable[[], Way]


class Chooser:
    """A launcher with alternatives. Without a clock, or where it can't be used now, the first one runs."""

    def __init__(
        self, source: Source, key: str, alternatives: Sequence[Alternative], tensors: int, written: Sequence[int],
        device: Device, note: Callable[[Choice], None],
    ):  # fmt: skip
        self.source = source
        self.alternatives = alternatives
        self.holds: Callable[[], bool] | None = None
        """Whether alternatives other than the first still give what they were made for."""
        self._key, self._tensors, self._written, self._device, self._note = key, tensors, written, device, note
        self._made: dict[str, Way] = {}
        self._choices: dict[tuple[int, ...], Way] = {}
        """What runs for sizes that were rounded up to powers of two, and (`_chosen`) for sizes as they are."""
        self._chosen: dict[tuple[int, ...], Way] = {}

    def sources(self) -> list[Source]:
        """The kernels of the first alternative."""
        return self._way(self.alternatives[0]).sources()

    def __call__(self, *arguments: Any) -> None:
        way = self._chosen.get(arguments[self._tensors :])
        if way is None:
            way = self._choose(arguments)
        elif self.holds is not None and not self.holds():
            way = self._way(self.alternatives[0])
        way(*arguments)

    def _way(self, alternative: Alternative) -> Way:
        if alternative.name not in self._made:
            self._made[alternative.name] = alternative.make()
        return self._made[alternative.name]

    def _choose(self, arguments: tuple[Any, ...]) -> Way:
        """The fastest for arguments of such sizes; sizes between the same powers of two share a choice."""
        first = self._way(self.alternatives[0])
        clock, sizes = self._device.clock, arguments[self._tensors :]
        if len(self.alternatives) == 1 or clock is None:
            self._chosen[sizes] = first
            return first
        if not clock.ready() or self.holds is not None and not self.holds():
            return first
        rounded = tuple(map(power, sizes))
        if rounded not in self._choices:
            self._choices[rounded] = self._look_up(arguments, rounded, clock)
        if len(self._chosen) >= MAX_SIZES:
            self._chosen.clear()
        self._chosen[sizes] = self._choices[rounded]
        return self._chosen[sizes]

    def _look_up(self, arguments: tuple[Any, ...], rounded: tuple[int, ...], clock: Clock) -> Way:
        """What is noted for such sizes, or is measured now; the first where nothing can be measured."""
        name = f"choice_{cache.key_of(self._device.name, torch.__version__, self._key, str(rounded))}.json"
        choice = self._noted(name, arguments[self._tensors :])
        if choice is None:
            choice = self._measure(arguments, clock)
            if choice is None:
                return self._way(self.alternatives[0])
            cache.write(name, json.dumps({"chosen": choice.chosen, "times": choice.times}).encode())
        self._note(choice)
        return self._way(next(one for one in self.alternatives if one.name == choice.chosen))

    def _noted(self, name: str, sizes: tuple[int, ...]) -> Choice | None:
        """What another process, or this one at like sizes, has measured."""
        try:
            found = json.loads(cache.read(name) or b"null")
            choice = Choice(self.source.name, sizes, found["chosen"], found["times"])
        except (TypeError, ValueError, KeyError):
            return None
        return choice if any(one.name == choice.chosen for one in self.alternatives) else None

    def _measure(self, arguments: tuple[Any, ...], clock: Clock) -> Choice | None:
        """Time all alternatives. What they write is put back each time.

        One that can't be compiled or run is left out; without memory to measure, there's no choice.
        """
        try:
            saved = [(arguments[position], arguments[position].clone()) for position in self._written]
        except torch.OutOfMemoryError as error:
            self._drop("measuring", error)
            return None
        ways: dict[str, Way] = {}
        for one in self.alternatives:
            try:
                ways[one.name] = self._way(one)
            except Exception as error:
                self._drop(one.name, error)
        self._device.warm([source for way in ways.values() for source in way.sources()])
        times: dict[str, float] = {}
        for name, way in ways.items():
            try:
                times[name] = clock.seconds(name, lambda way=way: way(*arguments))  # type: ignore[misc]
            except Exception as error:
                self._drop(name, error)
            finally:
                for target, value in saved:
                    target.copy_(value)
        if not times:
            return None
        return Choice(self.source.name, arguments[self._tensors :], min(times, key=times.__getitem__), times)

    def _drop(self, what: str, error: Exception) -> None:
        if config.strict:
            raise error
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        text = f"backend 'gpu' leaves an alternative for kernel {self.source.name} out ({what}): {reason}"
        warn_once(("alternative", self.source.name, what), text)
