"""Index expressions: simplification keeps every value, and finds the forms that kernels rely on."""

from hypothesis import given, settings
from hypothesis import strategies as st

from backend_gpu.ir.index import add, bounds, div, evaluate, flatten, mod, mul, unflatten, var

SIZES = {"a": 5, "b": 8, "c": 3}
NUMBERS = st.sampled_from([2, 3, 4, 6, 8, 16, 24])


def pairs(children):
    """Each an expression as Python source and as an index."""
    return st.one_of(
        st.tuples(children, children).map(lambda p: (f"({p[0][0]} + {p[1][0]})", add(p[0][1], p[1][1]))),
        st.tuples(children, NUMBERS).map(lambda p: (f"({p[0][0]} * {p[1]})", mul(p[0][1], p[1]))),
        st.tuples(children, NUMBERS).map(lambda p: (f"({p[0][0]} // {p[1]})", div(p[0][1], p[1]))),
        st.tuples(children, NUMBERS).map(lambda p: (f"({p[0][0]} % {p[1]})", mod(p[0][1], p[1]))),
    )


LEAVES = st.one_of(
    st.sampled_from(list(SIZES)).map(lambda name: (name, var(name, SIZES[name]))),
    st.integers(0, 9).map(lambda n: (str(n), n)),
)


@settings(max_examples=300, deadline=None)
@given(st.recursive(LEAVES, pairs, max_leaves=8), st.integers(0, 4), st.integers(0, 7), st.integers(0, 2))
def test_values_and_bounds(pair, a, b, c):
    source, index = pair
    values = {"a": a, "b": b, "c": c}
    assert evaluate(index, values) == eval(source, {}, values)
    low, high = bounds(index)
    assert low <= evaluate(index, values) <= high


def test_what_was_split_becomes_whole():
    x = var("x", 4 * 3 * 8 * 16)
    shape = (4, 3, 8, 16)
    assert flatten(unflatten(x, shape), shape) == x
    assert flatten(unflatten(flatten(unflatten(x, shape), shape), (12, 128)), (12, 128)) == x
    inner = unflatten(mod(x, 128), (8, 16))
    assert flatten(inner, (8, 16)) == mod(x, 128)


def test_symbolic_sizes():
    s = var("s0", low=2)
    x = var("x", mul(mul(s, 8), 4))
    shape = (s, 8, 4)
    assert flatten(unflatten(x, shape), shape) == x
    assert flatten(unflatten(x, (8, s, 4)), (8, s, 4)) == x
