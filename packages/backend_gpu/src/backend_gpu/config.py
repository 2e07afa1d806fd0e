"""The settings of this package: typed, documented, checked when they are set."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from dynacore.errors import ConfigError, suggest


@dataclass
class Config:
    """Every setting with its default. Set attributes, or use `patch` for a while."""

    strict: bool = False
    """An operation or kernel that can't be compiled is an error instead of going to ATen with a message."""
    check: bool = False
    """Run the checkers between all stages (the tests do)."""
    cache_dir: str = os.environ.get("BACKEND_GPU_CACHE", "")
    """Where kernels and measurements are kept; empty: a folder in the user's cache directory."""
    workers: int = 0
    """Processes that compile kernels; 0: one for each core, at most 8."""
    cudagraph_after: int = 2
    """How often a shape has to be seen before mode 'reduce-overhead' records it."""
    cudagraph_limit: int = 16
    """How many shapes of one graph are recorded at most."""

    def __setattr__(self, name: str, value: Any) -> None:
        known = {entry.name: entry.type for entry in fields(self)}
        if name not in known:
            raise ConfigError(f"backend_gpu.config has no setting {name!r}{suggest(name, known)}")
        if type(value).__name__ != known[name]:
            raise ConfigError(f"backend_gpu.config.{name} takes {known[name]}, not {value!r}")
        object.__setattr__(self, name, value)

    @contextlib.contextmanager
    def patch(self, **changes: Any) -> Iterator[Config]:
        """Other settings inside a `with` block."""
        before = {name: getattr(self, name, None) for name in changes}
        for name, value in changes.items():
            setattr(self, name, value)
        try:
            yield self
        finally:
            for name, value in before.items():
                setattr(self, name, value)


config = Config()
