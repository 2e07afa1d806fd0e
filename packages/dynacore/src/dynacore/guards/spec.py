"""The format of guard trees, which `dynacore._C.Guards` and `dynacore.guards.twin` both evaluate.

A node is `(accessor, key, checks, handed, children)`: the accessor and its key lead from the parent's object to the
node's, every check `(name, argument)` must hold of that object, and `handed` is its index among the objects that the
entry's function gets, or -1. The root is `("root", None, checks, -1, children)`; its children start from the state or
from objects known at capture, all others continue from their parent.
"""

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple
from weakref import ref

from .relations import is_program

Check = tuple[str, Any]
Node = tuple[str, Any, tuple[Check, ...], int, tuple[Any, ...]]


class Kind(NamedTuple):
    """What an accessor's key or a check's argument is, and what the accessor gives or when the check holds."""

    argument: str
    doc: str
    slow: bool = False
    """Calls Python code, whose cost isn't ours."""


ROOT = "root"
FUNC_FIELDS = ("code", "defaults", "kwdefaults", "closure", "globals", "dict")
METHOD_FIELDS = ("self", "func")

STARTS: dict[str, Kind] = {
    "arg": Kind("index", "the state's item"),
    "const": Kind("object", "that object, held strongly"),
    "weak": Kind("weakref", "the referent; when it is dead the entry is invalid"),
}
"""Accessors of the root's children."""

STEPS: dict[str, Kind] = {
    "attr": Kind("name", "getattr(o, name): last resort", slow=True),
    "dict": Kind("none", "the instance dict, whatever `__dict__` the class defines; not for types"),
    "key": Kind("object", "a dict's item, without `__missing__`"),
    "weak_key": Kind("weakref", "a dict's item at the referent; when that is dead the entry is invalid"),
    "item": Kind("index", "a list's or tuple's item"),
    "type": Kind("none", "type(o)"),
    "mro": Kind("name", "what the type o or its bases define under that name, unbound"),
    "cell": Kind("none", "a cell's contents; empty is a miss"),
    "func": Kind("func_field", "a function's field, None where there is none"),
    "method": Kind("method_field", "a bound method's object or function"),
    "slot": Kind("name", "object.__getattribute__(o, name)"),
    "call": Kind("object", "key(o), a pure function", slow=True),
}
"""Accessors of all other nodes."""

CHECKS: dict[str, Kind] = {
    "is": Kind("object", "it is that object"),
    "is_not": Kind("object", "it isn't that object"),
    "type": Kind("type", "its type is that one, not a subclass"),
    "eq": Kind("object", "same type and value; floats by their bits, tuples and frozensets item by item"),
    "len": Kind("index", "a list, tuple, dict or set of that length"),
    "keys": Kind("tuple", "a dict with exactly these keys in this order"),
    "has": Kind("object", "a dict with that key"),
    "lacks": Kind("object", "a dict without that key"),
    "mro_eq": Kind("tuple", "a type with exactly these classes as its MRO"),
    "mro_is": Kind("pair", "(name, object): a type whose MRO gives that object for the name"),
    "mro_lacks": Kind("name", "a type whose MRO has nothing for the name"),
    "func_code": Kind("object", "a function with that code"),
    "unbound_cell": Kind("none", "an empty cell"),
    "is_weak": Kind("weakref", "it is the referent; when that is dead the entry is invalid"),
    "lacks_weak": Kind("weakref", "a dict without the referent as a key; when that is dead the entry is invalid"),
    "keys_weak": Kind("tuple", "as `keys`, of no OrderedDict; weakrefs stand for their referents"),
    "true": Kind("object", "bool(argument(o))", slow=True),
    "shape": Kind("tuple", "a tensor's sizes, None for any; it comes before `tensor` and only saves asking that"),
    "tensor": Kind("index", "its place in the batch that the root's `tensors` checks"),
}
"""Checks of all nodes but the root."""

ROOT_CHECKS: dict[str, Kind] = {
    "state": Kind("pair", "(callable, object): callable() equals the object, and says something of torch's state"),
    "switch": Kind("pair", "the same of a switch between kernels"),
    "call0_is": Kind("pair", "(callable, object): callable() equals the object; tested first", slow=True),
    "tensors": Kind("object", "argument(*batch); tested after all other nodes"),
    "tensors_any_grad": Kind("object", "the same, where it says nothing of `requires_grad`"),
    "same": Kind("handed", "two handed objects are one"),
    "differ": Kind("handed", "two handed objects are not one"),
    "ints": Kind("program", "(program, handed indexes): see `guards.relations`"),
    "rel": Kind("relation", "(callable, handed indexes): bool(callable(*handed)); tested last", slow=True),
}
"""Checks of the root."""


