"""What compilers take for granted about the inputs of a graph, and eager execution does not.

AOTAutograd writes a Python number that it is called with into what it makes; so each combination of numbers gets an
artifact of its own, with the numbers written into the graph, where the compiler can use them; so does each combination
of sizes, where sizes vary. And where a graph changes
an input in place, what it makes is right only for inputs that share memory as the first ones did; so inputs that share
memory run the graph as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from .torch_api import storage_key

LIMIT = 8
"""How many artifacts one graph gets for different numbers and sizes. Past them the graph runs as it is."""

Compiler = Callable[[torch.fx.GraphModule, Sequence[Any]], tuple[Callable[..., Any], bool]]
"""Gives the compiled graph, and whether it changes an input in place."""


def specialised(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], compiler: Compiler) -> Callable[..., Any]:
    """Compile a graph whose inputs may be Python numbers and may share memory."""
    artifacts = _Artifacts(gm, compiler, example_inputs)
    first = artifacts.get(example_inputs)
    return first if first is not None and artifacts.always_right else artifacts.run


class _Artifacts:
    def __init__(self, gm: torch.fx.GraphModule, compiler: Compiler, example_inputs: Sequence[Any]) -> None:
        self._gm = gm
        self._compiler = compiler
        positions = range(len(example_inputs))
        self._numbers = [i for i in positions if isinstance(example_inputs[i], (bool, int, float, complex))]
        self._others = [i for i in positions if i not in self._numbers]
        nodes = [node for node in gm.graph.nodes if node.op == "placeholder"]
        self._varying = [i for i, node in enumerate(nodes) if node.meta.get("sizes_vary")]
        self._made: dict[Any, Callable[..., Any]] = {}
        self._mutates = False
        self._lock = threading.Lock()

    @property
    def always_right(self) -> bool:
        """Whether the one artifact is right for all inputs."""
        return not self._numbers and not self._varying and not self._mutates

    def run(self, *inputs: Any) -> Any:
        artifact = self.get(inputs)
        if artifact is None:
            return self._gm.forward(*inputs)
        return artifact(*[inputs[i] for i in self._others])

    def get(self, inputs: Sequence[Any]) -> Callable[..., Any] | None:
        """The artifact for these inputs; None where the graph has to run as it is."""
        if self._mutates and share_memory(inputs):
            return None
        key = (
            *[_key(inputs[i]) for i in self._numbers],
            *[(inputs[i].shape, inputs[i].stride()) for i in self._varying],
        )
        if (artifact := self._made.get(key)) is not None:
            return artifact
        with self._lock:
            if key not in self._made and len(self._made) < LIMIT:
                self._make(key, inputs)
            return self._made.get(key)

    def _make(self, key: Any, inputs: Sequence[Any]) -> None:
        numbers = {i: inputs[i] for i in self._numbers}
        rest = [inputs[i] for i in self._others]
        artifact, mutates = self._compiler(with_constants(self._gm, numbers), rest)
        self._mutates |= mutates
        if not (mutates and share_memory(inputs)):
            self._made[key] = artifact


def _key(value: Any) -> Any:
    """Equal for numbers that no operation tells apart: 1, 1.0 and True differ, as do 0.0 and -0.0."""
    return type(value), repr(value)


def share_memory(inputs: Sequence[Any]) -> bool:
    """Whether two of the tensors among these have one storage, or tell nothing of theirs."""
    seen = set()
    for value in inputs:
        if isinstance(value, torch.Tensor):
            try:
                key = storage_key(value)
            except (NotImplementedError, RuntimeError):
                return True
            if key in seen:
                return True
            seen.add(key)
    return False


def with_constants(gm: torch.fx.GraphModule, constants: Mapping[int, Any]) -> torch.fx.GraphModule:
    """A copy of the graph in which the inputs at these positions are constants."""
    placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
    graph = torch.fx.Graph()
    output = graph.graph_copy(gm.graph, {placeholders[i]: value for i, value in constants.items()})
    graph.output(output)
    return torch.fx.GraphModule(gm, graph)
