"""What counts as a torch operation."""

import operator
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

import dynacore
from dynacore.graph import ops

LEAVES = [
    torch.sin, torch.einsum, torch.arange, torch.tensor, torch.fft.fft, torch.linalg.norm, torch.special.expit,
    F.relu, F.linear, F.dropout, F.layer_norm, F.cross_entropy, F.scaled_dot_product_attention, F.max_pool2d,
    F.embedding,
    torch.Tensor.add, torch.Tensor.__add__, torch.Tensor.__rsub__, torch.Tensor.__getitem__, torch.Tensor.split,
    torch.Tensor.unflatten, torch.Tensor.item, torch.Tensor.backward, torch.ops.aten.add.Tensor, torch.ops.aten.add,
]  # fmt: skip
OTHERS = [
    len, operator.add, torch.is_tensor, torch.no_grad, torch.Tensor, torch.manual_seed, torch.is_grad_enabled,
    F.sigmoid,
    F.triplet_margin_with_distance_loss, torch.nn.Linear, torch.compile, print, 3, None, "add",
]  # fmt: skip


def name_of(function):
    """For the test's name, which must be the same in every process: no address."""
    return getattr(function, "__name__", repr(function))


@pytest.mark.parametrize("function", LEAVES, ids=name_of)
def test_operations(function):
    assert ops.is_op(function)


@pytest.mark.parametrize("function", OTHERS, ids=name_of)
def test_what_is_no_operation(function):
    assert not ops.is_op(function)


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (torch.Tensor.item, "tensor-to-python"),
        (torch.Tensor.numpy, "numpy"),
        (torch.Tensor.data_ptr, "tensor-storage"),
        (torch.Tensor.backward, "autograd"),
        (torch.nonzero, "data-dependent-shape"),
        (torch.Tensor.unique, "data-dependent-shape"),
        (torch.sin, None),
    ],
)
def test_refusals(function, code):
    assert ops.refusal(function, ops.name_of(function)) == code


def test_names_and_methods():
    assert ops.name_of(torch.ops.aten.add.Tensor) == "add"
    assert ops.name_of(torch.Tensor.add) == "add"
    assert ops.is_method(torch.Tensor.add)
    assert ops.is_method(torch.Tensor.split)
    assert not ops.is_method(torch.split)
    assert not ops.is_method(list.append)


def test_names_of_what_is_not_torchs_own():
    def softmax(x):
        return x

    assert ops.name_of(dynacore.allow_in_graph(softmax)) == f"{__name__}.softmax"
    assert ops.name_of(dynacore.allow_in_graph(torch.softmax)) == "softmax"
    with torch.library._scoped_library("dynacore_names", "DEF") as library:
        library.define("softmax(Tensor x) -> Tensor")
        assert ops.name_of(torch.ops.dynacore_names.softmax) == "dynacore_names::softmax"
        assert ops.name_of(torch.ops.dynacore_names.softmax.default) == "dynacore_names::softmax"


def test_asking_loads_nothing_of_the_compiler():
    program = (
        "import sys, torch; from dynacore.graph import ops; assert ops.is_op(torch.sin); "
        "print([m for m in ('torch._dynamo', 'sympy', 'torch._inductor') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
