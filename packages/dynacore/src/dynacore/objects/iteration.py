"""Iterators and unpacking: `PyObject_GetIter`, `tp_iternext`."""

from __future__ import annotations

import operator
from collections import OrderedDict, deque
from inspect import CO_GENERATOR
from types import WrapperDescriptorType
from typing import Any

from .._C import peek
from ..library.polyfills import iterators
from ..library.sets_rules import ordered
from ..reasons import Break
from ..values import (
    PUSHED,
    Const,
    DictObj,
    DictView,
    GenObj,
    Host,
    HostRange,
    ItemsIter,
    Known,
    ListObj,
    Obj,
    SeqIter,
    SetObj,
    Tensor,
    TupleObj,
    Value,
)
from .attributes import MISSING
from .wrapping import FUNCTION, base_layout, is_heap

ITERATORS = {kind: type(iter(kind())) for kind in (list, tuple, dict, set, str, bytes)}
SEQUENCE_ITERATOR = type(iter(type("", (), {"__getitem__": None})()))
RANGE_ITERATOR = type(iter(range(0)))
#: iterators that tell where they stand
SEQUENCE_ITERATORS = (ITERATORS[list], ITERATORS[tuple], RANGE_ITERATOR)
#: the end of an iteration, inside the machine
END: Any = type("End", (), {"__repr__": lambda self: "END"})()


