"""Products with the pointwise work behind them in one kernel: what each alternative gives, and where there is one."""

from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from gpu.alternatives import fastest, template
from gpu.blocks import block, block_arguments
from gpu.helpers import TOLERANCE, assert_same, checked_reports, gradients
from gpu.kernels import ALL, kernels_of
from gpu.programs import linear_gelu, tensors

import backend_gpu
import dynacore
from backend_gpu import kernels
from backend_gpu.alternatives import PRODUCT_TILES, product_tiles
from backend_gpu.ir.check import IRError
from backend_gpu.render.source import render
from backend_gpu.render.tiles import choose
from backend_gpu.runtime.compiling import TARGETS

MODE = "max-autotune-no-cudagraphs"
SHARED = {"sm_80": 163 << 10, "sm_90": 227 << 10, "gfx942": 64 << 10}


def bias_residual(x, w, b):
    return F.linear(x, w, b) + x[..., :1] * 2


def swiglu(x, w, b):
    return F.silu(F.linear(x, w)) * F.linear(x, w + 1)


def scaled(x, w, b):
    return (x @ w.t()).to(torch.float32) * 0.125 - b.float()


def several(x, w, b):
    h = x @ w.t()
    return torch.relu(h), h > 0, h.sigmoid() * b


TAILS = {f.__name__: f for f in (linear_gelu, bias_residual, swiglu, scaled, several)}
SHAPES = [(1, 1, 2), (1, 5, 3), (17, 31, 29), (33, 16, 64), (70, 40, 130)]
"""Rows, summed, columns: of one element, odd, prime, multiples of a tile, and more than one tile without being that."""


def compiled(function, *arguments, wanted=template, mode=MODE, dynamic=False, tolerance=None):
    """Compare one call with eager, with the alternatives that a test wants. Returns the first report."""
    want = function(*arguments)
    backend_gpu.clear_reports()
    dynacore.reset()
    with fastest(wanted):
        got = dynacore.compile(function, backend="gpu", mode=mode, fullgraph=True, dynamic=dynamic)(*arguments)
    assert_same(got, want, tolerance)
    return checked_reports()[0]


def products(report):
    """The choices that were made for products."""
    return [choice for choice in report.choices if "ATen and a kernel" in choice.times]


@pytest.mark.parametrize("tail,shape", [("linear_gelu", shape) for shape in SHAPES] + [
    (tail, shape) for tail in TAILS if tail != "linear_gelu" for shape in SHAPES[:3:2]
], ids=str)  # fmt: skip
def test_a_template_gives_eagers_numbers(tail, shape):
    rows, summed, columns = shape
    x, w, b = tensors((rows, summed), (columns, summed), (columns,))
    report = compiled(TAILS[tail], x, w, b)
    (choice,) = products(report)
    assert template(choice.chosen) and "product" in report.schedule and "math.dot" in "".join(report.sources)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("tail", TAILS)
def test_half_types_are_summed_in_fp32_and_rounded_as_eager_does(tail, dtype):
    x, w, b = (t / 4 for t in tensors((18, 48), (21, 48), (21,), dtype=dtype))
    (choice,) = products(compiled(TAILS[tail], x, w, b, tolerance=2 * TOLERANCE[dtype]))
    assert template(choice.chosen)


@pytest.mark.parametrize("tail", TAILS)
def test_without_a_clock_aten_and_a_kernel_run(tail):
    x, w, b = tensors((17, 31), (29, 31), (29,))
    want = TAILS[tail](x, w, b)
    got = dynacore.compile(TAILS[tail], backend="gpu", mode=MODE, fullgraph=True, dynamic=False)(x, w, b)
    assert_same(got, want)
    (report,) = checked_reports()
    assert "product" in report.schedule and not report.choices
    assert not products(compiled(TAILS[tail], x, w, b, mode="default"))


def test_each_tile_gives_the_same_numbers():
    x, w, b = tensors((70, 75), (130, 75), (130,))
    names = list(products(compiled(linear_gelu, x, w, b))[0].times)
    assert len(names) > 8
    for name in names:
        assert products(compiled(linear_gelu, x, w, b, wanted=name))[0].chosen == name


OPERANDS = {
    "transposed": lambda: (torch.randn(40, 18).t(), torch.randn(40, 22), 22),
    "rows apart": lambda: (torch.randn(18, 80)[:, ::2], torch.randn(40, 44)[:, :22], 22),
    "a view with an offset": lambda: (torch.randn(20, 41)[2:, 1:], torch.randn(41, 23)[1:, 1:], 22),
    "a broadcast row": lambda: (torch.randn(1, 40).expand(18, 40), torch.randn(40, 22), 22),
    "batches": lambda: (torch.randn(3, 18, 40), torch.randn(3, 40, 22), 22),
    "batches of transposed": lambda: (torch.randn(3, 40, 18).mT, torch.randn(3, 22, 40).mT, 22),
    "one matrix for all batches": lambda: (torch.randn(3, 18, 40), torch.randn(40, 22).expand(3, 40, 22), 22),
}


