"""Handlers: the stack, constants, locals, cells, names, attributes, building, functions."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ClassMethodDescriptorType, ModuleType
from typing import Any

from bytecode_models import Instr, Op

from ..frames import NULL, Frame
from ..library.arguments import items_of, listed
from ..library.dicts_rules import pairs_of
from ..library.polyfills import constructors
from ..library.sets_rules import put_into
from ..reasons import Break
from ..values import PUSHED, Bound, Cell, Const, DictObj, Func, Known, ListObj, Pending, SetObj, SliceObj, TupleObj
from .core import Machine, handles


@handles(Op.NOP)
def nop(m: Machine, f: Frame, i: Instr) -> None:
    pass


@handles(Op.START)
def start(m: Machine, f: Frame, i: Instr) -> None:
    """RESUME does nothing; a generator's creation is done by `call_function_object`."""


@handles(Op.POP)
def pop(m: Machine, f: Frame, i: Instr) -> None:
    m.check_drop(f, f.stack[-1])
    f.stack.pop()


@handles(Op.COPY)
def copy(m: Machine, f: Frame, i: Instr) -> None:
    f.stack.append(f.stack[-i.a])


@handles(Op.SWAP)
def swap(m: Machine, f: Frame, i: Instr) -> None:
    stack = f.stack
    stack[-1], stack[-i.a] = stack[-i.a], stack[-1]


@handles(Op.PUSH_NULL)
def push_null(m: Machine, f: Frame, i: Instr) -> None:
    f.stack.append(NULL)


@handles(Op.LOAD_CONST)
def load_const(m: Machine, f: Frame, i: Instr) -> None:
    f.stack.append(m.const(i.a))


# -- locals and cells --------------------------------------------------------------------------------------------------


@handles(Op.LOAD_LOCAL)
def load_local(m: Machine, f: Frame, i: Instr) -> None:
    value = f.slots[i.a]
    if value is None:
        name = f.program.names[i.a]
        m.throw(UnboundLocalError, f"cannot access local variable '{name}' where it is not associated with a value")
    if type(value) is Pending:
        value = m.load_pending(f, i.a)
    f.stack.append(value)  # type: ignore[arg-type]


@handles(Op.LOAD_LOCAL_CLEAR)
def load_local_clear(m: Machine, f: Frame, i: Instr) -> None:
    value = f.slots[i.a]
    if type(value) is Pending:
        value = m.load_pending(f, i.a)
    f.stack.append(NULL if value is None else value)
    f.slots[i.a] = None


@handles(Op.STORE_LOCAL)
def store_local(m: Machine, f: Frame, i: Instr) -> None:
    m.check_drop(f, f.slots[i.a])
    value = f.stack.pop()
    f.slots[i.a] = None if value is NULL else value


@handles(Op.DELETE_LOCAL)
def delete_local(m: Machine, f: Frame, i: Instr) -> None:
    if f.slots[i.a] is None:
        name = f.program.names[i.a]
        m.throw(UnboundLocalError, f"cannot access local variable '{name}' where it is not associated with a value")
    m.check_drop(f, f.slots[i.a])
    f.slots[i.a] = None


@handles(Op.MAKE_CELL)
def make_cell(m: Machine, f: Frame, i: Instr) -> None:
    f.slots[i.a] = Cell(f.slots[i.a] if type(f.slots[i.a]) is not Pending else m.load_pending(f, i.a))


@handles(Op.BIND_FREE_VARS)
def bind_free_vars(m: Machine, f: Frame, i: Instr) -> None:
    for slot, cell in zip(f.program.frees, f.closure):
        f.slots[slot] = cell


@handles(Op.LOAD_CELL)
def load_cell(m: Machine, f: Frame, i: Instr) -> None:
    f.stack.append(f.slots[i.a])  # type: ignore[arg-type]


@handles(Op.LOAD_DEREF)
def load_deref(m: Machine, f: Frame, i: Instr) -> None:
    value = m.cell_contents(f.slots[i.a])  # type: ignore[arg-type]
    if value is None:
        unbound_cell(m, f, i.a)
    f.stack.append(value)  # type: ignore[arg-type]


def unbound_cell(m: Machine, f: Frame, slot: int) -> None:
    """NameError of an empty cell: the wording tells free variables from own ones."""
    name = f.program.names[slot]
    if slot in f.program.frees:
        m.throw(
            NameError,
            f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope",
            name=name,
        )
    m.throw(UnboundLocalError, f"cannot access local variable '{name}' where it is not associated with a value")


@handles(Op.STORE_DEREF)
def store_deref(m: Machine, f: Frame, i: Instr) -> None:
    m.set_cell(f.slots[i.a], f.stack.pop())  # type: ignore[arg-type]


