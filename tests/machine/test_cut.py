"""Deoptimisation anywhere: programs are cut before their instructions, and give what plain Python gives.

At one instruction at a time (a sample, or all with --all-cuts), at pseudo-random ones, and at all at once.
"""

import zlib

import pytest
from machine.corpus import PROGRAMS
from machine.oracle import difference, outcome

import dynacore
from bytecode_models import Op, decode
from dynacore.emit.hard import HARD

SAMPLE = 23  # one instruction of so many
#: a generator that is resumed by its own body, behind a break inside it
REENTERED = {"generator_errors"}


def number(*parts):
    """A pseudo-random number that is the same in every process."""
    return zlib.crc32(repr(parts).encode())


def check(function, calls, cut):
    """Compare with plain Python where capture breaks at each (code, index) that `cut` accepts."""
    dynacore.reset()
    compiled = dynacore.compile(function, backend="eager")
    with dynacore.config.patch(verify=True, testing_cut=cut):
        for at, call in enumerate(calls):
            theirs = outcome(function, call)
            assert not difference(outcome(compiled, call), theirs), f"call {at}"


def visited(function, calls):
    """Every (code, index) that capture executes, in the function and in what it inlines."""
    seen = {}

    def record(code, index):
        seen[code, index] = decode(code).instrs[index]
        return False

    check(function, calls, record)
    # Binding the closure's cells is part of the call.
    return [place for place, instr in seen.items() if instr.op is not Op.BIND_FREE_VARS]


def is_hard(code, index):
    """Whether the instruction is run by the entry, rather than with the rest of its frame by the interpreter."""
    return decode(code).instrs[index].op in HARD


@pytest.mark.parametrize("name", PROGRAMS)
def test_cut_at_one_instruction(name, request):
    function, calls = PROGRAMS[name]
    places = visited(function, calls)
    if not request.config.getoption("--all-cuts"):
        places = places[number(name) % SAMPLE :: SAMPLE]
    for place in places:
        instr = decode(place[0]).instrs[place[1]]
        print(f"cut at line {instr.line} of {place[0].co_name}: {instr}")  # shown where the comparison fails
        check(function, calls, lambda code, index: index == place[1] and code is place[0])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in REENTERED])
def test_chaos(name, seed):
    function, calls = PROGRAMS[name]

    def cut(code, index):
        return is_hard(code, index) and number(seed, code.co_name, code.co_firstlineno, index) % 5 == 0

    check(function, [*calls, *calls], cut)


@pytest.mark.parametrize("name", PROGRAMS)
def test_cut_at_every_instruction(name):
    function, calls = PROGRAMS[name]
    check(function, [*calls, *calls], is_hard)