@pytest.mark.parametrize("what", OPERANDS)
def test_factors_may_lie_anyhow(what):
    a, b, columns = OPERANDS[what]()

    def function(a, b, c):
        return torch.tanh(torch.matmul(a, b) * 0.25) + c

    (choice,) = products(compiled(function, a, b, torch.randn(columns)))
    assert template(choice.chosen)


BIASES = {
    "addmm": (torch.addmm, (22,), (18, 40), (40, 22)), "a column": (torch.addmm, (18, 1), (18, 40), (40, 22)),
    "a matrix": (torch.addmm, (18, 22), (18, 40), (40, 22)),
    "baddbmm": (torch.baddbmm, (3, 1, 22), (3, 18, 40), (3, 40, 22)),
    "a bias for all": (torch.baddbmm, (18, 22), (3, 18, 40), (3, 40, 22)),
}  # fmt: skip


@pytest.mark.parametrize("what", BIASES)
@pytest.mark.parametrize("alpha,beta", [(1, 1), (0.5, -2.0)])
def test_a_bias_is_broadcast_and_scaled(what, alpha, beta):
    operation, *shapes = BIASES[what]
    bias, a, b = tensors(*shapes)
    report = compiled(lambda *args: torch.relu(operation(*args, alpha=alpha, beta=beta)), bias, a, b)
    assert template(products(report)[0].chosen)


def test_a_bias_that_does_not_count_is_not_looked_at():
    bias, a, b = tensors((22,), (18, 40), (40, 22))
    compiled(lambda *args: torch.relu(torch.addmm(*args, beta=0)), bias * float("nan"), a, b)


def test_who_else_reads_a_product_finds_it_stored():
    def function(x, w):
        h = x @ w
        return F.gelu(h), torch.sort(h, 0)[0], h

    report = compiled(function, *tensors((18, 40), (40, 22)))
    assert len(products(report)) == 1


def test_two_products_side_by_side_each_get_their_tail():
    def function(x, w, v):
        return F.gelu(x @ w), F.gelu(x @ v)

    report = compiled(function, *tensors((18, 40), (40, 22), (40, 22)))
    assert report.schedule.count("= product") == 2


def mirrored(x, w):
    return torch.relu((x @ w).flip(0))


def normed(x, w):
    return F.layer_norm(x @ w, (22,))


def overwritten(x, w):
    h = x @ w
    w.mul_(2)
    return torch.relu(h) * w.sum()


def scattered(x, w):
    return torch.zeros(5, 22).index_add(0, torch.arange(18) % 5, torch.relu(x @ w))


APART = {f.__name__: f for f in (mirrored, normed, overwritten, scattered)}


@pytest.mark.parametrize("what", APART)
def test_what_needs_other_elements_or_overwrites_a_factor_stays_behind_the_product(what):
    arguments = tensors((18, 40), (40, 22))
    want = APART[what](*(t.clone() for t in arguments))
    with fastest(template):
        got = dynacore.compile(APART[what], backend="gpu", mode=MODE, fullgraph=True)(*(t.clone() for t in arguments))
    assert_same(got, want)
    assert "= product" not in checked_reports()[0].schedule


def test_gradients_of_a_layer_have_products_with_tails():
    leaves = [t.requires_grad_() for t in tensors((18, 40), (22, 40), (22,))]
    linear_gelu(*leaves).pow(2).sum().backward()
    want = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    with fastest(template):
        dynacore.compile(linear_gelu, backend="gpu", mode=MODE, dynamic=False)(*leaves).pow(2).sum().backward()
    assert_same([leaf.grad for leaf in leaves], want, 1e-4)
    assert products(checked_reports()[0])


def test_a_transformer_block_with_its_gradients_through_templates():
    arguments = block_arguments()
    want = gradients(block, *arguments)
    with fastest(template):
        run = dynacore.compile(block, backend="gpu", mode=MODE, fullgraph=True, dynamic=False)
        assert_same(gradients(run, *arguments), want, 1e-4)
    assert [len(products(report)) for report in checked_reports()] == [2, 1]


def test_open_sizes_are_arguments_of_the_template():
    compile_once = dynacore.compile(linear_gelu, backend="gpu", mode=MODE, fullgraph=True, dynamic=True)
    w, b = tensors((22, 40), (22,))
    with fastest(template) as clock:
        for rows in (18, 33, 20, 17, 70):
            (x,) = tensors((rows, 40))
            assert_same(compile_once(x, w, b), linear_gelu(x, w, b))
    (report,) = checked_reports()
    assert "s" in report.schedule.split("product x=")[1].split()[0] and report.program.count("def run") == 1
    # 18, 20 and 17 round up to the same power of two, 33 and 70 to two others.
    assert [choice.sizes[0] for choice in products(report)] == [18, 33, 70]
    assert len(clock.measured) == 3 * len(products(report)[0].times)


