"""The neutral operations, and the instruction that carries one.

Stack pictures read bottom to top, `before -> after`; what lies below is untouched. `a`, `b`, `c` name operands. A slot
is an index into the frame's *localsplus* array: locals first, then cells, then free variables. NULL is an empty stack
item; only POP, COPY, SWAP, POP_ITER, STORE_LOCAL and calls may meet one.
"""

from __future__ import annotations

from enum import IntEnum, auto, unique
from typing import Any, Final, NamedTuple


class Marker:
    """A value that stands for the absence of one."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


#: A slot without a value.
UNBOUND: Final = Marker("UNBOUND")
#: A stack item without a value.
NULL: Final = Marker("NULL")


@unique
class Op(IntEnum):
    """What an instruction does, whichever release encoded it."""

    # stack
    NOP = auto()  # ->
    POP = auto()  # x ->
    COPY = auto()  # x(a) … -> x(a) … x(a); a=1 duplicates the top
    SWAP = auto()  # x(a) … y -> y … x(a)
    PUSH_NULL = auto()  # -> NULL
    LOAD_CONST = auto()  # -> a
    # slots: raw contents, so a cell slot holds its cell
    LOAD_LOCAL = auto()  # -> slot a, be it a value or (3.13) a cell for a closure; b: unbound raises
    LOAD_LOCAL_CLEAR = auto()  # -> slot a or NULL; the slot becomes unbound
    STORE_LOCAL = auto()  # x -> ; slot a = x (NULL makes it unbound)
    DELETE_LOCAL = auto()  # -> ; unbound raises
    MAKE_CELL = auto()  # -> ; slot a = cell of what it held
    BIND_FREE_VARS = auto()  # -> ; the last a slots = cells of the function's closure
    LOAD_CELL = auto()  # -> the cell in slot a
    LOAD_DEREF = auto()  # -> contents of the cell in slot a; empty raises
    STORE_DEREF = auto()  # x -> ; cell in slot a
    DELETE_DEREF = auto()  # -> ; empty raises
    LOAD_CLASS_DEREF = auto()  # [dict if b] -> dict (without b: the frame's locals) item or contents of cell a
    # names
    LOAD_GLOBAL = auto()  # -> globals or builtins a; an import that is still lazy (3.15) is done now
    STORE_GLOBAL = auto()  # x ->
    DELETE_GLOBAL = auto()  # ->
    LOAD_NAME = auto()  # -> the frame's locals, globals or builtins a; as LOAD_GLOBAL
    STORE_NAME = auto()  # x ->
    DELETE_NAME = auto()  # ->
    LOAD_CLASS_GLOBAL = auto()  # dict -> its item a, or globals or builtins a
    LOAD_LOCALS = auto()  # -> the frame's locals mapping
    LOAD_BUILD_CLASS = auto()  # -> __build_class__
    SETUP_ANNOTATIONS = auto()  # -> ; __annotations__ exists in the frame's locals
    IMPORT_NAME = auto()  # level fromlist -> module a; b: eager, lazy, or default (the interpreter's settings decide)
    IMPORT_FROM = auto()  # module -> module attribute a
    # attributes; b of LOAD_METHOD and c of LOAD_SUPER give the shape of the call that follows
    LOAD_ATTR = auto()  # x -> x.a
    LOAD_METHOD = auto()  # x -> null_first: method x | NULL x.a; callable_first: method x | x.a NULL
    LOAD_SUPER = auto()  # super class self -> attribute a; b=(method: pushes as LOAD_METHOD does, two arguments given)
    LOAD_SPECIAL = auto()  # x -> special method a, self-or-NULL
    STORE_ATTR = auto()  # value x -> ; x.a = value
    DELETE_ATTR = auto()  # x ->
    # operators
    UNARY = auto()  # x -> a x; a in '-' '+' '~' 'not'
    TO_BOOL = auto()  # x -> bool(x)
    BINARY = auto()  # x y -> x a y; b: in place
    COMPARE = auto()  # x y -> x a y; b: made a bool
    IS = auto()  # x y -> x is y; a: is not
    CONTAINS = auto()  # x y -> x in y; a: not in
    LOAD_ITEM = auto()  # x key -> x[key]
    STORE_ITEM = auto()  # value x key -> ; x[key] = value
    DELETE_ITEM = auto()  # x key ->
    # building and taking apart
    BUILD = auto()  # items(b) -> a; dict: b pairs key value; const_key_dict: values(b) keys-tuple
    BUILD_TEMPLATE = auto()  # strings interpolations -> template
    BUILD_INTERPOLATION = auto()  # value text [spec if b] -> interpolation; a: conversion or None
    APPEND = auto()  # … x -> …; dict: … key value -> …; the collection is b below the top once x is popped
    EXTEND = auto()  # … x -> …; a in list set dict_update dict_merge; depth b as in APPEND
    UNPACK = auto()  # x -> items, last one first; with b: a items, a list of the rest, b items
    CONVERT = auto()  # x -> str, repr or ascii (a) of x
    FORMAT = auto()  # x [spec if a] -> format(x, spec)
    # calls; c: shape, 'null_first' NULL f args | method self args, or 'callable_first' f NULL args | method self args
    CALL = auto()  # f args(a) -> result; the last len(b) arguments are named by b
    CALL_EX = auto()  # f args [kwargs if a] -> result
    INTRINSIC = auto()  # arguments(b) -> result of the interpreter's function a
    MAKE_FUNCTION = auto()  # attributes(a) code -> function; a names defaults kwdefaults annotations annotate closure
    # control; jumps say where in `target`
    JUMP = auto()  # ->
    JUMP_IF = auto()  # x -> ; jumps when x is a: true, false, none, not_none
    RETURN = auto()  # x -> ; leaves the frame
    # iteration; an iterator is as many stack items as an operand says: itself, then NULLs (3.15: one)
    GET_ITER = auto()  # x -> iterator; a: loop, yield_from
    FOR_ITER = auto()  # it(a) -> it item; at the end jumps, with it dropped if b
    POP_ITER = auto()  # it(a) ->
    # exceptions
    RAISE = auto()  # [exception [cause]] -> ; a of them
    RERAISE = auto()  # exc -> ; with a: the instruction to blame is a below exc
    ENTER_HANDLER = auto()  # exc -> previous exc; exc is now the one being handled
    LEAVE_HANDLER = auto()  # previous -> ; previous is the one being handled again
    MATCH_EXC = auto()  # single: exc type -> exc bool; group: exc type -> rest-or-None match-or-None
    ENTER_WITH = auto()  # manager -> exit entered; a: async, entered is an awaitable
    CALL_EXIT = auto()  # exit(a) … exc -> … exc result; b: self-or-NULL lies above exit
    # generators
    START = auto()  # -> ; a: function yield yield_from await, generator_expression (which makes its iterator itself);
    #                 create_generator: -> what is sent first; it takes the stack along
    YIELD = auto()  # x -> what is sent
    SEND = auto()  # it(a) x -> it yielded; at its end jumps: it result (result alone if b)
    END_SEND = auto()  # it(a) x -> x
    THROW_CLEANUP = auto()  # it(a) x exc -> a items to drop, value of a StopIteration; another exc is raised again
    GET_AWAITABLE = auto()  # x -> awaitable; a: 1 from __aenter__, 2 from __aexit__, 0 elsewhere
    GET_AITER = auto()  # x -> async iterator
    GET_ANEXT = auto()  # ait -> ait awaitable
    END_ASYNC_FOR = auto()  # ait exc -> ; an exc other than StopAsyncIteration is raised again
    # pattern matching
    MATCH = auto()  # len: x -> x len; mapping, sequence: x -> x bool; keys: x keys -> x keys values-or-None;
    #                 class: x type names -> values-or-None, b positional


class Handler(NamedTuple):
    """Where an exception goes: the stack is cut to `depth`, then [`Instr.lasti` if `lasti`] and exc are pushed."""

    target: int
    depth: int
    lasti: bool


class Instr(NamedTuple):
    """One neutral instruction. `target` is the index it may jump to, `offset` the raw instruction's byte offset."""

    op: Op
    a: Any
    b: Any
    c: Any
    target: int | None
    handler: Handler | None
    line: int | None
    offset: int
    index: int  # type: ignore[assignment]
    positions: tuple[int | None, int | None, int | None, int | None]

    @property
    def lasti(self) -> int:
        """What a handler gets that wants to know where the exception was raised: the offset in code units."""
        return self.offset // 2
