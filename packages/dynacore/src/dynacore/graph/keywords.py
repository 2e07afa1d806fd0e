"""Keyword arguments as rules take them: what torch's name of a parameter says becomes a position."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from .ops import overloads


def positional(rule: Callable[..., Any], call: Any, args: list[Any], named: dict[str, Any]) -> tuple[list, dict]:
    """The arguments of an operation for a rule that has other names for its parameters than torch has."""
    if not named or fits(rule, args, named):
        return args, named
    for names, all_names in parameters(call.target, call.name):
        if named.keys() <= all_names:
            rest, given = dict(named), list(args)
            for name in names[len(args) :]:
                if name not in rest:
                    break
                given.append(rest.pop(name))
            return given, rest
    return args, named


def fits(rule: Callable[..., Any], args: list[Any], named: dict[str, Any]) -> bool:
    """Whether a rule takes the arguments as they are."""
    try:
        signature(rule).bind(*args, **named)
    except TypeError:
        return False
    return True


signature = functools.cache(inspect.signature)


@functools.cache
def parameters(target: Callable[..., Any], name: str) -> list[tuple[list[str], set[str]]]:
    """For each form of an operation the names of its parameters that may be given by position, and of all."""
    if type(target) is types.FunctionType:
        names = list(inspect.signature(target).parameters)
        return [(names, set(names))]
    forms = [overload._schema.arguments for overload in overloads(name)]
    return [([renamed(a.name) for a in form if not a.kwarg_only], {renamed(a.name) for a in form}) for form in forms]


def renamed(name: str) -> str:
    """What a parameter is called in Python."""
    return "input" if name == "self" else name


__all__ = ["positional"]
