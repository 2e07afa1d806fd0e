"""Text: str(), repr(), format(), `%`, str.format and str.join.

A value's text is asked of the real object where only C code is involved, and of its class's Python method otherwise.
"""

from __future__ import annotations

import datetime
import decimal
import re
import string
import types
from types import FunctionType
from typing import Any

import torch

from ..reasons import Break
from ..values import Const, DictObj, ExcObj, Host, Known, ListObj, SetObj, Tensor, TupleObj, Value
from . import folding
from .arguments import items_of
from .folding import is_literal
from .polyfills import constructors, objects
from .registry import rule

EMPTY = Const("")
EXCEPTION_TEXTS = (BaseException.__str__, KeyError.__str__, AttributeError.__str__, NameError.__str__)

#: types whose objects have the same text as long as they live
FIXED_TEXT = {
    object, type, types.FunctionType, types.BuiltinFunctionType, types.CodeType,
    types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.GenericAlias, types.UnionType, datetime.date, datetime.time, datetime.datetime, datetime.timedelta,
    datetime.timezone, decimal.Decimal, torch.dtype, torch.device, torch.layout, torch.memory_format,
}  # fmt: skip


TEXTS = ("__repr__", "__str__", "__format__")


def in_python(m: Any, cls: type) -> bool:
    """Whether a class has one of the methods that give text in Python."""
    return any(type(m.special_method(cls, name)) is FunctionType for name in TEXTS)


def has_fixed_text(m: Any, cls: type) -> bool:
    """Whether the text of a class's objects is known by their identity."""
    return all(getattr(m.special_method(cls, name), "__objclass__", None) in FIXED_TEXT for name in TEXTS)


#: stands for the first open number in a text, those after it for the others
MARK = 0x5EED_0F_7E_C7


def shown(m: Any, v: Value, numbers: list[Host] | None = None, around: dict[int, Any] | None = None) -> Any:
    """The real object whose text is that of `v`; `Break` when Python code or the run decides.

    With `numbers`, open ones are put there, and a `MARK` in their place. `around` are the containers that `v` is in,
    None for tuples, which aren't made yet.
    """
    around = {} if around is None else around
    if id(v) in around:
        if around[id(v)] is None:
            raise Break("format-unknown", "a tuple that contains itself")
        return around[id(v)]
    if isinstance(v, (ListObj, TupleObj, DictObj)):
        return container_shown(m, v, numbers, around)
    if type(v) is SetObj and v.cls in (set, frozenset) and len(v.items) < 2:
        return v.cls(shown(m, item) for item in v.items.values())
    if type(v) is Host and numbers is not None and m.is_number(v):
        numbers.append(v)
        return MARK + len(numbers) - 1
    if type(v) in (Const, Host):
        real = m.constant_of(v)
        if is_literal(real) or type(real) not in (frozenset, slice) and not in_python(m, type(real)):
            return real
    elif type(v) is Known and has_fixed_text(m, v.cls):
        m.pin(v)
        m.rely_on_text(v.obj)
        return v.obj
    raise Break("tensor-to-python" if type(v) is Tensor else "format-unknown", v.cls.__name__)


def text_of(m: Any, v: Value, how: Any) -> Value:
    """`how(v)`, where `how` is `str`, `repr` or `ascii`; open numbers in a container stay open."""
    numbers: list[Host] = []
    rest, pieces = how(shown(m, v, numbers)), []
    if any(rest.count(str(MARK + k)) != 1 for k in range(len(numbers))):
        return Const(how(shown(m, v)))
    for k in range(len(numbers)):
        before, _, rest = rest.partition(str(MARK + k))
        pieces.append(before)
    if not numbers:
        return Const(rest)
    example = "".join(f"{piece}{number.example!r}" for piece, number in zip(pieces, numbers, strict=True)) + rest
    written = [repr(piece).replace("{", "{{").replace("}", "}}") for piece in (*pieces, rest)]
    return m.host(f"({' + repr({}) + '.join(written)})", tuple(numbers), example)


