"""`dynacore._C` without the package around it, which would import torch: these tests also run under valgrind."""

import importlib.util
import sys
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "dynacore._C"


def load() -> ModuleType:
    """The extension, imported once for the whole process."""
    if NAME in sys.modules:
        return sys.modules[NAME]
    package = importlib.util.find_spec("dynacore")
    assert package is not None and package.submodule_search_locations is not None
    for folder in package.submodule_search_locations:
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            path = Path(folder, f"_C{suffix}")
            if path.exists():
                loader = ExtensionFileLoader(NAME, str(path))
                spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
                module = importlib.util.module_from_spec(spec)
                loader.exec_module(module)
                sys.modules[NAME] = module
                return module
    raise ImportError("dynacore._C isn't built")


C: Any = load()


def root(*children: tuple, checks: tuple = ()) -> tuple:
    """A guard tree."""
    return ("root", None, checks, -1, children)


def node(accessor: str, key: object = None, *children: tuple, checks: tuple = (), handed: int = -1) -> tuple:
    """A node of a guard tree."""
    return (accessor, key, checks, handed, children)


def args(count: int) -> Any:
    """Guards that always hold and hand over the first `count` items of the state."""
    return C.Guards(root(*(node("arg", i, handed=i) for i in range(count))), count)


def never(state: list) -> None:
    """A fallback that must not run."""
    raise AssertionError(f"the fallback ran with {state}")
