"""The place of dynacore's GPU backend. It generates no code yet, says so, and registers nothing."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from dynacore.errors import BackendError

__all__ = ["BackendUnavailable", "available", "compile"]


class BackendUnavailable(BackendError):
    """This backend was asked to compile where it can't."""


def available() -> bool:
    """Whether `compile` can generate code on this machine."""
    return False


def compile(graph_module: Callable[..., Any], example_inputs: Sequence[Any]) -> NoReturn:
    """Refuse to compile. Its signature is that of a backend, so passing it to compile gives this error."""
    raise BackendUnavailable(
        "backend_gpu generates no code yet; use backend='inductor', which hands the graphs to PyTorch's code generator"
    )
