"""set and frozenset: `SetObj`.

A real set's order follows from hashes and from its history. So a real set of the keys goes along (`Members.real`), on
which each operation is done as well. Keys that only exist when the program runs have no hash yet: the order is then
unknown, and iterating is left to the interpreter.
"""

from __future__ import annotations

from typing import Any

from ..reasons import Break
from ..values import FALSE, NONE, TRUE, Const, DictView, Known, SetObj, Value
from .arguments import is_iterator, items_of, refuse
from .polyfills import constructors
from .registry import rule

#: key -> value of members
Keys = dict[Any, Value]


class Members(dict):
    """The members of a made set (`SetObj.items`), with `real`, a set of the same history (None: not known)."""

    __slots__ = ("real",)
    real: Any

    @classmethod
    def of(cls, values: Keys, real: Any) -> Members:
        """The members in the order of `real`."""
        made = cls(values if real is None else {key: values[key] for key in real})
        made.real = real
        return made


def storage(m: Any, self: Value) -> SetObj:
    """The receiver, which C code would check too. A frozenset that is used by identity is looked into here."""
    if type(self) is Known and type(self.obj) is frozenset:
        m.pin(self)
        values = [m.known(item) for item in self.obj]
        self = SetObj(frozenset, self.obj, m.root.child("const", self.obj))
        self.items = {m.key_of(value): value for value in values}
    if type(self) is not SetObj:
        raise Break("call-arguments", f"a set method on {self.cls.__name__}")
    return self


def is_set(v: Value) -> bool:
    """Whether it is a set or frozenset that can be looked into."""
    return type(v) is SetObj or (type(v) is Known and type(v.obj) is frozenset)


def hashed(key: Any) -> bool:
    """Whether the key hashes as the program's object will."""
    if isinstance(key, (tuple, frozenset)):
        return all(map(hashed, key))
    return not isinstance(key, Value)


def real_set(s: SetObj) -> Any:
    """The real set beside `s`, to be read only; None when its history isn't known."""
    if type(s.items) is Members:
        return s.items.real
    if s.obj is not None:
        return None if s.changed else s.obj
    return set(s.items) if all(map(hashed, s.items)) else None  # built from a display: one by one


def ordered(s: SetObj) -> list[Value]:
    """The members in the order in which the real set yields them; `Break` when that isn't known."""
    if len(s.items) < 2:
        return list(s.items.values())
    real = real_set(s)
    if real is None:
        raise Break("iterate-unknown", "a set whose order is only known when the program runs")
    if real is s.obj:
        # Equal sets may differ in order.
        s.source.child("call", tuple).check("eq", tuple(real))
    return [s.items[key] for key in real]


def operand(m: Any, other: Value, method: str = "update") -> tuple[Keys, Any] | None:
    """The other side of a set's method: its keys, and the real iterable that C would see (None: not known); None as a
    whole when iterating over it runs Python code."""
    if is_set(other):
        other = storage(m, other)
        return other.items, real_set(other)
    items = None if is_iterator(other) else items_of(m, other)
    if items is None:
        return None
    values: Keys = {}
    keys = [m.key_of(item, lambda unhashable: getattr({None}, method)([unhashable])) for item in items]
    for key, item in zip(keys, items, strict=True):
        values.setdefault(key, item)
    return values, keys if all(map(hashed, keys)) else None


def combine(s: SetObj, sides: list[tuple[Keys, Any]], method: str, real: Any) -> Members:
    """The members after a set method; `real` is the set on which to do it, None when the order isn't known."""
    values: Keys = {}
    for keys in (s.items, *(keys for keys, _ in sides)):
        for key, value in keys.items():
            values.setdefault(key, value)
    if real is None or any(iterable is None for _, iterable in sides):
        result = set(s.items)
        left = getattr(result, method)(*(list(keys) for keys, _ in sides))
        return Members.of({key: values[key] for key in (result if left is None else left)}, None)
    result = getattr(real, method)(*(iterable for _, iterable in sides))
    return Members.of(values, real if result is None else result)


def sides_of(m: Any, others: tuple[Value, ...], method: str) -> list[tuple[Keys, Any]]:
    """All operands."""
    sides = [operand(m, other, method) for other in others]
    if None in sides:
        raise Break("iterate-unknown", f"set.{method}")
    return sides  # type: ignore[return-value]


def operation(m: Any, self: Value, others: tuple[Value, ...], method: str) -> SetObj:
    """A method that gives a new set."""
    s = storage(m, self)
    made = SetObj(frozenset if issubclass(s.cls, frozenset) else set)
    made.items = combine(s, sides_of(m, others, method), method, real_set(s))
    return made


def in_place(m: Any, self: Value, others: tuple[Value, ...], method: str) -> Value:
    """A method that changes the set."""
    s = storage(m, self)
    sides = sides_of(m, others, method)
    operands = [written(m, s, *pair, method) for pair in zip(others, sides, strict=True)] if s.obj is not None else []
    edit(m, s, method, operands)
    s.items = combine(s, sides, method, None if s.obj is not None and type(s.items) is not Members else real_set(s))
    return NONE


