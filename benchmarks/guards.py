"""Where the nanoseconds of a warm call's guards go: `python benchmarks/guards.py [PROGRAM ...]`.

The guards of an entry are rebuilt with parts left out, and each part is what that saves. Every number is the best of
many runs, in nanoseconds: what the machine's other work adds isn't in it.
"""

import inspect
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
REPEATS, CALLS = 25, 1000


def best(function: Callable[[], Any]) -> float:
    """Nanoseconds of one call."""
    found = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(CALLS):
            function()
        found = min(found, (time.perf_counter() - start) / CALLS)
    return found * 1e9


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


def time_of(tree: tuple, n_handed: int, state: list) -> float:
    """Nanoseconds of one evaluation, warm."""
    guards = _C.Guards(tree, n_handed)
    for _ in range(5):
        assert guards.check(state) is not None, "the guards don't hold"
    return best(lambda: guards.check(state))


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
        tensors = ("tensors", "tensor", "shape")
        whole = time_of(tree, guards.n_handed, state)
        bare = without(tree, *several, handed=False)
        parts = {
            "the call itself": time_of(("root", None, (), -1, ()), 0, []),
            "objects handed over": whole - time_of(bare, 0, state),
            "torch's state": time_of(bare, 0, state) - time_of(without(bare, "state"), 0, state),
            "tensors": time_of(bare, 0, state) - time_of(without(bare, *tensors), 0, state),
            "what is remembered": time_of(without(bare, "state", *tensors, args=False), 0, []),
        }
        print(f"{name}: {whole:.0f} ns")
        for part, nanoseconds in parts.items():
            print(f"  {part:20} {max(nanoseconds, 0):8.0f}")
        print(f"  {summary(covered(guards))}")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or programs.CAPTURE:
        report(chosen)
