"""What an operation returns where sizes vary: shape and strides as expressions over the sizes of the inputs.

The operation has been run on stand-ins, which have the sizes of the captured call. A rule says how the result's layout
depends on what varies; where none does, or one is wrong about this call, what varies is taken as it is.
"""

from __future__ import annotations

from typing import Any

import torch

from .. import logs
from ..errors import DynacoreError
from ..reasons import Break
from ..values import DictObj, Host, ListObj, SliceObj, Tensor, TupleObj, Value
from . import shapes_matrices  # noqa: F401  (fills SHAPES)
from .arguments import Arguments
from .followed import followed
from .keywords import positional
from .layouts import Declined
from .meta import in_place_of
from .ops import is_leaf_by_mark
from .shapes import IN_PLACE, QUICK
from .shapes_open import Same, in_order, rule_of
from .shapes_views import VIEWS
from .sizes import Shaped, Size, example, size_of, varies
from .state import TorchState

#: methods that change shape or strides of their tensor
RESHAPING = frozenset("t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ as_strided_".split())


def layouts(call: Arguments, result: Any, state: TorchState) -> Any:
    """The layouts of an operation's results, nested as these are; None where nothing of them varies.

    Numbers and sizes that the rules can't follow are specialised.
    """
    if result is None or any(result is tensor.fake for tensor in call.tensors) and call.name != "contiguous":
        if call.name in RESHAPING or (call.open and result is not None and not gives_back(call.name)):
            specialise(call)  # also where a number makes the operation give its argument back
        return None
    for rules, fit in ((VIEWS.get, matched), (QUICK.get, matched), (rule_of, of_shapes)):
        rule = rules(call.name)
        if rule is None or is_leaf_by_mark(call.target):
            continue
        try:
            args = [as_rules_see(call, value, arg, state) for value, arg in zip(call.values, call.args)]
            named = {k: as_rules_see(call, v, call.kwargs.get(k), state) for k, v in call.kwvalues.items()}
            args, named = positional(rule, call, args, named)
            return fit(rule(*args, **named), result)
        except Break as cause:
            if cause.code == "host-value-branch":
                raise
        except DynacoreError:
            raise
        except Exception:  # not covered, or wrong: the next rule, or no rule
            pass
    try:
        return matched(followed(call, state), result)
    except DynacoreError:
        raise
    except Exception:  # torch can't say either
        specialise(call)
        return None


def gives_back(name: str) -> bool:
    """Whether an operation gives its first argument back, whatever the others are."""
    return in_place_of(name) is not None or name in ("setitem", "__setitem__")


def as_rules_see(call: Arguments, value: Value, argument: Any, state: TorchState) -> Any:
    """An argument with `Shaped` and `Size` in it."""
    kind = type(value)
    if kind is Tensor:
        return Shaped(value, state.casts)
    if kind is Host and id(value) in call.open:
        return size_of(call.graph.m, value)
    if kind is TupleObj:
        return tuple([as_rules_see(call, item, arg, state) for item, arg in zip(value.items, argument)])
    if kind is ListObj:
        return [as_rules_see(call, item, arg, state) for item, arg in zip(value.items, argument)]
    if kind is SliceObj:
        parts = (argument.start, argument.stop, argument.step)
        return slice(*[as_rules_see(call, item, arg, state) for item, arg in zip(value.items, parts)])
    return argument


def matched(spec: Any, result: Any) -> Any:
    """The layouts in what a rule answered, if it is right about this call."""
    if spec is IN_PLACE or result is None:
        return None
    if isinstance(result, torch.Tensor):
        shape, strides = spec[:2]
        if tuple(map(example, shape)) != result.shape or tuple(map(example, strides)) != result.stride():
            raise Declined
        return (tuple(shape), tuple(strides)) if varies(shape) or varies(strides) else None
    if isinstance(result, (tuple, list)):
        if len(spec) != len(result):
            raise Declined
        return [matched(one, item) for one, item in zip(spec, result)]
    raise Declined


def of_shapes(found: Any, result: Any) -> Any:
    """The layouts of dense results of these shapes, if the rule is right about this call."""
    if isinstance(result, torch.Tensor):
        if type(found) is list or len(found) != result.dim():
            raise Declined
        return matched((tuple(found), in_order(found, result)), result)
    shapes = [found] * len(result) if type(found) is Same else found
    return [of_shapes(shape, item) for shape, item in zip(shapes, result, strict=True)]


def attach(value: Value, found: Any) -> None:
    """Give the values of results their layouts."""
    if found is None:
        return
    if type(value) is Tensor:
        value.layout = found
    elif isinstance(value, (TupleObj, ListObj)):
        for item, layout in zip(value.items, found):
            attach(item, layout)


def specialise(call: Arguments) -> None:
    """Take every size of the arguments, and every number among them, as it is in this call."""
    m = call.graph.m
    if logs.enabled("dynamic"):
        logs.emit("dynamic", f"how the result of {call.name} depends on sizes isn't known")
    for tensor in call.tensors:
        if tensor.layout is not None:
            for size in (*tensor.layout[0], *tensor.layout[1]):
                if type(size) is Size:
                    m.specialise_parts(size.host)
            tensor.layout = None
    for value in (*call.values, *call.kwvalues.values()):
        specialise_numbers(call, value)


def specialise_numbers(call: Arguments, value: Value) -> None:
    """Open numbers in an argument become constants of the graph."""
    if type(value) is Host and value.cls is int and id(value) in call.open:
        call.hosts[id(value)] = call.graph.m.specialise(value).value
    elif isinstance(value, (TupleObj, ListObj, SliceObj)):
        for item in value.items:
            specialise_numbers(call, item)
    elif isinstance(value, DictObj):
        for _, item in call.graph.m.d_items(value):
            specialise_numbers(call, item)


__all__ = ["attach", "layouts", "specialise"]
