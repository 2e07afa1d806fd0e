"""Groups of tensors that become one kernel, grown as long as that saves traffic and stays possible."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from ..ir.index import bounds, contiguous_strides, mul
from ..ir.nodes import Graph, Node, topological, users
from ..ir.pointwise import TABLE
from ..split import RULES, few_long_rows
from .domain import Domain, domain_of, is_number
from .kernel import ALONG, IN_MEMORY, KernelBuilder, Misfit

CHEAP = 14
"""Up to this cost, a value that needs one load is computed again by each reader instead of being stored."""
LONG_CHAIN = 160
"""After this many operations in a row a value is put into memory, so that no kernel grows without limit."""
MAX_PARTS, MAX_PART_BUFFERS = 64, 320
"""How many groups run side by side in one kernel, and how many tensors these read and write at most."""


class Group:
    """Tensors computed together. `reads` are the tensors in memory that they need."""

    def __init__(self, members: list[Node], domain: Domain, reads: set[Node], parts: tuple[Group, ...] = ()):
        self.members, self.domain, self.reads, self.parts = members, domain, reads, parts
        """`parts`: groups that run side by side in this one's kernel."""

    @property
    def fusable(self) -> bool:
        return not self.parts and self.members[0].op not in ("extern", "scatter")

    @property
    def shape_of_work(self) -> tuple[object, ...] | None:
        """Equal for groups whose kernels may run side by side; None for those that are a kernel of their own."""
        if not self.fusable or any(node.op != "layout" for node in self.members) or not is_number(self.domain.x):
            return None
        return tuple((node.dtype, node.inputs[0].op, "into" in node.attrs) for node in self.members)


def materialise(graph: Graph) -> None:
    """Decide which values are put into memory, beyond those that have to be: a `layout` node is put behind each.

    These are values with several readers that would be dear to compute again.
    """
    nodes = graph.nodes()
    readers = users(nodes)
    placed: dict[Node, Node] = {}
    for node in nodes:
        if node.op == "layout" and node.inputs[0].op not in (*IN_MEMORY, "const", "index") and not node.attrs["copy"]:
            placed.setdefault(node.inputs[0], node)
    weights: dict[Node, tuple[frozenset[Node], int, int]] = {}
    for node in nodes:
        node.inputs = tuple(placed[s] if s in placed and placed[s] is not node else s for s in node.inputs)
        weights[node] = weight(node, weights)
        loads, cost, depth = weights[node]
        several = sum(user.op != "layout" for user in readers[node]) > 1
        dear = sum(_matters(load, node) for load in loads) > 1 or cost > CHEAP
        forced = depth > LONG_CHAIN or any(u.op == "scatter" and u.inputs[0] is node for u in readers[node])
        if node.op in TABLE or node.op == "gather" or forced and node.op in ("const", "view", "index"):
            if node not in placed and (several and dear or forced):
                strides = node.strides if node.strides is not None else contiguous_strides(node.shape)
                attrs = {"strides": strides, "copy": 0, "maybe": not forced}
                made = Node("layout", (node,), node.shape, node.dtype, attrs, f"{node.name}_kept", node.where)
                placed[node] = made
                weights[made] = (frozenset([made]), 0, 0)
    graph.outputs = [placed.get(value, value) if isinstance(value, Node) else value for value in graph.outputs]


DISSOLVE = 60
"""Up to this cost, a value that fits into no kernel but is read by one alone is computed there for each element."""


def dissolve(groups: list[Group], graph: Graph) -> bool:
    """Take back decisions of `materialise` that led to a kernel of their own with a single reader."""
    alone = [g.members[0] for g in groups if len(g.members) == 1 and g.members[0].attrs.get("maybe")]
    known: dict[Node, tuple[frozenset[Node], int, int]] = {}
    gone: dict[Node, Node] = {}
    for node in alone:
        readers = [group for group in groups if node in group.reads]
        for source in topological([node.inputs[0]]):
            known.setdefault(source, weight(source, known))
        if len(readers) == 1 and readers[0].fusable and known[node.inputs[0]][1] <= DISSOLVE:
            gone[node] = node.inputs[0]
    if not gone:
        return False
    for node in topological(graph.roots()):
        while any(source in gone for source in node.inputs):
            node.inputs = tuple(gone.get(source, source) for source in node.inputs)
    return True


