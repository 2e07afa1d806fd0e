"""Scalar inputs of graphs, for compilers that make constants of them.

AOTAutograd writes a Python number that it is called with into what it makes. So each combination of values gets an
artifact of its own, with the numbers written into the graph, where the compiler can use them. Past a few of them the
graph runs as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

LIMIT = 8
"""How many artifacts one graph gets."""

Compiler = Callable[[torch.fx.GraphModule, Sequence[Any]], Callable[..., Any]]


def specialised(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], compiler: Compiler) -> Callable[..., Any]:
    """Compile a graph whose inputs may be Python numbers."""
    scalars = [i for i, value in enumerate(example_inputs) if isinstance(value, (bool, int, float, complex))]
    if not scalars:
        return compiler(with_constants(gm, {}), example_inputs)
    artifacts = _Artifacts(gm, compiler, scalars, len(example_inputs))
    artifacts.get(example_inputs)
    return artifacts.run


class _Artifacts:
    def __init__(self, gm: torch.fx.GraphModule, compiler: Compiler, scalars: list[int], n_inputs: int) -> None:
        self._gm = gm
        self._compiler = compiler
        self._scalars = scalars
        self._others = [i for i in range(n_inputs) if i not in scalars]
        self._made: dict[Any, Callable[..., Any]] = {}
        self._lock = threading.Lock()

    def run(self, *inputs: Any) -> Any:
        artifact = self.get(inputs)
        if artifact is None:
            return self._gm.forward(*inputs)
        return artifact(*[inputs[i] for i in self._others])

    def get(self, inputs: Sequence[Any]) -> Callable[..., Any] | None:
        """The artifact for the numbers among these inputs; None where there are too many already."""
        key = tuple(_key(inputs[i]) for i in self._scalars)
        if (artifact := self._made.get(key)) is not None:
            return artifact
        with self._lock:
            if key not in self._made and len(self._made) < LIMIT:
                constants = {i: inputs[i] for i in self._scalars}
                rest = [inputs[i] for i in self._others]
                self._made[key] = self._compiler(with_constants(self._gm, constants), rest)
            return self._made.get(key)


def _key(value: Any) -> Any:
    """Equal for numbers that no operation tells apart: 1, 1.0 and True differ, as do 0.0 and -0.0."""
    return type(value), repr(value)


def with_constants(gm: torch.fx.GraphModule, constants: Mapping[int, Any]) -> torch.fx.GraphModule:
    """A copy of the graph in which the inputs at these positions are constants."""
    placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
    graph = torch.fx.Graph()
    output = graph.graph_copy(gm.graph, {placeholders[i]: value for i, value in constants.items()})
    graph.output(output)
    return torch.fx.GraphModule(gm, graph)
