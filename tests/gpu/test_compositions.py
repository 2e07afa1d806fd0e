"""Random compositions of operations against eager. `--compositions N` runs more of them."""

import pytest
import torch
from gpu.compositions import function_of, programs
from gpu.helpers import assert_same
from hypothesis import HealthCheck, given, settings

import backend_gpu
import dynacore

COUNT = 25
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1}


def compare(source, arguments, **options):
    """Run a program captured and in eager."""
    function = function_of(source)
    want = function(*arguments)
    # What was rounded to a half type may have been rounded to its neighbour.
    tolerance = max(
        [bound for dtype, bound in TOLERANCE.items() if str(dtype) in source or dtype in {a.dtype for a in arguments}],
        default=TOLERANCE[torch.float32],
    )
    dynacore.reset()
    backend_gpu.clear_reports()
    got = dynacore.compile(function, backend="gpu", **options)(*arguments)
    for one, other in zip(got, want, strict=True):
        assert [step for step, size in zip(one.stride(), one.shape) if size > 1 and one.numel()] == [
            step for step, size in zip(other.stride(), other.shape) if size > 1 and other.numel()
        ]
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.fixture
def every_kernel_compiles():
    """Not of random programs: that would take most of the time."""


@pytest.mark.parametrize("dynamic", [False, True], ids=["sizes", "open sizes"])
def test_compositions(dynamic, pytestconfig):
    count = pytestconfig.getoption("compositions")

    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck),
              derandomize=count == COUNT)  # fmt: skip
    @given(programs())
    def run(program):
        compare(*program, dynamic=dynamic)

    run()


def test_views_of_one_result_share_its_memory():
    def views(x):
        y, z = x * 2, x + 1
        first, second = y.chunk(2, 1)
        return y, first, second, z[:, ::2], z.sign(), z.t()

    for dynamic in (False, True):
        got = dynacore.compile(views, backend="gpu", dynamic=dynamic)(torch.arange(24.0).view(4, 6))
        y, first, second, *_ = got
        assert len({part.untyped_storage().data_ptr() for part in (y, first, second)}) == 1
        y.zero_()
        assert not first.any() and not second.any()
        dynacore.reset()
    x = torch.arange(24.0).view(4, 6)
    assert_same(dynacore.compile(views, backend="gpu", dynamic=False)(x), views(x))


def test_the_variance_of_a_number():
    def spread(x):
        return x.var(-1, correction=0), x.var(0), x.std()

    for value in (2.0, float("inf")):
        assert_same(dynacore.compile(spread, backend="gpu")(torch.tensor(value)), spread(torch.tensor(value)))


def test_parts_of_what_is_computed_lie_as_in_eager():
    def parts(x):
        y = x.permute(2, 0, 1) * 2
        return (x + 1)[:, ::2], (x + 2).select(1, 1), y[1:, :, ::2], (x * 2).diagonal(0, 0, 2), (x * 3)[1:, :, 1:].mT

    x = torch.randn(5, 3, 5)
    for dynamic in (False, True):
        assert_same(dynacore.compile(parts, backend="gpu", fullgraph=True, dynamic=dynamic)(x), parts(x))
        dynacore.reset()
