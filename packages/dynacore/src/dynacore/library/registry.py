"""The tables of what the machine knows about callables written in C, and the decorators that fill them.

* a *rule* computes the result of a call on values: `@rule(list.append)`, called as `rule(machine, *args, **kwargs)`;
* a *polyfill* is the same algorithm in Python, run by the machine as an ordinary frame: `@polyfill(sum)`. For a class
  (`zip`) it is a class with `__next__` in Python and `rebuild`, the text that makes the real object of its attributes;
* a *pure* callable is simply called when all its arguments are constants.

Keys are the callables themselves, by identity. Python functions may have rules and polyfills too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RULES: dict[int, Callable] = {}
POLYFILLS: dict[int, Any] = {}
PURE: set[int] = set()
#: polyfill class -> the C class that it stands for, and back
STANDS_FOR: dict[type, type] = {}
_keep: list[Any] = []  # ids stay valid while the objects live


def rule(*callables: Any) -> Callable[[Callable], Callable]:
    """Register the function as the rule of `callables`."""

    def register(function: Callable) -> Callable:
        for target in callables:
            RULES[id(target)] = function
            _keep.append(target)
        return function

    return register


def polyfill(*callables: Any) -> Callable[[Any], Any]:
    """Register a Python function (or class) as the algorithm of `callables`."""

    def register(replacement: Any) -> Any:
        for target in callables:
            POLYFILLS[id(target)] = replacement
            _keep.append(target)
            if isinstance(replacement, type):
                STANDS_FOR[replacement] = target
        return replacement

    return register


def pure(*callables: Any) -> None:
    """Declare that the callables have no effects and depend on their arguments alone."""
    for target in callables:
        PURE.add(id(target))
        _keep.append(target)
