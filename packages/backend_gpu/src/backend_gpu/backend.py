"""The backend: what `dynacore.compile(f, backend="gpu")` calls for each captured graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from dynacore import torch_api
from dynacore.errors import ArgumentError, BackendError, suggest
from dynacore.specialise import specialised

from . import report as reports
from .config import config
from .errors import BackendUnavailable, Unsupported
from .lower.decompositions import decompositions
from .runtime.device import device_for

if TYPE_CHECKING:
    from .pipeline import Compiled

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compile(
    graph_module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile a graph, forward and backward. Raises `BackendUnavailable` where no kernel can run at all."""
    if mode is not None and mode not in MODES:
        raise ArgumentError(f"backend 'gpu' has no mode {mode!r}{suggest(mode, MODES)} Choose from {', '.join(MODES)}")
    for name in options or {}:
        raise ArgumentError(f"backend 'gpu' takes no options, and was given {name!r}; see backend_gpu.config")
    reason = unusual_inputs(example_inputs)
    if reason is not None:
        return _left_to_eager(graph_module, reason)
    compiler = functools.partial(_compile_specialised, mode=mode or "default")
    return specialised(graph_module, example_inputs, compiler)


def unusual_inputs(inputs: Sequence[Any]) -> str | None:
    """Why a graph over these inputs is left to eager, or None."""
    for value in inputs:
        if not isinstance(value, torch.Tensor):
            continue
        if value.is_nested:
            return "a nested tensor among its inputs"
        if value.layout != torch.strided:
            return f"a tensor with layout {value.layout} among its inputs"
        if value.is_quantized:
            return "a quantized tensor among its inputs"
        if type(value) not in (torch.Tensor, torch.nn.Parameter) and not torch_api.is_fake(value):
            return f"a tensor of class {type(value).__name__} among its inputs"
    return None


def _left_to_eager(gm: torch.fx.GraphModule, reason: str) -> Callable[..., Any]:
    """The graph as it is, with the reason said once; an error where the settings are strict."""
    if config.strict:
        raise BackendUnavailable(f"backend 'gpu' can't compile a graph: {reason} (backend_gpu.config.strict is set)")
    reports.warn_once(("eager", reason), f"backend 'gpu' leaves a graph to ATen: {reason}.")
    reports.add(reports.GraphReport(eager=reason))
    return gm.forward


def graph_device(gm: torch.fx.GraphModule) -> torch.device:
    """The device that a graph of ATen operations computes on: that of its first tensor that isn't on the CPU."""
    found = torch.device("cpu")
    for node in gm.graph.nodes:
        val = node.meta.get("val")
        for value in val if isinstance(val, (list, tuple)) else (val,):
            if isinstance(value, torch.Tensor):
                if value.device.type != "cpu":
                    return value.device
                found = value.device
    return found


def _compile_specialised(gm: torch.fx.GraphModule, inputs: Sequence[Any], mode: str) -> tuple[Callable[..., Any], bool]:
    from .lower.random import DECOMPOSITIONS
    from .lower.registry import LOWERINGS

    for value in inputs:
        if isinstance(value, torch.Tensor) and value.ndim:
            device_for(value.device)  # an error that names the remedy comes before any work
    kept = {operation for operation in LOWERINGS if operation not in DECOMPOSITIONS}
    table = {op: rule for op, rule in decompositions().items() if op not in kept}
    table.update(DECOMPOSITIONS)

    def compile_graph(
        graph: torch.fx.GraphModule, example: Sequence[Any], backward: bool
    ) -> Callable[[list[Any]], Any]:
        return _compile_graph(graph, backward, mode)

    try:
        return torch_api.aot_autograd(gm, inputs, compile_graph, table, _before_partition)
    except BackendError:
        raise
    except Exception as error:
        return _left_to_eager(gm, f"AOTAutograd can't trace it ({type(error).__name__}: {error})"), True


def _before_partition(joint: torch.fx.GraphModule) -> None:
    """Numbers drawn from a seed are computed again in the backward graph: the seed is all that is kept."""
    from .lower.random import RANDOM

    for node in joint.graph.nodes:
        if node.target in RANDOM:
            node.meta["recompute"] = torch_api.must_recompute()


def _compile_graph(gm: torch.fx.GraphModule, backward: bool, mode: str) -> Callable[[list[Any]], Any]:
    from .pipeline import compile_program

    report = reports.GraphReport(backward=backward)
    torch_device = graph_device(gm)
    try:
        with torch_api.real_tensors():
            tune = mode.startswith("max-autotune")
            compiled = compile_program(gm, torch_device, device_for(torch_device), report, tune)
            run = compiled.run
            if mode in ("reduce-overhead", "max-autotune"):
                run = _recorded(compiled, torch_device, report)
    except BackendError:
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, Unsupported) else f"{type(error).__name__}: {error}"
        if config.strict or not backward and _has_open_sizes(gm):  # then it's compiled for the sizes as they are
            raise BackendUnavailable(f"backend 'gpu' can't compile a graph: {reason}") from error
        reports.warn_once(("graph", reason), f"backend 'gpu' leaves a graph to ATen: {reason}.")
        report.eager = reason
        run = _boxed(gm)
    report.compiled = run
    reports.add(report)

    def boxed(args: list[Any]) -> Any:
        try:
            with torch_api.without_autograd():
                return run(args)
        except Exception as error:
            report.failures.append(f"{type(error).__name__}: {error}")
            raise

    return boxed


def _has_open_sizes(gm: torch.fx.GraphModule) -> bool:
    return any(isinstance(node.meta.get("val"), torch.SymInt) for node in gm.graph.nodes if node.op == "placeholder")


def _recorded(compiled: Compiled, torch_device: torch.device, report: reports.GraphReport) -> Callable[..., Any]:
    """The program, recorded as a CUDA graph where it can be; else its report says why not."""
    from .runtime.cudagraphs import Recorder, Tally, pool_for

    report.recording = Tally()
    if torch_device.type != "cuda":
        report.recording.reasons["only a GPU records"] = 0
        return compiled.run
    return Recorder(compiled.run, pool_for(torch_device), compiled.mutated, compiled.never_recorded, report.recording)


def _boxed(gm: torch.fx.GraphModule) -> Callable[[list[Any]], Any]:
    def run(args: list[Any]) -> Any:
        values = list(args)
        args.clear()
        return gm.forward(*values)

    return run
