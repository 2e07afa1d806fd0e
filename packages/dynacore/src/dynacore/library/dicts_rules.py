"""dict, OrderedDict, defaultdict, their subclasses and views: `DictObj` and `DictView`.

A made defaultdict keeps its factory in `attrs["default_factory"]`.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from types import FunctionType
from typing import Any

from ..reasons import Break
from ..values import FALSE, NONE, TRUE, Const, DictObj, DictView, TupleObj, Value
from .arguments import as_bool, contains, is_callable, is_iterator, items_of, refuse
from .polyfills import constructors
from .registry import rule

Pairs = list[tuple[Value, Value]]


def storage(self: Value) -> DictObj:
    """The receiver, which C code would check too."""
    if type(self) is not DictObj:
        raise Break("call-arguments", f"a dict method on {self.cls.__name__}")
    return self


def both(name: str) -> tuple[Any, ...]:
    """The methods of that name of dict and of OrderedDict."""
    return tuple({id(f): f for f in (vars(dict).get(name), vars(OrderedDict).get(name)) if f is not None}.values())


# -- construction and update -----------------------------------------------------------------------------------------


@rule(dict)
def dict_call(m: Any, other: Value | None = None, /, **named: Value) -> Any:
    made = DictObj()
    return fill(m, made, other, named, made)


@rule(OrderedDict)
def ordered_call(m: Any, other: Value | None = None, /, **named: Value) -> Any:
    made = DictObj(OrderedDict)
    return fill(m, made, other, named, made)


@rule(defaultdict)
def default_call(m: Any, factory: Value = NONE, other: Value | None = None, /, **named: Value) -> Any:
    made = DictObj(defaultdict)
    set_factory(m, made, factory)
    return fill(m, made, other, named, made)


@rule(dict.__new__, OrderedDict.__new__, defaultdict.__new__)
def dict_new(m: Any, cls: Value, *args: Value, **kwargs: Value) -> Value:
    made = DictObj(m.constant_of(cls))
    if issubclass(made.cls, defaultdict):
        made.attrs["default_factory"] = NONE
    return made


@rule(*both("__init__"), *both("update"))
def dict_update(m: Any, self: Value, other: Value | None = None, /, **named: Value) -> Any:
    return fill(m, storage(self), other, named, NONE)


@rule(defaultdict.__init__)
def default_init(m: Any, self: Value, factory: Value = NONE, other: Value | None = None, /, **named: Value) -> Any:
    target = storage(self)
    if target.obj is not None:
        raise Break("mutation-outside", "defaultdict.__init__")
    set_factory(m, target, factory)
    return fill(m, target, other, named, NONE)


def set_factory(m: Any, target: DictObj, factory: Value) -> None:
    """The factory of a new defaultdict."""
    if not m.is_none(factory) and not is_callable(factory):
        refuse(m, defaultdict, 0)
    target.attrs["default_factory"] = factory


@rule(constructors.refuse_item)
def refuse_item(m: Any, number: Value, /) -> Any:
    refuse(m, constructors.refuse_item, m.constant_of(number))


def fill(m: Any, target: DictObj, other: Value | None, named: dict[str, Value], result: Value) -> Any:
    """Update `target`, then give `result`."""
    pairs = [] if other is None else pairs_of(m, other)
    # dict stores past a subclass's __setitem__, OrderedDict goes through it.
    setter = m.special_method(target.cls, "__setitem__")
    plain = not issubclass(target.cls, OrderedDict) or type(setter) is not FunctionType
    if pairs is None or not plain:
        extra = DictObj()
        extra.items = {name: (Const(name), value) for name, value in named.items()}
        return m.push_python(constructors.dict_fill, [target, other or DictObj(), extra, result], {})
    # A dict makes room for another one at once; pairs, and whatever an OrderedDict is given, come one by one.
    merges = type(other) is DictObj and not issubclass(target.cls, OrderedDict)
    if pairs:
        m.d_update(target, pairs, "update" if merges else "set")
    if named:
        m.d_update(target, [(Const(name), value) for name, value in named.items()], "update" if merges else "set")
    return result


def pairs_of(m: Any, other: Value) -> Pairs | None:
    """The (key, value) pairs of a mapping or an iterable of pairs; None when getting them runs Python code."""
    if type(other) is DictObj:
        methods = [m.special_method(other.cls, name) for name in ("__iter__", "keys", "__getitem__")]
        if methods[0] is dict.__iter__ or not any(type(method) is FunctionType for method in methods):
            return m.d_items(other)
        return None
    if is_iterator(other) or m.lookup_type(other.cls, "keys") is not m.lookup_type(object, "keys"):
        return None
    pairs = []
    for item in items_of(m, other) or ():
        pair = None if is_iterator(item) else items_of(m, item)
        if pair is None or len(pair) != 2:
            return None
        pairs.append((pair[0], pair[1]))
    return pairs if pairs or items_of(m, other) is not None else None


@rule(*both("fromkeys"))
def dict_fromkeys(m: Any, cls: Value, iterable: Value, value: Value = NONE) -> Any:
    kind = m.constant_of(cls)
    keys = None if is_iterator(iterable) or kind not in (dict, OrderedDict) else items_of(m, iterable)
    if keys is None:
        return m.push_python(constructors.dict_fromkeys, [cls, iterable, value], {})
    made = DictObj(kind)
    for key in keys:
        m.d_set(made, key, value)
    return made


@rule(*both("copy"), defaultdict.copy, defaultdict.__copy__, *both("__copy__"))
def dict_copy(m: Any, self: Value, /) -> Value:
    source = storage(self)
    kind = next(base for base in (OrderedDict, defaultdict, dict) if issubclass(source.cls, base))
    if source.cls is not kind and kind is not dict:
        raise Break("construct-unknown", f"a copy of {source.cls.__name__}")
    made = DictObj(kind)
    if kind is defaultdict:
        made.attrs["default_factory"] = m.getattr(source, "default_factory")
    for key, value in m.d_items(source):
        m.d_set(made, key, value)
    return made


# -- items -----------------------------------------------------------------------------------------------------------


@rule(dict.get)
def dict_get(m: Any, self: Value, key: Value, default: Value = NONE, /) -> Value:
    found = m.d_get(storage(self), key)
    return default if found is None else found


@rule(OrderedDict.setdefault)
def ordered_setdefault(m: Any, self: Value, key: Value, default: Value = NONE) -> Value:
    return dict_setdefault(m, self, key, default)


@rule(dict.setdefault)
def dict_setdefault(m: Any, self: Value, key: Value, default: Value = NONE, /) -> Value:
    target = storage(self)
    found = m.d_get(target, key)
    if found is None:
        m.d_set(target, key, default)
        found = default
    return found


@rule(OrderedDict.pop)
def ordered_pop(m: Any, self: Value, key: Value, default: Value | None = None) -> Value:
    return dict_pop(m, self, key, default)


@rule(dict.pop)
def dict_pop(m: Any, self: Value, key: Value, default: Value | None = None, /) -> Value:
    target = storage(self)
    found = m.d_get(target, key)
    if found is not None:
        m.d_del(target, key)
        return found
    return m.throw(KeyError, key) if default is None else default


@rule(dict.popitem)
def dict_popitem(m: Any, self: Value, /) -> Value:
    return take(m, storage(self), dict.popitem, -1)


@rule(OrderedDict.popitem)
def ordered_popitem(m: Any, self: Value, last: Value = TRUE) -> Value:
    return take(m, storage(self), OrderedDict.popitem, -1 if m.truth(m.settle(last)) else 0)


def take(m: Any, target: DictObj, method: Any, place: int) -> Value:
    """Remove the last or first pair."""
    pairs = m.d_items(target)
    if not pairs:
        refuse(m, method, OrderedDict())
    m.d_del(target, pairs[place][0], "popitem" if method is dict.popitem else "del")
    return TupleObj(pairs[place])


@rule(OrderedDict.move_to_end)
def move_to_end(m: Any, self: Value, key: Value, last: Value = TRUE) -> Value:
    target = storage(self)
    place = m.d_key(target, key)
    at_end = m.truth(m.settle(last))
    if m.d_get_key(target, place) is None:
        m.throw(KeyError, key)
    m.d_items(target)
    if next(reversed(target.items) if at_end else iter(target.items)) == place:
        return NONE
    m.d_touch(target)
    pair = target.items.pop(place)
    target.items = {**target.items, place: pair} if at_end else {place: pair, **target.items}
    m.d_edit(target, "last" if at_end else "first", [(place, key)])
    return NONE


@rule(*both("clear"))
def dict_clear(m: Any, self: Value, /) -> Value:
    m.d_clear(storage(self))
    return NONE


@rule(dict.__getitem__)
def dict_getitem(m: Any, self: Value, key: Value, /) -> Any:
    return m.dict_item(storage(self), key)


@rule(*both("__setitem__"))
def dict_setitem(m: Any, self: Value, key: Value, value: Value, /) -> Value:
    m.d_set(storage(self), key, value)
    return NONE


@rule(*both("__delitem__"))
def dict_delitem(m: Any, self: Value, key: Value, /) -> Value:
    return NONE if m.d_del(storage(self), key) else m.throw(KeyError, key)


@rule(dict.__contains__)
def dict_contains(m: Any, self: Value, key: Value, /) -> Value:
    return FALSE if m.d_get(storage(self), key) is None else TRUE


@rule(*both("__len__"))
def dict_len(m: Any, self: Value, /) -> Value:
    return Const(m.d_len(storage(self)))


@rule(*both("__iter__"))
def dict_iter(m: Any, self: Value, /) -> Value:
    target = storage(self)
    return m.items_iter(m.keys_of(target), target, "keys")


@rule(*both("__reversed__"))
def dict_reversed(m: Any, self: Value, /) -> Value:
    target = storage(self)
    return m.items_iter(m.keys_of(target)[::-1], target, "keys", True)


@rule(defaultdict.__missing__)
def default_missing(m: Any, self: Value, key: Value, /) -> Any:
    factory = m.getattr(storage(self), "default_factory")
    if m.is_none(factory):
        m.throw(KeyError, key)
    return m.push_python(constructors.dict_missing, [self, key, factory], {})


@rule(*both("__or__"))
def dict_or(m: Any, self: Value, other: Value, /) -> Value:
    left, right = storage(self), other
    if type(right) is not DictObj:
        return m.const(NotImplemented)
    if left.cls not in (dict, OrderedDict) or right.cls not in (dict, OrderedDict):
        raise Break("operator-unknown", f"{left.cls.__name__} | {right.cls.__name__}")
    made = DictObj(left.cls)
    for key, value in [*m.d_items(left), *m.d_items(right)]:
        m.d_set(made, key, value)
    return made


@rule(*both("__ior__"))
def dict_ior(m: Any, self: Value, other: Value, /) -> Any:
    return fill(m, storage(self), other, {}, self)


# -- views -----------------------------------------------------------------------------------------------------------

VIEWS = {
    kind: {name: type(getattr(kind(), name)()) for name in ("keys", "values", "items")} for kind in (dict, OrderedDict)
}


def view(m: Any, self: Value, what: str) -> DictView:
    """A view of a dict."""
    owner = storage(self)
    return DictView(owner, what, VIEWS[OrderedDict if issubclass(owner.cls, OrderedDict) else dict][what])


@rule(*both("keys"))
def dict_keys(m: Any, self: Value, /) -> Value:
    return view(m, self, "keys")


@rule(*both("values"))
def dict_values(m: Any, self: Value, /) -> Value:
    return view(m, self, "values")


@rule(*both("items"))
def dict_items(m: Any, self: Value, /) -> Value:
    return view(m, self, "items")


def shown(self: Value) -> DictView:
    """The receiver of a view's method."""
    if type(self) is not DictView:
        raise Break("call-arguments", f"a view method on {self.cls.__name__}")
    return self


def of_views(name: str) -> tuple[Any, ...]:
    """The methods of that name of all views."""
    methods = [vars(cls).get(name) for views in VIEWS.values() for cls in views.values()]
    return tuple({id(f): f for f in methods if f is not None}.values())


@rule(*of_views("__len__"))
def view_len(m: Any, self: Value, /) -> Value:
    return Const(m.d_len(shown(self).owner))


@rule(*of_views("__iter__"))
def view_iter(m: Any, self: Value, /) -> Value:
    return m.get_iter(shown(self))


@rule(*of_views("__reversed__"))
def view_reversed(m: Any, self: Value, /) -> Value:
    target = shown(self)
    return m.items_iter(m.keys_of(target.owner)[::-1], target.owner, target.what, True)


@rule(*of_views("__contains__"))
def view_contains(m: Any, self: Value, item: Value, /) -> Any:
    target = shown(self)
    if target.what == "keys":
        return as_bool(m, m.d_get(target.owner, item) is not None)
    if type(item) is not TupleObj or len(item.items) != 2:
        return FALSE
    found = m.d_get(target.owner, item.items[0])
    if found is None:
        return FALSE
    return contains(m, [found], item.items[1])
