"""Rebuilding values: Python source that makes the real object of a symbolic value, aliases and cycles kept."""

from __future__ import annotations

import collections
import itertools
import math
import types
from collections.abc import Callable
from typing import Any

from bytecode_models import NULL as NULL_ITEM
from bytecode_models import UNBOUND, resume_generator

from ..frames import NULL
from ..library.folding import CONST_TYPES
from ..library.polyfills.constructors import make_from_iterator
from ..library.registry import STANDS_FOR
from ..library.stand_ins import MODULES, expression, real_object
from ..objects.wrapping import base_layout
from ..reasons import Break
from ..sources import Source, This, droppable
from ..values import (
    DELETED,
    IN_GRAPH,
    Bound,
    Cell,
    Const,
    DictObj,
    DictView,
    ExcObj,
    ExcTrace,
    Func,
    GenObj,
    Host,
    HostRange,
    ItemsIter,
    Known,
    ListObj,
    Obj,
    SeqIter,
    SetObj,
    SliceObj,
    Super,
    Tensor,
    TupleObj,
    Value,
)
from .changes import write_dict

#: names that emitted source may use
NAMESPACE = {**MODULES, "UNBOUND_SLOT": UNBOUND, "NULL_ITEM": NULL_ITEM, "real_object": real_object}
LITERALS = (int, str, bool, type(None), bytes)


def by_value(value: Value) -> bool:
    """Whether it is a constant for which any equal object will do: not so instances of subclasses of int, str …"""
    return type(value) is Const and (value.source is None or value.cls in CONST_TYPES)


class Cycle(Exception):
    """Something that contains itself: it, or what lies in between, has to be made empty and filled later."""

    def __init__(self, value: Value):
        self.value = value


