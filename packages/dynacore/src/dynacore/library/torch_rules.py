"""Rules for what models call of torch besides operations: modes, queries about the process, types, shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import sdpa_kernel

from .. import torch_api
from ..reasons import Break
from ..torch_types import is_plain
from ..values import FALSE, NONE, TRUE, Const, Host, Tensor, TupleObj, Value
from .registry import pure, rule


def constant(*callables: Any, value: Value) -> None:
    """Declare that the callables answer `value` in captured code, whatever they are given."""
    rule(*callables)(lambda m, *args, **kwargs: value)


def refuse(code: str, *callables: Any) -> None:
    """Declare that calling these is left to the interpreter."""
    for target in callables:
        rule(target)(functools.partial(_refuse, code, getattr(target, "__name__", repr(target))))


def _refuse(code: str, name: str, m: Any, *args: Value, **kwargs: Value) -> Value:
    raise Break(code, name)


# -- is this being compiled? ---------------------------------------------------------------------------------------

constant(torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling, torch_api.is_compiling, value=TRUE)
constant(torch.compiler.is_exporting, torch.jit.is_scripting, torch_api.is_scripting, torch.jit.is_tracing, value=FALSE)
constant(torch_api.get_tracing_state, value=NONE)
constant(torch_api.log_api_usage_once, value=NONE)  # counts uses inside torch's builds; nothing reads it

# -- grad mode ------------------------------------------------------------------------------------------------------


@rule(torch_api.set_grad_enabled)
def set_grad_enabled(m: Any, mode: Value) -> Value:
    """Grad mode on or off from here on."""
    on = m.constant_of(mode)
    if type(on) is not bool:
        raise Break("torch-state", "set_grad_enabled")
    if on is not m.graph.state.grad:
        m.graph.state_call(torch_api.set_grad_enabled, on)
        m.graph.state.grad = on
    return NONE


@rule(torch.is_grad_enabled)
def is_grad_enabled(m: Any) -> Value:
    return Const(m.graph.state.grad)


@rule(torch.is_inference_mode_enabled)
def is_inference_mode_enabled(m: Any) -> Value:
    return Const(m.graph.state.inference)


# -- autocast ------------------------------------------------------------------------------------------------------


def autocast_device(m: Any, value: Value) -> str:
    """The device type that an autocast function was given."""
    device = m.constant_of(value)
    if type(device) is not str or device not in m.graph.state.autocast:
        raise Break("torch-state", f"autocast on {device}")
    return device


@rule(torch.is_autocast_enabled)
def is_autocast_enabled(m: Any, device: Value = Const("cuda")) -> Value:  # noqa: B008
    return Const(m.graph.state.autocast[autocast_device(m, device)])


@rule(torch.get_autocast_dtype)
def get_autocast_dtype(m: Any, device: Value) -> Value:
    return m.const(m.graph.state.autocast_dtype[autocast_device(m, device)])


@rule(torch.is_autocast_cache_enabled)
def is_autocast_cache_enabled(m: Any) -> Value:
    return Const(m.graph.state.autocast_cache)


@rule(torch.set_autocast_enabled)
def set_autocast_enabled(m: Any, device: Value, enabled: Value) -> Value:
    """Autocast on or off for one device type."""
    name, on = autocast_device(m, device), m.constant_of(enabled)
    if on is not m.graph.state.autocast[name]:
        m.graph.state_call(torch.set_autocast_enabled, name, on)
        m.graph.state.autocast[name] = on
    return NONE


@rule(torch.set_autocast_dtype)
def set_autocast_dtype(m: Any, device: Value, dtype: Value) -> Value:
    """The dtype to which autocast casts."""
    name, new = autocast_device(m, device), m.constant_of(dtype)
    if new is not m.graph.state.autocast_dtype[name]:
        m.graph.state_call(torch.set_autocast_dtype, name, new)
        m.graph.state.autocast_dtype[name] = new
    return NONE


@rule(torch.set_autocast_cache_enabled)
def set_autocast_cache_enabled(m: Any, enabled: Value) -> Value:
    """Whether autocast remembers casts of parameters."""
    on = m.constant_of(enabled)
    if on is not m.graph.state.autocast_cache:
        m.graph.state_call(torch.set_autocast_cache_enabled, on)
        m.graph.state.autocast_cache = on
    return NONE


@rule(torch.autocast_increment_nesting)
def autocast_increment_nesting(m: Any) -> Value:
    return change_nesting(m, torch.autocast_increment_nesting, 1)


@rule(torch.autocast_decrement_nesting)
def autocast_decrement_nesting(m: Any) -> Value:
    return change_nesting(m, torch.autocast_decrement_nesting, -1)


def change_nesting(m: Any, function: Any, by: int) -> Value:
    """Enter or leave one autocast block. How deep the call itself stands in such blocks is guarded from now on."""
    state = m.graph.state
    if state.autocast_nesting is None:
        state.autocast_nesting = m.constant_of(guarded(m, torch_api.autocast_nesting))
        m.graph.before.autocast_nesting = state.autocast_nesting
    m.graph.state_call(function)
    state.autocast_nesting += by
    return Const(state.autocast_nesting)


@rule(torch.clear_autocast_cache)
def clear_autocast_cache(m: Any) -> Value:
    m.graph.state_call(torch.clear_autocast_cache)
    return NONE


# -- other state: read under the guard on the global state, or under its own ------------------------------------------


def call(function: Callable[[], Any]) -> Any:
    """`function()`, as an accessor of guards on state that only a getter shows."""
    return function()


def guarded(m: Any, getter: Any) -> Value:
    """The answer of a getter without arguments, checked before every run."""
    return m.wrap(getter(), m.root.child("const", getter).child("call", call))


def covered(*getters: Any) -> None:
    """Declare getters whose answer the guard on torch's global state covers."""
    for getter in getters:
        rule(getter)(lambda m, getter=getter: m.const(getter()))


