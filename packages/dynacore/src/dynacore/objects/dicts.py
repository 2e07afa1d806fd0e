"""Dictionaries: an overlay over a real dict, or the whole contents of one made here."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..reasons import Break
from ..values import DELETED, Const, DictObj, Known, Value
from .operators import PLAIN


class Dicts:
    """The storage of `DictObj`; methods of dict and of its subclasses are rules on top of it."""

    def d_get(self, d: DictObj, key: Value) -> Value | None:
        """The value at `key`, or None."""
        return self.d_get_key(d, self.key_of(key))

    def d_get_str(self, d: DictObj, name: str) -> Value | None:
        """The value at a string key."""
        return self.d_get_key(d, name)

    def d_get_key(self, d: DictObj, key: Any) -> Value | None:
        """The value at a key as `key_of` gives it."""
        entry = d.items.get(key)
        if entry is not None:
            return None if entry is DELETED else entry[1]
        if d.complete:
            return None
        return self.d_read(d, key)

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
        k = self.key_of(key)
        self.touch(d)
        entry = d.items.get(k)
        if entry is DELETED:
            self.d_complete(d)
            entry = None
        d.shape += entry is None
        d.items[k] = (entry[0] if entry is not None else key, value)

    def d_del(self, d: DictObj, key: Value) -> bool:
        """Delete a key; whether it was there."""
        k = self.key_of(key)
        if self.d_get_key(d, k) is None:
            return False
        if not d.complete and d.obj is not None and dict.__contains__(d.obj, k) and not isinstance(k, str):
            self.d_complete(d)
        self.touch(d)
        d.shape += 1
        if d.complete:
            del d.items[k]
            d.reordered = True
        elif self.d_holds(d, k):
            d.items[k] = DELETED
        else:
            del d.items[k]
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
        if len(real) > 4096:
            raise Break("iterate-unknown", "a very large dict")
        keys = KeyList(dict.keys(real))
        if issubclass(d.cls, OrderedDict):  # it has an order of its own
            keys = KeyList(OrderedDict.keys(real))
            if not all(type(key) in PLAIN for key in keys):
                raise Break("iterate-unknown", "the order of an OrderedDict with such keys")
        d.source.check("keys", keys)
        overlay, d.items = d.items, {}
        for key in keys:
            change = overlay.pop(key, None)
            if change is DELETED:
                continue
            d.items[key] = change or (
                self.key_value(key, d),
                self.wrap(dict.__getitem__(real, key), d.source.child("key", key)),
            )
        d.items.update((k, e) for k, e in overlay.items() if e is not DELETED)
        d.complete = True
        d.reordered = d.changed

    def key_value(self, key: Any, d: DictObj) -> Value:
        """The value of a real dict's key."""
        known = self.seen.get(id(key))
        if known is not None:
            return known
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
        d.shape += 1
        d.complete = d.reordered = True

    def d_store(self, d: DictObj, name: str, value: Value) -> None:
        """Set a string key."""
        self.d_set(d, Const(name), value)


class KeyList(tuple):
    """A dict's keys, as the argument of the `keys` check."""


__all__ = ["Dicts", "KeyList"]
