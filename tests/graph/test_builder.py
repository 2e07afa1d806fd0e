"""The graph: what it holds, what it computes, and that identity, effects and inputs are as in plain Python."""

import operator

import pytest
import torch
import torch.nn.functional as F
from graph.fake_machine import Program

from dynacore.config import config
from dynacore.reasons import Break
from dynacore.values import NONE, Const, Tensor, TupleObj


@pytest.fixture(autouse=True)
def verified():
    with config.patch(verify=True):
        yield


def targets(module):
    return [node.target for node in module.graph.nodes if node.op.startswith("call")]


def test_a_program_computes_what_plain_torch_does():
    x, w = torch.randn(2, 3), torch.nn.Parameter(torch.randn(4, 3))
    p = Program(x, w)
    y = p.call(F.linear, *p.inputs)
    parts = p.call("chunk", p.call(torch.relu, y), 2, -1)
    top = p.call(torch.max, parts.items[1], 1)
    result = p.run(parts.items[0], *top.items)
    want = torch.relu(F.linear(x, w)).chunk(2, -1)
    for a, b in zip(result, (want[0], *want[1].max(1)), strict=True):
        assert torch.equal(a, b)
    assert top.cls is torch.return_types.max
    assert p.m.graph.n_ops == 4


def test_inputs_are_made_at_first_use_and_in_that_order():
    x, y, unused = torch.randn(2), torch.randn(2), torch.randn(2)
    p = Program(x, y, unused)
    module, inputs = p.finish(p.call(operator.sub, p.inputs[1], p.inputs[0]))
    assert [value.obj for value in inputs] == [y, x]
    assert torch.equal(module(y, x)[0], y - x)


def test_an_input_whose_only_user_is_dead_is_no_input():
    p = Program(torch.randn(2), torch.randn(2))
    p.call(torch.sin, p.inputs[0])
    module, inputs = p.finish(p.call(torch.cos, p.inputs[1]))
    assert len(inputs) == 1
    assert targets(module) == [torch.cos]


def test_inputs_can_be_outputs():
    x = torch.randn(2)
    p = Program(x)
    assert p.run(p.inputs[0])[0] is x


def test_an_operation_that_returns_its_argument_gives_the_same_value():
    p = Program(torch.randn(2, 3), torch.randn(3, 2).t())
    x, t = p.inputs
    y = p.call(torch.sin, x)
    assert p.call("add_", y, 1) is y
    assert p.call(operator.iadd, y, 1) is y
    assert p.call("contiguous", y) is y
    assert p.call("contiguous", t) is not t
    assert p.call("to", y, torch.float32) is y
    assert p.call("to", y, "cpu") is y
    assert p.call("cpu", y) is y
    assert p.call("to", y, torch.float64) is not y
    assert p.call("float", y) is y
    assert p.call(F.dropout, y, 0.5, False) is y
    assert p.call(torch.add, x, 1, out=y) is y


def test_in_place_operations_and_random_numbers_stay():
    x = torch.zeros(3)
    p = Program(x)
    p.call("add_", p.inputs[0], 1)
    p.call(operator.setitem, p.inputs[0], 0, 5.0)
    p.call(torch.randn, 4)
    p.call(torch.sin, p.inputs[0])
    p.call(torch.zeros, 2)
    out = p.call(torch.rand, 2)
    torch.manual_seed(3)
    got = p.run(out)[0]
    torch.manual_seed(3)
    torch.randn(4)
    assert torch.equal(got, torch.rand(2))
    assert x.tolist() == [5, 1, 1]


def test_dropout_draws_its_numbers_even_when_its_result_is_unused():
    p = Program(torch.ones(8))
    p.call(F.dropout, p.inputs[0], 0.5, True)
    module, _ = p.finish(p.call(torch.sin, p.inputs[0]))
    assert F.dropout in targets(module)


def test_an_unused_operation_that_may_fail_stays():
    p = Program(torch.ones(3), torch.tensor([7]))
    p.call(operator.getitem, p.inputs[0], p.inputs[1])
    module, _ = p.finish()
    assert targets(module) == [operator.getitem]
    with pytest.raises(IndexError):
        module(torch.ones(3), torch.tensor([7]))


