"""Symbolic values: what a local, a stack slot or an attribute holds while a function is captured.

Every value knows its real Python type (`cls`). Values that stand for an object from outside know where it was found
(`source`) and the object itself (`obj`), which is read, never written: changes stay on the value (`changed`) until the
emitted entry writes them back.
"""

from __future__ import annotations

from collections.abc import Callable
from types import GeneratorType, TracebackType
from typing import Any, NamedTuple

from .sources import Source

#: a deleted attribute or key, in an overlay
DELETED: Any = type("Deleted", (), {"__repr__": lambda self: "DELETED"})()


class Value:
    """Base of all symbolic values."""

    __slots__ = ("source",)
    cls: type
    source: Source | None


class Const(Value):
    """A constant known by value: None, number, str, bytes, tuple or frozenset of them, range, slice, NumPy scalar."""

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Source | None = None):
        self.value = value
        self.source = source

    @property
    def cls(self) -> type:  # type: ignore[override]
        return type(self.value)

    def __repr__(self) -> str:
        return f"Const({self.value!r})"


class Known(Value):
    """A real object used by identity: a function, type, module, dtype, or a C object that we can't look into."""

    __slots__ = ("obj",)

    def __init__(self, obj: Any, source: Source | None = None):
        self.obj = obj
        self.source = source

    @property
    def cls(self) -> type:  # type: ignore[override]
        return type(self.obj)

    def __repr__(self) -> str:
        return f"Known({self.obj!r})"


class Pending(Value):
    """Something of the state that nothing has looked at yet: assumed about only when it is loaded."""

    __slots__ = ("obj",)

    def __init__(self, obj: Any, source: Source):
        self.obj = obj
        self.source = source


class Opaque(Value):
    """An object that can be handed on but not used: `why` is the (code, detail) of the break when it is."""

    __slots__ = ("obj", "why")

    def __init__(self, obj: Any, source: Source, why: tuple[str, str]):
        self.obj = obj
        self.source = source
        self.why = why

    @property
    def cls(self) -> type:  # type: ignore[override]
        return type(self.obj)


#: how an expression over two numbers is written, by its operator
TEXT_OF = {
    **{symbol: f"({{}} {symbol} {{}})" for symbol in "+ - * / // % ** << >> & | ^ < <= > >= == !=".split()},
    "min": "min({}, {})", "max": "max({}, {})",
}  # fmt: skip
SYMBOL_OF = {text: symbol for symbol, text in TEXT_OF.items()}

#: the `call` of a scalar that an operation of the graph gives
IN_GRAPH = -1


class Host(Value):
    """A scalar that only the running entry knows: an argument that varies, or an expression over such.

    `text` is a format over `operands` ("({0} + {1})"); a leaf has a `source`, or is the result of a host call (`call`:
    index of the entry's host step) or of the graph (IN_GRAPH). `example` is its value in the call that was captured.
    """

    __slots__ = ("call", "cls", "depth", "example", "form", "node", "operands", "text")

    def __init__(
        self,
        example: Any,
        source: Source | None = None,
        text: str = "",
        operands: tuple[Value, ...] = (),
        call: int | None = None,
    ):
        self.cls = type(example)
        self.example = example
        self.source = source
        self.text = text
        self.operands = operands
        self.call = call
        self.depth = 0  # nested operators
        self.form: Any = None  # of an int, once asked for: see `objects.integers`
        self.node = None  # the graph's placeholder, once an operation used it

    @property
    def symbol(self) -> str:
        """The operator of an expression over two numbers; an empty string for others."""
        return SYMBOL_OF.get(self.text, "")

    @property
    def guardable(self) -> bool:
        """Whether a condition on it can be checked before the entry runs."""
        return self.call is None and all(o.guardable for o in self.operands if isinstance(o, Host))

    @property
    def computed(self) -> bool:
        """Whether it is known only once the graph has run."""
        return self.call == IN_GRAPH or any(o.computed for o in self.operands if isinstance(o, Host))

    def __repr__(self) -> str:
        return f"Host({self.text or self.source}, e.g. {self.example!r})"


class Tensor(Value):
    """A tensor of the graph. `fake` is a tensor without data with the same metadata (see `graph.meta`).

    Where sizes vary from call to call, `layout` is (shape, strides) with `graph.sizes.Size` for those that do, and the
    stand-in has them as they are in the call that is captured. None: nothing varies.
    """

    __slots__ = ("attrs", "cls", "device", "fake", "layout", "node", "obj")

    def __init__(
        self, fake: Any, device: Any, cls: type, node: Any = None, obj: Any = None, source: Source | None = None
    ):
        self.fake = fake
        self.device = device
        self.cls = cls
        self.node = node
        self.obj = obj
        self.source = source
        self.layout: tuple[tuple, tuple] | None = None
        self.attrs: dict[str, Value] = {}

    def __repr__(self) -> str:
        return f"Tensor({tuple(self.fake.shape)}, {self.fake.dtype}, {self.source or self.node})"


