"""Bytes moved over the least possible: a schedule that moves more than it did fails here."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from gpu.blocks import block, block_arguments
from gpu.helpers import forward_kernels, run, run_with_gradients
from gpu.programs import ONE_KERNEL, dropout_residual_norm, tensors

from backend_gpu import traffic


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_chains_and_norms(name, plans):
    function, arguments = ONE_KERNEL[name]
    run(function, *arguments(torch.float32))
    assert 1.0 <= traffic.measure(plans[0]).ratio <= 1.05


def test_backward_of_norms_reads_its_inputs_for_each_of_two_kernels(plans):
    function, arguments = ONE_KERNEL["layer_norm"]
    run_with_gradients(function, *arguments(torch.float32))
    forward, backward = map(traffic.measure, plans)
    assert forward.ratio <= 1.05 and backward.ratio <= 1.75


def test_transformer_block(plans):
    reports = run(block, *block_arguments())
    assert forward_kernels(reports) == 5  # norm, rotary, residual and norm, SwiGLU, residual
    assert traffic.measure(plans[0]).ratio <= 1.05


def test_transformer_block_in_training(plans):
    forward, backward = run_with_gradients(block, *block_arguments())
    assert (forward.kernels, backward.kernels) == (5, 6)
    assert traffic.measure(plans[0]).ratio <= 1.05 and traffic.measure(plans[1]).ratio <= 1.3


def test_a_second_pass_is_counted(plans):
    run(ONE_KERNEL["softmax"][0], *tensors((2, 20000)))
    measured = traffic.measure(plans[0])
    assert measured.least == 2 * 2 * 20000 * 4
    assert measured.ratio == 1.5  # maximum and sum in one pass, the result in another


def test_dropout_keeps_no_mask(plans):
    arguments = tensors((6, 37), (6, 37), (37,), (37,))
    torch.manual_seed(0)
    import dynacore

    dynacore.compile(dropout_residual_norm, backend="gpu", fullgraph=True)(*arguments)
    assert traffic.measure(plans[0]).ratio <= 1.05


BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def printed(name, *arguments):
    """What a benchmark prints."""
    command = [sys.executable, str(BENCHMARKS / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_benchmark_prints_a_row_for_each_program():
    rows = [line.split() for line in printed("traffic.py").splitlines()[2:]]
    assert len(rows) == len(ONE_KERNEL) + 2
    assert all(len(row) >= 5 and float(row[-3]) <= 1.05 for row in rows)
    assert [row[-4:] for row in rows if row[0] == "transformer"][0][::2] == ["5", "6"]


def test_the_benchmark_of_compiling_compiles():
    lines = printed("gpu_compile.py", "--layers", "1", "--workers", "1").splitlines()
    assert int(lines[0].split(": ")[1].split()[0]) > 10 and lines[-1] == "failed: 0"
