"""What a break costs: nothing is captured twice, graphs don't depend on a loop's trip count, the stack stays flat."""

import subprocess
import sys
import traceback
import weakref

import pytest
import torch
from machine import tensors
from machine.oracle import LOG, arguments, say

import dynacore
from dynacore import stats

PROGRAMS = [
    tensors.straight, tensors.for_range, tensors.for_kinds, tensors.deep, tensors.in_expressions,
    tensors.with_blocks, tensors.branches, tensors.item_into_python,
]  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_warm_calls_capture_nothing(function):
    from machine.oracle import CALLS

    calls = CALLS[function.__name__][1]
    compiled = dynacore.compile(function, backend="eager")
    for _ in range(2):
        for call in calls:
            compiled(*arguments(call))
    with stats.collect() as records:
        for call in calls:
            compiled(*arguments(call))
    assert records == []
    LOG.clear()


def loop(t, n):
    for i in range(n):
        t = t * 2
        say(i)
        t = t - 1
    return t


def count_graphs(function, *args):
    dynacore.reset()
    with stats.collect() as records:
        result = dynacore.compile(function, backend="eager")(*args)
    assert torch.equal(result, function(*args))
    return len(records), sum(record.graph is not None for record in records)


def test_a_loop_makes_the_same_graphs_whatever_its_trip_count():
    t = torch.zeros(2)
    assert count_graphs(loop, t, 6) == count_graphs(loop, t, 60)
    LOG.clear()


def test_constant_stack_depth():
    depths = []

    def program(t, n):
        for i in range(n):
            t = t + 1
            depths.append(len(traceback.extract_stack()))
        return t

    compiled = dynacore.compile(program, backend="eager")
    compiled(torch.zeros(1), 60)
    assert len(depths) == 60
    assert len(set(depths[5:])) == 1


class Thing:
    pass


def test_locals_die_when_the_frame_lets_go():
    seen = []

    def program(t):
        thing = Thing()
        alive = weakref.ref(thing)
        u = t * 2
        seen.append(alive() is not None)
        thing = None
        say("break")
        seen.append(alive() is not None)
        return u

    compiled = dynacore.compile(program, backend="eager")
    for _ in range(3):
        del seen[:]
        compiled(torch.ones(1))
        assert seen == [True, False]
    LOG.clear()


def test_tensors_die_when_the_frame_lets_go():
    seen = []

    def program(t):
        big = t * 2
        alive = weakref.ref(big)
        total = big.sum()
        del big
        say("break")
        seen.append(alive() is None)
        return total

    compiled = dynacore.compile(program, backend="eager")
    for _ in range(3):
        compiled(torch.ones(4))
    assert seen == [True, True, True]
    LOG.clear()


def test_profilers_and_tracers_see_the_users_function():
    """Under a tracer nothing is captured: the debugger's user sees the program itself."""
    lines = []

    def program(t):
        t = t + 1
        return t * 2

    def trace(frame, event, arg):
        if frame.f_code.co_name == "program" and event == "line":
            lines.append(frame.f_lineno - program.__code__.co_firstlineno)
        return trace

    compiled = dynacore.compile(program, backend="eager")
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        compiled(torch.ones(1))
    finally:
        sys.settrace(before)
    assert lines == [1, 2]


def inner(t):
    return (t * t).sum()


batched = torch.vmap(inner)

RUN_WHOLE = {
    "vmap": lambda t: torch.vmap(inner)(t + 1) * 2,
    "vmap_made_before": lambda t: batched(t + 1) * 2,
    "grad": lambda t: torch.func.grad(inner)(t + 1) * 2,
    "jacrev": lambda t: torch.func.jacrev(inner)(t + 1) * 2,
    "hessian": lambda t: torch.func.hessian(inner)(t + 1) * 2,
    "vjp": lambda t: torch.func.vjp(inner, t + 1)[0] * 2,
    "jvp": lambda t: torch.func.jvp(inner, (t + 1,), (t,))[1] * 2,
}


@pytest.mark.parametrize("program", RUN_WHOLE.values(), ids=RUN_WHOLE)
def test_functions_under_torchs_transforms_run_whole(program):
    """One instruction is left to the interpreter, not each of those inside torch."""
    t = torch.arange(6.0).view(2, 3)
    explanation = dynacore.explain(program)(t)
    assert {site.code for site in explanation.breaks} == {"function-transform"}
    assert len(explanation.graphs) == 2
    compiled = dynacore.compile(program, backend="eager")
    for _ in range(2):
        torch.testing.assert_close(compiled(t), program(t))


def test_what_torch_compile_made_runs_whole():
    """In a process of its own: torch.compile marks functions of torch as not to be captured."""
    program = """
import dynacore, torch
inner = torch.compile(lambda t: (t * t).sum(), backend="eager")
program = lambda t: inner(t + 1) * 2
print([site.code for site in dynacore.explain(program)(torch.ones(3)).breaks])
compiled = dynacore.compile(program, backend="eager")
print([compiled(torch.ones(3)).item() for _ in range(2)])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['function-transform']\n[24.0, 24.0]\n"


def one_kernel(t):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(t, t, t), torch.backends.cuda.flash_sdp_enabled()


def without_mkldnn(t):
    with torch.backends.mkldnn.flags(enabled=False):
        return t @ t, torch.backends.mkldnn.enabled


@pytest.mark.parametrize("program", [one_kernel, without_mkldnn])
def test_contexts_of_settings_break_where_they_are_made_entered_and_left(program):
    t = torch.ones(1, 4, 4)
    before = torch.backends.cuda.flash_sdp_enabled(), torch.backends.mkldnn.enabled
    compiled = dynacore.compile(program, backend="eager")
    for _ in range(3):
        (ours, inside), (plain, inside_plain) = compiled(t), program(t)
        assert torch.equal(ours, plain) and inside == inside_plain
    assert (torch.backends.cuda.flash_sdp_enabled(), torch.backends.mkldnn.enabled) == before
    assert len(dynacore.explain(program)(t).breaks) <= 4
