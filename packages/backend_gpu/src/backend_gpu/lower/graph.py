"""The driver: walks a graph of ATen operations and lowers each, or makes it a call of ATen."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

from dynacore import torch_api

from ..errors import Unsupported
from ..ir.index import Index
from ..ir.nodes import COMPUTED, Graph, Node, Ref
from . import foreach, indexing, pointwise, pooling, random, reductions, views
from .memory import IN_MEMORY, at_position, is_dense, place, same_strides, strided
from .registry import LOWERINGS, Lower, NotLowered
from .symbols import Symbols, is_symbolic

LOADED = (foreach, indexing, pointwise, pooling, random, reductions, views)
"""The modules whose import fills the table."""


class Driver(Lower):
    """Lowers one graph."""

    def __init__(self, gm: torch.fx.GraphModule, device: torch.device) -> None:
        super().__init__(device)
        self.gm = gm
        self.symbols = Symbols()
        self.joined = {}
        self.env: dict[torch.fx.Node, Any] = {}
        self.inputs: list[Any] = []
        self.mutations: list[tuple[Node, Node]] = []
        self.strides: dict[int, tuple[Index, ...]] = {}
        self.aten_calls: list[tuple[str, str]] = []
        """What went to ATen, with the reason."""

    def to_index(self, value: Any) -> Index:
        return value if isinstance(value, int) else self.symbols.index(value)

    def run(self) -> Graph:
        """The graph, or `Unsupported`."""
        outputs: Any = ()
        for node in self.gm.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node)
            elif node.op == "output":
                outputs = self._outputs(node.args[0])
            elif node.op == "call_function":
                self._describe(node)
                self._call(node)
            elif node.op == "get_attr":
                self._constant(node)
            else:
                raise Unsupported(f"a graph node of kind {node.op}")
        graph = Graph(self.inputs, outputs, self.mutations, self.device, self.symbols.places(), self.strides)
        self._nothing_elsewhere(graph)
        return graph

    @staticmethod
    def _nothing_elsewhere(graph: Graph) -> None:
        """Raise `Unsupported` where a kernel would touch memory that isn't on the device."""
        marked: dict[Node, Any] = {}
        for node in graph.nodes():
            found = [marked[source] for source in node.inputs if source in marked]
            if "elsewhere" in node.attrs:
                marked[node] = node.attrs["elsewhere"]
            elif found and node.op == "view":
                marked[node] = found[0]
            elif found and node.op not in ("extern", "item"):
                raise Unsupported(f"{node.name} of a tensor on {found[0]}")
        for target, _ in graph.mutations:
            if target in marked:
                raise Unsupported(f"{target.name}, on {marked[target]}, is overwritten")

    def _describe(self, node: torch.fx.Node) -> None:
        self.name = node.name
        trace = node.meta.get("stack_trace") or ""
        lines = [line.strip() for line in trace.splitlines() if line.strip().startswith('File "')]
        if lines:
            file, line, *_ = lines[-1][len('File "') :].split('", line ')
            self.where = f"{file.rsplit('/', 1)[-1]}:{line.split(',')[0]}"
        else:
            self.where = ""

    def _placeholder(self, node: torch.fx.Node) -> None:
        val = node.meta.get("val")
        self.name, self.where = node.name, ""
        made: Node | Index | None
        if isinstance(val, torch.Tensor):
            self.symbols.note_tensor(val, len(self.inputs))
            made = self._input(val)
        elif is_symbolic(val) or isinstance(val, int) and not isinstance(val, bool):
            made = self.symbols.note_number(val, len(self.inputs))
        elif val is None:
            made = None
        else:
            raise Unsupported(f"an input of type {type(val).__name__}")
        self.inputs.append(made)
        self.env[node] = made

    def _constant(self, node: torch.fx.Node) -> None:
        """A tensor that the graph holds: a number where it is one, else memory like an input's."""
        value: Any = self.gm
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            raise Unsupported(f"a constant of type {type(value).__name__} in the graph")
        self._describe(node)
        if value.ndim == 0 and value.dtype in COMPUTED and not torch_api.is_fake(value) and value.device.type == "cpu":
            self.env[node] = self.const(value.item(), value.dtype)
            return
        if torch_api.is_fake(value):
            raise Unsupported("a constant without data in the graph")
        self.env[node] = self.node("input", (), tuple(value.shape), value.dtype, strides=value.stride(), constant=value,
                                   **self._elsewhere(value))  # fmt: skip

    def _input(self, val: torch.Tensor) -> Node:
        if val.layout != torch.strided or val.is_quantized:
            raise Unsupported(f"a tensor with layout {val.layout}")
        shape = tuple(self.to_index(size) for size in val.shape)
        strides = tuple(self.to_index(step) for step in val.stride())
        return self.node("input", (), shape, val.dtype, strides=strides, **self._elsewhere(val))

    def _value(self, argument: Any) -> Any:
        """An argument with graph nodes replaced by what they became."""
        if isinstance(argument, torch.fx.Node):
            return self.env[argument]
        if isinstance(argument, (list, tuple)):
            return [self._value(item) for item in argument]
        if isinstance(argument, slice):
            raise Unsupported("a slice as an argument")
        return self.symbols.number(self, argument) if is_symbolic(argument) else argument

    def _call(self, node: torch.fx.Node) -> None:
        target = node.target
        arguments = [self._value(argument) for argument in node.args]
        keywords = {key: self._value(value) for key, value in node.kwargs.items()}
        if target is operator.getitem:
            self.env[node] = arguments[0][arguments[1]]
            return
        if target is torch.ops.aten.copy_.default and isinstance(arguments[0], Node) and arguments[0].op == "input":
            into = arguments[0]
            value = self.expand(self.cast(arguments[1], into.dtype), into.shape)
            self.mutations.append((into, value))
            self.env[node] = value
            return
        val = node.meta.get("val")
        if is_symbolic(val) or isinstance(val, int):
            self.env[node] = self.symbols.number(self, val)
            return
        if not isinstance(target, torch_api.OpOverload):
            raise Unsupported(f"a call of {target}")
        self._operation(node, target, val, arguments, keywords)

    def _operation(self, node: torch.fx.Node, target: Any, val: Any, arguments: list[Any], keywords: Any) -> None:
        self.val = val
        self.fake_arguments = tuple(
            argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument for argument in node.args
        )
        reason = self._why_not(target, node)
        if reason is None:
            try:
                made = LOWERINGS[target](self, *arguments, **keywords)
                self._note_strides(made, val)
                self.env[node] = made
                return
            except NotLowered as refusal:
                reason = str(refusal)
        self.aten_calls.append((torch_api.packet_name(target), reason))
        self.env[node] = self._extern(target, val, arguments, keywords)

    def _why_not(self, target: Any, node: torch.fx.Node) -> str | None:
        if target not in LOWERINGS:
            return "no lowering"
        for fake in [*self._fakes(node), *(self.val if isinstance(self.val, (list, tuple)) else [self.val])]:
            if isinstance(fake, torch.Tensor):
                if fake.device != self.device:
                    return f"a tensor on {fake.device}"
                if fake.dtype not in COMPUTED:
                    return f"dtype {fake.dtype}"
        return None

    @staticmethod
    def _fakes(node: torch.fx.Node) -> list[Any]:
        return [source.meta.get("val") for source in node.all_input_nodes]

    def _note_strides(self, made: Any, val: Any) -> None:
        if isinstance(made, Node) and isinstance(val, torch.Tensor) and made.strides is None:
            strides = tuple(self.to_index(step) for step in val.stride())
            if made.op not in ("view", "input", "item", "const") and is_dense(made.shape, strides):
                made.strides = strides

    def _extern(self, target: Any, val: Any, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        if torch_api.schema_of(target).is_mutable:
            raise Unsupported(f"{target}, which changes its arguments")
        operands: list[Node] = []
        fakes = iter(_flat(self.fake_arguments))

        def template(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return [template(item) for item in value]
            fake = next(fakes, None)
            if not isinstance(value, Node):
                return value
            strides = None
            if is_symbolic(fake):
                raise Unsupported(f"{target} of a number that is computed in a kernel")
            if isinstance(fake, torch.Tensor) and tuple(map(self.to_index, fake.shape)) == value.shape:
                strides = tuple(self.to_index(step) for step in fake.stride())
            operands.append(place(self, value, strides))
            return Ref(len(operands) - 1)

        args = [template(value) for value in arguments]
        fakes = iter(())
        kwargs = {key: template(value) for key, value in keywords.items()}
        results = list(val) if isinstance(val, (list, tuple)) else [val]
        made = self.node("extern", operands, (), torch.float32, target=target, args=args, kwargs=kwargs,
                         many=isinstance(val, (list, tuple)))  # fmt: skip
        items = [self._item(made, position, result) for position, result in enumerate(results)]
        return items if isinstance(val, (list, tuple)) else items[0]

    def _item(self, extern: Node, position: int, val: Any) -> Any:
        if val is None:
            return None
        if not isinstance(val, torch.Tensor):
            raise Unsupported(f"an ATen operation that returns a {type(val).__name__}")
        if any(_data_dependent(size) for size in val.shape):
            raise Unsupported("a size that depends on data")
        shape = tuple(self.to_index(size) for size in val.shape)
        strides = tuple(self.to_index(step) for step in val.stride())
        return self.node("item", (extern,), shape, val.dtype, which=position, strides=strides, **self._elsewhere(val))

    def _elsewhere(self, val: torch.Tensor) -> dict[str, Any]:
        """What marks a tensor that isn't on the device: no kernel may touch it."""
        return {} if val.device == self.device else {"elsewhere": val.device}

    def _outputs(self, results: Any) -> list[Any]:
        placed: list[Any] = []
        owners: dict[Node, torch.fx.Node] = {target: _never for target, _ in self.mutations}
        results = results if isinstance(results, (list, tuple)) else [results]
        roots = Counter(_without_views(node) for node in dict.fromkeys(results) if isinstance(node, torch.fx.Node))
        numbers = {root: number for number, root in enumerate(roots, 1)}
        for position, result in enumerate(results):
            value = self._value(result)
            if not isinstance(value, Node):
                placed.append(value)
                continue
            self.name, self.where = result.name, ""
            self.strides[position] = strides = tuple(self.to_index(step) for step in result.meta["val"].stride())
            root = _without_views(result)
            whole = roots[root] > 1 or not is_dense(value.shape, strides)
            # Outputs share memory where they do in eager: with an input, or with each other, by views alone.
            for copy in (0, numbers[root]):
                node = self._over(value, result, root, copy) if whole else None
                node = node or place(self, value, strides, alias=not copy, copy=copy)
                found = strided(node)
                if found is not None and owners.setdefault(found[0], root) is root:
                    if found[0].op != "input" or root.op in ("placeholder", "get_attr"):
                        break
            placed.append(node)
        return placed

    def _over(self, value: Node, result: torch.fx.Node, root: torch.fx.Node, copy: int) -> Node | None:
        """A view of what eager has in memory whole, the root's result; None where that isn't known."""
        base = self.env[root]
        if result is root or not isinstance(base, Node) or base.op in IN_MEMORY and not copy:
            return None
        val, of_root = result.meta["val"], root.meta["val"]
        own, strides = (tuple(self.to_index(step) for step in fake.stride()) for fake in (of_root, val))
        if not is_dense(base.shape, own):
            return None
        memory = place(self, base, own, alias=not copy, copy=copy)
        if memory.op not in IN_MEMORY or not same_strides(base.shape, memory.layout(), own) or 0 in value.shape:
            return None
        offset = self.to_index(val.storage_offset()) - self.to_index(of_root.storage_offset())
        index = tuple(at_position(base.shape, own, value.shape, strides, offset))
        # Where it lies is told, too: of open sizes the index alone may not show it.
        return self.node("view", (memory,), value.shape, value.dtype, index=index, guards=(), fill=0,
                         over=(strides, offset))  # fmt: skip


_never: Any = object()
"""The owner of memory that no output may share."""


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _flat(item)]
    if isinstance(value, torch.fx.Node):
        return [value.meta.get("val")]
    return [value]


def _data_dependent(size: Any) -> bool:
    return is_symbolic(size) and any(str(symbol).startswith("u") for symbol in
                                     torch_api.sympy_expression(size).free_symbols)  # fmt: skip


def _without_views(node: torch.fx.Node) -> torch.fx.Node:
    """The node whose memory this one is, or is a view of."""
    while node.op == "call_function":
        maker = node.args[0] if node.target is operator.getitem else node  # of several views
        if not getattr(maker.target, "is_view", False):
            break
        node = maker.args[0]
    return node


def lower(gm: torch.fx.GraphModule, device: torch.device) -> tuple[Graph, Sequence[tuple[str, str]]]:
    """The graph of a module of ATen operations, and which of its operations go to ATen, with the reasons."""
    driver = Driver(gm, device)
    return driver.run(), driver.aten_calls
