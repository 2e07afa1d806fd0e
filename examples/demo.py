"""dynacore in two minutes: a language model captured whole, and a break inside a loop.

    python examples/demo.py

Everything is shown beside torch.compile, measured in the same run. Each engine has a process of its own.
"""

import inspect
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import engines
import measure
import programs

SHORT, LONG = 5, 500


def refine(x, steps):
    for step in range(steps):
        x = x - 0.1 * torch.sin(x + step)
        if x.abs().max() > 3:
            x = x / 2
        x = torch.cos(x) * 1.5
    return x


def model_row(engine: str) -> dict:
    """Part 1 under one engine: capture a model with fullgraph=True."""
    torch.manual_seed(0)
    model, args = programs.CAPTURE["hf_llama"]()
    row = measure.capture(engine, model, args, fullgraph=True)
    if engine == "dynacore":
        import dynacore

        guards = dynacore.explain(model)(*args).guards
        row["checks"] = guards["tensor"]
        row["assumptions"] = guards.total() - guards["tensor"]
    else:
        kinds = [guard.create_fn_name() for guard in torch._dynamo.explain(model)(*args).out_guards]
        row["checks"] = kinds.count("TENSOR_MATCH")
        row["assumptions"] = len(kinds) - kinds.count("TENSOR_MATCH")
    return row


def loop_row(engine_name: str) -> dict:
    """Part 2 under one engine: graphs for a few steps and for many, and how much of the work runs in them."""
    engine = engines.load(engine_name)
    x = torch.linspace(-4, 4, 8)
    row = {}
    for steps in (SHORT, LONG):
        backend = engines.CountingBackend(label=lambda: record_function("captured graph"))
        compiled = engine.compile(refine, backend=backend)
        row["equal"] = row.get("equal", True) and measure.same(compiled(x, steps), refine(x, steps))
        compiled(x, steps)
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            compiled(x, steps)
        inside, outside = measure.count_operations(profiled.events())
        row[f"graphs_{steps}"] = len(backend.graphs)
        row["coverage"] = inside / (inside + outside)
    if engine_name == "dynacore":
        import dynacore

        row["explanation"] = str(dynacore.explain(refine)(x, SHORT))
    return row


def in_a_process(part: str, engine: str) -> dict:
    """Run one part under one engine in a process of its own."""
    command = [sys.executable, __file__, part, engine]
    quiet = {"KINETO_LOG_LEVEL": "99", "TRANSFORMERS_VERBOSITY": "error"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env={**os.environ, **quiet})
    if done.returncode:
        sys.exit(f"part {part!r} failed under {engine}; its error is above")
    return json.loads(done.stdout.splitlines()[-1])


PARTS = {"model": model_row, "loop": loop_row}


def title(text: str) -> None:
    print(f"\n\n{text}\n{'=' * len(text)}\n")


def table(part: str, lines: list) -> dict:
    """Measure a part under both engines and print one line for each (label, key, how to write it, remark)."""
    rows = {engine: in_a_process(part, engine) for engine in engines.NAMES}
    print(f"  {'':36}" + "".join(f"{engine:>15}" for engine in rows))
    for label, key, show, remark in lines:
        values = "".join(f"{show(row[key]):>15}" for row in rows.values())
        print(f"  {label:36}{values}   {remark}".rstrip())
    return rows


def yes_no(value: bool) -> str:
    return "yes" if value else "NO"


def show_model() -> None:
    """Part 1."""
    title("1. A language model, captured whole")
    print("A LLaMA of Hugging Face's transformers, 6 narrow layers, random weights, on 2 sequences of 12 tokens:\n")
    for engine in engines.NAMES:
        compiler = engine if "." in engine else f"{engine}.compile"
        print(f"    compiled = {compiler}(model, fullgraph=True)")
    print("\nfullgraph=True asks for one graph, or an error. Graphs run as they are (no code is generated from them),")
    print("so that what is timed is capture and dispatch alone.\n", flush=True)
    table("model", [
        ("graphs", "graphs", str, ""),
        ("tensor operations in them", "operations", str, ""),
        ("assumptions about program and model", "assumptions", str, "must still hold for the graph to be used again"),
        ("checks of tensors", "checks", str, "these too"),
        ("result equals plain Python's", "equal", yes_no, ""),
        ("capture, once", "capture_s", "{:.2f} s".format, "the first call, less a plain one"),
        ("guards + dispatch, every call", "overhead_us", "{:.1f} µs".format, "less the time inside the graph"),
    ])  # fmt: skip


def show_loop() -> None:
    """Part 2."""
    title("2. A break inside a loop")
    source, first = inspect.getsourcelines(refine)
    for number, line in enumerate(source, first):
        mark = ">" if "if x.abs()" in line else " "
        print(f"  {mark} {number:3}  {line.rstrip()}")
    print("\nThe marked line asks Python to branch on a tensor's value, which no graph can hold. dynacore lets the")
    print("interpreter run that one instruction; the code around it stays captured, whatever the number of steps:\n",
          flush=True)  # fmt: skip
    rows = table("loop", [
        (f"graphs for {SHORT} steps", f"graphs_{SHORT}", str, ""),
        (f"graphs for {LONG} steps", f"graphs_{LONG}", str, ""),
        ("operations that run in graphs", "coverage", "{:.0%}".format, "in a later call"),
        ("result equals plain Python's", "equal", yes_no, ""),
    ])  # fmt: skip
    print("\n0 graphs: that engine left the whole function to the interpreter.")
    print(f"\ndynacore.explain(refine)(x, {SHORT}) says:\n")
    print("\n".join(f"  | {line}".rstrip() for line in rows["dynacore"]["explanation"].splitlines()))


def main() -> None:
    """Both parts; or, with a part and an engine as arguments, one measurement as JSON."""
    if len(sys.argv) == 3:
        print(json.dumps(PARTS[sys.argv[1]](sys.argv[2])))
        return
    print(f"dynacore's demo, on CPython {platform.python_version()} and torch {torch.__version__}")
    show_model()
    show_loop()


if __name__ == "__main__":
    main()
