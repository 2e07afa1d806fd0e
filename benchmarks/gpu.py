"""The GPU backend beside eager and torch.compile, in one run, each result checked against eager. Needs a GPU.

    python benchmarks/gpu.py [--quick] [--output table.json]

Every row gives the milliseconds of a call in eager mode, by torch.compile (inductor, same mode) and by dynacore with
backend "gpu"; bandwidth-bound rows also the share of the copy bandwidth that was measured first. torch and triton are
taken as they are found (torch 2.11 to 2.15, triton 3.6 on); transformers rows are left out where it isn't installed.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.remove(str(ROOT / "benchmarks"))  # where this file would stand for the folder of the same name in tests
sys.path.insert(0, str(ROOT / "tests"))

import torch
from gpu import programs
from gpu.blocks import block, block_arguments

import dynacore

Row = dict[str, Any]


def milliseconds(call: Callable[[], Any], repeats: int) -> float:
    """The median time of a call, measured on the device, the cache of which is flushed before each."""
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    for _ in range(5):
        call()
    times = []
    for _ in range(repeats):
        flush.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return sorted(times)[len(times) // 2]


def copy_bandwidth(repeats: int) -> float:
    """Bytes a second of copying a tensor, read and write together."""
    source = torch.empty(1 << 28, dtype=torch.int8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / (milliseconds(lambda: target.copy_(source), repeats) / 1e3)


def bandwidth_rows(quick: bool) -> dict[str, tuple[Callable[..., Any], list[torch.Tensor]]]:
    """Bandwidth-bound programs at real sizes."""
    rows = 4096 if quick else 16384
    found: dict[str, tuple[Callable[..., Any], list[torch.Tensor]]] = {}
    for dtype in (torch.bfloat16, torch.float32):

        def make(*shape: int, dtype: torch.dtype = dtype) -> torch.Tensor:
            return torch.randn(shape, device="cuda").to(dtype)

        wide = [make(rows, 4096), make(4096), make(4096)]
        cases = {
            "softmax": (programs.softmax, wide[:1]), "log_softmax": (programs.log_softmax, wide[:1]),
            "layer_norm": (programs.layer_norm, wide), "rms_norm": (programs.rms_norm, wide[:2]),
            "gelu": (programs.gelu, wide[:1]), "swiglu": (programs.swiglu, [wide[0], make(rows, 4096)]),
            "rotary": (programs.rotary, [make(8, 32, rows // 16, 128), make(8, 32, rows // 16, 128),
                                         make(rows // 16, 128), make(rows // 16, 128)]),
            "cross_entropy": (programs.cross_entropy, [make(rows // 4, 32000),
                                                       torch.randint(0, 32000, (rows // 4,), device="cuda")]),
        }  # fmt: skip
        found.update({f"{name} {str(dtype)[6:]}": case for name, case in cases.items()})
    return found


def product_rows(quick: bool) -> dict[str, tuple[Callable[..., Any], list[torch.Tensor]]]:
    """Products with pointwise work behind them, as layers of a transformer have them."""
    tokens, width, hidden = (512, 1024, 4096) if quick else (8192, 4096, 14336)
    found: dict[str, tuple[Callable[..., Any], list[torch.Tensor]]] = {}
    for dtype in (torch.bfloat16, torch.float16, torch.float32):

        def make(*shape: int, dtype: torch.dtype = dtype) -> torch.Tensor:
            return (torch.randn(shape, device="cuda") / 8).to(dtype)

        x, wide = make(tokens, width), make(tokens, hidden)
        cases = {
            "linear, GELU": (programs.linear_gelu, [x, make(hidden, width), make(hidden)]),
            "linear, residual": (programs.linear_residual, [wide, make(width, hidden), x]),
            "linear twice, SwiGLU": (programs.linear_swiglu, [x, make(hidden, width), make(hidden, width)]),
            "linear, GELU, 16 tokens": (programs.linear_gelu, [x[:16], make(hidden, width), make(hidden)]),
        }
        found.update({f"{name} {str(dtype)[6:]}": case for name, case in cases.items()})
    return found


def least_bytes(function: Callable[..., Any], arguments: list[torch.Tensor]) -> int:
    """Every argument and result once."""
    results = function(*arguments)
    results = results if isinstance(results, tuple) else (results,)
    return sum(t.numel() * t.element_size() for t in (*arguments, *results))


def close(got: Any, want: Any) -> bool:
    """Whether results agree, as far as their dtype allows."""
    pairs = zip(got, want) if isinstance(want, tuple) else [(got, want)]
    bounds = {torch.float32: 1e-3, torch.bfloat16: 5e-2, torch.float16: 1e-2}
    return all(torch.allclose(a, b, rtol=bounds.get(b.dtype, 1e-6), atol=bounds.get(b.dtype, 1e-6)) for a, b in pairs)


def compare(name: str, call: Callable[..., Any], arguments: list[Any], mode: str | None, repeats: int) -> Row:
    """One row: eager, torch.compile and dynacore."""
    row: Row = {"name": name, "mode": mode or "default"}
    want = call(*arguments)
    engines = {
        "eager": lambda: call,
        "inductor": lambda: torch.compile(call, mode=mode, fullgraph=True),
        "dynacore": lambda: dynacore.compile(call, backend="gpu", mode=mode, fullgraph=True),
    }
    for engine, make in engines.items():
        try:
            start = time.perf_counter()
            run = make()
            got = run(*arguments)
            torch.cuda.synchronize()
            row[f"{engine} first call, s"] = round(time.perf_counter() - start, 2)
            row[f"{engine} right"] = close(got, want)
            row[engine] = milliseconds(lambda run=run: run(*arguments), repeats)
        except Exception as error:  # one engine's failure is a row's content, not the end of the table
            row[engine] = None
            row[f"{engine} error"] = f"{type(error).__name__}: {error}"[:300]
    return row


def model_rows(quick: bool, repeats: int) -> list[Row]:
    """Hugging Face models at real widths, forward and training step, and launch-bound small ones with CUDA graphs."""
    try:
        from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
    except ImportError:
        print("transformers isn't installed: no rows for models", file=sys.stderr)
        return []
    layers = 2 if quick else 6
    rows = []
    for dtype in (torch.bfloat16, torch.float32):
        models = {
            "GPT-2": GPT2LMHeadModel(GPT2Config(n_layer=layers, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)),
            "LLaMA": LlamaForCausalLM(LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=layers,
                                                  num_attention_heads=16, vocab_size=32000)),
        }  # fmt: skip
        for name, model in models.items():
            model = model.to("cuda", dtype)
            ids = torch.randint(0, 32000, (4, 512), device="cuda")

            def forward(ids: torch.Tensor, model: Any = model) -> torch.Tensor:
                with torch.no_grad():
                    return model(input_ids=ids, use_cache=False).logits

            def loss(ids: torch.Tensor, model: Any = model) -> torch.Tensor:
                return model(input_ids=ids, labels=ids, use_cache=False).loss

            label = f"{name} {layers} layers {str(dtype)[6:]}"
            rows.append(compare(f"{label} forward", forward, [ids], None, repeats))
            rows.append(training_row(f"{label} training", loss, model, ids, repeats))
            small = ids[:1, :8].contiguous()
            rows.append(compare(f"{label} forward, 8 tokens", forward, [small], "reduce-overhead", repeats))
    return rows


def training_row(name: str, loss: Callable[..., Any], model: Any, ids: torch.Tensor, repeats: int) -> Row:
    """Forward and backward; the gradients' norm is compared."""
    row: Row = {"name": name, "mode": "default"}
    engines = {
        "eager": lambda: loss,
        "inductor": lambda: torch.compile(loss),
        "dynacore": lambda: dynacore.compile(loss, backend="gpu"),
    }
    norms: dict[str, float] = {}
    for engine, make in engines.items():
        try:
            run = make()

            def step(run: Callable[..., Any] = run) -> None:
                model.zero_grad(set_to_none=True)
                run(ids).backward()

            step()
            norms[engine] = float(sum(p.grad.float().norm() ** 2 for p in model.parameters() if p.grad is not None))
            row[f"{engine} right"] = abs(norms[engine] - norms["eager"]) <= 5e-2 * norms["eager"]
            row[engine] = milliseconds(step, repeats)
        except Exception as error:
            row[engine] = None
            row[f"{engine} error"] = f"{type(error).__name__}: {error}"[:300]
    return row


