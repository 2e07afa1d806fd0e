"""What models ask of torch besides operations, captured as one graph and equal to plain Python."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import dynacore


def modes(x, w):
    with torch.no_grad():
        a = x @ w
    with torch.enable_grad():
        b = x @ w
    with torch.set_grad_enabled(False):
        c = x @ w
    return a, b, c, torch.is_grad_enabled(), a.requires_grad, b.requires_grad, torch.is_inference_mode_enabled()


def autocast(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, on, dtype = x @ w, torch.is_autocast_enabled("cpu"), (x @ w).dtype
        with torch.autocast("cpu", enabled=False):
            z = x @ w
        u = torch.relu(x @ w)
    return y, on, dtype, z, u, torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")


def questions(x, w):
    return (
        torch.jit.is_scripting(),
        torch.jit.is_tracing(),
        torch.get_default_dtype(),
        torch.is_tensor(x),
        torch.is_tensor(3),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_num_threads(),
        torch.cuda.is_available(),
        torch.backends.cuda.flash_sdp_enabled(),
        torch.get_default_device(),
        torch.overrides.has_torch_function((x, w)),
    )


def limits(x, w):
    low = torch.finfo(x.dtype).min
    return x.masked_fill(x > 0, low), torch.finfo(torch.float16).eps, torch.iinfo(torch.int32).max


def devices(x, w):
    d = x.device
    return (
        torch.zeros(2, device=d, dtype=x.dtype),
        d.type,
        d.index,
        str(d),
        d == torch.device("cpu"),
        x.to(torch.device("cpu")),
        x.to(d) is x,
        x.cpu() is x,
        x.double() is x,
    )


def dtypes(x, w):
    return (
        x.dtype.is_floating_point,
        x.dtype == torch.float32,
        x.dtype.itemsize,
        x.is_floating_point(),
        str(x.dtype),
        torch.promote_types(torch.float16, torch.float32),
        torch.result_type(x, 1.0),
        torch.can_cast(torch.int32, x.dtype),
    )


def sizes(x, w):
    s = x.shape
    return (
        s[:1] + (4,),
        s.numel(),
        torch.Size([1, 2]),
        len(s),
        s[-1],
        x.view(*s[:-1], 1, s[-1]),
        torch.broadcast_shapes(s, (1, 3)),
        x.size(),
        tuple(s),
        list(s),
        isinstance(s, torch.Size),
        s == (2, 3),
        math.prod(s),
    )


def attributes(x, w):
    return (
        x.T,
        x.mT,
        x.ndim,
        x.requires_grad,
        w.requires_grad,
        w.grad,
        x.is_leaf,
        x.data,
        x.is_cuda,
        x.layout,
        x.real,
        x.nbytes,
        x.grad_fn,
        w.data,
        hasattr(x, "shape"),
        hasattr(x, "nothing"),
        getattr(x, "nothing", 3),
    )


def classes(x, w):
    return (
        isinstance(x, torch.Tensor),
        isinstance(w, nn.Parameter),
        isinstance(x, nn.Parameter),
        type(x) is torch.Tensor,
    )


def operators(x, w):
    return (
        -x,
        x**2,
        2**x,
        x // 1,
        x % 2,
        1 - x,
        1 / x,
        x < 1,
        ~(x > 0),
        (x > 0) & (x < 1),
        x @ w,
        abs(x),
        x[0],
        x[:, None],
        x[..., 0],
        x[x.argmax(0)],
        [t * 2 for t in x],
        len(x),
        sum(x),
    )


def in_place(x, w):
    y = x.clone()
    y += 1
    y[0] = 5
    y[:, 1] *= 2
    z = y.mul_(3)
    z -= 1
    y[y > 5] = 0
    return y, z is y


def random_numbers(x, w):
    return F.dropout(x, 0.5, True), torch.randn_like(x), torch.rand(2), torch.bernoulli(torch.full((2,), 0.5))


def checks(x, w):
    torch._assert(x.shape[0] == 2, "two rows")
    torch._check(x.ndim == 2)
    assert w.ndim == 2
    return x + 1


PROGRAMS = [
    modes,
    autocast,
    questions,
    limits,
    devices,
    dtypes,
    sizes,
    attributes,
    classes,
    operators,
    in_place,
    random_numbers,
    checks,
]


def same(a, b):
    """Whether two results are the same, tensors with all their metadata."""
    if isinstance(a, torch.Tensor):
        metadata = all(getattr(a, n) == getattr(b, n) for n in ("dtype", "shape", "requires_grad"))
        return type(a) is type(b) and metadata and a.stride() == b.stride() and torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_program(program):
    torch.manual_seed(0)
    x, w = torch.randn(2, 3), nn.Parameter(torch.randn(3, 3))
    compiled = dynacore.compile(program, backend="eager", fullgraph=True)
    for _ in range(2):
        torch.manual_seed(1)
        want = program(x, w)
        state = torch.get_rng_state()
        torch.manual_seed(1)
        got = compiled(x, w)
        assert torch.equal(torch.get_rng_state(), state)
        pairs = list(zip(got, want, strict=True)) if isinstance(want, tuple) else [(got, want)]
        assert [place for place, (a, b) in enumerate(pairs) if not same(a, b)] == []


def test_being_compiled():
    def program(x):
        return x + 1, torch.compiler.is_compiling(), torch.compiler.is_dynamo_compiling(), torch.compiler.is_exporting()

    assert dynacore.compile(program, backend="eager", fullgraph=True)(torch.ones(1))[1:] == (True, True, False)


def test_autocast_around_the_call_is_seen():
    def program(x):
        with torch.autocast("cpu"):
            return x @ x

    compiled = dynacore.compile(program, backend="eager", fullgraph=True)
    x = torch.ones(2, 2)
    for _ in range(2):
        compiled(x)
        with torch.autocast("cpu", dtype=torch.float16):
            assert compiled(x).dtype is program(x).dtype
            assert torch.is_autocast_enabled("cpu")
        assert not torch.is_autocast_enabled("cpu")


def test_setting_the_state_of_the_process_breaks():
    def program(x):
        y = x + 1
        torch.set_default_dtype(torch.float64)
        try:
            return y, torch.ones(1)
        finally:
            torch.set_default_dtype(torch.float32)

    with pytest.raises(dynacore.DynacoreError):
        dynacore.compile(program, backend="eager", fullgraph=True)(torch.ones(1))
    compiled = dynacore.compile(program, backend="eager")
    for _ in range(2):
        assert same(compiled(torch.ones(1)), program(torch.ones(1)))


def test_layers():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 4),
        nn.LayerNorm(4),
        nn.Dropout(0.2),
        nn.GELU(),
    )
    other = copy.deepcopy(net)
    compiled = dynacore.compile(other, backend="eager", fullgraph=True)
    x = torch.randn(2, 3, 8, 8)
    for _ in range(3):
        torch.manual_seed(1)
        want = net(x)
        torch.manual_seed(1)
        got = compiled(x)
        assert torch.equal(got, want)
        want.sum().backward()
        got.sum().backward()
    for (name, a), (_, b) in zip(net.state_dict().items(), other.state_dict().items(), strict=True):
        assert torch.equal(a, b), name
    for a, b in zip(net.parameters(), other.parameters(), strict=True):
        assert torch.equal(a.grad, b.grad)
