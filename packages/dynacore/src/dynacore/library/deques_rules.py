"""collections.deque: a `ListObj` whose class is a deque. One that is made here keeps its bound itself."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

from ..reasons import Break
from ..values import NONE, Const, ListObj, Value
from .arguments import as_index, contains, find, items_of, refuse
from .lists_rules import count, repeated
from .polyfills import constructors
from .registry import rule


def storage(self: Value) -> ListObj:
    """The receiver, which C code would check too."""
    if type(self) is not ListObj or not issubclass(self.cls, deque):
        raise Break("call-arguments", f"a deque method on {self.cls.__name__}")
    return self


def bound(self: ListObj) -> int | None:
    """The deque's maxlen."""
    return self.maxlen if self.obj is None else self.obj.maxlen


def put(m: Any, self: ListObj, items: list[Value], left: bool = False) -> None:
    """Add items at one end; a bounded deque loses as many at the other."""
    moved(m, self, bool(items))
    if left:
        self.items[:0] = items[::-1]
    else:
        self.items.extend(items)
    limit = bound(self)
    if limit is not None and len(self.items) > limit:
        self.items = self.items[:limit] if left else self.items[len(self.items) - limit :]


def moved(m: Any, self: ListObj, noticed: bool = True) -> None:
    """Note that items are about to move; iterators over the deque notice that."""
    m.touch(self)
    self.shape += noticed


@rule(deque)
def deque_call(m: Any, iterable: Value = NONE, maxlen: Value = NONE) -> Any:
    made = ListObj([], deque)
    return deque_fill(m, made, iterable, maxlen, made)


@rule(deque.__new__)
def deque_new(m: Any, cls: Value, *args: Value, **kwargs: Value) -> Value:
    return ListObj([], m.constant_of(cls))


@rule(deque.__init__)
def deque_init(m: Any, self: Value, iterable: Value = NONE, maxlen: Value = NONE) -> Any:
    target = storage(self)
    if target.obj is not None or target.items:
        raise Break("mutation-outside", "deque.__init__")
    return deque_fill(m, target, iterable, maxlen, NONE)


def deque_fill(m: Any, target: ListObj, iterable: Value, maxlen: Value, result: Value) -> Any:
    """Fill a new deque, then give `result`."""
    target.maxlen = None if m.is_none(maxlen) else as_limit(m, maxlen)
    items = [] if m.is_none(iterable) else items_of(m, iterable)
    if items is None:
        return m.push_python(constructors.deque_fill, [target, iterable, result], {})
    put(m, target, items)
    return result


def as_limit(m: Any, maxlen: Value) -> int:
    """The argument `maxlen`, which has to be an int."""
    maxlen = m.settle(maxlen)
    if type(maxlen) is not Const:
        raise Break("call-arguments", f"deque(maxlen={maxlen.cls.__name__})")
    limit = maxlen.value
    if not isinstance(limit, int) or not 0 <= limit <= sys.maxsize:
        refuse(m, deque, (), limit)
    return limit + 0


@rule(deque.append)
def deque_append(m: Any, self: Value, item: Value, /) -> Value:
    put(m, storage(self), [item])
    return NONE


@rule(deque.appendleft)
def deque_appendleft(m: Any, self: Value, item: Value, /) -> Value:
    put(m, storage(self), [item], left=True)
    return NONE


@rule(deque.extend)
def deque_extend(m: Any, self: Value, iterable: Value, /) -> Any:
    return extend(m, self, iterable, left=False)


@rule(deque.extendleft)
def deque_extendleft(m: Any, self: Value, iterable: Value, /) -> Any:
    return extend(m, self, iterable, left=True)


@rule(deque.__iadd__)
def deque_iadd(m: Any, self: Value, iterable: Value, /) -> Any:
    target = storage(self)
    items = items_of(m, iterable)
    if items is None:
        return m.push_python(constructors.deque_fill, [self, iterable, self], {})
    put(m, target, items)
    return self


def extend(m: Any, self: Value, iterable: Value, left: bool) -> Any:
    """deque.extend and extendleft."""
    target = storage(self)
    items = items_of(m, iterable)
    if items is None:
        append = m.const(deque.appendleft if left else deque.append)
        return m.push_python(constructors.deque_extend, [self, iterable, append], {})
    put(m, target, items, left)
    return NONE


@rule(deque.pop)
def deque_pop(m: Any, self: Value, /) -> Value:
    return take(m, self, -1)


