"""Points, entries, guards and the trampoline: what runs on every call."""

# ruff: noqa: N999  the name that extensions have

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Final, final

_Handler = tuple[type[BaseException] | tuple[type[BaseException], ...], Point, int, bool, int | None]
_Frames = list[tuple[Point, list[Any]]]

@final
class Sentinel: ...

UNBOUND: Final[Sentinel]
"""Stands in a state for a local, cell or free variable slot without a value."""
NULL: Final[Sentinel]
"""Stands in a state for a NULL on the value stack."""
capabilities: Final[dict[str, bool]]
"""Which version counters were seen, at import, to move with every change of what they belong to: `dict_versions`,
`instance_dict_versions` (dicts of instances that share their keys), `type_versions`."""

@final
class Watch:
    """Whether a dict, class or function has changed since. Keeps nothing alive. TypeError where that can't be told."""

    def __new__(cls, object: dict[Any, Any] | type | FunctionType) -> Watch: ...
    @property
    def unchanged(self) -> bool: ...

def set_watchable(kinds: tuple[bool, bool, bool, bool], /) -> None:
    """Rely on watchers for dicts, dicts of instances, classes, functions. `dynacore.guards.probe` decides that."""

def set_tensor_layout(layout: tuple[Any, ...] | None, /) -> None:
    """Where a tensor's metadata lie in memory. `dynacore.torch_memory` finds that out; None: they aren't read."""

def set_state_readers(readers: tuple[Any, ...] | None, /) -> None:
    """How torch's state is read. `dynacore.torch_memory` finds that out; None: it isn't."""

def tensor_words(tensor: Any, /) -> tuple[Any, ...] | None:
    """What is read of a tensor: type, dtype and device, dispatch keys, requires_grad, sizes, strides; None: nothing."""

def state_words() -> tuple[int, ...] | None:
    """What is read of torch's state, in this thread, switches last. None: torch has to be asked."""

def watchable() -> tuple[bool, bool, bool, bool]:
    """What `set_watchable` got: nothing is watched before."""

def watched() -> dict[str, int]:
    """How many `dicts`, `types` and `functions` are watched now."""

@final
class Guards:
    """What must hold of a state. `dynacore.guards.spec` describes the tuples."""

    def __new__(cls, tree: tuple[Any, ...], n_handed: int) -> Guards: ...
    def check(self, state: list[Any]) -> list[Any] | None:
        """The handed objects, or None when a guard fails."""
    @property
    def tree(self) -> tuple[Any, ...]: ...
    @property
    def n_handed(self) -> int: ...
    def coverage(self) -> list[tuple[int, str, str]]:
        """What is remembered below const and weak roots: the index of a node of the tree, parents first; `watched`,
        `polled` or `looked up`; and what of the node's object, or of the way to it."""
    @property
    def slow(self) -> int:
        """How many accessors and checks call Python code."""
    @property
    def stats(self) -> dict[str, int]:
        """Below const and weak roots: `walks`, `recordings`, and `recalls`, which needed no walk."""

@final
class Entry:
    """Guards and the function that they protect."""

    valid: bool
    hits: int
    data: Any
    def __new__(cls, guards: Guards, fn: Callable[..., Any], *, boxed: bool = False, data: Any = None) -> Entry: ...
    @property
    def guards(self) -> Guards: ...
    @property
    def fn(self) -> Callable[..., Any]: ...
    @property
    def boxed(self) -> bool: ...

@final
class Point:
    """A place where execution can be entered."""

    line: int
    handled: int
    """Index in a state of the exception that the frame is handling; -1 (at first): none."""
    data: Any
    visible: bool
    """Whether an exception that arrives in a frame that waits here gets a traceback line for it."""
    handlers: tuple[_Handler, ...]
    def __new__(
        cls,
        miss: Callable[[Point, list[Any]], Entry | None] | None,
        fallback: Callable[[list[Any]], Callable[[], Any]],
        *,
        code: CodeType | None = None,
        line: int = 0,
        data: Any = None,
    ) -> Point: ...
    @property
    def miss(self) -> Callable[[Point, list[Any]], Entry | None] | None: ...
    @property
    def fallback(self) -> Callable[[list[Any]], Callable[[], Any]]: ...
    @property
    def code(self) -> CodeType | None: ...
    @property
    def entries(self) -> tuple[Entry, ...]:
        """Newest first."""
    def add(self, entry: Entry) -> None: ...
    def remove(self, entry: Entry) -> bool:
        """Whether the entry was there."""
    def clear(self) -> None: ...

@final
class Continuation:
    """Frames still to run, innermost first. The trampoline takes the state lists over and changes them."""

    def __new__(cls, frames: _Frames) -> Continuation: ...
    @property
    def frames(self) -> tuple[tuple[Point, list[Any]], ...]: ...
    @property
    def exception(self) -> BaseException | None: ...

def resume(frames: _Frames, value: Any) -> Any:
    """A continuation whose innermost frame gets `value` appended to its state; without frames, `value` itself."""

def resume_raise(frames: _Frames, exc: BaseException) -> Continuation:
    """A continuation that raises `exc` into the frames, innermost first."""

@final
class Compiled:
    """A callable that binds arguments like `function` and enters `point`."""

    __wrapped__: Callable[..., Any]
    __name__: str
    __qualname__: str
    def __new__(cls, function: Callable[..., Any], point: Point) -> Compiled: ...
    @property
    def point(self) -> Point: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

def set_handled_exception(exc: BaseException | None) -> BaseException | None:
    """Replace what `sys.exc_info()` sees; returns what it was."""

def disable_depth(change: int) -> int:
    """Add +1, -1 or 0 to this thread's depth. Above 0, a `Compiled` calls its function as it is."""

def attribute_slots(type: type, /) -> tuple[bool, bool]:
    """Whether reading and writing attributes of instances is `PyObject_Generic{Get,Set}Attr`."""

def peek(iterator: Any, /) -> Any:
    """The item that comes next from an iterator over a list, tuple or range, which stays where it is.

    Raises IndexError at its end, TypeError for other iterators.
    """
