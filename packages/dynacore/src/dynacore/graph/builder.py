"""The graph of one capture: operations are appended as the machine meets them; `finish` makes it a module."""

from __future__ import annotations

import keyword
import linecache
import operator
import re
from typing import Any

import torch
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule, Node

from ..config import config
from ..objects.number_functions import function_of
from ..reasons import Break
from ..torch_api import Switch, assert_scalar, graph_module
from ..torch_types import is_plain
from ..values import IN_GRAPH, NONE, Host, ListObj, Tensor, TupleObj, Value
from . import computed, devices, dims, gradients, liveness, ops, symbolic, tensors
from .arguments import Arguments
from .meta import TensorSpec, infer, stand_in
from .sizes import Size
from .state import TorchState, rely_on_switch

#: operators with which a graph computes sizes, and what is said of them
ARITHMETIC = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne, "min": torch.sym_min, "max": torch.sym_max,
}  # fmt: skip


class Graph:
    """One graph under construction."""

    def __init__(self, machine: Any):
        self.m = machine
        self.fx = FxGraph()
        self.inputs: list[Tensor | Host] = []
        self.state = TorchState()
        self.before = TorchState()
        self.where: tuple[str, int] = ("", 0)
        self.n_ops = 0
        self._after_inputs: Node | None = None
        self._names: set[str] = set()
        self.counts: dict[int, tuple[torch.Tensor, Any]] = {}  # by stand-in: how many elements aren't zero
        self.asks_for_grad = False  # whether the program does, of any tensor
        self.viewed: dict[int, Tensor] = {}  # what views were made of with grad mode off, by identity
        self.unbacked = False  # whether an operation gives numbers that compilers have to take for symbols

    is_op = staticmethod(ops.is_op)

    # -- inputs -----------------------------------------------------------------------------------------------------

    def tensor_input(self, obj: torch.Tensor, source: Any) -> Tensor:
        """The value of a tensor from outside, with the guard on its metadata."""
        cls = type(obj)
        if not is_plain(cls):
            raise Break("tensor-subclass", f"{cls.__module__}.{cls.__qualname__}")
        value = Tensor(stand_in(obj), obj.device, cls, None, obj, source)
        value.layout = dims.layout(self.m, obj, source)
        source.check("tensor", TensorSpec(obj, value.layout))
        return value

    def node_of(self, value: Tensor | Host) -> Node:
        """The node that computes `value`; inputs and items of results get theirs at the first use."""
        node = value.node
        if node is None:
            node = value.node = self._placeholder(value)
        elif type(node) is tuple:
            parent, index = node
            node = value.node = self._append("call_function", operator.getitem, (parent, index), {})
        return node

    def number_of(self, value: Host) -> Any:
        """An open number as an argument of an operation: a constant, an input, or computed in the graph from such."""
        now = self.m.settled(value)
        if type(now) is not Host:
            return now.value
        function = ARITHMETIC.get(now.symbol) or (function_of(now.text) if now.computed else None)
        followed = now.cls is int or now.computed
        if now.node is None and followed and now.source is None and function is not None:
            operands = [self.number_of(o) if type(o) is Host else o.value for o in now.operands]  # type: ignore[attr-defined]
            if any(isinstance(operand, Node) for operand in operands):
                now.node = self._append("call_function", function, tuple(operands), {})  # type: ignore[assignment]
        if now.node is None and now.computed:
            raise Break("host-value-branch", "an expression over what the graph gives")
        return self.node_of(now)

    def _placeholder(self, value: Tensor | Host) -> Node:
        name = readable(str(value.source), self._names)
        after = self._after_inputs
        with self.fx.inserting_after(after) if after is not None else self.fx.inserting_before():
            node = self.fx.placeholder(name)
        self._after_inputs = node
        if type(value) is Tensor:
            node.meta["example_value"] = value.fake
        self.inputs.append(value)
        return node

    # -- operations -------------------------------------------------------------------------------------------------

    def call(
        self, target: Any, args: list[Value], kwargs: dict[str, Value] | None = None, method: bool = False
    ) -> Value:
        """Append the operation `target(*args, **kwargs)`; with `method`, `target` names a method of `args[0]`."""
        if method:
            target = getattr(torch.Tensor, target)
        name = ops.name_of(target)
        kwargs = kwargs or {}
        code = ops.refusal(target, name)
        if name == "item" and len(args) == 1 and type(args[0]) is Tensor:
            return self.scalar(args[0])
        if code is not None and not (code == "data-dependent-shape" and computed.covered(name)):
            raise Break(code, name)
        self.asks_for_grad |= name in gradients.HEEDING
        handlers = tensors.METHODS if args and type(args[0]) is Tensor else tensors.OF_LISTS
        special = handlers.get(name)
        if special is not None:
            answer = special(self, *args, **kwargs)
            if answer is not None:
                return answer
        call = Arguments(self, target, name, args, kwargs)
        device = devices.of_result(call)
        new = computed.specs(call, self.state)
        if new is not None:
            value = self._record(call, infer(call, self.state, computed.examples(new)), device)
            symbolic.attach(value, computed.layouts(new))
            self._give_sizes(value)
            return value
        try:
            result = infer(call, self.state)
        except Break as cause:
            if cause.code == "op-failed-on-meta" and computed.among(call):
                raise Break("host-value-branch", f"{name}: whether sizes fit that only the run tells") from None
            raise
        if isinstance(result, torch.dtype):
            return self.m.const(result)
        if not call.varying:
            return self._record(call, result, device)
        found = symbolic.layouts(call, result, self.state)
        value = self._record(call, result, device)
        symbolic.attach(value, found)
        return value

    def _give_sizes(self, value: Value) -> None:
        """Read new sizes from the results that have them."""
        if isinstance(value, TupleObj):
            for item in value.items:
                self._give_sizes(item)
        elif type(value) is Tensor and value.layout is not None:
            for dim, size in enumerate(value.layout[0]):
                if type(size) is Size and size.host.call == IN_GRAPH and size.host.node is None:
                    size.host.node = self._append("call_method", "size", (self.node_of(value), dim), {})
                    self.unbacked = True

    def _record(self, call: Arguments, result: Any, device: torch.device | None) -> Value:
        """Append the node of an operation that inference let pass, and give its result as values."""
        checked(result, call.name)
        args, kwargs = call.for_fx()
        if ops.is_method(call.target) and call.values and type(call.values[0]) is Tensor:
            node = self._append("call_method", call.name, args, kwargs)
        else:
            node = self._append("call_function", call.target, args, kwargs)
        self.n_ops += 1
        if not self.state.grad and any(t._is_view() for t in tensors_of(result)):
            self.viewed.update((id(t), t) for t in call.tensors)
        node.meta["mutates"] = call.mutated() or result is None
        if node.meta["mutates"] or ops.is_leaf_by_mark(call.target):
            self.counts.clear()
        if isinstance(result, torch.Tensor):
            node.meta["example_value"] = result
        return self._result(result, node, call.by_fake, device)

    def scalar(self, t: Tensor, kind: type | None = None) -> Host:
        """The value of a tensor with one element as a number of this kind, which the graph gives."""
        number = bool if t.fake.dtype is torch.bool else float if t.fake.dtype.is_floating_point else int
        kind = kind or number
        known = not t.fake.dtype.is_complex and t.layout is None and t.fake.numel() == 1 and is_plain(t.cls)
        if not config.capture_scalar_outputs or kind is not number or not known:
            raise Break("tensor-to-python", f"{kind.__name__}()" if kind is not number else "item")
        value = Host(kind(2), None, "", (), IN_GRAPH)  # any number will do: nothing can be decided on it
        value.node = self._append("call_method", "item", (self.node_of(t),), {})  # type: ignore[assignment]
        self.n_ops += 1
        self.unbacked = True
        return value

    def check(self, condition: Host) -> None:
        """Have the graph raise unless a condition on numbers that it gives holds, which is relied on from here on."""
        m, node = self.m, self.number_of(condition)
        self._append("call_function", assert_scalar, (node, f"not true in this call: {condition.text}"), {})
        a, b = (m.form_of(operand) for operand in condition.operands)
        if condition.example and a is not None and b is not None and condition.symbol in ("<", "<=", ">", ">="):
            m.integers.learn(condition.symbol, a, b, True)

    def _append(self, op: str, target: Any, args: tuple, kwargs: dict) -> Node:
        node = self.fx.create_node(op, target, args, kwargs)
        node.meta["where"] = self.where
        return node

    def _result(self, result: Any, node: Any, known: dict[int, Tensor], device: Any) -> Value:
        """The value of what an operation returned; an argument that is returned stays the same value."""
        if isinstance(result, torch.Tensor):
            same = known.get(id(result))
            if same is not None:
                return same
            return Tensor(result, device, torch.Tensor, node)
        if result is None:
            return NONE
        if isinstance(result, (tuple, list)):
            items = [self._result(item, self._item(node, i), known, device) for i, item in enumerate(result)]
            if type(result) is list:
                return ListObj(list(items))
            return TupleObj(items, type(result))
        return self.m.const(result)

    def _item(self, node: Any, index: int) -> Any:
        """The place of a result's item: made a node when it is used."""
        if type(node) is tuple:
            node = self._append("call_function", operator.getitem, node, {})
        return node, index

    def state_call(self, target: Any, *args: Any) -> None:
        """Append a call that sets torch's state."""
        node = self._append("call_function", target, args, {})
        node.meta["mutates"] = True

    def switch(self, switch: Switch) -> Any:
        """The value of a switch between kernels, under a guard."""
        return rely_on_switch(self.m.root, switch)

    def attribute(self, value: Tensor, name: str) -> Value | None:
        """The attribute `name` of a tensor, None when it has no such attribute."""
        self.asks_for_grad |= name in gradients.TELLING
        return tensors.tensor_attr(self.m, value, name)

    # -- the end ----------------------------------------------------------------------------------------------------

    def rely_on_gradients(self) -> bool:
        """Assume what the capture relied on of gradients; True where tensors from outside may require one or not."""
        if not self.asks_for_grad and not gradients.matter(self.fx, self.before):
            return True
        for value in self.viewed.values():
            tensors.rely_on_base(value)
        return False

    def needed(self, outputs: list[Tensor]) -> bool:
        """Whether the graph gives anything or does anything."""
        return bool(outputs) or any(not liveness.removable(node) for node in self.fx.nodes)

    def finish(self, outputs: list[Tensor]) -> tuple[GraphModule, list[Tensor | Host]]:
        """The graph as a module that returns the tuple of `outputs`, and the values of its inputs in order."""
        if any(node.meta.get("mutates") for node in self.fx.nodes):
            for value in self.inputs:
                if type(value) is Tensor:
                    tensors.rely_on_leaf(value)  # in-place operations are refused on some leaves
        self._append("output", "output", (tuple(self.node_of(value) for value in outputs),), {})
        liveness.remove_dead(self.fx)
        used = {node for node in self.fx.nodes if node.op == "placeholder"}
        self.inputs = [value for value in self.inputs if value.node in used]
        traces: dict[tuple[str, int], str] = {}
        for node in self.fx.nodes:
            where = node.meta.pop("where", None)
            node.meta.pop("mutates", None)
            if where is not None:
                if where not in traces:
                    traces[where] = stack_trace(*where)
                node.meta["stack_trace"] = traces[where]
        if config.verify:
            self.fx.lint()
        module = graph_module(torch.nn.Module(), self.fx, "CapturedGraph")
        varying = dims.varying(self.m, self.inputs, self.unbacked)
        if varying is not None:
            module.meta["varying"] = varying
        return module, self.inputs


