"""Capture PyTorch programs from CPython bytecode at run time.

    import dynacore

    model = dynacore.compile(model)

Functions have the names and meanings that they have in torch.compile. What can't be captured runs as plain Python.
"""

from .api import compile, reset  # noqa: A004
from .backends import list_backends, register_backend
from .config import config
from .errors import (
    ArgumentError,
    BackendError,
    ConfigError,
    DynacoreError,
    FullGraphError,
    InternalError,
    MissingExtension,
    RecompileLimitError,
    SpecialisedSizeError,
    UnsupportedPython,
    UnsupportedTorch,
)
from .explain import Explanation, explain
from .marks import allow_in_graph, disable, graph_break, is_compiling, mark_dynamic, mark_static

__all__ = [
    "ArgumentError",
    "BackendError",
    "ConfigError",
    "DynacoreError",
    "Explanation",
    "FullGraphError",
    "InternalError",
    "MissingExtension",
    "RecompileLimitError",
    "SpecialisedSizeError",
    "UnsupportedPython",
    "UnsupportedTorch",
    "allow_in_graph",
    "compile",
    "config",
    "disable",
    "explain",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "register_backend",
    "reset",
]
