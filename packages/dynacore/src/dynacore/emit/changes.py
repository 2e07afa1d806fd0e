"""Writing changed containers back: as the changes were made, so that whoever iterates over one notices them alike.

Where a dict's or set's next item comes from follows from its history, not from its contents. So its changes are
done again one by one. A list's iterators know an index only, a deque's whether its items have moved.
"""

from __future__ import annotations

from typing import Any

from ..objects.wrapping import base_layout
from ..values import DELETED, DictObj, ListObj, SetObj


def write_list(e: Any, value: ListObj, name: str) -> None:
    """The items of a list or deque."""
    base = base_layout(value.cls)
    if value.loader is not None:
        e.lines.append(f"list.extend({name}, [{e.many(value.tail)}])")
        return
    items = f"[{e.many(value.items)}]"
    if base is list:
        e.lines.append(f"list.__setitem__({name}, slice(None), {items})")
    elif value.shape:
        deque = e.constant(base)
        # An empty one that stays empty has moved, too.
        e.lines += [f"{deque}.append({name}, None)", f"{deque}.clear({name})", f"{deque}.extend({name}, {items})"]
    else:
        e.lines.append(f"for i, item in enumerate({items}): {e.constant(base)}.__setitem__({name}, i, item)")


def write_dict(e: Any, value: DictObj, name: str) -> None:
    """The changes of a dict; a key that comes and goes has no value in between."""
    base = e.constant(base_layout(value.cls))
    places: dict[Any, int] = {}  # the edit that brought each key which is there now
    for place, (kind, pairs) in enumerate(value.edits):
        if kind == "clear":
            places.clear()
        for key, _ in pairs:
            if kind in ("set", "update"):
                places[key] = place
            elif kind in ("del", "popitem"):
                places.pop(key, None)
    for place, (kind, pairs) in enumerate(value.edits):
        named = [(e.get(k), e.get(value.items[key][1]) if places.get(key) == place else "None") for key, k in pairs]
        e.lines += EDITS[kind](base, name, named)
    for key, entry in list(value.items.items()):
        if entry is not DELETED and key not in places and not unchanged(value, key, entry[1]):
            e.lines.append(f"{base}.__setitem__({name}, {e.get(entry[0])}, {e.get(entry[1])})")


#: edit of a dict -> the lines that do it: (class, dict, [(key, value)])
EDITS: dict[str, Any] = {
    "set": lambda base, name, pairs: [f"{base}.__setitem__({name}, {key}, {item})" for key, item in pairs],
    "del": lambda base, name, pairs: [f"{base}.__delitem__({name}, {key})" for key, _ in pairs],
    "update": lambda base, name, pairs: [f"{base}.update({name}, {{{', '.join(f'{k}: {v}' for k, v in pairs)}}})"],
    "popitem": lambda base, name, _: [f"{base}.popitem({name})"],
    "clear": lambda base, name, _: [f"{base}.clear({name})"],
    "first": lambda base, name, pairs: [f"{base}.move_to_end({name}, {key}, False)" for key, _ in pairs],
    "last": lambda base, name, pairs: [f"{base}.move_to_end({name}, {key})" for key, _ in pairs],
}


def unchanged(owner: DictObj, key: Any, item: Any) -> bool:
    """Whether a dict entry still is what was read there."""
    source = item.source
    return source is not None and source.parent is owner.source and source.accessor == "key" and source.key is key


def write_set(e: Any, value: SetObj, name: str) -> None:
    """The changes of a set."""
    for method, operands in value.edits:
        given = [operand.replace("ITEMS", e.many(items)) for operand, items in operands]
        e.lines.append(f"set.{method}({', '.join([name, *given])})")
