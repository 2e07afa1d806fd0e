"""Comparison, identity, hashing: `PyObject_RichCompare`, `is`, and what a dict or set takes as the same key."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from types import WrapperDescriptorType
from typing import Any, NoReturn

from ..library.arguments import refuse
from ..library.folding import CONST_TYPES
from ..library.polyfills.support import c_name
from ..library.registry import RULES
from ..reasons import Break
from ..values import (
    PUSHED,
    Bound,
    Const,
    DictObj,
    Func,
    Host,
    Known,
    ListObj,
    Obj,
    SetObj,
    SliceObj,
    Tensor,
    TupleObj,
    Value,
)
from .attributes import MISSING
from .operators import COMPARE, PLAIN
from .wrapping import FUNCTION

#: types whose equal objects are one
SINGLETONS = (type(None), bool, type(Ellipsis), type(NotImplemented))
#: types whose unequal objects can't be one (a NaN isn't equal to itself)
ORDINARY = (int, str, bytes, tuple)
OBJECT_EQ, OBJECT_NE, OBJECT_HASH = object.__eq__, object.__ne__, object.__hash__


class Compare:
    """`==`, `<`, `is`, `in` on keys."""

    def compare(self, symbol: str, a: Value, b: Value) -> Any:
        """A rich comparison."""
        name, reflected, function = COMPARE[symbol]
        if type(a) is Const and type(b) is Const and type(a.value) in CONST_TYPES and type(b.value) in CONST_TYPES:
            return self.fold(function, [a, b], {})
        if type(a) is Tensor or type(b) is Tensor:
            return self.tensor_compare(symbol, function, a, b)
        if type(a) is Host or type(b) is Host:
            if self.is_number(a) and self.is_number(b):
                return self.host_binary(symbol, a, b)
            a, b = self.settle(a), self.settle(b)
        if symbol in ("==", "!="):
            differs = symbol == "!=" and any(type(self.special_method(v.cls, "__ne__")) is FUNCTION for v in (a, b))
            known = None if differs else self.equal(a, b)
            if known is not None:
                return self.const(known if symbol == "==" else not known)
        elif self.is_constant(a) and self.is_constant(b):
            return self.fold(function, [a, b], {})
        return self.compare_methods(symbol, f"__{name}__", f"__{reflected}__", a, b)

    def tensor_compare(self, symbol: str, function: Any, a: Value, b: Value) -> Any:
        """A comparison with a tensor."""
        other = b if type(a) is Tensor else a
        if symbol in ("==", "!=") and (self.is_none(other) or isinstance(other, (ListObj, TupleObj, DictObj))):
            raise Break("operator-unknown", f"Tensor {symbol} {other.cls.__name__}")
        if isinstance(other, (Obj, Known)):
            raise Break("operator-unknown", f"Tensor {symbol} {other.cls.__name__}")
        return self.graph.call(function, [a, b], {})

    def compare_methods(self, symbol: str, name: str, reflected: str, a: Value, b: Value) -> Any:
        """The operands' methods, then identity (for `==` and `!=`) or TypeError."""
        first, second = self.special_method(a.cls, name), self.special_method(b.cls, reflected)
        tries = [(first, a, b), (second, b, a)]
        if symbol == "!=" and all(type(t[0]) is not FUNCTION for t in tries) and self.python_equality(a, b):
            return self.push_python(not_equal_in_python, [a, b])
        tries = [t for t in tries if t[0] not in (MISSING, OBJECT_EQ, OBJECT_NE)]
        in_python = any(type(t[0]) is FUNCTION for t in tries)
        if not in_python:
            tries = [t for t in tries if not self.is_slot_of_plain(t[0])]
        else:  # a plain type knows its subclasses, too
            tries = [t for t in tries if not self.is_slot_of_plain(t[0]) or t[0].__objclass__ in t[2].cls.__mro__]
        if len(tries) == 2 and a.cls is not b.cls and self.is_subclass(b.cls, a.cls):
            tries.reverse()  # a subclass's comes first, whether or not it has its own
        if not tries:
            return self.compare_default(symbol, a, b)
        if all(type(t[0]) is FUNCTION or id(t[0]) in RULES for t in tries):
            methods = [
                v for method, left, right in (*tries, (None, a, b))[:2] for v in (self.const(method), left, right)
            ]
            return self.push_python(compare_in_python, [*methods, self.const(symbol)])
        raise Break("operator-unknown", f"{a.cls.__name__} {symbol} {b.cls.__name__}")

    def python_equality(self, a: Value, b: Value) -> bool:
        """Whether `==` of the two involves a method written in Python."""
        return any(type(self.special_method(v.cls, "__eq__")) is FUNCTION for v in (a, b))

    def is_slot_of_plain(self, method: Any) -> bool:
        """Whether a C comparison belongs to a type that knows only its own kind."""
        return getattr(method, "__objclass__", None) in (
            int,
            str,
            float,
            bytes,
            type(None),
            tuple,
            list,
            dict,
            set,
            frozenset,
            range,
            slice,
            type,
        )

    def compare_default(self, symbol: str, a: Value, b: Value) -> Value:
        """Without a method in Python: identity where that is all both know, a fold where both are constant."""
        methods = {self.special_method(v.cls, "__eq__") for v in (a, b)}
        if symbol in ("==", "!=") and methods <= {OBJECT_EQ, MISSING}:
            same = self.identical(a, b)
            return self.const(same if symbol == "==" else not same)
        if self.is_constant(a) and self.is_constant(b):
            return self.fold(COMPARE[symbol][2], [a, b], {})
        raise Break("operator-unknown", f"{a.cls.__name__} {symbol} {b.cls.__name__}")

    def identical(self, a: Value, b: Value) -> bool:
        """`a is b`."""
        if a is b:
            return True
        if a.cls is b.cls is bool:
            a, b = self.settle(a), self.settle(b)
        if type(a) is Host or type(b) is Host:
            other = b if type(a) is Host else a
            if type(other) is Const and type(other.value) in (type(None), bool):
                return False
            raise Break("operator-unknown", "identity of a number")
        if type(a) is Const and type(b) is Const:
            if a.cls is not b.cls or a.value != b.value and a.cls in ORDINARY:
                return False
            if a.cls in SINGLETONS or a.cls is int and -5 <= a.value <= 256:
                return a.value is b.value
            raise Break("operator-unknown", f"identity of equal {a.cls.__name__}s")
        if type(a) is Const or type(b) is Const:
            return False
        if type(a) is Known and type(b) is Known:
            self.pin(a)
            self.pin(b)
            return a.obj is b.obj
        if isinstance(a, Bound) and isinstance(b, Bound):
            return False
        if type(a) is type(b) is TupleObj and not a.items and not b.items and a.cls is b.cls is tuple:
            return True
        self.differ(a, b)
        return False

    def differ(self, a: Value, b: Value) -> None:
        """Guard that two objects found in different places aren't one."""
        if a.source is not None and b.source is not None and a.cls is b.cls:
            self.relations.append(("differ", a.source, b.source))

    def equal(self, a: Value, b: Value) -> bool | None:
        """`a == b` where no Python code is needed; None when that isn't known."""
        if Host in (type(a), type(b)) and self.is_number(a) and self.is_number(b):
            return self.decide_if_open(self.host_binary("==", a, b))
        a, b = self.settle(a), self.settle(b)
        if (
            isinstance(a, (ListObj, TupleObj))
            and isinstance(b, (ListObj, TupleObj))
            and self.plain_container(a)
            and self.plain_container(b)
        ):
            with self.entered(a, b):
                return self.equal_sequences(a, b)
        if type(a) is type(b) is DictObj and a.cls is b.cls is dict:
            with self.entered(a, b):
                return self.equal_dicts(a, b)
        if type(a) is Const or type(b) is Const:
            return self.equal_constant(a, b)
        if type(a) is Known and type(b) is Known and self.by_identity(a) and self.by_identity(b):
            return self.identical(a, b)
        if self.own_equality(a.cls) and self.own_equality(b.cls) and self.is_constant(a) and self.is_constant(b):
            try:
                return bool(self.constant_of(a) == self.constant_of(b))
            except Exception:
                return None
        return None

    def equal_constant(self, a: Value, b: Value) -> bool | None:
        """`==` with a constant on one side."""
        if type(a) is Const and type(b) is Const and self.own_equality(a.cls) and self.own_equality(b.cls):
            return bool(a.value == b.value)
        other = b if type(a) is Const else a
        constant = a if type(a) is Const else b
        if constant.cls in PLAIN and (
            isinstance(other, (ListObj, TupleObj, DictObj, SetObj)) and self.plain_container(other)
        ):
            return False
        if constant.cls in PLAIN and type(other) is Known and self.by_identity(other):
            return False
        if constant.cls in PLAIN and self.special_method(other.cls, "__eq__") is OBJECT_EQ:
            return False
        return None

    def own_equality(self, cls: type) -> bool:
        """Whether equality of a class's instances is C's."""
        return type(self.special_method(cls, "__eq__")) is not FUNCTION

    def by_identity(self, v: Value) -> bool:
        """Whether `==` on this object is `is`."""
        return self.special_method(v.cls, "__eq__") is OBJECT_EQ

    def plain_container(self, v: Value) -> bool:
        """Whether a container's comparison is that of its builtin base."""
        return type(self.special_method(v.cls, "__eq__")) is not FUNCTION

    def equal_sequences(self, a: Any, b: Any) -> bool | None:
        """`==` of two lists or two tuples."""
        if (type(a) is ListObj) is not (type(b) is ListObj) or issubclass(a.cls, deque) is not issubclass(b.cls, deque):
            return False
        if len(a.items) != len(b.items):
            return False
        for x, y in zip(a.items, b.items):
            if x is y:
                continue
            if type(x) is Tensor or type(y) is Tensor:
                return None
            same = self.equal(x, y)
            if not same:
                return same
        return True

    def equal_dicts(self, a: DictObj, b: DictObj) -> bool | None:
        """`==` of two dicts, as C looks each key of the first one up in the other."""
        if self.d_len(a) != self.d_len(b):
            return False
        for key, x in self.d_items(a):
            y = self.d_get(b, key)
            if y is None:
                return False
            if x is y:
                continue
            if type(x) is Tensor or type(y) is Tensor or is_nan(x):
                return None
            same = self.equal(x, y)
            if not same:
                return same
        return True

    # -- keys ----------------------------------------------------------------------------------------------------------

    def key_of(self, v: Value, use: Callable[[Any], Any] = {}.__getitem__, whole: Value | None = None) -> Any:
        """What stands for `v` among the keys of a dict or set value: equal keys are equal here.

        `use` is what the key is for: the interpreter is asked for its error about an unhashable one. `whole` is the
        tuple that `v` is found in.
        """
        kind = type(v)
        if kind is Const:
            if v.cls in (slice,):
                hash(v.value)
            return v.value
        if kind is Known:
            return self.key_of_known(v, use, whole)
        if kind is Host:
            return self.specialise(v).value
        if kind is TupleObj and type(self.special_method(v.cls, "__hash__")) is WrapperDescriptorType:
            return tuple(self.key_of(item, use, whole or v) for item in v.items)
        if kind is SetObj and issubclass(v.cls, frozenset) or kind is SliceObj:
            return self.constant_of(v)
        if kind in (ListObj, TupleObj, DictObj, SetObj) and self.special_method(v.cls, "__hash__") is None:
            self.refuse_key(v, use, whole)
        if kind is Tensor or kind is Func or self.special_method(v.cls, "__hash__") is OBJECT_HASH:
            if kind is not Tensor and self.special_method(v.cls, "__eq__") is not OBJECT_EQ:
                raise Break("operator-unknown", f"hash of {v.cls.__name__}")
            obj = getattr(v, "obj", None)
            if obj is None:
                return v
            self.pin(v)
            return obj
        raise Break("operator-unknown", f"hash of {v.cls.__name__}")


    def key_of_known(self, v: Known, use: Callable[[Any], Any], whole: Value | None) -> Any:
        """A real object as a key: itself, where neither its hash nor its equality is Python code."""
        self.pin(v)
        method = self.special_method(v.cls, "__hash__")
        if method is None:
            self.refuse_key(v, use, whole)
        in_python = type(method) is FUNCTION and method is not enum.Enum.__hash__  # that is known: of the name
        if in_python or type(self.special_method(v.cls, "__eq__")) is FUNCTION:
            raise Break("hash-unknown", v.cls.__name__)
        return v.obj

    def refuse_key(self, v: Value, use: Callable[[Any], Any], whole: Value | None) -> NoReturn:
        """Raise what the interpreter raises for an unhashable key."""
        unhashable = self.named_like(v.cls, __hash__=None)
        refuse(self, use, unhashable if whole is None else (unhashable,))
        raise AssertionError("it refuses")


def is_nan(v: Value) -> bool:
    """Whether the value is a NaN, which containers take for equal to itself alone."""
    return type(v) is Const and type(v.value) is float and v.value != v.value


def not_equal_in_python(a, b, /):
    """`object.__ne__`: the inverse of `==`."""
    return not a == b  # noqa: SIM201 — a != b would call this again


def compare_in_python(first, a, b, second, c, d, symbol, /):
    """Two comparison methods, one after the other, where at least one is written in Python."""
    if first is not None:
        result = first(a, b)
        if result is not NotImplemented:
            return result
    if second is not None:
        result = second(c, d)
        if result is not NotImplemented:
            return result
    if symbol == "==":
        return a is b
    if symbol == "!=":
        return a is not b
    raise TypeError(f"'{symbol}' not supported between instances of '{c_name(type(a))}' and '{c_name(type(b))}'")


__all__ = ["PUSHED", "Compare"]
