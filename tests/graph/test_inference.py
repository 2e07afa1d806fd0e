"""What operations return on stand-ins, against what they return."""

import random

import pytest
import torch
import torch.nn.functional as F
from graph.fake_machine import Program
from graph.recorder import Recorder, described, tensor
from torch import nn

from dynacore.graph import layouts, meta
from dynacore.graph.shapes import QUICK
from dynacore.values import Tensor


def check(function, *args, **kwargs):
    """Whether inference gives what the operation gives; the arguments are tensors or constants."""
    p = Program(*[a for a in args if isinstance(a, torch.Tensor)])
    inputs = iter(p.inputs)
    p.m.graph.state.grad = torch.is_grad_enabled()
    got = p.call(function, *[next(inputs) if isinstance(a, torch.Tensor) else a for a in args], **kwargs)
    want = function(*args, **kwargs)
    pairs = [(got, want)] if isinstance(got, Tensor) else list(zip(got.items, want, strict=True))
    for value, real in pairs:
        if real is not None:
            assert described(value.fake) == described(real)
    return got


# -- layout of element-by-element results ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_layout_of_pointwise_results(seed):
    """Random shapes, orders of dimensions, broadcasts, slices and dtypes."""
    rng = random.Random(seed)
    for _ in range(60):
        ndim = rng.randint(1, 4)
        shape = [rng.choice([1, 2, 3, 4]) for _ in range(ndim)]

        def operand():
            own = [rng.choice([size, size, size, 1]) for size in shape]
            order = list(range(ndim))
            rng.shuffle(order)
            made = tensor(
                [size + rng.choice([0, 0, 2]) for size in own], order, rng.choice([torch.float32, torch.int64])
            )
            made = made[tuple(slice(size) for size in own)]
            return made[0] if rng.random() < 0.2 else made

        a, b = operand(), operand()
        try:
            want = a + b
        except RuntimeError:
            continue
        try:
            found = layouts.pointwise([a, b], want.dtype)
        except layouts.Declined:
            continue
        assert found == (tuple(want.shape), want.stride()), (described(a), described(b))


def test_layout_of_pointwise_results_is_hardly_ever_declined():
    assert layouts.pointwise([torch.empty(2, 3).t(), torch.empty(3, 1)]) == ((3, 2), (1, 3))
    assert layouts.pointwise([torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last)])[1] == (60, 1, 15, 3)


# -- quick rules -----------------------------------------------------------------------------------------------------