def container_shown(m: Any, v: Any, numbers: list[Host] | None, around: dict[int, Any]) -> Any:
    """The same of a container, which may be in itself."""
    is_tuple = type(v) is TupleObj and (v.cls is tuple or not v.attrs and not in_python(m, v.cls))  # torch.Size, too
    if not is_tuple and v.cls not in (list, dict):
        raise Break("format-unknown", v.cls.__name__)
    made: Any = None if is_tuple else v.cls()
    around[id(v)] = made
    if is_tuple:
        made = v.cls(shown(m, item, numbers, around) for item in v.items)
    elif v.cls is list:
        made += [shown(m, item, numbers, around) for item in v.items]
    else:
        made.update([(shown(m, k, numbers, around), shown(m, x, numbers, around)) for k, x in m.d_items(v)])
    del around[id(v)]
    return made


@rule(str)
def str_call(m: Any, obj: Value = EMPTY, *rest: Value, **named: Value) -> Any:
    if rest or named:
        real = {name: m.constant_of(value) for name, value in named.items()}
        return Const(str(m.constant_of(obj), *(m.constant_of(value) for value in rest), **real))
    if obj.cls is str:
        return obj
    if type(obj) is Host:
        return m.host("str({})", (obj,), str(obj.example))
    if isinstance(obj, ExcObj) and (method := m.special_method(obj.cls, "__str__")) in EXCEPTION_TEXTS:
        return m.call(m.const(method), [obj], {})
    return python_text(m, obj, "__str__", "__repr__") or text_of(m, obj, str)


@rule(repr)
def repr_call(m: Any, obj: Value, /) -> Any:
    if type(obj) is Host:
        return m.host("repr({})", (obj,), repr(obj.example))
    return python_text(m, obj, "__repr__") or text_of(m, obj, repr)


@rule(ascii)
def ascii_call(m: Any, obj: Value, /) -> Any:
    return text_of(m, obj, ascii)


@rule(format)
def format_call(m: Any, obj: Value, spec: Value = EMPTY, /) -> Any:
    if type(obj) is Host and type(spec) is Const:
        try:
            return m.host("format({}, {})", (obj, spec), format(obj.example, spec.value))
        except (TypeError, ValueError):
            return m.fold(format, [m.settle(obj), spec], {})
    if type(obj) is Host or type(spec) is not Const:
        obj, spec = m.settle(obj), Const(m.constant_of(spec))
    method = m.special_method(obj.cls, "__format__")
    if type(method) is FunctionType:
        return m.push_python(objects.formatted, [m.const(method), obj, spec], {})
    if spec.value == "" and method is object.__format__:
        return str_call(m, obj)
    if obj.cls is str and spec.value == "":
        return obj
    if folding.is_pure(method):
        return m.fold(method, [obj, spec], {})
    return m.fold(format, [Known(shown(m, obj)), spec], {})


def python_text(m: Any, v: Value, *names: str) -> Any:
    """The text that a class's own Python method gives; None when it has none."""
    for name in names:
        method = m.special_method(v.cls, name)
        if type(method) is FunctionType and type(v) is not Tensor:
            return m.push_python(objects.text_of, [m.const(method), Const(name), v], {})
        if type(v) is Known and folding.is_pure(method):
            return m.fold(method, [v], {})
        if method is not object.__str__:
            return None
    return None


def exception_text(m: Any, v: ExcObj) -> Any:
    """str() of an exception."""
    if not v.args:
        return EMPTY
    return str_call(m, v.args[0]) if len(v.args) == 1 else Const(repr(tuple(shown(m, item) for item in v.args)))


@rule(object.__str__)
def object_str(m: Any, self: Value, /) -> Any:
    return repr_call(m, self)


@rule(BaseException.__str__, AttributeError.__str__, NameError.__str__)
def exception_str(m: Any, self: Value, /) -> Any:
    if not isinstance(self, ExcObj):
        raise Break("format-unknown", self.cls.__name__)
    return exception_text(m, self)