covered(
    torch.get_default_dtype,
    torch.are_deterministic_algorithms_enabled,
    torch.is_deterministic_algorithms_warn_only_enabled,
    torch.get_num_threads,
    torch.get_default_device,  # another one than the CPU is a function mode, under which nothing is captured
)
constant(*torch_api.function_mode_queries(), value=FALSE)
constant(torch_api.function_mode_depth, torch_api.dispatch_mode_depth, value=Const(0))
for _getter in torch_api.backend_switches():
    rule(_getter)(functools.partial(lambda getter, m: guarded(m, getter), _getter))


def read_switch(m: Any, switch: torch_api.Switch) -> Value:
    """A switch between kernels, which is the same in every run."""
    return m.const(m.graph.switch(switch))


for _switch in torch_api.SWITCHES:
    if not _switch.arguments:
        rule(_switch.ask)(functools.partial(lambda switch, m: read_switch(m, switch), _switch))


@rule(torch_api.fp32_precision)
def fp32_precision(m: Any, backend: Value, operation: Value) -> Value:
    asked = m.constant_of(backend), m.constant_of(operation)
    for switch in torch_api.SWITCHES:
        if switch.arguments and switch.ask.args == asked:  # type: ignore[attr-defined]
            return read_switch(m, switch)
    raise Break("torch-state", "fp32_precision")


for _getter in (torch.cuda.is_available, torch.cuda.device_count):
    rule(_getter)(lambda m, getter=_getter: m.const(getter()))
pure(*torch_api.pure_functions(), torch.device, torch.promote_types, torch.can_cast, torch.finfo, torch.iinfo)