@handles(Op.DELETE_DEREF)
def delete_deref(m: Machine, f: Frame, i: Instr) -> None:
    if m.cell_contents(f.slots[i.a]) is None:  # type: ignore[arg-type]
        unbound_cell(m, f, i.a)
    m.set_cell(f.slots[i.a], None)  # type: ignore[arg-type]


# -- names -------------------------------------------------------------------------------------------------------------


@handles(Op.LOAD_GLOBAL)
def load_global(m: Machine, f: Frame, i: Instr) -> None:
    if f.trusted:
        f.stack.append(trusted_global(m, f, i.a))
        return
    value = m.d_get_str(f.globals, i.a)
    if value is None:
        value = m.d_get_str(m.builtins_of(f), i.a)
    if value is None:
        m.throw(NameError, f"name '{i.a}' is not defined", name=i.a)
    m.check_imported(value, i.a)  # type: ignore[arg-type]
    f.stack.append(value)  # type: ignore[arg-type]


def trusted_global(m: Machine, f: Frame, name: str) -> Any:
    """A global of one of our own functions."""
    namespace = f.globals.obj
    if name in namespace:
        return m.const(namespace[name])
    builtins = namespace["__builtins__"]
    return m.const(builtins[name] if isinstance(builtins, dict) else getattr(builtins, name))


@handles(Op.LOAD_BUILD_CLASS)
def load_build_class(m: Machine, f: Frame, i: Instr) -> None:
    f.stack.append(m.d_get_str(m.builtins_of(f), "__build_class__"))


@handles(Op.STORE_GLOBAL)
def store_global(m: Machine, f: Frame, i: Instr) -> None:
    m.d_set(f.globals, Const(i.a), f.stack.pop())


@handles(Op.DELETE_GLOBAL)
def delete_global(m: Machine, f: Frame, i: Instr) -> None:
    if not m.d_del(f.globals, Const(i.a)):
        m.throw(NameError, f"name '{i.a}' is not defined", name=i.a)


@handles(Op.IMPORT_NAME)
def import_name(m: Machine, f: Frame, i: Instr) -> None:
    """An import of a module that is loaded already."""
    fromlist, level = f.stack.pop(), f.stack.pop()
    name = i.a
    depth = m.constant_of(level)
    if depth:
        package = m.d_get_str(f.globals, "__package__")
        if package is None or type(package) is not Const or not package.value:
            raise Break("import", name)
        base = package.value.rsplit(".", depth - 1)[0]
        name = f"{base}.{name}" if name else base
    if m.is_none(fromlist) and not depth:
        if name not in sys.modules:
            raise Break("import", name)
        name = name.partition(".")[0]
    module = m.d_get_str(m.globals_of(sys.modules), name)
    if module is None or type(module) is not Known:
        raise Break("import", name)
    for attribute in () if m.is_none(fromlist) else m.constant_of(fromlist):
        if attribute == "*" or not hasattr(module.obj, attribute):
            raise Break("import", f"{name}.{attribute}")
    f.stack.append(module)


@handles(Op.IMPORT_FROM)
def import_from(m: Machine, f: Frame, i: Instr) -> None:
    module = f.stack[-1]
    in_module = type(module) is Known and isinstance(module.obj, ModuleType)
    if not in_module or m.d_get_str(m.module_dict(module.obj), i.a) is None:
        raise Break("import", i.a)  # a submodule, a name that a hook makes, or none
    value = m.getattr(module, i.a)
    if value is not PUSHED:
        f.stack.append(value)


# -- attributes --------------------------------------------------------------------------------------------------------


@handles(Op.LOAD_ATTR)
def load_attr(m: Machine, f: Frame, i: Instr) -> None:
    value = m.getattr(f.stack.pop(), i.a)
    if value is not PUSHED:
        f.stack.append(value)


@handles(Op.LOAD_METHOD)
def load_method(m: Machine, f: Frame, i: Instr) -> None:
    push_method(m, f, m.getattr(f.stack.pop(), i.a), i.b)


def splits(method: Bound) -> bool:
    """Whether calling the method's function with the receiver in front is the same as calling the method."""
    return method.source is None and type(getattr(method.func, "obj", None)) is not ClassMethodDescriptorType


def push_method(m: Machine, f: Frame, value: Any, shape: str) -> None:
    """What a method load leaves: (method, self) or a callable beside NULL."""
    stack = f.stack
    if value is PUSHED:
        # The callee's return value lands on top of the caller's stack.
        if shape == "null_first":
            stack.append(NULL)
        else:
            m.frames[-1].null_above = True
    elif type(value) is Bound and splits(value):
        stack.append(value.func)
        stack.append(value.self)
    elif shape == "null_first":
        stack.append(NULL)
        stack.append(value)
    else:
        stack.append(value)
        stack.append(NULL)


