"""The guard tree in plain Python: the oracle of the C walk, and the one that can say why an entry missed."""

import struct
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import CellType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType
from typing import Any

from ..sources import name_of
from ..torch_types import is_plain
from .relations import holds as relation_holds
from .spec import Node

_CONSTANTS = (type(None), type(Ellipsis), bool, int, str, bytes, float, complex)


@dataclass(frozen=True)
class Failure:
    """The first guard that didn't hold, as text."""

    path: str
    """Where the object was found, in Python's notation."""
    check: str
    """What was expected of it."""
    seen: str
    """What was there."""
    name: str = ""
    """The check's name in `spec`."""
    node: Node | None = None
    """The node of the tree that it belongs to."""
    where: tuple[str, int] | None = None
    """File and line of the instruction that made capture rely on it, where that was asked for."""

    def __str__(self) -> str:
        return f"{self.path}: expected {self.check}, found {self.seen}"


class _Missed(Exception):
    """Ends the evaluation."""

    def __init__(self, path: str, check: str, seen: str, name: str = "", node: Node | None = None) -> None:
        self.failure = Failure(path, check, seen, name, node)


_ABSENT = object()


def is_constant(value: Any) -> bool:
    """Whether equality of `value` can be decided for good, without running its code."""
    if type(value) in (tuple, frozenset):
        return all(map(is_constant, value))
    return type(value) in _CONSTANTS


def constants_equal(left: Any, right: Any) -> bool:
    """Same type and value: 1 isn't True, 0.0 isn't -0.0, and a NaN equals itself."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    match left:
        case float():
            return struct.pack("d", left) == struct.pack("d", right)
        case complex():
            return struct.pack("dd", left.real, left.imag) == struct.pack("dd", right.real, right.imag)
    if type(left) is tuple:
        return len(left) == len(right) and all(map(constants_equal, left, right))
    if type(left) is frozenset:
        return len(left) == len(right) and all(any(constants_equal(a, b) for b in right) for a in left)
    return bool(left == right)


def _mro(cls: type) -> tuple[type, ...]:
    return type.__dict__["__mro__"].__get__(cls)  # whatever its metaclass says


def look_up_in_mro(cls: type, name: str) -> Any:
    """What `_PyType_Lookup` finds: unbound, the metaclass ignored."""
    for base in _mro(cls):
        namespace = type.__dict__["__dict__"].__get__(base)
        if name in namespace:
            return namespace[name]
    return _ABSENT


def instance_dict(obj: object) -> Any:
    """The dict that attributes are stored in, whatever `__dict__` the class defines."""
    for base in _mro(type(obj)):
        descriptor = type.__dict__["__dict__"].__get__(base).get("__dict__")
        if type(descriptor) in (GetSetDescriptorType, MemberDescriptorType):
            return descriptor.__get__(obj)
    return _ABSENT


def _has_base(obj: object, *bases: type) -> bool:
    return issubclass(type(obj), bases)  # isinstance would ask obj.__class__


def _dict_of(obj: object) -> Any:
    return _ABSENT if _has_base(obj, type) else instance_dict(obj)


def _dict_item(obj: Any, key: Any) -> Any:
    return dict.get(obj, key, _ABSENT) if _has_base(obj, dict) else _ABSENT


def _weak_item(obj: Any, key: Any) -> Any:
    return _ABSENT if key() is None else _dict_item(obj, key())


def _sequence_item(obj: Any, index: int) -> Any:
    for base in (list, tuple):
        if _has_base(obj, base) and index < base.__len__(obj):
            return base.__getitem__(obj, index)
    return _ABSENT


def _cell_contents(obj: Any, _: None) -> Any:
    try:
        return obj.cell_contents if type(obj) is CellType else _ABSENT
    except ValueError:
        return _ABSENT


def _func_field(obj: Any, field: str) -> Any:
    return getattr(obj, f"__{field}__") if type(obj) is FunctionType else _ABSENT


def _method_field(obj: Any, field: str) -> Any:
    return getattr(obj, f"__{field}__") if type(obj) is MethodType else _ABSENT


_STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "attr": getattr,
    "dict": lambda obj, _: _dict_of(obj),
    "key": _dict_item,
    "weak_key": _weak_item,
    "item": _sequence_item,
    "type": lambda obj, _: type(obj),
    "mro": lambda obj, name: look_up_in_mro(obj, name) if _has_base(obj, type) else _ABSENT,
    "cell": _cell_contents,
    "func": _func_field,
    "method": _method_field,
    "slot": object.__getattribute__,
    "call": lambda obj, function: function(obj),
}


def _length(obj: Any) -> int | None:
    for base in (list, tuple, dict, set, frozenset):
        if _has_base(obj, base):
            return base.__len__(obj)
    return None


def _keys(obj: Any) -> list[Any] | None:
    if not _has_base(obj, dict):
        return None
    return list(OrderedDict.__iter__(obj) if _has_base(obj, OrderedDict) else dict.__iter__(obj))


def _same_keys(obj: Any, keys: tuple[Any, ...]) -> bool:
    found = _keys(obj)
    return found is not None and len(found) == len(keys) and all(map(_same_key, keys, found))


def _same_weak_keys(obj: Any, keys: tuple[Any, ...]) -> bool:
    return not _has_base(obj, OrderedDict) and _same_keys(obj, tuple(map(referent, keys)))


def referent(key: Any) -> Any:
    """What a weakref stands for; itself, if it is something else, or what nothing is if that is gone."""
    return key if type(key) is not weakref.ref else _ABSENT if key() is None else key()


def _same_key(expected: Any, found: Any) -> bool:
    return expected is found or (is_constant(expected) and constants_equal(expected, found))


def _same_objects(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))


def _has_sizes(obj: Any, sizes: tuple[int | None, ...]) -> bool:
    if not is_plain(type(obj)):  # may answer by code; the check of all tensors refuses it
        return True
    return len(obj.shape) == len(sizes) and all(size in (None, now) for size, now in zip(sizes, obj.shape, strict=True))


def _is_unbound_cell(obj: Any, _: Any) -> bool:
    return type(obj) is CellType and _cell_contents(obj, None) is _ABSENT


_CHECKS: dict[str, Callable[[Any, Any], Any]] = {
    "is": lambda obj, argument: obj is argument,
    "is_not": lambda obj, argument: obj is not argument,
    "type": lambda obj, argument: type(obj) is argument,
    "eq": constants_equal,
    "len": lambda obj, argument: _length(obj) == argument,
    "keys": _same_keys,
    "has": lambda obj, key: _has_base(obj, dict) and dict.__contains__(obj, key),
    "lacks": lambda obj, key: _has_base(obj, dict) and not dict.__contains__(obj, key),
    "mro_eq": lambda obj, classes: _has_base(obj, type) and _same_objects(_mro(obj), classes),
    "mro_is": lambda obj, pair: _has_base(obj, type) and look_up_in_mro(obj, pair[0]) is pair[1],
    "mro_lacks": lambda obj, name: _has_base(obj, type) and look_up_in_mro(obj, name) is _ABSENT,
    "func_code": lambda obj, code: type(obj) is FunctionType and obj.__code__ is code,
    "unbound_cell": _is_unbound_cell,
    "is_weak": lambda obj, key: obj is not None and obj is key(),
    "lacks_weak": lambda obj, key: key() is not None and _CHECKS["lacks"](obj, key()),
    "keys_weak": _same_weak_keys,
    "true": lambda obj, predicate: predicate(obj),
    "shape": _has_sizes,
    "tensor": lambda obj, _: True,
}


def describe(value: object) -> str:
    """A short text that names an object: constants by value, functions and classes by name, others by type."""
    value = referent(value)
    if is_constant(value):
        return _shorten(repr(value))
    name = name_of(value)
    if isinstance(name, str):
        return name
    return f"<{type(value).__qualname__} at {id(value):#x}>"


def _shorten(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def step_text(path: str, accessor: str, key: Any) -> str:
    """The next step of a way, in Python's notation."""
    match accessor:
        case "attr" | "slot":
            return f"{path}.{key}"
        case "dict":
            return f"{path}.__dict__"
        case "key" | "weak_key":
            return f"{path}[{describe(key)}]"
        case "item":
            return f"{path}[{key}]"
        case "type":
            return f"type({path})"
        case "mro":
            return f"{path}.{key}"
        case "cell":
            return f"{path}.cell_contents"
        case "call":
            return f"{describe(key)}({path})"
    return f"{path}.__{key}__"