def _matters(load: Node, node: Node) -> bool:
    """Whether reading one tensor costs about as much as reading the other."""
    if not (is_number(load.numel) and is_number(node.numel)):
        return len(load.shape) >= len(node.shape)
    return bounds(load.numel)[0] * 4 >= bounds(node.numel)[0]


def weight(node: Node, known: dict[Node, tuple[frozenset[Node], int, int]]) -> tuple[frozenset[Node], int, int]:
    """The loads, the number of instructions and the longest chain that computing a value where it is read takes."""
    if node.op in IN_MEMORY or node.op == "extern":
        return frozenset([node]), 0, 0
    loads: frozenset[Node] = frozenset()
    cost, depth = TABLE[node.op].cost if node.op in TABLE else 0, 0
    for source in node.inputs:
        more, price, length = known[source] if source in known else (frozenset([source]), 0, 0)
        loads, cost, depth = loads | more, cost + price, max(depth, length)
    return loads, cost, depth + (node.op in TABLE)


def anchors(graph: Graph) -> list[Node]:
    """The nodes that are computed into memory, or at least by a kernel of their own to begin with."""
    return [n for n in topological(graph.roots()) if n.op in ("layout", "reduce", "scan", "scatter", "extern")]


def direct_reads(node: Node) -> set[Node]:
    """The tensors in memory that one anchor reads, through everything computed on the way."""
    found: set[Node] = set()
    seen: set[Node] = set()
    stack = list(node.inputs)
    while stack:
        source = stack.pop()
        if source in seen:
            continue
        seen.add(source)
        if source.op == "item":
            found.add(source.inputs[0])
            found.add(source)
        elif source.op in IN_MEMORY or source.op == "extern":
            found.add(source)
        else:
            stack.extend(source.inputs)
    return found


def kept_by(value: Node) -> set[Node]:
    """The tensors in memory that an output of the graph is, or is a view of."""
    return {value} if value.op in IN_MEMORY else direct_reads(value)


