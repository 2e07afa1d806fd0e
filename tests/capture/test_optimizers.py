"""Steps of torch's optimizers: one graph each, with parameters, state and schedules as in plain Python."""

import copy

import pytest
import torch

import dynacore

STEPS = {
    "SGD": ("SGD", {}),
    "SGD, momentum": ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "SGD, lists": ("SGD", {"momentum": 0.9, "foreach": True}),
    "Adam": ("Adam", {"weight_decay": 0.1}),
    "AdamW": ("AdamW", {}),
    "AdamW, lists": ("AdamW", {"foreach": True}),
    "AdamW, amsgrad": ("AdamW", {"amsgrad": True, "maximize": True}),
    "AdamW, amsgrad, lists": ("AdamW", {"amsgrad": True, "foreach": True}),
    "AdamW, rate in a tensor": ("AdamW", {"lr": torch.tensor(0.01)}),
    "NAdam": ("NAdam", {}),
    "RMSprop": ("RMSprop", {"momentum": 0.9, "centered": True}),
}
ROUNDED = ("AdamW, rate in a tensor", "NAdam")  # what plain Python computes in floats is in tensors of 32 bits there
BROKEN = {
    "AdamW, fused": ("AdamW", {"fused": True}),
    "Adamax, lists": ("Adamax", {"foreach": True}),
    "RAdam": ("RAdam", {}),
}


def trained(kind, options, backend=None, dtype=torch.float32, steps=4):
    """Parameters and the optimizer's state after some steps of two groups, under a schedule."""
    torch.manual_seed(0)
    groups = [[torch.nn.Parameter(torch.randn(shape, dtype=dtype)) for shape in shapes] for shapes in SHAPES]
    options = {"lr": 0.01, **copy.deepcopy(options)}
    optimizer = getattr(torch.optim, kind)([{"params": g, "lr": options["lr"] / n} for n, g in enumerate(groups, 1)],
                                           **options)  # fmt: skip
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    step = dynacore.compile(optimizer.step, backend=backend, fullgraph=False) if backend else optimizer.step
    parameters = [p for group in groups for p in group]
    for count in range(steps):
        loss = sum((p * p * torch.arange(1, p.numel() + 1).view_as(p)).sum().sin() for p in parameters)
        optimizer.zero_grad(set_to_none=count % 2 == 0)
        loss.backward()
        step()
        schedule.step()
    return parameters, optimizer.state_dict()


SHAPES = ((5,), (3, 4), (5,)), ((2, 3),)


def assert_same(got, want, tolerance):
    """Both hold the same numbers and tensors."""
    if isinstance(want, dict):
        assert got.keys() == want.keys()
        got, want = list(got.values()), list(want.values())
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for one, other in zip(got, want):
            assert_same(one, other, tolerance)
    elif isinstance(want, torch.Tensor):
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)
    else:
        assert got == want


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_one_graph_and_as_in_plain_python(name):
    want, got = trained(*STEPS[name]), trained(*STEPS[name], "eager")
    assert_same(got, want, 1e-6 if name in ROUNDED else 0)
    p = [torch.nn.Parameter(torch.ones(n)) for n in (3, 4)]
    optimizer = getattr(torch.optim, STEPS[name][0])(p, **STEPS[name][1])
    for one in p:
        one.grad = torch.ones_like(one)
    found = dynacore.explain(optimizer.step)()
    assert not found.breaks and len(found.graphs) == 1, str(found)


@pytest.mark.parametrize("name", BROKEN)
def test_steps_that_break_are_as_in_plain_python(name):
    assert_same(trained(*BROKEN[name], "eager"), trained(*BROKEN[name]), 0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_other_dtypes(dtype):
    assert_same(trained("AdamW", {}, "eager", dtype), trained("AdamW", {}, None, dtype), 1e-15)


@pytest.mark.parametrize("name", ["AdamW", "AdamW, lists", "AdamW, fused", "SGD, momentum"])
def test_a_step_through_aot_autograd(name):
    step = {**STEPS, **BROKEN}[name]
    assert_same(trained(*step, "aot_eager"), trained(*step), 1e-7)


def test_a_numerator_scaled_by_a_tensor():
    def scaled(x, a, b, value):
        return torch.addcdiv(x, a, b, value=value), x.clone().addcdiv_(a, b, value=value * 2)

    scale = torch.tensor(0.3, dtype=torch.float64)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        arguments = [torch.rand(100, generator=torch.Generator().manual_seed(n)).add(0.5).to(dtype) for n in range(3)]
        found = dynacore.compile(scaled, backend="eager", fullgraph=True)(*arguments, scale)
        for got, want in zip(found, scaled(*arguments, scale)):
            assert torch.equal(got, want)


def annotated(x):
    with torch.profiler.record_function("part"):
        return x + 1


def test_an_annotation_costs_no_break_and_is_seen_by_a_profiler():
    found = dynacore.explain(annotated)(torch.ones(2))
    assert not found.breaks
    compiled = dynacore.compile(annotated, backend="eager")
    compiled(torch.ones(2))
    for _ in range(2):
        with torch.profiler.profile() as profile:
            compiled(torch.ones(2))
        assert "part" in {event.key for event in profile.key_averages()}
        compiled(torch.ones(2))


def test_an_annotation_left_behind_a_break():
    def broken(x):
        with torch.profiler.record_function("part") as record:
            dynacore.graph_break()
            x = x + 1
        return x, record.record is not None

    x, recorded = dynacore.compile(broken, backend="eager")(torch.ones(2))
    assert x[0] == 2 and recorded


def test_an_operator_without_tensors_is_not_tried():
    called = []
    with torch.library._scoped_library("dynacore_optimizers", "FRAGMENT") as library:
        library.define("tell(int n) -> ()")
        library.impl("tell", called.append, "CompositeExplicitAutograd")

        def telling(x):
            torch.ops.dynacore_optimizers.tell(7)
            return x + 1

        compiled = dynacore.compile(telling, backend="eager")
        compiled(torch.ones(2))
        compiled(torch.ones(2))
    assert called == [7, 7]


def test_a_backend_that_fails_leaves_no_state_behind():
    def without_grad(x):
        with torch.no_grad(), torch.autocast("cpu"):
            return x @ x

    def fails(gm, inputs):
        next(node for node in gm.graph.nodes if "matmul" in str(node.target)).args = ()
        gm.recompile()
        gm(*inputs)

    with pytest.raises(dynacore.BackendError):
        dynacore.compile(without_grad, backend=fails)(torch.ones(2, 2, requires_grad=True))
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