refuse(
    "torch-state",
    torch.set_default_dtype,
    torch.set_default_device,
    torch.set_num_threads,
    torch.use_deterministic_algorithms,
    torch_api.InferenceMode,
    sdpa_kernel,  # contexts of settings: inside are many calls that would break one by one
    *(backend.flags for backend in (torch.backends.cudnn, torch.backends.mkldnn, torch.backends.nnpack)),
)
refuse("random-state", torch.manual_seed, torch.seed, torch.get_rng_state, torch.set_rng_state, torch.Generator)
refuse("tensor-storage", torch.save, torch.load)
refuse("construct-unknown", torch.Tensor, torch.nn.Parameter)
refuse("autograd", torch.autograd.grad, torch.autograd.backward)


# -- what the program says of its numbers -----------------------------------------------------------------------------


@rule(torch_api.check)
def check(m: Any, cond: Value, message: Value = NONE) -> Any:
    """A condition: of a number that the graph gives, the graph checks it."""
    if type(cond) is not Host or not cond.computed:
        return m.call_function_object(m.const(torch_api.check), [cond, message], {})
    m.graph.check(cond)
    return NONE


@rule(torch_api.check_is_size)
def check_is_size(m: Any, i: Value, message: Value = NONE, *, max: Value = NONE) -> Any:
    """That a number is at least 0, and not above `max`."""
    if type(i) is not Host or not i.computed:
        arguments = {} if m.is_none(max) else {"max": max}
        return m.call_function_object(m.const(torch_api.check_is_size), [i, message], arguments)
    for symbol, bound in ((">=", Const(0)), ("<=", max)):
        condition = TRUE if m.is_none(bound) else m.binary(symbol, i, bound, False)
        if type(condition) is Host:
            m.graph.check(condition)
    return NONE


# -- __torch_function__ --------------------------------------------------------------------------------------------


@rule(torch_api.has_torch_function)
def has_torch_function(m: Any, values: Value) -> Value:
    return overrides(*m.iterate(values))


@rule(torch_api.has_torch_function_unary, torch_api.has_torch_function_variadic)
def has_torch_function_variadic(m: Any, *values: Value) -> Value:
    return overrides(*values)


def overrides(*values: Value) -> Value:
    """False: none of the values overrides torch's functions."""
    for value in values:
        cls = value.cls
        if not (type(value) is Tensor and is_plain(cls)) and hasattr(cls, "__torch_function__"):
            raise Break("tensor-subclass", cls.__qualname__)
    return FALSE


# -- sizes, dtypes, shapes -----------------------------------------------------------------------------------------


@rule(torch.Size)
def size(m: Any, items: Value = TupleObj(())) -> Value:  # noqa: B008
    """`torch.Size(iterable)`."""
    values = m.iterate(items)
    if any(value.cls is not int for value in values):
        raise Break("construct-unknown", "torch.Size")
    return TupleObj(values, torch.Size)


def size_concatenation(m: Any, left: Value, right: Value) -> Value:
    """`size + tuple` and `tuple + size` are sizes."""
    if type(left) is not TupleObj or type(right) is not TupleObj:
        return Const(NotImplemented)
    return TupleObj((*left.items, *right.items), torch.Size)


for _name in {"__add__", "__radd__"} & vars(torch.Size).keys():
    _swapped = _name == "__radd__"
    rule(vars(torch.Size)[_name])(lambda m, a, b, swap=_swapped: size_concatenation(m, *((b, a) if swap else (a, b))))


@rule(torch.Size.numel)
def size_numel(m: Any, self: Value) -> Value:
    numel: Value = Const(1)
    for item in m.iterate(self):
        numel = m.binary("*", numel, item, False)
    return numel


@rule(torch.broadcast_shapes)
def broadcast_shapes(m: Any, *shapes: Value) -> Value:
    """The shape that shapes broadcast to."""
    real = [m.constant_of(shape) for shape in shapes]
    try:
        answer = torch.broadcast_shapes(*real)
    except Exception as error:
        raise Break("op-failed-on-meta", f"broadcast_shapes: {error}") from None
    return TupleObj([Const(n) for n in answer], torch.Size)