def stack_trace(file: str, line: int) -> str:
    """The place in the form of a traceback, as `torch.fx` users know it."""
    return f'  File "{file}", line {line}\n    {linecache.getline(file, line).strip()}\n'


def readable(path: str, taken: set[str]) -> str:
    """A placeholder's name after the path of its source."""
    name = re.sub(r"\W+", "_", path).strip("_").lower()[-60:].strip("_") or "x"
    name = re.sub(r"_+", "_", name)
    if name[0].isdigit() or keyword.iskeyword(name):
        name = f"in_{name}"
    base, n = name, 1
    while name in taken:
        n += 1
        name = f"{base}_{n}"
    taken.add(name)
    return name


def tensors_of(result: Any) -> list[torch.Tensor]:
    """The tensors that an operation returned."""
    items = result if isinstance(result, (tuple, list)) else (result,)
    return [item for item in items if isinstance(item, torch.Tensor)]


def checked(result: Any, name: str) -> None:
    """Refuse results that a graph can't carry."""
    if isinstance(result, torch.Tensor):
        if not is_plain(type(result)):
            raise Break("tensor-subclass", name)
        if result.layout is not torch.strided:
            raise Break("op-unsupported", f"{name} returns a tensor of layout {result.layout}")
    elif isinstance(result, (tuple, list)):
        for item in result:
            checked(item, name)
    elif isinstance(result, (bool, int, float, complex)):
        raise Break("tensor-to-python", name)
    elif result is not None and not isinstance(result, (torch.dtype, torch.device)):
        raise Break("op-unsupported", f"{name} returns {type(result).__name__}")
