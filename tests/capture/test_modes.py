"""Modes that differ from what was captured in nothing but themselves: each has its own guard.

Graphs run under a mode as plain Python does, so a program has to tell what capture made of the rest of it: questions
to torch and to tensors that became constants, and operations that nobody used.
"""

from contextlib import nullcontext

import pytest
import torch
from capture.test_state import described, example
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode

import dynacore
from dynacore import stats

SEEN = []


class Functions(TorchFunctionMode):
    """Notes what it sees, and tells tensors to have one dimension more."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        SEEN.append(resolve_name(func))
        result = func(*args, **(kwargs or {}))
        return result + 1 if func is torch.Tensor.dim else result


class Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        SEEN.append(str(func))
        return func(*args, **(kwargs or {}))


def program(x):
    x.sin()  # nobody uses it
    return x * x.dim(), torch.is_inference_mode_enabled(), torch.is_grad_enabled(), x.shape[0]


def result(function, around, x):
    SEEN.clear()
    with around():
        found = function(x)
    return described(found), SEEN.copy()


#: what is entered around calls, in pairs of which one is like the other but for one mode
PAIRS = {
    "inference mode": (torch.no_grad, torch.inference_mode),
    "inference mode, off": (lambda: torch.inference_mode(False), nullcontext),
    "torch function modes": (nullcontext, Functions),
    "torch dispatch modes": (nullcontext, Dispatched),
}


@pytest.mark.parametrize("warm", [1, 30])
@pytest.mark.parametrize("pair", PAIRS)
def test_each_mode_is_guarded_alone(pair, warm):
    dynacore.reset()
    compiled = dynacore.compile(program, backend="eager")
    x = example().detach()
    for around in PAIRS[pair] * 3:
        for _ in range(warm):
            assert result(compiled, around, x) == result(program, around, x)
    before = stats.counters["entries"]
    for around in PAIRS[pair]:
        assert result(compiled, around, x) == result(program, around, x)
    assert stats.counters["entries"] == before


TRANSFORMS = {
    "vmap": lambda function, x: torch.vmap(lambda y: function(x) + y)(x.repeat(2, 1)),
    "grad": lambda function, x: torch.func.grad(lambda y: (function(x) * y).sum())(x),
    "jvp": lambda function, x: torch.func.jvp(lambda y: function(x) * y, (x,), (x,))[1],
    "functionalize": lambda function, x: torch.func.functionalize(lambda y: function(x) + y)(x),
    "vmap in grad": lambda function, x: torch.func.grad(lambda y: torch.vmap(function)(x[None]).mul(y).sum())(x),
}


@pytest.mark.parametrize("warm", [1, 30])
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_what_a_compiler_made_is_left_alone_inside_a_transform(transform, warm):
    """A compiler may have made code that reads memory, which tensors inside of a transform don't have."""
    runs = []

    def compiler(graph, inputs):
        return lambda *args: runs.append(1) or graph(*args)

    dynacore.reset()
    compiled = dynacore.compile(lambda x: x.sin() * 2, backend=compiler)
    x = example().detach()
    for _ in range(2):
        for _ in range(warm):
            assert torch.equal(compiled(x), x.sin() * 2)
        before = len(runs)
        assert torch.equal(transform(compiled, x), transform(lambda x: x.sin() * 2, x))
        assert len(runs) == before
    assert len(runs) == 2 * warm