def test_inference_neither_draws_random_numbers_nor_touches_real_tensors():
    x = torch.ones(3, requires_grad=True)
    p = Program(x)
    state, version = torch.get_rng_state(), x._version
    p.call(F.dropout, p.inputs[0], 0.5, True)
    p.call(torch.randn, 3)
    y = p.call("detach", p.inputs[0])
    p.call("mul_", y, 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert x._version == version
    assert x.grad_fn is None
    assert x.tolist() == [1, 1, 1]


def test_a_failing_operation_is_left_to_the_real_run():
    p = Program(torch.randn(2, 3))
    before = len(p.m.graph.fx.nodes)
    for call in (
        lambda: p.call(torch.matmul, p.inputs[0], p.inputs[0]),
        lambda: p.call("view", p.inputs[0], 7),
        lambda: p.call(torch.add, p.inputs[0], 1, nonsense=2),
        lambda: p.call("add_", p.inputs[0], p.call(torch.zeros, 5, 2, 3)),
    ):
        with pytest.raises(Break):
            call()
    assert len(p.m.graph.fx.nodes) - before <= 1  # the zeros; inputs get their nodes only when an operation is recorded


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("item", "tensor-to-python"),
        ("nonzero", "data-dependent-shape"),
        ("numpy", "numpy"),
        ("data_ptr", "tensor-storage"),
    ],
)
def test_what_leaves_the_world_of_tensors_breaks(name, code):
    p = Program(torch.ones(1))
    with pytest.raises(Break) as caught:
        p.call(name, p.inputs[0])
    assert caught.value.code == code


def test_a_mask_as_index_breaks_but_may_be_assigned_through():
    x, mask = torch.randn(4), torch.tensor([True, False, True, False])
    p = Program(x.clone(), mask)
    with pytest.raises(Break):
        p.call(operator.getitem, *p.inputs)
    assert p.call(operator.setitem, *p.inputs, 0.0) is NONE
    want = x.clone()
    want[mask] = 0.0
    assert torch.equal(p.run(p.inputs[0])[0], want)


def test_tensor_subclasses_break():
    class Mine(torch.Tensor):
        pass

    with pytest.raises(Break) as caught:
        Program(torch.ones(2).as_subclass(Mine))
    assert caught.value.code == "tensor-subclass"


def test_sparse_tensors_break():
    with pytest.raises(Break):
        Program(torch.eye(2).to_sparse())


# -- scalars that only the entry knows -------------------------------------------------------------------------------


@pytest.mark.parametrize("scalar", [3, 2.5])
def test_a_varying_operand_is_an_input(scalar):
    x = torch.randn(3)
    p = Program(x, scalar)
    y = p.call(operator.mul, p.call(operator.add, *p.inputs), p.inputs[1])
    module, inputs = p.finish(y)
    assert inputs == p.inputs
    assert not p.m.specialised
    for other in (scalar, type(scalar)(7)):
        assert torch.equal(module(x, other)[0], (x + other) * other)


def test_a_varying_operand_keeps_torch_promotion():
    x = torch.arange(3)
    p = Program(x, 2.0)
    y = p.call(operator.mul, *p.inputs)
    assert y.fake.dtype is torch.float32
    assert p.run(y)[0].dtype is torch.float32


@pytest.mark.parametrize(
    ("use", "example"),
    [
        (lambda p, x, n: p.call(torch.zeros, n), 2),
        (lambda p, x, n: p.call("view", x, n, -1), 2),
        (lambda p, x, n: p.call(torch.sum, x, dim=n), 0),
        (lambda p, x, n: p.call(torch.cumsum, x, n), 0),
    ],
)
def test_a_varying_number_that_decides_structure_is_made_constant(use, example):
    p = Program(torch.randn(4), example)
    use(p, *p.inputs)
    assert p.m.specialised == [p.inputs[1]]


# -- results ---------------------------------------------------------------------------------------------------------


def test_questions_about_metadata_are_constants_without_nodes():
    p = Program(torch.randn(2, 3).t())
    x = p.inputs[0]
    assert [item.value for item in p.call("size", x).items] == [3, 2]
    assert p.call("size", x).cls is torch.Size
    for name, args, want in (
        ("size", (1,), 2), ("dim", (), 2), ("numel", (), 6), ("is_contiguous", (), False), ("stride", (0,), 1),
        ("element_size", (), 4), ("get_device", (), -1), ("is_floating_point", (), True), ("__len__", (), 3),
    ):  # fmt: skip
        assert p.call(name, x, *args).value == want, name
    assert not list(p.m.graph.fx.nodes)