def show(row: Row, bandwidth: float, size: int = 0) -> None:
    """Print a row; where the bytes are known, the share of the copy bandwidth, too."""
    cells = [row["name"].ljust(40)]
    for engine in ("eager", "inductor", "dynacore"):
        value = row.get(engine)
        cells.append(f"{value:12.4f}" if value is not None else f"{'failed':>12}")
        if value is not None and row.get(f"{engine} right") is False:
            cells.append(" WRONG")
    if size and row.get("dynacore"):
        row["share of copy bandwidth"] = size / (row["dynacore"] / 1e3) / bandwidth
        cells.append(f"{row['share of copy bandwidth']:9.1%}")
    print("".join(cells), flush=True)


def main() -> None:
    """Measure, print and save the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer repetitions")
    parser.add_argument("--output", default="gpu_table.json")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks/gpu.py needs a GPU that torch can use, and found none")
    import triton

    import backend_gpu

    repeats = 20 if options.quick else 50
    bandwidth = copy_bandwidth(repeats)
    facts = {
        "date": time.strftime("%Y-%m-%d"), "device": torch.cuda.get_device_name(), "torch": torch.__version__,
        "triton": triton.__version__, "python": platform.python_version(), "copy bandwidth, GB/s": bandwidth / 1e9,
    }  # fmt: skip
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print(f"{'milliseconds':40}{'eager':>12}{'inductor':>12}{'dynacore':>12}  of copy")
    rows = []
    for name, (function, arguments) in bandwidth_rows(options.quick).items():
        rows.append(compare(name, function, arguments, None, repeats))
        show(rows[-1], bandwidth, least_bytes(function, arguments))
    for name, (function, arguments) in product_rows(options.quick).items():
        backend_gpu.clear_reports()
        rows.append(compare(name, function, arguments, "max-autotune-no-cudagraphs", repeats))
        show(rows[-1], bandwidth)
        rows[-1]["choices"] = [str(choice) for report in backend_gpu.reports() for choice in report.choices]
        print("\n".join(f"    {choice}" for choice in rows[-1]["choices"]))
    arguments = [a.cuda() for a in block_arguments(4, 512, 2048, 16, 5632, torch.bfloat16)]
    rows.append(compare("transformer block bfloat16", block, arguments, None, repeats))
    show(rows[-1], bandwidth)
    for row in model_rows(options.quick, repeats):
        rows.append(row)
        show(row, bandwidth)
    Path(options.output).write_text(json.dumps({"facts": facts, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
