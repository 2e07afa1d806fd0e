"""Handlers: operators, calls, jumps, iteration, exceptions, with, generators, matching."""

from __future__ import annotations

from typing import Any

from bytecode_models import Instr, Op

from ..frames import NULL, Frame
from ..library.arguments import tupled
from ..library.polyfills import constructors
from ..library.polyfills.support import c_name
from ..objects.attributes import MISSING
from ..objects.calls import is_made_in_python, raise_made
from ..objects.iteration import END
from ..objects.wrapping import is_heap
from ..reasons import Break
from ..values import NONE, PUSHED, Const, DictObj, ExcObj, ExcTrace, GenObj, Known, Raised, TupleObj, Value
from .core import Machine, handles


def push(f: Frame, value: Any) -> None:
    """Push a result, unless a frame was pushed that will."""
    if value is not PUSHED:
        f.stack.append(value)


# -- operators ---------------------------------------------------------------------------------------------------------


@handles(Op.UNARY)
def unary(m: Machine, f: Frame, i: Instr) -> None:
    push(f, m.unary(i.a, f.stack.pop()))


@handles(Op.TO_BOOL)
def to_bool(m: Machine, f: Frame, i: Instr) -> None:
    truth = m.truth(f.stack.pop())
    push(f, truth if truth is PUSHED else m.const(truth))


@handles(Op.BINARY)
def binary(m: Machine, f: Frame, i: Instr) -> None:
    b, a = f.stack.pop(), f.stack.pop()
    push(f, m.binary(i.a, a, b, i.b))


@handles(Op.COMPARE)
def compare(m: Machine, f: Frame, i: Instr) -> None:
    b, a = f.stack.pop(), f.stack.pop()
    value = m.compare(i.a, a, b)
    if i.b and value is not PUSHED:
        truth = m.truth(value)
        value = truth if truth is PUSHED else m.const(truth)
    push(f, value)


@handles(Op.IS)
def is_op(m: Machine, f: Frame, i: Instr) -> None:
    b, a = f.stack.pop(), f.stack.pop()
    f.stack.append(m.const(m.identical(a, b) is not bool(i.a)))


@handles(Op.CONTAINS)
def contains(m: Machine, f: Frame, i: Instr) -> None:
    owner, item = f.stack.pop(), f.stack.pop()
    found = m.contains(owner, item)
    if found is not PUSHED:
        f.stack.append(m.const(found is not bool(i.a)))
    elif i.a:
        m.frames.pop()
        m.push_python(not_in_python, [owner, item])


def not_in_python(owner, item, /):
    """`not in`, where the search needs Python code."""
    found = item in owner  # on a line of its own: the compiler would make "not in" of it, which comes back here
    return not found


@handles(Op.LOAD_ITEM)
def load_item(m: Machine, f: Frame, i: Instr) -> None:
    key, owner = f.stack.pop(), f.stack.pop()
    push(f, m.getitem(owner, key))


@handles(Op.STORE_ITEM)
def store_item(m: Machine, f: Frame, i: Instr) -> None:
    key, owner, value = f.stack.pop(), f.stack.pop(), f.stack.pop()
    if m.setitem(owner, key, value) is PUSHED:
        m.frames[-1].discard = True


@handles(Op.DELETE_ITEM)
def delete_item(m: Machine, f: Frame, i: Instr) -> None:
    key, owner = f.stack.pop(), f.stack.pop()
    if m.delitem(owner, key) is PUSHED:
        m.frames[-1].discard = True


# -- calls -------------------------------------------------------------------------------------------------------------


def pop_callable(f: Frame, shape: str) -> tuple[Value, list[Value]]:
    """The callable and the receiver that a method load left beside it."""
    second, first = f.stack.pop(), f.stack.pop()
    if shape == "null_first":
        return (second, []) if first is NULL else (first, [second])
    return (first, []) if second is NULL else (first, [second])


@handles(Op.CALL)
def call(m: Machine, f: Frame, i: Instr) -> None:
    stack = f.stack
    args = stack[len(stack) - i.a :] if i.a else []
    if i.a:
        del stack[-i.a :]
    kwargs: dict[str, Value] = {}
    if i.b:
        n = len(i.b)
        kwargs = dict(zip(i.b, args[-n:]))
        args = args[:-n]
    function, receiver = pop_callable(f, i.c)
    push(f, m.call_from(f, function, receiver + args, kwargs))


