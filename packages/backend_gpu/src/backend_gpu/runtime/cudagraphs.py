"""Recording a program's kernels once and replaying them: what is copied, when it may be replayed, who owns memory.

The logic is written against `GraphDevice`, so that it is tested on the CPU with a stand-in that records calls.

- A key is what shapes the work: sizes, strides, dtypes, numbers. A key is recorded once it was seen often enough.
- An input that had the same address at every sighting is taken to stay there (a parameter, or what another recording
  left): it isn't copied, and a recording is used only while its addresses hold. Others are copied into buffers.
- Outputs are the recording's own memory. While a caller still holds one, the recording isn't replayed.
- All recordings share one pool. A later recording may have put its outputs where an earlier one keeps what it needs
  in between; so a recording isn't replayed while outputs of a later one are held, either.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from dynacore import torch_api

from ..config import config

Run = Callable[[list[Any]], Any]
VARIANTS = 4
"""How many recordings one key has at most: one for each set of addresses, or of outputs held at the same time."""


class GraphDevice(Protocol):
    """What recording needs of a device."""

    def record(self, work: Callable[[], Any]) -> tuple[Any, Any]:
        """Record the kernels that `work` launches, in the shared pool. Returns the recording and what came of it."""
        ...

    def replay(self, recording: Any) -> None:
        """Launch what was recorded, on the current stream."""
        ...

    def stream(self) -> Any:
        """The current stream."""
        ...

    def after(self, stream: Any) -> None:
        """Make the current stream wait for what was launched on another one."""
        ...

    def recording_now(self) -> bool:
        """Whether the caller records itself."""
        ...


def alias_of(tensor: torch.Tensor) -> torch.Tensor:
    """Another tensor over the same memory, that counts as a reference to it."""
    return torch.as_strided(tensor, tensor.shape, tensor.stride(), tensor.storage_offset())


@dataclass
class Recording:
    """One recording: where its inputs are, its outputs, and how often these were referred to when nobody held them."""

    handle: Any
    number: int
    buffers: list[Any]
    static: tuple[tuple[int, int], ...]
    """Position and address of each input that isn't copied."""
    outputs: list[Any]
    mutated: tuple[int, ...]
    own: list[torch.Tensor]
    """Those of its outputs that lie in its memory: parameters that a backward pass needs don't."""
    baseline: list[int] = field(default_factory=list)

    def held(self) -> bool:
        """Whether somebody still has one of the outputs, or a view of it."""
        return any(torch_api.storage_uses(out) > uses for out, uses in zip(self.own, self.baseline))

    def settle(self) -> None:
        """Note that nobody but this recording has the outputs."""
        self.baseline = [torch_api.storage_uses(out) for out in self.own]

    def fits(self, args: Sequence[Any]) -> bool:
        """Whether the inputs are where they were."""
        return all(args[position].data_ptr() == address for position, address in self.static)


class Pool:
    """All recordings that share memory, in the order in which they were made."""

    def __init__(self, device: GraphDevice):
        self.device = device
        self.recordings: list[Recording] = []
        self.last_stream: Any = None
        self.lock = threading.RLock()

    def may_replay(self, recording: Recording) -> bool:
        """Whether no output that somebody holds would be overwritten."""
        return not any(later.held() for later in self.recordings[recording.number :])

    def follow(self) -> None:
        """Order the current stream behind the one that the last recording ran on: they use the same memory."""
        stream = self.device.stream()
        if self.last_stream is not None and self.last_stream != stream:
            self.device.after(self.last_stream)
        self.last_stream = stream


@dataclass
class Sighting:
    """What is known of one key."""

    count: int = 0
    addresses: list[int | None] = field(default_factory=list)
    """The address of each input at all sightings, None where it varied."""
    recordings: list[Recording] = field(default_factory=list)


@dataclass
class Tally:
    """What recording did for one program, for its report."""

    recorded: int = 0
    replayed: int = 0
    ran: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    """Why calls ran as they are, with how many did."""

    def run_because(self, reason: str) -> None:
        """Count one call."""
        self.ran += 1
        self.reasons[reason] = self.reasons.get(reason, 0) + 1


