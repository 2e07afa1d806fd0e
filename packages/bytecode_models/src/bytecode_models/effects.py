"""How many items each neutral operation pushes and pops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .ops import Handler, Instr, Op

_FIXED = {
    Op.NOP: 0,
    Op.POP: -1,
    Op.COPY: 1,
    Op.SWAP: 0,
    Op.PUSH_NULL: 1,
    Op.LOAD_CONST: 1,
    Op.LOAD_LOCAL: 1,
    Op.LOAD_LOCAL_CLEAR: 1,
    Op.STORE_LOCAL: -1,
    Op.DELETE_LOCAL: 0,
    Op.MAKE_CELL: 0,
    Op.BIND_FREE_VARS: 0,
    Op.LOAD_CELL: 1,
    Op.LOAD_DEREF: 1,
    Op.STORE_DEREF: -1,
    Op.DELETE_DEREF: 0,
    Op.LOAD_GLOBAL: 1,
    Op.STORE_GLOBAL: -1,
    Op.DELETE_GLOBAL: 0,
    Op.LOAD_NAME: 1,
    Op.STORE_NAME: -1,
    Op.DELETE_NAME: 0,
    Op.LOAD_CLASS_GLOBAL: 0,
    Op.LOAD_LOCALS: 1,
    Op.LOAD_BUILD_CLASS: 1,
    Op.SETUP_ANNOTATIONS: 0,
    Op.IMPORT_NAME: -1,
    Op.IMPORT_FROM: 1,
    Op.LOAD_ATTR: 0,
    Op.LOAD_METHOD: 1,
    Op.LOAD_SPECIAL: 1,
    Op.STORE_ATTR: -2,
    Op.DELETE_ATTR: -1,
    Op.UNARY: 0,
    Op.TO_BOOL: 0,
    Op.BINARY: -1,
    Op.COMPARE: -1,
    Op.IS: -1,
    Op.CONTAINS: -1,
    Op.LOAD_ITEM: -1,
    Op.STORE_ITEM: -3,
    Op.DELETE_ITEM: -2,
    Op.BUILD_TEMPLATE: -1,
    Op.EXTEND: -1,
    Op.CONVERT: 0,
    Op.GET_ITER: 0,
    Op.JUMP: 0,
    Op.JUMP_IF: -1,
    Op.RETURN: -1,
    Op.RERAISE: -1,
    Op.ENTER_HANDLER: 1,
    Op.LEAVE_HANDLER: -1,
    Op.MATCH_EXC: 0,
    Op.ENTER_WITH: 1,
    Op.CALL_EXIT: 1,
    Op.YIELD: 0,
    Op.THROW_CLEANUP: -1,
    Op.GET_AWAITABLE: 0,
    Op.GET_AITER: 0,
    Op.GET_ANEXT: 1,
    Op.END_ASYNC_FOR: -2,
}

_BUILD = {"dict": lambda n: 1 - 2 * n, "const_key_dict": lambda n: -n}

_COMPUTED: dict[Op, Callable[[Instr, bool], int]] = {
    Op.LOAD_CLASS_DEREF: lambda instr, jump: 0 if instr.b else 1,
    Op.LOAD_SUPER: lambda instr, jump: -1 if instr.b[0] else -2,
    Op.BUILD: lambda instr, jump: _BUILD.get(instr.a, lambda n: 1 - n)(instr.b),
    Op.BUILD_INTERPOLATION: lambda instr, jump: -2 if instr.b else -1,
    Op.APPEND: lambda instr, jump: -2 if instr.a == "dict" else -1,
    Op.UNPACK: lambda instr, jump: instr.a - 1 if instr.b is None else instr.a + instr.b,
    Op.FORMAT: lambda instr, jump: -1 if instr.a else 0,
    Op.CALL: lambda instr, jump: -1 - instr.a,
    Op.CALL_EX: lambda instr, jump: -3 if instr.a else -2,
    Op.INTRINSIC: lambda instr, jump: 1 - instr.b,
    Op.MAKE_FUNCTION: lambda instr, jump: -len(instr.a),
    Op.FOR_ITER: lambda instr, jump: 1 if not jump else -instr.a if instr.b else 0,
    Op.POP_ITER: lambda instr, jump: -instr.a,
    Op.RAISE: lambda instr, jump: -instr.a,
    Op.START: lambda instr, jump: 1 if instr.a == "create_generator" else 0,
    Op.SEND: lambda instr, jump: -instr.a if jump and instr.b else 0,
    Op.END_SEND: lambda instr, jump: -instr.a,
    Op.MATCH: lambda instr, jump: -2 if instr.a == "class" else 1,
}

_NEVER_FALLS_THROUGH = frozenset({Op.JUMP, Op.RETURN, Op.RAISE, Op.RERAISE})


def effect(instr: Instr, jump: bool = False) -> int:
    """Change of the stack's depth, when the instruction jumps or goes on to the next."""
    fixed = _FIXED.get(instr.op)
    return _COMPUTED[instr.op](instr, jump) if fixed is None else fixed


class Shape(NamedTuple):
    """The value stack before an instruction: its depth, and the positions where a handler left a raising offset."""

    depth: int
    lastis: tuple[int, ...] = ()

    def after(self, change: int) -> Shape:
        """The shape when the depth has changed."""
        return self._cut(self.depth + change)

    def handled(self, handler: Handler) -> Shape:
        """The shape at the start of a handler."""
        depth, lastis = self._cut(handler.depth)
        if handler.lasti:
            return Shape(depth + 2, (*lastis, depth))
        return Shape(depth + 1, lastis)

    def _cut(self, depth: int) -> Shape:
        return Shape(depth, tuple(at for at in self.lastis if at < depth))


def shapes(instrs: Sequence[Instr]) -> tuple[Shape | None, ...]:
    """The stack before each instruction, None where control can't come. Paths that disagree are an error."""
    found: list[Shape | None] = [None] * len(instrs)
    todo = [(0, Shape(0))]
    while todo:
        index, shape = todo.pop()
        known = found[index]
        if known is not None:
            if known != shape:
                raise ValueError(f"instruction {index} is reached with stacks {known} and {shape}")
            continue
        found[index] = shape
        instr = instrs[index]
        if instr.handler is not None:
            todo.append((instr.handler.target, shape.handled(instr.handler)))
        if instr.target is not None:
            todo.append((instr.target, shape.after(effect(instr, jump=True))))
        if instr.op not in _NEVER_FALLS_THROUGH:
            todo.append((index + 1, shape.after(effect(instr))))
    return tuple(found)
