"""list and its subclasses: `ListObj`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ..reasons import Break
from ..values import NONE, Const, Host, ListObj, Recipe, SeqIter, Value, made_by
from .arguments import as_index, asks, contains, find, listed, refuse
from .folding import is_literal
from .polyfills import constructors, functions
from .ranges_rules import range_len
from .registry import rule

LONG = 100_000  # items of a repeated sequence that capture makes itself


def storage(self: Value) -> ListObj:
    """The receiver, which C code would check too."""
    if type(self) is not ListObj:
        raise Break("call-arguments", f"a list method on {self.cls.__name__}")
    return self


# -- construction ----------------------------------------------------------------------------------------------------


@rule(list)
def list_call(m: Any, iterable: Value | None = None, /) -> Any:
    if iterable is None:
        return ListObj([])
    if type(iterable) is Host and iterable.cls is range:
        return made_by(Recipe("list({})", (iterable,), range_len(m, iterable), lambda: m.iterate(iterable)))
    items = listed(m, iterable)
    if items is None:
        return m.push_python(constructors.list_of, [iterable], {})
    return ListObj(items)


@rule(constructors.room_for)
def room_for(m: Any, iterable: Value, /) -> Any:
    return m.push_python(constructors.room_for, [iterable], {}) if asks(m, iterable) else iterable


@rule(list.__new__)
def list_new(m: Any, cls: Value, *args: Value, **kwargs: Value) -> Any:
    return ListObj([], m.constant_of(cls))


@rule(list.__init__)
def list_init(m: Any, self: Value, iterable: Value | None = None, /) -> Any:
    target = storage(self)
    items = [] if iterable is None else listed(m, iterable)
    if items is None and target.items:
        raise Break("iterate-unknown", "list.__init__")
    if items is None:
        return m.push_python(constructors.list_extend, [self, iterable], {})
    m.touch(target)
    target.items = items
    return NONE


# -- methods ---------------------------------------------------------------------------------------------------------


@rule(list.append)
def list_append(m: Any, self: Value, item: Value, /) -> Value:
    target = storage(self)
    m.touch(target)
    target.append(item)
    return NONE


@rule(list.extend)
def list_extend(m: Any, self: Value, iterable: Value, /) -> Any:
    target = storage(self)
    items = listed(m, iterable)
    if items is None:
        return m.push_python(constructors.list_extend, [self, iterable], {})
    m.touch(target)
    target.items.extend(items)
    return NONE


@rule(list.insert)
def list_insert(m: Any, self: Value, index: Value, item: Value, /) -> Value:
    target = storage(self)
    position = as_index(m, index)
    m.touch(target)
    target.items.insert(position, item)
    return NONE


@rule(list.pop)
def list_pop(m: Any, self: Value, index: Value | None = None, /) -> Value:
    target = storage(self)
    position = -1 if index is None else as_index(m, index)
    size = len(target.items)
    if not -size <= position < size:
        refuse(m, list.pop, [None] * size, position)
    m.touch(target)
    return target.items.pop(position)


@rule(list.clear)
def list_clear(m: Any, self: Value, /) -> Value:
    target = storage(self)
    m.touch(target)
    target.items.clear()
    return NONE


@rule(list.reverse)
def list_reverse(m: Any, self: Value, /) -> Value:
    target = storage(self)
    m.touch(target)
    target.items.reverse()
    return NONE


@rule(list.copy)
def list_copy(m: Any, self: Value, /) -> Value:
    return ListObj(list(storage(self).items))


@rule(list.remove)
def list_remove(m: Any, self: Value, item: Value, /) -> Any:
    target = storage(self)
    index = find(m, target.items, item)
    if index is None:
        return m.push_python(constructors.list_remove, [self, item], {})
    if index < 0:
        refuse(m, list.remove, [], None)
    m.touch(target)
    del target.items[index]
    return NONE


@rule(list.index)
def list_index(m: Any, self: Value, item: Value, start: Value = Const(0), stop: Value = Const(sys.maxsize), /) -> Any:  # noqa: B008
    target = storage(self)
    first, last, _ = slice(as_index(m, start), as_index(m, stop)).indices(len(target.items))
    index = find(m, target.items, item, first, last)
    if index is None or (index < 0 and type(item) is not Const):
        return m.push_python(constructors.list_index, [self, item, Const(first), Const(last)], {})
    if index < 0:
        refuse(m, list.index, [], item.value)
    return Const(index)


@rule(list.count)
def list_count(m: Any, self: Value, item: Value, /) -> Any:
    return count(m, storage(self).items, item)


def count(m: Any, items: Any, wanted: Value) -> Any:
    """How many items equal `wanted`."""
    found = 0
    for item in items:
        index = find(m, [item], wanted)
        if index is None:
            return m.push_python(constructors.count_equal, [ListObj(list(items)), wanted], {})
        found += index == 0
    return Const(found)


@rule(functions.sort_by)
def sort_by(m: Any, self: Value, keys: Value, reverse: Value) -> Value:
    """The last step of sort() and sorted(): constants are ordered here, everything else by the real comparison."""
    target = storage(self)
    real = m.constant_of(keys) if m.is_constant(keys) else None
    if not is_literal(real) or real is None:
        raise Break("compare-unknown", "sort()")
    backwards = bool(m.constant_of(reverse))
    try:
        order = sorted(range(len(real)), key=real.__getitem__, reverse=backwards)
    except TypeError as error:
        return m.throw(TypeError, *error.args)
    m.touch(target)
    target.items = [target.items[index] for index in order]
    return NONE


# -- slots -----------------------------------------------------------------------------------------------------------


@rule(list.__len__)
def list_len(m: Any, self: Value, /) -> Value:
    return Const(len(storage(self).items))


@rule(list.__contains__)
def list_contains(m: Any, self: Value, item: Value, /) -> Any:
    return contains(m, storage(self).items, item)


@rule(list.__iter__)
def list_iter(m: Any, self: Value, /) -> Value:
    return SeqIter(storage(self), type(iter([])))


@rule(list.__reversed__)
def list_reversed(m: Any, self: Value, /) -> Value:
    target = storage(self)
    return SeqIter(target, type(reversed([])), len(target.items) - 1, -1)


@rule(list.__getitem__)
def list_getitem(m: Any, self: Value, index: Value, /) -> Value:
    return m.sequence_item(storage(self), index)


@rule(list.__setitem__)
def list_setitem(m: Any, self: Value, index: Value, item: Value, /) -> Value:
    m.set_list_item(storage(self), index, item)
    return NONE


@rule(list.__delitem__)
def list_delitem(m: Any, self: Value, index: Value, /) -> Value:
    target = storage(self)
    position = m.index_of(index)
    if position is None:
        raise Break("subscript-unknown", f"del list[{index.cls.__name__}]")
    items = list(target.items)
    try:
        del items[position]
    except IndexError as error:
        m.throw(IndexError, *error.args)
    m.touch(target)
    target.items = items
    return NONE


@rule(list.__add__)
def list_add(m: Any, self: Value, other: Value, /) -> Value:
    if type(other) is not ListObj or not issubclass(other.cls, list):
        raise Break("operator-unknown", f"list + {other.cls.__name__}")
    return ListObj([*storage(self).items, *other.items])


@rule(list.__iadd__)
def list_iadd(m: Any, self: Value, other: Value, /) -> Any:
    target = storage(self)
    items = listed(m, other)
    if items is None:
        return m.push_python(constructors.list_iadd, [self, other], {})
    m.touch(target)
    target.items.extend(items)
    return self


@rule(list.__mul__, list.__rmul__)
def list_mul(m: Any, self: Value, times: Value, /) -> Value:
    items = storage(self).items
    if type(times) is Host and times.cls is int and items and m.meets(f"{{0}} <= {LONG // len(items)}", [times]):
        return many(m, list(items), times)
    return ListObj(repeated(m, items, times, "list"))


def many(m: Any, items: list[Value], times: Host) -> ListObj:
    """A list that repeats items as often as only the entry knows."""
    text = f"[{', '.join(['{}'] * len(items))}] * {{}}"
    length = m.binary("*", Const(len(items)), m.host_binary("max", Const(0), times), False)
    return made_by(Recipe(text, (*items, times), length, lambda: repeated(m, items, times, "list")))


@rule(list.__imul__)
def list_imul(m: Any, self: Value, times: Value, /) -> Value:
    target = storage(self)
    items = repeated(m, target.items, times, "list")
    m.touch(target)
    target.items[:] = items
    return self


def repeated(m: Any, items: Sequence[Value], times: Value, what: str) -> list[Value]:
    """The items of `sequence * n`."""
    times = m.settle(times)
    if type(times) is not Const or not hasattr(times.value, "__index__"):
        raise Break("operator-unknown", f"{what} * {times.cls.__name__}")
    number = as_index(m, times)
    if len(items) * number > LONG:
        raise Break("operator-unknown", f"a {what} of more than {LONG} items")
    return list(items) * number