class Recorder:
    """Runs one program, recorded where that is possible. `mutated` are the inputs that it overwrites."""

    def __init__(self, run: Run, pool: Pool, mutated: Sequence[int], never: str | None, tally: Tally):
        self._run, self._pool, self._mutated = run, pool, tuple(mutated)
        self._never, self.tally = never, tally
        self._seen: dict[Any, Sighting] = {}

    def __call__(self, args: list[Any]) -> Any:
        if self._never is not None or self._pool.device.recording_now():
            self.tally.run_because(self._never or "the caller records itself")
            return self._run(args)
        with self._pool.lock:
            return self._one(args)

    def _one(self, args: list[Any]) -> Any:
        key = tuple(_signature(value) for value in args)
        if key not in self._seen and len(self._seen) >= config.cudagraph_limit:
            return self._as_it_is(args, "too many different shapes")
        sighting = self._seen.setdefault(key, Sighting())
        sighting.count += 1
        _learn(sighting, args)
        if sighting.count <= config.cudagraph_after:
            return self._as_it_is(args, "not seen often enough yet")
        held = False
        for recording in sighting.recordings:
            if recording.fits(args):
                if self._pool.may_replay(recording):
                    return self._replay(recording, args)
                held = True
        if len(sighting.recordings) >= VARIANTS:
            return self._as_it_is(args, "outputs are still held" if held else "addresses of inputs keep changing")
        return self._record(sighting, args)

    def _as_it_is(self, args: list[Any], reason: str) -> Any:
        self.tally.run_because(reason)
        return self._run(args)

    def _record(self, sighting: Sighting, args: list[Any]) -> Any:
        static = tuple((p, at) for p, at in enumerate(sighting.addresses) if at is not None and p not in self._mutated)
        fixed = {position for position, _ in static}
        buffers = [
            _like(value) if isinstance(value, torch.Tensor) and position not in fixed else value
            for position, value in enumerate(args)
        ]
        self._pool.follow()
        try:
            self._fill(buffers, args, fixed)
            handle, outputs = self._pool.device.record(lambda: self._run(list(buffers)))
        except Exception as error:  # what can't be recorded differs from device to device
            self._never = f"recording failed: {type(error).__name__}: {error}"
            return self._as_it_is(args, self._never)
        number = len(self._pool.recordings)
        kept = [None if position in fixed else value for position, value in enumerate(buffers)]
        theirs = {_memory(args[position]) for position in fixed}
        own = [out for out in outputs if isinstance(out, torch.Tensor) and _memory(out) not in theirs]
        recording = Recording(handle, number, kept, static, list(outputs), self._mutated, own)
        recording.settle()
        self._pool.recordings.append(recording)
        sighting.recordings.append(recording)
        self.tally.recorded += 1
        return self._replay(recording, args)

    def _replay(self, recording: Recording, args: list[Any]) -> Any:
        self._pool.follow()
        fixed = {position for position, _ in recording.static}
        self._fill(recording.buffers, args, fixed)
        self._pool.device.replay(recording.handle)
        for position in recording.mutated:
            args[position].copy_(recording.buffers[position])
        self.tally.replayed += 1
        by_buffer = {id(value): args[p] for p, value in enumerate(recording.buffers) if isinstance(value, torch.Tensor)}
        args.clear()
        return [
            by_buffer.get(id(out), alias_of(out)) if isinstance(out, torch.Tensor) else out for out in recording.outputs
        ]

    @staticmethod
    def _fill(buffers: list[Any], args: list[Any], fixed: set[int]) -> None:
        for position, (buffer, value) in enumerate(zip(buffers, args)):
            if isinstance(buffer, torch.Tensor) and position not in fixed:
                buffer.copy_(value)


def _memory(tensor: torch.Tensor) -> int:
    """Where its memory begins."""
    return tensor.untyped_storage().data_ptr()


def _like(value: torch.Tensor) -> torch.Tensor:
    """A buffer with the layout of an input."""
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)


def _signature(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.stride(), value.dtype, value.device
    return type(value), value


def _learn(sighting: Sighting, args: list[Any]) -> None:
    """Which inputs were where they are now at every sighting."""
    now = [value.data_ptr() if isinstance(value, torch.Tensor) else None for value in args]
    if sighting.count == 1:
        sighting.addresses = list(now)
    else:
        sighting.addresses = [old if old == new else None for old, new in zip(sighting.addresses, now)]


class CudaGraphs:
    """CUDA graphs (and HIP's) of torch on one device, all in one pool."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream(device)  # torch's own for recording lies on whichever device recorded first

    def record(self, work: Callable[[], Any]) -> tuple[Any, Any]:
        with torch.cuda.device(self._device):
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
                result = work()
        return graph, result

    def replay(self, recording: Any) -> None:
        with torch.cuda.device(self._device):
            recording.replay()

    def stream(self) -> Any:
        return torch.cuda.current_stream(self._device)

    def after(self, stream: Any) -> None:
        self.stream().wait_stream(stream)

    def recording_now(self) -> bool:
        with torch.cuda.device(self._device):
            return torch.cuda.is_current_stream_capturing()


_pools: dict[torch.device, Pool] = {}


def pool_for(device: torch.device) -> Pool:
    """The pool of a device."""
    if device not in _pools:
        _pools[device] = Pool(CudaGraphs(device))
    return _pools[device]
