"""What dynacore needs around it: a supported CPython, a supported torch and its own C extension. Checked at first use.

Not at import: `config.on_unsupported_python = "eager"` must be settable first.
"""

from __future__ import annotations

import importlib
import platform
from types import ModuleType

from . import logs
from .config import config
from .errors import MissingExtension, UnsupportedPython, UnsupportedTorch

OLDEST_TORCH = (2, 11)
NEWEST_TORCH = (2, 15)

_checked = False


def ready() -> bool:
    """Whether programs can be captured here. Raises where they can't, unless the settings say to run them eagerly."""
    global _checked
    if not _checked:
        if not _python_supported():
            return False
        check_torch()
        extension()
        _checked = True
    return True


def _python_supported() -> bool:
    from bytecode_models import UnsupportedVersion, current

    try:
        current()
    except UnsupportedVersion as error:
        text = f"dynacore has no model of {platform.python_implementation()} {platform.python_version()}: {error}"
        if config.on_unsupported_python == "raise":
            way_out = 'Use a supported CPython, or set dynacore.config.on_unsupported_python = "eager"'
            raise UnsupportedPython(f"{text}. {way_out} to run programs uncompiled.") from error
        logs.warn_once("unsupported-python", f"{text}. Functions run uncompiled.")
        return False
    return True


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
