"""Holds what inference says of every operation that a program runs against what the operation gives."""

import torch
from graph.fake_machine import Program

from dynacore.values import Tensor


def described(tensor):
    return tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.requires_grad, tensor.is_leaf


def tensor(shape, order=None, dtype=torch.float32, grad=False):
    """A tensor whose dimensions lie in memory in the given order."""
    order = order or range(len(shape))
    made = torch.randn([shape[d] for d in order]).to(dtype)
    made = made.permute(*[list(order).index(d) for d in range(len(shape))])
    return made.requires_grad_(grad) if dtype.is_floating_point else made


class Recorder(torch.overrides.TorchFunctionMode):
    """Checks every operation of a program as it runs."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.names.append(getattr(function, "__name__", ""))
        with torch._C.DisableTorchFunction():
            p = Program()
            values = {}

            def lift(obj):
                if isinstance(obj, torch.Tensor):
                    if id(obj) not in values:
                        values[id(obj)] = p.m.graph.tensor_input(obj, p.m.root.child("arg", len(values)))
                    return values[id(obj)]
                if isinstance(obj, (tuple, list)):
                    return type(obj)([lift(item) for item in obj])
                return obj

            if p.m.graph.is_op(function):
                state = p.m.graph.state
                state.grad = torch.is_grad_enabled()
                got = p.call(function, *lift(list(args)), **{k: lift(v) for k, v in kwargs.items()})
            else:
                got = None
            want = function(*args, **kwargs)
            if isinstance(got, Tensor):
                assert (got in values.values()) == (id(want) in values), self.names[-1]
                assert described(got.fake) == described(want), self.names[-1]
            elif isinstance(want, tuple) and got is not None and isinstance(want[0], torch.Tensor):
                for value, real in zip(got.items, want, strict=True):
                    if real is not None:
                        assert described(value.fake) == described(real), self.names[-1]
            return want
