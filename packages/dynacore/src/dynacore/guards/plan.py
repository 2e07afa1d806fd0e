"""From the sources of a capture to the guard tree of an entry."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from ..graph.meta import TensorSpec
from ..graph.state import torch_state_checks
from ..sources import Source, This, droppable
from ..torch_api import tensor_checker
from ..torch_types import is_plain
from ..values import Host, Value
from .relations import program
from .twin import Failure, constants_equal, evaluate

#: check -> what it is called where guards are counted
KINDS = {
    "is": "identity", "is_not": "identity", "type": "type", "eq": "value", "len": "length", "keys": "dict keys",
    "has": "dict key", "lacks": "dict key",
    "mro_eq": "base classes", "mro_is": "class attribute", "mro_lacks": "class attribute",
    "func_code": "function", "unbound_cell": "cell", "true": "predicate", "tensor": "tensor",
    "state": "state", "switch": "state", "call0_is": "state",
    "same": "aliasing", "differ": "aliasing", "rel": "relation",
    "ints": "relation",
}  # fmt: skip


def bound(tree: tuple, function: Any) -> tuple:
    """A guard tree with `function` in place of the compiled function that it was made for."""
    *head, children = tree
    return (*head, tuple(("const", function, *c[2:]) if type(c[1]) is This else c for c in children))


class WeakTuple:
    """A tuple that is a key of dicts, with objects in it that aren't kept."""

    def __init__(self, key: tuple[Any, ...]):
        self.parts = [(weakref.ref(part), True) if droppable(part) else (part, False) for part in key]

    def key(self) -> tuple[Any, ...]:
        """The tuple; one that no dict has once an object in it is gone."""
        found = [part() if weakly else part for part, weakly in self.parts]
        gone = any(weakly and part is None for part, (_, weakly) in zip(found, self.parts, strict=True))
        return (self,) if gone else tuple(found)

    def item(self, d: Any) -> Any:
        """What a dict has there; KeyError, which is a miss, where it has nothing."""
        if not self.is_in(d):
            raise KeyError
        return dict.__getitem__(d, self.key())

    def is_in(self, d: Any) -> bool:
        """Whether a dict has it."""
        return dict.__contains__(d, self.key())

    def is_missing(self, d: Any) -> bool:
        """Whether a dict doesn't have it."""
        return not self.is_in(d)


def refers(key: Any) -> bool:
    """Whether a tuple has objects in it that the program may drop."""
    return type(key) is tuple and any(map(droppable, key))


def reached(source: Source) -> tuple[str, Any]:
    """A node's accessor and key; an object that the program may drop is held weakly."""
    if source.accessor == "key" and droppable(source.key):
        return "weak_key", weakref.ref(source.key)
    if source.accessor == "key" and refers(source.key):
        return "call", WeakTuple(source.key).item
    return source.accessor, source.key


def held_weakly(source: Source, name: str, argument: Any) -> tuple[str, Any]:
    """A check; what the program may drop isn't kept by it. What hangs below a constant lives as that does."""
    if name == "keys" and argument and not any(type(key) is weakref.ref for key in argument):
        keys = tuple([weakref.ref(key) if droppable(key) else key for key in argument])
        if any(type(key) is weakref.ref for key in keys):
            return "keys_weak", keys
    elif name == "lacks" and droppable(argument) or name == "is" and droppable(argument) and not source.rooted:
        return f"{name}_weak", weakref.ref(argument)
    elif name in ("has", "lacks") and refers(argument):
        return "true", WeakTuple(argument).is_in if name == "has" else WeakTuple(argument).is_missing
    return name, argument


class Place:
    """Where something was found, to look there again at a miss."""

    __slots__ = ("chain", "expected", "path", "steps", "where")

    def __init__(self, source: Source, expected: Any):
        self.steps = source.steps
        self.where = source.where
        self.path = str(source)
        self.expected = expected
        chain: tuple = (*reached(source), (), 0, ())
        node = source.parent
        while node is not None:
            chain = (*reached(node), (), -1, (chain,))
            node = node.parent
        self.chain = chain

    def look(self, state: list[Any], function: Any) -> list[Any]:
        """What is there now, in a list; nothing where the way doesn't lead there any more."""
        return evaluate(bound(self.chain, function), 1, state)[0] or []


class Facts:
    """What an entry assumes of numbers and tensors, kept to learn from a miss and to tell about it."""

    def __init__(self) -> None:
        self.scalars: list[Place] = []
        self.tensors: list[Place] = []
        self.lines: dict[int, tuple] = {}  # a node's id: code and line that made capture rely on it

    def varied(self, state: list[Any], function: Any) -> list[tuple]:
        """The steps to numbers and sizes that are others now, in a call of `function`."""
        found = [
            place.steps
            for place in self.scalars
            for now in place.look(state, function)
            if type(now) is type(place.expected) and not constants_equal(now, place.expected)
        ]
        for place in self.tensors:
            for now in place.look(state, function):
                found += place.expected.varied(place.steps, now)
        return found

    def miss(
        self, tree: tuple, n_handed: int, state: list[Any], names: tuple[str, ...], function: Any
    ) -> Failure | None:
        """Why the guards `tree` fail; None where they hold."""
        failure = evaluate(bound(tree, function), n_handed, state, names)[1]
        if failure is None:
            return None
        if failure.name in ("shape", "tensor", "tensors", "tensors_any_grad"):
            return self.other_tensor(state, function)
        return replace(failure, where=file_and_line(self.lines.get(id(failure.node))))

    def other_tensor(self, state: list[Any], function: Any) -> Failure | None:
        """The first tensor whose metadata differ."""
        for place in self.tensors:
            for now in place.look(state, function):
                cls = type(now)
                found = place.expected.described(TensorSpec(now)) if is_plain(cls) else f"a {cls.__qualname__}"
                if found != repr(place.expected):
                    where = file_and_line(place.where)
                    return Failure(place.path, repr(place.expected), found, "tensor", where=where)
        return None


