"""What dynacore says through `logging`: one logger `dynacore.<artifact>` per kind of text, chosen by name.

Choose with the environment variable `DYNACORE_LOGS=graph_breaks,recompiles` or with `dynacore.config.logs`.
Warnings are always on.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import types

from .errors import ConfigError, suggest
from .reasons import BreakSite

ENVIRONMENT_VARIABLE = "DYNACORE_LOGS"

ARTIFACTS = {
    "graph_breaks": "each break once: place, source line, reason, what to do about it",
    "guards": "the guards of every entry",
    "dynamic": "sizes that are kept open, and those that are taken as they are, with what needs that",
    "recompiles": "each recompilation, with the guard that failed and both values",
    "graph": "every captured graph as readable code",
    "bytecode": "the neutral instructions of every code object",
    "source": "the Python source emitted for every entry",
}

_logger = logging.getLogger("dynacore")
_lock = threading.Lock()
_chosen = types.SimpleNamespace(artifacts=frozenset())
_seen: set[object] = set()


class _Stderr(logging.StreamHandler):
    """Writes to the current `sys.stderr`, unless the application has set up logging itself."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(logging.Formatter("[%(name)s] %(message)s"))

    @property
    def stream(self):
        return sys.stderr

    def filter(self, record: logging.LogRecord):
        return not logging.getLogger().handlers and super().filter(record)


def parse(text: str, where: str) -> frozenset[str]:
    """The artifact names in a comma-separated list; `all` stands for every one of them."""
    names = frozenset(name.strip() for name in text.split(",")) - {""}
    if "all" in names:
        return frozenset(ARTIFACTS)
    for name in sorted(names - ARTIFACTS.keys()):
        known = ", ".join(ARTIFACTS)
        raise ConfigError(f"{where}: no log artifact {name!r}{suggest(name, ARTIFACTS)} Known: {known}, all")
    return names


def select(names: frozenset[str]) -> None:
    """Turn exactly these artifacts on."""
    for name in ARTIFACTS:
        logging.getLogger(f"dynacore.{name}").setLevel(logging.INFO if name in names else logging.NOTSET)
    _chosen.artifacts = names


def enabled(artifact: str) -> bool:
    """Whether text for this artifact is wanted; ask before building it."""
    return artifact in _chosen.artifacts


def emit(artifact: str, text: str) -> None:
    """Log `text` if the artifact is on."""
    if artifact in _chosen.artifacts:
        logging.getLogger(f"dynacore.{artifact}").info("%s", text)


def emit_break(site: BreakSite) -> None:
    """Log a break, each (file, line, code) once."""
    if "graph_breaks" in _chosen.artifacts and _first((site.file, site.line, site.code)):
        emit("graph_breaks", site.describe())


def warn(text: str) -> None:
    """A warning, shown whatever artifacts are chosen."""
    _logger.warning("%s", text)


def warn_once(key: object, text: str) -> None:
    """A warning that is shown once for each `key`."""
    if _first(("warning", key)):
        warn(text)


def _first(key: object) -> bool:
    with _lock:
        if key in _seen:
            return False
        _seen.add(key)
        return True


def reset() -> None:
    """Forget what was already said, so that it is said again."""
    with _lock:
        _seen.clear()


_logger.addHandler(_Stderr())
initial = os.environ.get(ENVIRONMENT_VARIABLE, "")
select(parse(initial, ENVIRONMENT_VARIABLE))
