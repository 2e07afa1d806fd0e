"""Calling a value: `Objects/call.c` and `type_call` of `typeobject.c`."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, NoReturn

from ..library import folding
from ..library.polyfills.support import c_name, is_instance
from ..library.registry import POLYFILLS, RULES, STANDS_FOR
from ..marks import is_disabled, is_graph_break, unwrap_compiled
from ..reasons import Break
from ..torch_api import TORCHS_FILES
from ..values import (
    NONE,
    PUSHED,
    Bound,
    Const,
    DictObj,
    ExcObj,
    Func,
    Host,
    Known,
    Obj,
    Opaque,
    Raised,
    Tensor,
    TupleObj,
    Value,
)
from .attributes import MISSING
from .wrapping import FUNCTION


class Calls:
    """`f(*args, **kwargs)`, and raising."""

    raise_from: Callable[[ExcObj], NoReturn]  # the machine's

    def call(self, f: Value, args: list[Value], kwargs: dict[str, Value]) -> Any:
        """The result of the call, or PUSHED when a frame was pushed that will produce it."""
        kind = type(f)
        if kind is Known:
            return self.call_known(f, args, kwargs)
        if kind is Func:
            return self.call_function_object(f, args, kwargs)
        if kind is Bound:
            return self.call(f.func, [f.self, *args], kwargs)
        if kind is Opaque:
            raise Break(*f.why)
        found = self.lookup_type(f.cls, "__call__")
        if found is MISSING:
            self.throw(TypeError, f"'{self.name_of(f.cls)}' object is not callable")
        if type(found) is FUNCTION:
            return self.call(self.const(found), [f, *args], kwargs)
        method = self.get_descriptor(found, f, f.cls, "__call__") if self.is_descriptor(found) else self.known(found)
        if method is PUSHED or method is MISSING:
            raise Break("call-unknown-callable", f.cls.__name__)
        return self.call(method, args, kwargs)

    def call_known(self, f: Known, args: list[Value], kwargs: dict[str, Value]) -> Any:
        """Call a real object: by rule, as a torch operation, by inlining, by folding; else the interpreter does."""
        obj = f.obj
        key = id(obj)
        rule = RULES.get(key)
        if rule is not None:
            self.pin(f)
            return self.apply_rule(rule, args, kwargs, obj)
        kind = type(obj)
        if self.graph.is_op(obj):
            self.pin(f)
            for value in (*args, *kwargs.values()):
                if type(value) is Opaque:
                    raise Break(*value.why)
            return self.graph.call(obj, args, kwargs)
        replacement = POLYFILLS.get(key)
        if replacement is not None:
            self.pin(f)
            return self.call_polyfill(replacement, args, kwargs)
        if kind is FUNCTION:
            return self.call_python(f, args, kwargs)
        if isinstance(obj, type):
            return self.call_type(f, args, kwargs)
        if folding.is_pure(obj):
            self.pin(f)
            return self.fold(obj, args, kwargs)
        if isinstance(
            obj,
            (
                types.BuiltinFunctionType,
                types.MethodDescriptorType,
                types.WrapperDescriptorType,
                types.ClassMethodDescriptorType,
            ),
        ):
            raise Break("call-unknown-c-function", getattr(obj, "__qualname__", repr(obj)))
        inner = unwrap_compiled(obj)
        if inner is not None:
            self.pin(f)
            return self.call(self.const(inner), args, kwargs)
        found = self.lookup_type(kind, "__call__")
        if type(found) is FUNCTION:
            return self.call_function_object(self.const(found), [f, *args], kwargs)
        if id(found) in RULES or id(found) in POLYFILLS:
            return self.call_known(Known(found), [f, *args], kwargs)
        raise Break("call-unknown-c-function", kind.__name__)

    def is_disabled(self, obj: Any) -> bool:
        """Whether the user asked for `obj` to be left alone."""
        return is_disabled(obj)

    def call_python(self, f: Known, args: list[Value], kwargs: dict[str, Value]) -> Any:
        """Inline a Python function from outside."""
        if is_graph_break(f.obj):
            if self.frames[-1].code.co_filename.startswith(TORCHS_FILES):
                return NONE  # torch's own code asks in view of TorchDynamo's limits
            raise Break("graph-break-requested", f.obj.__qualname__)
        return self.call_function_object(f, args, kwargs)

    def call_polyfill(self, replacement: Any, args: list[Value], kwargs: dict[str, Value]) -> Any:
        """Run our Python version of something written in C."""
        if isinstance(replacement, type):
            return self.push_python(MAKE_POLYFILL, [self.const(replacement), *args], kwargs)
        return self.push_python(replacement, args, kwargs)

    def apply_rule(self, rule: Any, args: list[Value], kwargs: dict[str, Value], what: Any) -> Any:
        """Apply a rule; arguments that it can't take are left to the real call."""
        try:
            return rule(self, *args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                raise Break("call-arguments", getattr(what, "__qualname__", repr(what))) from None
            raise

    def fold(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Call a pure function: on constants now; the entry calls those that can't fail on numbers that vary."""
        if Host in map(type, args) and not kwargs:
            result = self.open_call(function, args)
            if result is not None:
                return result
        for value in (*args, *kwargs.values()):
            if type(value) is Known and not self.is_plain(value.cls, folding.NUMERIC_METHODS):
                raise Break("operator-unknown", value.cls.__name__)
        real = [self.constant_of(a) for a in args]
        named = {name: self.constant_of(a) for name, a in kwargs.items()}
        try:
            result = function(*real, **named)
        except Exception as error:
            for value in (*args, *kwargs.values()):
                if type(value) is not Host:
                    self.rely_on_text(getattr(value, "obj", None))
            self.throw_real(error)
        return self.const_result(result)

    def const_result(self, result: Any) -> Value:
        """The value of what a pure function returned."""
        if type(result) in (list, dict, set):
            return self.made(result)
        return self.const(result)

    def made(self, obj: Any) -> Value:
        """A fresh container of constants, as made by the program."""
        from ..values import ListObj, SetObj

        if type(obj) is list:
            return ListObj([self.const_result(o) for o in obj])
        if type(obj) is dict:
            value = DictObj()
            value.items = {k: (self.const(k), self.const_result(v)) for k, v in obj.items()}
            return value
        result = SetObj()
        result.items = {o: self.const(o) for o in obj}
        return result

    # -- classes -------------------------------------------------------------------------------------------------------

    def call_type(self, f: Known, args: list[Value], kwargs: dict[str, Value]) -> Any:
        """Make an instance: `type.__call__`, unless the metaclass has its own."""
        cls = f.obj
        caller = self.lookup_type(type(cls), "__call__")
        if caller is type.__call__:
            return self.type_call(f, args, kwargs)
        if type(caller) is FUNCTION:
            return self.call(self.const(caller), [f, *args], kwargs)
        if not self.is_descriptor(caller):
            return self.call(self.known(caller), args, kwargs)
        raise Break("metaclass", type(cls).__name__)

    def type_call(self, f: Known, args: list[Value], kwargs: dict[str, Value]) -> Any:
        """`type.__call__(cls, ...)`."""
        cls = f.obj
        if self.lookup_type(cls, "__del__") is not MISSING:
            raise Break("finalizer", cls.__name__)
        new = self.lookup_type(cls, "__new__")
        init = self.special_method(cls, "__init__")
        if isinstance(new, staticmethod):
            new = new.__func__
        if issubclass(cls, BaseException) and type(new) is types.BuiltinFunctionType:
            if not issubclass(new.__self__, BaseException) or issubclass(cls, CHECKED_EXCEPTIONS):
                raise Break("construct-unknown", cls.__name__)
            made = ExcObj(cls, list(args))
            if type(init) is not FUNCTION:
                if kwargs:
                    raise Break("call-arguments", cls.__name__)
                return made
            return self.push_python(init_only, [made, self.const(init), *args], kwargs)
        if folding.is_pure(cls):
            return self.fold(cls, args, kwargs)
        if new is object.__new__ and type(init) is not FUNCTION and init is object.__init__:
            if args or kwargs:
                self.throw(TypeError, f"{self.name_of(cls)}() takes no arguments")
            return self.new_object(cls)
        if self.is_descriptor(init) and not isinstance(init, METHODS):
            raise Break("construct-unknown", cls.__name__)
        if new is object.__new__:
            return self.push_python(init_only, [self.new_object(cls), self.known(init), *args], kwargs)
        if type(new) is not FUNCTION and id(new) not in RULES:
            raise Break("call-unknown-c-function", f"{cls.__name__}.__new__")
        return self.push_python(type_call, [f, *args], kwargs)

    def new_object(self, cls: type) -> Obj:
        """`object.__new__(cls)`."""
        self.lookup_type(cls, "__abstractmethods__")
        if getattr(cls, "__abstractmethods__", None):
            try:
                object.__new__(cls)  # refuses, in words that depend on the release
            except TypeError as error:
                self.throw(TypeError, *error.args)
        return Obj(cls)

    # -- raising -------------------------------------------------------------------------------------------------------

    def throw(self, cls: type[BaseException], *args: Any, **fields: Any) -> NoReturn:
        """Raise an exception of the program; `fields` are attributes that C sets on it."""
        made = self.make_exception(cls, [a if isinstance(a, Value) else self.const(a) for a in args])
        made.fields.update((name, v if isinstance(v, Value) else self.const(v)) for name, v in fields.items())
        self.raise_from(made)

    def make_exception(self, cls: type[BaseException], args: list[Value]) -> ExcObj:
        """An exception instance."""
        return ExcObj(cls, args)

    def throw_real(self, error: Exception) -> NoReturn:
        """Raise what a folded call raised."""
        try:
            args = [self.const(a) for a in error.args]
        except Exception:
            raise Break("exception-unknown", repr(error)) from None
        if type(error).__flags__ & (1 << 9) and type(error).__init__ is not Exception.__init__:
            raise Break("exception-unknown", repr(error))
        made = self.make_exception(type(error), args)
        if hasattr(error, "__notes__"):
            made.attrs["__notes__"] = self.made(list(error.__notes__))
        self.raise_from(made)


#: what binds to an instance as a method
METHODS = (FUNCTION, types.MethodDescriptorType, types.WrapperDescriptorType)
#: exceptions whose construction in C does more than to keep the arguments
CHECKED_EXCEPTIONS = (OSError, SyntaxError, UnicodeError, ImportError, MemoryError, SystemExit, BaseExceptionGroup)


def init_only(obj, init, /, *args, **kwargs):
    """The second half of `type.__call__`."""
    result = init(obj, *args, **kwargs)
    if result is not None:
        raise TypeError(f"__init__() should return None, not '{c_name(type(result))}'")
    return obj


def type_call(cls, /, *args, **kwargs):
    """`type.__call__`."""
    obj = cls.__new__(cls, *args, **kwargs)
    if is_instance(obj, cls):
        result = type(obj).__init__(obj, *args, **kwargs)
        if result is not None:
            raise TypeError(f"__init__() should return None, not '{c_name(type(result))}'")
    return obj


def make_polyfill(cls, /, *args, **kwargs):
    """Make an iterator of ours in place of one of C."""
    obj = object.__new__(cls)
    cls.__init__(obj, *args, **kwargs)
    return obj


def is_made_in_python(cls: type) -> bool:
    """Whether making an instance runs code written in Python."""
    methods = [getattr(cls, name, None) for name in ("__new__", "__init__")]
    return any(type(method) is FUNCTION for method in (type(cls).__call__, *methods))


def raise_made(raised, *cause):
    """`raise`, with classes whose instances are made in Python."""
    made = raised
    if isinstance(made, type):
        made = raised()
        if not isinstance(made, BaseException):
            kind = type(made)
            raise TypeError(f"calling {raised!r} should have returned an instance of BaseException, not {kind!r}")
    if not cause:
        raise made
    reason = cause[0]
    if isinstance(reason, type):
        reason = reason()
    raise made from reason


MAKE_POLYFILL = make_polyfill

__all__ = ["PUSHED", "STANDS_FOR", "Calls", "Const", "Raised", "Tensor", "TupleObj"]