def file_and_line(where: tuple[Any, int] | None) -> tuple[str, int] | None:
    """The place of an instruction, which sources know by its code."""
    return (where[0].co_filename, where[1]) if where is not None else None


def without_grad(tensor: Any) -> Any:
    """One like it that requires no gradient; itself if it is of another class."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or not tensor.requires_grad:
        return tensor
    bare = tensor.detach()
    return torch.nn.Parameter(bare, requires_grad=False) if type(tensor) is torch.nn.Parameter else bare


def any_grad_checker(specs: list[TensorSpec]) -> Callable[..., bool]:
    """As `tensor_checker`, whether or not the tensors require a gradient."""
    examples = [spec.example for spec in specs]
    as_they_were = tensor_checker(specs)
    for spec, example in zip(specs, examples, strict=True):
        spec.example = without_grad(example)
        spec.requires_grad = spec.example.requires_grad or None
    bare = tensor_checker(specs)

    def check(*tensors: Any) -> bool:
        return as_they_were(*tensors) or bare(*map(without_grad, tensors))

    return check


class Plan:
    """Lays out the tree: which object is handed at which index, and what is checked where."""

    def __init__(self, root: Source, handed: list[Source], relations: list[tuple], any_grad: bool = False):
        self.index = {id(source): i for i, source in enumerate(handed)}
        self.handed = list(handed)
        self.tensors: list[Any] = []
        self.kinds: dict[str, int] = {}
        self.facts = Facts()
        self.constraints: list[str] = []
        self.relations = self.relation_checks(relations)
        children = tuple(node for node in (self.node(child) for child in root.children.values()) if node is not None)
        checks: list[tuple] = [("state", pair) for pair in torch_state_checks()]
        checks += root.checks.values()
        for name, _ in root.checks.values():
            self.count(name)
        if self.tensors:
            checks.append(("tensors_any_grad", any_grad_checker(self.tensors)) if any_grad else
                          ("tensors", tensor_checker(self.tensors)))  # fmt: skip
        checks += self.relations
        self.tree = ("root", None, tuple(checks), -1, children)

    def count(self, check: str) -> None:
        """Count a guard."""
        kind = KINDS[check]
        self.kinds[kind] = self.kinds.get(kind, 0) + 1

    def hand(self, source: Source) -> int:
        """The index of a handed object."""
        at = self.index.get(id(source))
        if at is None:
            at = self.index[id(source)] = len(self.handed)
            self.handed.append(source)
        return at

    def relation_checks(self, relations: list[tuple]) -> list[tuple]:
        """Checks on several handed objects at once, each one only once."""
        checks: dict[tuple, tuple] = {}
        for kind, a, b in relations:
            if kind in ("same", "differ"):
                mark: tuple = (kind, id(a), id(b))
                check: tuple = (kind, (self.hand(a), self.hand(b)))
            else:
                found = program(a, b)
                if found is not None:
                    steps, leaves = found
                    kind = "ints"
                    mark = (kind, steps, tuple(id(leaf) for leaf in leaves))
                    check = (kind, (steps, tuple(self.hand(leaf) for leaf in leaves)))
                    self.constraints.append(steps.text)
                    if mark not in checks:
                        checks[mark] = check
                        self.count(kind)
                    continue
                text, leaves = render(a)
                mark = (kind, text, repr(b), tuple(id(leaf) for leaf in leaves))
                check = ("rel", (condition(text, len(leaves), b), tuple(self.hand(leaf) for leaf in leaves)))
            if mark not in checks:
                checks[mark] = check
                self.count(kind)
        return list(checks.values())

    def node(self, source: Source) -> tuple | None:
        """The tuple of one source, or None when nothing below it matters."""
        children = tuple(node for node in map(self.node, source.children.values()) if node is not None)
        checks: list[tuple[str, Any]] = []
        for name, argument in source.checks.values():
            self.count(name)
            if name == "eq" and type(argument) in (int, float):
                self.facts.scalars.append(Place(source, argument))
            if name == "tensor":
                if source.steps[0][0] == "arg":  # the likeliest to differ is looked at before anything else
                    checks.append(("shape", tuple(argument.shape)))
                checks.append(("tensor", len(self.tensors)))
                self.tensors.append(argument)
                self.facts.tensors.append(Place(source, argument))
            elif name == "has" and droppable(argument):
                children = (*children, ("weak_key", weakref.ref(argument), (), -1, ()))
            else:
                checks.append(held_weakly(source, name, argument))
        handed = self.index.get(id(source), -1)
        if not children and not checks and handed < 0:
            return None
        node = (*reached(source), tuple(checks), handed, children)
        if checks and source.where is not None:
            self.facts.lines[id(node)] = source.where
        return node


def render(value: Value) -> tuple[str, list[Source]]:
    """A host expression over the names a0, a1, … and the sources behind them."""
    leaves: list[Source] = []

    def text(v: Any) -> str:
        if type(v) is not Host:
            return repr(v.value)
        if v.source is None:
            return v.text.format(*map(text, v.operands))
        if v.source not in leaves:
            leaves.append(v.source)
        return f"a{leaves.index(v.source)}"

    return text(value), leaves


def condition(text: str, n: int, outcome: Any) -> Any:
    """A predicate that holds when the expression has the value it had."""
    arguments = ", ".join(f"a{i}" for i in range(n))
    holds = {True: text, False: f"not {text}"}[outcome] if type(outcome) is bool else f"{text} == {outcome!r}"
    return eval(f"lambda {arguments}: {holds}", {"nan": math.nan, "inf": math.inf, "math": math})
