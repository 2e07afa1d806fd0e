"""The iterator classes among the built-ins: zip, map, filter, enumerate, reversed, and iter() with a sentinel."""

from __future__ import annotations

from operator import index

from ..registry import polyfill
from .support import same, unusual


def is_iterator(obj, /):
    """Whether an object has a `__next__`. A rule answers."""
    return hasattr(type(obj), "__next__")


def iterator_of(method, obj, /):
    """iter() by a Python method."""
    iterator = method(obj)
    if not is_iterator(iterator):
        return unusual(iter, "__iter__", obj, iterator)
    return iterator


@polyfill(zip)
class Zip:
    rebuild = "zip(*{iterators}, strict={strict})"

    def __init__(self, *iterables, strict=False):
        iterators = []
        for iterable in iterables:
            iterators.append(iter(iterable))
        self.iterators = tuple(iterators)
        self.strict = bool(strict)

    def __iter__(self):
        return self

    def __next__(self):
        if not self.iterators:
            raise StopIteration
        if self.strict:
            return self.next_strict()
        items = []
        for iterator in self.iterators:
            items.append(next(iterator))
        return tuple(items)

    def next_strict(self):
        """All iterators must end together."""
        items = []
        for iterator in self.iterators:
            try:
                items.append(next(iterator))
            except StopIteration:
                break
        else:
            return tuple(items)
        short = len(items)
        if short:
            raise ValueError(f"zip() argument {short + 1} is shorter than argument{named(short)}")
        for number, iterator in enumerate(self.iterators):
            if number == 0:
                continue
            try:
                next(iterator)
            except StopIteration:
                continue
            raise ValueError(f"zip() argument {number + 1} is longer than argument{named(number)}")
        raise StopIteration


def named(count):
    """How zip() names its first `count` arguments."""
    return " 1" if count == 1 else f"s 1-{count}"


@polyfill(map)
class Map:
    rebuild = "map({function}, *{iterators})"

    def __init__(self, function, *iterables):
        if not iterables:
            raise TypeError("map() must have at least two arguments.")
        iterators = []
        for iterable in iterables:
            iterators.append(iter(iterable))
        self.function = function
        self.iterators = tuple(iterators)

    def __iter__(self):
        return self

    def __next__(self):
        if len(self.iterators) == 1:
            return self.function(next(self.iterators[0]))
        items = []
        for iterator in self.iterators:
            items.append(next(iterator))
        return self.function(*items)


@polyfill(filter)
class Filter:
    rebuild = "filter({function}, {iterator})"

    def __init__(self, function, iterable, /):
        self.iterator = iter(iterable)
        self.function = function

    def __iter__(self):
        return self

    def __next__(self):
        function = self.function
        while True:
            item = next(self.iterator)
            if item if function is None or function is bool else function(item):
                return item


@polyfill(enumerate)
class Enumerate:
    rebuild = "enumerate({iterator}, {count})"

    def __init__(self, iterable, start=0):
        self.count = index(start) + 0
        self.iterator = iter(iterable)

    def __iter__(self):
        return self

    def __next__(self):
        item = next(self.iterator)
        count = self.count
        self.count = count + 1
        return count, item


class Old:
    """The oldest kind of sequence, without any item."""

    def __getitem__(self, index):
        raise IndexError


ENDED = Old()


@polyfill(type(iter(ENDED)))
class SequenceIterator:
    """iter() of an object that has `__getitem__` alone."""

    rebuild = "[it for it in [iter({sequence})] if it.__setstate__({index}) is None][0]"

    def __init__(self, sequence):
        self.index = 0
        self.sequence = sequence

    def __iter__(self):
        return self

    def __next__(self):
        try:
            item = self.sequence[self.index]
        except (IndexError, StopIteration):
            pass
        else:
            self.index += 1
            return item
        self.index, self.sequence = 0, ENDED
        raise StopIteration


@polyfill(reversed)
class Reversed:
    """reversed() of an object that has `__len__` and `__getitem__` alone."""

    rebuild = "[it for it in [reversed({sequence})] if it.__setstate__({index}) is None][0]"

    def __init__(self, sequence):
        self.index = len(sequence) - 1
        self.sequence = sequence

    def __iter__(self):
        return self

    def __next__(self):
        if self.index >= 0:
            try:
                item = self.sequence[self.index]
            except (IndexError, StopIteration):
                pass
            else:
                self.index -= 1
                return item
        self.index = -1
        self.sequence = ()
        raise StopIteration

    def __length_hint__(self):
        return 0 if self.index > len(self.sequence) - 1 else self.index + 1


@polyfill(type(iter(int, 0)))
class CallIterator:
    """iter(function, sentinel)."""

    rebuild = "iter({function}, {sentinel})"

    def __init__(self, function, sentinel):
        self.function = function
        self.sentinel = sentinel

    def __iter__(self):
        return self

    def __next__(self):
        try:
            item = self.function()
        except StopIteration:
            ended = True
        else:
            ended = same(item, self.sentinel)
        if ended:
            self.function, self.sentinel = int, 0  # int() == 0: an iterator that has ended
            raise StopIteration
        return item
