"""Functions of numbers that stay open: within its condition none fails or changes the type of what it gives."""

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dynacore
from dynacore.objects.number_functions import ON_FLOATS, ON_INTS, ON_NUMBERS, can_call

INTS = st.one_of(st.integers(-70, 5000), st.integers(), st.sampled_from([10**299, 10**301, -(10**400)]))
FLOATS = st.one_of(st.floats(-4, 4), st.floats(), st.sampled_from([0.0, -0.0, 1e300, 1e301, math.inf, math.nan]))
ROWS = [
    pytest.param(function, arity, how, kinds, id=f"{how[0]}-{'float' if kinds is not INTS else 'int'}")
    for rows, several in ((ON_NUMBERS, (INTS, FLOATS)), (ON_INTS, (INTS,)), (ON_FLOATS, (FLOATS,)))
    for (function, arity), how in rows.items()
    for kinds in several
    if not (kinds is INTS and function is float.is_integer)
]


@pytest.mark.parametrize("function, arity, how, kinds", ROWS)
def test_within_its_condition_a_function_gives_a_number_of_one_type(function, arity, how, kinds):
    seen = {}
    second = st.one_of(INTS, FLOATS) if (function, arity) in ON_FLOATS and kinds is FLOATS else INTS

    @settings(deadline=None, max_examples=40)
    @given(kinds, second)
    @example(2 if kinds is INTS else 2.0, 2)
    def check(first, other):
        numbers = [first, other][:arity]
        if can_call(how[1] or "True", numbers):
            result = function(*numbers)
            kind = tuple(map(type, numbers))
            assert seen.setdefault(kind, type(result)) is type(result)
            names = [f"a{i}" for i in range(arity)]
            text = eval(how[0].format(*names), {"math": math, **dict(zip(names, numbers, strict=True))})
            assert text == result or text != text and result != result

    check()
    assert seen


COUNTED = [
    ("x + (n >> 1) + (n << 2)", 2),
    ("(x + 1, n ** 2, n ** 3, pow(n, 2))", 2),
    ("(x + 1, divmod(n, 3), divmod(n / 3, 2))", 2),
    ("(x + 1, n.bit_length(), hex(n), math.gcd(n, 12))", 2),
    ("(x + 1, int(n * 1.5), round(n / 3), math.floor(n / 7), math.ceil(n / 4) * 4)", 2),
    ("(x + 1, round(n / 7, 2), math.log(n), math.sqrt(n), math.exp(-n / 100))", 2),
    ("x * (1 - 0.999**n)", 2),
    ("(x + 1, (n / 7) ** 2, (n / 3) ** 0.5)", 2),
    ("torch.zeros(int(n * 1.5) + 1)", 2),
    ("(x + 1, n in (3, 4), n in [5])", 5),
    ("(x + 1, (n, 1) == (3, 1))", 3),
]


@pytest.mark.parametrize("text, count", COUNTED)
def test_numbers_stay_open_through_functions(text, count):
    function = eval(f"lambda x, n: {text}")
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    compiled = dynacore.compile(function, backend=backend)
    for n in (*range(2, 12), 100, 4000, 3):
        x = torch.ones(3)
        ours, plain = compiled(x, n), function(x, n)
        assert repr(ours) == repr(plain)
    assert len(graphs) <= count


REFUSED = ["math.sqrt(v)", "math.log(v)", "int(v)", "round(v)", "v ** 0.5", "2.0 ** v", "v ** -1", "1.5 // v",
           "round(v / 3, 2)", "round(2.5, v)"]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_a_function_refuses_is_raised_where_it_is_called(text):
    def function(x, v):
        try:
            return x + 1, eval_(v)
        except (ValueError, ArithmeticError, TypeError) as error:
            return x - 1, str(error)

    eval_ = eval(f"lambda v: {text}")
    compiled = dynacore.compile(function, backend="eager")  # an internal error would be raised here
    for v in (2.0, 3.5, 4.25, -1.5, 0.0, math.inf, math.nan, 1e308, 2, 3, -4, 10**400, 5.5):
        ours, plain = compiled(torch.ones(2), v), function(torch.ones(2), v)
        assert repr(ours) == repr(plain), v