class Obj(Value):
    """An object with state that the program can reach: an instance of any class that we can model."""

    __slots__ = ("attrs", "changed", "cls", "namespace", "obj")

    def __init__(self, cls: type, obj: Any = None, source: Source | None = None):
        self.cls = cls
        self.obj = obj
        self.source = source
        #: attributes set or deleted here (for a made object: all of them)
        self.attrs: dict[str, Value] = {}
        #: the instance's `__dict__`, once the program asked for it: attributes are in there from then on
        self.namespace: DictObj | None = None
        self.changed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.cls.__name__} {'from ' + str(self.source) if self.source else 'made'}>"


class Recipe(NamedTuple):
    """How the entry makes a list or tuple of as many items as only it knows; it takes an expression's form."""

    text: str
    operands: tuple[Value, ...]
    length: Value
    items: Callable[[], list[Value]]
    """Its items in the call that is captured, once somebody asks: no other number of them will do from then on."""


class ListObj(Obj):
    """A list, or an instance of a subclass of list or deque; `items` is its whole contents.

    A list from outside is read, and its length assumed, when somebody asks for its items (`loader`), and so is one
    made by a `recipe`. Until then what the program appends is in `tail`.
    """

    __slots__ = ("contents", "loader", "maxlen", "recipe", "shape", "tail")

    def __init__(self, items: list[Value], cls: type = list, obj: Any = None, source: Source | None = None):
        super().__init__(cls, obj, source)
        self.contents = items
        self.recipe: Recipe | None = None
        self.shape = 0  # of a deque: counts what its iterators notice
        self.maxlen: int | None = None  # of a deque that is made here
        self.loader: Callable[[], list[Value]] | None = None
        self.tail: list[Value] = []

    @property
    def items(self) -> list[Value]:
        """The items."""
        if self.loader is not None:
            loader, self.loader = self.loader, None
            self.contents = [*loader(), *self.tail]
        return self.contents

    @items.setter
    def items(self, items: list[Value]) -> None:
        self.loader = None
        self.contents = items

    def append(self, item: Value) -> None:
        """Put an item at the end."""
        (self.contents if self.loader is None else self.tail).append(item)


def made_by(recipe: Recipe) -> ListObj:
    """A list whose items nobody has asked for."""
    made = ListObj([])
    made.recipe, made.loader = recipe, recipe.items
    return made


class TupleObj(Obj):
    """A tuple or an instance of a subclass (namedtuple, torch.Size, structseq)."""

    __slots__ = ("items",)

    def __init__(
        self, items: list[Value] | tuple[Value, ...], cls: type = tuple, obj: Any = None, source: Source | None = None
    ):
        super().__init__(cls, obj, source)
        self.items = tuple(items)


