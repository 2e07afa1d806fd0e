"""The lazy iterators of itertools."""

from __future__ import annotations

import contextlib
import itertools
from operator import index

from ..registry import polyfill
from .support import at_capture, same


@polyfill(itertools.accumulate)
class Accumulate:
    # A total that was yielded already is the initial value of the rest, taken at once.
    rebuild = (
        "[it for it in [itertools.accumulate(itertools.chain((None,), {iterator}) if {taken} and {total} is None"
        " else {iterator}, {function}, initial={total})] if [next(it) for _ in range({taken})] is not None][0]"
    )

    def __init__(self, iterable, func=None, *, initial=None):
        self.iterator = iter(iterable)
        self.function = func
        self.total = initial
        self.taken = 0  # whether `total` was yielded

    def __iter__(self):
        return self

    def __next__(self):
        total = self.total
        if self.taken:
            item = next(self.iterator)
            total = total + item if self.function is None else self.function(total, item)
        elif total is None:
            total = next(self.iterator)
        self.total = total
        self.taken = 1
        return total


@polyfill(itertools.chain)
class Chain:
    rebuild = "itertools.chain.from_iterable(itertools.chain({current}, {iterables}))"

    def __init__(self, *iterables):
        self.iterables = iter(iterables)
        self.current = ()  # the iterator in use, if any

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            if not self.current:
                try:
                    iterable = next(self.iterables)
                except StopIteration:
                    self.iterables = iter(())
                    raise
                self.current = (iter(iterable),)
            try:
                return next(self.current[0])
            except StopIteration:
                self.current = ()


@polyfill(itertools.chain.__dict__["from_iterable"])
def chain_from_iterable(cls, iterable, /):
    chain = cls()
    chain.iterables = iter(iterable)
    return chain


@polyfill(itertools.compress)
class Compress:
    rebuild = "itertools.compress({data}, {selectors})"

    def __init__(self, data, selectors):
        self.data = iter(data)
        self.selectors = iter(selectors)

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            item = next(self.data)
            if next(self.selectors):
                return item


@at_capture
def count_refuses(start):
    """Raise what itertools.count raises for a start that isn't a number."""
    itertools.count(start)


def is_number(value):
    """Whether C code takes the value for a number."""
    if type(value) is complex:
        return True
    return hasattr(value, "__index__") or hasattr(value, "__float__") or hasattr(value, "__int__")


@polyfill(itertools.count)
class Count:
    rebuild = "itertools.count({value}, {step})"

    def __init__(self, start=0, step=1):
        if not is_number(start) or not is_number(step):
            count_refuses("")
        self.value = start
        self.step = step

    def __iter__(self):
        return self

    def __next__(self):
        value = self.value
        self.value = value + self.step
        return value

    def __repr__(self):
        step = self.step
        return f"count({self.value!r})" if type(step) is int and step == 1 else f"count({self.value!r}, {step!r})"


@polyfill(itertools.cycle)
class Cycle:
    rebuild = (
        "[it for it in [itertools.cycle(itertools.chain({saved}, {iterator}))]"
        " if [next(it) for _ in range({taken})] is not None][0]"
    )

    def __init__(self, iterable, /):
        self.iterator = iter(iterable)
        self.saved = []
        self.taken = 0  # how many of `saved` have been yielded in this turn
        self.first = True

    def __iter__(self):
        return self

    def __next__(self):
        if self.first:
            try:
                item = next(self.iterator)
            except StopIteration:
                self.first = False
                self.iterator = iter(())
            else:
                self.saved.append(item)
                self.taken += 1
                return item
        if not self.saved:
            raise StopIteration
        if self.taken == len(self.saved):
            self.taken = 0
        item = self.saved[self.taken]
        self.taken += 1
        return item


@polyfill(itertools.dropwhile)
class DropWhile:
    rebuild = "itertools.dropwhile((lambda item: False) if {started} else {function}, {iterator})"

    def __init__(self, predicate, iterable, /):
        self.iterator = iter(iterable)
        self.function = predicate
        self.started = False

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            item = next(self.iterator)
            if self.started:
                return item
            if not self.function(item):
                self.started = True
                return item


