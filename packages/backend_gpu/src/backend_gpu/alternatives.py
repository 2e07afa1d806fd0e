"""Which alternatives a kernel has: its tiles, other ways to run over its rows, and programs that do the same.

The first is what runs where nothing is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from .config import config
from .errors import Unsupported
from .ir.check import check_graph
from .ir.index import Index, var
from .ir.loops import Loops
from .ir.nodes import Graph, Node, Place
from .render.tiles import Tile, choose, power, size
from .runtime.choosing import Alternative
from .schedule.loops import looped, scans
from .schedule.plan import schedule
from .schedule.steps import Schedule, Step
from .split import TRIED, Rule, split

if TYPE_CHECKING:
    from .kernels import Kernels

LONGEST_TILE = 16384
LOOP_FROM = 2048
"""Rows that are shorter than that are not worth a loop."""
PRODUCT_TILES = (
    Tile(128, 256, 8, 3, k=64), Tile(256, 128, 8, 3, k=64), Tile(128, 128, 8, 3, k=64), Tile(128, 128, 8, 4, k=32),
    Tile(128, 64, 4, 4, k=32), Tile(64, 128, 4, 4, k=32), Tile(64, 64, 4, 4, k=64), Tile(64, 32, 4, 4, k=64),
    Tile(32, 64, 4, 4, k=64), Tile(32, 128, 4, 4, k=64), Tile(16, 64, 4, 4, k=128), Tile(16, 128, 4, 4, k=64),
)  # fmt: skip
"""Rows, columns, warps, stages, factors at a time: large tiles read least, small ones keep more programs busy."""


def alternatives(step: Step, kernel: Loops, tile: Tile, kernels: Kernels) -> list[Alternative]:
    """The alternatives of a kernel, whose usual tile is given."""
    if kernel.form == "product":
        pair = Schedule(_given(kernel, kernels), step.instead)
        found = product_tiles(kernel, kernels.device.shared_memory)
        apart = Alternative("ATen and a kernel", partial(kernels.part, pair, kernel))
        return [apart, *_tiled(kernel, found, "", kernels)]
    if kernel.form != "rows":
        return _tiled(kernel, tiles(kernel, tile), "", kernels)
    rows: list[Alternative] = []
    for one in (kernel, *other_rows(kernel)):
        kind = "persistent" if one.persistent else "looped"
        usual = tile if one is kernel else choose(one, kernels.device.interpreted)
        rows += _tiled(one, tiles(one, usual), f"{kind}, ", kernels)
    for rules in () if kernels.inner else (None, TRIED):
        plan = in_pieces(kernel, kernels, rules)
        if plan is not None:
            cut = Alternative("rows in pieces", partial(kernels.part, plan, kernel))
            return [cut, *rows] if rules is None else [*rows, cut]
    return rows


def _tiled(kernel: Loops, found: Iterable[Tile], kind: str, kernels: Kernels) -> list[Alternative]:
    return [Alternative(f"{kind}{tile}", partial(kernels.launcher, kernel, tile)) for tile in found]


# --- tiles -----------------------------------------------------------------------------------------------------------


def tiles(kernel: Loops, first: Tile) -> list[Tile]:
    """The tiles worth measuring, the one that is chosen without measuring first."""
    found = [first]
    if kernel.form in ("pointwise", "combo"):
        found += [replace(first, x=x, warps=warps) for x in (256, 512, 1024, 2048) for warps in (2, 4, 8)]
    elif first.persistent:
        found += [replace(first, warps=w) for w in (first.warps // 2, first.warps * 2) if 1 <= w <= 32]
        found += [replace(first, x=x) for x in (first.x // 2, first.x * 2) if x >= 1 and x * first.r <= LONGEST_TILE]
    else:
        found += [replace(first, r=r, warps=warps, stages=stages) for r in (1024, 2048, 4096) for warps in (4, 8, 16)
                  for stages in (1, 3)]  # fmt: skip
    return list(dict.fromkeys(found))


def product_tiles(kernel: Loops, shared_memory: int) -> list[Tile]:
    """The tiles of a product: none that is twice as large as it, and none for whose factors there's no memory."""
    attrs = kernel.stmts[0].attrs
    rows, columns, count = (max(16, power(size(n))) for n in (attrs["rows"], kernel.r, attrs["count"]))
    width = attrs["left"].buffer.dtype.itemsize
    found: dict[Tile, None] = {}
    for tile in PRODUCT_TILES:
        if width > 2 and tile.x * tile.r > LONGEST_TILE:
            continue  # its sums don't fit into registers beside what is computed of them
        made = replace(tile, x=min(tile.x, rows), r=min(tile.r, columns), k=min(tile.k * 2 // width, max(count, 16)))
        made = replace(made, warps=max(1, min(made.warps, made.x * made.r // 256)))
        while made.stages > 1 and (made.x + made.r) * made.k * width * made.stages > shared_memory:
            made = replace(made, stages=made.stages - 1)
        found.setdefault(made)
    return list(found)


# --- other ways to run over rows -------------------------------------------------------------------------------------


def other_rows(kernel: Loops) -> list[Loops]:
    """The same kernel with rows looped over where they're held whole, and held whole where they're looped over."""
    if kernel.whole is not None:
        return [kernel.whole]
    long = isinstance(kernel.r, int) and kernel.r >= LOOP_FROM
    return [looped(kernel)] if kernel.persistent and long and not scans(kernel) else []


def in_pieces(kernel: Loops, kernels: Kernels, rules: Mapping[str, Rule] | None) -> Schedule | None:
    """The kernel as a graph of its own in which long rows are cut, by the usual rules or others; None where none is."""
    if kernel.symbols or not isinstance(kernel.x, int) or any(n.op not in ("layout", "reduce") for n in kernel.outputs):
        return None
    graph = graph_of(kernel, kernels)
    if not split(graph, rules):
        return None
    if config.check:
        check_graph(graph)
    try:
        return schedule(graph)
    except Unsupported:
        return None


def _given(kernel: Loops, kernels: Kernels) -> Graph:
    """A graph in which the buffers of a kernel are given, and symbols are numbers behind them."""
    inputs: list[Node | Index] = [*kernel.buffers, *(var(name) for name in kernel.symbols)]
    written = [node.attrs.get("into", node) for node in kernel.outputs]
    sizes = {name: Place(len(kernel.buffers) + n) for n, name in enumerate(kernel.symbols)}
    return Graph(inputs, [], [(node, node) for node in written], kernels.torch_device, sizes)


def graph_of(kernel: Loops, kernels: Kernels) -> Graph:
    """What a kernel computes as a graph of its own, which overwrites the memory of its results."""
    read = {stmt.attrs["buffer"] for stmt in kernel.stmts if stmt.op == "load"}
    inputs = {
        buffer: Node("input", (), buffer.shape, buffer.dtype, {"strides": buffer.layout()}, buffer.name)
        for buffer in kernel.buffers
    }
    copies: dict[Node, Node] = {node: inputs[node] for node in read}

    def copy(root: Node) -> Node:
        stack = [root]
        while stack:
            node = stack[-1]
            waiting = [source for source in node.inputs if source not in copies]
            if node in copies or not waiting:
                stack.pop()
            if node in copies:
                continue
            if waiting:
                stack += waiting
            elif node.op == "layout":
                copies[node] = copies[node.inputs[0]]
            else:
                made = replace(node, inputs=tuple(copies[source] for source in node.inputs), attrs=dict(node.attrs))
                copies[node] = made
        return copies[root]

    mutations = [(inputs[node.attrs.get("into", node)], copy(node)) for node in kernel.outputs]
    return Graph(list(inputs.values()), [], mutations, kernels.torch_device)
