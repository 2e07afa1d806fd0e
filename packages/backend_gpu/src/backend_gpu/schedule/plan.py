"""From a graph to the ordered list of what the program does: kernels as loop programs, and calls of ATen."""

from __future__ import annotations

import re

from ..errors import Unsupported
from ..ir.index import contiguous_strides
from ..ir.loops import Loops
from ..ir.nodes import Graph, Node
from .domain import Domain, is_number
from .groups import CycleError, Fusion, Group, anchors, direct_reads, dissolve, kept_by, materialise
from .kernel import KernelBuilder, Misfit
from .loops import finish
from .products import with_products
from .steps import Schedule, Step, combined, step_of

SMALL_TOTAL = 4096
"""Up to so many elements one program reduces them all."""


ROUNDS = 8
"""How often values may be taken out of memory again, each time with all fusion anew."""


def schedule(graph: Graph, products: bool = False) -> Schedule:
    """Fuse, order and turn into loop programs; with `products`, those with a pointwise kernel behind them, too."""
    overwrites = _overwrites(graph)
    materialise(graph)
    groups = _grouped(graph, overwrites)
    plan = Schedule(graph, [_step(group, groups, graph, n) for n, group in enumerate(groups)])
    if products:
        with_products(plan)
    return plan


def _overwrites(graph: Graph) -> list[Node]:
    """A `layout` node for each input that is overwritten, which writes into it."""
    made = []
    for position, (target, value) in enumerate(graph.mutations):
        node = Node("layout", (value,), target.shape, target.dtype,
                    {"strides": target.layout(), "into": target, "copy": position + 1},
                    f"{target.name}_new", value.where)  # fmt: skip
        graph.mutations[position] = (target, node)
        made.append(node)
    return made


def _through_memory(node: Node) -> None:
    """Compute what overwrites an input into memory of its own first."""
    (value,) = node.inputs
    attrs = {"strides": contiguous_strides(value.shape), "copy": -1 << 20 | node.attrs["copy"]}
    node.inputs = (Node("layout", (value,), value.shape, value.dtype, attrs, f"{node.name}_first", node.where),)


def _grouped(graph: Graph, overwrites: list[Node]) -> list[Group]:
    for node in overwrites:
        try:
            KernelBuilder(Domain(node.shape), [node], {node}).build("trial")
        except Misfit:
            _through_memory(node)
    for _ in range(len(overwrites) + ROUNDS):
        nodes = anchors(graph)
        after = [
            (node, writer)
            for writer in overwrites
            for node in nodes
            if node is not writer and writer.attrs["into"] in direct_reads(node)
        ]
        fusion = Fusion(nodes, after)
        try:
            fusion.sorted_groups()
            groups = fusion.run()
            if not dissolve(groups, graph):
                return groups
        except CycleError as error:
            for node in error.members:
                if node in overwrites and node.inputs[0].attrs.get("copy", 0) >= 0:
                    _through_memory(node)
                    break
            else:
                for node in overwrites:
                    if node.inputs[0].op != "layout" or node.inputs[0].attrs["copy"] >= 0:
                        _through_memory(node)
    raise Unsupported("inputs that are overwritten in a circle")


def _step(group: Group, groups: list[Group], graph: Graph, number: int) -> Step:
    first = group.members[0]
    if first.op == "extern":
        items = sorted(_items(first, graph), key=lambda node: node.attrs["which"])
        return Step(None, first, sorted(direct_reads(first) - {first}, key=lambda n: n.name), items)
    stored = _stored(group, groups, graph)
    kernels = [_kernel(part, stored, f"{_name(part, number)}") for part in group.parts or (group,)]
    kernel = kernels[0] if len(kernels) == 1 else combined(kernels, _name(group, number))
    return step_of(kernel)


def _kernel(group: Group, stored: set[Node], name: str) -> Loops:
    domain = _final_domain(group)
    try:
        kernel = KernelBuilder(domain, group.members, stored & set(group.members)).build(name)
    except Misfit as error:
        raise Unsupported(f"{group.members[0].name}: {error}") from error
    return finish(kernel)


def _items(extern: Node, graph: Graph) -> list[Node]:
    return [node for node in graph.nodes() if node.op == "item" and node.inputs[0] is extern]


def _final_domain(group: Group) -> Domain:
    """The loops of a finished group; a lone reduction of everything runs in parallel over the elements."""
    domain = group.domain
    if (
        domain.x == 1
        and is_number(domain.r)
        and domain.r > SMALL_TOTAL  # type: ignore[operator]
        and all(n.op == "reduce" and n.attrs["kind"] in ("sum", "max", "min") or n.numel == 1 for n in group.members)
        and not any(n.op == "reduce" and n.attrs["kind"] not in ("sum", "max", "min") for n in group.members)
    ):
        return Domain(domain.shape)
    return domain


def _stored(group: Group, groups: list[Group], graph: Graph) -> set[Node]:
    needed: set[Node] = set()
    for other in groups:
        if other is not group:
            needed |= other.reads
    for value in graph.outputs:
        if isinstance(value, Node):
            needed |= kept_by(value)
    for _, node in graph.mutations:
        needed.add(node)
    return {node for node in group.members if node in needed or node.op == "scatter"}


def _name(group: Group, number: int) -> str:
    """A name from what the kernel computes: the first and the last of its tensors."""
    names = []
    for node in (group.members[0], group.members[-1]):
        name = re.sub(r"(_kept|_\d+)+$", "", node.name)
        if name not in names:
            names.append(name)
    return f"{'_'.join(names)}_kernel_{number}"[-60:].lstrip("_0123456789")
