"""Concrete mode: programs over plain values give under `dynacore.compile` what CPython gives, captured and warm."""

import pytest
from machine.corpus import PROGRAMS
from machine.oracle import difference, outcome

import dynacore


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    function, calls = PROGRAMS[name]
    with dynacore.config.patch(verify=True):
        compiled = dynacore.compile(function, backend="eager")
        for at, call in enumerate((*calls, *calls)):
            theirs = outcome(function, call)
            assert not difference(outcome(compiled, call), theirs), f"call {at}"


def raising(function, call):
    """The outcome of a call from inside a handler."""
    try:
        raise LookupError("outside")
    except LookupError:
        return outcome(function, call)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_called_in_a_handler(name):
    function, calls = PROGRAMS[name]
    compiled = dynacore.compile(function, backend="eager")
    for at, call in enumerate((*calls, *calls)):
        assert not difference(raising(compiled, call), raising(function, call)), f"call {at}"
    for at, call in enumerate(calls):
        assert not difference(outcome(compiled, call), outcome(function, call)), f"call {at}, outside"
