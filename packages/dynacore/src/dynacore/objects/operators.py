"""Unary, binary, in-place operators and truth: `Objects/abstract.c`, as families from one table."""

from __future__ import annotations

import operator
from typing import Any

from ..library.polyfills.objects import length
from ..library.polyfills.support import c_name
from ..library.registry import RULES
from ..reasons import Break
from ..values import (
    PUSHED,
    TEXT_OF,
    Const,
    DictObj,
    ExcObj,
    Func,
    GenObj,
    Host,
    Known,
    ListObj,
    Obj,
    Opaque,
    SetObj,
    Tensor,
    TupleObj,
    Value,
)
from .attributes import MISSING
from .wrapping import FUNCTION

#: symbol -> (name of the special method, function)
BINARY = {
    "+": ("add", operator.add),
    "-": ("sub", operator.sub),
    "*": ("mul", operator.mul),
    "/": ("truediv", operator.truediv),
    "//": ("floordiv", operator.floordiv),
    "%": ("mod", operator.mod),
    "**": ("pow", operator.pow),
    "@": ("matmul", operator.matmul),
    "<<": ("lshift", operator.lshift),
    ">>": ("rshift", operator.rshift),
    "&": ("and", operator.and_),
    "|": ("or", operator.or_),
    "^": ("xor", operator.xor),
}
COMPARE = {
    "<": ("lt", "gt", operator.lt),
    "<=": ("le", "ge", operator.le),
    ">": ("gt", "lt", operator.gt),
    ">=": ("ge", "le", operator.ge),
    "==": ("eq", "eq", operator.eq),
    "!=": ("ne", "ne", operator.ne),
}
UNARY: dict[str, tuple[str, Any]] = {
    "-": ("neg", operator.neg),
    "+": ("pos", operator.pos),
    "~": ("invert", operator.invert),
}
FUNCTIONS = {symbol: row[-1] for table in (BINARY, COMPARE) for symbol, row in table.items()} | {"min": min, "max": max}
INPLACE = {
    symbol: getattr(operator, f"i{name}", None) or getattr(operator, f"i{name}_", None)
    for symbol, (name, _) in BINARY.items()
}
INPLACE["&"], INPLACE["|"] = operator.iand, operator.ior

LONGEST = 1_000_000
"""How long a text may be that an entry makes by repeating one."""

#: types on which C operators are pure
PLAIN = (int, float, bool, str, bytes, complex, type(None))