@handles(Op.CALL_EX)
def call_ex(m: Machine, f: Frame, i: Instr) -> None:
    kwargs: dict[str, Value] = {}
    if i.a:
        mapping = f.stack.pop()
        if not isinstance(mapping, DictObj):
            raise Break("call-arguments", f"**{mapping.cls.__name__}")
        for key, value in m.d_items(mapping):
            if type(key) is not Const or type(key.value) is not str:
                raise Break("call-arguments", "keywords must be strings")
            kwargs[key.value] = value
    source = f.stack.pop()
    if m.lookup_type(source.cls, "__iter__") is MISSING:
        raise Break("call-arguments", f"*{source.cls.__name__}")
    function, receiver = pop_callable(f, i.c)
    args = tupled(m, source)
    if args is None:
        named = DictObj()
        named.items = {name: (Const(name), value) for name, value in kwargs.items()}
        m.push_python(call_in_python, [function, TupleObj(receiver), source, named])
        return
    push(f, m.call_from(f, function, receiver + args, kwargs))


def call_in_python(function, receiver, source, named, /):
    """`function(*source, **named)` where the source's iteration is Python code."""
    args = [*receiver]
    for item in constructors.room_for(source) if constructors.TUPLE_ASKS else source:
        args.append(item)
    return function(*args, **named)


# -- jumps and iteration -----------------------------------------------------------------------------------------------


@handles(Op.JUMP)
def jump(m: Machine, f: Frame, i: Instr) -> None:
    f.pc = i.target  # type: ignore[assignment]


@handles(Op.JUMP_IF)
def jump_if(m: Machine, f: Frame, i: Instr) -> None:
    value = f.stack.pop()
    kind = i.a
    if kind == "none" or kind == "not_none":
        truth: Any = m.is_none(value) is (kind == "none")
    else:
        truth = m.truth(value)
        if truth is PUSHED:
            f.pc = i.index  # once more, on the bool that the pushed frame returns
            return
        truth = truth is (kind == "true")
    if truth:
        f.pc = i.target  # type: ignore[assignment]


@handles(Op.GET_ITER)
def get_iter(m: Machine, f: Frame, i: Instr) -> None:
    push(f, m.get_iter(f.stack.pop()))


@handles(Op.FOR_ITER)
def for_iter(m: Machine, f: Frame, i: Instr) -> None:
    value = m.next_value(f.stack[-i.a])
    if value is END:
        if i.b:
            del f.stack[-i.a :]
        f.pc = i.target  # type: ignore[assignment]
    else:
        push(f, value)


@handles(Op.POP_ITER)
def pop_iter(m: Machine, f: Frame, i: Instr) -> None:
    m.check_drop(f, f.stack[-i.a])
    del f.stack[-i.a :]


@handles(Op.RETURN)
def return_value(m: Machine, f: Frame, i: Instr) -> None:
    m.return_value(f, f.stack[-1])


# -- exceptions --------------------------------------------------------------------------------------------------------


@handles(Op.RAISE)
def raise_(m: Machine, f: Frame, i: Instr) -> None:
    """`raise`, `raise e`, `raise e from cause`."""
    if i.a == 0:
        handled = m.handled_exception()
        if handled is None:
            m.throw(RuntimeError, "No active exception to reraise")
        raise again(handled)
    cause = f.stack.pop() if i.a == 2 else None
    value = f.stack.pop()
    if type(value) is Known and isinstance(value.obj, type) and issubclass(value.obj, BaseException):
        if is_made_in_python(value.obj):
            m.push_python(raise_made, [value] if cause is None else [value, cause])
            return
        value = m.call(value, [], {})
    if not isinstance(value, ExcObj):
        raise Break("exception-unknown", value.cls.__name__)
    if cause is not None:
        if type(cause) is Known and isinstance(cause.obj, type) and issubclass(cause.obj, BaseException):
            if is_made_in_python(cause.obj):
                m.push_python(raise_made, [value, cause])
                return
            cause = m.call(cause, [], {})
        if not isinstance(cause, ExcObj) and not m.is_none(cause):
            raise Break("exception-unknown", "cause")
        m.set_exception_field(value, "__cause__", cause)
    m.raise_from(value)


@handles(Op.RERAISE)
def reraise(m: Machine, f: Frame, i: Instr) -> None:
    raise again(f.stack.pop())


def again(exc: Any) -> Exception:
    """To raise an exception that was raised before: its traceback has its line for this frame."""
    return Raised(exc, again=True) if isinstance(exc, ExcObj) else Break("exception-unknown", "raised again")


