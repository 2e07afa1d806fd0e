"""What one call of `dynacore.compile` asked for, checked and resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from .backends import Backend, resolve
from .errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of `dynacore.compile`. `backend` is resolved and has `mode` and `options` applied."""

    backend: Backend = field(compare=False)
    backend_name: str
    fullgraph: bool = False
    dynamic: bool | None = None
    mode: str | None = None
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    requested: Backend | str = "eager"
    """What was given as `backend`."""

    @property
    def key(self) -> tuple:
        """What tells options apart. A backend that is no name counts by its identity."""
        backend = self.requested if isinstance(self.requested, str) else id(self.requested)
        given = tuple((name, repr(value)) for name, value in self.options.items())
        return (backend, self.fullgraph, self.dynamic, self.mode, given)

    def __reduce__(self) -> Any:
        arguments = (self.requested, self.fullgraph, self.dynamic, self.mode, dict(self.options))
        return make_options, arguments


def make_options(
    backend: Backend | str,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Options:
    """Check every argument and resolve the backend. Raises before anything has changed."""
    if not isinstance(fullgraph, bool):
        raise ArgumentError(f"dynacore.compile(fullgraph=...): give True or False, not {fullgraph!r}")
    if dynamic is not None and not isinstance(dynamic, bool):
        raise ArgumentError(f"dynacore.compile(dynamic=...): give True, False or None, not {dynamic!r}")
    given = MappingProxyType(dict(_checked_options(options)))
    name, resolved = resolve(backend, mode, given, dynamic)
    return Options(resolved, name, fullgraph, dynamic, mode, given, backend)


def _checked_options(options: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise ArgumentError(f"dynacore.compile(options=...): give a dict with names as keys, not {options!r}")
    return options
