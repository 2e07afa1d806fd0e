"""Twenty sizes for each program, under `dynamic=True`: how many graphs that takes, and what it costs.

    python benchmarks/shapes.py [--only TEXT] [--engine dynacore|torch.compile]

Every result is compared with that of the program as it is. Beside the capture with open sizes stands one with constant
sizes, and a warm call, operations included, of both.
"""

import argparse
import statistics
import time

import engines
import programs
import torch

PAIRS = [(2 + i * 7 % 19, 8 + i * 5 % 23) for i in range(20)]


def resized(tensor: torch.Tensor, batch: int, length: int) -> torch.Tensor:
    """An argument like this one, for another batch and length; images keep their size."""
    match tensor.dim():
        case 1:
            return torch.randn(length)
        case 2 if tensor.dtype is torch.int64:
            return torch.randint(3, 999, (batch, length))
        case 2:
            return torch.randn(batch, tensor.shape[1])
        case 3:
            return torch.randn(batch, length, tensor.shape[2])
    return torch.randn(batch, *tensor.shape[1:])


def arguments(args: tuple, batch: int, length: int) -> tuple:
    """All arguments for one pair: tensors that were alike stay alike."""
    return tuple(resized(arg, batch, length) for arg in args)


def warm(function, args, calls: int = 100) -> float:
    """Microseconds of a warm call, the median."""
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        function(*args)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def first_call(engine, program, args, **options) -> tuple[float, object, engines.CountingBackend]:
    """Seconds of a first call, the compiled program, and its backend."""
    backend = engines.CountingBackend()
    compiled = engine.compile(program, backend=backend, **options)
    start = time.perf_counter()
    compiled(*args)
    return time.perf_counter() - start, compiled, backend


def measure(engine, make) -> str:
    """One row of the table."""
    torch.manual_seed(0)
    program, args = make()
    with torch.no_grad():
        program(*args)
        args = arguments(args, *PAIRS[0])
        first_call(engine, program, args, dynamic=False)  # imports, and what is remembered of the program's code
        static_s, static, _ = first_call(engine, program, args, dynamic=False)
        static_us = warm(static, args)
        open_s, compiled, backend = first_call(engine, program, args, dynamic=True)
        equal = 0
        for batch, length in PAIRS:
            given = arguments(args, batch, length)
            equal += torch.equal(compiled(*given), program(*given))
        open_us = warm(compiled, arguments(args, *PAIRS[-1])) if equal == len(PAIRS) else float("nan")
    return (
        f"| {equal}/{len(PAIRS)} | {len(backend.graphs)} | {static_s:.3f} | {open_s:.3f} "
        f"| {static_us:.0f} | {open_us:.0f} |"
    )


#: programs whose arguments have no size that a caller would vary, or whose loops depend on one
LEFT_OUT = ("recurrent", "graph_net", "many_tensors")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--engine", default="dynacore", choices=engines.NAMES)
    chosen = parser.parse_args()
    engine = engines.load(chosen.engine)
    print("| program | equal | graphs | capture, constant, s | open, s | warm call, constant, µs | open, µs |")
    print("|---|---|---|---|---|---|---|")
    for name, make in programs.CAPTURE.items():
        if chosen.only in name and name not in LEFT_OUT:
            print(f"| {name} {measure(engine, make)}", flush=True)


if __name__ == "__main__":
    main()
