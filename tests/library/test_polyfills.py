"""The polyfills against the C callables that they stand for: values, errors, laziness, ends, making them real."""

from __future__ import annotations

import builtins
import collections
import functools
import itertools
import operator
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynacore.library import polyfills
from dynacore.library.polyfills import functions, iterators, itertoolz
from dynacore.library.registry import POLYFILLS

MODULES = {module.__name__: module for module in (builtins, collections, functools, itertools, operator)}
MISSING = object()


class Source:
    """An iterator that writes down when it is asked, and that goes on after its ends (a None among the items)."""

    def __init__(self, items, log, name):
        self.items, self.log, self.name = list(items), log, name

    def __iter__(self):
        self.log.append((self.name, "iter"))
        return self

    def __next__(self):
        self.log.append((self.name, "next"))
        if not self.items or (item := self.items.pop(0)) is None:
            raise StopIteration
        return item


def logged(function, log):
    def call(*args):
        log.append(("call", args))
        return function(*args)

    return call


def replacement(real):
    return POLYFILLS[id(real)]


def outcome(function, *args, **kwargs):
    """What a call gives, or the exception's type and text."""
    try:
        return "value", function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)


def rebuilt(obj):
    """The real object in the same state."""
    names = {}

    def name(match):
        names[match[1]] = getattr(obj, match[1])
        return match[1]

    return eval(re.sub(r"\{(\w+)\}", name, type(obj).rebuild), {**MODULES, **names})


# (real class, arguments made of a log and sources s(0), s(1), keyword arguments)
ITERATORS = {
    "zip": (zip, lambda s, log: (s(0), s(1)), {}),
    "zip strict": (zip, lambda s, log: (s(0), s(1), s(0)), {"strict": True}),
    "zip nothing": (zip, lambda s, log: (), {}),
    "map": (map, lambda s, log: (logged(lambda a: a * 2, log), s(0)), {}),
    "map two": (map, lambda s, log: (logged(lambda a, b: (a, b), log), s(0), s(1)), {}),
    "filter": (filter, lambda s, log: (logged(lambda a: a % 2, log), s(0)), {}),
    "filter None": (filter, lambda s, log: (None, s(0)), {}),
    "enumerate": (enumerate, lambda s, log: (s(0), 3), {}),
    "enumerate bool": (enumerate, lambda s, log: (s(0),), {"start": True}),
    "accumulate": (itertools.accumulate, lambda s, log: (s(0),), {}),
    "accumulate func": (itertools.accumulate, lambda s, log: (s(0), logged(operator.sub, log)), {"initial": 9}),
    "accumulate initial": (itertools.accumulate, lambda s, log: (s(0),), {"initial": 0}),
    "chain": (itertools.chain, lambda s, log: (s(0), s(1)), {}),
    "compress": (itertools.compress, lambda s, log: (s(0), s(1)), {}),
    "count": (itertools.count, lambda s, log: (2, 0.5), {}),
    "count default": (itertools.count, lambda s, log: (), {}),
    "cycle": (itertools.cycle, lambda s, log: (s(0),), {}),
    "dropwhile": (itertools.dropwhile, lambda s, log: (logged(lambda a: a % 3, log), s(0)), {}),
    "filterfalse": (itertools.filterfalse, lambda s, log: (logged(lambda a: a % 3, log), s(0)), {}),
    "filterfalse None": (itertools.filterfalse, lambda s, log: (None, s(0)), {}),
    "islice": (itertools.islice, lambda s, log: (s(0), 4), {}),
    "islice step": (itertools.islice, lambda s, log: (s(0), 1, 6, 2), {}),
    "islice open": (itertools.islice, lambda s, log: (s(0), 2, None), {}),
    "islice over": (itertools.islice, lambda s, log: (s(0), 0, 5, 3), {}),
    "pairwise": (itertools.pairwise, lambda s, log: (s(0),), {}),
    "repeat": (itertools.repeat, lambda s, log: (7,), {}),
    "repeat times": (itertools.repeat, lambda s, log: (7, 3), {}),
    "repeat keyword": (itertools.repeat, lambda s, log: (7,), {"times": -2}),
    "starmap": (itertools.starmap, lambda s, log: (logged(pow, log), zip(s(0), s(1))), {}),
    "takewhile": (itertools.takewhile, lambda s, log: (logged(lambda a: a % 3, log), s(0)), {}),
    "zip_longest": (itertools.zip_longest, lambda s, log: (s(0), s(1)), {"fillvalue": "-"}),
    "product": (itertools.product, lambda s, log: (s(0), s(1)), {}),
    "product repeat": (itertools.product, lambda s, log: (s(0),), {"repeat": 2}),
    "product none": (itertools.product, lambda s, log: (s(0),), {"repeat": 0}),
    "permutations": (itertools.permutations, lambda s, log: (s(0),), {}),
    "permutations 2": (itertools.permutations, lambda s, log: (s(0), 2), {}),
    "combinations": (itertools.combinations, lambda s, log: (s(0), 2), {}),
    "combinations 0": (itertools.combinations, lambda s, log: (s(0), 0), {}),
    "with_replacement": (itertools.combinations_with_replacement, lambda s, log: (s(0), 3), {}),
}
if hasattr(itertools, "batched"):
    ITERATORS["batched"] = (itertools.batched, lambda s, log: (s(0), 3), {})