class Fusion:
    """Grows groups. Which group needs which is kept as bit sets, so that no cycle arises."""

    def __init__(self, nodes: list[Node], before: Iterable[tuple[Node, Node]] = ()):
        self.groups: dict[int, Group] = {}
        self.of: dict[Node, int] = {}
        for number, node in enumerate(nodes):
            self.groups[number] = Group([node], domain_of(node), direct_reads(node))
            self.of[node] = number
        self.order = {node: number for number, node in enumerate(nodes)}
        self.needs: dict[int, set[int]] = {number: set() for number in self.groups}
        for number, group in self.groups.items():
            self.needs[number] = {self.of[read] for read in group.reads if read in self.of} - {number}
        for first, then in before:
            if self.of[first] != self.of[then]:
                self.needs[self.of[then]].add(self.of[first])

    def run(self) -> list[Group]:
        """The groups, in an order in which they can run."""
        for node in self.order:
            consumer = self.of[node]
            for read in sorted(self.groups[consumer].reads, key=lambda n: self.order.get(n, -1), reverse=True):
                if read in self.of:
                    self._try(self.of[read], self.of[node])
        self._siblings()
        self._numbers_at_the_end()
        self._side_by_side()
        return [self.groups[number] for number in self.sorted_groups()]

    def _siblings(self) -> None:
        readers: dict[Node, list[Node]] = {}
        for node in self.order:
            for read in self.groups[self.of[node]].reads:
                readers.setdefault(read, []).append(node)
        for read, nodes in readers.items():
            for first, second in pairwise(nodes):
                a, b = self.of[first], self.of[second]
                if a != b and _matters(read, first) and _matters(read, second):
                    self._try(a, b)

    def _numbers_at_the_end(self) -> None:
        """A number that is overwritten, as that of an optimizer's steps, is written by the kernel that reads it."""
        for node in self.order:
            target = node.attrs.get("into")
            if target is not None and node.numel == 1:
                readers = [n for n, group in self.groups.items() if target in group.reads and n != self.of[node]]
                if len(readers) == 1:
                    self._try(readers[0], self.of[node])

    def _side_by_side(self) -> None:
        """Put pointwise groups of one kind that need nothing of each other into one kernel: a launch instead of many.

        The optimizer's step over many parameters is such work.
        """
        waiting: dict[tuple[object, ...], int] = {}
        for number in self.sorted_groups():
            group = self.groups[number]
            key = group.shape_of_work
            if key is None:
                continue
            first = waiting.setdefault(key, number)
            if first == number:
                continue
            into = self.groups[first]
            parts = (*(into.parts or (into,)), group)
            apart = not (number in self.needs[first] or first in self.needs[number])
            if apart and not self._between(first, number) and not self._between(number, first):
                if len(parts) <= MAX_PARTS and sum(len(p.reads) + len(p.members) for p in parts) <= MAX_PART_BUFFERS:
                    self._merge(first, number, [*into.members, *group.members], into.domain)
                    self.groups[first].parts = parts
                    continue
            waiting[key] = number

    def _try(self, first: int, second: int) -> bool:
        """Merge two groups if that is possible."""
        if first == second:
            return False
        a, b = self.groups[first], self.groups[second]
        if not (a.fusable and b.fusable) or self._between(first, second) or self._between(second, first):
            return False
        domain = joint_domain(a, b)
        if domain is None:
            return False
        members = sorted([*a.members, *b.members], key=self.order.__getitem__)
        try:
            KernelBuilder(domain, members, set(members)).build("trial")
        except Misfit:
            return False
        self._merge(first, second, members, domain)
        return True

    def _between(self, start: int, end: int) -> bool:
        """Whether `end` needs `start` through another group."""
        stack = [number for number in self.needs[end] if number != start]
        seen = set(stack)
        while stack:
            number = stack.pop()
            if number == start:
                return True
            for more in self.needs[number]:
                if more not in seen:
                    seen.add(more)
                    stack.append(more)
        return False

    def _merge(self, first: int, second: int, members: list[Node], domain: Domain) -> None:
        a, b = self.groups.pop(first), self.groups.pop(second)
        self.groups[first] = Group(members, domain, (a.reads | b.reads) - set(members))
        for node in members:
            self.of[node] = first
        self.needs[first] = (self.needs[first] | self.needs.pop(second)) - {first, second}
        for needs in self.needs.values():
            if second in needs:
                needs.discard(second)
                needs.add(first)
        self.needs[first].discard(first)

    def sorted_groups(self) -> list[int]:
        """Group numbers, each behind what it needs, otherwise in the program's order."""
        done: dict[int, None] = {}
        for start in sorted(self.groups, key=lambda number: self.order[self.groups[number].members[-1]]):
            stack = [(start, iter(sorted(self.needs[start])))]
            while stack:
                number, rest = stack[-1]
                found = next((more for more in rest if more not in done), None)
                if found is not None:
                    if any(found == above for above, _ in stack):
                        raise CycleError(self.groups[found].members)
                    stack.append((found, iter(sorted(self.needs[found]))))
                    continue
                done.setdefault(number)
                stack.pop()
        return list(done)


class CycleError(Exception):
    """Tensors that each would have to be computed before the other."""

    def __init__(self, members: list[Node]):
        super().__init__(", ".join(node.name for node in members))
        self.members = members


def joint_domain(a: Group, b: Group) -> Domain | None:
    """Loops over which two groups might run together; whether they can, the kernel builder finds out."""
    for one, other in ((a, b), (b, a)):
        d, e = one.domain, other.domain
        if d.x not in (0, 1) and all(n.attrs.get("into") in one.reads and n.numel == 1 for n in other.members):
            return d
        reduces = any(node.op in ALONG for node in one.members)
        plain = not any(node.op in ALONG for node in other.members)
        if reduces and plain and e.x in (mul(d.x, d.r), d.x, 1):
            if e.x == 1 and d.x != 1 and not any(_is_total(node, d) for node in one.members):
                return None
            return None if e.x == mul(d.x, d.r) and _wants_split(d) else d
        if reduces and not plain and (d.x, d.r) == (e.x, e.r):
            return d
        if not plain and e.x == 1 and e.r == d.x and d.x != 1:
            return d
    if not any(node.op in ALONG for node in (*a.members, *b.members)) and a.domain.x == b.domain.x:
        return a.domain
    return None


def _is_total(node: Node, domain: Domain) -> bool:
    return node.op == "reduce" and node.numel == 1 and node.inputs[0].numel == domain.x


def _wants_split(domain: Domain) -> bool:
    """Whether each element of a few long rows had better be computed apart from what the rows are reduced to."""
    x, r = domain.x, domain.r
    return isinstance(x, int) and isinstance(r, int) and few_long_rows(x, r, RULES["along"])
