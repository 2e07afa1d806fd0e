"""Containers that change while somebody iterates over them: items, errors and contents are those of plain Python.

Each way to change one, in each kind of loop; captured whole, and with breaks in the middle.
"""

from __future__ import annotations

import itertools
import zlib
from collections import OrderedDict, defaultdict, deque

import pytest
import torch
from machine.oracle import difference, outcome

import dynacore
from bytecode_models import decode
from dynacore.emit.hard import HARD


def steps(view, change):
    """A loop over `view(c)` which changes `c` in its body, and what is left."""

    def run(c, x):
        seen = []
        try:
            for k in view(c):
                seen.append(k)
                if len(seen) > 9:
                    break
                x = x + 1
                change(c, k)
        except RuntimeError as error:
            seen.append(str(error))
        return seen, list(c), c, x

    return run


def by_hand(view, change):
    """The same with an iterator that is asked before, after and beyond the end."""

    def run(c, x):
        seen = []
        it = iter(view(c))
        last = next(it, "none")
        for _ in range(5):
            if last != "none":
                change(c, last)
            try:
                last = next(it, "none")
            except RuntimeError as error:
                last = "none"
                seen.append(str(error))
            seen.append(last)
        return seen, list(c)

    return run


def untouched(view, change):
    """Changed between making the iterator and asking it."""

    def run(c, x):
        it = iter(view(c))
        for k in list(c):
            change(c, k)
        try:
            return [next(it, "none"), next(it, "none")], list(c)
        except RuntimeError as error:
            return str(error), next(it, "after"), list(c)

    return run


def twice(view, change):
    """Two iterators, one of which stands still."""

    def run(c, x):
        seen = []
        still = iter(view(c))
        seen.append(next(still, "none"))
        try:
            for k in view(c):
                change(c, k)
                seen.append(k)
                if len(seen) > 9:
                    break
        except RuntimeError as error:
            seen.append(str(error))
        try:
            seen += [next(still, "none") for _ in range(3)]
        except RuntimeError as error:
            seen.append(str(error))
        return seen, list(c), list(still) if len(seen) > 20 else None

    return run


def move(c, k):
    del c[k]
    c[k + 5] = 0


def move_back(c, k):
    value = c.pop(k)
    c[k] = value


def first_out(c, k):
    del c[next(iter(c))]
    c[k + 5] = 0


def last_out(c, k):
    c.popitem()
    c[k + 5] = 0


def merge(c, k):
    del c[k]
    c.update({k + 5: 0})


def merge_named(c, k):
    del c[k]
    c.update([(k + 5, 0)])


def merge_many(c, k):
    for key in list(c):
        del c[key]
    c |= {k + 5: 0, k + 6: 1}


def come_and_go(c, k):
    c[k + 50] = 1
    del c[k + 50]


def refill(c, k):
    n = len(c)
    c.clear()
    for i in range(n):
        c[k + i + 1] = i


def give(c, k):
    c[k] = [k]


def grow(c, k):
    c[k + 5] = 1


def shrink(c, k):
    del c[k]


def default(c, k):
    c.pop(k)
    c.setdefault(k + 5, [])


def missing(c, k):
    del c[k]
    c[k + 5].append(k)


DICT_CHANGES = (
    move, move_back, first_out, last_out, merge, merge_named, merge_many, come_and_go, refill, give, grow, shrink,
    default,
)  # fmt: skip


def move_to_end(c, k):
    c.move_to_end(k)


def first_popped(c, k):
    c.popitem(last=False)
    c[k + 5] = 0


ORDERED_CHANGES = (move, last_out, first_popped, move_to_end, give, grow, shrink, refill, merge)


def set_move(c, k):
    c.remove(k)
    c.add(k + 5)


def set_far(c, k):
    c.discard(k)
    c.add(k + 64)


def set_pop(c, k):
    c.pop()
    c.add(k + 5)


def set_come_and_go(c, k):
    c.add(k + 50)
    c.remove(k + 50)


def set_union(c, k):
    c.discard(k)
    c |= {k + 5}


def set_update(c, k):
    c -= {k}
    c.update([k + 5], (k + 5,))


def set_other(c, k):
    c ^= {k, k + 5}


def set_keep(c, k):
    c &= {v for v in c if v != k}
    c.add(k + 7)


def set_refill(c, k):
    n = len(c)
    c.clear()
    c.update(range(k + 1, k + 1 + n))


