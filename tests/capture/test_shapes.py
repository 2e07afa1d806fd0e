"""Sizes that vary from call to call: one graph serves them, and never a wrong result. Plain Python is the oracle."""

import random

import pytest
import torch
import torch.nn.functional as F
from capture.compare import Graphs, difference
from torch import nn

import dynacore
from dynacore import torch_api
from dynacore.specialise import Varying, specialised


class Compiled:
    """A function beside its compiled form: called, it checks that both agree."""

    def __init__(self, function, **options):
        self.function = function
        self.graphs = Graphs()
        self.compiled = dynacore.compile(function, backend=self.graphs, **options)

    def __call__(self, *args):
        ours, plain = outcome(self.compiled, args), outcome(self.function, args)
        if isinstance(plain, Exception):
            assert type(ours) is type(plain) and str(ours) == str(plain)
            return
        wrong = difference(ours, plain)
        assert wrong is None, f"{wrong} for {[getattr(a, 'shape', a) for a in args]}"


def outcome(function, args):
    """What a call gives or raises."""
    try:
        return function(*args)
    except Exception as error:
        return error


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 4)).eval()


# -- how many graphs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_batches_of_any_size_need_two_graphs(seed):
    run = Compiled(model())
    sizes = list(range(2, 65))
    random.Random(seed).shuffle(sizes)
    for n in sizes:
        run(torch.randn(n, 6))
    assert len(run.graphs) == 2


def test_lengths_that_grow_by_one_need_two_graphs():
    run = Compiled(lambda x: F.softmax(x @ x.transpose(1, 2), -1) @ x)
    for n in range(3, 40):
        run(torch.randn(2, n, 4))
    assert len(run.graphs) == 2


def test_only_what_differed_is_kept_open():
    run = Compiled(lambda x: (x * 2, x.shape))
    run(torch.ones(2, 3))
    run(torch.ones(4, 3))
    run(torch.ones(5, 3))
    assert len(run.graphs) == 2
    run(torch.ones(5, 7))
    run(torch.ones(2, 9))
    assert len(run.graphs) == 3


def test_a_list_of_tensors_that_grows_is_captured_for_each_length():
    run = Compiled(lambda xs: sum(xs))
    for n in range(1, 5):
        run([torch.ones(2)] * n)
    assert len(run.graphs) == 4


@pytest.mark.parametrize(("dynamic", "graphs"), [(True, 1), (None, 2), (False, 4)])
def test_the_argument_dynamic(dynamic, graphs):
    run = Compiled(lambda x, y: (x + y).reshape(-1, 2) * x.shape[1], dynamic=dynamic)
    for n, m in ((2, 4), (3, 6), (5, 8), (7, 2)):
        run(torch.randn(n, m), torch.randn(n, m))
    assert len(run.graphs) == graphs


def test_sizes_zero_and_one_have_graphs_of_their_own():
    run = Compiled(lambda x: (x + torch.ones(3, 1), x.sum(0)), dynamic=True)
    for n in (1, 5, 1, 4, 0, 9, 0):
        run(torch.randn(3, n))
    assert len(run.graphs) == 3


def test_equal_by_chance_and_equal_by_need():
    run = Compiled(lambda x, y: x.shape[0] + y.shape[0], dynamic=True)
    run(torch.ones(4), torch.ones(4))
    run(torch.ones(4), torch.ones(5))
    added = Compiled(lambda x, y: x + y, dynamic=True)
    for n, m in ((4, 4), (5, 5), (4, 1), (1, 5), (4, 5), (3, 3)):
        added(torch.ones(n), torch.ones(m))
    explained = dynacore.explain(dynacore.compile(lambda x, y: x + y, backend="eager", dynamic=True))
    assert "x.shape[0] == y.shape[0]" in str(explained(torch.ones(4), torch.ones(4)))


# -- what the program does with sizes ----------------------------------------------------------------------------------


def padded(x):
    rest = -x.shape[-1] % 8
    return F.pad(x, (0, rest)).reshape(x.shape[0], -1, 8)