def edit(m: Any, s: SetObj, method: str, operands: list[tuple[str, list[Value]]]) -> None:
    """Note a change, before it is made."""
    m.touch(s)
    s.shape += 1
    s.edits.append((method, operands))


def written(m: Any, s: SetObj, other: Value, side: tuple[Keys, Any], method: str) -> tuple[str, list[Value]]:
    """The operand of a change of a set from outside, such that the set gets the table that `other` would give it."""
    members, real = side
    if not is_set(other) or method == "difference_update":  # where their order doesn't matter
        items = members if real is None or is_set(other) else real
        return "[ITEMS]", [members[key] for key in items]
    items = ordered(storage(m, other))
    if method == "intersection_update":
        # The smaller one's order counts.
        return "{ITEMS}" if len(items) > len(s.items) else "[ITEMS]", items
    return "dict.fromkeys([ITEMS])", items  # room is made for all of them at once, as for a set


# -- construction ----------------------------------------------------------------------------------------------------


@rule(set)
def set_call(m: Any, iterable: Value | None = None, /) -> Any:
    made = SetObj(set)
    made.items = Members.of({}, set())
    return made if iterable is None else fill(m, made, iterable, made)


@rule(set.__new__)
def set_new(m: Any, cls: Value, *args: Value, **kwargs: Value) -> Value:
    made = SetObj(m.constant_of(cls))
    made.items = Members.of({}, set())
    return made


@rule(set.__init__)
def set_init(m: Any, self: Value, iterable: Value | None = None, /) -> Any:
    s = storage(m, self)
    if s.items or s.obj is not None:
        raise Break("mutation-outside", "set.__init__")
    return NONE if iterable is None else fill(m, s, iterable, NONE)


def fill(m: Any, made: SetObj, iterable: Value, result: Value) -> Any:
    """Fill an empty set, then give `result`."""
    side = operand(m, iterable)
    if side is None:
        return m.push_python(constructors.set_fill, [made, iterable, result], {})
    made.items = combine(made, [side], "update", set())
    return result


@rule(frozenset)
def frozenset_call(m: Any, iterable: Value | None = None, /) -> Any:
    if iterable is not None and is_set(iterable) and iterable.cls is frozenset:
        return iterable
    return frozenset_new(m, m.const(frozenset), iterable)


@rule(frozenset.__new__)
def frozenset_new(m: Any, cls: Value, iterable: Value | None = None, /) -> Any:
    side = ({}, ()) if iterable is None else operand(m, iterable)
    if side is None:
        return m.push_python(constructors.frozenset_of, [cls, iterable], {})
    made = SetObj(m.constant_of(cls))
    made.items = combine(made, [side], "union", frozenset())
    return made


def member_key(m: Any, item: Value, use: Any) -> Any:
    """The key to look for: that of a set, which can't be a member, is what a frozenset of its members would have."""
    if isinstance(item, SetObj) and m.lookup_type(item.cls, "__hash__") is None:
        return frozenset(storage(m, item).items)
    if type(item) is Known and issubclass(item.cls, set):
        raise Break("hash-unknown", item.cls.__name__)
    return m.key_of(item, use)


# -- methods ---------------------------------------------------------------------------------------------------------


@rule(set.add)
def set_add(m: Any, self: Value, item: Value, /) -> Value:
    key = m.key_of(item, set().add)
    return in_place_one(m, storage(m, self), key, item, "add")


@rule(set.discard)
def set_discard(m: Any, self: Value, item: Value, /) -> Value:
    key = member_key(m, item, set().discard)
    return in_place_one(m, storage(m, self), key, item, "discard")


@rule(set.remove)
def set_remove(m: Any, self: Value, item: Value, /) -> Value:
    s = storage(m, self)
    key = member_key(m, item, set().remove)
    if key not in s.items:
        m.throw(KeyError, item)
    return in_place_one(m, s, key, item, "discard")


def put_into(m: Any, s: SetObj, items: list[Value]) -> None:
    """Members of a display or comprehension."""
    keys = [m.key_of(item, set().add) for item in items]
    for key, item in zip(keys, items, strict=True):
        if s.obj is None:
            s.items.setdefault(key, item)
        else:
            in_place_one(m, s, key, item, "add")


def in_place_one(m: Any, s: SetObj, key: Any, item: Value, method: str) -> Value:
    """add or discard."""
    if (key in s.items) is (method == "add"):
        return NONE
    real = real_set(s) if s.obj is None or type(s.items) is Members else None
    edit(m, s, method, [("ITEMS", [item])])
    if real is not None and hashed(key):
        getattr(real, method)(key)
    else:
        real = None
    values = {**s.items, key: item}
    if method == "discard":
        del values[key]
    s.items = Members.of(values, real)
    return NONE


