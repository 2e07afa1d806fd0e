"""Rules and polyfills through the machine: each program must give what plain Python gives, in every call."""

from __future__ import annotations

import copy

import pytest
import torch
from library import containers, objects, values
from library.programs import BREAKS, PROGRAMS

import dynacore
from dynacore import stats


def plain(value):
    """A value in a form that compares by type, contents and remaining items."""
    if isinstance(value, torch.Tensor):
        return "tensor", value.tolist(), value.dtype
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(item) for item in value], plain(getattr(value, "__dict__", None))
    if isinstance(value, dict):
        return type(value).__name__, [(plain(key), plain(item)) for key, item in value.items()]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(map(repr, value))
    if hasattr(value, "__next__"):
        return type(value).__name__, [plain(item) for item, _ in zip(value, range(5))]
    return type(value).__name__, repr(value)


def arguments(call):
    return call() if callable(call) else copy.deepcopy(call)


def test_all_programs_are_registered():
    modules = {function.__module__ for function, _ in PROGRAMS.values()}
    assert modules == {module.__name__ for module in (containers, objects, values)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    function, calls = PROGRAMS[name]
    x = torch.arange(1.0, 4.0)
    with stats.collect() as records:
        compiled = dynacore.compile(function, backend="eager")
        for call in (*calls, *calls):
            ours, theirs = arguments(call), arguments(call)
            expected = plain(function(x, *theirs))  # first: what is imported lazily is there for good
            assert plain(compiled(x, *ours)) == expected
            assert plain(ours) == plain(theirs)
    stops = {record.stop.summary for record in records if record.stop is not None}
    assert records
    assert bool(stops) is (name in BREAKS), stops
