"""Backends: what turns a captured graph into the callable that runs in its place.

A backend is `backend(graph_module, example_inputs) -> callable`, as in torch.compile. It is named, or given as it is.
Third-party backends are found under the entry-point group of torch.compile.
"""

from __future__ import annotations

import functools
import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any

import torch

from . import logs, torch_api
from .config import config
from .errors import ArgumentError, BackendError, suggest
from .specialise import OpenInputs, specialised, with_constants

Compiled = Callable[..., Any]
Backend = Callable[..., Compiled]

ENTRY_POINTS = "torch_dynamo_backends"
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

_registered: dict[str, Backend] = {}
_lock = threading.Lock()


def register_backend(compiler_fn: Backend | None = None, name: str | None = None, tags: Sequence[str] = ()) -> Any:
    """Make a backend known by name: as a function, or as a decorator with or without arguments. Returns the backend.

    `tags` is accepted for torch.compile's sake.
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise ArgumentError(f"dynacore.register_backend(compiler_fn): give a callable, not {compiler_fn!r}")
    key = name if name is not None else getattr(compiler_fn, "__name__", None)
    if not isinstance(key, str):
        raise ArgumentError(f"dynacore.register_backend(name=...): give a name for {compiler_fn!r}, which has none")
    with _lock:
        if key in _BUILT_IN or _registered.get(key, compiler_fn) is not compiler_fn:
            raise ArgumentError(f"dynacore.register_backend(name={key!r}): a backend with this name exists already")
        _registered[key] = compiler_fn
    return compiler_fn


def list_backends() -> list[str]:
    """The names that `dynacore.compile(backend=...)` takes, those of installed packages included."""
    return sorted({*_BUILT_IN, *_registered, *_entry_points()})


def resolve(
    backend: Backend | str, mode: str | None, options: Mapping[str, Any], dynamic: bool | None
) -> tuple[str, Backend]:
    """The backend's name and the callable with `mode` and `options` applied."""
    if mode is not None and options:
        raise ArgumentError("dynacore.compile(mode=..., options=...): give one of them, a mode is a set of options")
    if callable(backend):
        return getattr(backend, "__name__", type(backend).__name__), _with_arguments(backend, mode, options)
    if not isinstance(backend, str):
        raise ArgumentError(f"dynacore.compile(backend=...): give a name or a callable, not {backend!r}")
    if backend in _BUILT_IN:
        _check_mode(mode)
        return backend, _BUILT_IN[backend](mode, options, dynamic)
    return backend, _with_arguments(_lookup(backend), mode, options)


def _check_mode(mode: str | None) -> None:
    if mode is not None and mode not in MODES:
        raise ArgumentError(
            f"dynacore.compile(mode={mode!r}): no such mode{suggest(mode, MODES)} Choose from {', '.join(MODES)}"
        )


def _with_arguments(backend: Backend, mode: str | None, options: Mapping[str, Any]) -> Backend:
    """As torch.compile does, a backend gets `mode` and `options` as keywords only where they were given."""
    keywords: dict[str, Any] = {}
    if mode is not None and mode != "default":
        keywords["mode"] = mode
    if options:
        keywords["options"] = dict(options)
    return functools.partial(backend, **keywords) if keywords else backend


def _lookup(name: str) -> Backend:
    if name in _registered:
        return _registered[name]
    found = _entry_points().get(name)
    if found is None:
        known = list_backends()
        raise ArgumentError(
            f"dynacore.compile(backend={name!r}): no such backend{suggest(name, known)} Known: {', '.join(known)}. "
            "dynacore.register_backend makes others known."
        )
    try:
        return found.load()
    except Exception as error:
        raise BackendError(f"the backend {name!r}, an entry point at {found.value}, doesn't load: {error}") from error


def _entry_points() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}


# --- the built-in backends ----------------------------------------------------------------------------------------


def _eager(mode: str | None, options: Mapping[str, Any], dynamic: bool | None) -> Backend:
    _no_options("eager", options)
    return eager


def _aot_eager(mode: str | None, options: Mapping[str, Any], dynamic: bool | None) -> Backend:
    _no_options("aot_eager", options)
    return aot_eager


def _inductor(mode: str | None, options: Mapping[str, Any], dynamic: bool | None) -> Backend:
    patches = _inductor_patches(mode, options, dynamic)
    if find_cxx_compiler() is None:
        logs.warn_once("no C++ compiler", _NO_COMPILER)
        return eager
    return functools.partial(inductor, patches=patches)


