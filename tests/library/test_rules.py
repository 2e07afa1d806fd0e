"""Rules and polyfills through the machine: each program must give what plain Python gives, in every call."""

from __future__ import annotations

import copy
import importlib.util
import pathlib
import sys

import pytest
import torch

import dynacore
from dynacore import stats

_spec = importlib.util.spec_from_file_location("library_programs", pathlib.Path(__file__).with_name("programs.py"))
programs = sys.modules["library_programs"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)


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


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_program(name):
    function, calls = programs.PROGRAMS[name]
    x = torch.arange(1.0, 4.0)
    with stats.collect() as records, dynacore.config.patch(on_internal_error="raise"):
        compiled = dynacore.compile(function, backend="eager")
        for call in (*calls, *calls):
            ours, theirs = arguments(call), arguments(call)
            assert plain(compiled(x, *ours)) == plain(function(x, *theirs))
            assert plain(ours) == plain(theirs)
    stops = {record.stop.summary for record in records if record.stop is not None}
    assert records
    assert bool(stops) is (name in programs.BREAKS), stops