def _check_text(name: str, argument: Any) -> str:
    match name:
        case "is" | "is_weak":
            return f"the object {describe(argument)}"
        case "is_not":
            return f"another object than {describe(argument)}"
        case "type":
            return f"type {argument.__qualname__}"
        case "eq":
            return f"the value {describe(argument)}"
        case "len":
            return f"length {argument}"
        case "keys" | "keys_weak":
            return f"the keys {_names(argument)}"
        case "has":
            return f"the key {describe(argument)}"
        case "lacks" | "lacks_weak":
            return f"no key {describe(argument)}"
        case "mro_eq":
            return f"the classes {_names(argument)}"
        case "mro_is":
            return f"{describe(argument[1])} as its {argument[0]}"
        case "mro_lacks":
            return f"no attribute {argument}"
        case "func_code":
            return f"the code {argument.co_qualname}"
        case "unbound_cell":
            return "an empty cell"
        case "shape":
            return f"sizes {list(argument)}"
    return f"{describe(argument)} to be true"


def _names(objects: Iterable[Any]) -> str:
    return _shorten(", ".join(map(describe, objects)))


def _type_text(obj: object) -> str:
    return f"type {type(obj).__qualname__}"


def _seen_text(name: str, argument: Any, obj: Any) -> str:
    match name:
        case "type":
            return _type_text(obj)
        case "len":
            return f"length {length}" if (length := _length(obj)) is not None else _type_text(obj)
        case "keys" | "keys_weak":
            found = _keys(obj)
            return _type_text(obj) if found is None else f"the keys {_names(found)}"
        case "mro_eq":
            return f"the classes {_names(_mro(obj))}" if _has_base(obj, type) else describe(obj)
        case "mro_is":
            attribute = look_up_in_mro(obj, argument[0]) if _has_base(obj, type) else _ABSENT
            return "nothing" if attribute is _ABSENT else describe(attribute)
        case "func_code":
            return f"the code {obj.__code__.co_qualname}" if type(obj) is FunctionType else describe(obj)
    return describe(obj)


