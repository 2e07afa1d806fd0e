"""Arguments reach the state as a call of the plain function would bind them, or fail with CPython's own words."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native.extension import SLOWDOWN, C, rest

NAMES = "abcdefgh"


def bound(function):
    """`function`, compiled to something that returns its state."""
    return C.Compiled(function, C.Point(None, rest(tuple), code=getattr(function, "__func__", function).__code__))


@st.composite
def functions(draw):
    """A function that returns its parameters in the order in which a state holds them."""
    counts = [draw(st.integers(0, 2)) for _ in range(3)]
    names = iter(NAMES)
    groups = [[next(names) for _ in range(count)] for count in counts]
    defaults = draw(st.integers(0, counts[0] + counts[1]))
    first_default = counts[0] + counts[1] - defaults
    text = [f"{name}={name!r}" if i >= first_default else name for i, name in enumerate(groups[0] + groups[1])]
    if groups[0]:
        text.insert(len(groups[0]), "/")
    star, double_star = draw(st.booleans()), draw(st.booleans())
    if star:
        text.append("*args")
    elif groups[2]:
        text.append("*")
    text += [f"{name}={name!r}" if draw(st.booleans()) else name for name in groups[2]]
    returned = groups[0] + groups[1] + groups[2] + ["args"] * star
    if double_star:
        text.append("**kwargs")
        returned.append("kwargs")
    namespace: dict = {}
    exec(f"def f({', '.join(text)}): return ({''.join(f'{name}, ' for name in returned)})", namespace)
    return namespace["f"]


def outcome(function, args, kwargs):
    try:
        return function(*args, **kwargs)
    except TypeError as error:
        return str(error)


@settings(deadline=None, max_examples=800 // SLOWDOWN)
@given(
    functions(), st.lists(st.tuples(st.integers(0, 7), st.sets(st.sampled_from(NAMES + "z"), max_size=5)), max_size=4)
)
def test_calls_bind_like_the_function(function, calls):
    compiled = bound(function)
    for count, names in calls:
        args, kwargs = tuple(range(count)), {name: name.upper() for name in sorted(names)}
        expected = outcome(function, args, kwargs)
        assert outcome(compiled, args, kwargs) == expected
        assert outcome(compiled, args, kwargs) == expected  # the keywords' slots are remembered now
        if isinstance(expected, tuple) and kwargs:
            assert [list(value) for value in compiled(*args, **kwargs) if isinstance(value, dict)] == [
                list(value) for value in expected if isinstance(value, dict)
            ]


def test_defaults_are_read_at_each_call():
    def f(a, b=1, *, c=2):
        pass

    compiled = bound(f)
    assert compiled(0) == (0, 1, 2)
    f.__defaults__ = (8, 9)
    f.__kwdefaults__ = {"c": 10}
    assert compiled() == (8, 9, 10)
    f.__defaults__ = f.__kwdefaults__ = None
    with pytest.raises(TypeError, match="missing 2 required positional arguments: 'a' and 'b'"):
        compiled(c=1)


def test_many_arguments():
    parameters = [f"p{i}" for i in range(60)]
    namespace: dict = {}
    exec(f"def f({', '.join(parameters)}): pass", namespace)
    compiled = bound(namespace["f"])
    assert compiled(*range(60)) == tuple(range(60))
    assert compiled(**{name: i for i, name in reversed(list(enumerate(parameters)))}) == tuple(range(60))


def test_keyword_that_is_a_subclass_of_str_is_left_to_cpython():
    class Name(str):
        pass

    def f(a):
        return "plain", a

    assert bound(f)(**{Name("a"): 1}) == ("plain", 1)


def test_keyword_that_is_not_interned():
    def f(alpha, **rest):
        pass

    name = "".join(["al", "pha"])
    assert bound(f)(**{name: 1, "".join(["be", "ta"]): 2}) == (1, {"beta": 2})


def test_methods():
    class Class:
        def method(self, a, *rest, b=0):
            return "plain"

    instance = Class()
    compiled = bound(instance.method)
    assert compiled(1, 2, b=3) == (instance, 1, 3, (2,))
    assert compiled(*range(40)) == (instance, 0, 0, tuple(range(1, 40)))
    Class.method = bound(Class.method)
    assert instance.method(1) == (instance, 1, 0, ())
    assert Class.method(instance, a=1) == (instance, 1, 0, ())
    with pytest.raises(TypeError, match=r"method\(\) missing 1 required positional argument: 'a'"):
        instance.method()


def test_only_what_binds_in_plain_python_binds():
    class Class:
        def method(self):
            pass

        def __call__(self):
            pass

    owner = Class()
    assert Class.method.__get__(owner).__self__ is owner
    bound_method = bound(owner.method)
    assert bound_method.__get__(Class(), Class) is bound_method
    callable_object = C.Compiled(owner, C.Point(None, rest(tuple), code=Class.__call__.__code__))
    assert callable_object.__get__(Class(), Class) is callable_object


def test_function_without_code_of_its_own():
    def f(a, b):
        return "plain", a, b

    half = partial(f, 1)
    with pytest.raises(TypeError, match="has no code of its own"):
        C.Compiled(half, C.Point(None, rest(tuple)))
    compiled = C.Compiled(half, C.Point(None, rest(tuple), code=(lambda b: None).__code__))
    assert compiled(2) == (2,)
    assert compiled(b=2) == (2,)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'b'"):
        compiled()


def test_replaced_code_is_called_plainly():
    def f(a):
        return "old"

    compiled = bound(f)
    assert compiled(1) == (1,)
    f.__code__ = (lambda a, b: (a, b, "new")).__code__
    assert compiled(1, 2) == (1, 2, "new")


def test_disabled_calls_are_plain():
    def f(a):
        return "plain"

    compiled = bound(f)
    assert C.disable_depth(0) == 0
    assert C.disable_depth(1) == 1
    try:
        assert compiled(1) == "plain"
        assert C.disable_depth(1) == 2
        C.disable_depth(-1)
    finally:
        C.disable_depth(-1)
    assert compiled(1) == (1,)
    with pytest.raises(ValueError, match="can't change by -1"):
        C.disable_depth(-1)