def _is_index(value: object) -> bool:
    return type(value) is int and 0 <= value <= sys.maxsize


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def _fits(kind: Kind, value: Any, n_handed: int) -> bool:
    match kind.argument:
        case "none":
            return value is None
        case "index":
            return _is_index(value)
        case "name":
            return type(value) is str
        case "type":
            return isinstance(value, type)
        case "tuple":
            return isinstance(value, tuple)
        case "weakref":
            return type(value) is ref
        case "func_field":
            return value in FUNC_FIELDS
        case "method_field":
            return value in METHOD_FIELDS
        case "pair":
            return _is_pair(value)
        case "handed":
            return _is_pair(value) and all(_is_index(index) and index < n_handed for index in value)
        case "program":
            return (
                _is_pair(value)
                and isinstance(value[0], tuple)
                and all(_is_index(index) and index < n_handed for index in value[1])
                and is_program(value[0], len(value[1]))
            )
        case "relation":
            return _is_pair(value) and all(_is_index(index) and index < n_handed for index in value[1])
    return True


def walk(tree: Node) -> Iterator[Node]:
    """Every node, parents first."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(node[4]))


def slow_count(tree: Node) -> int:
    """How many accessors and checks call Python code."""
    slow = {name for table in (STEPS, CHECKS, ROOT_CHECKS) for name, kind in table.items() if kind.slow}
    return sum((node[0] in slow) + sum(name in slow for name, _ in node[2]) for node in walk(tree))


def _validate_node(node: Node, accessors: dict[str, Kind], checks: dict[str, Kind], n_handed: int) -> None:
    accessor, key, node_checks, handed, _ = node
    if accessor not in accessors:
        raise ValueError(f"unknown or misplaced accessor {accessor!r}")
    if not _fits(accessors[accessor], key, n_handed):
        raise ValueError(f"accessor {accessor!r} needs {accessors[accessor].argument} as its key, not {key!r}")
    if not (handed == -1 or (_is_index(handed) and handed < n_handed)):
        raise ValueError(f"no such handed object: {handed!r}")
    for name, argument in node_checks:
        if name not in checks:
            raise ValueError(f"unknown or misplaced check {name!r}")
        if name != "unbound_cell" and not _fits(checks[name], argument, n_handed):
            raise ValueError(f"check {name!r} needs {checks[name].argument} as its argument, not {argument!r}")


def _validate_numbers(tree: Node, n_handed: int) -> None:
    handed = sorted(node[3] for node in walk(tree) if node[3] != -1)
    if handed != list(range(n_handed)):
        raise ValueError(f"the handed objects must be 0 to {n_handed - 1}, once each, not {handed}")
    batch = sorted(argument for node in walk(tree) for name, argument in node[2] if name == "tensor")
    if batch != list(range(len(batch))):
        raise ValueError(f"the batch of tensors must be numbered without gaps, not {batch}")
    if bool(batch) != any(name.startswith("tensors") for name, _ in tree[2]):
        raise ValueError("a batch of tensors needs a checker on the root, and the checker a batch")


def _is_node(node: object) -> bool:
    return isinstance(node, tuple) and len(node) == 5 and isinstance(node[2], tuple) and isinstance(node[4], tuple)


def validate(tree: Node, n_handed: int) -> None:
    """Raise ValueError where `Guards` would refuse the tree; for messages and tests."""
    for node in walk(tree):
        if not _is_node(node):
            raise ValueError(f"a node is (accessor, key, checks, handed, children), not {node!r}")
        if not all(_is_pair(check) for check in node[2]):
            raise ValueError(f"a check is (name, argument): {node[2]!r}")
    if tree[0] != ROOT or tree[1] is not None or tree[3] != -1:
        raise ValueError("the root is ('root', None, checks, -1, children)")
    _validate_node(tree, {ROOT: Kind("none", "")}, ROOT_CHECKS, n_handed)
    for start in tree[4]:
        _validate_node(start, STARTS, CHECKS, n_handed)
        for child in start[4]:
            for node in walk(child):
                _validate_node(node, STEPS, CHECKS, n_handed)
    _validate_numbers(tree, n_handed)
