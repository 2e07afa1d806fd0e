"""Where a real object was found, and what the capture assumed about it.

The sources of one capture form a tree: the root's children are the state's items and constant objects, every other node
is reached from its parent by one accessor of the guard tree. A node also holds the checks on its object, so the tree of
sources *is* the guard tree (`guards.plan` only lays it out).
"""

from __future__ import annotations

import enum
import functools
from types import MethodDescriptorType, ModuleType
from typing import Any


class This:
    """Stands for the compiled function in sources and guards, which the functions of one code share."""

    __slots__ = ("__qualname__",)

    def __init__(self, qualname: str):
        self.__qualname__ = qualname


class Handed(tuple):
    """The names of a state that hands all its arguments on, with those of the parameters that get them."""

    parameters: tuple[str, ...] = ()


HEAP_TYPE = 1 << 9
KEPT = (type, ModuleType, enum.Enum, functools.partial, This)
"""Instances of these live as long as code does, or are code."""


def name_of(obj: Any) -> str | None:
    """A function's, class's or module's name; instances of the program's classes aren't asked: that may run code."""
    kind = type(obj)
    if kind.__flags__ & HEAP_TYPE and not issubclass(kind, (type, This)):
        return None
    return getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)


def droppable(obj: Any) -> bool:
    """Whether a program may drop the object while its code lives on: an instance of a class, or a tensor."""
    kind = type(obj)
    return bool(kind.__flags__ & HEAP_TYPE and kind.__weakrefoffset__) and not issubclass(kind, KEPT)


class Source:
    """One node: `accessor` and `key` say how the object is reached from `parent`'s object."""

    __slots__ = ("accessor", "checks", "children", "frames", "handed", "key", "parent", "where")

    def __init__(self, parent: Source | None, accessor: str, key: Any = None):
        self.parent = parent
        self.accessor = accessor
        self.key = key
        self.children: dict[tuple, Source] = {}
        self.checks: dict[tuple, tuple] = {}
        self.handed = False  # set when an emitted function needs the object
        self.frames: list[Any] = parent.frames if parent is not None else []  # the machine's, on all nodes of a tree
        self.where: tuple[Any, int] | None = None  # code and line that made capture rely on the object

    def child(self, accessor: str, key: Any = None) -> Source:
        """The child reached by `accessor`; the same node whenever it is asked for again."""
        # 1, True and 1.0 are one dict key but three different constants; objects are told apart by identity.
        mark = (
            (accessor, key)
            if type(key) in (str, int, type(None)) and key is not True
            else (accessor, type(key), id(key))
        )
        node = self.children.get(mark)
        if node is None:
            node = self.children[mark] = Source(self, accessor, key)
        return node

    def check(self, name: str, argument: Any = None) -> None:
        """Assume something of the object; asking twice costs nothing."""
        mark = (name, argument) if type(argument) in (str, int) else (name, id(argument))
        if mark not in self.checks:
            if self.where is None:
                self.where = next(((f.code, f.line) for f in reversed(self.frames) if not f.trusted), None)
            self.checks[mark] = (name, argument)

    @property
    def rooted(self) -> bool:
        """Whether the object is reached from a constant: neither from this call's state nor from its function."""
        node = self
        while node.parent is not None and node.parent.parent is not None:
            node = node.parent
        return node.accessor == "const" and type(node.key) is not This

    @property
    def steps(self) -> tuple:
        """The way from the root, in a form that is the same in another capture."""
        steps: list[tuple] = []
        node: Source | None = self
        while node is not None and node.parent is not None:
            steps.append((node.accessor, node.key if type(node.key) in (str, int) else id(node.key)))
            node = node.parent
        return tuple(reversed(steps))

    def nodes(self):
        """This node and all below, parents first."""
        yield self
        for child in self.children.values():
            yield from child.nodes()

    def __str__(self) -> str:
        """The path as a Python user would write it."""
        if self.parent is None:
            return "state"
        if self.accessor == "arg" and self.parent.key and self.key < len(self.parent.key):
            return self.parent.key[self.key]  # the root knows the names of the state's items
        if (parameter := self.parameter) is not None:
            return parameter
        if self.accessor == "call" and type(self.key) is MethodDescriptorType:
            return f"{self.parent}.{self.key.__name__}()"
        return PATHS.get(self.accessor, "{parent}.<{accessor} {key}>").format(
            parent=self.parent if self.parent.parent is not None else "",
            accessor=self.accessor,
            key=self.describe_key(),
        )

    @property
    def parameter(self) -> str | None:
        """The name that an argument has where it is handed on to."""
        given, root = self.parent, self.parent and self.parent.parent
        if given is None or root is None or type(root.key) is not Handed or given.accessor != "arg":
            return None
        if self.accessor == "item":
            return root.key.parameters[self.key] if self.key < len(root.key.parameters) else None
        return self.key if self.accessor == "key" and type(self.key) is str else None

    def describe_key(self) -> str:
        """The key in a form fit for a message."""
        if self.accessor in ("key", "item"):
            return repr(self.key)
        if self.accessor == "const":
            name = name_of(self.key)
            if name is None and type(self.key) is dict and "__name__" in self.key:
                return f"{self.key['__name__']}.__dict__"
            return name or type(self.key).__name__
        return str(self.key)


#: accessor -> how the path is written
PATHS = {
    "arg": "<argument {key}>",
    "const": "{key}",
    "weak": "{key}",
    "attr": "{parent}.{key}",
    "slot": "{parent}.{key}",
    "dict": "{parent}.__dict__",
    "key": "{parent}[{key}]",
    "item": "{parent}[{key}]",
    "type": "type({parent})",
    "mro": "{parent}.{key}",
    "cell": "{parent}.cell_contents",
    "func": "{parent}.__{key}__",
    "method": "{parent}.__{key}__",
    "call": "{key}({parent})",
}