@polyfill(itertools.filterfalse)
class FilterFalse:
    rebuild = "itertools.filterfalse({function}, {iterator})"

    def __init__(self, function, iterable, /):
        self.iterator = iter(iterable)
        self.function = function

    def __iter__(self):
        return self

    def __next__(self):
        function = self.function
        while True:
            item = next(self.iterator)
            if not (item if function is None or function is bool else function(item)):
                return item


class GroupBy:
    """A group and its parent share their position, which no expression can give a real one: this one stays."""

    def __init__(self, iterable, key=None):
        self.iterator = iter(iterable)
        self.function = key
        self.pending = ()  # the item that was read and not yielded yet
        self.keys = ()  # the key of the item that was read last
        self.wanted = ()  # the key of the group that was yielded last
        self.group = None

    def __iter__(self):
        return self

    def advance(self):
        """Read one item."""
        item = next(self.iterator)
        function = self.function
        key = item if function is None else function(item)
        self.pending = (item,)
        self.keys = (key,)

    def __next__(self):
        self.group = None
        while not self.keys or (self.wanted and same(self.wanted[0], self.keys[0])):
            self.advance()
        self.wanted = self.keys
        self.group = group = Group(self, self.keys[0])
        return self.keys[0], group


@polyfill(itertools.groupby)
def groupby_(iterable, key=None):
    return GroupBy(iterable, key)


class Group:
    """One group of groupby: ends when its parent moves on."""

    def __init__(self, parent, key):
        self.parent = parent
        self.key = key

    def __iter__(self):
        return self

    def __next__(self):
        parent = self.parent
        if parent.group is not self:
            raise StopIteration
        if not parent.pending:
            parent.advance()
        if not same(self.key, parent.keys[0]):
            raise StopIteration
        item = parent.pending[0]
        parent.pending = ()
        return item


@at_capture
def islice_bounds(*bounds):
    """start, stop and step as itertools.islice takes them; raises as it does."""
    with contextlib.suppress(Exception):  # islice says it in words of its own
        bounds = [bound if bound is None else index(bound) for bound in bounds]  # asked once
    itertools.islice((), *bounds)
    bounds = slice(*bounds)
    return bounds.start or 0, bounds.stop, 1 if bounds.step is None else bounds.step


@polyfill(itertools.islice)
class ISlice:
    rebuild = (
        "itertools.islice({iterator}, {following} - {passed}, None if {stop} is None else {stop} - {passed}, {step})"
    )

    def __init__(self, iterable, /, *bounds):
        self.following, self.stop, self.step = islice_bounds(*bounds)
        self.iterator = iter(iterable)
        self.passed = 0  # how many items were taken from the iterator

    def __iter__(self):
        return self

    def __next__(self):
        stop = self.stop
        try:
            while self.passed < self.following:
                next(self.iterator)
                self.passed += 1
            if stop is not None and self.passed >= stop:
                raise StopIteration
            item = next(self.iterator)
        except StopIteration:
            self.iterator = iter(())
            raise
        self.passed += 1
        following = self.following + self.step
        self.following = following if stop is None or following < stop else stop
        return item


@polyfill(itertools.pairwise)
class Pairwise:
    rebuild = "itertools.pairwise(itertools.chain({head}, {iterator}))"

    def __init__(self, iterable, /):
        self.iterator = iter(iterable)
        self.head = ()  # the item before the next one

    def __iter__(self):
        return self

    def __next__(self):
        try:
            if not self.head:
                self.head = (next(self.iterator),)
            item = next(self.iterator)
        except StopIteration:
            self.iterator = iter(())
            self.head = ()
            raise
        pair = self.head[0], item
        self.head = (item,)
        return pair


@polyfill(itertools.repeat)
class Repeat:
    rebuild = "itertools.repeat({item}, *{left})"

    def __init__(self, object, *number, **times):
        if times or len(number) > 1:
            number = repeat_times(*number, **times)
        self.item = object
        self.left = (max(0, index(number[0])),) if number else ()

    def __iter__(self):
        return self

    def __next__(self):
        if self.left:
            left = self.left[0]
            if left == 0:
                raise StopIteration
            self.left = (left - 1,)
        return self.item

    def __length_hint__(self):
        if not self.left:
            raise TypeError("len() of unsized object")
        return self.left[0]

    def __repr__(self):
        return f"repeat({self.item!r}, {self.left[0]})" if self.left else f"repeat({self.item!r})"


