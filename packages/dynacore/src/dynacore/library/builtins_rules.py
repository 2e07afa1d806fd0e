"""Built-in functions: those that ask for a length, an iterator, an order, and those over iterables in their quick form.

Where all items are constants the real function is called. Otherwise the algorithm runs as Python code (`polyfills`).
"""

from __future__ import annotations

import types
from functools import partial, reduce
from types import FunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

from ..objects.iteration import END
from ..reasons import Break
from ..values import (
    Const,
    DictObj,
    DictView,
    GenObj,
    Host,
    Known,
    ListObj,
    SeqIter,
    SliceObj,
    Tensor,
    TupleObj,
    Value,
)
from .arguments import asks, is_callable, is_iterator, items_of, refuse, same
from .folding import is_literal
from .polyfills import functions, iterators, objects, support
from .registry import rule

#: what binds to its receiver as the rules expect
METHODS = (FunctionType, WrapperDescriptorType, MethodDescriptorType)


@rule(len)
def len_call(m: Any, obj: Value, /) -> Any:
    method = m.special_method(obj.cls, "__len__")
    if type(method) is FunctionType and type(obj) is not Tensor:
        return m.push_python(objects.length, [m.const(method), obj], {})
    if type(obj) is Host:
        return m.call(m.known(method), [obj], {})
    if type(obj) is ListObj and obj.recipe is not None and obj.loader is not None:
        return m.binary("+", obj.recipe.length, m.const(len(obj.tail)), False)
    if method is m.lookup_type(object, "__len__"):
        m.throw(TypeError, f"object of type '{m.name_of(obj.cls)}' has no len()")
    if type(obj) is Tensor and obj.layout is not None:
        return m.graph.attribute(obj, "shape").items[0]
    if not isinstance(method, METHODS):
        raise Break("operator-unknown", f"len({obj.cls.__name__})")
    if isinstance(obj, (ListObj, TupleObj, DictObj, DictView, Const, Tensor)) or hasattr(obj, "items"):
        size = m.length(obj)
        return size if isinstance(size, Value) else m.const(size)
    return m.call(m.known(method), [obj], {})


@rule(iter)
def iter_call(m: Any, obj: Value, sentinel: Value | None = None, /) -> Any:
    if sentinel is None:
        return m.get_iter(obj)
    if not is_callable(obj):
        refuse(m, iter, None, None)
    return m.call_polyfill(iterators.CallIterator, [obj, sentinel], {})


SEQUENCES: tuple[Any, ...] = ([], (), {}, {}.values(), {}.items(), set(), "", "ä", b"", range(0))
C_ITERATORS = [type(iter(made)) for made in (*SEQUENCES, reversed([]), reversed(()), reversed({}))]


@rule(*(iterator.__next__ for iterator in C_ITERATORS), types.GeneratorType.__next__)
def iterator_next(m: Any, iterator: Value, /) -> Any:
    return next_call(m, iterator)


@rule(*(iterator.__iter__ for iterator in C_ITERATORS), types.GeneratorType.__iter__)
def iterator_iter(m: Any, iterator: Value, /) -> Any:
    return m.get_iter(iterator)


@rule(types.GeneratorType.send)
def generator_send(m: Any, generator: Value, value: Value, /) -> Any:
    if type(generator) is not GenObj:
        raise Break("generator-unsupported", "send")
    if not generator.started and not m.is_none(value):
        m.throw(TypeError, "can't send non-None value to a just-started generator")
    return m.resume_generator(generator, value)


@rule(types.GeneratorType.close)
def generator_close(m: Any, generator: Value, /) -> Any:
    if type(generator) is not GenObj or (generator.started and generator.frame is not None):
        raise Break("generator-unsupported", "close")
    m.touch(generator)
    generator.frame = None
    return m.const(None)


@rule(next)
def next_call(m: Any, iterator: Value, default: Value | None = None, /) -> Any:
    if default is not None and not is_iterator(iterator):
        return m.push_python(functions.next_or, [iterator, default], {})
    item = m.next_value(iterator)
    if item is END:
        return m.throw(StopIteration) if default is None else default
    return item


