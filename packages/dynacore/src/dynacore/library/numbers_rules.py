"""Numbers: their constructors, the built-in arithmetic functions, and the `operator` module."""

from __future__ import annotations

import math
import operator
from types import FunctionType
from typing import Any

from ..reasons import Break
from ..values import PUSHED, Const, Host, Known, Tensor, TupleObj, Value
from .arguments import as_bool, items_of
from .polyfills import constructors
from .registry import rule


def special(m: Any, v: Value, name: str, *args: Value) -> Any:
    """Call a special method of an object that isn't a number."""
    method = m.special_method(v.cls, name)
    if type(method) is FunctionType:
        return m.call(m.const(method), [v, *args], {})
    if method is m.lookup_type(object, name) or type(v) is Known:
        return None
    return m.call(m.known(method), [v, *args], {})


@rule(int)
def int_call(m: Any, *args: Value, **kwargs: Value) -> Any:
    if len(args) == 1 and not kwargs:
        v = args[0]
        if type(v) is Host and v.cls in (int, bool):
            return v if v.cls is int else m.host("int({})", (v,), int(v.example))
        if type(v) is Tensor:
            return m.graph.scalar(v, int)
        if type(v) not in (Const, Host, Known):
            return converted(m, v, int, "__int__", "__index__")
    return m.fold(int, list(args), kwargs)


@rule(float)
def float_call(m: Any, *args: Value) -> Any:
    if len(args) == 1:
        v = args[0]
        if type(v) is Host and v.cls is float:
            return v
        if type(v) is Tensor:
            return m.graph.scalar(v, float)
        if type(v) not in (Const, Host, Known):
            return converted(m, v, float, "__float__", "__index__")
    return m.fold(float, list(args), {})


def converted(m: Any, v: Value, kind: type, *names: str) -> Any:
    """int() or float() of an object with a Python method for it."""
    for name in names:
        method = m.special_method(v.cls, name)
        if type(method) is FunctionType:
            return m.push_python(constructors.checked_number, [m.const(method), v, m.const(kind), Const(name)], {})
        if method is not m.lookup_type(object, name):  # C's own comes before a later name's
            break
    raise Break("call-arguments", f"{kind.__name__}() of {v.cls.__name__}")


@rule(bool)
def bool_call(m: Any, v: Value = Const(False), /) -> Any:  # noqa: B008
    if type(v) is Host:
        return v if v.cls is bool else m.host("bool({})", (v,), bool(v.example))
    return as_bool(m, m.truth(v))


@rule(abs, operator.abs)
def abs_call(m: Any, v: Value, /) -> Any:
    if type(v) in (Const, Host):
        return m.fold(abs, [v], {})
    return special(m, v, "__abs__") or m.fold(abs, [v], {})


@rule(round)
def round_call(m: Any, number: Value, ndigits: Value | None = None) -> Any:
    args = [number] if ndigits is None else [number, ndigits]
    if type(number) in (Const, Host):
        return m.fold(round, args, {})
    return special(m, number, "__round__", *args[1:]) or m.fold(round, args, {})


@rule(pow)
def pow_call(m: Any, base: Value, exp: Value, mod: Value | None = None) -> Any:
    return m.binary("**", base, exp, False) if mod is None or m.is_none(mod) else m.fold(pow, [base, exp, mod], {})


@rule(divmod)
def divmod_call(m: Any, a: Value, b: Value, /) -> Any:
    if Host in (type(a), type(b)) and m.is_number(a) and m.is_number(b) and m.example_of(b):
        return TupleObj([m.binary("//", a, b, False), m.binary("%", a, b, False)])
    return m.fold(divmod, [a, b], {})


@rule(math.prod)
def math_prod(m: Any, iterable: Value, /, *, start: Value = Const(1)) -> Any:  # noqa: B008
    items = items_of(m, iterable)
    if items is None:
        raise Break("iterate-unknown", "math.prod")
    if not any(type(item) is Host for item in items):
        real = [m.constant_of(item) for item in items]
        return m.fold(math.prod, [Known(real)], {"start": start})
    product = start
    for item in items:
        product = m.binary("*", product, item, False)
    return product


# -- the operator module ---------------------------------------------------------------------------------------------


def _binary(symbol: str, function: Any, in_place: Any) -> None:
    """The rules of `operator.add` and `operator.iadd` and their kin."""

    def plain(m: Any, a: Value, b: Value, /) -> Any:
        return m.binary(symbol, a, b, False)

    def changing(m: Any, a: Value, b: Value, /) -> Any:
        return m.binary(symbol, a, b, True)

    rule(function)(plain)
    rule(in_place)(changing)


def _compare(symbol: str, function: Any) -> None:
    """The rule of `operator.lt` and its kin."""

    def compare(m: Any, a: Value, b: Value, /) -> Any:
        return m.compare(symbol, a, b)

    rule(function)(compare)


def _unary(symbol: str, function: Any) -> None:
    """The rule of `operator.neg` and its kin."""

    def apply(m: Any, a: Value, /) -> Any:
        return m.unary(symbol, a)

    rule(function)(apply)


for _symbol, _name in {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul",
    "<<": "lshift", ">>": "rshift", "&": "and_", "|": "or_", "^": "xor",
}.items():  # fmt: skip
    _binary(_symbol, getattr(operator, _name), getattr(operator, "i" + _name.rstrip("_")))
for _symbol, _name in {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}.items():
    _compare(_symbol, getattr(operator, _name))
for _symbol, _name in {"-": "neg", "+": "pos", "~": "invert", "not": "not_"}.items():
    _unary(_symbol, getattr(operator, _name))


@rule(operator.truth)
def truth(m: Any, v: Value, /) -> Any:
    return bool_call(m, v)


@rule(operator.is_)
def is_same(m: Any, a: Value, b: Value, /) -> Value:
    return m.const(m.identical(a, b))


@rule(operator.is_not)
def is_other(m: Any, a: Value, b: Value, /) -> Value:
    return m.const(not m.identical(a, b))


@rule(operator.contains)
def contains(m: Any, container: Value, item: Value, /) -> Any:
    return as_bool(m, m.contains(container, item))


@rule(operator.getitem)
def getitem(m: Any, v: Value, key: Value, /) -> Any:
    return m.getitem(v, key)


@rule(operator.setitem)
def setitem(m: Any, v: Value, key: Value, value: Value, /) -> Any:
    result = m.setitem(v, key, value)
    return result if result is PUSHED else m.const(None)


@rule(operator.delitem)
def delitem(m: Any, v: Value, key: Value, /) -> Any:
    result = m.delitem(v, key)
    return result if result is PUSHED else m.const(None)


@rule(operator.index)
def index(m: Any, v: Value, /) -> Any:
    if type(v) is Host and v.cls is int:
        return v
    if type(v) in (Const, Host) and hasattr(v.cls, "__index__"):
        return Const(operator.index(m.constant_of(v)))
    if type(v) is Tensor:
        raise Break("tensor-to-python", "operator.index")
    if issubclass(v.cls, int):  # what its class says isn't asked
        return m.call(m.known(int.__index__), [v], {})
    return special(m, v, "__index__") or m.throw(
        TypeError, f"'{m.name_of(v.cls)}' object cannot be interpreted as an integer"
    )


@rule(operator.call)
def call(m: Any, function: Value, /, *args: Value, **kwargs: Value) -> Any:
    return m.call(function, list(args), kwargs)


@rule(operator.concat)
def concat(m: Any, a: Value, b: Value, /) -> Any:
    return m.binary("+", a, b, False)
