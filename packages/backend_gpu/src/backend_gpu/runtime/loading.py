"""Kernel source as a function of Triton's: a module in the cache, imported from there."""

from __future__ import annotations

import importlib.util
import threading
from typing import Any

from ..render.source import Source
from . import cache

_loaded: dict[str, Any] = {}
_lock = threading.Lock()


def module_name(source: Source) -> str:
    """The name of a kernel's module: made of its text."""
    return f"backend_gpu_kernel_{cache.key_of(source.text)}"


def load(source: Source) -> Any:
    """The decorated function of a kernel, interpreted or to be compiled as Triton was imported."""
    name = module_name(source)
    with _lock:
        if name not in _loaded:
            path = cache.keep(f"{name}.py", source.text.encode())
            _loaded[name] = getattr(import_path(name, str(path)), source.name)
        return _loaded[name]


def import_path(name: str, path: str) -> Any:
    """Import one file as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
