"""A generator that captured code resumes: where it stands, as a point and a state, not a frame of the interpreter.

An entry makes one where a generator of captured code has to outlive it inside the captured function. Entries behind it
go on inside the generator's body. Whoever else takes it as an iterator gets the interpreter's own generator, made then.
"""

from __future__ import annotations

import builtins
from types import ModuleType
from typing import Any

from bytecode_models import NULL, UNBOUND, Op, Program, decode, resume_generator

from . import _C


class Suspended:
    """`point` and `state` say where it stands; None while it runs or is finished. `real` is a generator made of it."""

    __slots__ = ("__weakref__", "point", "real", "state")

    def __init__(self, point: Any = None, state: list[Any] | None = None):
        self.point = point
        self.state = state
        self.real: Any = None

    def move(self, point: Any, state: list[Any] | None) -> None:
        """Stand elsewhere."""
        self.point = point
        self.state = state

    def generator(self) -> Any:
        """The interpreter's own generator, standing where this one stood."""
        if self.real is None:
            if self.point is None:
                self.real = finished()
            else:
                data, state = self.point.data, self.state
                self.move(None, None)
                self.real = real_generator(data.where, data.globals, state or [], sent=True)
        return self.real

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return next(self.generator())

    def send(self, value: Any) -> Any:
        """Resume with a value."""
        return self.generator().send(value)

    def throw(self, *args: Any) -> Any:
        """Resume with an exception."""
        return self.generator().throw(*args)

    def close(self) -> None:
        """Finish it."""
        self.generator().close()

    def __del__(self) -> None:
        if self.real is None and self.point is not None:
            data = self.point.data
            if not closes_silently(decode(data.where.code), data.where.index - 1, data.globals):
                self.close()


def finished() -> Any:
    """An exhausted generator."""
    generator = (x for x in "")
    next(generator, None)
    return generator


def real_generator(where: Any, globals: dict, state: list[Any], *, sent: bool) -> Any:
    """The interpreter's generator for a state: its slots, the exception that it handles, its stack."""
    n = len(decode(where.code).names)
    slots = [UNBOUND if o is _C.UNBOUND else o for o in state[:n]]
    handled = state.pop(n) if where.handlers else None
    stack = [NULL if o is _C.NULL else o for o in state[n:]]
    return resume_generator(where.code, where.index, globals, slots, stack, handled=handled, sent=sent)


#: what a handler does that is passed by: nothing that anybody could notice
SILENT = frozenset((Op.NOP, Op.COPY, Op.SWAP, Op.POP, Op.PUSH_NULL, Op.ENTER_HANDLER, Op.LEAVE_HANDLER, Op.JUMP))


def closes_silently(program: Program, index: int, globals: dict) -> bool:
    """Whether GeneratorExit at this instruction leaves the generator without running code of the program.

    It follows the handlers: those for other exceptions let it pass, a `finally` or the end of a `with` doesn't.
    """
    handler = program.instrs[index].handler
    for _ in range(len(program.instrs)):
        if handler is None:
            return True
        end = passes(program, handler.target, globals)
        if end is None:
            return False
        handler = program.instrs[end].handler
    return False


def passes(program: Program, index: int, globals: dict) -> int | None:
    """The instruction at which a handler raises GeneratorExit again; None when it does more than that."""
    classes: list[Any] = []
    for _ in range(len(program.instrs)):
        ins = program.instrs[index]
        index += 1
        if ins.op in (Op.RERAISE, Op.THROW_CLEANUP):
            return ins.index
        if ins.op is Op.LOAD_GLOBAL:
            classes.append(globals.get(ins.a, getattr(builtins, ins.a, None)))
        elif ins.op is Op.LOAD_ATTR and classes and isinstance(classes[-1], ModuleType):
            classes[-1] = vars(classes[-1]).get(ins.a)
        elif ins.op is Op.MATCH_EXC and ins.a == "single":
            if not all(isinstance(cls, type) and not issubclass(GeneratorExit, cls) for cls in classes):
                return None
            classes.clear()
        elif ins.op is Op.JUMP_IF and ins.a == "false" or ins.op is Op.JUMP:
            index = ins.target  # type: ignore[assignment]
        elif (
            ins.op not in SILENT
            and not (ins.op is Op.BUILD and ins.a == "tuple")
            and not (ins.op is Op.INTRINSIC and ins.a == "STOPITERATION_ERROR")
        ):
            return None
    return None
