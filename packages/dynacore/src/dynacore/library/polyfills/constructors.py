"""Containers filled from an iterable, or searched with an equality, that runs Python code."""

from __future__ import annotations

import collections
from sys import maxsize

from .support import c_name, defines, iterator_or_none, same, unusual


class Iterated:
    """What is iterated over by the iterator that it is given."""

    def __init__(self, iterator, /):
        self.iterator = iterator

    def __iter__(self):
        return self.iterator


class _Probe:
    """Notes whether it is asked for its length."""

    asked = False

    def __iter__(self):
        return iter(())

    def __len__(self):
        self.asked = True
        return 0


_probe = _Probe()
tuple(_probe)
#: whether tuple() asks for a length, as list() does
TUPLE_ASKS = _probe.asked


def room_for(iterable, /):
    """What list() takes its items from: a rule gives the iterable, unless Python code tells its length.

    That is asked for to make room, once there is an iterator.
    """
    iterator = iter(iterable)
    ask_length(iterable)
    return Iterated(iterator)


def ask_length(obj, /):
    """PyObject_LengthHint, for what it does and refuses."""
    if defines(obj, "__len__"):
        try:
            len(obj)
            return
        except TypeError:
            pass
    if not defines(obj, "__length_hint__"):
        return
    try:
        size = type(obj).__length_hint__(obj)
    except TypeError:
        return
    if size is NotImplemented:
        return
    if not isinstance(size, int):
        raise TypeError(f"__length_hint__ must be an integer, not {c_name(type(size))}")
    if size > maxsize:
        raise OverflowError("Python int too large to convert to C ssize_t")
    if size < 0:
        raise ValueError("__length_hint__() should return >= 0")


def list_of(iterable, /):
    """list(iterable)"""
    items = []
    for item in room_for(iterable):
        items.append(item)
    return items


def list_extend(self, iterable, /):
    """list.extend: the items arrive one by one."""
    for item in room_for(iterable):
        list.append(self, item)


def tuple_of(cls, iterable, /):
    """tuple.__new__(cls, iterable)"""
    items = []
    for item in room_for(iterable) if TUPLE_ASKS else iterable:
        items.append(item)
    return tuple.__new__(cls, items)


def set_fill(self, iterable, result, /):
    """Add all items to a set, then give `result`."""
    for item in iterable:
        set.add(self, item)
    return result


def frozenset_of(cls, iterable, /):
    """frozenset.__new__(cls, iterable)"""
    items = []
    for item in iterable:
        items.append(item)
    return frozenset.__new__(cls, items)


def dict_update(self, other, named, /):
    """dict.update with a mapping or an iterable of pairs, then with keyword arguments."""
    if hasattr(other, "keys"):
        for key in other.keys():
            dict.__setitem__(self, key, other[key])
    else:
        number = 0
        for pair in other:
            try:
                pair = list(iter(pair))
            except TypeError:
                pair = None
            if pair is None:
                refuse_item(number)
            if len(pair) != 2:
                raise ValueError(f"dictionary update sequence element #{number} has length {len(pair)}; 2 is required")
            dict.__setitem__(self, pair[0], pair[1])
            number += 1
    for key in named:
        dict.__setitem__(self, key, named[key])


def iterate_then_make(function, iterable, /):
    """The generator of a generator expression that makes its iterator itself."""
    return make_from_iterator(function, iter(iterable))


def make_from_iterator(function, iterator, /):
    """The same, given the iterator, of which no other is asked. The machine has a rule for this."""
    return function(Iterated(iterator))


def refuse_item(number, /):
    """Raise what dict.update raises when the `number`-th item can't be iterated. The machine has a rule for this."""
    dict([*[(0, 0)] * number, None])


def dict_fill(self, other, named, result, /):
    """Update a dict, then give `result`."""
    dict_update(self, other, named)
    return result


def dict_missing(self, key, factory, /):
    """defaultdict.__missing__"""
    value = factory()
    self[key] = value
    return value


def dict_fromkeys(cls, iterable, value, /):
    """dict.fromkeys for a subclass, or an iterable that runs Python code."""
    items = cls()
    for key in iterable:
        items[key] = value
    return items


def deque_extend(self, iterable, append, /):
    """deque.extend or extendleft: `append` is deque.append or deque.appendleft."""
    for item in iterable:
        append(self, item)


def str_join(self, iterable, /):
    """str.join of an iterable that runs Python code."""
    iterator = iterator_or_none(iterable)
    if iterator is None:
        raise TypeError("can only join an iterable")
    return self.join(list(iterator))


def list_remove(self, wanted, /):
    """list.remove where equality is decided by Python code."""
    index = 0
    while index < list.__len__(self):
        item = list.__getitem__(self, index)
        if same(item, wanted):
            list.__delitem__(self, slice(index, index + 1))
            return
        index += 1
    raise ValueError("list.remove(x): x not in list")


def list_index(self, wanted, start, stop, /):
    """list.index where equality is decided by Python code."""
    index = start
    while index < stop and index < list.__len__(self):
        item = list.__getitem__(self, index)
        if same(item, wanted):
            return index
        index += 1
    raise ValueError(f"{wanted!r} is not in list")


def tuple_index(self, wanted, start, stop, /):
    """tuple.index where equality is decided by Python code."""
    for index in range(start, stop):
        item = tuple.__getitem__(self, index)
        if same(item, wanted):
            return index
    raise ValueError("tuple.index(x): x not in tuple")


def contains(items, wanted, /):
    """Whether one of the items equals `wanted` where Python code decides that."""
    for item in items:
        if same(item, wanted):
            return True
    return False


def count_equal(items, wanted, /):
    """count() of a sequence where equality is decided by Python code; `items` is a tuple or list of its items."""
    count = 0
    for item in items:
        if same(item, wanted):
            count += 1
    return count


def list_iadd(self, iterable, /):
    """list.__iadd__"""
    for item in room_for(iterable):
        list.append(self, item)
    return self


def deque_fill(self, iterable, result, /):
    """Append all items to a deque, then give `result`."""
    append = collections.deque.append
    for item in iterable:
        append(self, item)
    return result


def checked_number(method, obj, kind, name, /):
    """int() or float() by a Python method, whose result must be of that type."""
    result = method(obj)
    if type(result) is kind:
        return result
    if name == "__index__" and type(result) is int:
        return kind(result)
    return unusual(kind, name, obj, result)
