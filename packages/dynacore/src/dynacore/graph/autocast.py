"""Inference under autocast. Stand-ins lie on `meta`, where autocast does nothing; a `Shadow` says it lies elsewhere.

A shadow passes through autocast and autograd as a tensor of its device does; below them stand-ins do the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..torch_api import disabled_torch_function, make_wrapper_subclass
from .arguments import Arguments
from .layouts import Spec
from .shapes import QUICK
from .state import TorchState

META = torch.device("meta")

#: the one operation whose stand-in is laid out in another way than the kernel's result; see `shapes_nn.attention`
ATTENTION = "scaled_dot_product_attention"


class Shadow(torch.Tensor):
    """A tensor without data that claims to lie on a device."""

    inner: torch.Tensor
    __torch_function__ = disabled_torch_function

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = dict(kwargs or {})
        shadows: list[Shadow] = []
        inner = strip(args, shadows), strip(kwargs, shadows)
        device = shadows[0].device if shadows else kwargs.get("device")
        if "device" in inner[1]:
            device, inner[1]["device"] = torch.device(inner[1]["device"]), META
        return dressed(run_on_meta(func, *inner), device)


def run_on_meta(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """An ATen operation on stand-ins, by a quick rule where one covers it."""
    rule = QUICK.get(func.overloadpacket.__name__)
    if rule is not None:
        try:
            shape, stride, dtype = rule(*args, **kwargs)
            return torch.empty_strided(shape, stride, dtype=dtype, device=META)
        except Exception:  # the rule doesn't cover these arguments
            pass
    return func(*args, **kwargs)


def strip(value: Any, shadows: list[Shadow]) -> Any:
    """Stand-ins in the place of shadows, which are listed."""
    if type(value) is Shadow:
        shadows.append(value)
        return value.inner
    if isinstance(value, (tuple, list)):
        return type(value)([strip(item, shadows) for item in value])
    if isinstance(value, dict):
        return {key: strip(item, shadows) for key, item in value.items()}
    return value


def dressed(value: Any, device: Any) -> Any:
    """Shadows in the place of stand-ins."""
    if isinstance(value, torch.Tensor):
        return shadow(value, device)
    if isinstance(value, (tuple, list)):
        return type(value)([dressed(item, device) for item in value])
    return value


def shadow(inner: torch.Tensor, device: Any) -> Shadow:
    """The shadow of a stand-in; a leaf, which requires grad if the stand-in does."""
    made = make_wrapper_subclass(
        Shadow,
        inner.shape,
        strides=inner.stride(),
        storage_offset=inner.storage_offset(),
        dtype=inner.dtype,
        device=device,
    )
    made.inner = inner
    return made.requires_grad_() if inner.requires_grad else made


class Unsuitable(Exception):
    """The operation works in place or gives a view: autocast leaves these alone, and stand-ins know them better."""


def autocast_specs(call: Arguments, state: TorchState) -> Any:
    """Specs of what the operation returns under the autocast that the program has set; with `requires_grad` each."""
    if call.name.endswith("_") or call.name.startswith(("__i", "set")) or "out" in call.kwargs:
        raise Unsuitable
    devices = {id(tensor.fake): tensor.device for tensor in call.tensors}
    if call.name == ATTENTION:
        return cast_attention(call, state)
    made: dict[int, Shadow] = {}

    def cast(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            key = id(value)
            if key not in made:
                copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=META)
                made[key] = shadow(copy.requires_grad_(value.requires_grad), devices[key])
            return made[key]
        if isinstance(value, (tuple, list)):
            return type(value)([cast(item) for item in value])
        return value

    args, kwargs = [cast(a) for a in call.args], {key: cast(a) for key, a in call.kwargs.items()}
    return read(under(state, lambda: call.run(*args, **kwargs)), list(made.values()))


def read(result: Any, arguments: list[Shadow]) -> Any:
    """The specs of the shadows that an operation returned."""
    if isinstance(result, Shadow):
        if any(argument is result or argument is base_of(result) for argument in arguments):
            raise Unsuitable
        return tuple(result.shape), result.stride(), result.dtype, result.requires_grad
    if isinstance(result, (tuple, list)):
        return type(result)([read(item, arguments) for item in result])
    if result is None:
        return None
    raise Unsuitable


def base_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The tensor that this one is a view of."""
    return tensor._base if tensor._is_view() else None


def under(state: TorchState, run: Callable[[], Any]) -> Any:
    """`run()` with autocast as the program has set it; the process's setting is as before afterwards."""
    cache = torch.is_autocast_cache_enabled()
    before = [
        (device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)) for device in state.autocast
    ]
    try:
        torch.set_autocast_cache_enabled(False)  # it would keep shadows
        for device, on in state.autocast.items():
            torch.set_autocast_enabled(device, on)
            torch.set_autocast_dtype(device, state.autocast_dtype[device])
        return run()
    finally:
        for device, on, dtype in before:
            torch.set_autocast_enabled(device, on)
            torch.set_autocast_dtype(device, dtype)
        torch.set_autocast_cache_enabled(cache)


def cast_attention(call: Arguments, state: TorchState) -> Any:
    """Attention, which autocast runs in its dtype."""
    device = call.tensors[0].device.type
    if not state.autocast.get(device):
        raise Unsuitable

    def cast(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.float16, torch.bfloat16):
            return value.to(state.autocast_dtype[device])
        return value

    spec: Spec = QUICK[ATTENTION](*map(cast, call.args), **{key: cast(value) for key, value in call.kwargs.items()})
    grad = state.grad and any(tensor.fake.requires_grad for tensor in call.tensors)
    return *spec, grad
