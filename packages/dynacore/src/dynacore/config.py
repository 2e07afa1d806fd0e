"""The settings of dynacore: typed, documented, checked when they are set.

    dynacore.config.recompile_limit = 16
    with dynacore.config.patch(suppress_errors=True):
        ...

Settings hold for the whole process. Reading one is a plain attribute read.
"""

from __future__ import annotations

import functools
import threading
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar, cast

from . import logs
from .errors import ConfigError, suggest

F = TypeVar("F", bound=Callable[..., Any])


class Config:
    """Every setting with its type, default and meaning."""

    recompile_limit: Annotated[int, "how many entries one point may have before it stays with plain Python"] = 8
    fail_on_recompile_limit: Annotated[bool, "raise RecompileLimitError when the limit is reached"] = False
    capture_scalar_outputs: Annotated[bool, "keep `.item()`, `int()` and `float()` of a tensor in the graph"] = False
    capture_dynamic_output_shape_ops: Annotated[
        bool, "keep operations in the graph whose result's size depends on values: `nonzero`, `x[mask]`, `unique`"
    ] = False
    suppress_errors: Annotated[bool, "run a graph eagerly when its backend fails, saying so once"] = False
    on_internal_error: Annotated[
        Literal["fallback", "raise"], "what a fault of capture itself does: run the frame as plain Python, or raise"
    ] = "fallback"
    on_unsupported_python: Annotated[
        Literal["raise", "eager"], "what compile() does on an interpreter without a version model"
    ] = "raise"
    allow_untested_torch: Annotated[bool, "go on with a torch outside the range that was tested"] = False
    verify: Annotated[bool, "check every graph and every guard against its Python twin (slow)"] = False
    inline_depth_limit: Annotated[int, "how many nested calls one capture follows"] = 200
    logs: Annotated[str, "comma-separated log artifacts, as in the environment variable DYNACORE_LOGS"] = ""
    testing_cut: Annotated[
        Callable[[types.CodeType, int], bool] | None, "called as (code, instruction index); true forces a break there"
    ] = None

    def __init__(self) -> None:
        for name in _HINTS:
            self.__dict__[name] = getattr(type(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        check_setting(name, value)
        if name == "logs":
            logs.select(logs.parse(value, "dynacore.config.logs"))
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        raise ConfigError(_unknown(name))

    def __delattr__(self, name: str) -> None:
        raise ConfigError(f"dynacore.config.{name} can't be deleted; set it to another value instead")

    def as_dict(self) -> dict[str, Any]:
        """Every setting's current value."""
        return dict(self.__dict__)

    def __repr__(self) -> str:
        return "\n".join(["dynacore.config:", *(f"  {name} = {value!r}" for name, value in self.as_dict().items())])

    def describe(self) -> str:
        """Every setting with its value, type and meaning."""
        rows = []
        for name, value in self.as_dict().items():
            hint, meaning = typing.get_args(_HINTS[name])
            rows.append(f"{name} = {value!r}\n    {_type_text(hint)}: {meaning}")
        return "\n".join(rows)

    def patch(self, changes: Mapping[str, Any] | None = None, /, **more: Any) -> Patch:
        """Change settings, given as keywords or as a dict, for a `with` block or a decorated function.

        Names and values are checked at once. Every thread sees the change.
        """
        merged = {**(changes or {}), **more}
        for name, value in merged.items():
            check_setting(name, value)
        return Patch(self, merged)


class Patch:
    """A change of settings that can be entered any number of times, and decorates functions."""

    def __init__(self, target: Config, changes: dict[str, Any]) -> None:
        self._target = target
        self._changes = changes
        self._saved: list[dict[str, Any]] = []

    def __enter__(self) -> Config:
        with _lock:
            current = self._target.as_dict()
            self._saved.append({name: current[name] for name in self._changes})
            self._apply(self._changes)
        return self._target

    def __exit__(self, *exc_info: object) -> None:
        with _lock:
            self._apply(self._saved.pop())

    def _apply(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(self._target, name, value)

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def patched(*args: Any, **kwargs: Any) -> Any:
            with Patch(self._target, self._changes):
                return function(*args, **kwargs)

        return cast(F, patched)


def check_setting(name: str, value: Any) -> None:
    """Raise `ConfigError` unless `name` is a setting and `value` has its type."""
    if name not in _HINTS:
        raise ConfigError(_unknown(name))
    hint = typing.get_args(_HINTS[name])[0]
    if not _fits(value, hint):
        raise ConfigError(f"dynacore.config.{name} takes {_type_text(hint)}, not {value!r}")
    if name == "logs":
        logs.parse(value, "dynacore.config.logs")


def _unknown(name: str) -> str:
    return f"dynacore.config has no setting {name!r}{suggest(name, _HINTS)}"


def _fits(value: Any, hint: Any) -> bool:
    if typing.get_origin(hint) is Literal:
        return value in typing.get_args(hint)
    if isinstance(hint, type):
        return type(value) is hint
    return value is None or callable(value)


def _type_text(hint: Any) -> str:
    if typing.get_origin(hint) is Literal:
        return "one of " + ", ".join(map(repr, typing.get_args(hint)))
    return hint.__name__ if isinstance(hint, type) else "a callable or None"


_lock = threading.RLock()
_HINTS = typing.get_type_hints(Config, include_extras=True)

config = Config()
config.logs = logs.initial