@rule(KeyError.__str__)
def key_error_str(m: Any, self: Value, /) -> Any:
    if isinstance(self, ExcObj) and len(self.args) == 1:
        return repr_call(m, self.args[0])
    return exception_str(m, self)


@rule(object.__format__)
def object_format(m: Any, self: Value, spec: Value, /) -> Any:
    if m.constant_of(spec) == "":
        return str_call(m, self)
    raise Break("format-unknown", self.cls.__name__)


# -- str methods that take anything ----------------------------------------------------------------------------------


def filled_in(m: Any, written: str, function: Any, template: Value, *values: Value, **named: Value) -> Value | None:
    """A template with open numbers and texts in it, which the entry fills in; None where there are none, or others."""
    operands = (template, *values, *named.values())
    if Host not in map(type, operands):
        return None
    if not all(type(v) is Const or type(v) is Host and v.cls is str or m.is_number(v) for v in operands):
        return None
    try:
        given = {name: m.example_of(value) for name, value in named.items()}
        example = function(*map(m.example_of, (template, *values)), **given)
    except Exception:  # the program's own error, for these very values
        return None
    return m.host(written, operands, example)


#: what `%` does with a value, by the letter
CONVERSIONS = re.compile("%[^a-zA-Z%]*([a-zA-Z%])")


def takes_any(letter: str, value: Value) -> bool:
    """Whether `%` refuses no number of the value's class for such a letter."""
    return letter in "sraeEfFgG" or letter in "diuoxX" and value.cls in (int, bool)


@rule(str.__mod__)
def str_mod(m: Any, self: Value, values: Value, /) -> Any:
    template = m.constant_of(self)
    items = values.items if type(values) is TupleObj and values.cls is tuple else (values,)
    letters = [letter for letter in CONVERSIONS.findall(template) if letter != "%"]
    if len(letters) == len(items) and all(map(takes_any, letters, items)):
        written = f"({{}} % ({'{}, ' * len(items)}))"
        found = filled_in(m, written, lambda text, *given: text % given, Const(template), *items)
        if found is not None:
            return found
    return apply(m, str.__mod__, m.constant_of(self), shown(m, values))


@rule(str.format)
def str_format(m: Any, self: Value, /, *values: Value, **named: Value) -> Any:
    template = m.constant_of(self)
    if not reads_attributes(template):
        given = ["{}"] * len(values) + [f"{name}={{}}" for name in named]
        found = filled_in(m, f"{{}}.format({', '.join(given)})", str.format, Const(template), *values, **named)
        if found is not None:
            return found
    real = [shown(m, value) for value in values]
    real_named = {name: shown(m, value) for name, value in named.items()}
    if not is_literal((real, real_named)) and reads_attributes(template):
        raise Break("format-unknown", template)
    return apply(m, str.format, template, *real, **real_named)


def reads_attributes(template: str) -> bool:
    """Whether a format string's fields look into their values."""
    try:
        fields = [(name or "", spec or "") for _, name, spec, _ in string.Formatter().parse(template)]
    except ValueError:
        return False
    return any("." in name or "[" in name or "{" in spec for name, spec in fields)


def apply(m: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call now; what it raises is the program's exception."""
    try:
        return Const(function(*args, **kwargs))
    except Exception as error:
        return m.throw_real(error)


@rule(str.join)
def str_join(m: Any, self: Value, iterable: Value, /) -> Any:
    if m.special_method(iterable.cls, "__iter__") is None or not m.can_iterate(iterable.cls):
        m.throw(TypeError, "can only join an iterable")
    items = items_of(m, iterable)
    if items is None:
        return m.push_python(constructors.str_join, [self, iterable], {})
    if any(type(item) is Host and item.cls is str for item in items) and all(item.cls is str for item in items):
        example = m.example_of(self).join(m.example_of(item) for item in items)
        return m.host("{}.join((" + "{}, " * len(items) + "))", (self, *items), example)
    return apply(m, str.join, m.constant_of(self), [shown(m, item) for item in items])
