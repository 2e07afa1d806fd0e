"""What goes wrong in this package, and how it is said once."""

from __future__ import annotations

from dynacore.errors import BackendError


class BackendUnavailable(BackendError):
    """This backend was asked to compile where it can't."""


class Unsupported(Exception):
    """A graph, or a part of it, that this backend leaves to ATen. The text says what."""


class CompileFailure(BackendError):
    """A kernel that Triton's compiler refuses."""