class SliceObj(Obj):
    """A slice with at least one bound that isn't a constant."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Value, ...]):
        super().__init__(slice)
        self.items = items


class DictObj(Obj):
    """A dict or an instance of a subclass.

    `items` maps hashable keys (see `objects.hashing.key_of`) to (key value, value). A dict from outside starts lazy:
    `items` is then an overlay over the real one (`complete` False) until something asks for all of it.
    `edits` is its history: (kind, [(key, key value)]), kinds as in `emit.changes.EDITS`. A value that is replaced
    doesn't count.
    """

    __slots__ = ("complete", "edits", "instance", "items", "shape")

    def __init__(self, cls: type = dict, obj: Any = None, source: Source | None = None):
        super().__init__(cls, obj, source)
        self.items: dict[Any, Any] = {}
        self.complete = source is None
        self.edits: list[tuple[str, list[tuple[Any, Value]]]] = []
        self.shape = 0  # counts keys that came and went
        self.instance: Obj | None = None  # the object made here whose `__dict__` it is


class SetObj(Obj):
    """A set or frozenset (or subclass); `items` maps hashable keys to values.

    `edits` is the history of one from outside: methods with their operands, a text and the members that stand in it.
    """

    __slots__ = ("edits", "items", "shape")

    def __init__(self, cls: type = set, obj: Any = None, source: Source | None = None):
        super().__init__(cls, obj, source)
        self.items: dict[Any, Value] = {}
        self.edits: list[tuple[str, list[tuple[str, list[Value]]]]] = []
        self.shape = 0  # counts changes


class ExcObj(Obj):
    """An exception instance. `fields` are those that were set here: `args`, its chain, and what C classes add.

    `made_of` are the arguments that it is made of, or a function that looks at those of a real exception.
    """

    __slots__ = ("fields", "made_of", "trace")

    def __init__(
        self, cls: type, made_of: list[Value] | Callable[[], list[Value]], obj: Any = None, source: Source | None = None
    ):
        super().__init__(cls, obj, source)
        self.made_of = made_of
        self.fields: dict[str, Value] = {}
        self.trace: list[tuple] = []  # (code, line) of the frames that it passed here, innermost first

    @property
    def args(self) -> list[Value]:
        """Its arguments."""
        if "args" in self.fields:
            return list(self.fields["args"].items)  # type: ignore[attr-defined]
        if callable(self.made_of):
            self.made_of = self.made_of()
        return self.made_of


class Cell(Obj):
    """A closure cell; `contents` is a value or None when unbound."""

    __slots__ = ("contents", "loaded")

    def __init__(self, contents: Value | None = None, obj: Any = None, source: Source | None = None):
        super().__init__(type((lambda x: lambda: x)(0).__closure__[0]), obj, source)  # type: ignore[index]
        self.contents = contents
        self.loaded = source is None


class Func(Obj):
    """A function made under capture (one from outside is a `Known`)."""

    __slots__ = ("closure", "code", "defaults", "fields", "globals", "kwdefaults", "name", "qualname")

    def __init__(
        self, code, globals: DictObj, closure: tuple[Value, ...], defaults: Value | None, kwdefaults: Value | None
    ):
        super().__init__(type(lambda: None))
        self.code = code
        self.globals = globals
        self.closure = closure
        self.defaults = defaults
        self.kwdefaults = kwdefaults
        self.name = code.co_name
        self.qualname = code.co_qualname
        self.fields: dict[str, Value] = {}  # __doc__, __module__, __annotations__ …, once set or asked for


class Bound(Obj):
    """A bound method: of a Python function, or of a C method descriptor (`list.append` and its list)."""

    __slots__ = ("func", "self")

    def __init__(self, func: Value, self_: Value, cls: type, obj: Any = None, source: Source | None = None):
        super().__init__(cls, obj, source)
        self.func = func
        self.self = self_


class Super(Obj):
    """A super object: lookup starts behind `start` in the MRO of `kind`."""

    __slots__ = ("kind", "self", "start")

    def __init__(self, start: type, self_: Value, kind: type):
        super().__init__(super)
        self.start = start
        self.self = self_
        self.kind = kind


class SeqIter(Obj):
    """An iterator over a list, tuple or another sequence value by index (it sees later changes of a list)."""

    __slots__ = ("index", "seq", "step")

    def __init__(self, seq: Value, cls: type, index: int = 0, step: int = 1):
        super().__init__(cls)
        self.seq: Value | None = seq  # None when exhausted
        self.index = index
        self.step = step


class ItemsIter(Obj):
    """An iterator over what was there when it was made: a dict's keys, a set, a deque, a constant (range, str).

    That of a dict's values or items (`what`) takes those from the dict when it comes to the key.
    """

    __slots__ = ("backwards", "index", "made_at", "owner", "shape", "size", "values", "what")

    def __init__(self, values: list[Value], cls: type, owner: Value, what: str, backwards: bool):
        super().__init__(cls)
        self.values = values
        self.backwards = backwards
        self.index = 0
        self.owner: Value | None = owner  # None when exhausted
        self.what = what
        self.size = len(values)
        self.shape: int = getattr(owner, "shape", 0)
        self.made_at: Any = None  # (code, index) of the instruction that made it


class HostRange(Obj):
    """An iterator at the beginning of a range that varies: the loop over it isn't unrolled."""

    __slots__ = ("range",)

    def __init__(self, range_: Host):
        super().__init__(type(iter(range(0))))
        self.range = range_


class DictView(Obj):
    """dict.keys(), .values() or .items() of a dict value."""

    __slots__ = ("owner", "what")

    def __init__(self, owner: DictObj, what: str, cls: type):
        super().__init__(cls)
        self.owner = owner
        self.what = what


class GenObj(Obj):
    """A generator made under capture: a suspended frame of the machine."""

    __slots__ = ("arguments", "frame", "func", "iterated", "made_at", "running", "started")

    def __init__(self, frame: Any, func: Value | None, obj: Any = None, source: Source | None = None):
        super().__init__(GeneratorType, obj, source)
        self.frame = frame  # None once finished
        self.func = func
        self.arguments: list[Value | None] = []  # parameter slots at the call, to make the real one if it never started
        self.iterated = False  # the one argument is the iterator of a generator expression
        self.made_at: tuple = ()  # (code, instruction index) of the call
        self.started = False
        self.running = False


class ExcTrace(Obj):
    """The traceback of an exception value: can be handed on, not looked into."""

    __slots__ = ("exception",)

    def __init__(self, exception: ExcObj):
        super().__init__(TracebackType)
        self.exception = exception


NONE = Const(None)
TRUE = Const(True)
FALSE = Const(False)

#: what a rule returns when it has pushed a frame whose return value will be the result
PUSHED: Any = type("Pushed", (), {"__repr__": lambda self: "PUSHED"})()

#: a rule: (machine, positional arguments, keyword arguments) -> Value or PUSHED
Rule = Callable[..., Value]


class Raised(Exception):
    """A Python exception of the captured program, on its way to a handler of the machine."""

    def __init__(self, value: ExcObj, again: bool = False):
        self.value = value
        self.again = again  # as by `raise` alone


def is_const(value: Value) -> bool:
    """Whether `value` is known completely and immutable."""
    return type(value) is Const