items = st.lists(st.one_of(st.integers(0, 5), st.none()), max_size=5)


def make(case, cls, first, second):
    """One object, and the log of what it does to its sources."""
    _, arguments, options = ITERATORS[case]
    log = []
    return cls(*arguments(lambda n: Source((first, second)[n], log, n), log), **options), log


@pytest.mark.parametrize("case", ITERATORS)
@given(first=items, second=items)
@settings(max_examples=60, deadline=None)
def test_iterator_steps_like_the_real_one(case, first, second):
    real = ITERATORS[case][0]
    theirs, their_log = make(case, real, first, second)
    ours, our_log = make(case, replacement(real), first, second)
    assert iter(ours) is ours
    for step in range(12):
        assert outcome(next, ours) == outcome(next, theirs), step
        assert our_log == their_log, step


@pytest.mark.parametrize("case", ITERATORS)
@given(first=items, second=items, steps=st.integers(0, 12))
@settings(max_examples=60, deadline=None)
def test_iterator_is_made_real_in_any_state(case, first, second, steps):
    real = ITERATORS[case][0]
    theirs, their_log = make(case, real, first, second)
    ours, our_log = make(case, replacement(real), first, second)
    for _ in range(steps):
        outcome(next, theirs), outcome(next, ours)
    again = rebuilt(ours)
    assert type(again) is real
    their_log.clear()
    our_log[:] = []
    for step in range(8):
        assert outcome(next, again) == outcome(next, theirs), step
        assert asked(our_log) == asked(their_log), step


def asked(log):
    """The log without iter() of what is an iterator already: making the real object asks for that again."""
    return [entry for entry in log if entry[1] != "iter"]


@given(values=st.lists(st.integers(0, 3)), steps=st.integers(0, 5))
def test_reversed_and_call_iterators(values, steps):
    class Sequence:
        def __len__(self):
            return len(values)

        def __getitem__(self, index):
            return values[index]

    pop = list(values).pop
    for ours, theirs in (
        (iterators.Reversed(Sequence()), reversed(Sequence())),
        (iterators.CallIterator(list(values).pop, 2), iter(list(values).pop, 2)),
    ):
        for _ in range(steps):
            assert outcome(next, ours) == outcome(next, theirs)
        again = rebuilt(ours)
        for _ in range(4):
            assert outcome(next, again) == outcome(next, theirs)
    assert pop is not None


