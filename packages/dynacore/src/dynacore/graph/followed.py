"""Layouts of results that no rule gives: torch works them out, with symbols for what varies.

That takes milliseconds an operation and loads a symbolic algebra system, so it comes after the rules. What torch
assumes of the symbols on its way is guarded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from ..torch_api import Symbols, inferring
from ..values import DictObj, Host, ListObj, SliceObj, Tensor, TupleObj, Value
from .arguments import Arguments
from .dims import Leaves
from .layouts import Declined
from .ops import is_leaf_by_mark
from .sizes import product, size_of
from .state import TorchState

META = torch.device("meta")
RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "Equality": operator.eq, "Unequality": operator.ne, "StrictLessThan": operator.lt, "LessThan": operator.le,
    "StrictGreaterThan": operator.gt, "GreaterThan": operator.ge,
}  # fmt: skip
QUOTIENTS = ("FloorDiv", "CleanDiv")
REMAINDERS = ("Mod", "PythonMod")


def followed(call: Arguments, state: TorchState) -> Any:
    """The layouts of the operation's results, nested as these are, as a rule would give them."""
    if state.casts or is_leaf_by_mark(call.target):
        raise Declined
    leaves = Leaves()
    args = [collect(call, value, leaves) for value in call.values]
    named = {name: collect(call, value, leaves) for name, value in call.kwvalues.items()}
    symbols = Symbols(leaves.known(call.graph.m))
    try:
        return run(call, symbols, leaves, args, named)
    finally:
        symbols.dispose()


def run(call: Arguments, symbols: Symbols, leaves: Leaves, args: list[Any], named: dict[str, Any]) -> Any:
    """The operation on tensors with symbolic sizes."""
    m = call.graph.m
    given = [made(arg, value, symbols) for arg, value in zip(args, call.args)]
    keywords = {name: made(arg, call.kwargs.get(name), symbols) for name, arg in named.items()}
    if call.kwargs.get("device") is META:
        keywords["device"] = call.tensors[0].device if call.tensors else torch.device("cpu")
    with symbols.mode, torch.no_grad(), inferring():
        result = call.target(*given, **keywords)
    sizes = {name: size_of(m, host) for name, host in zip(symbols.names, leaves.hosts, strict=True)}
    found = layouts(result, symbols, sizes)
    if not all(holds(assumption, sizes) for assumption in symbols.assumed()):
        raise Declined
    return found


def collect(call: Arguments, value: Value, leaves: Leaves) -> Any:
    """What varies in an argument, in its own structure; None where nothing does."""
    if type(value) is Tensor:
        return value, value.layout and leaves.layout(value.layout)
    if type(value) is Host and id(value) in call.open:
        return leaves.expression(value)
    if isinstance(value, (TupleObj, ListObj, SliceObj)):
        return [collect(call, item, leaves) for item in value.items]
    if isinstance(value, DictObj):
        raise Declined
    return None


def made(varies: Any, argument: Any, symbols: Symbols) -> Any:
    """The argument with symbols in it."""
    if varies is None:
        return argument
    if type(varies) is list:
        if isinstance(argument, slice):
            parts = (argument.start, argument.stop, argument.step)
            return slice(*[made(one, part, symbols) for one, part in zip(varies, parts, strict=True)])
        return type(argument)([made(one, item, symbols) for one, item in zip(varies, argument, strict=True)])
    if type(varies) is int or type(varies[0]) is str:
        return symbols.number(varies)
    tensor, layout = varies
    fake = tensor.fake
    return symbols.tensor(fake, layout or (tuple(fake.shape), fake.stride()), tensor.device)


def layouts(result: Any, symbols: Symbols, sizes: dict[str, Any]) -> Any:
    """Shape and strides of results as sizes."""
    if isinstance(result, torch.Tensor):
        return tuple([
            tuple([size(symbols.expression(number), sizes) for number in numbers])
            for numbers in (result.shape, result.stride())
        ])  # fmt: skip
    if isinstance(result, (tuple, list)):
        return [layouts(item, symbols, sizes) for item in result]
    if result is None:
        return None
    raise Declined


def size(expression: Any, sizes: dict[str, Any]) -> Any:
    """A sympy expression as a size."""
    if isinstance(expression, int) or expression.is_Integer:
        return int(expression)
    if expression.is_Symbol:
        return sizes[str(expression)]
    kind, parts = type(expression).__name__, [size(part, sizes) for part in expression.args]
    if kind == "Add":
        return sum(parts[1:], parts[0])
    if kind == "Mul":
        return product(parts)
    if kind == "Pow" and type(parts[1]) is int and 0 <= parts[1] < 8:
        return product([parts[0]] * parts[1])
    if kind in QUOTIENTS:
        return parts[0] // parts[1]
    if kind in REMAINDERS:
        return parts[0] % parts[1]
    if kind in ("Max", "Min"):
        chosen = parts[0]
        for part in parts[1:]:
            chosen = part if (part > chosen) is (kind == "Max") else chosen
        return chosen
    raise Declined


def holds(assumption: Any, sizes: dict[str, Any]) -> bool:
    """Whether an assumption of torch's holds in this call; it is guarded."""
    kind = type(assumption).__name__
    if kind in ("BooleanTrue", "BooleanFalse"):
        return kind == "BooleanTrue"
    if kind == "And":
        return all(holds(part, sizes) for part in assumption.args)
    if kind == "Not":
        return not holds(assumption.args[0], sizes)
    if kind not in RELATIONS:
        raise Declined
    left, right = (size(part, sizes) for part in assumption.args)
    return bool(RELATIONS[kind](left, right))


__all__ = ["followed"]