@at_capture
def repeat_times(*number, **times):
    """The number of repetitions, by position or as `times`; raises as itertools.repeat does."""
    itertools.repeat(None, *number, **times)
    return (*number, *times.values())


@polyfill(itertools.starmap)
class StarMap:
    rebuild = "itertools.starmap({function}, {iterator})"

    def __init__(self, function, iterable, /):
        self.iterator = iter(iterable)
        self.function = function

    def __iter__(self):
        return self

    def __next__(self):
        arguments = next(self.iterator)
        if type(arguments) is not tuple:
            arguments = tuple(arguments)
        return self.function(*arguments)


@polyfill(itertools.takewhile)
class TakeWhile:
    rebuild = "itertools.takewhile({function}, {iterator})"

    def __init__(self, predicate, iterable, /):
        self.iterator = iter(iterable)
        self.function = predicate

    def __iter__(self):
        return self

    def __next__(self):
        item = next(self.iterator)
        if self.function(item):
            return item
        self.iterator = iter(())
        raise StopIteration


class Tee:
    """One of the iterators that itertools.tee returns. They share links: [] until read, then [item, next]."""

    def __init__(self, iterator, link):
        self.iterator = iterator
        self.link = link

    def __iter__(self):
        return self

    def __copy__(self):
        return Tee(self.iterator, self.link)

    def __next__(self):
        link = self.link
        if not link:
            item = next(self.iterator)
            link += (item, [])
        self.link = link[1]
        return link[0]


@at_capture
def tee_refuses(n):
    """Raise what itertools.tee raises for a number of iterators that isn't one."""
    itertools.tee((), n)


@polyfill(itertools.tee)
def tee_(iterable, n=2, /):
    n = index(n)
    if n < 0:
        tee_refuses(n)
    if n == 0:
        return ()
    iterator = iter(iterable)
    if not hasattr(iterator, "__copy__"):
        iterator = Tee(iter(iterator), [])
    copies = [iterator]
    for _ in range(n - 1):
        copies.append(iterator.__copy__())
    return tuple(copies)


@polyfill(itertools.zip_longest)
class ZipLongest:
    # An iterator that has ended (None) is replaced by an empty one.
    rebuild = "itertools.zip_longest(*[() if it is None else it for it in {iterators}], fillvalue={fillvalue})"

    def __init__(self, *iterables, fillvalue=None):
        iterators = []
        for iterable in iterables:
            iterators.append(iter(iterable))
        self.iterators = iterators
        self.active = len(iterators)
        self.fillvalue = fillvalue

    def __iter__(self):
        return self

    def __next__(self):
        if not self.active:
            raise StopIteration
        items = []
        for place in range(len(self.iterators)):
            items.append(self.item(place))
        return tuple(items)

    def item(self, place):
        """The next item of one iterator, or the fill value."""
        iterator = self.iterators[place]
        if iterator is None:
            return self.fillvalue
        try:
            return next(iterator)
        except StopIteration:
            if self.active == 1:
                self.end()
                raise
        except BaseException:
            self.end()
            raise
        self.active -= 1
        self.iterators[place] = None
        return self.fillvalue

    def end(self):
        """Give nothing more."""
        self.active = 0
        self.iterators = []


if hasattr(itertools, "batched"):

    @at_capture
    def batched_refuses(n):
        """Raise what itertools.batched raises for a size that isn't one."""
        itertools.batched((), n)

    @polyfill(itertools.batched)
    class Batched:
        rebuild = "itertools.batched({iterator}, {size})"

        def __init__(self, iterable, n):
            self.size = index(n)
            if self.size < 1:
                batched_refuses(self.size)
            self.iterator = iter(iterable)

        def __iter__(self):
            return self

        def __next__(self):
            items = []
            try:
                for _ in range(self.size):
                    items.append(next(self.iterator))
            except StopIteration:
                if not items:
                    self.iterator = iter(())
                    raise
            return tuple(items)
