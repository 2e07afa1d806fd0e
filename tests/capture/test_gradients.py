"""Where grad mode is off, whether a tensor requires a gradient is guarded only if the program can tell."""

import contextlib

import pytest
import torch
from torch.nn import functional

import dynacore


@dynacore.allow_in_graph
def looking(x):
    return x.sum(0) if x.requires_grad else x * 2


def arithmetic(x, w):
    return torch.relu(x @ w + 1).sum(0)


def itself(x, w):
    return x, w, [x]


def views(x, w):
    return x.view(-1), w[0], x.t(), x.detach(), w.data, x.expand(1, 3, 3)


def nothing_to_do(x, w):
    return x.contiguous(), w.to(torch.float32), x.float().view(3, 3)


def in_place(x, w):
    x.add_(1)
    w[0].mul_(2)
    return x * w, x


def made(x, w):
    return torch.cat([x, w]), torch.zeros_like(x), functional.linear(x, w), functional.dropout(x, training=False)


def attention(x, w):
    q = x.expand(2, 3, 3, 3).transpose(1, 2)
    return functional.scaled_dot_product_attention(q, q, q, attn_mask=w)


def attention_without_mask(x, w):
    q = (x @ w).expand(2, 3, 3, 3).transpose(1, 2)
    return functional.scaled_dot_product_attention(q, q, q, is_causal=True)


def asks(x, w):
    return x * 2 if w.requires_grad else x + w


def asks_a_result(x, w):
    same = x.contiguous()
    return same * 2 if same.requires_grad else same + w


def asks_for_leaves(x, w):
    return x + w, x.is_leaf, w.is_leaf, x.grad_fn is None


def asks_for_gradients(x, w):
    return x + w if w.grad is None else x


def enables(x, w):
    with torch.enable_grad():
        y = x * w
    return y, y.requires_grad


def requires(x, w):
    w.requires_grad_()
    return x * w


def detaches(x, w):
    return x.detach_() + w


def resizes(x, w):
    with contextlib.suppress(RuntimeError):
        w.resize_(9)
    return w.shape[0], x + 1