_BUILT_IN: dict[str, Callable[[str | None, Mapping[str, Any], bool | None], Backend]] = {
    "eager": _eager,
    "aot_eager": _aot_eager,
    "inductor": _inductor,
}

_NO_COMPILER = (
    "backend 'inductor' needs a C++ compiler, and none was found (the variable CXX, then g++, clang++ and c++ on the "
    "path). Captured graphs run with backend 'eager': correct, but not faster. Install a C++ compiler, set CXX, or say "
    "dynacore.compile(..., backend='eager')."
)


def eager(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Compiled:
    """Runs the graph's operations one by one."""
    return gm.forward


def compiles(backend: Backend) -> bool:
    """Whether a backend may decide something when it gets a graph, and not each time that the graph runs."""
    return backend is not eager


def aot_eager(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Compiled:
    """Runs the graphs that AOTAutograd makes of it, forward and backward, operation by operation."""
    return specialised(gm, example_inputs, torch_api.aot_eager)


def inductor(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], patches: Mapping[str, Any]) -> Compiled:
    """Compiles the graph with TorchInductor."""
    return specialised(gm, example_inputs, functools.partial(torch_api.inductor, patches=patches))


def find_cxx_compiler() -> str | None:
    """The path of the C++ compiler that TorchInductor would use."""
    for name in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        if name and (path := shutil.which(name)):
            return path
    return None


def _no_options(backend: str, options: Mapping[str, Any]) -> None:
    for name in options:
        raise ArgumentError(f"dynacore.compile(options={{{name!r}: ...}}): backend {backend!r} takes no options")


def _inductor_patches(mode: str | None, options: Mapping[str, Any], dynamic: bool | None) -> dict[str, Any]:
    if mode is not None and mode != "default":
        return torch_api.inductor_mode(mode, dynamic)
    if not options:
        return {}
    settings = torch_api.inductor_settings()
    patches = {name.replace("-", "_"): value for name, value in options.items()}
    for name, value in patches.items():
        if name not in settings:
            raise ArgumentError(
                f"dynacore.compile(options={{{name!r}: ...}}): backend 'inductor' has no such option"
                f"{suggest(name, settings)} {torch_api.INDUCTOR_OPTIONS} gives them all."
            )
        if type(settings[name]) in (bool, int, str) and type(value) is not type(settings[name]):
            kind = type(settings[name]).__name__
            raise ArgumentError(f"dynacore.compile(options={{{name!r}: {value!r}}}): give a value of type {kind}")
    return patches


# --- calling a backend --------------------------------------------------------------------------------------------


def call_backend(
    name: str,
    backend: Backend,
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    n_outputs: int,
    install: Callable[[Compiled], None] | None = None,
) -> Compiled:
    """Compile a graph, holding the backend to the protocol.

    The callable given back checks the number of outputs in its first call; `install` then gets the unchecked one.
    A backend that raises is a `BackendError`, or with `config.suppress_errors` a warning and the graph run eagerly.
    """
    # A backend may have changed the graph before it fails.
    spare = with_constants(gm, {}) if config.suppress_errors else gm
    varying = gm.meta.get("varying")
    if varying is not None and name not in _BUILT_IN:
        example_inputs = OpenInputs(example_inputs, varying)
    try:
        compiled = backend(gm, example_inputs)
        if not callable(compiled):
            raise BackendError(f"backend {name!r} must return a callable, and returned {compiled!r}")
    except Exception as error:
        if config.suppress_errors:
            logs.warn_once(("backend", name, repr(error)), f"{_failure(name, error)} The graph runs eagerly.")
            return spare.forward
        if isinstance(error, BackendError):
            raise
        raise BackendError(
            f"{_failure(name, error)} Set dynacore.config.suppress_errors = True to run such graphs eagerly."
        ) from error
    return _checking(name, compiled, n_outputs, install)


def _failure(name: str, error: Exception) -> str:
    return f"backend {name!r} failed: {type(error).__name__}: {error}."


def _checking(name: str, compiled: Compiled, n_outputs: int, install: Callable[[Compiled], None] | None) -> Compiled:
    def first_call(*inputs: Any) -> Any:
        outputs = compiled(*inputs)
        if not isinstance(outputs, (tuple, list)):
            raise BackendError(
                f"backend {name!r}: the compiled graph must return a tuple or list, not a {type(outputs).__name__}"
            )
        if len(outputs) != n_outputs:
            raise BackendError(
                f"backend {name!r}: the compiled graph returned {len(outputs)} outputs, and the graph has {n_outputs}"
            )
        if install is not None:
            install(compiled)
        return outputs

    return first_call