def test_attributes():
    x = torch.nn.Parameter(torch.randn(2, 3))
    x.grad = torch.ones(2, 3)
    x.mark = "here"
    p = Program(x)
    v = p.inputs[0]

    def attr(name):
        return p.m.graph.attribute(v, name)

    assert [item.value for item in attr("shape").items] == [2, 3]
    assert attr("dtype").obj is torch.float32
    assert attr("device").obj == torch.device("cpu")
    assert attr("ndim").value == 2
    assert attr("requires_grad").value is True
    assert attr("is_leaf").value is True
    assert attr("grad_fn").value is None
    assert attr("is_cuda").value is False
    assert attr("is_cpu").value is True
    assert attr("is_meta").value is False
    assert attr("itemsize").value == 4
    assert attr("mark").value == "here"
    assert attr("nothing") is None
    assert isinstance(attr("grad"), Tensor)
    assert [item.value for item in p.m.graph.attribute(attr("T"), "shape").items] == [3, 2]
    y = p.call(torch.sin, v)
    with pytest.raises(Break):
        p.m.graph.attribute(y, "grad_fn")


def test_views_by_attribute_run():
    x = torch.randn(2, 3, dtype=torch.complex64)
    p = Program(x)
    values = [p.m.graph.attribute(p.inputs[0], name) for name in ("T", "mT", "H", "real", "imag", "data")]
    for got, want in zip(p.run(*values), (x.T, x.mT, x.H, x.real, x.imag, x.data), strict=True):
        assert torch.equal(got, want)
        assert got.is_conj() == want.is_conj()


def test_results_of_results():
    x = torch.randn(2, 5)
    lstm = torch.nn.LSTM(5, 3)
    weights = list(lstm.parameters())
    zeros = torch.zeros(1, 1, 3)
    p = Program(x.unsqueeze(1), zeros, *weights)
    inp, zero, *ws = p.inputs
    out = p.call(torch._VF.lstm, inp, (zero, zero), list(ws), True, 1, 0.0, False, False, False)
    assert isinstance(out, TupleObj)
    got = p.run(out.items[0], out.items[2])
    want = lstm(x.unsqueeze(1))
    assert torch.allclose(got[0], want[0])
    assert torch.allclose(got[1], want[1][1])


def test_constants_that_python_writes_in_a_special_way():
    x = torch.tensor([-1.0, 1.0])
    p = Program(x)
    y = p.call(torch.full_like, p.inputs[0], float("-inf"))
    z = p.call("masked_fill", y, p.call(operator.gt, p.inputs[0], 0), float("nan"))
    w = p.call("to", z, torch.float64, memory_format=torch.preserve_format)
    u = p.call(torch.zeros, (2,), device=torch.device("cpu"), dtype=float)
    got = p.run(w, u)
    assert got[0][0] == float("-inf")
    assert got[0][1].isnan()
    assert got[0].dtype is got[1].dtype is torch.float64


def test_nodes_say_where_they_come_from():
    p = Program(torch.randn(3))
    p.m.graph.where = (__file__, 1)
    module, inputs = p.finish(p.call(torch.sin, p.inputs[0]))
    sin = next(node for node in module.graph.nodes if node.target is torch.sin)
    assert f'File "{__file__}", line 1' in sin.meta["stack_trace"]
    assert "What it holds" not in sin.meta["stack_trace"]
    placeholder = next(node for node in module.graph.nodes if node.op == "placeholder")
    assert placeholder.name.isidentifier()
    assert placeholder.meta["example_value"].shape == (3,)


# -- state -----------------------------------------------------------------------------------------------------------


def test_modes_hold_inside_the_graph_and_the_process_is_unchanged():
    w = torch.nn.Parameter(torch.ones(2))
    p = Program(w)
    graph = p.m.graph
    graph.state_call(torch._C._set_grad_enabled, False)
    graph.state.grad = False
    y = p.call(torch.sin, p.inputs[0])
    assert torch.is_grad_enabled()
    graph.state_call(torch._C._set_grad_enabled, True)
    graph.state.grad = True
    z = p.call(torch.cos, p.inputs[0])
    assert (y.fake.requires_grad, z.fake.requires_grad) == (False, True)
    got = p.run(y, z)
    assert [t.requires_grad for t in got] == [False, True]


def test_a_failed_inference_restores_the_modes():
    p = Program(torch.ones(2))
    p.m.graph.state.grad = False
    with pytest.raises(Break):
        p.call("view", p.inputs[0], 3)
    assert torch.is_grad_enabled()


def test_requires_grad_():
    p = Program(torch.ones(2), torch.ones(2, requires_grad=True))
    plain, grad = p.inputs
    assert p.call("requires_grad_", grad) is grad
    assert p.call("requires_grad_", plain, False) is plain
    with pytest.raises(Break):
        p.call("requires_grad_", plain)


def test_const_is_a_value():
    p = Program(torch.ones(2))
    assert isinstance(p.call("dim", p.inputs[0]), Const)
