"""How fast kernels are made: captured graph to Triton source, and source to machine code for a named target. No GPU.

    TRITON_INTERPRET=1 python benchmarks/gpu_compile.py [--layers 6] [--target sm_90] [--workers 2]

Compiles a LLaMA, forward and backward, for the target; nothing is read from a cache.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time

os.environ.setdefault("TRITON_INTERPRET", "1")

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import backend_gpu
import dynacore
from backend_gpu import pipeline
from backend_gpu.ir.loops import Loops
from backend_gpu.render.signature import signature
from backend_gpu.render.source import render
from backend_gpu.render.tiles import choose
from backend_gpu.runtime.compiling import TARGETS, request
from backend_gpu.runtime.gpu import usual_divisible
from backend_gpu.runtime.workers import Workers
from backend_gpu.schedule.plan import Schedule, schedule


def made_kernels(layers: int) -> tuple[list[Loops], float]:
    """The kernels of the model's training step, and the seconds from the captured graphs to their loop programs."""
    plans: list[Schedule] = []
    seconds = 0.0
    compile_program = pipeline.compile_program

    def kept(graph: object, **options: bool) -> Schedule:
        plans.append(schedule(graph, **options))  # type: ignore[arg-type]
        return plans[-1]

    def timed(*arguments: object) -> object:
        nonlocal seconds
        start = time.perf_counter()
        try:
            return compile_program(*arguments)  # type: ignore[arg-type]
        finally:
            seconds += time.perf_counter() - start

    pipeline.schedule, pipeline.compile_program = kept, timed  # type: ignore[assignment]
    config = LlamaConfig(vocab_size=512, hidden_size=64, intermediate_size=96, num_hidden_layers=layers,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)  # fmt: skip
    ids = torch.arange(32).view(2, 16)
    model = dynacore.compile(LlamaForCausalLM(config), backend="gpu")
    model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
    return [step.kernel for plan in plans for step in plan.steps if step.kernel is not None], seconds


def main() -> None:
    """Print the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--target", choices=TARGETS, default="sm_90")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, backend_gpu.config.patch(cache_dir=folder, strict=True):
        os.environ["TRITON_CACHE_DIR"] = folder
        kernels, seconds = made_kernels(options.layers)
        different = {signature(kernel, choose(kernel)): kernel for kernel in kernels}
        sources = [render(kernel, choose(kernel)) for kernel in different.values()]
        wanted = [request(source, TARGETS[options.target], usual_divisible(source)) for source in sources]
        workers = Workers(options.workers)
        start = time.perf_counter()
        answers = workers.compile_all(wanted)
        spent = time.perf_counter() - start
        workers.stop()
    failed = sum(isinstance(answer, backend_gpu.CompileFailure) for answer in answers)
    print(f"LLaMA, {options.layers} layers, forward and backward: {len(kernels)} kernels, {len(different)} different")
    print(f"graphs to source and program: {seconds:.2f} s, {len(kernels) / seconds:.0f} kernels a second")
    rate = len(wanted) / spent
    print(f"source to {options.target}: {spent:.2f} s, {options.workers} workers, {rate:.1f} kernels a second")
    print(f"failed: {failed}")


if __name__ == "__main__":
    main()
