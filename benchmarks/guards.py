"""Where the nanoseconds of a warm call's guards go: `python benchmarks/guards.py [PROGRAM ...]`.

The guards of an entry are rebuilt with parts left out, and each part is what that saves. Every number is the best of
many runs, in nanoseconds: what the machine's other work adds isn't in it. The second number of each row is the median
where a model has run in between, whose weights have taken the place of what guards look at in the processor's caches:
what counts in a deep model is how many words of memory are looked at, and that they are waited for together.

At last, the same program with eight entries for eight shapes that take turns, over one entry that takes all calls.
"""

import functools
import inspect
import statistics
import sys
import time
from collections.abc import Callable
from types import CodeType
from typing import Any

import programs
import torch

import dynacore
from dynacore import _C
from dynacore.guards.coverage import covered, summary

torch.set_num_threads(1)
REPEATS, CALLS, COLD_CALLS = 25, 1000, 100
BETWEEN = torch.zeros(1 << 24)
"""Of the size of weights."""


def best(function: Callable[[], Any]) -> float:
    """Nanoseconds of one call."""
    found = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(CALLS):
            function()
        found = min(found, (time.perf_counter() - start) / CALLS)
    return found * 1e9


def cold(function: Callable[[], Any]) -> float:
    """Nanoseconds of one call that finds nothing in the processor's caches."""
    times = []
    for _ in range(COLD_CALLS):
        BETWEEN.add_(1)
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e9


def strip(node: tuple, checks: frozenset[str], handed: bool) -> tuple:
    """A node without these checks and, if wanted so, handing nothing over."""
    accessor, key, own, at, children = node
    kept = tuple(check for check in own if check[0] not in checks)
    return accessor, key, kept, at if handed else -1, tuple(strip(child, checks, handed) for child in children)


def without(tree: tuple, *checks: str, args: bool = True, roots: bool = True, handed: bool = True) -> tuple:
    """A guard tree with parts left out."""
    names = frozenset(checks)
    root, key, own, at, children = tree
    kept = tuple(
        strip(child, names, handed) for child in children if (args if child[0] == "arg" else roots)
    )  # fmt: skip
    return root, key, tuple(check for check in own if check[0] not in names), at, kept


class Nanoseconds(tuple):
    """Of one evaluation: of one that follows another, and of one that follows a model."""

    def __sub__(self, other: tuple) -> "Nanoseconds":
        return Nanoseconds(a - b for a, b in zip(self, other, strict=True))

    def __str__(self) -> str:
        return "".join(f"{max(number, 0):9.0f}" for number in self)


def time_of(tree: tuple, n_handed: int, state: list) -> Nanoseconds:
    """How long an evaluation takes."""
    guards = _C.Guards(tree, n_handed)
    for _ in range(5):
        assert guards.check(state) is not None, "the guards don't hold"
    check = functools.partial(guards.check, state)
    return Nanoseconds((best(check), cold(check)))


def state_of(code: CodeType, args: tuple) -> list:
    """What the point is entered with for positional arguments."""
    if not code.co_flags & inspect.CO_VARARGS:
        return list(args)
    return [*args[: code.co_argcount], args[code.co_argcount :]]


def report(name: str) -> None:
    """Print one program's parts."""
    function, args = programs.CAPTURE[name]()
    with torch.no_grad():
        compiled = dynacore.compile(function, backend="eager")
        for _ in range(5):
            compiled(*args)
        if not isinstance(compiled, _C.Compiled):
            print(f"{name}: a module, told of functions alone")
            return
        entries = compiled.point.entries
        if len(entries) != 1:
            print(f"{name}: {len(entries)} entries, told of those with one alone")
            return
        guards, state = entries[0].guards, state_of(compiled.point.code, args)
        tree = guards.tree
        several = ("same", "differ", "rel", "ints")
        tensors = ("tensors", "tensors_any_grad", "tensor", "shape")
        whole = time_of(tree, guards.n_handed, state)
        bare = without(tree, *several, handed=False)
        parts = {
            "the call itself": time_of(("root", None, (), -1, ()), 0, []),
            "objects handed over": whole - time_of(bare, 0, state),
            "torch's state": time_of(bare, 0, state) - time_of(without(bare, "state"), 0, state),
            "tensors": time_of(bare, 0, state) - time_of(without(bare, *tensors), 0, state),
            "what is remembered": time_of(without(bare, "state", *tensors, args=False), 0, []),
        }
        print(f"{name:22} {whole} ns")
        for part, nanoseconds in parts.items():
            print(f"  {part:20} {nanoseconds}")
        print(f"  {summary(covered(guards))}")


def taking_turns(name: str, program: Callable[..., Any], *shapes: tuple[int, ...]) -> None:
    """Print what a call costs where as many entries as shapes take turns, over one entry."""

    def backend(graph: torch.fx.GraphModule, inputs: list) -> Callable[..., Any]:
        outputs = graph.forward(*inputs)
        return lambda *args: outputs

    with torch.no_grad():
        calls = []
        for some in ((shapes[0],) * len(shapes), shapes):
            compiled = dynacore.compile(program, backend=backend, dynamic=False)
            tensors = [torch.ones(shape) for shape in some]
            calls.append(lambda compiled=compiled, tensors=tensors: [compiled(tensor) for tensor in tensors])
        for _ in range(5):
            for call in calls:
                call()
        one, many = map(best, calls)
        print(f"{name}: {one / len(shapes):.0f} ns, {len(shapes)} entries {many / one:.2f} times that")


def main() -> None:
    """Print what the command line asks for."""
    for chosen in sys.argv[1:] or programs.CAPTURE:
        report(chosen)
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(10)))
    taking_turns("one tensor", lambda x: torch.relu(x + 1) * 2, *((size,) for size in range(2, 10)))
    taking_turns("a model of ten layers", model.__call__, *((size, 8) for size in range(2, 10)))


if __name__ == "__main__":
    main()
