"""What watching costs those who write: programs that change what compiled functions rely on, all day.

Each program runs in turn with watchers and without (facts are polled then), in one process; the best time of each
counts, as the machine isn't ours alone. `python benchmarks/watchers.py` prints their ratio: at most 1.02 is aimed at.
"""

import time
from collections.abc import Callable
from typing import Any

import torch

import dynacore
import dynacore.capture
from dynacore import _C

ROUNDS = 15
torch.set_num_threads(1)


def globals_writer() -> Callable[[], Any]:
    """A module that counts in a global which a compiled function doesn't read, beside one that it does."""
    namespace: dict[str, Any] = {"scale": 2.0, "counter": 0}
    exec(
        "def read(x):\n    return x * scale\n"
        "def write(n):\n    global counter\n    for _ in range(n):\n        counter += 1\n",
        namespace,
    )
    compiled, x = dynacore.compile(namespace["read"], backend="eager"), torch.ones(4)

    def run() -> None:
        for _ in range(20):
            compiled(x)
            namespace["write"](5000)

    return run


def module_writer() -> Callable[[], Any]:
    """A training loop whose module counts its steps and keeps its last loss."""
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    compiled = dynacore.compile(model, backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.ones(8, 32)
    model.steps = 0

    def run() -> None:
        for _ in range(100):
            optimizer.zero_grad()
            loss = compiled(x).square().mean()
            loss.backward()
            optimizer.step()
            model.steps += 1
            model.last = loss.detach()

    return run


def attribute_writer() -> Callable[[], Any]:
    """An object's attributes are written in a loop, and read by a compiled function."""

    class Config:
        def __init__(self) -> None:
            self.scale, self.counter = 2.0, 0

    config, x = Config(), torch.ones(4)
    compiled = dynacore.compile(lambda x: x * config.scale, backend="eager")

    def run() -> None:
        for _ in range(20):
            compiled(x)
            for step in range(5000):
                config.counter = step

    return run


def function_maker() -> Callable[[], Any]:
    """Closures are made, called and dropped while a compiled function relies on others."""

    def helper(x: Any, factor: float = 2.0) -> Any:
        return x * factor

    compiled, x = dynacore.compile(lambda x: helper(x) + 1, backend="eager"), torch.ones(4)

    def run() -> None:
        compiled(x)
        for step in range(20000):
            (lambda step=step: step)()

    return run


PROGRAMS = (globals_writer, module_writer, attribute_writer, function_maker)


def seconds(run: Callable[[], Any]) -> float:
    """Processor time of one run."""
    start = time.process_time()
    run()
    return time.process_time() - start


def ratio(make: Callable[[], Callable[[], Any]]) -> float:
    """With watchers over without, each at its best."""
    found = _C.watchable()
    times: dict[bool, list[float]] = {True: [], False: []}
    runs = {}
    for watched in times:
        _C.set_watchable(found if watched else (False,) * len(found))
        runs[watched] = make()
        runs[watched]()
    for _ in range(ROUNDS):
        for watched, run in runs.items():
            _C.set_watchable(found if watched else (False,) * len(found))
            times[watched].append(seconds(run))
    _C.set_watchable(found)
    return min(times[True]) / min(times[False])


if __name__ == "__main__":
    print(f"watchable (dicts, instances, classes, functions): {_C.watchable()}")
    for program in PROGRAMS:
        print(f"{program.__name__:18} {ratio(program):.3f}")