@handles(Op.LOAD_SUPER)
def load_super(m: Machine, f: Frame, i: Instr) -> None:
    receiver, start, kind = f.stack.pop(), f.stack.pop(), f.stack.pop()
    if type(kind) is not Known or kind.obj is not super or type(start) is not Known:
        raise Break("unsupported-instruction", "super() that isn't the builtin")
    value = m.getattr(m.make_super(start.obj, receiver), i.a)
    if i.b[0]:
        push_method(m, f, value, i.c)
    elif value is not PUSHED:
        f.stack.append(value)


@handles(Op.STORE_ATTR)
def store_attr(m: Machine, f: Frame, i: Instr) -> None:
    owner, value = f.stack.pop(), f.stack.pop()
    if m.setattr(owner, i.a, value) is PUSHED:
        m.frames[-1].discard = True


@handles(Op.DELETE_ATTR)
def delete_attr(m: Machine, f: Frame, i: Instr) -> None:
    if m.delattr(f.stack.pop(), i.a) is PUSHED:
        m.frames[-1].discard = True


# -- building ----------------------------------------------------------------------------------------------------------


@handles(Op.BUILD)
def build(m: Machine, f: Frame, i: Instr) -> None:
    stack, kind, n = f.stack, i.a, i.b
    count = 2 * n if kind == "dict" else n + 1 if kind == "const_key_dict" else n
    items = stack[len(stack) - count :]
    value = BUILDERS[kind](m, items)
    del stack[len(stack) - count :]
    stack.append(value)


def build_dict(m: Machine, items: list) -> DictObj:
    value = DictObj()
    for key, item in zip(items[::2], items[1::2]):
        m.d_set(value, key, item)
    return value


def build_const_key_dict(m: Machine, items: list) -> DictObj:
    value = DictObj()
    for key, item in zip(m.iterate(items[-1]), items):
        m.d_set(value, key, item)
    return value


def build_set(m: Machine, items: list) -> SetObj:
    value = SetObj()
    put_into(m, value, items)
    return value


def build_slice(m: Machine, items: list) -> Any:
    if all(type(item) is Const for item in items):
        return Const(slice(*(item.value for item in items)))
    return SliceObj(tuple(items) if len(items) == 3 else (*items, Const(None)))


def build_string(m: Machine, items: list) -> Any:
    return m.call(m.const(str.join), [Const(""), TupleObj(items)], {})


BUILDERS: dict[str, Any] = {
    "tuple": lambda m, items: TupleObj(items),
    "list": lambda m, items: ListObj(items),
    "set": build_set,
    "dict": build_dict,
    "const_key_dict": build_const_key_dict,
    "slice": build_slice,
    "string": build_string,
}


@handles(Op.APPEND)
def append(m: Machine, f: Frame, i: Instr) -> None:
    stack = f.stack
    item = stack.pop()
    if i.a == "dict":
        key = stack.pop()
        m.d_set(stack[-i.b], key, item)  # type: ignore[arg-type]
        return
    owner: Any = stack[-i.b]
    if i.a == "list":
        m.touch(owner)
        owner.append(item)
    else:
        put_into(m, owner, [item])


@handles(Op.EXTEND)
def extend(m: Machine, f: Frame, i: Instr) -> None:
    """`[*x]`, `{*x}`, `{**x}`, and the arguments of `f(*x, **y)`: a Python loop where iteration needs Python code."""
    source = f.stack.pop()
    owner: Any = f.stack[-i.b]
    if i.a in ("dict_update", "dict_merge"):
        extend_dict(m, f, i, owner, source)
        return
    items = listed(m, source) if i.a == "list" else items_of(m, source)
    if items is None:
        if i.a == "list":
            refuse(m, source, "Value after * must be an iterable, not {}")
        m.push_python(extend_in_python, [owner, source, m.const(i.a == "list")])
        m.frames[-1].discard = True
        return
    if i.a == "list":
        m.touch(owner)
        owner.items.extend(items)
    else:
        put_into(m, owner, items)


def extend_dict(m: Machine, f: Frame, i: Instr, owner: DictObj, source: Any) -> None:
    """`{**source}`; in a call, a repeated keyword is the real call's error."""
    if not isinstance(source, DictObj):
        raise Break("iterate-unknown", f"**{source.cls.__name__}")
    pairs = pairs_of(m, source)
    if pairs is None:
        raise Break("iterate-unknown", f"**{source.cls.__name__}")
    if i.a == "dict_merge":
        for key, _ in pairs:
            if type(key) is not Const or type(key.value) is not str or m.d_get(owner, key) is not None:
                raise Break("call-arguments", "keyword arguments")
    m.d_update(owner, pairs)