def set_grow(c, k):
    c.add(k + 5)


def set_shrink(c, k):
    c.remove(k)


def set_same(c, k):
    c.add(k)


SET_CHANGES = (
    set_move, set_far, set_pop, set_come_and_go, set_union, set_update, set_other, set_keep, set_refill, set_grow,
    set_shrink, set_same,
)  # fmt: skip


def put(c, k):
    c[len(c) - 1] = k + 10


def turn(c, k):
    c.rotate(1)


def turn_around(c, k):
    c.rotate(len(c))


def flip(c, k):
    c.reverse()


def append(c, k):
    c.append(k + 5)


def in_and_out(c, k):
    c.append(0)
    c.pop()


def both_ends(c, k):
    c.append(c.popleft())


def take(c, k):
    c.pop()


def empty(c, k):
    c.clear()


SEQUENCE_CHANGES = (put, flip, append, in_and_out, take, empty)
DEQUE_CHANGES = (*SEQUENCE_CHANGES, turn, turn_around, both_ends)

LOOPS = (steps, by_hand, untouched, twice)
VIEWS = {"iter": iter, "reversed": reversed, "items": lambda c: c.items()}


def holes():
    """A dict whose table has gaps."""
    d = dict.fromkeys(range(5), 1)
    for k in (0, 2, 3):
        del d[k]
    return d


def sparse():
    """A set with a larger table than its members need."""
    s = set(range(40))
    s.difference_update(set(s) - {33, 2, 9})
    return s


#: (how to change it, how to iterate, what makes one)
CONTAINERS = {
    "dict": (DICT_CHANGES, VIEWS, lambda: {1: 2, 3: 4}, lambda: {1: 2}, dict, holes),
    "OrderedDict": (ORDERED_CHANGES, VIEWS, lambda: OrderedDict({1: 2, 3: 4}), lambda: OrderedDict({1: 2})),
    "defaultdict": ((missing, shrink), VIEWS, lambda: defaultdict(list, {1: [], 3: []})),
    "set": (SET_CHANGES, ("iter",), lambda: {1, 3}, lambda: {2}, set, sparse),
    "deque": (DEQUE_CHANGES, ("iter", "reversed"), lambda: deque([1, 2, 3]), lambda: deque([1]), deque,
              lambda: deque([1, 2, 3], 3)),
    "list": (SEQUENCE_CHANGES, ("iter", "reversed"), lambda: [1, 2, 3], lambda: [1], list),
}  # fmt: skip


def hard(code, index):
    return decode(code).instrs[index].op in HARD


def some(code, index):
    return hard(code, index) and zlib.crc32(repr((code.co_name, code.co_firstlineno, index)).encode()) % 4 == 0


CUTS = {"whole": None, "some": some, "everywhere": hard}
ROWS = [(name, change) for name, (changes, *_) in CONTAINERS.items() for change in changes]


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(("name", "change"), ROWS, ids=lambda row: getattr(row, "__name__", row))
def test_changes_while_iterating(name, change, cut):
    _, views, *makes = CONTAINERS[name]
    for view, loop in itertools.product(views, LOOPS):
        by_key = change if view != "items" else lambda c, pair: change(c, pair[0])
        function = loop(VIEWS[view], by_key)
        compiled = dynacore.compile(function, backend="eager")
        with dynacore.config.patch(verify=True, testing_cut=CUTS[cut], recompile_limit=50):
            for make in (*makes, makes[0]):
                call = lambda make=make: (make(), torch.ones(1))  # noqa: E731
                different = difference(outcome(compiled, call), outcome(function, call))
                assert not different, f"{loop.__name__} over {view} of {make()}"


@pytest.mark.parametrize("made", [False, True])
def test_a_key_that_goes_and_comes_is_last(made):
    def reorder(given):
        d = {"a": 1, "b": 2, "c": 3} if made else given
        value = d.pop("a")
        dynacore.graph_break()
        d["a"] = value
        del d["b"]
        d["b"] = 4
        dynacore.graph_break()
        first = next(iter(d))
        d.clear()
        d[first] = 0
        d.update(b=1, a=2)
        return d

    compiled = dynacore.compile(reorder, backend="eager")
    for _ in range(2):
        ours, plain = {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2, "c": 3}
        assert list(compiled(ours).items()) == list(reorder(plain).items())
        assert list(ours.items()) == list(plain.items())