@given(values=st.lists(st.integers(0, 9)), walk=st.lists(st.integers(0, 3), max_size=20))
def test_groupby_shares_its_position_with_its_groups(values, walk):
    def run(groupby):
        log, groups, seen = [], [], []
        outer = groupby(Source(values, log, 0), logged(lambda v: v // 3, log))
        for step in walk:
            if step == 0 or step > len(groups):
                kind, value = outcome(next, outer)
                if kind == "value":
                    groups.append(value[1])
                    value = value[0]
                seen.append((kind, value))
            else:
                seen.append(outcome(next, groups[-step]))
        return seen, log

    assert run(itertoolz.groupby_) == run(itertools.groupby)


@given(values=st.lists(st.integers()), walk=st.lists(st.integers(0, 2), max_size=20))
def test_tee_reads_its_source_once(values, walk):
    def run(tee):
        log = []
        copies = list(tee(Source(values, log, 0), 2))
        copies += tee(copies[0], 2)[1:]
        return [outcome(next, copies[index]) for index in walk], log

    assert run(itertoolz.tee_) == run(itertools.tee)


def test_chain_from_iterable_is_lazy():
    log = []
    chain = itertoolz.chain_from_iterable(itertoolz.Chain, Source([[1], [2, 3]], log, 0))
    assert [next(chain), log] == [1, [(0, "iter"), (0, "next")]]
    assert list(rebuilt(chain)) == [2, 3]


# -- functions ---------------------------------------------------------------------------------------------------------

numbers = st.one_of(st.integers(-3, 3), st.floats(allow_nan=True, width=16), st.booleans(), st.just(10**400))


@given(st.lists(numbers), numbers)
def test_sum_of_numbers(values, start):
    assert repr(outcome(functions.sum_, values, start)) == repr(outcome(sum, values, start))


@given(st.lists(st.one_of(st.floats(-1, 1), st.fractions(max_denominator=9))))
def test_sum_of_mixed_kinds(values):
    assert repr(functions.sum_(values)) == repr(sum(values))


OPTIONS = [{}, {"key": abs}, {"default": 7}, {"key": lambda v: -v, "default": 1}, {"foo": 1}]


@given(st.lists(numbers), st.sampled_from(OPTIONS))
def test_min_and_max(values, options):
    for ours, theirs in ((functions.min_, min), (functions.max_, max)):
        assert repr(outcome(ours, values, **options)) == repr(outcome(theirs, values, **options))
        assert repr(outcome(ours, *values, 1, **options)) == repr(outcome(theirs, *values, 1, **options))


@given(st.lists(st.integers(0, 5)), st.booleans())
def test_sorting_is_stable_and_keys_are_called_once(values, reverse):
    def run(sort):
        log = []
        pairs = list(enumerate(values))
        return sort(pairs, key=logged(lambda pair: pair[1], log), reverse=reverse), log

    assert run(functions.sorted_) == run(sorted)
    items = list(values)
    functions.list_sort(items, reverse=reverse)
    assert items == sorted(values, reverse=reverse)


@given(st.lists(st.integers(0, 5)), st.lists(st.integers(0, 5), max_size=1))
def test_reduce_any_all(values, initial):
    arguments = operator.sub, values, *initial
    assert outcome(functions.reduce_, *arguments) == outcome(functools.reduce, *arguments)
    for ours, theirs in ((functions.any_, any), (functions.all_, all)):
        log, other = [], []
        assert ours(Source(values, log, 0)) == theirs(Source(values, other, 0))
        assert log == other


@pytest.mark.parametrize(
    "call",
    [
        lambda f: f(min)(),
        lambda f: f(min)([]),
        lambda f: f(max)(1, 2, default=3),
        lambda f: f(sum)(["a"], ""),
        lambda f: f(sum)([], b""),
        lambda f: f(sum)(["a"]),
        lambda f: f(map)(len),
        lambda f: f(zip)([1], 2),
        lambda f: f(enumerate)([], 1.5),
        lambda f: f(filter)(None, 1),
        lambda f: f(functools.reduce)(max, 3),
        lambda f: f(functools.reduce)(max, []),
        lambda f: f(itertools.count)("a"),
        lambda f: f(itertools.islice)([1], -1),
        lambda f: f(itertools.islice)([1], 0, 3, 0),
        lambda f: f(itertools.islice)([1], 0, -1),
        lambda f: f(itertools.combinations)([1], -1),
        lambda f: f(itertools.permutations)([1], "a"),
        lambda f: f(itertools.permutations)([1], -2),
        lambda f: f(itertools.combinations_with_replacement)([1], 1.0),
        lambda f: f(itertools.product)([1], repeat=-1),
        lambda f: f(itertools.product)([1], repeat="a"),
        lambda f: f(itertools.product)(1),
        lambda f: f(itertools.repeat)(2, 1.5),
        lambda f: f(itertools.repeat)(2, 1, times=3),
        lambda f: f(itertools.tee)([1], -1),
        lambda f: f(itertools.accumulate)(1),
        lambda f: next(f(itertools.chain)(1)),
        lambda f: f(itertools.pairwise)(1),
        lambda f: next(f(itertools.starmap)(pow, [3])),
        lambda f: list(f(zip)([1, 2], [1], strict=True)),
        lambda f: list(f(zip)([1], [1], [1, 2], strict=True)),
        lambda f: list(f(zip)([1, 2], [1, 2], [1], strict=True)),
    ],
)
def test_errors_have_the_same_type_and_text(call):
    ours, theirs = outcome(call, replacement), outcome(call, lambda real: real)
    assert theirs[0] != "value"
    assert ours == theirs


def test_texts_of_count_and_repeat():
    for args in ((3,), (3, 2), (1.5, 1.0)):
        assert repr(replacement(itertools.count)(*args)) == repr(itertools.count(*args))
    for args in (("a", 2), (1,)):
        assert repr(replacement(itertools.repeat)(*args)) == repr(itertools.repeat(*args))


def test_every_iterator_class_says_how_it_is_made_real():
    classes = [cls for cls in POLYFILLS.values() if isinstance(cls, type)]
    assert len(classes) > 20
    for cls in classes:
        assert isinstance(cls.rebuild, str) or callable(cls.rebuild), cls
    assert polyfills.__all__
