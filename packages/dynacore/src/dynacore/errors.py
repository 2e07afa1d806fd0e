"""Exceptions that dynacore raises on its own behalf. Errors of the user's program pass through as they are."""

from __future__ import annotations

import difflib
import linecache
from collections.abc import Iterable

from .reasons import BreakSite


class DynacoreError(RuntimeError):
    """Base of every error that dynacore raises."""


class ArgumentError(DynacoreError, TypeError):
    """A function of dynacore was called with an argument that it can't accept."""


class ConfigError(DynacoreError, AttributeError):
    """An unknown setting, or a value of the wrong type, for `dynacore.config`."""


class BackendError(DynacoreError):
    """A backend can't be loaded, raised, or broke the protocol of backends."""


class UnsupportedPython(DynacoreError, ImportError):
    """No version model exists for the running interpreter."""


class UnsupportedTorch(DynacoreError, ImportError):
    """The installed torch is outside the range that is supported."""


class MissingExtension(DynacoreError, ImportError):
    """The C extension `dynacore._C` can't be imported."""


class InternalError(DynacoreError):
    """Capture failed by a fault of its own. Only raised with `config.on_internal_error = "raise"`."""


class RecompileLimitError(DynacoreError):
    """The recompile limit was reached with `config.fail_on_recompile_limit` or `fullgraph=True`."""


class SpecialisedSizeError(DynacoreError):
    """A size that `mark_dynamic` says varies was needed as a constant. `file` and `line` say where."""

    def __init__(self, size: str, value: int, file: str, line: int) -> None:
        super().__init__(
            f"{size} was marked with mark_dynamic, and the program needs it to be {value}\n"
            f'  File "{file}", line {line}\n    {linecache.getline(file, line).strip()}\n'
            "Keep to what works for every size there, or take the mark away: sizes that nobody marked stay what they "
            "are where a program needs that."
        )
        self.size, self.value, self.file, self.line = size, value, file, line


class FullGraphError(DynacoreError):
    """A function compiled with `fullgraph=True` can't be one graph. `breaks` says where and why."""

    def __init__(self, breaks: Iterable[BreakSite]) -> None:
        self.breaks = tuple(breaks)
        super().__init__(self.breaks)

    def __str__(self) -> str:
        lines = ["the function was compiled with fullgraph=True, but it can't be captured as one graph"]
        lines.extend(site.describe() for site in self.breaks)
        lines.append("Without fullgraph=True this line runs as plain Python and the rest stays captured.")
        return "\n".join(lines)


def suggest(name: str, known: Iterable[str]) -> str:
    """How an error about an unknown name goes on: `; did you mean …?` where a known one is close, else a full stop."""
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else "."