X = (2, 6, 32)
CASES = {
    "linear": (F.linear, X, (8, 32), (8,)),
    "linear without bias": (F.linear, X, (8, 32)),
    "matmul": (torch.matmul, X, (32, 4)),
    "matmul of batches": (torch.matmul, (2, 3, 4, 5), (1, 3, 5, 6)),
    "bmm": (torch.bmm, (2, 3, 4), (2, 4, 5)),
    "addmm": (torch.addmm, (5,), (3, 4), (4, 5)),
    "baddbmm": (torch.baddbmm, (2, 1, 5), (2, 3, 4), (2, 4, 5)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (32,), w, b), X, (32,), (32,)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (32,), w), X, (32,)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (2, 4, 5, 5), (4,), (4,)),
    "conv1d": (F.conv1d, (2, 4, 9), (6, 4, 3), (6,)),
    "conv2d": (lambda x, w: F.conv2d(x, w, stride=2, padding=1), (2, 4, 9, 8), (6, 4, 3, 3)),
    "conv2d of groups": (lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 4), (2, 4, 9, 8), (8, 1, 3, 3)),
    "conv2d of one place": (F.conv2d, (2, 4, 1, 1), (6, 4, 1, 1)),
    "conv2d of one channel": (F.conv2d, (2, 1, 6, 6), (6, 1, 3, 3)),
    "conv3d": (F.conv3d, (1, 2, 4, 4, 4), (3, 2, 2, 2, 2)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), (2, 4, 9, 8)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), (2, 4, 9, 8)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (1, 3)), (2, 4, 9, 8)),
    "softmax": (lambda x: x.softmax(-1), X),
    "log_softmax": (lambda x: F.log_softmax(x, 1), X),
    "cumsum": (lambda x: x.cumsum(0), X),
    "tril": (torch.tril, (4, 4)),
    "sum": (lambda x: x.sum((0, -1), keepdim=True), X),
    "sum of all": (torch.sum, X),
    "mean": (lambda x: x.mean(-1), X),
    "var": (lambda x: x.var(1, keepdim=True), X),
    "amax": (lambda x: x.amax(0), X),
    "argmax": (lambda x: x.argmax(-1), X),
    "cat": (lambda x, y: torch.cat([x, y], 1), X, (2, 1, 32)),
    "cat with nothing": (lambda e, x: torch.cat([e, x], 1), (0,), X),
    "stack": (lambda x, y: torch.stack((x, y), -1), X, X),
    "repeat": (lambda x: x.repeat(2, 1, 3, 1), X),
    "where": (lambda x, y: torch.where(x > 0, y, 0), X, (32,)),
    "masked_fill": (lambda x: x.masked_fill(x > 0, -1), X),
    "clamp": (lambda x: x.clamp(min=0), X),
    "gelu": (lambda x: F.gelu(x, approximate="tanh"), X),
    "silu": (F.silu, X),
    "pow": (lambda x: x.pow(2), X),
    "rsqrt": (torch.rsqrt, X),
    "division": (lambda x, y: x / y, X, (6, 1)),
    "comparison": (lambda x: x >= 1, X),
    "dropout": (lambda x: F.dropout(x, 0.5, True), X),
    "batch_norm in training": (
        lambda x, m, v, w: F.batch_norm(x, m.detach().clone(), v.detach().clone(), w, training=True),
        (2, 4, 5, 5),
        (4,),
        (4,),
        (4,),
    ),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 1), (2, 4, 5, 5), (4, 3, 3, 3)),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), (2, 4, 5, 5)),
    "interpolate to a size": (lambda x: F.interpolate(x, (7, 3)), (2, 4, 5, 5)),
    "mse_loss": (F.mse_loss, X, X),
    "l1_loss of elements": (lambda x, y: F.l1_loss(x, y, reduction="none"), X, X),
    "cross_entropy": (lambda x: F.cross_entropy(x, torch.tensor([1, 2])), (2, 5)),
    "cross_entropy of pixels": (
        lambda x: F.cross_entropy(x, torch.zeros(2, 3, 3, dtype=torch.long), reduction="none", label_smoothing=0.1),
        (2, 5, 3, 3),
    ),
    "norm": (lambda x: x.norm(dim=-1, keepdim=True), X),
    "normalize": (lambda x: F.normalize(x, dim=-1), X),
    "logsumexp": (lambda x: x.logsumexp(1), X),
    "outer": (torch.outer, (3,), (4,)),
    "mv": (torch.mv, (3, 4), (4,)),
    "flip": (lambda x: x.flip(0, -1), X),
    "argsort": (lambda x: x.argsort(-1, descending=True), X),
    "isnan": (torch.isnan, X),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.5), X, (32,)),
    "addcmul": (torch.addcmul, X, (32,), X),
    "floor_divide": (lambda x: x // 2, X),
    "full_like": (lambda x: torch.full_like(x, 2.0), X),
    "randint": (lambda x: torch.randint(0, 5, (3,)), X),
    "linspace": (lambda x: torch.linspace(0, 1, 5), X),
    "eye": (lambda x: torch.eye(3), X),
    "one_hot": (lambda x: F.one_hot(torch.arange(3), 4), X),
    "index_add": (lambda x, y: x.index_add(1, torch.tensor([0, 0]), y), X, (2, 2, 32)),
    "scatter_add": (lambda x, y: x.scatter_add(1, torch.zeros(2, 1, 3, dtype=torch.long), y), X, (2, 2, 4)),
    "activations in place": (
        lambda x: F.leaky_relu(F.silu(F.dropout(x.clone(), 0.5, True, True), inplace=True), 0.1, True),
        X,
    ),
    "arithmetic in place": (
        lambda x, y: x.detach().clone().mul_(y).div_(2).sigmoid_().clamp_(0, 1).masked_fill_(x.detach() > 0, 0),
        X,
        (32,),
    ),
    "attention": (F.scaled_dot_product_attention, (2, 4, 6, 8), (2, 4, 5, 8), (2, 4, 5, 8)),
}


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_operations(name, reverse, grad):
    """On contiguous tensors, where quick rules answer, and on transposed ones."""
    function, *shapes = CASES[name]
    order = lambda shape: list(reversed(range(len(shape)))) if reverse else None
    tensors = [tensor(shape, order(shape), grad=grad) for shape in shapes]
    with Recorder() as recorder:
        function(*tensors)
    assert recorder.names


def test_quick_rules_answer_for_contiguous_tensors(monkeypatch):
    """None of these may load torch's own rules."""
    monkeypatch.setattr(meta, "run_plain", lambda call: pytest.fail(f"no quick rule for {call.name}"))
    for function, *shapes in CASES.values():
        p = Program(*[torch.randn(shape) for shape in shapes])
        if function.__name__ != "<lambda>":
            p.call(function, *p.inputs)


