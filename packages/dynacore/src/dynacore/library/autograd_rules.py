"""Functions of autograd that the program defines: taken into the graph where nothing needs a gradient."""

from __future__ import annotations

import inspect
import types
from typing import Any

from torch.autograd.function import BackwardCFunction, Function

from bytecode_models import decode

from .. import torch_api
from ..reasons import Break
from ..values import Known, Opaque, Tensor, Value
from .polyfills.autograd import forward_alone
from .registry import rule

TELLING = frozenset(
    "save_for_backward save_for_forward mark_dirty mark_non_differentiable set_materialize_grads".split()
)
"""Methods of a context that only keep what they are told."""
LOOKING_AROUND = frozenset("locals vars dir eval exec _getframe".split())


@rule(torch_api.autograd_apply)
def autograd_apply(m: Any, cls: Value, *args: Value) -> Any:
    """A user's function of autograd: its backward stays the interpreter's."""
    needs_gradient = (type(arg) is Opaque or (type(arg) is Tensor and arg.fake.requires_grad) for arg in args)
    if (m.graph.state.grad and any(needs_gradient)) or type(cls) is not Known or not only_tells(cls.obj):
        raise Break("call-autograd-function", "apply")
    return m.push_python(forward_alone, [cls, *args], {})


def only_tells(cls: type) -> bool:
    """Whether nobody can see what the context is that the class's forward is given."""
    separate = inspect.getattr_static(cls, "setup_context", None)
    usual = separate is inspect.getattr_static(Function, "setup_context")
    method = inspect.getattr_static(cls, "forward", None) if usual else separate
    function = method.__func__ if isinstance(method, staticmethod) else None
    return type(function) is types.FunctionType and function.__code__.co_argcount > 0 and keeps(function.__code__)


def keeps(code: types.CodeType) -> bool:
    """Whether code does no more with its first argument than tell it something, and read what it stored there."""
    stored, read = set(), set()
    instrs = decode(code).instrs
    for instr, following in zip(instrs, [*instrs[1:], None]):
        name = instr.op.name
        if ("LOCAL" not in name and "DEREF" not in name and "CELL" not in name) or instr.a != 0:
            continue
        step = following.op.name if following is not None and name == "LOAD_LOCAL" else ""
        if step == "STORE_ATTR" and not hasattr(BackwardCFunction, following.a):
            stored.add(following.a)
        elif step == "LOAD_ATTR" and (following.a == "needs_input_grad" or not hasattr(BackwardCFunction, following.a)):
            read.add(following.a)
        elif step != "LOAD_METHOD" or following.a not in TELLING:
            return False
    return read - {"needs_input_grad"} <= stored and not LOOKING_AROUND & set(code.co_names)