@handles(Op.ENTER_HANDLER)
def enter_handler(m: Machine, f: Frame, i: Instr) -> None:
    exc = f.stack.pop()
    # A generator keeps an account of its own.
    previous = m.handled_exception() if f.gen is None else f.handled[-1] if f.handled else None
    f.handlers.append(len(f.stack))
    f.handled.append(exc)
    f.stack.append(previous if previous is not None else NONE)
    f.stack.append(exc)


@handles(Op.LEAVE_HANDLER)
def leave_handler(m: Machine, f: Frame, i: Instr) -> None:
    f.stack.pop()
    f.handlers.pop()
    f.handled.pop()


@handles(Op.MATCH_EXC)
def match_exc(m: Machine, f: Frame, i: Instr) -> None:
    kinds, exc = f.stack.pop(), f.stack[-1]
    if i.a != "single":
        raise Break("unsupported-instruction", "except*")
    types_ = kinds.items if isinstance(kinds, TupleObj) else [kinds]
    for kind in types_:
        if type(kind) is not Known or not isinstance(kind.obj, type) or not issubclass(kind.obj, BaseException):
            raise Break("exception-unknown", "except with something that is no exception class")
    f.stack.append(m.const(any(m.is_subclass(exc.cls, kind.obj) for kind in types_)))  # type: ignore[attr-defined]


@handles(Op.ENTER_WITH)
def enter_with(m: Machine, f: Frame, i: Instr) -> None:
    manager = f.stack.pop()
    if i.a:
        raise Break("async-unsupported", "async with")
    methods = [special(m, manager, name) for name in ("__enter__", "__exit__")]
    f.stack.append(methods[1])
    push(f, m.call(methods[0], [], {}))


@handles(Op.LOAD_SPECIAL)
def load_special(m: Machine, f: Frame, i: Instr) -> None:
    f.stack.append(special(m, f.stack.pop(), i.a))
    f.stack.append(NULL)


def special(m: Machine, owner: Value, name: str) -> Value:
    """A special method, looked up on the type and bound."""
    found = m.lookup_type(owner.cls, name)
    if found is MISSING:
        raise Break("attribute-unknown", f"{owner.cls.__name__}.{name}")
    method = m.get_descriptor(found, owner, owner.cls, name)
    if method is PUSHED:
        m.frames.pop()
        raise Break("attribute-unknown", f"{owner.cls.__name__}.{name} is found by Python code")
    return method


@handles(Op.CALL_EXIT)
def call_exit(m: Machine, f: Frame, i: Instr) -> None:
    exc: Any = f.stack[-1]
    receiver = []
    function = f.stack[-i.a]
    if i.b and f.stack[-i.a + 1] is not NULL:
        receiver = [f.stack[-i.a + 1]]
    trace = ExcTrace(exc) if isinstance(exc, ExcObj) else NONE
    push(f, m.call(function, [*receiver, Known(exc.cls), exc, trace], {}))


# -- generators --------------------------------------------------------------------------------------------------------


@handles(Op.YIELD)
def yield_(m: Machine, f: Frame, i: Instr) -> None:
    if f.gen is None:
        raise Break("generator-unsupported", f.code.co_qualname)
    m.yield_value(f, f.stack.pop())


@handles(Op.SEND)
def send(m: Machine, f: Frame, i: Instr) -> None:
    """One step of `yield from`: the receiver's next value is yielded on."""
    value = f.stack.pop()
    receiver = f.stack[-i.a]
    if type(receiver) is GenObj:
        push(f, m.resume_generator(receiver, value))
        return
    if not m.is_none(value):
        push(f, m.call(m.getattr(receiver, "send"), [value], {}))
        return
    item = m.next_value(receiver)
    if item is END:
        f.stack.append(NONE)
        if i.b:
            del f.stack[-2]
        f.pc = i.target  # type: ignore[assignment]
    else:
        push(f, item)


@handles(Op.END_SEND)
def end_send(m: Machine, f: Frame, i: Instr) -> None:
    value = f.stack.pop()
    del f.stack[-i.a :]
    f.stack.append(value)


