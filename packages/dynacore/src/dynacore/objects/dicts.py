"""Dictionaries: an overlay over a real dict, or the whole contents of one made here."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import ref

import torch

from ..reasons import Break
from ..sources import droppable
from ..values import DELETED, TEXT_OF, Const, DictObj, Host, Known, TupleObj, Value
from .operators import PLAIN

#: tuples that are compared and hashed as such
TUPLES = (tuple, torch.Size)
#: in a dict of more keys an open int is taken as it is
MOST_COMPARED = 32


class Dicts:
    """The storage of `DictObj`; methods of dict and of its subclasses are rules on top of it."""

    open_keys = False  # whether a dict has open keys: ints, or texts with such in them

    def d_get(self, d: DictObj, key: Value) -> Value | None:
        """The value at `key`, or None."""
        return self.d_get_key(d, self.d_key(d, key))

    def d_get_str(self, d: DictObj, name: str) -> Value | None:
        """The value at a string key."""
        return self.d_get(d, Const(name)) if self.open_keys else self.d_get_key(d, name)

    def d_get_key(self, d: DictObj, key: Any) -> Value | None:
        """The value at a key as `key_of` gives it."""
        entry = d.items.get(key)
        if entry is not None:
            return None if entry is DELETED else entry[1]
        if d.complete:
            return None
        return self.d_read(d, key)

    def d_key(self, d: DictObj, key: Value, more: Iterable[tuple[Any, Value]] = ()) -> Any:
        """What stands for `key` in a dict that has `more` keys, too.

        An open int, a text with one in it, or a tuple of them stays open: it is compared with each key that there is,
        and is a key of its own if it equals none of them.
        """
        opened = self.is_open_key(key)
        if not opened and not self.open_keys:
            return self.key_of(key)
        if opened and not self.d_compares(d, key):
            key, opened = Const(self.key_of(key)), False
        pairs = [*((k, entry[0]) for k, entry in d.items.items() if entry is not DELETED), *more]
        for k, known in pairs:
            if (opened or self.is_open_key(known)) and self.same_key(key, known):
                return k
        if not opened:
            return self.key_of(key)
        self.open_keys = True
        return key

    def d_compares(self, d: DictObj, key: Value) -> bool:
        """Whether a key with open ints may be compared with those of a dict."""
        if d.source is not None and contains_text(key):  # which is compared in Python, in each call
            return False
        if not d.complete:
            if len(d.obj) > MOST_COMPARED or dict.__contains__(d.obj, self.example_key(key)):
                return False
            self.d_complete(d)
        return len(d.items) <= MOST_COMPARED and all(is_plain_key(known) for known, _ in d.items.values())

    def is_open_key(self, key: Value) -> bool:
        """Whether a key is an open int, a text with one in it, or a tuple with one of these."""
        if type(key) is TupleObj and key.cls in TUPLES:
            return any(map(self.is_open_key, key.items))
        if type(key) is Host and key.cls is str:
            return key.guardable
        return type(key) is Host and key.cls is int and type(self.settled(key)) is Host

    def same_key(self, a: Value, b: Value) -> bool:
        """Whether two plain keys are equal; that of open ints is guarded."""
        mine, others = parts_of(a), parts_of(b)
        if mine is not None and others is not None:
            return len(mine) == len(others) and all(map(self.same_key, mine, others))
        if self.is_number(a) and self.is_number(b):
            return self.decide_if_open(self.compare("==", a, b))
        if a.cls is b.cls is str and a is not b and Host in (type(a), type(b)):
            return self.decide(Host(self.example_of(a) == self.example_of(b), None, TEXT_OF["=="], (a, b)))
        return a is b or type(a) is type(b) is Const and a.value == b.value

    def example_key(self, key: Value) -> Any:
        """A key as it is in this call."""
        parts = parts_of(key)
        return self.example_of(key) if parts is None else tuple(map(self.example_key, parts))

    def d_read(self, d: DictObj, key: Any) -> Value | None:
        """Read the real dict, with a guard."""
        if isinstance(key, Value):
            return None
        real = d.obj
        if dict.__contains__(real, key):
            return self.wrap(dict.__getitem__(real, key), d.source.child("key", key))
        d.source.check("lacks", key)
        return None

    def d_set(self, d: DictObj, key: Value, value: Value) -> None:
        """`d[key] = value`."""
        self.d_update(d, [(key, value)], "set")

    def d_update(self, d: DictObj, pairs: list[tuple[Value, Value]], kind: str = "update") -> None:
        """Set keys, as items one by one ("set") or from a dict ("update")."""
        keys: list[Any] = []
        for at, (key, _) in enumerate(pairs):  # may give up, so before anything changes
            keys.append(self.d_key(d, key, zip(keys, [earlier for earlier, _ in pairs[:at]], strict=True)))
        self.d_touch(d)
        new = []
        for k, (key, value) in zip(keys, pairs, strict=True):
            entry = d.items.get(k)
            if entry is None or entry is DELETED:
                d.items.pop(k, None)
                new.append((k, key))
                entry = (key,)
            d.items[k] = (entry[0], value)
        if new:
            self.d_edit(d, kind, new)

    def d_touch(self, d: DictObj) -> None:
        """Note that a dict is about to change."""
        self.touch(d)
        if d.source is None and not d.edits and d.items:  # made with these items
            d.edits.append(("set", [(k, key) for k, (key, _) in d.items.items()]))

    def d_edit(self, d: DictObj, kind: str, pairs: list[tuple[Any, Value]]) -> None:
        """Note a change that a live iterator may notice."""
        d.shape += 1
        d.edits.append((kind, pairs))

    def d_del(self, d: DictObj, key: Value, kind: str = "del") -> bool:
        """Delete a key; whether it was there."""
        k = self.d_key(d, key)
        if self.d_get_key(d, k) is None:
            return False
        self.d_touch(d)
        if not d.complete and self.d_holds(d, k):
            d.items[k] = DELETED
        else:
            del d.items[k]
        self.d_edit(d, kind, [(k, key)])
        return True

    def d_holds(self, d: DictObj, key: Any) -> bool:
        """Whether the real dict has the key, guarded."""
        found = dict.__contains__(d.obj, key)
        d.source.check("has" if found else "lacks", key)
        return found

    def d_complete(self, d: DictObj) -> None:
        """Take over all of a real dict, so that its order is known."""
        if d.complete:
            return
        real = d.obj
        if dict.__len__(real) > 4096:
            raise Break("iterate-unknown", "a very large dict")
        keys = KeyList(dict.keys(real))
        if issubclass(d.cls, OrderedDict):  # it has an order of its own
            keys = KeyList(OrderedDict.keys(real))
            if not all(type(key) in PLAIN for key in keys):
                raise Break("iterate-unknown", "the order of an OrderedDict with such keys")
        d.source.check("keys", keys)
        overlay, d.items = d.items, {}
        for key in keys:
            d.items[key] = overlay.get(key) or (
                self.key_value(key, d),
                self.wrap(dict.__getitem__(real, key), d.source.child("key", key)),
            )
        for kind, pairs in d.edits:
            for key, _ in pairs:
                if kind == "del":
                    d.items.pop(key, None)
                else:
                    d.items.setdefault(key, overlay.get(key))
        d.complete = True

    def key_value(self, key: Any, d: DictObj) -> Value:
        """The value of a real dict's key."""
        known = self.seen.get(id(key))
        if known is not None:
            return known
        if droppable(key):  # another way may lead to it, too
            return self.wrap(key, self.root.child("weak", ref(key)))
        value = self.const(key)
        if type(value) is Known and value.source is None:
            value.source = self.root.child("const", key)
        return value

    def d_items(self, d: DictObj) -> list[tuple[Value, Value]]:
        """All (key, value) pairs, in order."""
        self.d_complete(d)
        return list(d.items.values())

    def d_len(self, d: DictObj) -> int:
        """The number of keys."""
        if d.complete:
            return len(d.items)
        if not d.changed:
            d.source.check("len", dict.__len__(d.obj))
            return dict.__len__(d.obj)
        self.d_complete(d)
        return len(d.items)

    def d_clear(self, d: DictObj) -> None:
        """Empty it."""
        self.touch(d)
        d.items = {}
        d.complete = True
        d.edits[:] = [("clear", [])]  # nothing of what was before is left
        if not issubclass(d.cls, OrderedDict):  # whose iterators see the size alone
            d.shape += 1

    def d_store(self, d: DictObj, name: str, value: Value) -> None:
        """Set a string key."""
        self.d_set(d, Const(name), value)


def parts_of(key: Value) -> Sequence[Value] | None:
    """What is in a tuple that is a key; None for other keys."""
    if type(key) is TupleObj:
        return key.items
    return list(map(Const, key.value)) if type(key) is Const and isinstance(key.value, tuple) else None


def is_plain_key(key: Value) -> bool:
    """Whether comparing with the key runs no Python code; a NaN equals itself by identity, and isn't one."""
    parts = parts_of(key)
    if parts is not None:
        return key.cls in TUPLES and all(map(is_plain_key, parts))
    if type(key) is Host:
        return key.cls in (int, str)
    return type(key) is Const and key.cls in PLAIN and key.value == key.value


def contains_text(key: Value) -> bool:
    """Whether a key is an open text, or a tuple with one."""
    parts = parts_of(key)
    return type(key) is Host and key.cls is str if parts is None else any(map(contains_text, parts))


class KeyList(tuple):
    """A dict's keys, as the argument of the `keys` check."""


__all__ = ["Dicts", "KeyList"]
