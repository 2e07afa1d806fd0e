"""Python functions: what a call needs of them, their fields, and binding of arguments to parameters."""

from __future__ import annotations

import builtins
import types
from types import CodeType
from typing import Any, NamedTuple

from ..frames import Frame
from ..library.polyfills import constructors
from ..reasons import Break
from ..torch_api import MAKERS, RUNNERS
from ..values import PUSHED, Cell, Const, DictObj, Func, GenObj, Known, Raised, TupleObj, Value
from .wrapping import FUNCTION

VARARGS, VARKEYWORDS = 0x04, 0x08
GENERATOR, COROUTINE, ASYNC_GENERATOR, ITERABLE_COROUTINE = 0x20, 0x80, 0x200, 0x100


class Signature(NamedTuple):
    """What a call needs to know of a function."""

    code: CodeType
    globals: DictObj
    defaults: tuple[Value, ...]
    kwdefaults: DictObj | None
    closure: tuple[Value, ...]


class Functions:
    """Calls of Python functions."""

    def signature_of(self, f: Value) -> Signature:
        """Code, globals, defaults and closure of a function value, guarded where it is a real one."""
        if type(f) is Func:
            given = f.defaults.items if isinstance(f.defaults, TupleObj) else ()
            return Signature(f.code, f.globals, given, f.kwdefaults, f.closure)
        function, source = f.obj, f.source or self.root.child("const", f.obj)
        source.check("func_code", function.__code__)
        defaults: tuple[Value, ...] = ()
        field = source.child("func", "defaults")
        if function.__defaults__ is None:
            field.check("is", None)
        else:
            defaults = self.wrap(function.__defaults__, field).items
        kwdefaults = None
        if function.__code__.co_kwonlyargcount:
            field = source.child("func", "kwdefaults")
            if function.__kwdefaults__ is None:
                field.check("is", None)
            else:
                kwdefaults = self.wrap(function.__kwdefaults__, field)
        closure: tuple[Value, ...] = ()
        if function.__closure__:
            field = source.child("func", "closure")
            closure = tuple(self.wrap(cell, field.child("item", i)) for i, cell in enumerate(function.__closure__))
        return Signature(function.__code__, self.globals_of(function.__globals__), defaults, kwdefaults, closure)

    def globals_of(self, namespace: dict) -> DictObj:
        """The value of a module's globals."""
        return self.wrap(namespace, self.root.child("const", namespace))

    def call_real_function(self, function: Any, args: list[Value]) -> Any:
        """Call what was found on a class: usually a Python function."""
        return self.call(self.const(function) if type(function) is FUNCTION else self.known(function), args, {})

    def call_function_object(self, f: Value, args: list[Value], kwargs: dict[str, Value], trusted: bool = False) -> Any:
        """Call a Python function: push its frame, or make its generator."""
        if not trusted:
            self.check_inlinable(f)
        signature = self.signature_of(f)
        code = signature.code
        if code.co_flags & (COROUTINE | ASYNC_GENERATOR | ITERABLE_COROUTINE):
            raise Break("async-unsupported", code.co_qualname)
        trusted = trusted or self.is_ours(f)
        frame = self.frame_for(code, signature.globals, signature.closure, trusted)
        self.bind(frame, signature, args, kwargs)
        if code.co_flags & GENERATOR:
            return self.make_generator(f, frame)
        return self.push_frame(frame)

    def make_generator(self, f: Value, frame: Frame, iterated: bool = False) -> Any:
        """The generator whose body `frame` will be; `iterated`: a generator expression was given its iterator."""
        if not self.enter_generator(frame, iterated):
            return self.push_python(constructors.iterate_then_make, [f, frame.slots[0]])  # type: ignore[list-item]
        gen = GenObj(frame, f)
        gen.arguments = list(frame.slots)
        gen.iterated = iterated
        gen.made_at = (self.frames[-1].code, self.frames[-1].ins.index)
        frame.gen = gen
        self.generators.append(gen)
        return gen

    def is_ours(self, f: Value) -> bool:
        """Whether a function is one of our polyfills (its globals can't change)."""
        module = f.obj.__module__ if type(f) is Known else f.code.co_filename
        return isinstance(module, str) and module.startswith("dynacore.library.polyfills")

    def check_inlinable(self, f: Value) -> None:
        """Refuse functions that the user wants left alone, and torch's that run others under state of their own."""
        if type(f) is Known and self.is_disabled(f.obj):
            raise Break("call-disabled", f.obj.__qualname__)
        code = f.obj.__code__ if type(f) is Known else f.code
        entered = code.co_filename.startswith(RUNNERS) and not self.frames[-1].code.co_filename.startswith(RUNNERS)
        if entered and code.co_qualname not in MAKERS:
            raise Break("function-transform", code.co_qualname)

    def enter_generator(self, frame: Frame, iterated: bool) -> bool:
        """Run a generator's prologue: it stands behind its creation, where the first sent value is dropped.

        A generator expression may make its iterator there, unless it is `iterated`. False, with nothing done: that
        takes Python code. Where it fails, the real call shall.
        """
        from bytecode_models import Op

        depth = len(self.frames)
        self.frames.append(frame)
        try:
            while (ins := frame.instrs[frame.pc]).op != Op.START or ins.a != "create_generator":
                frame.ins = ins
                frame.pc += 1
                if not (iterated and ins.op == Op.GET_ITER):
                    self.step(frame)
                if self.frames[-1] is not frame:
                    return False
            frame.pc += 1
            return True
        except Raised as raised:
            raise Break("exception-uncaught", raised.value.cls.__name__) from None
        finally:
            del self.frames[depth:]

    def bind(self, frame: Frame, signature: Signature, args: list[Value], kwargs: dict[str, Value]) -> None:
        """Put arguments into parameter slots as CPython does; any mistake is left to the real call's error."""
        code, slots = frame.code, frame.slots
        positional, keyword_only = code.co_argcount, code.co_kwonlyargcount
        total = positional + keyword_only
        n = len(args)
        slots[: min(n, positional)] = args[:positional]
        rest_slot = total
        if code.co_flags & VARARGS:
            slots[rest_slot] = TupleObj(args[positional:])
            rest_slot += 1
        elif n > positional:
            raise Break("call-arguments", code.co_qualname)
        extra = None
        if code.co_flags & VARKEYWORDS:
            extra = slots[rest_slot] = DictObj()
        if kwargs:
            self.bind_keywords(frame, extra, kwargs, total)
        self.bind_defaults(frame, signature, positional, total)

    def bind_keywords(self, frame: Frame, extra: DictObj | None, kwargs: dict[str, Value], total: int) -> None:
        """Keyword arguments: to their parameter, else into `**kwargs`."""
        code, slots = frame.code, frame.slots
        names = code.co_varnames[:total]
        for name, value in kwargs.items():
            if name in names and (at := names.index(name)) >= code.co_posonlyargcount:
                if slots[at] is not None:
                    raise Break("call-arguments", code.co_qualname)
                slots[at] = value
            elif extra is not None:
                extra.items[name] = (Const(name), value)
            else:
                raise Break("call-arguments", code.co_qualname)

    def bind_defaults(self, frame: Frame, signature: Signature, positional: int, total: int) -> None:
        """Defaults for parameters that got nothing."""
        code, slots = frame.code, frame.slots
        defaults = signature.defaults
        first = positional - len(defaults)
        for i in range(positional):
            if slots[i] is None:
                if i < first:
                    raise Break("call-arguments", code.co_qualname)
                slots[i] = defaults[i - first]
        for i in range(positional, total):
            if slots[i] is None:
                found = (
                    None if signature.kwdefaults is None else self.d_get_str(signature.kwdefaults, code.co_varnames[i])
                )
                if found is None:
                    raise Break("call-arguments", code.co_qualname)
                slots[i] = found

    # -- cells and fields ----------------------------------------------------------------------------------------------

    def cell_contents(self, cell: Cell) -> Value | None:
        """What a cell holds; None when it is unbound."""
        if not cell.loaded:
            cell.loaded = True
            try:
                contents = cell.obj.cell_contents
            except ValueError:
                cell.source.check("unbound_cell")
            else:
                cell.contents = self.wrap(contents, cell.source.child("cell"))
        return cell.contents

    def set_cell(self, cell: Cell, value: Value | None) -> None:
        """Rebind a cell (None: unbind)."""
        self.touch(cell)
        cell.loaded = True
        cell.contents = value

    def builtins_of(self, frame: Frame) -> DictObj:
        """The builtins that a frame sees."""
        namespace = frame.globals.obj.get("__builtins__", builtins) if frame.globals.obj is not None else builtins
        return self.globals_of(namespace.__dict__ if isinstance(namespace, types.ModuleType) else namespace)

    def function_field(self, v: Value, name: str) -> Any:
        """`__name__`, `__defaults__`, `__closure__` … of a function."""
        from .attributes import MISSING

        if type(v) is Func:
            found = v.fields.get(name)
            if found is None:
                maker = MADE_FIELDS.get(name)
                found = self.missing_field(name) if maker is None else maker(self, v)
                if name in KEPT_FIELDS:
                    v.fields[name] = found
            return found
        function, source = v.obj, v.source or self.root.child("const", v.obj)
        if name == "__globals__":
            return self.globals_of(function.__globals__)
        if name in ("__code__", "__defaults__", "__kwdefaults__", "__closure__"):
            return self.wrap(getattr(function, name), source.child("func", name.strip("_")))
        if name in READ_FIELDS:
            try:
                found = getattr(function, name)
            except Exception as error:  # annotations may be computed only now
                raise Break("attribute-unknown", f"function.{name}") from error
            return self.wrap(found, source.child("slot", name))
        return MISSING

    def missing_field(self, name: str) -> Value:
        """A field that isn't modelled."""
        raise Break("attribute-unknown", f"function.{name}")

    def set_function_field(self, v: Func, name: str, value: Value) -> None:
        """Set a field of a function made under capture."""
        if name == "__defaults__":
            v.defaults = None if self.is_none(value) else value
        elif name == "__kwdefaults__":
            v.kwdefaults = None if self.is_none(value) else value
        else:
            if name == "__name__":
                v.name = self.constant_of(value)
            elif name == "__qualname__":
                v.qualname = self.constant_of(value)
            v.fields.pop(EITHER_FIELD.get(name), None)
            v.fields[name] = value