def test_a_product_is_multiplied_as_torch_is_set_to():
    """dynacore compiles anew when the setting has changed; a program that is called nevertheless leaves it to ATen."""
    x, w, b = tensors((18, 40), (22, 40), (22,))
    before = torch.backends.cuda.matmul.fp32_precision
    try:
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        assert 'input_precision="tf32"' in compiled(linear_gelu, x, w, b).sources[0]
        torch.backends.cuda.matmul.fp32_precision = "ieee"
        assert 'input_precision="ieee"' in compiled(linear_gelu, x, w, b).sources[0]
        graph = torch.fx.symbolic_trace(lambda x, w, b: (linear_gelu(x, w, b),))
        run = backend_gpu.compile(graph, [x, w, b], mode=MODE)
        with fastest(template), mock.patch.object(kernels.Part, "__call__") as through_aten:
            run(x, w, b)
            run(x, w, b)
            assert not through_aten.called
            torch.backends.cuda.matmul.fp32_precision = "tf32"
            run(x, w, b)
            assert through_aten.called
    finally:
        torch.backends.cuda.matmul.fp32_precision = before


def test_a_result_may_not_take_over_the_memory_of_a_factor():
    """Other programs read the factor while this one writes; a residual of the same element may be written over."""

    def function(x, w):
        h = torch.sort(x, 0)[0]
        return torch.relu(h @ w) + h

    report = compiled(function, *tensors((18, 18), (18, 18)))
    assert "its memory is free again" not in report.program and len(products(report)) == 1

    def residual(x, w):
        return torch.relu(x @ w) + x @ x

    assert "its memory is free again" in compiled(residual, *tensors((18, 18), (18, 18))).program


@pytest.mark.parametrize("wanted", ["ATen", template], ids=["ATen", "template"])
def test_a_product_that_is_stored_does_not_take_over_what_its_tail_reads(wanted):
    def function(x, w):
        h = x @ w
        return h, h + x @ x > 0  # the sum's memory would be of no use for flags

    compiled(function, *tensors((18, 18), (18, 18)), wanted=wanted)


def test_the_checker_refuses_a_result_in_a_factors_memory(monkeypatch):
    from backend_gpu.actions import Allocate, Drop
    from backend_gpu.check_program import check_program

    seen = []
    monkeypatch.setattr(kernels, "check_program", lambda *arguments: seen.append(arguments))
    compiled(lambda x, w: torch.relu(torch.sort(x, 0)[0] @ w), *tensors((18, 18), (18, 18)))
    actions, graph, sources = max(seen, key=lambda arguments: len(arguments[0]))
    check_program(actions, graph, sources)
    allocated = next(action for action in actions if isinstance(action, Allocate))
    factor = next(name for action in actions if isinstance(action, Drop) for name in action.names)
    allocated.source = factor
    with pytest.raises(IRError, match="overwrites"):
        check_program([action for action in actions if not isinstance(action, Drop)], graph, sources)


def test_a_product_past_the_end_of_a_factor_is_refused(plans):
    from dataclasses import replace

    from backend_gpu.ir.loops import check_loops

    compiled(linear_gelu, *tensors((18, 40), (22, 40), (22,)))
    (kernel,) = kernels_of(plans[0])
    check_loops(kernel)
    kernel.stmts[0].attrs["left"] = replace(kernel.stmts[0].attrs["left"], offset=1)
    with pytest.raises(IRError, match="may be outside"):
        check_loops(kernel)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_templates_compile_for_each_target(dtype, plans, compiler):
    """The usual tile and the largest; `nox -s kernels` compiles them all. None needs more memory than was estimated."""
    x, w, b = tensors((64, 48), (64, 48), (64,), dtype=dtype)
    compiled(linear_gelu, x, w, b, tolerance=1e-1)
    (small,) = [kernel for kernel in kernels_of(plans[0]) if kernel.form == "product"]
    found = []
    for name, target in TARGETS.items():
        tiles = product_tiles(small, SHARED[name])
        assert len(tiles) > 4
        found += [(render(small, tile), target, SHARED[name]) for tile in (tiles if ALL else {choose(small), tiles[0]})]
    for (_, _, limit), answer in zip(found, compiler.compile([(source, target) for source, target, _ in found])):
        assert answer["spills"] == 0 and answer["shared"] <= limit


def test_tiles_are_not_larger_than_the_product_and_fit_into_memory(plans):
    compiled(linear_gelu, *tensors((5, 40), (300, 40), (300,)))
    (kernel,) = [kernel for kernel in kernels_of(plans[0]) if kernel.form == "product"]
    for limit in (64 << 10, 16 << 10):
        for tile in product_tiles(kernel, limit):
            assert tile.x == 16 and tile.r <= 256 and 16 <= tile.k <= 64
            assert tile.stages == 1 or (tile.x + tile.r) * tile.k * 4 * tile.stages <= limit
    assert len(set(PRODUCT_TILES)) == len(PRODUCT_TILES)