@rule(reversed)
def reversed_call(m: Any, sequence: Value, /) -> Any:
    sequence = m.settle(sequence)
    method = m.special_method(sequence.cls, "__reversed__")
    is_ours = method is not None and type(method) is not FunctionType
    if type(sequence) is Const and is_ours and isinstance(sequence.value, (range, str, bytes)):
        items = [m.const(item) for item in reversed(sequence.value)]
        return m.items_iter(items, sequence, "constant", True)
    missing = method is m.lookup_type(object, "__reversed__")
    in_python = any(type(m.special_method(sequence.cls, n)) is FunctionType for n in ("__getitem__", "__len__"))
    if type(sequence) is TupleObj and missing and not in_python:
        return SeqIter(sequence, reversed, len(sequence.items) - 1, -1)
    no_items = m.lookup_type(sequence.cls, "__getitem__") is m.lookup_type(object, "__getitem__")
    if method is None or missing and no_items:
        m.throw(TypeError, f"'{m.name_of(sequence.cls)}' object is not reversible")
    if not missing and m.is_descriptor(method) and not isinstance(method, METHODS):
        raise Break("operator-unknown", f"reversed({sequence.cls.__name__})")
    if not missing:
        return m.call(m.known(method), [sequence], {})
    return m.call_polyfill(iterators.Reversed, [sequence], {})


@rule(slice)
def slice_call(m: Any, *bounds: Value) -> Value:
    if not 1 <= len(bounds) <= 3:
        raise Break("call-arguments", "slice")
    none = m.const(None)
    return SliceObj((none, bounds[0], none) if len(bounds) == 1 else (*bounds, none)[:3])


@rule(support.same)
def same_call(m: Any, one: Value, other: Value, /) -> Any:
    known = same(m, one, other)
    return m.push_python(support.equal, [one, other], {}) if known is None else m.const(known)


@rule(iterators.is_iterator)
def is_iterator_call(m: Any, obj: Value, /) -> Value:
    return m.const(m.lookup_type(obj.cls, "__next__") is not m.lookup_type(object, "__next__"))


# -- over iterables --------------------------------------------------------------------------------------------------


def constants(m: Any, iterable: Value) -> list[Any] | None:
    """The real items of a container (not of an iterator, which would be used up) whose items are plain constants."""
    items = None if is_iterator(iterable) else items_of(m, iterable)
    if items is None or not all(type(item) is Const for item in items):
        return None
    real = [item.value for item in items]
    return real if is_literal(real) else None


def folded(m: Any, function: Any, real: list[Any], **kwargs: Any) -> Any:
    """Call the real function on constants."""
    return m.fold(function, [Known(real)], {name: Const(value) for name, value in kwargs.items()})


@rule(any)
def any_call(m: Any, iterable: Value, /) -> Any:
    real = constants(m, iterable)
    return m.push_python(functions.any_, [iterable], {}) if real is None else m.const(any(real))


@rule(all)
def all_call(m: Any, iterable: Value, /) -> Any:
    real = constants(m, iterable)
    return m.push_python(functions.all_, [iterable], {}) if real is None else m.const(all(real))


@rule(sum)
def sum_call(m: Any, iterable: Value, /, start: Value = Const(0)) -> Any:  # noqa: B008
    real = constants(m, iterable) if type(start) is Const else None
    if real is None:
        return m.push_python(functions.sum_, [iterable, start], {})
    return folded(m, sum, real, start=start.value)


@rule(functions.sum_numbers)
def sum_numbers(m: Any, numbers: Value, start: Value) -> Any:
    """Ints that vary are added as an expression; floats that vary are taken as they are now."""
    items = numbers.items
    if all(item.cls is not float for item in (start, *items)) and any(type(item) is Host for item in (start, *items)):
        total = start
        for item in items:
            total = m.binary("+", total, item, False)
        return total
    return m.fold(sum, [numbers, start], {})


@rule(min)
def min_call(m: Any, *values: Value, **options: Value) -> Any:
    return extremum(m, min, functions.min_, values, options)


@rule(max)
def max_call(m: Any, *values: Value, **options: Value) -> Any:
    return extremum(m, max, functions.max_, values, options)


def extremum(m: Any, function: Any, polyfill: Any, values: tuple[Value, ...], options: dict[str, Value]) -> Any:
    """min and max."""
    if not options and len(values) == 1 and (real := constants(m, values[0])):
        return folded(m, function, real)
    if not options and len(values) > 1 and all(map(m.is_number, values)):
        if len({value.cls for value in values}) == 1 or Host not in map(type, values):
            return min_or_max(m, function, list(values))
    return m.push_python(polyfill, list(values), options)


def min_or_max(m: Any, function: Any, values: list[Value]) -> Value:
    """The smallest or the largest of numbers, of one type if one is open."""
    if Host not in map(type, values):
        return m.fold(function, values, {})
    return reduce(partial(m.host_binary, function.__name__), values)


@rule(sorted)
def sorted_call(m: Any, iterable: Value, /, **options: Value) -> Any:
    real = constants(m, iterable) if not options and not asks(m, iterable) else None
    if not real:
        return m.push_python(functions.sorted_, [iterable], options)
    return folded(m, sorted, real)