class Iteration:
    """`iter`, `next`, unpacking."""

    def get_iter(self, v: Value) -> Any:
        """`iter(v)`."""
        kind = type(v)
        if kind in (SeqIter, ItemsIter, GenObj):
            return v
        if kind is Tensor:
            return self.tensor_iter(v)
        if kind is Host and v.cls in (range, str, bytes):
            if self.open_loops and v.cls is range and any(map(self.has_varied, v.operands)):
                return HostRange(v)
            return self.constant_iter(self.specialise(v))
        method = self.special_method(v.cls, "__iter__")
        if method is None:
            self.throw(TypeError, f"'{self.name_of(v.cls)}' object is not iterable")
        if type(method) is FUNCTION:
            # An iterator among the polyfills gives itself.
            own = self.is_ours(Known(method)) and self.lookup_type(v.cls, "__next__") is not MISSING
            if own or method.__code__.co_flags & CO_GENERATOR:
                return v if own else self.call_real_function(method, [v])
            return self.push_python(iterators.iterator_of, [self.known(method), v])
        if isinstance(v, ListObj) and issubclass(v.cls, deque):
            return self.call(self.known(method), [v], {})
        if isinstance(v, (ListObj, TupleObj)):
            return SeqIter(v, ITERATORS[list if isinstance(v, ListObj) else tuple])
        if isinstance(v, DictObj):
            return self.items_iter(self.keys_of(v), v, "keys")
        if isinstance(v, DictView):
            return self.items_iter(self.keys_of(v.owner), v.owner, v.what)
        if isinstance(v, SetObj):
            return self.items_iter(ordered(v), v, "items")
        if kind is Const and method is not MISSING:
            return self.constant_iter(v)
        if method is MISSING:
            if kind is Host or not self.can_iterate(v.cls):
                self.throw(TypeError, f"'{self.name_of(v.cls)}' object is not iterable")
            return self.call(Known(SEQUENCE_ITERATOR), [v], {})
        raise Break("iterate-unknown", v.cls.__name__)

    def items_iter(self, values: list[Value], owner: Value, what: str, backwards: bool = False) -> ItemsIter:
        """An iterator over these items of `owner`."""
        sample: Any = owner.value if type(owner) is Const else base_layout(owner.cls)()
        if isinstance(owner, DictObj):
            sample = getattr(sample, what)()
        made = ItemsIter(values, type(reversed(sample) if backwards else iter(sample)), owner, what, backwards)
        made.made_at = (self.frames[-1].code, self.frames[-1].ins.index)
        return made

    def can_iterate(self, cls: type) -> bool:
        """Whether objects of a class are iterated, by `__iter__` or by `__getitem__`."""
        if self.special_method(cls, "__iter__") is not MISSING:
            return True
        method = self.special_method(cls, "__getitem__")
        if type(method) is WrapperDescriptorType:  # of a sequence, which can be iterated, or of a mapping, which can't
            raise Break("iterate-unknown", cls.__name__)
        return method is not MISSING

    def constant_iter(self, v: Const) -> Value:
        """An iterator over a range, str, bytes or frozenset."""
        if type(v.value) is range:
            if len(v.value) > 100_000:
                raise Break("iterate-unknown", "a very long range")
        return self.items_iter([self.const(i) for i in v.value], v, "constant")

    def tensor_iter(self, v: Tensor) -> Value:
        """Iterating a tensor gives its rows."""
        if not v.fake.dim():
            self.throw(TypeError, "iteration over a 0-d tensor")
        return SeqIter(TupleObj(self.rows(v)), ITERATORS[tuple])

    def keys_of(self, d: DictObj) -> list[Value]:
        """A dict's keys, in order."""
        return [key for key, _ in self.d_items(d)]

    def next_value(self, it: Value) -> Any:
        """The next item, END, or PUSHED when Python code has to run (StopIteration then ends the loop)."""
        kind = type(it)
        if kind is SeqIter:
            return self.next_of_sequence(it)
        if kind is ItemsIter:
            return self.next_of_items(it)
        if kind is GenObj:
            if it.frame is None and not it.running:
                return END
            return self.resume_generator(it, self.const(None))
        method = self.special_method(it.cls, "__next__")
        if type(method) is FUNCTION and isinstance(it, Obj):
            return self.call_real_function(method, [it])
        if kind is HostRange:
            raise Break("loop-resumed", "over a range that varies")
        if type(it) is Known and it.cls in SEQUENCE_ITERATORS and it.source is not None and it.obj not in self.advanced:
            return self.next_of_live(it)
        resumed = self.open_scalars and is_builtin_iterator(it.cls)
        raise Break("loop-resumed" if resumed else "iterate-unknown", it.cls.__name__)

    def next_of_live(self, it: Known) -> Any:
        """The next item of an iterator that the interpreter holds over a list, tuple or range: once in each entry.

        The guards find the item, and the entry takes it. A second time, the loop would be unrolled for ever.
        """
        sequence, index = position(it.obj)
        owner = self.seen.get(id(sequence))
        if owner is not None and owner.changed:  # type: ignore[attr-defined]
            raise Break("loop-resumed", it.cls.__name__)
        self.advanced[it.obj] = it  # at the end, too: a list that grows later doesn't revive its iterator
        if index >= len(sequence):
            it.source.child("call", operator.length_hint).check("eq", 0)  # type: ignore[union-attr]
            return END
        return self.wrap(sequence[index], it.source.child("call", peek))  # type: ignore[union-attr]

    def next_of_sequence(self, it: SeqIter) -> Any:
        """A list or tuple iterator looks at the sequence as it is now."""
        if it.seq is None:
            return END
        self.touch(it)
        items = it.seq.items
        if not 0 <= it.index < len(items):
            it.seq = None
            return END
        value = items[it.index]
        it.index += it.step
        return value

    def next_of_items(self, it: ItemsIter) -> Any:
        """Iterators over dicts, sets and deques notice some changes of these."""
        owner = it.owner
        if owner is None:
            return END
        changed = self.changed_below(it)
        if changed == "keys":
            raise Break("iterate-unknown", f"a {owner.cls.__name__} whose keys were replaced")
        self.touch(it)
        ordered_dict = isinstance(owner, DictObj) and issubclass(owner.cls, OrderedDict)
        if changed:
            it.size = -1  # it will say so again
            if ordered_dict:
                it.owner = None
            self.throw(RuntimeError, changed)
        if it.index >= len(it.values):
            if it.what != "deque":  # which would still be looked at
                it.owner = None
            return END
        value = it.values[it.index]
        it.index += 1
        if it.what == "deque":
            return owner.items[-it.index if it.backwards else it.index - 1]  # type: ignore[attr-defined]
        if isinstance(owner, DictObj) and it.what != "keys":
            item: Any = self.d_get(owner, value)
            return item if it.what == "values" else TupleObj([value, item])
        return value

    def changed_below(self, it: ItemsIter) -> str:
        """The error about what was iterated over and has changed; "keys": only the real iterator knows what comes."""
        owner: Any = it.owner
        if isinstance(owner, ListObj):
            return "" if owner.shape == it.shape else "deque mutated during iteration"
        if not isinstance(owner, (DictObj, SetObj)):
            return ""
        if issubclass(owner.cls, OrderedDict):
            if it.index >= len(it.values):  # it knows so already
                return ""
            if owner.shape != it.shape:
                return "OrderedDict mutated during iteration"
            return "" if len(owner.items) == it.size else "OrderedDict changed size during iteration"
        if len(owner.items) != it.size:
            return f"{'dictionary' if isinstance(owner, DictObj) else 'Set'} changed size during iteration"
        return "" if owner.shape == it.shape else "keys"

    def iterate(self, v: Value, limit: int | None = None) -> list[Value]:
        """All items of a value whose iteration needs no Python code, or an iterator's first ones up to `limit`."""
        kind = type(v)
        if kind in (ListObj, TupleObj) and type(self.special_method(v.cls, "__iter__")) is WrapperDescriptorType:
            return list(v.items)
        if kind is Tensor:
            return self.rows(v)
        it = v
        if kind not in (SeqIter, ItemsIter):
            if (
                kind is GenObj
                or type(self.special_method(v.cls, "__iter__")) is FUNCTION
                or self.special_method(v.cls, "__iter__") is MISSING
            ):
                raise Break("iterate-unknown", v.cls.__name__)
            it = self.get_iter(v)
        items = []
        while len(items) != limit and (item := self.next_value(it)) is not END:
            items.append(item)
        return items

    def rows(self, v: Tensor) -> list[Value]:
        """The rows of a tensor, as `unbind` gives them."""
        return list(self.graph.call(type(v.fake).unbind, [v], {}).items)


def position(iterator: Any) -> tuple[Any, int]:
    """The sequence and the index at which an iterator over it stands."""
    _, (sequence,), *state = iterator.__reduce__()
    return sequence, state[0] if state and state[0] else 0


def is_builtin_iterator(cls: type) -> bool:
    """Whether a class is one of C's iterators: what a loop holds whose beginning ran before this entry."""
    return cls.__module__ in ("builtins", "itertools") and not is_heap(cls)


__all__ = ["END", "PUSHED", "Iteration"]
