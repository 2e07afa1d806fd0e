"""What captures at a function's start gave, shared by all functions with the same code.

Ten lambdas made by one line, or the calls of 32 equal layers, differ in their closures and defaults only. Each has its
own entries, whose guards start from that function; but the graph and the emitted function behind them are captured
once. A function that has no entry for a call first tries what was captured for the others: it holds where its guards
do.
"""

from __future__ import annotations

import inspect
import sys
import types
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from . import _C
from .config import config
from .guards.plan import Facts, bound
from .marks import allowed_count
from .objects.wrapping import is_heap
from .shims import is_shim
from .sources import This

KEPT = 256
"""How many owners whose functions are all gone are kept for the next function of their code."""


def conditions() -> tuple:
    """What a capture depends on beyond its function and its call."""
    settings = tuple((name, value) for name, value in config.as_dict().items() if name != "logs")
    return (*settings, allowed_count())


@dataclass(frozen=True, slots=True, eq=False)
class Artifact:
    """One capture's entry, except for the function that its guards start from."""

    tree: tuple
    n_handed: int
    function: types.FunctionType
    boxed: bool
    facts: Facts
    conditions: tuple

    def guards(self, function: Any) -> Any:
        """The guards of an entry of `function`."""
        return _C.Guards(bound(self.tree, function), self.n_handed)

    def entry(self, guards: Any) -> Any:
        """An entry with these guards."""
        return _C.Entry(guards, self.function, boxed=self.boxed, data=self)

    def portable(self) -> bool:
        """Whether functions that don't exist yet may fit: nothing in the guards would die but for them."""
        return all(importable(obj) for obj in identities(self.tree))


def identities(tree: tuple) -> list[Any]:
    """The objects that a guard tree refers to."""
    accessor, key, checks, _handed, children = tree
    found = [key] if accessor in ("const", "weak", "weak_key") and type(key) is not This else []
    found += [argument for name, argument in checks if name in ("is", "func_code", "type", "is_weak", "lacks_weak")]
    found += [cls for name, argument in checks if name == "mro_eq" for cls in argument]
    return found + [obj for child in children for obj in identities(child)]


def importable(obj: Any) -> bool:
    """Whether a module that is loaded keeps the object alive."""
    if type(obj) is types.CodeType:
        return True  # compared only; it refers to constants
    if type(obj) is types.ModuleType:
        obj = vars(obj)
    if type(obj) is dict:
        return getattr(sys.modules.get(obj.get("__name__", "")), "__dict__", None) is obj
    if isinstance(obj, type) and not is_heap(obj):
        return True
    found: Any = sys.modules.get(getattr(obj, "__module__", None) or "builtins")
    if type(obj) is types.BuiltinFunctionType and getattr(found, obj.__name__, None) is obj:
        return True  # its qualified name may tell of an object that it is bound to
    for name in str(getattr(obj, "__qualname__", "")).split("."):
        found = getattr(found, name, None)
    return found is obj


def lives_on(code: types.CodeType, namespace: dict) -> bool:
    """Whether a loaded module keeps the code alive, as a constant of one of its functions, when no function has it."""
    if is_shim(code):
        return True
    top, *_ = code.co_qualname.split(".<locals>")
    found: Any = importable(namespace) and namespace.get(top.split(".")[0])
    for name in top.split(".")[1:]:
        found = getattr(found, name, None)
    todo = [getattr(inspect.unwrap(found), "__code__", None)] if callable(found) else []
    while todo:
        one = todo.pop()
        if one is code:
            return True
        todo += [constant for constant in getattr(one, "co_consts", ()) if type(constant) is types.CodeType]
    return False


class Registry:
    """The owners by what they own: found again as long as a function uses them, and a while after that."""

    def __init__(self) -> None:
        self.owners: weakref.WeakValueDictionary[tuple, Any] = weakref.WeakValueDictionary()
        self.kept: OrderedDict[int, Any] = OrderedDict()

    def get(self, key: tuple) -> Any:
        """The owner under `key`, or None."""
        return self.owners.get(key)

    def keep(self, owner: Any) -> None:
        """Hold this owner until `KEPT` others were kept later, even if no function uses it."""
        self.kept[id(owner)] = owner
        self.kept.move_to_end(id(owner))
        if len(self.kept) > KEPT:
            self.kept.popitem(last=False)

    def drop(self, owner: Any) -> None:
        """Let this owner end with its last function."""
        self.kept.pop(id(owner), None)

    def clear(self) -> None:
        """Forget all: functions compiled from now on share with none before."""
        self.owners.clear()
        self.kept.clear()