IMAGES = {
    "conv2d": lambda x, w: F.conv2d(x, w, padding=1),
    "conv_transpose2d": lambda x, w: F.conv_transpose2d(x, w.transpose(0, 1)),
    "batch_norm": lambda x, w: F.batch_norm(x, None, None, training=True),
    "batch_norm by statistics": lambda x, w: F.batch_norm(x, torch.zeros(x.shape[1]), torch.ones(x.shape[1])),
    "group_norm": lambda x, w: F.group_norm(x, 1),
    "max_pool2d": lambda x, w: F.max_pool2d(x, 3, 1, 1),
    "adaptive_avg_pool2d": lambda x, w: F.adaptive_avg_pool2d(x, 1),
    "interpolate": lambda x, w: F.interpolate(x, scale_factor=2),
    "cat": lambda x, w: torch.cat([x, x], 1),
    "cat of two layouts": lambda x, w: torch.cat([x, x.contiguous()], 1),
    "activation": lambda x, w: F.gelu(x),
    "bias": lambda x, w: x + torch.ones(x.shape[1], 1, 1),
    "number": lambda x, w: x > 0,
    "zeros_like": lambda x, w: torch.zeros_like(x),
    "masked_fill": lambda x, w: x.masked_fill(x > 0, 0),
    "where": lambda x, w: torch.where(x > 0, x, 0.0),
    "softmax": lambda x, w: x.softmax(1),
    "mean": lambda x, w: x.mean((2, 3), keepdim=True),
    "normalize": lambda x, w: F.normalize(x),
    "dropout": lambda x, w: F.dropout(x, 0.5, True),
    "flatten": lambda x, w: x.flatten(1),
}


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("layout", ["channels last", "swapped", "reversed", "sliced"])
def test_images_in_any_layout(name, layout):
    """Dimensions of size one have strides that say nothing, and torch looks at them."""
    for shape in ((2, 4, 6, 6), (1, 4, 6, 6), (2, 4, 1, 1), (2, 1, 6, 6)):
        batch, channels, height, width = shape
        if layout == "channels last":
            x = torch.randn(shape).to(memory_format=torch.channels_last)
        elif layout == "swapped":
            x = torch.randn(batch, height, channels, width).transpose(1, 2)
        elif layout == "reversed":
            x = torch.randn(shape[::-1]).permute(3, 2, 1, 0)
        else:
            x = torch.randn(batch, channels, height, 2 * width)[..., ::2]
        for weight in (
            torch.randn(8, channels, 3, 3),
            torch.randn(8, channels, 3, 3).to(memory_format=torch.channels_last),
        ):
            with Recorder():
                IMAGES[name](x, weight)


@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize("length", [1, 9])
def test_sequences_whose_channels_are_innermost(channels, length):
    x = torch.randn(2, length, channels).transpose(1, 2)
    with Recorder():
        F.conv1d(x, torch.randn(8, channels, 3), padding=1)
        F.conv_transpose1d(x, torch.randn(channels, 8, 2))
        F.max_pool1d(x, 1)
        F.batch_norm(x, None, None, training=True) if length > 1 else None
        torch.cat([x, x], 1)


@pytest.mark.parametrize("length", [1, 5])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("mask", [None, torch.bool, torch.float32])
def test_attention(length, transposed, dropout, mask):
    """The kernel that the CPU takes decides the layout."""
    order = (0, 2, 1, 3) if transposed else None
    q = tensor((2, 4, length, 8), order)
    k, v = tensor((2, 4, 5, 8), order), tensor((2, 4, 5, 8), order)
    masks = [] if mask is None else [torch.ones(2, 1, length, 5).to(mask)]
    check(F.scaled_dot_product_attention, q, k, v, *(masks or [None]), dropout)


def test_attention_with_a_mask_that_learns():
    q = torch.randn(1, 5, 2, 8).transpose(1, 2)
    check(F.scaled_dot_product_attention, q, q, q, torch.zeros(1, 2, 5, 5, requires_grad=True))


