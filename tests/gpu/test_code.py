"""Kernels compile for named targets, without a GPU: the same kernels that the numbers were tested with."""

from dataclasses import replace

import torch
from gpu.helpers import run
from gpu.kernels import kernels_of
from gpu.programs import ONE_KERNEL, tensors

import backend_gpu
from backend_gpu.render.source import Source, render
from backend_gpu.render.tiles import Tile, choose
from backend_gpu.runtime.compiling import TARGETS, request

CUDA = [target for target in TARGETS.values() if target[0] == "cuda"]


def loops_of(plans, *calls):
    """The loop programs behind these calls."""
    for function, arguments in calls:
        run(function, *arguments)
    return [kernel for plan in plans for kernel in kernels_of(plan)]


def test_norms_and_softmax_compile_for_each_target_and_spill_no_registers(plans, compiler):
    x, w, b = tensors((4, 1024), (1024,), (1024,), dtype=torch.bfloat16)
    calls = (ONE_KERNEL["layer_norm"][0], (x, w, b)), (ONE_KERNEL["softmax"][0], (x,))
    sources = [render(kernel, choose(kernel)) for kernel in loops_of(plans, *calls)]
    answers = compiler.compile([(source, target) for target in TARGETS.values() for source in sources])
    assert [answer["kind"] for answer in answers] == ["cubin"] * 4 + ["hsaco"] * 2
    for answer in answers:
        assert answer["spills"] == 0 and 0 < answer["registers"] <= 255


def test_spills_are_seen(plans, compiler):
    """A row of 16,384 in one warp doesn't fit into registers: the reader of the compiler's facts has to say so."""
    (kernel,) = loops_of(plans, (ONE_KERNEL["softmax"][0], tensors((1, 16384))))
    source = render(kernel, replace(choose(kernel), warps=1))
    for answer in compiler.compile([(source, target) for target in CUDA]):
        assert answer["spills"] > 0


def test_what_the_compiler_refuses_is_an_error_with_its_text(compiler):
    text = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef wrong(p, n):\n    tl.store(p, nothing)\n"
    source = Source("wrong", text, [("p", "*fp32"), ("n", "i32")], {}, Tile(1))
    (answer,) = compiler.workers.compile_all([request(source, CUDA[0], ())])
    assert isinstance(answer, backend_gpu.CompileFailure) and "nothing" in str(answer)
