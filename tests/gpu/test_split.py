"""Few long rows are spread over several programs: the numbers, in how many kernels, and which rows are cut."""

import pytest
import torch
import torch.nn.functional as F
from gpu.helpers import forward_kernels, run
from gpu.programs import tensors

from backend_gpu import split, traffic
from backend_gpu.split import Rule, cut

SMALL = {"along": Rule(1, 8, 30, 10, 40), "across": Rule(2, 8, 30, 10, 40)}
LENGTHS = (64, 97, 121)
"""Cut evenly, not at all evenly (a prime), and in 11 pieces of 11."""

KERNELS = {
    "sum": (lambda x: x.sum(-1), 2),
    "mean": (lambda x: x.mean(-1), 2),
    "variance": (lambda x: torch.var_mean(x, -1), 2),
    "extremes": (lambda x: (x.amax(-1), x.amin(-1)), 3),
    "positions": (lambda x: (x.argmax(-1), x.argmin(-1), x.max(-1)), 3),
    "product": (lambda x: (x / 2 + 1).prod(-1), 2),
    "truth": (lambda x: ((x > 1).any(-1), (x > -9).all(-1)), 3),
    "softmax": (lambda x: x.softmax(-1), 3),
    "log_softmax": (lambda x: x.log_softmax(-1), 3),
    "logsumexp": (lambda x: x.logsumexp(-1), None),
    "layer norm": (lambda x: F.layer_norm(x, x.shape[-1:]), 3),
    "everything": (lambda x: torch.var_mean(x), None),
}


@pytest.fixture
def small_rules(monkeypatch):
    """Rows of 30 elements count as long."""
    monkeypatch.setattr(split, "RULES", SMALL)


@pytest.mark.parametrize("name", KERNELS)
def test_numbers_and_kernels(name, small_rules):
    function, kernels = KERNELS[name]
    for length in LENGTHS:
        reports = run(function, tensors((3, length))[0])
        assert kernels is None or forward_kernels(reports) == kernels
        assert "rows x=3 r=" in reports[0].schedule or kernels is None


def test_other_dtypes_and_layouts(small_rules):
    x = tensors((3, 97))[0]
    for value in (x.half(), x.bfloat16(), x.double(), (x * 9).long()):
        run(lambda x: (x.sum(-1), x.amax(-1), x.argmin(-1)), value)
    for value in (x.half(), x.double()):
        run(lambda x: (x.softmax(-1), torch.var(x, -1)), value)
    columns = tensors((97, 5))[0]
    run(lambda x: (x.sum(0), x.argmax(0), x.var(0), x.softmax(0)), columns)
    images = tensors((2, 3, 5, 97))[0]
    run(lambda x: (x.sum((2, 3)), x.mean((0, 2, 3)), x.amax((1, 3)), x.std((0, 1))), images)


def test_values_that_are_not_numbers(small_rules):
    x = torch.zeros(4, 97)
    x[0, 50], x[1, 3], x[1, 90], x[2] = float("nan"), float("inf"), float("-inf"), float("-inf")
    x[3, :64] = float("-inf")
    run(lambda x: (x.amax(-1), x.argmax(-1), x.argmin(-1), x.softmax(-1), x.logsumexp(-1), x.sum(-1)), x)


def test_equal_values_give_the_first_position(small_rules):
    run(lambda x: (x.argmax(-1), x.argmin(-1), x.max(-1)), torch.ones(2, 97))
    run(lambda x: (x.argmax(-1), x.argmin(-1)), torch.full((2, 97), torch.iinfo(torch.int64).min))


def test_results_with_what_surrounds_them(small_rules):
    x, w = tensors((3, 97), (97,))
    run(lambda x, w: ((x * w).exp().sum(-1, keepdim=True) * x + w, (x * w).relu()), x, w)
    run(lambda x, w: (x - x.mean(-1, keepdim=True)).square().sum(-1).sqrt() * x.sum(), x, w)


def test_the_result_is_the_same_every_time(small_rules):
    x = tensors((2, 121))[0]
    (report,) = run(lambda x: x.sum(-1), x)
    first = report.compiled([x])[0]
    assert all(torch.equal(report.compiled([x])[0], first) for _ in range(3))
    assert "+=" not in report.schedule and "atomic" not in "".join(report.sources)


def test_which_rows_are_cut():
    """The rule goes by the size alone: long rows of which there are few."""
    assert cut((4, 1 << 20), (1,)).count == 256 and cut((4, 1 << 20), (1,)).length == 4096
    assert cut((1024, 1 << 20), (1,)) is None and cut((4, 1 << 12), (1,)) is None
    assert cut((8192, 4096), (0,)).count == 8 and cut((512, 4096), (0,)) is None
    assert cut((65537, 3), (0,)).guards and not cut((65536, 3), (0,)).guards


def test_real_sizes():
    assert forward_kernels(run(lambda x: x.softmax(-1), tensors((2, 70001))[0])) == 3
    assert forward_kernels(run(lambda x: x.sum(0), tensors((5000, 7))[0], tolerance=1e-4)) == 2


def test_traffic_of_few_long_rows(small_rules, plans):
    """What comes from each piece is small beside the rows; softmax reads these once more, for its result."""
    run(lambda x: x.mean(-1), tensors((2, 20000))[0])
    run(lambda x: x.softmax(-1), tensors((2, 20000))[0])
    ratios = [traffic.measure(plan).ratio for plan in plans]
    assert 1 <= ratios[0] <= 1.1 and 1.5 <= ratios[1] <= 1.6
