"""`v[i]`, `v[i] = x`, `del v[i]`, `x in v`: the mapping and sequence protocols."""

from __future__ import annotations

import operator
from typing import Any

from ..library.arguments import refuse
from ..library.polyfills.support import iterator_or_none, same, unusual
from ..reasons import Break
from ..values import PUSHED, Const, DictObj, DictView, Host, Known, ListObj, SetObj, SliceObj, Tensor, TupleObj, Value
from .attributes import MISSING
from .wrapping import FUNCTION


class Subscripts:
    """Subscription and containment."""

    def getitem(self, v: Value, key: Value) -> Any:
        """`v[key]`."""
        if type(v) is Tensor:
            return self.graph.call(operator.getitem, [v, key], {})
        if type(v) is Known and isinstance(v.obj, type):
            return self.class_getitem(v, key)
        method = self.special_method(v.cls, "__getitem__")
        if type(method) is FUNCTION:
            return self.call_real_function(method, [v, key])
        if isinstance(v, (ListObj, TupleObj)):
            return self.sequence_item(v, key)
        if isinstance(v, DictObj):
            return self.dict_item(v, key)
        if type(v) is Const and method is not MISSING:
            return self.fold(operator.getitem, [v, self.settle(key)], {})
        if method is MISSING:
            self.throw(TypeError, f"'{self.name_of(v.cls)}' object is not subscriptable")
        return self.call(self.known(method), [v, key], {})

    def class_getitem(self, v: Known, key: Value) -> Value:
        """`list[int]`, `Generic[T]`: a pure function of the class and its arguments."""
        method = self.special_method(type(v.obj), "__getitem__")  # a metaclass's comes first
        if method is not MISSING:
            return self.call_real_function(method, [v, key])
        hook = self.lookup_type(v.obj, "__class_getitem__")
        if (
            type(hook) is classmethod
            and type(hook.__func__) is FUNCTION
            and not str(hook.__func__.__module__).startswith("typing")
        ):
            return self.call(self.const(hook.__func__), [v, key], {})
        return self.fold(operator.getitem, [v, key], {})

    def index_of(self, key: Value) -> Any:
        """An index or slice of constants; None when `key` is no index."""
        if type(key) is Const and isinstance(key.value, int):
            return key.value
        if type(key) is Host and key.cls in (int, bool):
            return self.specialise(key).value
        if type(key) is SliceObj:
            return self.slice_of(*key.items)
        if type(key) is Const and type(key.value) is slice:
            return self.slice_of(Const(key.value.start), Const(key.value.stop), Const(key.value.step))
        if type(key) is Tensor:
            raise Break("tensor-to-python", "a tensor as an index")
        return None

    def slice_of(self, start: Value, stop: Value, step: Value) -> slice:
        """A slice of numbers, of a list or tuple."""
        by = self.slice_index(step)  # asked first in CPython too
        if by == 0:
            self.throw(ValueError, "slice step cannot be zero")
        return slice(self.slice_index(start), self.slice_index(stop), by)

    def slice_index(self, bound: Value) -> int | None:
        """A bound of a slice, as `_PyEval_SliceIndex` takes it."""
        index = None if self.is_none(bound) else self.index_of(bound)
        if isinstance(index, int) or self.is_none(bound):
            return index
        if type(self.lookup_type(bound.cls, "__index__")) is not type(MISSING):
            raise Break("operator-unknown", f"a slice to {bound.cls.__name__}")
        return refuse(self, operator.getitem, (), slice((), None))  # its words differ between releases

    def sequence_item(self, v: Any, key: Value) -> Any:
        """An item or slice of a list or tuple."""
        index = self.index_of(key)
        name = "list" if isinstance(v, ListObj) else "tuple"
        if index is None:
            if type(self.lookup_type(key.cls, "__index__")) is not type(MISSING):
                raise Break("operator-unknown", f"{name}[{key.cls.__name__}]")
            self.throw(TypeError, f"{name} indices must be integers or slices, not {self.name_of(key.cls)}")
        if isinstance(index, slice):
            items = v.items[index]
            if isinstance(v, ListObj):
                return ListObj(list(items))
            if v.cls is tuple and len(items) == len(v.items) and index.step in (None, 1):
                return v
            return TupleObj(items, v.cls if self.slice_keeps_class(v.cls) else tuple)
        try:
            return v.items[index]
        except IndexError:
            self.throw(IndexError, f"{name} index out of range")

    def slice_keeps_class(self, cls: type) -> bool:
        """torch.Size slices to torch.Size."""
        return cls.__module__ == "torch" and cls.__name__ == "Size"

    def dict_item(self, v: DictObj, key: Value) -> Any:
        """`d[key]`, with `__missing__`."""
        found = self.d_get(v, key)
        if found is not None:
            return found
        hook = self.special_method(v.cls, "__missing__")
        if hook is not MISSING:
            return self.call(self.const(hook) if type(hook) is FUNCTION else Known(hook), [v, key], {})
        self.throw(KeyError, key)

    def setitem(self, v: Value, key: Value, value: Value) -> Any:
        """`v[key] = value`; a pushed frame's result is to be dropped."""
        if type(v) is Tensor:
            return self.graph.call(operator.setitem, [v, key, value], {})
        method = self.special_method(v.cls, "__setitem__")
        if type(method) is FUNCTION:
            return self.call_real_function(method, [v, key, value])
        if isinstance(v, ListObj):
            return self.set_list_item(v, key, value)
        if isinstance(v, DictObj):
            return self.d_set(v, key, value)
        if method is MISSING:
            self.throw(TypeError, f"'{self.name_of(v.cls)}' object does not support item assignment")
        return self.call(self.known(method), [v, key, value], {})

    def set_list_item(self, v: ListObj, key: Value, value: Value) -> None:
        """`lst[i] = value`, `lst[a:b] = values`."""
        index = self.index_of(key)
        if index is None:
            raise Break("operator-unknown", f"list[{key.cls.__name__}] =")
        items = list(v.items)
        try:
            items[index] = self.iterate(value) if isinstance(index, slice) else value
        except IndexError:
            self.throw(IndexError, "list assignment index out of range")
        except ValueError as error:
            self.throw(ValueError, *error.args)
        self.touch(v)
        v.items = items

    def delitem(self, v: Value, key: Value) -> Any:
        """`del v[key]`."""
        method = self.special_method(v.cls, "__delitem__")
        if type(method) is FUNCTION:
            return self.call_real_function(method, [v, key])
        if isinstance(v, DictObj):
            if not self.d_del(v, key):
                self.throw(KeyError, key)
            return None
        if isinstance(v, ListObj):
            index = self.index_of(key)
            if index is None:
                raise Break("operator-unknown", f"del list[{key.cls.__name__}]")
            items = list(v.items)
            try:
                del items[index]
            except IndexError:
                self.throw(IndexError, "list assignment index out of range")
            self.touch(v)
            v.items = items
            return None
        if method is MISSING:
            self.throw(TypeError, f"'{self.name_of(v.cls)}' object doesn't support item deletion")
        return self.call(self.known(method), [v, key], {})

    def contains(self, v: Value, item: Value) -> Any:
        """`item in v` as a Python bool, or PUSHED (with a bool as the result)."""
        method = self.special_method(v.cls, "__contains__")
        if type(method) is FUNCTION:
            return self.push_python(contains_in_python, [self.const(method), v, item])
        if method is None:
            refuse(self, operator.contains, self.named_like(v.cls, __contains__=None), None)
        if isinstance(v, DictObj):
            return self.d_get(v, item) is not None
        if isinstance(v, SetObj):
            return self.truth(self.call(self.known(method), [v, item], {}))
        if isinstance(v, DictView) and v.what == "keys":
            return self.d_get(v.owner, item) is not None
        if isinstance(v, (ListObj, TupleObj)):
            return self.sequence_contains(v.items, item)
        if type(v) is Const and type(item) is Host and v.cls in (tuple, frozenset):
            return self.sequence_contains(list(map(self.const, v.value)), item)
        if type(v) is Const and method is not MISSING and v.cls is not range:
            return self.truth(self.fold(operator.contains, [v, self.settle(item)], {}))
        if type(v) is Tensor:
            raise Break("tensor-truth", "in a tensor")
        if method is MISSING and not self.can_iterate(v.cls):
            raise Break("operator-unknown", f"in {v.cls.__name__}")
        if method is MISSING:
            return self.push_python(search_in_python, [v, item])
        found = self.call(self.known(method), [v, item], {})
        return found if found is PUSHED else self.truth(found)

    def sequence_contains(self, items: Any, item: Value) -> Any:
        """Search by identity, then by equality."""
        for at, other in enumerate(items):
            if other is item:
                return True
            if type(other) is Tensor or type(item) is Tensor:
                raise Break("tensor-truth", "in a list of tensors")
            same = self.equal(other, item)
            if same is None:
                return self.push_python(search_in_python, [TupleObj(items[at:]), item])
            if same:
                return True
        return False


def contains_in_python(method, v, item, /):
    """`in` by `__contains__`."""
    return True if method(v, item) else False  # noqa: SIM210 — a jump asks for the truth, without a call of bool


def search_in_python(v, item, /):
    """`in` by iteration."""
    iterator = iterator_or_none(v)
    if iterator is None:  # for whatever TypeError, there is one about `in`
        return unusual(operator.contains, "__iter__", v, None, item)
    for other in iterator:
        if same(other, item):
            return True
    return False


__all__ = ["PUSHED", "Subscripts"]
