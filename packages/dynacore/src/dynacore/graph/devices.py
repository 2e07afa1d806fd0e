"""On which device an operation's result lies. Stand-ins all lie on `meta`, so this is found from the arguments."""

from __future__ import annotations

from typing import Any

import torch

from ..reasons import Break
from ..torch_api import OPERATOR_TYPES, takes_device
from ..values import Host, Tensor
from .arguments import Arguments
from .meta import META

CPU = torch.device("cpu")

#: methods that move or convert their tensor
MOVERS = frozenset(("to", "cpu", "cuda", "type", "type_as"))

#: operations that take tensors of several devices; the result lies with the first
MIXED = frozenset("getitem setitem __getitem__ __setitem__ index_put_ index_put copy_ index_select".split())


def of_result(call: Arguments) -> torch.device:
    """The device of what `call` returns; makes the arguments for inference say `meta` in its place."""
    if call.name in MOVERS and call.tensors and call.values[0] is call.tensors[0]:
        return move(call)
    given = call.kwargs.get("device")
    if given is not None:
        call.kwargs["device"] = META
        return normalised(given)
    if not call.tensors:
        if isinstance(call.target, OPERATOR_TYPES) and not takes_device(call.target):
            raise Break("op-unsupported", f"{call.name}, which is given no tensor")  # trying it might have effects
        if "device" not in call.kwargs:
            call.kwargs["device"] = META
        return CPU
    return common(call)


def normalised(device: Any) -> torch.device:
    """A device with its index, as tensors report it."""
    try:
        device = torch.device(device)
        if device.index is None and device.type not in ("cpu", "meta"):
            return torch.device(device.type, torch.get_device_module(device.type).current_device())
    except Exception as error:  # no such device here: the real run says so
        raise Break("op-unsupported", f"device {device}: {error}") from None
    if device.type == "cpu" and device.index is not None:
        raise Break("op-unsupported", f"device {device}")
    return device


def common(call: Arguments) -> torch.device:
    """The device of the tensor arguments: a scalar tensor on the CPU goes along with any device."""
    tensors = call.tensors
    device = tensors[0].device
    if call.name in MIXED:
        return device
    for tensor in tensors:
        if tensor.device != device:
            if tensor.fake.dim() == 0 and tensor.device == CPU:
                continue
            if device != CPU or any(t.fake.dim() > 0 for t in tensors if t.device == CPU):
                raise Break("op-failed-on-meta", f"{call.name}: tensors on {device} and {tensor.device}")
            device = tensor.device
    return device


def move(call: Arguments) -> torch.device:
    """The device after `to`, `cpu`, `cuda`, `type` or `type_as`; a move makes a new tensor, staying may not."""
    tensor = call.tensors[0]
    target: Any = None
    if call.name in ("cpu", "cuda"):
        target = cuda_device(call) if call.name == "cuda" else CPU
        call.run, call.args = torch.Tensor.to, [tensor.fake, META]
        call.kwargs.pop("device", None)
    elif call.name == "type":
        if not (isinstance(call.args[1:2], list) and len(call.args) == 2 and isinstance(call.args[1], torch.dtype)):
            raise Break("op-unsupported", "Tensor.type with anything but a dtype")
    elif call.name == "type_as":
        call.run, target = torch.Tensor.to, call.tensors[1].device
    elif len(call.args) > 1 and isinstance(call.args[1], (torch.device, str, int)):
        value = call.values[1]
        target = call.graph.m.specialise(value).value if type(value) is Host else call.args[1]
        call.args[1] = META
    elif len(call.values) > 1 and type(call.values[1]) is Tensor:
        target = call.values[1].device
    elif call.kwargs.get("device") is not None:
        target = call.kwargs["device"]
        call.kwargs["device"] = META
    elif type(call.kwvalues.get("other")) is Tensor:
        target = call.kwvalues["other"].device
    if target is None:
        return tensor.device
    device = normalised(torch.device("cuda", target) if isinstance(target, int) else target)
    if device != tensor.device:
        call.kwargs["copy"] = True
    return device


def cuda_device(call: Arguments) -> Any:
    """The device that `Tensor.cuda` was given."""
    given = call.args[1] if len(call.args) > 1 else call.kwargs.get("device")
    return "cuda" if given is None else given