def test_rules_decline_what_torch_refuses():
    for name, args in (
        ("linear", (torch.empty(2, 3), torch.empty(4, 5))),
        ("add", (torch.empty(2, 3), torch.empty(4))),
        ("sub", (torch.empty(2), torch.empty(2, dtype=torch.bool))),
        ("mm", (torch.empty(2, 3, 4), torch.empty(4, 3))),
        ("cat", ([torch.empty(2, 3), torch.empty(2)],)),
        ("softmax", (torch.empty(2, 3), 5)),
        ("mean", (torch.empty(2, dtype=torch.int64),)),
        ("maximum", (torch.empty(2), 1)),
        ("arange", (0, 5, -1)),
        ("embedding", (torch.empty(2), torch.empty(3, 4))),
        ("max_pool2d", (torch.empty(1, 1, 4, 4), 2, 2, 2)),
    ):
        with pytest.raises(Exception):
            QUICK[name](*args)


# -- autograd and views ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize("strides", [(3, 1), (1, 2), (6, 2), (0, 1), (0, 0)])
def test_stand_ins_mirror_their_tensors(leaf, strides):
    real = torch.empty(20).as_strided((2, 3), strides).detach().requires_grad_()
    if not leaf:
        real = torch.empty(20, requires_grad=True).clone().as_strided((2, 3), strides)
    fake = meta.stand_in(real)
    assert described(fake) == described(real)
    assert fake.device.type == "meta"
    assert not (leaf is False and fake._is_view() and fake._base.is_leaf)  # else in-place operations would fail


def test_stand_ins_of_conjugates_and_of_inference_tensors():
    conj = torch.randn(2, dtype=torch.complex64).conj()
    assert meta.stand_in(conj).is_conj()
    assert meta.stand_in(conj.imag).is_neg()
    with torch.inference_mode():
        made = torch.ones(2)
    assert meta.stand_in(made).is_inference()


def test_changes_of_metadata_in_place():
    def program(x, call, attr):
        y = call("mul", x, 2)
        call("t_", y)
        call("unsqueeze_", y, 0)
        z = call("detach", y)
        call("detach_", y)
        base = call("clone", call("detach", x))
        view = call("view", base, -1)
        call("mul_", view, call("view", call("clone", x), -1))
        return y, z, base, view

    x = torch.randn(2, 3, requires_grad=True)
    p = Program(x)
    got = program(p.inputs[0], p.call, None)
    want = program(x, lambda name, *args: getattr(torch.Tensor, name)(*args), None)
    for value, real in zip(got, want, strict=True):
        assert described(value.fake) == described(real)
    for a, b in zip(p.run(*got), want, strict=True):
        assert described(a) == described(b)
        assert torch.equal(a, b)


def test_no_grad_and_inference_mode():
    w = nn.Parameter(torch.ones(2))
    with torch.no_grad():
        assert not check(torch.sin, w).fake.requires_grad
    with torch.inference_mode():
        assert check(torch.sin, w).fake.is_inference()


# -- autocast --------------------------------------------------------------------------------------------------------


def layers(x, w, b, call):
    y = call(F.linear, x, w, b)
    z = call(F.layer_norm, y, (32,), b, b)
    q = call(torch.Tensor.transpose, call(torch.Tensor.view, call(F.linear, z, w), 2, 6, 4, 8), 1, 2)
    a = call(F.scaled_dot_product_attention, q, q, q)
    s = call(torch.Tensor.softmax, y, -1)
    f = call(torch.Tensor.float, s)
    d = call(torch.mul, y, x)
    i = call(torch.Tensor.add_, call(torch.matmul, x, w), 1)
    return y, z, q, a, s, f, d, i, call(F.mse_loss, y, x), call(torch.sum, y)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype, grad):
    x, w, b = torch.randn(2, 6, 32), nn.Parameter(torch.randn(32, 32)), nn.Parameter(torch.randn(32))
    with torch.set_grad_enabled(grad), torch.autocast("cpu", dtype=dtype):
        p = Program(x, w, b)
        got = layers(*p.inputs, p.call)
        want = layers(x, w, b, lambda function, *args: function(*args))
        for place, (value, real) in enumerate(zip(got, want, strict=True)):
            assert described(value.fake) == described(real), place
        for a, b in zip(p.run(*got), want, strict=True):
            assert torch.equal(a, b)


def test_autocast_that_the_program_sets_leaves_the_process_alone():
    p = Program(torch.randn(2, 2))
    p.m.graph.state.autocast["cpu"] = True
    y = p.call(torch.matmul, p.inputs[0], p.inputs[0])
    assert y.fake.dtype is torch.bfloat16
    assert not torch.is_autocast_enabled("cpu")
    assert torch.is_autocast_cache_enabled()
    p.m.graph.state.autocast["cpu"] = False
    assert p.call(torch.matmul, p.inputs[0], p.inputs[0]).fake.dtype is torch.float32
