"""What dynacore needs around it: a supported CPython, a supported torch and its own C extension. Checked at first use.

Not at import: `config.on_unsupported_python = "eager"` must be settable first.
"""

from __future__ import annotations

import functools
import importlib
import platform
import sysconfig
from types import ModuleType

from . import logs
from .config import config
from .errors import MissingExtension, UnsupportedPython, UnsupportedTorch

OLDEST_TORCH = (2, 11)
NEWEST_TORCH = (2, 15)


def ready() -> bool:
    """Whether programs can be captured here. Raises where they can't, unless the settings say to run them eagerly."""
    try:
        _check()
    except UnsupportedPython as error:
        if config.on_unsupported_python == "raise":
            raise
        logs.warn_once("unsupported Python", f"{error} Functions run uncompiled.")
        return False
    return True


@functools.cache
def _check() -> None:
    check_python()
    check_torch()
    extension()


def check_python() -> None:
    """Raise `UnsupportedPython` where there is no model of the running interpreter's bytecode, or no lock."""
    import bytecode_models

    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise _unsupported_python("dynacore needs the global interpreter lock, and this is a free-threaded build")
    try:
        bytecode_models.current()
    except bytecode_models.UnsupportedVersion as error:
        raise _unsupported_python(str(error)) from error


def _unsupported_python(why: str) -> UnsupportedPython:
    return UnsupportedPython(
        f"dynacore can't capture under {platform.python_implementation()} {platform.python_version()}: {why}. "
        'Use a supported one, or set dynacore.config.on_unsupported_python = "eager" to run everything uncompiled.'
    )


def check_torch() -> None:
    """Raise `UnsupportedTorch` where the installed torch is outside the supported range."""
    import torch

    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if OLDEST_TORCH <= version <= NEWEST_TORCH or config.allow_untested_torch:
        return
    oldest, newest = (".".join(map(str, bound)) for bound in (OLDEST_TORCH, NEWEST_TORCH))
    raise UnsupportedTorch(
        f"torch {torch.__version__} isn't supported by this release of dynacore, which was tested with torch {oldest} "
        f"to {newest}. Install one of those, or set dynacore.config.allow_untested_torch = True to try."
    )


@functools.cache
def extension() -> ModuleType:
    """The C extension `dynacore._C`; raises `MissingExtension` with the remedy."""
    try:
        return importlib.import_module("dynacore._C")
    except ImportError as error:
        raise MissingExtension(
            f"the C extension dynacore._C can't be imported ({error}). Reinstall dynacore with this interpreter: "
            "`python -m pip install --force-reinstall dynacore`, or `python -m pip install -e packages/dynacore` in a "
            "checkout (a C compiler and Python's headers are needed to build it)."
        ) from error