def halves(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def windows(x):
    b, n = x.shape
    return x[:, : n - n % 2].view(b, n // 2, 2).flip(2).flatten(1), f"{b}x{n}"


def positions(x):
    at = torch.arange(x.shape[1], device=x.device).unsqueeze(0).expand(x.shape[0], -1)
    return at, (at[:, :, None] >= at[:, None, :]), torch.zeros(x.shape[1], 2), torch.full((x.size(0),), 3.0)


def heads(x):
    b, n = x.shape
    y = x.unsqueeze(-1).expand(b, n, 6).reshape(b, n, 2, 3).transpose(1, 2)
    return y.contiguous().view(b, -1), y.stride(), y.is_contiguous(), y.numel(), y.permute(3, 0, 2, 1).mean(-1)


def branches(x):
    if x.shape[0] > 4 and x.shape[1] % 3 != 1:
        return x * x.shape[0]
    return x.t() / x.shape[1]


def parts(x):
    a, b = x.split([1, x.shape[1] - 1], dim=1)
    return a * 2, b[:, -1], x.narrow(1, 0, x.shape[1] - 1), x[-1], x.chunk(2, 1), x[:, ::2], x[:, -2:]


def unusual(x):
    return torch.einsum("ij,kj->ik", x, x), torch.cdist(x, x), x.diagonal(), torch.linalg.norm(x)


def in_place(x):
    y = torch.zeros_like(x)
    y[:, : x.shape[1] - 1] = x[:, 1:]
    y.add_(x).mul_(x.shape[0])
    y.t_()
    return y, y.shape


def numbers(x):
    n = x.shape[1]
    return n, -n // 3, n % 4, {n: x.shape[0]}, [n] * 2, n * x.shape[0], n == 5, max(n, 4), x.numel() / n, n**2, n << 1


def reductions(x):
    return x.sum(), x.t().mean(0), x.amax(1, keepdim=True), x.var(0), x.argmax(-1), x.logsumexp(1), x.norm()


def loops(x):
    for i in range(min(x.shape[0], 3)):
        x = x + i
    return x, [row.sum() for row in x[:2]]


PROGRAMS = [padded, halves, windows, positions, heads, branches, parts, unusual, in_place, numbers, reductions, loops]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(program, dynamic):
    run = Compiled(program, dynamic=dynamic)
    for n, m in ((4, 6), (5, 6), (4, 7), (8, 9), (2, 2), (6, 16), (3, 5), (7, 7), (2, 8), (5, 3)):
        run(torch.arange(float(n * m)).reshape(n, m) + 1)
    assert len(run.graphs) <= dynacore.config.recompile_limit


FOLLOWED = {padded: 2, halves: 2, windows: 2, positions: 1, heads: 1, parts: 2, reductions: 1}


@pytest.mark.parametrize(("program", "most"), FOLLOWED.items(), ids=[program.__name__ for program in FOLLOWED])
def test_one_graph_where_nothing_depends_on_the_size(program, most):
    """At most this many: odd and even lengths may need their own."""
    run = Compiled(program, dynamic=True)
    for n, m in ((4, 6), (5, 9), (8, 14), (6, 21), (3, 5), (7, 8), (16, 10)):
        run(torch.arange(float(n * m)).reshape(n, m) + 1)
    assert len(run.graphs) <= most


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.topk(x, 2),
        lambda x: torch.einsum("ij,kj->ik", x, x),
        lambda x: torch.full_like(x.long(), 3),
        lambda x: x.unfold(1, 2, 1),
        lambda x: F.interpolate(x[None, None], scale_factor=2.0),
        lambda x: F.interpolate(x[None], size=x.shape[0]),
        lambda x: torch.linspace(0, 1, x.shape[0]),
        lambda x: x.t().cumsum(0).sort(0),
        lambda x: x.masked_fill(x.t().t() > 2, 0.0),
        lambda x: torch.tensordot(x, x, dims=([1], [1])),
        lambda x: torch.matrix_exp(x @ x.t() / 50),
        lambda x: torch.diagflat(x),
    ],
    ids="topk einsum full_like unfold scale size linspace sort masked_fill tensordot exp diagflat".split(),
)
def test_operations_without_a_rule_of_their_own(program):
    run = Compiled(program, dynamic=True)
    for n, m in ((4, 6), (5, 9), (8, 7), (3, 11)):
        run(torch.arange(float(n * m)).reshape(n, m) + 1)
    assert len(run.graphs) == 1


