"""Finds out what the running interpreter tells about when it changes, by changing things and listening.

What a release says of its watchers and what they see differ: 3.13.0, for one, doesn't tell of attributes that are
written where an object keeps them inside itself. So nothing is taken from a version number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

WARM = 100
"""How often an instruction runs before the interpreter has surely specialised it."""


class _Plain:
    def __init__(self) -> None:
        self.first = 0
        self.second: Any = 0


def _set(obj: Any) -> None:
    obj.second = 1


def _set_same_type(obj: Any) -> None:
    obj.second += 1


def _delete(obj: Any) -> None:
    del obj.second


def _add(obj: Any) -> None:
    obj.third = 1


INSTANCE_WRITES: tuple[Callable[[Any], Any], ...] = (
    _set,
    _set_same_type,
    _delete,
    _add,
    lambda obj: setattr(obj, "second", 1),
    lambda obj: delattr(obj, "second"),
    lambda obj: object.__setattr__(obj, "second", 1),
    lambda obj: vars(obj).update(second=1),
    lambda obj: vars(obj).clear(),
)
"""Each changes an attribute of an instance."""

DICT_WRITES: tuple[Callable[[dict], Any], ...] = (
    lambda d: d.__setitem__("second", 1),
    lambda d: d.__setitem__("third", 1),
    lambda d: d.__delitem__("second"),
    lambda d: d.update(second=1),
    lambda d: d.__ior__({"second": 1}),
    lambda d: d.setdefault("third", 1),
    lambda d: d.pop("second"),
    lambda d: d.popitem(),
    lambda d: d.clear(),
    lambda d: d.__init__(third=1),  # type: ignore[misc]
    lambda d: exec("second = 1", d),
    lambda d: exec("global second; second = 1", d),
    lambda d: exec("global second; del second", d),
    lambda d: exec("def f():\n global second\n second = 1\nfor _ in range(100): f()", d),
)
"""Each changes a dict with the keys `first` and `second`, or what a module's code does to its globals."""


def _base_of(cls: Any) -> Any:
    return cls.__mro__[1]


CLASS_WRITES: tuple[Callable[[Any], Any], ...] = (
    lambda cls: setattr(cls, "attribute", 1),
    lambda cls: setattr(cls, "other", 1),
    lambda cls: delattr(cls, "attribute"),
    lambda cls: type.__setattr__(cls, "attribute", 1),
    lambda cls: setattr(_base_of(cls), "attribute", 1),
    lambda cls: setattr(_base_of(cls), "inherited", 1),
    lambda cls: delattr(_base_of(cls), "inherited"),
    lambda cls: setattr(cls, "__bases__", (_Plain,)),
    lambda cls: setattr(_base_of(cls), "__bases__", (_Plain,)),
)
"""Each changes what looking something up in a class gives."""


def _other() -> int:
    return 1


FUNCTION_WRITES: tuple[Callable[[Any], Any], ...] = (
    lambda f: setattr(f, "__code__", _other.__code__),
    lambda f: setattr(f, "__defaults__", (1,)),
    lambda f: setattr(f, "__kwdefaults__", {"b": 1}),
    lambda f: delattr(f, "__defaults__"),
    lambda f: delattr(f, "__kwdefaults__"),
)
"""Each changes what calling a function does."""


def _new_class() -> type:
    root = type("Root", (), {})
    base = type("Base", (root,), {"inherited": 0})
    return type("Class", (base,), {"attribute": 0})


def _tells(watch: Callable[[Any], Any], obj: Any, watched: Any, write: Callable[..., Any], *values: Any) -> bool:
    """Whether what is watched tells that `write(obj, *values)` happens."""
    watching = watch(watched)
    write(obj, *values)
    return not watching.unchanged


def _instances(watch: Callable[[Any], Any]) -> Iterator[bool]:
    for write in INSTANCE_WRITES:
        for _ in range(WARM):
            write(_Plain())
        for _ in range(2):
            obj = _Plain()
            yield _tells(watch, obj, vars(obj), write)
        obj = _Plain()
        namespace = vars(obj)
        for _ in range(WARM):
            obj.second = 0
        yield _tells(watch, obj, namespace, write)


def _dicts(watch: Callable[[Any], Any]) -> Iterator[bool]:
    for write in DICT_WRITES:
        namespace = {"first": 0, "second": 0}
        yield _tells(watch, namespace, namespace, write)
    empty: dict[str, int] = {}
    yield _tells(watch, empty, empty, lambda d: d.update(first=1))  # CPython copies the other one's keys as a whole
    again = {"first": 0}
    for value in range(1, 4):
        yield _tells(watch, again, again, dict.__setitem__, "first", value)


def _types(watch: Callable[[Any], Any]) -> Iterator[bool]:
    for write in CLASS_WRITES:
        cls = _new_class()
        cls.attribute  # type: ignore[attr-defined]  # noqa: B018
        yield _tells(watch, cls, cls, write)
    cls = _new_class()
    for value in range(1, 4):
        yield _tells(watch, cls, cls, setattr, "attribute", value)
        yield _tells(watch, cls, cls, lambda cls, *new: setattr(_base_of(cls), *new), "inherited", value)


def _functions(watch: Callable[[Any], Any]) -> Iterator[bool]:
    for write in FUNCTION_WRITES:

        def function(a: int = 0, *, b: int = 0) -> int:
            return a + b

        yield _tells(watch, function, function, write)


def _always_told(answers: Iterator[bool]) -> bool:
    try:
        return all(answers)
    except TypeError:  # it can't be watched
        return False


def find_watchable(extension: Any) -> tuple[bool, bool, bool, bool]:
    """Whether dicts, dicts of instances, classes, functions tell of all their changes. The extension relies on it."""
    extension.set_watchable((True,) * 4)
    found = tuple(_always_told(answers(extension.Watch)) for answers in (_dicts, _instances, _types, _functions))
    extension.set_watchable(found)
    return found  # type: ignore[return-value]