class Rebuilder:
    """Writes lines that make objects; one name per value."""

    def __init__(self, machine: Any, two_phase: set[int], kept: set[int]):
        self.m = machine
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.pool: dict[str, Any] = {}
        self.pool_names: dict[int, str] = {}
        self.handed: list[Source] = []
        self.handed_names: dict[int, str] = {}
        self.outputs: list[Tensor | Host] = []
        self.output_names: dict[int, str] = {}
        self.two_phase = two_phase  # ids of values that contain themselves
        self.kept = kept  # ids of polyfills' instances that running polyfills need as they are
        self.open: set[int] = set()
        self.later: list[Callable[[], None]] = []
        self.unfilled: set[int] = set()  # ids of what is made but not filled yet

    # -- names ---------------------------------------------------------------------------------------------------------

    def constant(self, obj: Any) -> str:
        """A name for a real object in the entry's globals."""
        name = self.pool_names.get(id(obj))
        if name is None:
            name = self.pool_names[id(obj)] = f"k{len(self.pool)}"
            self.pool[name] = obj
        return name

    def hand(self, source: Source) -> str:
        """A name for the object that the guards found at `source`."""
        if source.accessor == "const" and type(source.key) is not This:
            return self.constant(source.key)
        name = self.handed_names.get(id(source))
        if name is None:
            name = self.handed_names[id(source)] = f"v{len(self.handed)}"
            self.handed.append(source)
        return name

    def assign(self, value: Value, text: str, prefix: str = "o") -> str:
        """Give `value` a name for the object that `text` makes."""
        name = self.names[id(value)] = f"{prefix}{len(self.names)}"
        self.lines.append(f"{name} = {text}")
        return name

    # -- values --------------------------------------------------------------------------------------------------------

    def get(self, value: Value) -> str:
        """An expression for the real object; lines that it needs are written first."""
        kind = type(value)
        if kind is Const:
            if by_value(value):
                return self.literal(value.value)  # type: ignore[attr-defined]
            return self.hand(value.source)  # type: ignore[arg-type]
        if value is NULL:
            return "NULL"
        if kind is Known:
            return self.known(value)
        if kind is Host:
            return self.scalar(value)
        if kind is Tensor:
            return self.tensor(value)
        known = self.names.get(id(value))
        if known is not None:
            return known
        if value.obj is not None and value.source is not None:  # type: ignore[attr-defined]
            found = self.hand(value.source)
            return self.assign(value, f"real_object({found})") if self.is_stand_in(value) else found
        if id(value) in self.open:
            raise Cycle(value)
        self.open.add(id(value))
        try:
            text = MAKERS[kind](self, value)
        finally:
            self.open.discard(id(value))
        while self.later and not self.open:
            self.later.pop()()
        return text

    def literal(self, obj: Any) -> str:
        """Source text of a constant."""
        if type(obj) in LITERALS or type(obj) is float and math.isfinite(obj):
            return repr(obj) if type(obj) is not int else f"({obj})"  # an attribute may be asked of it
        return self.constant(obj)

    def known(self, value: Known) -> str:
        """A real object: handed where it may differ from call to call."""
        source = value.source
        if source is None or source.accessor == "const":
            return self.constant(value.obj)
        if "is" in {name for name, _ in source.checks.values()} and not droppable(value.obj):
            return self.constant(value.obj)
        return self.hand(source)

    def scalar(self, value: Host) -> str:
        """A scalar of this call."""
        if value.source is not None:
            return self.hand(value.source)
        if value.call == IN_GRAPH:
            return self.output(value)
        if value.call is not None:
            return f"h{value.call}"
        if value.cls in (int, float, bool):
            return value.text.format(*(self.get(operand) for operand in value.operands))
        known = self.names.get(id(value))  # a program may ask whether two are one object
        return known or self.assign(value, value.text.format(*(self.get(operand) for operand in value.operands)))

    def tensor(self, value: Tensor) -> str:
        """A tensor: an input, or an output of the graph."""
        if value.source is not None:
            return self.hand(value.source)
        return self.output(value)

    def output(self, value: Tensor | Host) -> str:
        """A name for what the graph gives."""
        name = self.output_names.get(id(value))
        if name is None:
            name = self.output_names[id(value)] = f"t{len(self.outputs)}"
            self.outputs.append(value)
        return name

    def many(self, values: Any) -> str:
        """Expressions of several values, comma-separated."""
        return ", ".join([self.get(v) for v in values])

    def in_cycle(self, value: Value) -> bool:
        """Whether a container has to be made before what is in it."""
        return id(value) in self.two_phase or not self.open.isdisjoint(self.two_phase)

    def filled(self, value: Value, name: str, fill: Callable[[], None]) -> str:
        """Fill what was made empty: now, or once what it is part of, and contains, is made."""
        self.open.discard(id(value))
        self.unfilled.add(id(value))

        def fill_now() -> None:
            fill()
            self.unfilled.discard(id(value))

        if self.open.isdisjoint(self.two_phase):
            fill_now()
        else:
            self.later.append(fill_now)
        return name

    # -- containers ----------------------------------------------------------------------------------------------------

    def list_(self, v: ListObj) -> str:
        if v.recipe is not None and v.loader is not None and not self.in_cycle(v):
            text, operands, *_ = v.recipe
            tail = f" + [{self.many(v.tail)}]" if v.tail else ""
            return self.assign(v, text.format(*map(self.get, operands)) + tail)
        if v.cls is list and not self.in_cycle(v):
            return self.assign(v, f"[{self.many(v.items)}]")
        base = self.constant(base_layout(v.cls))
        name = self.assign(v, "[]" if v.cls is list else f"{base}.__new__({self.constant(v.cls)})")

        if v.maxlen is not None:
            self.lines.append(f"{base}.__init__({name}, (), {v.maxlen})")

        def fill() -> None:
            self.lines.append(f"{base}.extend({name}, [{self.many(v.items)}])")
            self.attributes(v, name)

        return self.filled(v, name, fill)

    def tuple_(self, v: TupleObj) -> str:
        items = f"({self.many(v.items)}{',' if len(v.items) == 1 else ''})"
        if v.cls is tuple:
            return self.assign(v, items)
        if base_layout(v.cls) is tuple:
            items = f"tuple.__new__({self.constant(v.cls)}, {items})"
        else:
            items = f"{self.constant(v.cls)}({items})"
        name = self.assign(v, items)
        self.attributes(v, name)
        return name

    def dict_(self, v: DictObj) -> str:
        if v.instance is not None:
            return f"{self.get(v.instance)}.__dict__"
        base = base_layout(v.cls)
        plain = all(kind in ("set", "update") for kind, _ in v.edits)
        if v.cls is dict and plain and not self.in_cycle(v):
            return self.assign(v, "{" + ", ".join([f"{self.get(k)}: {self.get(x)}" for k, x in v.items.values()]) + "}")
        name = self.assign(v, "{}" if v.cls is dict else f"{self.constant(base)}.__new__({self.constant(v.cls)})")

        def fill() -> None:
            if base is collections.defaultdict:
                factory = v.attrs.get("default_factory")
                self.lines.append(f"collections.defaultdict.__init__({name}, {self.get(factory) if factory else None})")
            write_dict(self, v, name)
            self.attributes(v, name)

        return self.filled(v, name, fill)

    def set_(self, v: SetObj) -> str:
        name = self.assign(
            v, f"{self.constant(v.cls)}(({self.many(v.items.values())}{',' if len(v.items) == 1 else ''}))"
        )
        self.attributes(v, name)
        return name

    def slice_(self, v: SliceObj) -> str:
        return self.assign(v, f"slice({self.many(v.items)})")

    # -- objects -------------------------------------------------------------------------------------------------------

    def attributes(self, v: Obj, name: str) -> None:
        """Set the attributes of a made object, past its class's own `__setattr__`."""
        if v.namespace is not None:
            self.names[id(v.namespace)] = f"{name}.__dict__"
            for key, item in list(v.namespace.items.values()):
                self.lines.append(f"{name}.__dict__[{self.get(key)}] = {self.get(item)}")
        for attribute, value in list(v.attrs.items()):
            if value is DELETED or (attribute == "default_factory" and isinstance(v, DictObj)):
                continue
            self.lines.append(f"object.__setattr__({name}, {attribute!r}, {self.get(value)})")

    def object_(self, v: Obj) -> str:
        if self.is_stand_in(v):
            attributes = {key: self.get(value) for key, value in v.attrs.items() if value is not DELETED}
            return self.assign(v, expression(v.cls, attributes).format(**attributes))
        name = self.assign(v, f"object.__new__({self.constant(v.cls)})")
        return self.filled(v, name, lambda: self.attributes(v, name))

    def is_stand_in(self, v: Value) -> bool:
        """Whether a polyfill's instance has to become the C object that it stands for."""
        return v.cls in STANDS_FOR and id(v) not in self.kept

    def exception(self, v: ExcObj) -> str:
        arguments = "".join(", " + self.get(a) for a in v.made_of)
        name = self.assign(v, f"{self.constant(v.cls)}.__new__({self.constant(v.cls)}{arguments})")
        self.open.discard(id(v))
        base = base_layout(v.cls)
        self.lines.append(f"{self.constant(base)}.__init__({name}{arguments})")
        self.exception_fields(v, name)
        self.attributes(v, name)
        return name

    def exception_fields(self, v: ExcObj, name: str) -> None:
        """What the program set on an exception, and the traceback lines of frames that it passed."""
        for field, item in v.fields.items():
            self.lines.append(f"{name}.{field} = {self.get(item)}")
        if v.trace:
            self.lines.append(f"{self.constant(add_trace)}({name}, {self.constant(tuple(v.trace))})")

    def trace(self, v: ExcTrace) -> str:
        return f"{self.get(v.exception)}.__traceback__"

    def cell(self, v: Cell) -> str:
        name = self.assign(v, f"{self.constant(types.CellType)}()", "c")
        self.open.discard(id(v))
        contents = v.contents
        if contents is not None:  # once that can be made: a closure may contain itself
            self.later.append(lambda: self.lines.append(f"{name}.cell_contents = {self.get(contents)}"))
        return name

    def function(self, v: Func) -> str:
        closure = f"({self.many(v.closure)},)" if v.closure else "None"
        defaults = self.get(v.defaults) if v.defaults is not None else "None"
        arguments = f"{self.constant(v.code)}, {self.get(v.globals)}, {v.name!r}, {defaults}, {closure}"
        name = self.assign(v, f"{self.constant(types.FunctionType)}({arguments})", "f")
        self.open.discard(id(v))
        self.lines.append(f"{name}.__qualname__ = {v.qualname!r}")
        if v.kwdefaults is not None:
            self.lines.append(f"{name}.__kwdefaults__ = {self.get(v.kwdefaults)}")
        for attribute, value in list(v.fields.items()):
            self.lines.append(f"{name}.{attribute} = {self.get(value)}")
        self.attributes(v, name)
        return name

    def bound(self, v: Bound) -> str:
        if v.cls is types.MethodType:
            return self.assign(v, f"{self.constant(types.MethodType)}({self.get(v.func)}, {self.get(v.self)})")
        if isinstance(v.func, Known) and type(v.func.obj) is types.ClassMethodDescriptorType:
            return self.assign(v, f"{self.get(v.func)}.__get__(None, {self.get(v.self)})")
        return self.assign(v, f"{self.get(v.func)}.__get__({self.get(v.self)}, type({self.get(v.self)}))")

    def super_(self, v: Super) -> str:
        return self.assign(v, f"super({self.constant(v.start)}, {self.get(v.self)})")

    # -- iterators -----------------------------------------------------------------------------------------------------

    def seq_iter(self, v: SeqIter) -> str:
        if v.seq is None:
            return self.assign(v, f"{self.constant(ended)}({self.constant(v.cls)})")
        way = "reversed" if v.step < 0 else "list.__iter__" if isinstance(v.seq, ListObj) else "tuple.__iter__"
        name = self.assign(v, f"{way}({self.get(v.seq)})")
        start = 0 if v.step > 0 else len(v.seq.items) - 1  # type: ignore[attr-defined]
        if v.index != start:
            self.lines.append(f"{self.constant(move_iterator)}({name}, {v.index}, {self.get(v.seq)})")
        return name

    def items_iter(self, v: ItemsIter) -> str:
        ordered = v.owner is not None and issubclass(v.owner.cls, collections.OrderedDict)
        if v.owner is None or ordered and v.index >= len(v.values):  # which one of these knows before it is asked
            return self.assign(v, f"{self.constant(ended)}({self.constant(v.cls)})")
        way = "reversed" if v.backwards else "iter"
        changed = self.m.changed_below(v)
        if changed == "keys":
            self.iterate_for_real(v)
        base = self.constant(base_layout(v.owner.cls))
        if changed:
            change = "clear" if ordered and not v.owner.items else "grow"  # type: ignore[attr-defined]
            return self.assign(v, f"{self.constant(overtaken)}({base}, {v.what!r}, {way}, {change!r})")
        owner = self.get(v.owner)
        if id(v.owner) in self.unfilled:
            raise Break("not-constant", f"a {v.owner.cls.__name__} that contains its own iterator")
        name = self.assign(v, f"{way}({base}.{v.what}({owner}))" if isinstance(v.owner, DictObj) else f"{way}({owner})")
        if v.index:
            self.lines.append(f"{self.constant(advance)}({name}, {v.index})")
        return name

    def iterate_for_real(self, v: ItemsIter) -> None:
        """The iterator can't be made any more."""
        raise Break("iterate-unknown", v.cls.__name__)

    def host_range(self, v: HostRange) -> str:
        return self.assign(v, f"iter({self.get(v.range)})")

    def view(self, v: DictView) -> str:
        return self.assign(v, f"{self.get(v.owner)}.{v.what}()")

    def generator(self, v: GenObj) -> str:
        """A generator: called anew if it never started, else resumed where it stands."""
        if v.running:
            raise Break("generator-unsupported", "a running generator escapes")
        if v.frame is None:
            return self.assign(
                v, f"{self.constant(finished_generator)}({self.constant(self.m.signature_of(v.func).code)})"
            )
        if not v.started:
            return self.assign(v, self.call_again(v))
        frame = v.frame
        slots = ", ".join("UNBOUND_SLOT" if s is None else self.get(s) for s in frame.slots)
        stack = ", ".join("NULL_ITEM" if v is NULL else self.get(v) for v in frame.stack)
        handled = self.get(frame.handled[-1]) if frame.handled else None
        where = f"{self.constant(frame.code)}, {frame.pc}, {self.get(frame.globals)}"
        return self.assign(v, f"{self.constant(resume_generator)}({where}, [{slots}], [{stack}], handled={handled})")

    def call_again(self, v: GenObj) -> str:
        """The call that made an unstarted generator."""
        code, slots = v.frame.code, v.arguments
        if v.iterated:
            return f"{self.constant(make_from_iterator)}({self.get(v.func)}, {self.get(slots[0])})"
        n, kwonly = code.co_argcount, code.co_kwonlyargcount
        parts = [self.get(s) for s in slots[:n]]
        at = n + kwonly
        if code.co_flags & 0x04:
            parts.append("*" + self.get(slots[at]))
            at += 1
        parts += [f"{name}={self.get(s)}" for name, s in zip(code.co_varnames[n : n + kwonly], slots[n : n + kwonly])]
        if code.co_flags & 0x08:
            parts.append("**" + self.get(slots[at]))
        return f"{self.get(v.func)}({', '.join(parts)})"