def doc_of(m: Any, v: Func) -> Value:
    """A function's docstring is its code's first constant."""
    consts = v.code.co_consts
    return m.const(consts[0] if consts and isinstance(consts[0], str) else None)


def annotations_of(m: Any, v: Func) -> Value:
    """A function's annotations; where a function computes them, the interpreter does, and remembers what it gave."""
    if "__annotate__" in v.fields:
        m.missing_field("__annotations__")
    return DictObj()


#: fields of functions from outside that hold an object
READ_FIELDS = frozenset(
    ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__", "__annotate__", "__type_params__")
)
#: fields of functions made under capture: how each is found
MADE_FIELDS: dict[str, Any] = {
    "__name__": lambda m, v: m.const(v.name),
    "__qualname__": lambda m, v: m.const(v.qualname),
    "__code__": lambda m, v: m.const(v.code),
    "__globals__": lambda m, v: v.globals,
    "__defaults__": lambda m, v: v.defaults or m.const(None),
    "__kwdefaults__": lambda m, v: v.kwdefaults or m.const(None),
    "__closure__": lambda m, v: TupleObj(v.closure) if v.closure else m.const(None),
    "__doc__": doc_of,
    "__module__": lambda m, v: m.d_get_str(v.globals, "__name__") or m.const(None),
    "__annotations__": annotations_of,
    "__annotate__": lambda m, v: m.const(None),
    "__type_params__": lambda m, v: TupleObj(()),
}
#: what is forgotten when a field is set
EITHER_FIELD = {"__annotations__": "__annotate__", "__annotate__": "__annotations__"}
#: those that are one object, whenever they are asked for
KEPT_FIELDS = ("__annotations__",)

__all__ = ["PUSHED", "Functions", "Signature"]
