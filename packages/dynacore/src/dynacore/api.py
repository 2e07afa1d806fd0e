"""`dynacore.compile` and `dynacore.reset`."""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, overload

from torch import nn

from . import environment, logs, stats
from .backends import Backend
from .errors import ArgumentError
from .marks import Disabled, is_disabled, unwrap_compiled
from .module import CompiledModule, wrap_module
from .options import Options, make_options
from .shims import shim

F = TypeVar("F", bound=Callable[..., Any])


@overload
def compile(
    model: None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Backend | str = "inductor",
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
) -> Callable[[F], F]: ...
@overload
def compile(
    model: F,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Backend | str = "inductor",
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
) -> F: ...
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Backend | str = "inductor",
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Compile a function, method, callable object or `nn.Module`; without `model`, give a decorator.

    Nothing is captured before the first call. Calls mean what they mean without compilation.

    Args:
        model: What to compile. A module gives a second module over the same state, whose call is compiled. A class is
            changed in place: calls of its instances are compiled.
        fullgraph: Raise `FullGraphError` where the function can't be captured as one graph.
        dynamic: As for `torch.compile`: sizes stay open once they have differed (None), from the start, or never.
        backend: A name from `dynacore.list_backends()`, or `f(graph_module, example_inputs) -> callable`.
        mode: "default", "reduce-overhead", "max-autotune" or "max-autotune-no-cudagraphs".
        options: Settings for the backend.
        disable: Give `model` back as it is.
    """
    checked = make_options(backend, fullgraph, dynamic, mode, options)
    compiler = _check_callable if disable else Compiler(checked)
    return compiler if model is None else compiler(model)


def _check_callable(target: Any) -> Any:
    if callable(target) or isinstance(target, (staticmethod, classmethod)):
        return target
    raise ArgumentError(f"dynacore.compile(model): give a callable, not {target!r} of type {type(target).__name__}")


@dataclass(frozen=True, slots=True)
class Compiler:
    """`dynacore.compile` with everything but its target: what it gives as a decorator. Can be pickled."""

    options: Options

    def __call__(self, target: Any) -> Any:
        _check_callable(target)
        if not environment.ready():
            return target
        if isinstance(target, (staticmethod, classmethod)):
            return type(target)(self(target.__func__))
        if isinstance(target, types.MethodType):
            return types.MethodType(self(target.__func__), target.__self__)
        if type(target) is functools.partial:
            return functools.partial(self(target.func), *target.args, **target.keywords)
        if isinstance(target, type):
            return self._class(target)
        if isinstance(target, nn.Module):
            return target if _is_disabled_module(target) else wrap_module(target, self)
        if (function := unwrap_compiled(target)) is not None:
            return target if options_of(target) == self.options else self.function(function)
        if is_disabled(target):
            return target
        return self.function(target if isinstance(target, types.FunctionType) else shim(target))

    def function(self, function: types.FunctionType, alone: bool = False) -> Any:
        """A new compiled function with the name, documentation and attributes of `function`.

        Functions of the same code share what is captured, unless one is to be `alone`.
        """
        from . import capture

        compiled = capture.compile_function(function, self.options, alone)
        for name in functools.WRAPPER_ASSIGNMENTS:
            if hasattr(function, name):
                setattr(compiled, name, getattr(function, name))
        compiled.__dict__.update({name: value for name, value in vars(function).items() if name != "__wrapped__"})
        _options[compiled] = self.options
        return compiled

    def _class(self, cls: type) -> type:
        """Compile the calls of a class's instances. In place: names, `super()` and pickling stay as they are."""
        method = next((vars(base)["__call__"] for base in cls.__mro__ if "__call__" in vars(base)), None)
        if method is None:
            raise ArgumentError(
                f"dynacore.compile(model): instances of {cls!r} can't be called, so there is nothing to compile; "
                "compile its methods, or a function that uses it"
            )
        compiled = self(method)
        if compiled is not method:
            cls.__call__ = compiled  # type: ignore[method-assign]
        return cls


_options: weakref.WeakKeyDictionary[Any, Options] = weakref.WeakKeyDictionary()


def options_of(compiled: Any) -> Options:
    """What a compiled function was compiled with."""
    return _options[compiled]


def compile_afresh(target: Callable[..., Any]) -> Any:
    """Compile with what `target` was compiled with, or backend "eager", and nothing captured before.

    Never with `fullgraph=True`: this is for looking at what happens.
    """
    options = make_options("eager")
    if isinstance(target, CompiledModule) and isinstance(target._dynacore_wrap, Compiler):
        options, target = target._dynacore_wrap.options, target._dynacore_model
    elif (function := unwrap_compiled(target)) is not None:
        options, target = options_of(target), function
    elif isinstance(target, types.MethodType) and (function := unwrap_compiled(target.__func__)) is not None:
        options, target = options_of(target.__func__), types.MethodType(function, target.__self__)
    elif type(target) is functools.partial and (function := unwrap_compiled(target.func)) is not None:
        options = options_of(target.func)
        target = functools.partial(function, *target.args, **target.keywords)
    plain = isinstance(target, types.FunctionType) and not is_disabled(target)
    return Compiler(replace(options, fullgraph=False)).function(target if plain else shim(target), alone=True)  # type: ignore[arg-type]


def _is_disabled_module(target: nn.Module) -> bool:
    return isinstance(target, CompiledModule) and isinstance(target._dynacore_wrap, Disabled)


def reset() -> None:
    """Forget everything captured, counted and logged. Compiled functions capture again at their next calls."""
    if (capture := sys.modules.get("dynacore.capture")) is not None:
        capture.reset()
    stats.reset()
    logs.reset()
