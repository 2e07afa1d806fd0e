"""dynacore's GPU backend: captured graphs as few Triton kernels around ATen's matrix products.

    dynacore.compile(f, backend="gpu")

Importing this package registers the backend; where it is installed, its entry point does.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dynacore

from .config import config
from .errors import BackendUnavailable, CompileFailure
from .report import GraphReport, clear_reports, reports

__all__ = [
    "BackendUnavailable", "CompileFailure", "GraphReport", "available", "clear_reports", "compile", "config", "reports",
]  # fmt: skip


def available() -> bool:
    """Whether kernels can run here: Triton is there, and a GPU, or Triton's interpreter was asked for."""
    import torch

    from .runtime.device import interpreting, triton_missing

    return triton_missing() is None and (torch.cuda.is_available() or interpreting())


def compile(
    graph_module: Any,
    example_inputs: Sequence[Any],
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile a graph, as `dynacore.compile(backend="gpu")` asks for. `docs/backend_gpu.md` has modes and settings."""
    from .backend import compile as compile_graph

    return compile_graph(graph_module, example_inputs, mode, options)


dynacore.register_backend(compile, name="gpu")
