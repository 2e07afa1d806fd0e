"""Bytes that the GPU backend's kernels move over the least possible, and how many kernels there are. Needs no GPU.

    TRITON_INTERPRET=1 python benchmarks/traffic.py

The figures follow from the schedules alone: they are the same on every machine and in every run.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("TRITON_INTERPRET", "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path.remove(str(ROOT / "benchmarks"))  # where gpu.py would stand for the folder of the same name in tests
sys.path.insert(0, str(ROOT / "tests"))

import torch
from gpu.blocks import block, block_arguments
from gpu.programs import ONE_KERNEL, dropout_residual_norm, tensors

import dynacore
from backend_gpu import config, pipeline, traffic
from backend_gpu.schedule.plan import Schedule, schedule


def programs() -> dict[str, tuple[object, list[torch.Tensor]]]:
    """What is measured: name, function, arguments."""
    found = {name: (function, arguments(torch.float32)) for name, (function, arguments) in ONE_KERNEL.items()}
    found["dropout_residual_norm"] = (dropout_residual_norm, tensors((6, 37), (6, 37), (37,), (37,)))
    found["transformer block"] = (block, block_arguments())
    return found


def schedules(function: object, arguments: list[torch.Tensor]) -> list[Schedule]:
    """The forward schedule, and the backward one, of a call."""
    found: list[Schedule] = []

    def kept(graph: object, **options: bool) -> Schedule:
        found.append(schedule(graph, **options))  # type: ignore[arg-type]
        return found[-1]

    pipeline.schedule = kept  # type: ignore[assignment]
    leaves = [a.clone().requires_grad_() if a.is_floating_point() else a for a in arguments]
    results = dynacore.compile(function, backend="gpu", fullgraph=True)(*leaves)
    for result in results if isinstance(results, tuple) else (results,):
        result.sum().backward(retain_graph=True)
    return found[:2]


def main() -> None:
    """Print the table."""
    config.strict = True  # a graph left to ATen is no row of it
    print(f"{'':24}{'forward':>18}{'backward':>18}\n{'':24}" + f"{'kernels':>9}{'ratio':>9}" * 2)
    for name, (function, arguments) in programs().items():
        cells = [name.ljust(24)]
        for plan in schedules(function, arguments):
            kernels = sum(step.kernel is not None for step in plan.steps)
            cells.append(f"{kernels:9}{traffic.measure(plan).ratio:9.3f}")
        print("".join(cells))


if __name__ == "__main__":
    main()