class Operators:
    """Operators and truth."""

    def binary(self, symbol: str, a: Value, b: Value, inplace: bool) -> Any:
        """`a + b` and its like."""
        if type(a) is Const and type(b) is Const and type(a.value) in PLAIN and type(b.value) in PLAIN:
            return self.fold(INPLACE[symbol] if inplace else BINARY[symbol][1], [a, b], {})
        if type(a) is Tensor or type(b) is Tensor:
            return self.tensor_binary(symbol, a, b, inplace)
        if (type(a) is Host or type(b) is Host) and self.is_number(a) and self.is_number(b):
            return self.host_binary(symbol, a, b)
        if symbol == "+" and a.cls is b.cls is str and Host in (type(a), type(b)):
            return self.host(TEXT_OF["+"], (a, b), self.example_of(a) + self.example_of(b))
        if symbol == "*" and type(a) is Host and type(b) is ListObj and b.cls is list:
            a, b = b, a
        if symbol == "*" and {type(a), type(b)} == {Const, Host} and (repeated := self.repeated_text(a, b)) is not None:
            return repeated
        for operand in (a, b):
            if type(operand) is Opaque:
                raise Break(*operand.why)
        name = BINARY[symbol][0]
        if inplace:
            method = self.special_method(a.cls, f"__i{name}__")
            if method is not MISSING:
                return self.inplace_method(method, symbol, a, b)
        return self.binary_methods(symbol, f"__{name}__", f"__r{name}__", a, b)

    def repeated_text(self, a: Value, b: Value) -> Value | None:
        """A text or bytes times an open int; None where that isn't what these are, or it may be too long to make."""
        text, times = (a, b) if type(a) is Const else (b, a)
        if text.cls not in (str, bytes) or times.cls is not int:
            return None
        pieces = self.example_of(text)
        if not self.meets(f"{{0}} <= {LONGEST // max(len(pieces), 1)}", [times]):
            return None
        return self.host(TEXT_OF["*"], (a, b), pieces * self.example_of(times))

    def tensor_binary(self, symbol: str, a: Value, b: Value, inplace: bool) -> Any:
        """An operator with a tensor: a node of the graph, unless the other operand's class takes it over."""
        for operand in (a, b):
            if type(operand) is Opaque:
                raise Break(*operand.why)
        for other, reflected in ((b, f"__r{BINARY[symbol][0]}__"), (a, f"__{BINARY[symbol][0]}__")):
            if isinstance(other, Obj) and type(other) not in (TupleObj, ListObj):
                method = self.special_method(other.cls, reflected)
                if type(method) is FUNCTION and self.lookup_type(other.cls, "__torch_function__") is MISSING:
                    return self.call_real_function(method, [other, a if other is b else b])
                raise Break("operator-unknown", f"Tensor {symbol} {other.cls.__name__}")
        function = INPLACE[symbol] if inplace and type(a) is Tensor else BINARY[symbol][1]
        return self.graph.call(function, [a, b], {})

    def inplace_method(self, method: Any, symbol: str, a: Value, b: Value) -> Any:
        """`a += b` through `__iadd__`, then as the plain operator."""
        name = BINARY[symbol][0]
        if type(method) is FUNCTION:
            tries = [(method, a, b), *self.operand_methods(f"__{name}__", f"__r{name}__", a, b)]
            calls = [TupleObj([self.const(function), left, right]) for function, left, right in tries]
            return self.push_python(inplace_in_python, [TupleObj(calls), Const(symbol + "="), a, b])
        result = self.call(Known(method), [a, b], {})
        if self.is_not_implemented(result):
            return self.binary_methods(symbol, f"__{name}__", f"__r{name}__", a, b)
        return result

    def binary_methods(self, symbol: str, name: str, reflected: str, a: Value, b: Value) -> Any:
        """Try the operands' methods."""
        tries = self.operand_methods(name, reflected, a, b)
        for at, (method, left, right) in enumerate(tries):
            if type(method) is FUNCTION:
                rest = tries[at + 1] if at + 1 < len(tries) else (None, None, None)
                return self.push_python(
                    binary_in_python, [self.const(method), left, self.const(rest[0]), right, self.const(symbol), a, b]
                )
            result = self.call(self.known(method), [left, right], {})
            if not self.is_not_implemented(result):
                return result
        self.unsupported(symbol, a, b)

    def operand_methods(self, name: str, reflected: str, a: Value, b: Value) -> list[tuple[Any, Value, Value]]:
        """(method, self, other) for what the operands have, in CPython's order: a subclass's reflected one first."""
        first, second = self.special_method(a.cls, name), MISSING
        if a.cls is not b.cls:
            second = self.special_method(b.cls, reflected)
        tries = [(first, a, b), (second, b, a)]
        both = first is not MISSING and second is not MISSING
        if both and self.is_subclass(b.cls, a.cls) and second is not self.lookup_type(a.cls, reflected):
            tries.reverse()
        return [t for t in tries if t[0] is not MISSING]

    def unsupported(self, symbol: str, a: Value, b: Value) -> Any:
        """The error of an operator that no operand has; its text has special cases that the real operator knows."""
        raise Break("operator-unknown", f"{a.cls.__name__} {symbol} {b.cls.__name__}")

    def is_not_implemented(self, value: Value) -> bool:
        """Whether `value` is NotImplemented."""
        return type(value) is Const and value.value is NotImplemented

    def unary(self, symbol: str, a: Value) -> Any:
        """`-a`, `+a`, `~a`, `not a`."""
        if symbol == "not":
            truth = self.truth(a)
            return self.const(not truth) if truth is not PUSHED else self.push_not(a)
        if type(a) is Const and type(a.value) in PLAIN:
            return self.fold(UNARY[symbol][1], [a], {})
        if type(a) is Tensor:
            return self.graph.call(UNARY[symbol][1], [a], {})
        if type(a) is Host:
            if symbol == "~" and a.cls is not int:
                return self.unary(symbol, self.specialise(a))
            if symbol == "-" and a.cls is int:
                return self.host_binary("-", Const(0), a)
            return self.host(f"({symbol}{{}})", (a,), UNARY[symbol][1](a.example))
        method = self.special_method(a.cls, f"__{UNARY[symbol][0]}__")
        if method is MISSING:
            self.throw(TypeError, f"bad operand type for unary {symbol}: '{self.name_of(a.cls)}'")
        return self.call_real_function(method, [a])

    def push_not(self, a: Value) -> Any:
        """`not a` where the truth needs Python code: replaces the pushed frame's caller by a polyfill."""
        self.frames.pop()
        return self.push_python(not_in_python, [a])

    # -- truth ---------------------------------------------------------------------------------------------------------

    def truth(self, v: Value) -> Any:
        """`bool(v)` as a Python bool; PUSHED when Python code has to run (its result is a bool value)."""
        kind = type(v)
        if kind is Const:
            return bool(v.value)
        if kind is Tensor:
            raise Break("tensor-truth")
        if kind is Host:
            return self.decide(v)
        if kind is Opaque:
            raise Break(*v.why)
        method = self.special_method(v.cls, "__bool__")
        if type(method) is FUNCTION:
            return self.push_python(bool_in_python, [self.const(method), v])
        if method is MISSING:
            method = self.special_method(v.cls, "__len__")
            if type(method) is FUNCTION:
                return self.push_python(len_truth_in_python, [self.const(method), v])
            if method is MISSING:
                return True
            return self.length(v) != 0
        if isinstance(v, Known) or id(method) in RULES:
            return self.known_truth(v)
        raise Break("tensor-truth", v.cls.__name__)

    def known_truth(self, v: Value) -> bool:
        """The truth of a C object that has `__bool__`."""
        raise Break("operator-unknown", f"bool({v.cls.__name__})")

    def length(self, v: Value) -> int:
        """`len(v)` of a value whose length needs no Python code."""
        if isinstance(v, ListObj) and v.loader is not None:
            n = list.__len__(v.obj)
            v.source.check("len", n)  # type: ignore[union-attr]
            return n + len(v.tail)
        if isinstance(v, (ListObj, TupleObj)):
            return len(v.items)
        if isinstance(v, DictObj):
            return self.d_len(v)
        if isinstance(v, SetObj):
            return len(v.items)
        if type(v) is Const and hasattr(v.value, "__len__"):
            return len(v.value)
        if type(v) is Tensor:
            if not v.fake.dim():
                raise Break("operator-unknown", "len() of a 0-d tensor")
            return self.constant_of(self.graph.attribute(v, "shape").items[0])
        owner = getattr(v, "owner", None)
        if owner is not None:
            return self.length(owner)
        raise Break("operator-unknown", f"len({v.cls.__name__})")

    def always_true(self, v: Value) -> bool:
        """Whether the value's kind has no truth method at all."""
        return isinstance(v, (Func, GenObj, ExcObj))


def binary_in_python(method, a, fallback, b, symbol, left, right, /):
    """Two methods, one after the other, where at least one is written in Python."""
    result = method(a, b)
    if result is NotImplemented and fallback is not None:
        result = fallback(b, a)
    if result is NotImplemented:
        raise TypeError(
            f"unsupported operand type(s) for {symbol}: '{c_name(type(left))}' and '{c_name(type(right))}'"
        )
    return result


def inplace_in_python(calls, symbol, left, right, /):
    """The in-place method, written in Python, then those of the plain operator."""
    for method, receiver, other in calls:
        result = method(receiver, other)
        if result is not NotImplemented:
            return result
    raise TypeError(f"unsupported operand type(s) for {symbol}: '{c_name(type(left))}' and '{c_name(type(right))}'")


def bool_in_python(method, v, /):
    """`bool(v)` by `__bool__`."""
    result = method(v)
    if result is True or result is False:
        return result
    raise TypeError(f"__bool__ should return bool, returned {c_name(type(result))}")


def len_truth_in_python(method, v, /):
    """`bool(v)` by `__len__`."""
    return length(method, v) > 0


def not_in_python(v, /):
    """`not v`."""
    return False if v else True  # noqa: SIM211 — `not v` would call this again
