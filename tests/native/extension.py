"""`dynacore._C` without the package around it, which would import torch: these tests also run under valgrind."""

import importlib.machinery
import importlib.util
import os
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "dynacore._C"
SLOWDOWN = int(os.environ.get("NATIVE_SLOWDOWN", "1"))
"""Under valgrind everything takes thirty times as long: the numbers of examples are divided by this."""


def load() -> ModuleType:
    """The extension, loaded once for the whole process."""
    if NAME in sys.modules:
        return sys.modules[NAME]
    package = importlib.util.find_spec("dynacore")
    assert package is not None and package.submodule_search_locations is not None
    for folder in package.submodule_search_locations:
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            path = Path(folder, f"_C{suffix}")
            if path.exists():
                loader = importlib.machinery.ExtensionFileLoader(NAME, str(path))
                spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
                sys.modules[NAME] = module = importlib.util.module_from_spec(spec)
                loader.exec_module(module)
                return module
    raise ImportError("dynacore._C isn't built")


def load_probe() -> ModuleType:
    """`dynacore.guards.probe`, which needs no torch."""
    package = importlib.util.find_spec("dynacore")
    assert package is not None and package.submodule_search_locations is not None
    for folder in package.submodule_search_locations:
        spec = importlib.util.spec_from_file_location("probe", Path(folder, "guards", "probe.py"))
        if spec is not None and spec.loader is not None and Path(folder, "guards", "probe.py").exists():
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise ImportError("dynacore isn't installed")


C: Any = load()
PROBE: Any = load_probe()
WATCHABLE: tuple[bool, bool, bool, bool] = PROBE.find_watchable(C)


def root(*children: tuple, checks: tuple = ()) -> tuple:
    """A guard tree."""
    return ("root", None, checks, -1, children)


def node(accessor: str, key: object = None, *children: tuple, checks: tuple = (), handed: int = -1) -> tuple:
    """A node of a guard tree."""
    return (accessor, key, checks, handed, children)


def take(count: int) -> Any:
    """Guards that always hold and hand over the first `count` items of the state."""
    return C.Guards(root(*(node("arg", i, handed=i) for i in range(count))), count)


def refuse() -> Any:
    """Guards that never hold."""
    return C.Guards(root(node("const", None, checks=(("is_not", None),))), 0)


def never(state: list) -> None:
    """A fallback that must not run."""
    raise AssertionError(f"the fallback ran with {state}")


def rest(function: Any) -> Any:
    """A fallback: `function(state)` is the rest of the frame."""
    return lambda state: partial(function, list(state))


def point(function: Any = None, *, code: Any = None, line: int = 0, count: int | None = None, **entry: Any) -> Any:
    """A point with one entry, whose function gets the first `count` items of the state: one for each parameter."""
    made = C.Point(None, never, code=code, line=line)
    if function is not None:
        made.add(C.Entry(take(function.__code__.co_argcount if count is None else count), function, **entry))
    return made


def compiled(function: Any, body: Any = None) -> Any:
    """`function`, compiled to `body` (to itself by default)."""
    return C.Compiled(function, point(body or function, code=function.__code__))
