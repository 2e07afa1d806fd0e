"""What plain Python does with a call, and all that can be seen of it: the oracle of every test here."""

from __future__ import annotations

import copy
import functools
import itertools
import os
import sys
import types
import weakref
from collections import deque

import torch
from models.corpus import LOG as MODELS_LOG

LOG: list = []
CALLS: dict = {}  # name -> (function, calls)


def program(*calls, name=None):
    """Register a function with its calls: each a tuple of arguments (copied per run) or a function that makes them."""

    def register(function):
        key = name or function.__name__
        assert key not in CALLS, f"two programs named {key}"
        CALLS[key] = (function, calls or ((),))
        return function

    return register


def say(*what):
    """A side effect whose order is checked; gives its last argument."""
    LOG.append(repr(what))
    return what[-1] if what else None


def arguments(call):
    """Fresh arguments of a call."""
    return call() if callable(call) else copy.deepcopy(call)


def outcome(function, call):
    """The value or exception of a call, what it printed, and its arguments as it left them."""
    given = arguments(call)
    kept = list(given)
    del LOG[:], MODELS_LOG[:]
    exception = value = None
    try:
        value = function(*given)
    except Exception as error:
        exception = error
    said = [*LOG, *map(repr, MODELS_LOG)]
    walk = Walk()
    return {
        "value": walk(value),
        "exception": describe_exception(exception),
        "said": said,
        "arguments": walk(kept),
        "handled": repr(sys.exc_info()[1]),
    }


def describe_exception(exception, depth=0):
    """Type, arguments, text, attributes, chain and the lines of the traceback."""
    if exception is None:
        return None
    if depth > 5:
        return "..."
    return {
        "type": type(exception).__qualname__,
        "args": repr(exception.args),
        "text": str(exception),
        "attributes": sorted((key, repr(item)) for key, item in vars(exception).items() if key != "__notes__"),
        "notes": getattr(exception, "__notes__", None),
        "cause": describe_exception(exception.__cause__, depth + 1),
        "context": describe_exception(exception.__context__, depth + 1),
        "suppress": exception.__suppress_context__,
        "inner": [describe_exception(e, depth + 1) for e in getattr(exception, "exceptions", ())],
        "lines": lines(exception.__traceback__),
    }


def lines(traceback):
    """(file, line, function) of a traceback's entries, without the test's own frame and those of torch."""
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code is not outcome.__code__ and f"{os.sep}torch{os.sep}" not in code.co_filename:
            found.append((os.path.basename(code.co_filename), traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return found


class Walk:
    """Describes objects by type, contents and which of them are one."""

    ATOMS = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented), range, slice)

    def __init__(self):
        self.numbers = {}
        self.keep = []

    def __call__(self, obj):
        cls = type(obj)
        if cls in self.ATOMS:
            return cls.__name__, repr(obj)
        if isinstance(obj, type):
            return "class", obj.__qualname__, sorted(name for name in vars(obj) if not name.startswith("__"))
        if id(obj) in self.numbers:
            return "again", self.numbers[id(obj)]
        if not self.literal(obj):
            self.numbers[id(obj)] = len(self.numbers)
            self.keep.append(obj)
        return (cls.__qualname__, *self.contents(obj, cls))

    def literal(self, obj):
        """Whether an object is immutable all through: equal ones may be one, as the compiler likes."""
        return type(obj) in self.ATOMS or type(obj) is tuple and all(map(self.literal, obj))

    def contents(self, obj, cls):
        if isinstance(obj, torch.Tensor):
            return str(obj.dtype), tuple(obj.shape), repr(obj.tolist()), obj.requires_grad, self.attributes(obj)
        if isinstance(obj, BaseException):
            return describe_exception(obj)
        for base, parts in LAYOUTS.items():
            if issubclass(cls, base):
                return [self(part) for part in parts(obj)], self.attributes(obj)
        if isinstance(obj, types.GeneratorType):
            return obj.__name__, [self(item) for item in itertools.islice(obj, 5)]
        if hasattr(cls, "__next__") and type(obj).__module__ in ("builtins", "itertools"):
            return [self(part) for part in obj.__reduce__()]
        return (self.attributes(obj),)

    def attributes(self, obj):
        namespace = {} if isinstance(obj, types.ModuleType) else getattr(obj, "__dict__", {})
        found = [(name, self(item)) for name, item in namespace.items()]
        for base in type(obj).__mro__:
            slots = vars(base).get("__slots__", ())
            for name, slot in vars(base).items():
                if type(slot) is types.MemberDescriptorType and name in slots and hasattr(obj, name):
                    found.append((name, self(getattr(obj, name))))
        return found


def function_parts(f):
    return [f.__name__, f.__qualname__, f.__doc__, f.__defaults__, f.__kwdefaults__, f.__closure__, f.__annotations__]


def cell_parts(cell):
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


LAYOUTS = {
    list: list.__iter__,
    tuple: tuple.__iter__,
    deque: deque.__iter__,
    dict: lambda d: [part for pair in dict.items(d) for part in pair],
    (set, frozenset): lambda s: sorted(map(repr, s)),
    types.ModuleType: lambda m: sorted(name for name in vars(m) if not name.startswith("__")),
    types.FunctionType: function_parts,
    types.CellType: cell_parts,
    functools.partial: lambda p: [p.func, p.args, p.keywords],
    types.MethodType: lambda m: [m.__func__, m.__self__],
    types.BuiltinFunctionType: lambda f: [f.__name__, None if isinstance(f.__self__, types.ModuleType) else f.__self__],
    type({}.keys()): list,
    type({}.values()): list,
    type({}.items()): lambda items: [part for pair in items for part in pair],
    property: lambda p: [p.fget],
    classmethod: lambda c: [c.__func__],
    super: lambda s: [s.__thisclass__, s.__self__],
    weakref.ref: lambda r: [r() is not None],
}


def difference(ours, theirs):
    """The parts of two outcomes that differ, for the message of an assertion."""
    return {key: {"compiled": ours[key], "plain": theirs[key]} for key in theirs if ours[key] != theirs[key]}