ENDED: tuple[Any, ...] = (
    [], (), {}, {}.values(), {}.items(), set(), "", "é", b"", bytearray(), range(0), range(1 << 99, 1 << 99),
    collections.OrderedDict(),
)  # fmt: skip


def ended(cls: Any) -> Any:
    """An iterator of that class that has come to its end."""
    empty: Any
    for empty in ENDED:
        for iterator in (iter(empty), reversed(empty) if hasattr(empty, "__reversed__") else None):
            if type(iterator) is cls:
                next(iterator, None)
                return iterator
    return iter(())


def overtaken(base: Any, what: str, make: Any, change: str) -> Any:
    """An iterator whose container has changed since: it says so when asked for an item.

    It is one over a container of its own. Changing the program's would be noticed by others.
    """
    container = base()
    grow = GROW[next(kind for kind in base.__mro__ if kind in GROW)]
    grow(container)  # an iterator over nothing may have ended already
    iterator = make(getattr(container, what)() if issubclass(base, dict) else container)
    container.clear() if change == "clear" else grow(container)
    return iterator


GROW: dict[type, Any] = {
    dict: lambda d: d.setdefault(len(d)),
    set: lambda s: s.add(len(s)),
    collections.deque: lambda q: q.append(None),
}


def move_iterator(iterator: Any, index: int, sequence: Any) -> None:
    """Put an iterator at an index; a list may have become too short for it, and may grow again."""
    missing = [None] * (index - len(sequence)) if isinstance(sequence, list) else []
    if missing:
        list.extend(sequence, missing)
    iterator.__setstate__(index)
    if missing:
        del sequence[-len(missing) :]


