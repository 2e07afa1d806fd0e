"""Functions of autograd that users write: whole where nothing needs a gradient, else left to the interpreter."""

import pytest
import torch

import dynacore


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k, w=2):
        ctx.save_for_backward(x)
        ctx.k, ctx.needed = k, ctx.needs_input_grad
        return x * x * k * w, x, 5, ctx.needed

    @staticmethod
    def backward(ctx, *gradients):
        (x,) = ctx.saved_tensors
        return gradients[0] * x * 7, None


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 7


class Apart(torch.autograd.Function):
    @staticmethod
    def forward(x, k=3):
        return x.sin() * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.x, ctx.k = inputs
        ctx.mark_non_differentiable(output)


WEIGHT = torch.nn.Parameter(torch.ones(3))


class OnlyInside(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (x * WEIGHT).view(3, 1)


class Looking(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        told = [type(ctx).__name__, isinstance(ctx, torch.autograd.function.BackwardCFunction), vars(ctx)]
        return x * 2, [*told, len(ctx.saved_tensors), hasattr(ctx, "to_save")]


def looking(x):
    y, told = Looking.apply(x)
    return y, *told


def scaled(x):
    a, same, number, needed = Scaled.apply(x, 3)
    return a, same is x, same, number, needed


def in_place(x):
    y = x * 1
    z = InPlace.apply(y)
    return z, z is y, y + 1


def apart(x):
    return Apart.apply(x), Apart.apply(x, 4)


def only_inside(x):
    return OnlyInside.apply(x) + 1


def described(result):
    if isinstance(result, tuple):
        return [described(item) for item in result]
    return (result.tolist(), result.requires_grad) if isinstance(result, torch.Tensor) else result


@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("program", [scaled, in_place, apart, only_inside, looking])
def test_as_in_plain_python(program, grad, needs):
    compiled = dynacore.compile(program, backend="eager", fullgraph=not (grad and needs) and program is not looking)
    for _ in range(2):
        with torch.set_grad_enabled(grad):
            x = torch.arange(3.0).requires_grad_(needs)
            assert described(compiled(x)) == described(program(x))
            assert torch.is_grad_enabled() == grad


def test_its_own_backward_runs_when_a_gradient_is_needed():
    compiled = dynacore.compile(lambda x: Scaled.apply(x, 1)[0].sum(), backend="eager")
    with torch.no_grad():
        compiled(torch.arange(3.0))
    x = torch.arange(3.0, requires_grad=True)
    compiled(x).backward()
    assert x.grad.tolist() == [0.0, 7.0, 14.0]
