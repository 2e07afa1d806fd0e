"""`torch.autograd.Function` where nothing needs a gradient: what is left of it is its `forward`."""

from __future__ import annotations

import inspect

import torch


class Context:
    """What `forward` is given. It keeps what it is told, and nobody asks for it."""

    def __init__(self, args):
        self._args = args

    @property
    def needs_input_grad(self):
        """Which arguments require a gradient; grad mode may be off all the same."""
        return tuple([isinstance(arg, torch.Tensor) and arg.requires_grad for arg in self._args])

    def save_for_backward(self, *tensors):
        """Nothing comes back."""
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        """Nothing comes back."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *args):
        """These are changed in place: they come out as they are."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args):
        """Nothing is."""
        self.non_differentiable = args

    def set_materialize_grads(self, value):
        """There are none."""
        self.materialize_grads = value


def forward_alone(cls, /, *args):
    """`cls.apply(*args)`"""
    separate = cls.setup_context is not torch.autograd.Function.setup_context
    if separate:
        bound = inspect.signature(cls.forward).bind(*args)
        bound.apply_defaults()
        args = bound.args
    context = Context(args)
    with torch.no_grad():
        if separate:
            output = cls.forward(*args)
            cls.setup_context(context, args, output)
        else:
            output = cls.forward(context, *args)
        if not isinstance(output, tuple):
            return passed_through(context, output)
        outputs = []
        for one in output:
            outputs.append(passed_through(context, one))
        return tuple(outputs)


def passed_through(context, output, /):
    """An argument that comes out does so as another tensor, unless it was marked as changed in place."""
    for arg in context._args:
        if arg is output and isinstance(output, torch.Tensor):
            if output.requires_grad:
                return output.detach()
            for dirty in getattr(context, "dirty_tensors", ()):
                if dirty is output:
                    return output
            return output.view_as(output)
    return output
