"""NumPy, once somebody has imported it (which takes a while): its scalars are constants, functions of them are pure.

Arrays are left to the interpreter.
"""

from __future__ import annotations

import sys
from typing import Any

from ..reasons import Break
from ..values import Const, ListObj, TupleObj, Value
from .folding import CONST_TYPES, is_literal
from .registry import RULES, rule

SCALARS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
METHODS = (
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__ "
    "__rmod__ __pow__ __rpow__ __neg__ __pos__ __abs__ __invert__ __and__ __rand__ __or__ __ror__ __xor__ __rxor__ "
    "__lshift__ __rlshift__ __rshift__ __rrshift__ __lt__ __le__ __eq__ __ne__ __gt__ __ge__ __bool__ __hash__ "
    "__int__ __float__ __index__ __complex__ __round__ __str__ __repr__ __format__ item"
)
#: functions of a whole sequence of numbers
REDUCTIONS = "prod sum min max"
#: functions of the global generator: name, and how many numbers they take
DRAWS = (("rand", 0), ("random", 0), ("random_sample", 0), ("randn", 0), ("uniform", 2), ("normal", 2))


def fill() -> None:
    """Add to the tables what NumPy has, if it is there."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "float64") and numpy.float64 not in CONST_TYPES:
        fill_numbers(numpy)
    random = sys.modules.get("numpy.random")
    if random is not None and id(random.rand) not in RULES:
        for name, most in DRAWS:
            rule(getattr(random, name))(draw(getattr(random, name), most))


def fill_numbers(numpy: Any) -> None:
    """Scalars, functions of one or two of them, and functions of a sequence."""
    kinds = {getattr(numpy, "bool_" if name == "bool" else name) for name in SCALARS.split()}
    CONST_TYPES.update(kinds)
    for function in (*kinds, *scalar_methods(kinds)):
        rule(function)(on_constants(numpy, function))
    rule(numpy.ufunc.__call__)(ufunc_call)
    for name in REDUCTIONS.split():
        rule(getattr(numpy, name))(reduction(numpy, getattr(numpy, name)))


def scalar_methods(kinds: set[type]) -> list[Any]:
    """What numbers do, as defined by NumPy's classes."""
    classes = {base for kind in kinds for base in kind.__mro__ if base.__module__ == "numpy"}
    return [vars(base)[name] for base in classes for name in METHODS.split() if callable(vars(base).get(name))]


def call_now(m: Any, numpy: Any, function: Any, args: tuple[Any, ...]) -> Value:
    """The result of a function of constants; what overflows or divides by zero warns when the program runs."""
    try:
        with numpy.errstate(all="raise"):
            answer = function(*args)
    except Exception as error:
        raise Break("numpy", f"{function.__name__}: {error}") from None
    if not is_literal(answer):
        raise Break("numpy", function.__name__)
    return m.const(answer)


def on_constants(numpy: Any, function: Any) -> Any:
    """The rule of a function of numbers."""

    def apply(m: Any, *args: Value) -> Value:
        if not all(type(arg) is Const for arg in args):
            raise Break("numpy", function.__name__)
        return call_now(m, numpy, function, tuple(arg.value for arg in args))

    return apply


def ufunc_call(m: Any, self: Value, /, *args: Value) -> Value:
    """`numpy.sqrt(2)`"""
    function = m.constant_of(self)
    return on_constants(sys.modules["numpy"], function)(m, *args)


def reduction(numpy: Any, function: Any) -> Any:
    """The rule of `numpy.prod(shape)` and its like."""

    def apply(m: Any, items: Value, /) -> Value:
        if not isinstance(items, (ListObj, TupleObj)) or not all(type(item) is Const for item in items.items):
            raise Break("numpy", function.__name__)
        return call_now(m, numpy, function, ([item.value for item in items.items],))

    return apply


def draw(function: Any, most: int) -> Any:
    """The rule of a function that gives a Python float for up to `most` numbers."""

    def sample(m: Any, *args: Value) -> Value:
        if len(args) > most or not all(type(arg) is Const and type(arg.value) in (int, float) for arg in args):
            raise Break("numpy", function.__name__)
        if len(args) == 2 and function.__name__ == "normal" and args[1].value < 0:
            raise Break("numpy", function.__name__)
        return m.host_call(m.const(function), list(args), {}, 0.5)

    return sample
