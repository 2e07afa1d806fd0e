"""The two engines behind one small interface, and a backend that counts and times what they capture."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NAMES = ("dynacore", "torch.compile")


@dataclass(frozen=True)
class Engine:
    """What a measurement needs of an engine."""

    name: str
    compile: Callable[..., Any]
    disable: Callable[..., Any]


def load(name: str) -> Engine:
    """Import one engine. The other one stays out of the process, so that neither disturbs the other."""
    if name == "dynacore":
        import dynacore

        return Engine(name, dynacore.compile, dynacore.disable)
    import torch
    import torch._dynamo  # its import is part of no measurement, as dynacore's isn't

    return Engine(name, torch.compile, torch.compiler.disable)


class CountingBackend:
    """Runs graphs as they are, like the backend "eager"; keeps them, and the time spent in them."""

    def __init__(self, label: Callable[[], Any] | None = None):
        self.graphs: list[Any] = []
        self.seconds = 0.0
        self.label = label

    def __call__(self, graph_module, example_inputs):
        self.graphs.append(graph_module)
        forward = graph_module.forward

        def timed(*args):
            start = time.perf_counter()
            result = forward(*args)
            self.seconds += time.perf_counter() - start
            return result

        def labelled(*args):
            with self.label():
                return forward(*args)

        return labelled if self.label else timed

    @property
    def operations(self) -> int:
        """Calls in all the graphs together."""
        return sum(node.op.startswith("call") for graph in self.graphs for node in graph.graph.nodes)
