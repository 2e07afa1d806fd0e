"""Built-in functions that walk over an iterable: any, all, sum, min, max, sorted, next and functools.reduce."""

from __future__ import annotations

import collections
import functools
from typing import Any

from ..registry import polyfill
from .support import at_capture


@polyfill(all)
def all_(iterable, /):
    for item in iterable:
        if not item:
            return False
    return True


@polyfill(any)
def any_(iterable, /):
    for item in iterable:
        if item:
            return True
    return False


def sum_numbers(numbers, start):
    """sum() of plain ints and floats, by a rule: how floats are rounded differs between releases."""
    return sum(numbers, start)


@at_capture
def sum_refuses(start):
    """Raise what sum() raises for a start that is text."""
    sum((), start)


@polyfill(sum)
def sum_(iterable, /, start=0):
    if isinstance(start, (str, bytes, bytearray)):
        sum_refuses(start)
    total = start
    numbers: list[Any] | None = [] if type(start) is int or type(start) is float else None
    for item in iterable:
        if numbers is not None:
            # The leading numbers are summed at once: nobody can see the intermediate sums.
            if type(item) is int or type(item) is float or type(item) is bool:
                numbers.append(item)
                continue
            total = sum_numbers(numbers, start)
            numbers = None
        total = total + item
    return total if numbers is None else sum_numbers(numbers, start)


@at_capture
def extremum_refuses(largest, values, options):
    """Raise what min() or max() raises for arguments of this shape, if they are refused."""
    if len(values) == 1 and values != ((),):
        values = ((),)  # one argument is what is iterated over
    (max if largest else min)(*values, **options)


@polyfill(min)
def min_(*values, key=None, **default):
    if len(values) != 1 or default:
        extremum_refuses(False, (0,) * len(values), dict.fromkeys(default))
    found = False
    best = best_key = None
    for item in values if len(values) != 1 else values[0]:
        item_key = item if key is None else key(item)
        if not found:
            found, best, best_key = True, item, item_key
        elif item_key < best_key:
            best, best_key = item, item_key
    if not found and not default:
        extremum_refuses(False, ((),), {})
    return best if found else default["default"]


@polyfill(max)
def max_(*values, key=None, **default):
    if len(values) != 1 or default:
        extremum_refuses(True, (0,) * len(values), dict.fromkeys(default))
    found = False
    best = best_key = None
    for item in values if len(values) != 1 else values[0]:
        item_key = item if key is None else key(item)
        if not found:
            found, best, best_key = True, item, item_key
        elif item_key > best_key:
            best, best_key = item, item_key
    if not found and not default:
        extremum_refuses(True, ((),), {})
    return best if found else default["default"]


def sort_by(items, keys, reverse):
    """Order the list `items` by `keys`, stably. A rule does it under capture where the keys are constants."""
    order = sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)
    items[:] = [items[index] for index in order]


@polyfill(list.sort)
def list_sort(self, /, *, key=None, reverse=False):
    if key is None:
        keys = list.copy(self)
    else:
        keys = []
        for item in list.copy(self):
            keys.append(key(item))
    sort_by(self, keys, reverse)


@polyfill(sorted)
def sorted_(iterable, /, *, key=None, reverse=False):
    items = list(iterable)
    if key is None:
        keys = list.copy(items)
    else:
        keys = []
        for item in items:
            keys.append(key(item))
    sort_by(items, keys, reverse)
    return items


def next_or(iterator, default, /):
    """next() with a default."""
    try:
        return next(iterator)
    except StopIteration:
        return default


@polyfill(collections._count_elements)  # type: ignore[attr-defined]
def count_elements(mapping, iterable, /):
    for item in iterable:
        mapping[item] = mapping.get(item, 0) + 1


@polyfill(functools.reduce)
def reduce_(function, iterable, /, *initial):
    try:
        iterator = iter(iterable)
    except TypeError:
        iterator = None
    if iterator is None:
        raise TypeError("reduce() arg 2 must support iteration")
    if initial:
        result = initial[0]
    else:
        try:
            result = next(iterator)
        except StopIteration:
            iterator = None
        if iterator is None:
            raise TypeError("reduce() of empty iterable with no initial value")
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            return result
        result = function(result, item)
