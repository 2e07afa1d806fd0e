"""How one program fares under one engine. Each function here is run in a process of its own."""

import statistics
import time

import engines
import torch
from torch.profiler import ProfilerActivity, profile, record_function

WARM_UP, CALLS = 20, 200
torch.set_num_threads(1)  # the tensors are tiny: a second thread only adds noise


def timed(function, *args):
    """The result and the seconds of one call."""
    start = time.perf_counter()
    result = function(*args)
    return result, time.perf_counter() - start


def same(left, right) -> bool:
    """Whether two results are the same tensor, up to rounding."""
    return left.shape == right.shape and torch.allclose(left, right, atol=1e-5)


def capture(engine_name: str, program, args, **options) -> dict:
    """Capture time, and the cost of guards and dispatch in a warm call.

    Capture time is the first call less an eager one; the graphs run as they are, so no code generation is in it.
    A warm call's cost is its time less the time inside the graphs. It is a median: the machine isn't ours alone.
    """
    engine = engines.load(engine_name)
    backend = engines.CountingBackend()
    with torch.no_grad():
        program(*args)
        expected, eager = timed(program, *args)
        compiled = engine.compile(program, backend=backend, **options)
        result, first = timed(compiled, *args)
        for _ in range(WARM_UP):
            compiled(*args)
        overheads = []
        for _ in range(CALLS):
            backend.seconds = 0.0
            _, seconds = timed(compiled, *args)
            overheads.append(seconds - backend.seconds)
    return {
        "equal": same(result, expected),
        "graphs": len(backend.graphs),
        "operations": backend.operations,
        "capture_s": first - eager,
        "overhead_us": statistics.median(overheads) * 1e6,
    }


def deoptimise(engine_name: str, make) -> dict:
    """How much of a program stays in graphs when one call in it can't be captured.

    `make(host)` gives the program, which calls `host` where it likes. Coverage is the share of its tensor
    operations that run inside graphs in a warm run, those of `host` itself left out.
    """
    engine = engines.load(engine_name)
    backend = engines.CountingBackend(label=lambda: record_function("captured graph"))
    seen: list[float] = []

    def host(x):
        with record_function("host"):
            seen.append(round(x.detach().flatten()[0].item(), 4))
            return x

    inputs = [torch.linspace(-1, 1, 8) + shift for shift in (0.5, -0.5, 0.7)]
    eager = make(host)
    expected = []
    for x in inputs:
        seen.clear()
        expected.append((eager(x), list(seen)))
    compiled = engine.compile(make(engine.disable(host)), backend=backend)

    def results():
        for x in inputs:
            seen.clear()
            yield compiled(x), list(seen)

    list(results())
    rows = list(results())
    equal = all(same(a, b) and calls == wanted for (a, calls), (b, wanted) in zip(rows, expected, strict=True))
    warm = len(backend.graphs)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        list(results())
    inside, outside = count_operations(profiled.events())
    return {
        "equal": equal,
        "graphs": warm,
        "recompiled": len(backend.graphs) - warm,
        "coverage": inside / max(1, inside + outside),
    }


def count_operations(events) -> tuple[int, int]:
    """Tensor operations inside and outside captured graphs: those that Python called, not what they call in turn."""
    inside = outside = 0
    for event in events:
        if not event.name.startswith("aten::"):
            continue
        around = set()
        parent = event.cpu_parent
        while parent is not None:
            around.add("aten::" if parent.name.startswith("aten::") else parent.name)
            parent = parent.cpu_parent
        if around & {"aten::", "host"}:
            continue
        if "captured graph" in around:
            inside += 1
        else:
            outside += 1
    return inside, outside
