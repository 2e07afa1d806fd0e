"""The iterators of itertools over pools of items: product, permutations, combinations.

Their state is the indices of the result yielded last (None before the first) and how many were yielded. The real object
in the same state is one that has been advanced as often: the pools are tuples, so that calls nothing of the user's.
"""

from __future__ import annotations

import itertools
from operator import index

from ..registry import polyfill
from .support import at_capture

ADVANCED = "if [next(it) for _ in range({taken})] is not None][0]"


@polyfill(itertools.product)
class Product:
    rebuild = "[it for it in [itertools.product(*{pools})] " + ADVANCED

    def __init__(self, *iterables, repeat=1):
        repeat = index(repeat)
        if repeat < 0:
            product_refuses(repeat)
        pools = []
        for iterable in iterables if repeat else ():
            pools.append(tuple(iterable))
        self.pools = tuple(pools) * repeat
        self.indices = None
        self.taken = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.indices is None:
            self.indices = [0] * len(self.pools)
            more = () not in self.pools
        else:
            more = self.advance()
        if not more:
            self.pools, self.indices, self.taken = ((),), None, 0  # a product that has nothing
            raise StopIteration
        items = []
        for place in range(len(self.pools)):
            items.append(self.pools[place][self.indices[place]])
        self.taken += 1
        return tuple(items)

    def advance(self):
        """Count the indices up like digits; False after the last."""
        indices = self.indices
        for place in range(len(indices) - 1, -1, -1):
            indices[place] += 1
            if indices[place] < len(self.pools[place]):
                return True
            indices[place] = 0
        return False


class Choices:
    """Yields the items of `pool` at `indices`; the subclasses say which indices come first and next."""

    def __iter__(self):
        return self

    def __next__(self):
        if self.indices is None:
            self.indices = self.first()
            more = self.indices is not None
        else:
            more = self.advance()
        if not more:
            self.pool, self.length, self.indices, self.taken = (), 1, None, 0  # choices out of nothing
            raise StopIteration
        items = []
        for position in self.indices:
            items.append(self.pool[position])
        self.taken += 1
        return tuple(items)


@polyfill(itertools.combinations)
class Combinations(Choices):
    rebuild = "[it for it in [itertools.combinations({pool}, {length})] " + ADVANCED

    def __init__(self, iterable, r):
        self.length = index(r)
        self.pool = tuple(iterable)
        if self.length < 0:
            combinations_refuses(self.length)
        self.indices = None
        self.taken = 0

    def first(self):
        return list(range(self.length)) if self.length <= len(self.pool) else None

    def advance(self):
        """Move the rightmost index that has room, and those behind it to its right."""
        indices, length = self.indices, self.length
        room = len(self.pool) - length
        for place in range(length - 1, -1, -1):
            if indices[place] < place + room:
                start = indices[place] + 1
                for offset in range(length - place):
                    indices[place + offset] = start + offset
                return True
        return False


@polyfill(itertools.combinations_with_replacement)
class CombinationsWithReplacement(Choices):
    rebuild = "[it for it in [itertools.combinations_with_replacement({pool}, {length})] " + ADVANCED

    def __init__(self, iterable, r):
        self.length = index(r)
        self.pool = tuple(iterable)
        if self.length < 0:
            combinations_refuses(self.length)
        self.indices = None
        self.taken = 0

    def first(self):
        return [0] * self.length if self.pool or not self.length else None

    def advance(self):
        """Raise the rightmost index that isn't at the end, and those behind it to the same."""
        indices, length = self.indices, self.length
        for place in range(length - 1, -1, -1):
            if indices[place] < len(self.pool) - 1:
                indices[place:] = [indices[place] + 1] * (length - place)
                return True
        return False


@polyfill(itertools.permutations)
class Permutations(Choices):
    rebuild = "[it for it in [itertools.permutations({pool}, {length})] " + ADVANCED

    def __init__(self, iterable, r=None):
        self.pool = tuple(iterable)
        if r is None:
            r = len(self.pool)
        elif type(r) is not int or r < 0:
            permutations_refuses(r)
        self.length = r
        self.indices = None
        self.taken = 0

    def first(self):
        return list(range(self.length)) if self.length <= len(self.pool) else None

    def advance(self):
        """The next indices in lexicographic order: raise one to an unused index, and restart those behind it."""
        indices, size = self.indices, len(self.pool)
        for place in range(self.length - 1, -1, -1):
            used = indices[:place]
            for candidate in range(indices[place] + 1, size):
                if candidate not in used:
                    used.append(candidate)
                    for rest in range(size):
                        if len(used) == self.length:
                            break
                        if rest not in used:
                            used.append(rest)
                    self.indices = used
                    return True
        return False


@at_capture
def product_refuses(repeat):
    """Raise what itertools.product raises for this `repeat`."""
    itertools.product((), repeat=repeat)


@at_capture
def combinations_refuses(r):
    """Raise what itertools.combinations raises for this length."""
    itertools.combinations((), r)


@at_capture
def permutations_refuses(r):
    """Raise what itertools.permutations raises for this length."""
    itertools.permutations((), r)
