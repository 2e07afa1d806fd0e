"""What stands around and in the steps of torch's optimizers.

Annotations for profilers (`record_function`) are left out while nothing observes, which is guarded.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.profiler import record_function

from .. import torch_api
from ..marks import disable
from ..reasons import Break
from ..values import Value
from .registry import polyfill, rule
from .torch_rules import guarded, refuse


@rule(torch_api.enter_annotation)
def enter_annotation(m: Any, name: Value, args: Value | None = None) -> Value:
    """Nothing, as long as nothing observes."""
    if m.constant_of(guarded(m, torch_api.observers())):
        raise Break("op-unsupported", "an annotation that a profiler records")
    return annotation_of_nothing(m)


def of_nothing():
    """What entering gives while nothing observes: a rule has the object."""


@rule(of_nothing)
def annotation_of_nothing(m: Any) -> Value:
    real = torch_api.annotation_of_nothing()
    return m.wrap(real, m.root.child("const", real))


leave_for_real = disable(record_function.__exit__)


@polyfill(record_function.__exit__)
def leave_annotation(self, exc_type, exc_value, traceback):
    told = self.record is not of_nothing() or not self.run_callbacks_on_exit
    for name in torch_api.ANNOTATION_IDS:
        told = told or getattr(self, name, None) is not None
    if told:
        leave_for_real(self, exc_type, exc_value, traceback)


@polyfill(torch_api.step_value)
def step_value(x):
    """The number of a step: plain Python reads it as a float, so what is computed of it is as precise here."""
    return x.double() if isinstance(x, torch.Tensor) else x


# Told that it is being compiled, it hands a list of tensors to an operation that takes numbers.
refuse("tensor-to-python", torch_api.adamax_of_lists)