@rule(set.pop)
def set_pop(m: Any, self: Value, /) -> Value:
    s = storage(m, self)
    if not s.items:
        refuse(m, set.pop, set())
    if s.obj is not None and type(s.items) is not Members:
        raise Break("iterate-unknown", "set.pop")
    ordered(s)
    real = real_set(s)
    key = next(iter(s.items)) if real is None else real.pop()
    item = s.items[key]
    edit(m, s, "pop", [])
    values = dict(s.items)
    del values[key]
    s.items = Members.of(values, real)
    return item


@rule(set.clear)
def set_clear(m: Any, self: Value, /) -> Value:
    s = storage(m, self)
    s.edits.clear()  # nothing of what was before is left
    edit(m, s, "clear", [])
    s.items = Members.of({}, set())
    return NONE


@rule(set.copy, frozenset.copy)
def set_copy(m: Any, self: Value, /) -> Value:
    if storage(m, self).cls is frozenset:
        return self
    return operation(m, self, (), "copy")


def _define(method: str, changing: str | None, operator: str | None) -> None:
    """The rules of one set operation: its method, its in-place method, and their operators."""

    def make(m: Any, self: Value, *others: Value) -> Any:
        return operation(m, self, others, method)

    def change(m: Any, self: Value, *others: Value) -> Any:
        if changing == "update" and len(others) == 1 and operand(m, others[0]) is None:
            return m.push_python(constructors.set_fill, [self, others[0], NONE], {})
        return in_place(m, self, others, changing)

    def operate(m: Any, self: Value, other: Value, /) -> Any:
        if not is_set(self) or not is_set(other):
            return on_views(m, self, other, method)
        return operation(m, self, (other,), method)

    def operate_in_place(m: Any, self: Value, other: Value, /) -> Any:
        if not is_set(other):
            return m.const(NotImplemented)
        in_place(m, self, (other,), changing)
        return self

    rule(vars(set)[method], vars(frozenset)[method])(make)
    if changing:
        rule(vars(set)[changing])(change)
        rule(vars(set)[f"__i{operator}__"])(operate_in_place)
    views = [vars(type(view))[f"__{operator}__"] for view in ({}.keys(), {}.items())]
    rule(vars(set)[f"__{operator}__"], vars(frozenset)[f"__{operator}__"], *views)(operate)


for _row in (
    ("union", "update", "or"),
    ("intersection", "intersection_update", "and"),
    ("difference", "difference_update", "sub"),
    ("symmetric_difference", "symmetric_difference_update", "xor"),
):
    _define(*_row)


def on_views(m: Any, self: Value, other: Value, method: str) -> Any:
    """An operator with a dict view: the result is a plain set."""
    if not (is_set(self) or type(self) is DictView) or not (is_set(other) or type(other) is DictView):
        return m.const(NotImplemented)
    left = set_call(m, self)
    return operation(m, left, (other,), method)


# -- questions -------------------------------------------------------------------------------------------------------


def _ask(method: str, operator: str | None) -> None:
    """The rules of a question to two sets."""

    def ask(m: Any, self: Value, other: Value, /) -> Any:
        side = operand(m, other, method)
        if side is None:
            raise Break("iterate-unknown", f"set.{method}")
        return m.const(getattr(set(storage(m, self).items), method)(set(side[0])))

    def compare(m: Any, self: Value, other: Value, /) -> Any:
        return ask(m, self, other) if is_set(other) else m.const(NotImplemented)

    rule(vars(set)[method], vars(frozenset)[method])(ask)
    if operator:
        rule(vars(set)[operator], vars(frozenset)[operator])(compare)


_ask("isdisjoint", None)
_ask("issubset", "__le__")
_ask("issuperset", "__ge__")


@rule(set.__lt__, frozenset.__lt__)
def set_less(m: Any, self: Value, other: Value, /) -> Value:
    if not is_set(other):
        return m.const(NotImplemented)
    return m.const(set(storage(m, self).items) < set(storage(m, other).items))


@rule(set.__gt__, frozenset.__gt__)
def set_greater(m: Any, self: Value, other: Value, /) -> Value:
    if not is_set(other):
        return m.const(NotImplemented)
    return m.const(set(storage(m, self).items) > set(storage(m, other).items))


@rule(set.__eq__, frozenset.__eq__)
def set_equal(m: Any, self: Value, other: Value, /) -> Value:
    if not is_set(other):
        return m.const(NotImplemented)
    return m.const(set(storage(m, self).items) == set(storage(m, other).items))


@rule(set.__ne__, frozenset.__ne__)
def set_differs(m: Any, self: Value, other: Value, /) -> Value:
    if not is_set(other):
        return m.const(NotImplemented)
    return m.const(set(storage(m, self).items) != set(storage(m, other).items))


@rule(set.__len__, frozenset.__len__)
def set_len(m: Any, self: Value, /) -> Value:
    return Const(len(storage(m, self).items))


@rule(set.__contains__, frozenset.__contains__)
def set_contains(m: Any, self: Value, item: Value, /) -> Value:
    return TRUE if member_key(m, item, set().__contains__) in storage(m, self).items else FALSE


@rule(set.__iter__, frozenset.__iter__)
def set_iter(m: Any, self: Value, /) -> Value:
    s = storage(m, self)
    return m.items_iter(ordered(s), s, "items")
