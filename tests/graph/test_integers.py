"""Canonical forms of integer expressions against the expressions' values."""

import operator

from hypothesis import given
from hypothesis import strategies as st

from dynacore.objects.integers import Integers, constant, key_of, value_of

OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "min": min, "max": max,
}  # fmt: skip
COMPARISONS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
LEAVES = st.one_of(st.integers(0, 2).map(lambda i: ("leaf", i)), st.integers(-8, 8))
EXPRESSIONS = st.recursive(
    LEAVES, lambda inner: st.tuples(st.sampled_from(sorted(OPERATORS)), inner, inner), max_leaves=8
)
SIZES = st.tuples(*[st.integers(2, 12)] * 3)


class Undefined(Exception):
    pass


def evaluate(expression, sizes):
    if isinstance(expression, int):
        return expression
    if expression[0] == "leaf":
        return sizes[expression[1]]
    left, right = evaluate(expression[1], sizes), evaluate(expression[2], sizes)
    if right == 0 and expression[0] in ("//", "%"):
        raise Undefined
    return OPERATORS[expression[0]](left, right)


def form(integers, atoms, expression):
    """The form of an expression; None where it has none."""
    if isinstance(expression, int):
        return constant(expression)
    if expression[0] == "leaf":
        return {(atoms[expression[1]],): 1}
    left, right = (form(integers, atoms, part) for part in expression[1:])
    if left is None or right is None or (not right and expression[0] in ("//", "%")):
        return None
    return integers.combine(expression[0], left, right)


def worth(integers, found, values):
    """A form's value; atoms of quotients are worked out from what they are composed of."""
    composed = {atom: mark for mark, atom in integers.composed.items()}
    total = 0
    for monomial, factor in found.items():
        for atom in monomial:
            if atom in composed:
                symbol, left, right = composed[atom]
                parts = worth(integers, dict(left), values), worth(integers, dict(right), values)
                if parts[1] == 0 and symbol in ("//", "%"):
                    raise Undefined
                factor *= OPERATORS[symbol](*parts)
            else:
                factor *= values[atom]
        total += factor
    return total


@given(EXPRESSIONS, SIZES)
def test_a_form_has_the_value_of_its_expression(expression, sizes):
    integers = Integers()
    atoms = [integers.atom(2) for _ in range(3)]
    try:
        want = evaluate(expression, sizes)
        found = form(integers, atoms, expression)
        assert found is None or worth(integers, found, sizes) == want
    except Undefined:
        return


@given(EXPRESSIONS, EXPRESSIONS, SIZES)
def test_what_is_decided_without_a_guard_is_so(left, right, sizes):
    integers = Integers()
    atoms = [integers.atom(2) for _ in range(3)]
    try:
        values = evaluate(left, sizes), evaluate(right, sizes)
    except Undefined:
        return
    forms = form(integers, atoms, left), form(integers, atoms, right)
    if None in forms:
        return
    for symbol, compare in COMPARISONS.items():
        known = integers.compare(symbol, *forms)
        assert known is None or known is compare(*values), symbol


@given(st.lists(st.tuples(EXPRESSIONS, st.sampled_from(sorted(COMPARISONS)), EXPRESSIONS), max_size=4), SIZES)
def test_what_follows_from_guards_is_so_where_they_hold(facts, sizes):
    integers = Integers()
    atoms = [integers.atom(2) for _ in range(3)]
    for left, symbol, right in facts:
        try:
            truth = COMPARISONS[symbol](evaluate(left, sizes), evaluate(right, sizes))
        except Undefined:
            continue
        forms = form(integers, atoms, left), form(integers, atoms, right)
        if None in forms:
            continue
        known = integers.compare(symbol, *forms)
        assert known is None or known is truth
        if known is None:
            integers.learn(symbol, *forms, truth)
        assert integers.compare(symbol, *forms) is truth


def test_equal_expressions_have_one_form():
    integers = Integers()
    a, b = ({(integers.atom(2),): 1} for _ in range(2))
    eight = constant(8)
    product = integers.combine("*", integers.combine("*", a, eight), b)
    assert key_of(product) == key_of(integers.combine("*", integers.combine("*", b, a), eight))
    assert integers.combine("//", product, eight) == integers.combine("*", a, b)
    assert value_of(integers.combine("%", product, eight)) == 0
    assert value_of(integers.combine("-", product, product)) == 0


def test_the_smaller_and_the_larger_of_two_numbers():
    integers = Integers()
    a, one, nothing = {(integers.atom(0),): 1}, constant(1), constant(0)
    first = integers.combine("min", a, one)
    assert first == integers.combine("min", one, a) and value_of(first) is None
    rest = integers.combine("-", a, first)
    assert integers.compare(">=", rest, nothing) is True and integers.compare("<=", first, one) is True
    assert integers.combine("max", a, nothing) == a
    assert integers.lower(integers.combine("max", integers.combine("-", a, constant(5)), one)) == 1


def test_bounds_and_equalities_decide():
    integers = Integers()
    a, b = ({(integers.atom(2),): 1} for _ in range(2))
    assert integers.compare("!=", a, constant(1)) is True
    assert integers.compare(">", integers.combine("*", a, b), a) is True
    assert integers.compare("==", a, b) is None
    integers.learn("==", a, b, True)
    assert integers.compare("==", integers.combine("*", a, constant(3)), integers.combine("*", b, constant(3))) is True
    integers.learn("==", a, constant(7), True)
    assert value_of(integers.normal(integers.combine("*", a, b))) == 49