@rule(deque.popleft)
def deque_popleft(m: Any, self: Value, /) -> Value:
    return take(m, self, 0)


def take(m: Any, self: Value, position: int) -> Value:
    """Remove an item at an end."""
    target = storage(self)
    if not target.items:
        refuse(m, deque.pop, deque())
    moved(m, target)
    return target.items.pop(position)


@rule(deque.clear)
def deque_clear(m: Any, self: Value, /) -> Value:
    target = storage(self)
    moved(m, target, bool(target.items))
    target.items.clear()
    return NONE


@rule(deque.reverse)
def deque_reverse(m: Any, self: Value, /) -> Value:
    target = storage(self)
    m.touch(target)
    target.items.reverse()
    return NONE


@rule(deque.rotate)
def deque_rotate(m: Any, self: Value, steps: Value = Const(1), /) -> Value:  # noqa: B008
    target = storage(self)
    number = as_index(m, steps)
    if target.items:
        moved(m, target, len(target.items) > 1)
        cut = -number % len(target.items)
        target.items = target.items[cut:] + target.items[:cut]
    return NONE


@rule(deque.copy, deque.__copy__)
def deque_copy(m: Any, self: Value, /) -> Value:
    target = storage(self)
    if target.cls is not deque:
        raise Break("construct-unknown", f"a copy of {target.cls.__name__}")
    made = ListObj(list(target.items), deque)
    made.maxlen = bound(target)
    return made


@rule(deque.count)
def deque_count(m: Any, self: Value, item: Value, /) -> Any:
    return count(m, storage(self).items, item)


@rule(deque.remove)
def deque_remove(m: Any, self: Value, item: Value, /) -> Value:
    target = storage(self)
    index = find(m, target.items, item)
    if index is None or (index < 0 and type(item) is not Const):
        raise Break("compare-unknown", "deque.remove")
    if index < 0:
        refuse(m, deque.remove, deque(), item.value)
    moved(m, target)
    del target.items[index]
    return NONE


@rule(deque.insert)
def deque_insert(m: Any, self: Value, index: Value, item: Value, /) -> Value:
    target = storage(self)
    position = as_index(m, index)
    limit = bound(target)
    if limit is not None and len(target.items) >= limit:
        refuse(m, deque.insert, deque([None] * limit, limit), 0, None)
    moved(m, target)
    target.items.insert(position, item)
    return NONE


@rule(deque.__len__)
def deque_len(m: Any, self: Value, /) -> Value:
    return Const(len(storage(self).items))


@rule(deque.__contains__)
def deque_contains(m: Any, self: Value, item: Value, /) -> Any:
    return contains(m, storage(self).items, item)


@rule(deque.__iter__)
def deque_iter(m: Any, self: Value, /) -> Value:
    target = storage(self)
    return m.items_iter(list(target.items), target, "deque")


@rule(deque.__reversed__)
def deque_reversed(m: Any, self: Value, /) -> Value:
    target = storage(self)
    return m.items_iter(target.items[::-1], target, "deque", True)


@rule(deque.__getitem__)
def deque_getitem(m: Any, self: Value, index: Value, /) -> Value:
    target = storage(self)
    return target.items[place(m, target, index)]


@rule(deque.__setitem__)
def deque_setitem(m: Any, self: Value, index: Value, item: Value, /) -> Value:
    target = storage(self)
    position = place(m, target, index)
    m.touch(target)
    target.items[position] = item
    return NONE


@rule(deque.__delitem__)
def deque_delitem(m: Any, self: Value, index: Value, /) -> Value:
    target = storage(self)
    position = place(m, target, index)
    moved(m, target)
    del target.items[position]
    return NONE


def place(m: Any, self: ListObj, index: Value) -> int:
    """A position in the deque, or its IndexError."""
    index = m.settle(index)
    if type(index) is not Const or not hasattr(index.value, "__index__"):
        raise Break("subscript-unknown", f"deque[{index.cls.__name__}]")
    position = as_index(m, index)
    if not -len(self.items) <= position < len(self.items):
        refuse(m, deque.__getitem__, deque(), 0)
    return position


@rule(deque.__mul__, deque.__rmul__)
def deque_mul(m: Any, self: Value, times: Value, /) -> Value:
    target = storage(self)
    made = deque_copy(m, target)
    items = repeated(m, target.items, times, "deque")
    made.items = []
    put(m, made, items)
    return made