class Asking(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        return x + w if ctx.needs_input_grad[1] else x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


class Passing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def applies(x, w):
    return Asking.apply(x, w)


def passes_through(x, w):
    return Passing.apply(x, w)


def looks(x, w):
    return looking(x)


CANNOT_TELL = [arithmetic, itself, views, nothing_to_do, in_place, made, attention_without_mask]
CAN_TELL = [
    attention, asks, asks_a_result, asks_for_leaves, asks_for_gradients, enables, requires, detaches, applies,
    passes_through, looks,
]  # fmt: skip
FLAGS = [(a, b) for a in (False, True) for b in (False, True)]


def tensors(x_grad, w_grad, kind):
    torch.manual_seed(0)
    x = torch.randn(3, 3, requires_grad=x_grad)
    w = torch.randn(3, 3)
    return x, torch.nn.Parameter(w, requires_grad=w_grad) if kind == "parameter" else w.requires_grad_(w_grad)


def facts(args, result, flags=True):
    """All that can be seen of a result and of what it was made of."""
    found = [*args, *result] if isinstance(result, (tuple, list)) else [*args, result]
    return [
        (t.tolist(), t.shape, t.stride(), flags and t.requires_grad, t.is_leaf, type(t), [t is a for a in args])
        if isinstance(t, torch.Tensor) else [a is b for a in t for b in args] if isinstance(t, list) else t
        for t in found
    ]  # fmt: skip


def counting(backend):
    count = [0]

    def compile_one(graph, inputs):
        count[0] += 1
        return graph.forward

    return count, compile_one if backend == "own" else backend


@pytest.mark.parametrize("kind", ["plain", "parameter"])
@pytest.mark.parametrize("backend", ["own", "aot_eager"])
@pytest.mark.parametrize("program", [*CANNOT_TELL, *CAN_TELL, resizes], ids=lambda program: program.__name__)
def test_results_are_as_without_capture(program, backend, kind):
    compiled = dynacore.compile(program, backend=counting(backend)[1])
    flags_too = backend == "own"  # AOTAutograd's views and what it detaches have other flags than torch's
    for grad_mode in (torch.no_grad, torch.inference_mode, torch.no_grad, torch.enable_grad, torch.no_grad):
        for flags in FLAGS:
            if grad_mode is torch.enable_grad and program in (in_place, detaches, resizes):
                continue
            with torch.no_grad():
                plain, ours = tensors(*flags, kind), tensors(*flags, kind)
            with grad_mode():
                expected = facts(plain, program(*plain), flags_too)
                assert facts(ours, compiled(*ours), flags_too) == expected, (grad_mode, flags)


@pytest.mark.parametrize("kind", ["plain", "parameter"])
@pytest.mark.parametrize("program", CANNOT_TELL, ids=lambda program: program.__name__)
def test_nothing_is_compiled_again(program, kind):
    count, backend = counting("own")
    compiled = dynacore.compile(program, backend=backend)
    with torch.no_grad():
        for flags in [*FLAGS, *reversed(FLAGS)]:
            compiled(*tensors(*flags, kind))
        assert count[0] <= 1 and len(compiled.point.entries) == 1
        args = tensors(False, False, kind)
        for _ in range(3):
            args[1].requires_grad_(not args[1].requires_grad)
            compiled(*args)
        assert len(compiled.point.entries) == 1


@pytest.mark.parametrize("program", CAN_TELL, ids=lambda program: program.__name__)
def test_what_can_tell_is_guarded(program):
    compiled = dynacore.compile(program, backend="eager")
    with torch.no_grad():
        compiled(*tensors(False, False, "plain"))
        names = {name for entry in compiled.point.entries for name, _ in entry.guards.tree[2]}
    assert "tensors_any_grad" not in names


def test_gradients_arrive_after_calls_without():
    model = torch.nn.Linear(3, 3)
    compiled = dynacore.compile(lambda x: model(x).sum(), backend="eager")
    x = torch.ones(2, 3)
    with torch.no_grad():
        assert not compiled(x).requires_grad
    compiled(x).backward()
    assert model.weight.grad is not None
    with torch.no_grad():
        assert not compiled(x).requires_grad
    assert len(compiled.point.entries) == 2


def test_other_metadata_are_held_to_all_the_same():
    """The tensor that differs is named, and whether it requires a gradient isn't mentioned."""
    compiled = dynacore.compile(arithmetic, backend="eager", dynamic=False)
    with torch.no_grad():
        compiled(*tensors(True, True, "parameter"))
        for change in (torch.Tensor.double, lambda t: t.t().contiguous().t(), lambda t: t[:, :2].clone()):
            x, w = tensors(False, False, "parameter")
            args = (x.double(), torch.nn.Parameter(w.double())) if change is torch.Tensor.double else (x, change(w))
            assert facts((), compiled(*args)) == facts((), arithmetic(*args))
    assert len(compiled.point.entries) == 4


def views_inside(t):
    with torch.no_grad():
        view, parts = t.view(-1)[1:], t.split(2)
        return view.requires_grad, view.is_leaf, parts[0].requires_grad, (view * 2).requires_grad


def views_asked_about(t):
    view = t.t()
    return view.requires_grad


LEAVES = {
    "leaf": lambda: torch.ones(4, requires_grad=True),
    "view_of_plain": lambda: torch.ones(4).view(4).requires_grad_(),
    "view_of_leaf": lambda: torch.ones(4, requires_grad=True).detach().view(4).requires_grad_(),
    "view_that_grad_reached": lambda: reached(torch.ones(4)),
    "result": lambda: torch.ones(4, requires_grad=True) * 2,
    "plain": lambda: torch.ones(4),
}


def reached(base):
    view = base.view(4)
    base.requires_grad_()
    return view.requires_grad_()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad])
@pytest.mark.parametrize("program", [views_inside, views_asked_about])
@pytest.mark.parametrize("order", [1, -1])
def test_a_leaf_is_told_from_one_that_is_a_view(order, program, mode):
    """With grad mode off, a view requires a gradient if what it is a view of in the end does."""
    compiled = dynacore.compile(program, backend="eager")
    for _ in range(2):
        for name in [*LEAVES][::order]:
            with mode():
                assert compiled(LEAVES[name]()) == program(LEAVES[name]()), name
    assert len(compiled.point.entries) < len(LEAVES)