def extend_in_python(owner, source, is_list, /):
    """`owner.extend(source)` where the source's iteration is Python code."""
    if is_list:
        for item in constructors.room_for(source):
            owner.append(item)
    else:
        for item in source:
            owner.add(item)


@handles(Op.UNPACK)
def unpack(m: Machine, f: Frame, i: Instr) -> None:
    source = f.stack.pop()
    before, after = i.a, i.b
    # One more tells that there are too many.
    limit = before + 1 if after is None and source.cls not in SIZED else None
    try:
        items = m.iterate(source, limit)
    except Break as cause:
        if cause.code != "iterate-unknown":
            raise
        refuse(m, source, "cannot unpack non-iterable {} object")
        f.pc = i.index  # once more, on the list that the loop makes
        if after is None:
            error = unpacking_error(iter, before + 1, before, after)
            m.push_python(list_in_python, [source, m.const(before), m.const(error)])
        else:
            m.push_python(starred_in_python, [source, m.const(before)])
        return
    n = len(items)
    if n < before + (after or 0) or n > before and after is None:
        m.throw(ValueError, unpacking_error(SIZED.get(source.cls, iter), n, before, after))
    if after is None:
        f.stack.extend(reversed(items))
        return
    tail = items[n - after :] if after else []
    f.stack.extend(reversed(tail))
    f.stack.append(ListObj(items[before : n - after]))
    f.stack.extend(reversed(items[:before]))


def refuse(m: Machine, source: Any, text: str) -> None:
    """Unpacking has its own texts for what can't be iterated."""
    if not m.can_iterate(source.cls):
        m.throw(TypeError, text.format(m.name_of(source.cls)))


#: how something of that type with items like these is made
SIZED: dict[type, Callable] = {list: list, tuple: tuple, dict: dict.fromkeys}


@functools.cache
def unpacking_error(kind: Callable, n: int, before: int, after: int | None) -> str:
    """What the interpreter says when `n` items are unpacked into names, with a starred one before the last `after`.

    It says more of what has a size than of other iterables.
    """
    starred = [] if after is None else ["*rest", *(f"b{k}" for k in range(after))]
    names = "".join(f"{name}, " for name in [*(f"a{k}" for k in range(before)), *starred])
    try:
        exec(f"[{names}] = items", {"items": kind(range(n))})
    except ValueError as error:
        return str(error)
    raise AssertionError(f"{n} items can be unpacked into {names}")


def list_in_python(source, most, error, /):
    """The items of an iterable; more than `most` are an error."""
    items = []
    for item in source:
        if len(items) == most:
            raise ValueError(error)
        items.append(item)
    return items


def starred_in_python(source, before, /):
    """The items of an iterable, of which those behind the first ones are made a list."""
    iterator = iter(source)
    items = []
    if before:
        for item in constructors.Iterated(iterator):
            items.append(item)
            if len(items) == before:
                break
    return items + list(iterator) if len(items) == before else items


@handles(Op.CONVERT)
def convert(m: Machine, f: Frame, i: Instr) -> None:
    function = {"str": str, "repr": repr, "ascii": ascii}[i.a]
    value = m.call(Known(function), [f.stack.pop()], {})
    if value is not PUSHED:
        f.stack.append(value)


@handles(Op.FORMAT)
def format_value(m: Machine, f: Frame, i: Instr) -> None:
    spec = [f.stack.pop()] if i.a else []
    value = m.call(Known(format), [f.stack.pop(), *spec], {})
    if value is not PUSHED:
        f.stack.append(value)


# -- functions ---------------------------------------------------------------------------------------------------------


@handles(Op.MAKE_FUNCTION)
def make_function(m: Machine, f: Frame, i: Instr) -> None:
    code: Any = f.stack.pop()
    function = Func(code.obj, f.globals, (), None, None)
    for name in reversed(tuple(i.a)):
        set_attribute(m, function, name, f.stack.pop())
    f.stack.append(function)


def set_attribute(m: Machine, function: Func, name: str, value: Any) -> None:
    """What a function is made with."""
    if name == "closure":
        function.closure = tuple(m.iterate(value))
    elif name in ("defaults", "kwdefaults"):
        setattr(function, name, value)
    elif name == "annotations" and isinstance(value, TupleObj):
        function.fields["__annotations__"] = build_dict(m, list(value.items))
    else:
        function.fields[f"__{name}__"] = value
