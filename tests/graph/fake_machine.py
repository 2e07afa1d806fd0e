"""A machine just big enough to build graphs by hand."""

from __future__ import annotations

from typing import Any

import torch

from dynacore.graph.builder import Graph
from dynacore.objects.integers import Integers
from dynacore.reasons import Break
from dynacore.sources import Source
from dynacore.values import Const, Host, Known, ListObj, SliceObj, Tensor, TupleObj, Value

LITERALS = (int, float, bool, complex, str, type(None), type(Ellipsis))


class FakeMachine:
    def __init__(self) -> None:
        self.root = Source(None, "root")
        self.graph = Graph(self)
        self.specialised: list[Host] = []
        self.sizes_vary: bool | None = False
        self.dynamic: frozenset = frozenset()
        self.integers = Integers()

    def const(self, obj: Any) -> Value:
        if type(obj) in LITERALS:
            return Const(obj)
        if type(obj) is tuple:
            return TupleObj([self.const(item) for item in obj])
        return Known(obj)

    def constant_of(self, value: Value) -> Any:
        if type(value) is Const:
            return value.value
        if type(value) is Known:
            return value.obj
        if type(value) is TupleObj:
            return tuple(self.constant_of(item) for item in value.items)
        if type(value) is ListObj:
            return [self.constant_of(item) for item in value.items]
        raise Break("not-constant")

    def specialise(self, host: Host) -> Const:
        self.specialised.append(host)
        return Const(host.example)

    def form_of(self, host: Host) -> Any:
        return {(self.integers.atom(None),): 1}

    def settled(self, host: Host) -> Value:
        return host

    def wrap(self, obj: Any, source: Source) -> Value:
        if isinstance(obj, torch.Tensor):
            return self.graph.tensor_input(obj, source)
        source.check("is", obj)
        return self.const(obj)


class Program:
    """Runs operations on values as a program would; `check` compares the finished graph with plain torch."""

    def __init__(self, *inputs: Any):
        self.m = FakeMachine()
        self.real = inputs
        self.inputs = [self.lift(obj, i) for i, obj in enumerate(inputs)]

    def lift(self, obj: Any, place: int) -> Value:
        if isinstance(obj, torch.Tensor):
            return self.m.graph.tensor_input(obj, self.m.root.child("arg", place))
        return Host(obj, self.m.root.child("arg", place))

    def value(self, obj: Any) -> Value:
        """Python objects around values, as values."""
        if isinstance(obj, Value):
            return obj
        if type(obj) is tuple:
            return TupleObj([self.value(item) for item in obj])
        if type(obj) is list:
            return ListObj([self.value(item) for item in obj])
        if type(obj) is slice:
            return SliceObj((self.value(obj.start), self.value(obj.stop), self.value(obj.step)))
        return self.m.const(obj)

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Any:
        values = [self.value(a) for a in args]
        return self.m.graph.call(target, values, {k: self.value(v) for k, v in kwargs.items()}, isinstance(target, str))

    def finish(self, *outputs: Tensor) -> tuple[Any, list]:
        return self.m.graph.finish(list(outputs))

    def run(self, *outputs: Tensor) -> tuple:
        module, inputs = self.finish(*outputs)
        return module(*[self.real[int(value.source.key)] for value in inputs])