@pytest.mark.parametrize("layout", ["transposed", "sliced", "expanded", "permuted", "channels last"])
def test_strides_are_part_of_what_holds(layout):
    def given(n, m):
        if layout == "transposed":
            return torch.randn(m, n, 2).transpose(0, 1)
        if layout == "sliced":
            return torch.randn(n + 1, m, 4)[1:, :, :2]
        if layout == "expanded":
            return torch.randn(n, 1, 2).expand(n, m, 2)
        if layout == "permuted":
            return torch.randn(2, n, m).permute(1, 2, 0)
        return torch.randn(n, 3, m, 2).to(memory_format=torch.channels_last)

    run = Compiled(lambda x: (x * 2, x.stride(), x.reshape(-1), x + x.contiguous(), x.is_contiguous()), dynamic=True)
    for n, m in ((2, 3), (4, 5), (3, 3), (6, 2)):
        run(given(n, m))
        run(given(n, m).contiguous())
    assert len(run.graphs) <= 6


def test_errors_are_those_of_plain_python():
    run = Compiled(lambda x, y: torch.cat([x, y]) @ y.view(3, -1), dynamic=True)
    for n, m in ((3, 3), (4, 4), (3, 5), (6, 3), (3, 3)):
        run(torch.randn(n, m), torch.randn(3, m))


