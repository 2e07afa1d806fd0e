"""Compiles the kernels that tests generate for named targets, each kernel once in a run of the whole suite.

One target a kernel, chosen by its content; `BACKEND_GPU_TARGETS=all` asks for each of them, as `nox -s kernels` does.
"""

import os

import backend_gpu
from backend_gpu.render.signature import signature
from backend_gpu.render.source import render
from backend_gpu.render.tiles import choose
from backend_gpu.runtime import cache
from backend_gpu.runtime.compiling import TARGETS, request
from backend_gpu.runtime.gpu import usual_divisible
from backend_gpu.runtime.workers import Workers

ALL = os.environ.get("BACKEND_GPU_TARGETS") == "all"


class Compiler:
    """A process that compiles, and which kernels were taken already, by this or another worker of the run."""

    def __init__(self, taken):
        self.workers = Workers(1)
        self._taken = taken
        taken.mkdir(exist_ok=True)

    def _is_first(self, key):
        try:
            (self._taken / key).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def compile_new(self, kernels):
        """Compile those that weren't seen before, as for a GPU. Raises the first failure."""
        found = []
        for kernel in kernels:
            tile = choose(kernel)
            key = cache.key_of(signature(kernel, tile))
            if self._is_first(key):
                targets = list(TARGETS.values())
                found.append((kernel, tile, targets if ALL else [targets[int(key[:8], 16) % len(targets)]]))
        return self.compile([(render(kernel, tile), target) for kernel, tile, targets in found for target in targets])

    def compile(self, pairs):
        """The compiler's facts of sources for targets. Raises the first failure."""
        wanted = [request(source, target, usual_divisible(source)) for source, target in pairs]
        answers = self.workers.compile_all(wanted)
        for (source, target), answer in zip(pairs, answers):
            if isinstance(answer, backend_gpu.CompileFailure):
                raise AssertionError(f"{answer}\nfor {target}:\n{source.text}")
        return answers


def kernels_of(plan):
    """The loop programs of a schedule."""
    return [step.kernel for step in plan.steps if step.kernel is not None]