class _Evaluation:
    """One evaluation of a tree; raises `_Missed` at the first guard that fails."""

    def __init__(self, n_handed: int, state: Sequence[Any], names: Sequence[str]) -> None:
        self.state = state
        self.names = names
        self.handed: list[Any] = [None] * n_handed
        self.batch: dict[int, Any] = {}

    def run(self, tree: Node) -> None:
        """Checks the root first, in the order that C does."""
        for name, argument in tree[2]:
            if name in ("state", "switch", "call0_is"):
                self._expect_call(name, argument)
        for child in tree[4]:
            self._enter(*self._start(child), child)
        for stage in (("tensors", "tensors_any_grad"), ("same", "differ", "ints"), ("rel",)):
            for name, argument in tree[2]:
                if name in stage:
                    self._expect_of_root(name, argument)

    def _start(self, node: Node) -> tuple[str, Any]:
        accessor, key = node[:2]
        if accessor == "arg":
            path = self.names[key] if key < len(self.names) else f"state[{key}]"
            return path, self.state[key] if key < len(self.state) else _ABSENT
        if accessor == "weak":
            referent = key()
            return "a weakly held object", _ABSENT if referent is None else referent
        return describe(key), key

    def _enter(self, path: str, obj: Any, node: Node) -> None:
        _, _, checks, handed, children = node
        if obj is _ABSENT:
            raise _Missed(path, "an object", "nothing", node=node)
        for name, argument in checks:
            self._expect(path, obj, name, argument, node)
        if handed != -1:
            self.handed[handed] = obj
        for child in children:
            child_path = step_text(path, child[0], child[1])
            try:
                found = _STEPS[child[0]](obj, child[1])
            except Exception as error:
                raise _Missed(child_path, "an object", f"{type(error).__name__}: {error}", node=child) from None
            self._enter(child_path, found, child)

    def _expect(self, path: str, obj: Any, name: str, argument: Any, node: Node) -> None:
        if name == "tensor":
            self.batch[argument] = obj
        try:
            holds = bool(_CHECKS[name](obj, argument))
        except Exception as error:
            seen = f"{type(error).__name__}: {error}"
            raise _Missed(path, _check_text(name, argument), seen, name, node) from None
        if not holds:
            raise _Missed(path, _check_text(name, argument), _seen_text(name, argument, obj), name, node)

    def _expect_call(self, name: str, argument: tuple[Callable[[], Any], Any]) -> None:
        function, expected = argument
        try:
            value = function()
            holds = constants_equal(value, expected)
        except Exception as error:
            raise _Missed(f"{describe(function)}()", describe(expected), f"{type(error).__name__}: {error}") from None
        if not holds:
            raise _Missed(f"{describe(function)}()", describe(expected), describe(value), name)

    def _expect_of_root(self, name: str, argument: Any) -> None:
        match name:
            case "same":
                holds = self.handed[argument[0]] is self.handed[argument[1]]
                path, expected = f"objects {argument[0]} and {argument[1]}", "one object"
            case "differ":
                holds = self.handed[argument[0]] is not self.handed[argument[1]]
                path, expected = f"objects {argument[0]} and {argument[1]}", "two objects"
            case "tensors" | "tensors_any_grad":
                batch = [self.batch[index] for index in range(len(self.batch))]
                holds = _calls_true(argument, batch)
                path, expected = "the tensors", "the same metadata"
            case "ints":
                loaded = [self.handed[index] for index in argument[1]]
                holds = relation_holds(argument[0], loaded)
                path, expected = argument[0].names, f"{argument[0]!r}"
                if not holds:
                    raise _Missed(path, expected, ", ".join(map(describe, loaded)), name)
            case _:
                holds = _calls_true(argument[0], [self.handed[index] for index in argument[1]])
                path, expected = f"objects {argument[1]}", describe(argument[0])
        if not holds:
            raise _Missed(path, expected, "otherwise", name)


def _calls_true(function: Callable[..., Any], args: list[Any]) -> bool:
    try:
        return bool(function(*args))
    except Exception:
        return False


def evaluate(
    tree: Node, n_handed: int, state: Sequence[Any], names: Sequence[str] = ()
) -> tuple[list[Any], None] | tuple[None, Failure]:
    """What `Guards(tree, n_handed).check(state)` gives, or the first guard that fails.

    `names` are those of the state's items, for the text.
    """
    evaluation = _Evaluation(n_handed, state, names)
    try:
        evaluation.run(tree)
    except _Missed as missed:
        return None, missed.failure
    return evaluation.handed, None