def test_training():
    net, twin = model().train(), model().train()
    compiled = dynacore.compile(net, backend="eager", dynamic=True)
    for n in (4, 7, 5):
        x = torch.randn(n, 6)
        compiled(x).square().mean().backward()
        twin(x).square().mean().backward()
    for ours, theirs in zip(net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


# -- backends --------------------------------------------------------------------------------------------------------


def scaled(x, n):
    return F.gelu(x.reshape(-1, 2) * n).sum(1), x.shape[0] * n, x.t() + x.shape[1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_backends(backend, monkeypatch):
    compilations = []
    through = torch_api.aot_eager
    monkeypatch.setattr(torch_api, "aot_eager", lambda *args: compilations.append(args) or through(*args))
    compiled = dynacore.compile(scaled, backend=backend, dynamic=True)
    for n, m in ((2, 4), (3, 6), (2, 8), (5, 4), (3, 6), (9, 12)):
        x = torch.randn(n, m)
        assert difference(compiled(x, n + m), scaled(x, n + m)) is None
    assert len(compilations) == (backend == "aot_eager")


@pytest.mark.parametrize(
    ("program", "most"),
    [
        (lambda x, s: x * s + (x + 1) / s, 1),
        (lambda x, s: (x < s, (x - s) == 0, s - x, s + x.double().float()), 1),
        (lambda x, s: s / (x + 1), 8),
        (lambda x, s: x.long() * s, 8),
        (lambda x, s: (x.double() * s, x * s), 8),
    ],
    ids=["arithmetic", "comparison", "reciprocal", "integers", "two dtypes"],
)
def test_floats_that_vary_stay_open_to_compilers_where_a_tensor_does_the_same(program, most, monkeypatch):
    compilations = []
    through = torch_api.aot_eager
    monkeypatch.setattr(torch_api, "aot_eager", lambda *args: compilations.append(args) or through(*args))
    compiled = dynacore.compile(program, backend="aot_eager")
    for k in range(14):
        x, s = torch.randn(50) * 10, 0.1 * k + 0.05
        assert difference(compiled(x, s), program(x, s)) is None
    assert len(compilations) <= most + 1


def test_what_a_compiler_relies_on_holds():
    """The graph adds what had equal sizes by chance: the artifact for that isn't used for others."""
    gm = torch.fx.symbolic_trace(lambda x, y: (x + y,))
    rows = ("leaf", 0), 3
    gm.meta["varying"] = Varying(((4, True), (4, False)), ((rows, (3, 1)), ((("leaf", 1), 3), (3, 1))))
    made = []

    def compiler(graph, inputs):
        made.append(inputs)
        return torch_api.aot_eager(graph, inputs)

    run = specialised(gm, [torch.ones(4, 3), torch.ones(4, 3)], compiler)
    for n, m in ((4, 4), (7, 7), (5, 1), (6, 1), (2, 2)):
        x, y = torch.randn(n, 3), torch.randn(m, 3)
        assert torch.equal(run(x, y)[0], x + y)
    assert len(made) == 2


@pytest.mark.parametrize("failing", [True, False])
def test_a_compiler_that_knows_no_symbols_gets_constants(failing):
    """It raises, or looks at the sizes: then its artifact is for these alone."""
    made = []

    def compiler(graph, inputs):
        symbolic = any(isinstance(n, torch.SymInt) for x in inputs if isinstance(x, torch.Tensor) for n in x.shape)
        if symbolic and failing:
            raise NotImplementedError
        made.append([int(n) for x in inputs if isinstance(x, torch.Tensor) for n in x.shape])
        return torch_api.aot_eager(graph, inputs)

    def backend(gm, inputs):
        return specialised(gm, inputs, compiler)

    compiled = dynacore.compile(lambda x: x * x.shape[0] + x.sum(), backend=backend, dynamic=True)
    for n in (3, 4, 3, 5, 4):
        x = torch.randn(n, 2)
        assert torch.equal(compiled(x), x * n + x.sum())
    assert made == [[3, 2], [4, 2], [5, 2]]


def test_other_backends_see_symbols():
    seen = []

    def backend(gm, inputs):
        seen.append([x.shape if isinstance(x, torch.Tensor) else x for x in inputs])
        return gm.forward

    dynacore.compile(lambda x: x * x.shape[0], backend=backend, dynamic=True)(torch.ones(4, 2))
    (shape, size), *_ = seen
    assert type(shape[0]) is type(size) is torch.SymInt
    assert size.node.expr == shape[0].node.expr


def test_gradients_through_aot_autograd():
    net, twin = model().train(), model().train()
    compiled = dynacore.compile(net, backend="aot_eager")
    for n in (4, 7, 5, 3):
        x = torch.randn(n, 6)
        compiled(x).square().mean().backward()
        twin(x).square().mean().backward()
    for ours, theirs in zip(net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


# -- what the program says about sizes ---------------------------------------------------------------------------------


def marked(shape, dim, **bounds):
    x = torch.randn(shape)
    dynacore.mark_dynamic(x, dim, **bounds)
    return x


def test_a_marked_size_is_open_from_the_start():
    run = Compiled(lambda x: x * 2)
    run(marked((4, 3), 0))
    for n in (5, 9, 2):
        run(torch.randn(n, 3))
    assert len(run.graphs) == 1


def test_bounds_hold():
    run = Compiled(lambda x: x * 2)
    run(marked((8,), 0, min=4, max=16))
    for n in (4, 16, 9):
        run(torch.randn(n))
    assert len(run.graphs) == 1
    run(torch.randn(3))
    run(torch.randn(17))
    assert len(run.graphs) > 1


def test_bounds_decide_branches():
    run = Compiled(lambda x: x + 1 if x.shape[0] > 2 else x - 1)
    run(marked((8,), 0, min=4))
    explained = str(dynacore.explain(lambda x: x + 1 if x.shape[0] > 2 else x - 1)(marked((8,), 0, min=4)))
    assert "x.shape[0] >= 4" in explained and "x.shape[0] > 2" not in explained


def test_a_marked_size_that_the_program_fixes_is_an_error():
    def program(x):
        y = x * 2
        return y @ torch.ones(4, 2)

    with pytest.raises(dynacore.SpecialisedSizeError, match=r"x\.shape\[1\] was marked.* to be 4") as raised:
        dynacore.compile(program, backend="eager")(marked((3, 4), 1))
    assert raised.value.line == program.__code__.co_firstlineno + 2


def test_a_static_size_stays_as_it_is():
    run = Compiled(lambda x: x * 2, dynamic=True)
    for n in (4, 5, 6):
        x = torch.randn(n)
        dynacore.mark_static(x)
        run(x)
    assert len(run.graphs) == 3


def test_torch_check_is_a_condition():
    def program(x):
        torch._check(x.shape[0] > 2)
        return x * 2 if x.shape[0] > 1 else x

    run = Compiled(program, dynamic=True)
    for n in (5, 3, 9):
        run(torch.ones(n))
    assert len(run.graphs) == 1
    run(torch.ones(2))


def many_keys(x):
    n, found = x.shape[0], {3: 0, "x": 1}
    found[n] = 1
    found[n, 2] = x + 1
    found[x.shape] = found.pop(n) + n
    return found, (n, 2) in found, n in found, list(found), n in {2, 3}, {5: 4}.get(n, 0)


def from_outside(x):
    return x * TABLE.get(x.shape[0], 1)


TABLE = {5: 2, 7: 3, "other": 4}


@pytest.mark.parametrize(("program", "most"), [(many_keys, 4), (from_outside, 3)])
def test_sizes_as_keys_need_a_graph_for_each_key_that_they_equal(program, most):
    run = Compiled(program, dynamic=True)
    for n in (9, 8, 5, 3, 7, 2, 30, 4, 12, 5, 6, 10, 11):
        run(torch.ones(n))
    assert len(run.graphs) <= most


def test_two_sizes_as_keys():
    def program(x, y):
        found = {x.shape[0]: 1}
        found[y.shape[0]] = 2
        found[4] = 3
        return x + 1, found

    run = Compiled(program, dynamic=True)
    for n, m in ((5, 6), (6, 5), (7, 7), (4, 9), (9, 4), (8, 8), (4, 4), (2, 9)):
        run(torch.ones(n), torch.ones(m))
    assert len(run.graphs) <= 5


def texts(x):
    n, half = x.shape[0], x.shape[0] / 2
    return (
        f"{x.shape} {n:>4}", str([n, {"{n}": half}]), repr((n, x.shape)), "%d of %5.1f, %s" % (n, half, n),
        "{:04d} {} {half}".format(n, True, half=half), "n = " + str(n) + "!", x + 1,
    )  # fmt: skip


def test_texts_of_sizes():
    run = Compiled(texts, dynamic=True)
    for n in (9, 8, 5, 3, 7, 2, 30):
        run(torch.ones(n, 2))
    assert len(run.graphs) == 1


def test_the_log_tells_of_sizes(caplog):
    with dynacore.config.patch(logs="dynamic"):
        run = Compiled(lambda x: torch.ones(3) * ([1] * x.shape[0])[0], dynamic=True)
        run(torch.ones(3, 1))
    assert "x.shape[1] is 1" in caplog.text
    assert "open sizes: x.shape[0]" in caplog.text
    assert "x.shape[0] is taken as it is in this call, 3" in caplog.text


def split(x):
    return x.split(2)


def viewed(x):
    return x.view(3, 4)


@pytest.mark.parametrize(("program", "shape", "dim"), [(split, (6, 4), 0), (viewed, (3, 4), 0)])
def test_sizes_that_follow_from_what_a_program_does_with_them(program, shape, dim):
    with pytest.raises(dynacore.SpecialisedSizeError) as raised:
        dynacore.compile(program, backend="eager")(marked(shape, dim))
    assert raised.value.line == program.__code__.co_firstlineno + 1
    run = Compiled(program, dynamic=True)
    for n in (shape[0], 8, shape[0], 5):
        run(torch.randn(n, 4))


def test_the_line_is_the_programs_where_torch_needs_the_size():
    layer = nn.LayerNorm(4)

    def program(x):
        y = x + 1
        return layer(y)

    with pytest.raises(dynacore.SpecialisedSizeError) as raised:
        dynacore.compile(program, backend="eager")(marked((3, 4), 1))
    assert (raised.value.file, raised.value.line) == (__file__, program.__code__.co_firstlineno + 2)


def test_a_bound_is_said_once():
    explained = str(dynacore.explain(lambda x: x * 2)(marked((8,), 0, min=4, max=16)))
    assert "while x.shape[0] >= 4 and x.shape[0] <= 16\n" in explained
