"""tuple and its subclasses: `TupleObj`. A named tuple's `__new__` and fields end here too."""

from __future__ import annotations

import collections
import sys
from typing import Any

from ..reasons import Break
from ..values import Const, SeqIter, TupleObj, Value
from .arguments import as_index, contains, find, refuse, tupled
from .lists_rules import count, repeated
from .polyfills import constructors
from .registry import rule

FieldGetter: Any = type(collections.namedtuple("Point", "x").x)


def storage(self: Value) -> TupleObj:
    """The receiver, which C code would check too."""
    if type(self) is not TupleObj:
        raise Break("call-arguments", f"a tuple method on {self.cls.__name__}")
    return self


@rule(tuple)
def tuple_call(m: Any, iterable: Value | None = None, /) -> Any:
    if iterable is None:
        return TupleObj([])
    if type(iterable) is TupleObj and iterable.cls is tuple:
        return iterable
    items = tupled(m, iterable)
    if items is None:
        return m.push_python(constructors.tuple_of, [m.const(tuple), iterable], {})
    return TupleObj(items)


@rule(tuple.__new__)
def tuple_new(m: Any, cls: Value, iterable: Value | None = None, /) -> Any:
    kind = m.constant_of(cls)
    if kind is tuple:
        return tuple_call(m, *(() if iterable is None else (iterable,)))
    items = [] if iterable is None else tupled(m, iterable)
    if items is None:
        return m.push_python(constructors.tuple_of, [cls, iterable], {})
    return TupleObj(items, kind)


@rule(FieldGetter.__dict__["__get__"])
def field_get(m: Any, getter: Value, obj: Value, owner: Value | None = None, /) -> Value:
    """A field of a named tuple."""
    if m.is_none(obj):
        return getter
    index = getter.obj.__reduce__()[1][0]
    items = storage(obj).items
    return items[index] if index < len(items) else m.throw(IndexError, "tuple index out of range")


@rule(tuple.index)
def tuple_index(m: Any, self: Value, item: Value, start: Value = Const(0), stop: Value = Const(sys.maxsize), /) -> Any:  # noqa: B008
    items = storage(self).items
    first, last, _ = slice(as_index(m, start), as_index(m, stop)).indices(len(items))
    index = find(m, items, item, first, last)
    if index is None:
        return m.push_python(constructors.tuple_index, [self, item, Const(first), Const(last)], {})
    return Const(index) if index >= 0 else refuse(m, tuple.index, (), None)


@rule(tuple.count)
def tuple_count(m: Any, self: Value, item: Value, /) -> Any:
    return count(m, storage(self).items, item)


@rule(tuple.__len__)
def tuple_len(m: Any, self: Value, /) -> Value:
    return Const(len(storage(self).items))


@rule(tuple.__contains__)
def tuple_contains(m: Any, self: Value, item: Value, /) -> Any:
    return contains(m, storage(self).items, item)


@rule(tuple.__iter__)
def tuple_iter(m: Any, self: Value, /) -> Value:
    return SeqIter(storage(self), type(iter(())))


@rule(tuple.__getitem__)
def tuple_getitem(m: Any, self: Value, index: Value, /) -> Value:
    return m.sequence_item(storage(self), index)


@rule(tuple.__add__)
def tuple_add(m: Any, self: Value, other: Value, /) -> Value:
    if type(other) is not TupleObj:
        raise Break("operator-unknown", f"tuple + {other.cls.__name__}")
    return TupleObj([*storage(self).items, *other.items])


@rule(tuple.__mul__, tuple.__rmul__)
def tuple_mul(m: Any, self: Value, times: Value, /) -> Value:
    return TupleObj(repeated(m, storage(self).items, times, "tuple"))


@rule(tuple.__getnewargs__)
def tuple_getnewargs(m: Any, self: Value, /) -> Value:
    return TupleObj([TupleObj(storage(self).items)])