def advance(iterator: Any, n: int) -> None:
    """Take `n` items."""
    next(itertools.islice(iterator, n, n), None)


def finished_generator(code: Any) -> Any:
    """An exhausted generator."""
    generator = (x for x in "")
    next(generator, None)
    generator.__name__, generator.__qualname__ = code.co_name, code.co_qualname
    return generator


def add_trace(exc: BaseException, trace: tuple) -> None:
    """Give an exception the traceback lines of the frames it passed while it was symbolic."""
    from .tracebacks import add_line

    for code, line in trace:
        add_line(exc, code, line)


MAKERS: dict[type, Any] = {
    ListObj: Rebuilder.list_,
    TupleObj: Rebuilder.tuple_,
    DictObj: Rebuilder.dict_,
    SetObj: Rebuilder.set_,
    SliceObj: Rebuilder.slice_,
    Obj: Rebuilder.object_,
    ExcObj: Rebuilder.exception,
    ExcTrace: Rebuilder.trace,
    Cell: Rebuilder.cell,
    Func: Rebuilder.function,
    Bound: Rebuilder.bound,
    Super: Rebuilder.super_,
    SeqIter: Rebuilder.seq_iter,
    ItemsIter: Rebuilder.items_iter,
    HostRange: Rebuilder.host_range,
    DictView: Rebuilder.view,
    GenObj: Rebuilder.generator,
}