@handles(Op.THROW_CLEANUP)
def throw_cleanup(m: Machine, f: Frame, i: Instr) -> None:
    exc: Any = f.stack.pop()
    if not isinstance(exc, ExcObj):
        raise Break("exception-unknown", "thrown into a delegating generator")
    if not issubclass(exc.cls, StopIteration):
        raise Raised(exc)
    del f.stack[-1 - i.a :]
    f.stack.extend([*[NONE] * i.a, exc.args[0] if exc.args else NONE])


@handles(Op.INTRINSIC)
def intrinsic(m: Machine, f: Frame, i: Instr) -> None:
    """Small operations that have no opcode of their own."""
    rule = INTRINSICS.get(i.a)
    if rule is None:
        raise Break("unsupported-instruction", i.a)
    args = [f.stack.pop() for _ in range(i.b)]
    push(f, rule(m, *reversed(args)))


INTRINSICS: dict[str, Any] = {
    "LIST_TO_TUPLE": lambda m, items: TupleObj(items.items),
    "UNARY_POSITIVE": lambda m, value: m.unary("+", value),
    "STOPITERATION_ERROR": lambda m, exc: m.stopiteration_error(exc),
}


# -- matching ----------------------------------------------------------------------------------------------------------

#: the flag of types, inherited, whose one positional pattern is the subject itself
MATCH_SELF = 1 << 22


@handles(Op.MATCH)
def match(m: Machine, f: Frame, i: Instr) -> None:
    MATCHERS[i.a](m, f, i)


def match_len(m: Machine, f: Frame, i: Instr) -> None:
    value = m.call(Known(len), [f.stack[-1]], {})
    push(f, value)


def match_flag(flag: int) -> Any:
    """MATCH_SEQUENCE and MATCH_MAPPING look at a flag of the type; an abstract class sets it where it registers one."""

    def handler(m: Machine, f: Frame, i: Instr) -> None:
        cls = f.stack[-1].cls
        if is_heap(cls):
            m.check_registered()
        f.stack.append(m.const(bool(cls.__flags__ & flag)))

    return handler


def match_keys(m: Machine, f: Frame, i: Instr) -> None:
    subject, wanted = f.stack[-2], f.stack[-1]
    own_get = isinstance(subject, DictObj) and m.instance_attr(subject, "get") is not MISSING
    if not isinstance(subject, DictObj) or own_get or m.lookup_type(subject.cls, "get") is not dict.get:
        raise Break("unsupported-instruction", "match on a mapping that is no dict")
    keys = m.iterate(wanted)
    if len({m.key_of(key) for key in keys}) < len(keys):
        raise Break("unsupported-instruction", "match with a key twice")
    found = [m.d_get(subject, key) for key in keys]
    f.stack.append(NONE if None in found else TupleObj(found))  # type: ignore[arg-type]


def match_class(m: Machine, f: Frame, i: Instr) -> None:
    names, kind, subject = f.stack.pop(), f.stack.pop(), f.stack.pop()
    if type(kind) is not Known or not isinstance(kind.obj, type):
        raise Break("unsupported-instruction", f"case {kind.cls.__name__}(): no class")
    push(f, m.push_python(match_class_in_python, [subject, kind, names, m.const(i.b)]))


def match_class_in_python(subject, cls, names, positional, /):
    """MATCH_CLASS: the attributes that the pattern asks for, or None."""
    if not isinstance(subject, cls):
        return None
    values = []
    if positional:
        itself = False
        try:
            args = cls.__match_args__
        except AttributeError:
            args, itself = (), cls.__flags__ & MATCH_SELF
        if type(args) is not tuple:
            raise TypeError(f"{c_name(cls)}.__match_args__ must be a tuple (got {c_name(type(args))})")
        allowed = 1 if itself else len(args)
        if allowed < positional:
            accepted = f"{allowed} positional sub-pattern{'' if allowed == 1 else 's'}"
            raise TypeError(f"{c_name(cls)}() accepts {accepted} ({positional} given)")
        if itself:
            values.append(subject)
        names = args[:positional] + names
    seen = []
    for name in names:
        if type(name) is not str:
            raise TypeError(f"__match_args__ elements must be strings (got {c_name(type(name))})")
        if name in seen:
            raise TypeError(f"{c_name(cls)}() got multiple sub-patterns for attribute {name!r}")
        seen.append(name)
        try:
            values.append(getattr(subject, name))
        except AttributeError:
            return None
    return tuple(values)


MATCHERS: dict[str, Any] = {
    "len": match_len,
    "mapping": match_flag(1 << 6),
    "sequence": match_flag(1 << 5),
    "keys": match_keys,
    "class": match_class,
}
