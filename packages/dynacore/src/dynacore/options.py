"""What one call of `dynacore.compile` asked for, checked and resolved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

Backend = Callable[..., Callable[..., Any]]
"""`backend(graph_module, example_inputs)` gives the callable that runs in place of the graph."""


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of `dynacore.compile`; `backend` is resolved and has `mode` and `options` applied."""

    backend: Backend
    backend_name: str
    fullgraph: bool = False
    dynamic: bool | None = None
    mode: str | None = None
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
