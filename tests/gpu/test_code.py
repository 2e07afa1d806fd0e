"""Kernels compile for named targets, without a GPU: the same kernels that the numbers were tested with."""

import pytest
import torch
from gpu.helpers import run
from gpu.programs import ONE_KERNEL, tensors

import backend_gpu
from backend_gpu.render.source import render
from backend_gpu.render.tiles import choose

TARGETS = [("cuda", 80, 32), ("cuda", 90, 32), ("hip", "gfx942", 64)]


@pytest.fixture(scope="module")
def workers():
    from backend_gpu.runtime.workers import Workers

    pool = Workers(1)
    yield pool
    pool.stop()


def kernels_of(plans, calls):
    """The loop programs behind these calls, each one once."""
    for function, arguments in calls:
        run(function, *arguments)
    return [step.kernel for plan in plans for step in plan.steps if step.kernel is not None]


def compiled(workers, kernels, targets):
    from backend_gpu.runtime.compiling import request
    from backend_gpu.runtime.gpu import usual_divisible

    sources = [render(kernel, choose(kernel)) for kernel in kernels]
    wanted = [request(source, target, usual_divisible(source)) for target in targets for source in sources]
    answers = workers.compile_all(wanted)
    failures = [answer for answer in answers if isinstance(answer, backend_gpu.CompileFailure)]
    assert not failures, failures[0]
    return answers


def test_norms_and_softmax_compile_for_each_target_and_spill_no_registers(plans, workers):
    x, w, b = tensors((4, 1024), (1024,), (1024,), dtype=torch.bfloat16)
    calls = [(ONE_KERNEL["layer_norm"][0], (x, w, b)), (ONE_KERNEL["softmax"][0], (x,))]
    answers = compiled(workers, kernels_of(plans, calls), TARGETS)
    assert [answer["kind"] for answer in answers] == ["cubin"] * 4 + ["hsaco"] * 2
    for answer in answers:
        assert answer["spills"] == 0 and 0 < answer["registers"] <= 255


def test_padding_of_integers_compiles(plans, workers):
    """As the labels of a language model are shifted; the interpreter takes a float where the compiler doesn't."""
    calls = [(lambda x: torch.nn.functional.pad(x, (0, 1), value=-100) + 1, (torch.arange(60).view(6, 10),))]
    compiled(workers, kernels_of(plans, calls), TARGETS[1:2])


def test_spills_are_seen(plans, workers):
    """A row of 16,384 in one warp doesn't fit into registers: the reader of the compiler's facts has to say so."""
    (kernel,) = kernels_of(plans, [(ONE_KERNEL["softmax"][0], tensors((1, 16384)))])
    from dataclasses import replace

    from backend_gpu.runtime.compiling import request

    source = render(kernel, replace(choose(kernel), warps=1))
    for answer in workers.compile_all([request(source, target, ()) for target in TARGETS[:2]]):
        assert answer["spills"] > 0


def test_what_the_compiler_refuses_is_an_error_with_its_text(workers):
    from backend_gpu.render.source import Source
    from backend_gpu.render.tiles import Tile
    from backend_gpu.runtime.compiling import request

    text = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef wrong(p, n):\n    tl.store(p, nothing)\n"
    source = Source("wrong", text, [("p", "*fp32"), ("n", "i32")], {}, Tile(1))
    (answer,) = workers.compile_all([request(source, TARGETS[0], ())])
    assert isinstance(answer, backend_gpu.CompileFailure) and "nothing" in str(answer)
