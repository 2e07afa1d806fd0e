"""Relations between integers: C and its twin agree, and they say what the expression says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynacore import _C
from dynacore.guards import spec, twin
from dynacore.guards.relations import (
    ADD,
    CONST,
    DIV,
    EQ,
    LOAD,
    LT,
    MAX,
    MIN,
    MOD,
    MUL,
    SUB,
    Program,
    is_program,
    program,
)
from dynacore.sources import Source
from dynacore.values import Const, Host

WORDS = st.integers(-(2**63), 2**63 - 1)
NUMBERS = st.one_of(st.integers(-9, 9), WORDS)


def tree(steps, n):
    """Guards on so many arguments, all of them handed."""
    children = tuple(("arg", i, (), i, ()) for i in range(n))
    return ("root", None, (("ints", (Program(steps), tuple(range(n)))),), -1, children)


def both(steps, objects):
    """Whether the relation holds, by C and by the twin."""
    made = tree(steps, len(objects))
    spec.validate(made, len(objects))
    ours = _C.Guards(made, len(objects)).check(list(objects)) is not None
    assert ours is (twin.evaluate(made, len(objects), list(objects))[0] is not None)
    return ours


@st.composite
def programs(draw):
    """Steps that leave one number, over three objects."""
    steps, depth = [], 0
    for _ in range(draw(st.integers(1, 12))):
        if depth < 2 or draw(st.booleans()):
            steps += draw(st.one_of(st.tuples(st.just(LOAD), st.integers(0, 2)), st.tuples(st.just(CONST), NUMBERS)))
            depth += 1
        else:
            steps += (draw(st.integers(ADD, ADD + 10)), 0)
            depth -= 1
    return tuple(steps + [ADD, 0] * (depth - 1))


@given(programs(), st.lists(st.one_of(NUMBERS, st.integers(), st.just(1.0), st.booleans()), min_size=3, max_size=3))
def test_c_and_its_twin_agree(steps, objects):
    made = Program(steps)
    made.text = "random"
    assert is_program(made, 3)
    both(made, objects)


@pytest.mark.parametrize(
    ("steps", "objects", "holds"),
    [
        ((LOAD, 0, CONST, 7, EQ, 0), [7], True),
        ((LOAD, 0, CONST, 7, EQ, 0), [8], False),
        ((LOAD, 0, CONST, 1, EQ, 0), [True], False),
        ((LOAD, 0, LOAD, 1, ADD, 0), [2**63 - 1, 1], False),
        ((LOAD, 0, LOAD, 1, SUB, 0), [-(2**63), 1], False),
        ((LOAD, 0, LOAD, 1, MUL, 0), [2**32, 2**31], False),
        ((LOAD, 0, LOAD, 1, MUL, 0), [2**32, 2**30], True),
        ((LOAD, 0, LOAD, 1, DIV, 0), [1, 0], False),
        ((LOAD, 0, LOAD, 1, MOD, 0), [-(2**63), -1], False),
        ((LOAD, 0, CONST, 3, MOD, 0, CONST, 1, EQ, 0), [-5], True),
        ((LOAD, 0, CONST, 3, DIV, 0, CONST, -2, EQ, 0), [-5], True),
        ((LOAD, 0, CONST, 2**62, LT, 0), [2**64], False),
        ((LOAD, 0, LOAD, 1, MIN, 0, CONST, -3, EQ, 0), [5, -3], True),
        ((LOAD, 0, LOAD, 1, MAX, 0, CONST, -3, EQ, 0), [5, -3], False),
    ],
)
def test_edges(steps, objects, holds):
    made = Program(steps)
    made.text = "an edge"
    assert both(made, objects) is holds


@pytest.mark.parametrize(
    "steps", [(), (LOAD,), (LOAD, 3), (ADD, 0), (LOAD, 0, LOAD, 0), (13, 0), (CONST, 2**63), (LOAD, 0) * 40]
)
def test_malformed_programs_are_refused(steps):
    assert not is_program(steps, 1)
    with pytest.raises(ValueError, match="guard tree"):
        _C.Guards(tree(steps, 1), 1)


def leaf(name, value):
    root = Source(None, "root")
    root.key = ("n", "m")
    return Host(value, root.child("arg", "nm".index(name)))


def test_text_is_what_a_user_would_write():
    n, m = leaf("n", 6), leaf("m", 4)
    total = Host(24, None, "({} * {})", (n, m))
    made, leaves = program(Host(True, None, "({} > {})", (total, Const(3))), True)
    assert made.text == "n * m > 3"
    assert [str(source) for source in leaves] == ["m", "n"] or [str(source) for source in leaves] == ["n", "m"]
    assert program(Host(False, None, "({} < {})", (n, m)), False)[0].text == "n >= m"
    smaller = Host(4, None, "min({}, {})", (n, m))
    assert program(Host(True, None, "({} < {})", (smaller, Const(5))), True)[0].text == "min(n, m) < 5"
    assert program(total, 24)[0].text == "n * m == 24"
    assert program(Host(3.0, None, "({} / {})", (n, Const(2))), 3.0) is None
