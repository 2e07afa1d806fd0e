"""Numbers on the CPU in a graph for another device, as an optimizer's step counts: kernels get them on the device.

What is computed of them on the CPU stays there for those who want it there. For the device's operations it is computed
once more on the device, from a copy: one for all such inputs of a graph.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from .registry import LOWERINGS, aten

SMALL = 4096
"""So many elements at most are computed twice."""
Run = Callable[[list[Any]], Any]


def on_device(gm: torch.fx.GraphModule, device: torch.device) -> tuple[torch.fx.GraphModule, list[int]]:
    """The graph with its numbers on the device, and which inputs on the CPU the caller has to overwrite: with what the
    last outputs are."""
    if device.type == "cpu" or not any(_elsewhere(node, device) for node in gm.graph.nodes):
        return gm, []
    graph = torch.fx.Graph()
    values, old = graph.graph_copy(gm.graph, {}, return_output_node=True)
    graph.output(values).meta = dict(old.meta)
    moved = torch.fx.GraphModule(gm, graph)
    _Mover(graph, device).move()
    overwritten = _take_overwrites(graph, device)
    graph.eliminate_dead_code()
    moved.recompile()
    return moved, overwritten


def overwriting(run: Run, inputs: list[int]) -> Run:
    """A program whose last results overwrite these inputs."""
    if not inputs:
        return run

    def wrapped(args: list[Any]) -> Any:
        targets = [args[position] for position in inputs]
        results = list(run(args))
        for target, value in zip(targets, results[len(results) - len(inputs) :]):
            target.copy_(value)
        return results[: len(results) - len(inputs)]

    return wrapped


def _tensors(node: torch.fx.Node) -> list[torch.Tensor]:
    val = node.meta.get("val")
    return [one for one in (val if isinstance(val, (list, tuple)) else [val]) if isinstance(one, torch.Tensor)]


def _elsewhere(node: torch.fx.Node, device: torch.device) -> bool:
    return any(val.device != device for val in _tensors(node))


def _small(val: torch.Tensor) -> bool:
    return val.device.type == "cpu" and isinstance(val.numel(), int) and val.numel() <= SMALL


class _Mover:
    """`numbers` are the nodes that can be had on the device, too; `twins` what they are there."""

    def __init__(self, graph: torch.fx.Graph, device: torch.device):
        self.graph, self.device = graph, device
        self.numbers: set[torch.fx.Node] = set()
        self.twins: dict[torch.fx.Node, torch.fx.Node] = {}

    def move(self) -> None:
        wanted: dict[torch.fx.Node, list[torch.fx.Node]] = {}
        for node in self.graph.nodes:
            if self._movable(node):
                self.numbers.add(node)
            elif node.target in LOWERINGS and not _elsewhere(node, self.device):
                for source in node.all_input_nodes:
                    if source in self.numbers:
                        wanted.setdefault(source, []).append(node)
        closure: set[torch.fx.Node] = set()
        stack = list(wanted)
        while stack:
            node = stack.pop()
            if node not in closure:
                closure.add(node)
                stack += node.all_input_nodes
        order = [node for node in self.graph.nodes if node in closure]
        self._inputs([node for node in order if node.op == "placeholder"])
        for node in order:
            if node.op != "placeholder":
                self._twin(node)
        for source, users in wanted.items():
            for user in users:
                user.replace_input_with(source, self.twins[source])

    def _movable(self, node: torch.fx.Node) -> bool:
        values = _tensors(node)
        if not values or not all(map(_small, values)):
            return False
        if node.op in ("placeholder", "get_attr"):
            return values[0].ndim == 0
        known = node.target in LOWERINGS or node.target is operator.getitem
        return known and all(source in self.numbers for source in node.all_input_nodes)

    def _inputs(self, nodes: list[torch.fx.Node]) -> None:
        """One copy for those of a dtype."""
        by_dtype: dict[torch.dtype, list[torch.fx.Node]] = {}
        for node in nodes:
            by_dtype.setdefault(node.meta["val"].dtype, []).append(node)
        first = next(node for node in self.graph.nodes if node.op != "placeholder")
        for group in by_dtype.values():
            val = group[0].meta["val"]
            with self.graph.inserting_before(first):
                together = self._call(aten.stack.default, (group,), {}, val.new_empty((len(group),)))
                there = val.new_empty((len(group),), device=self.device)
                copied = self._call(aten._to_copy.default, (together,), {"device": self.device}, there)
                for position, node in enumerate(group):
                    one = self._call(aten.select.int, (copied, 0, position), {}, val.new_empty((), device=self.device))
                    self.twins[node] = one

    def _twin(self, node: torch.fx.Node) -> None:
        with self.graph.inserting_after(node):
            made = self.graph.node_copy(node, self.twins.__getitem__)
        val = node.meta["val"]
        many = isinstance(val, (list, tuple))
        there = [one.new_empty(one.shape, device=self.device) for one in (val if many else [val])]
        made.meta = {**node.meta, "val": there if many else there[0]}
        if "device" in made.kwargs:
            made.kwargs = {**made.kwargs, "device": self.device}
        self.twins[node] = made

    def _call(self, target: Any, args: Any, kwargs: Any, val: torch.Tensor) -> torch.fx.Node:
        made = self.graph.call_function(target, args, kwargs)
        made.meta["val"] = val
        return made


def _take_overwrites(graph: torch.fx.Graph, device: torch.device) -> list[int]:
    """Kernels write on the device only: what overwrites an input elsewhere becomes a result."""
    places = {node: position for position, node in enumerate(n for n in graph.nodes if n.op == "placeholder")}
    overwritten, values = [], []
    for node in list(graph.nodes):
        if node.target is aten.copy_.default and node.args[0] in places and _elsewhere(node.args[0], device):
            overwritten.append(places[node.args[0]])
            values.append(node.args[1])
            node.replace_all_uses_with(node.args[1])
            graph.erase_node(node)
    output = graph.output_node()
    (results,) = output.args
    output.args = ((*(results if isinstance(results, (list, tuple)) else (results,)), *values),)
    return overwritten
