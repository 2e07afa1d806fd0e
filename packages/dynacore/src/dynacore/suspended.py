"""A generator that captured code resumes: where it stands, as a point and a state instead of a frame of the interpreter.

An entry makes one where a generator of captured code has to outlive it inside the captured function. Entries behind it go
on inside the generator's body. Whoever else takes it as an iterator gets the interpreter's own generator, made then.
"""

from __future__ import annotations

from typing import Any

from bytecode_models import NULL, UNBOUND, Op, Program, decode, resume_generator

from . import _C


class Suspended:
    """`point` and `state` say where it stands; None while it runs and when it is finished. `real` is the generator made of it."""

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
                self.real = real_generator(data.where, data.globals, state, sent=True)
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
        if self.real is None and self.point is not None and is_protected(decode(self.point.data.where.code), self.point.data.where.index - 1):
            self.close()


def finished() -> Any:
    """An exhausted generator."""
    generator = (x for x in ())
    next(generator, None)
    return generator


def real_generator(where: Any, globals: dict, state: list[Any], *, sent: bool) -> Any:
    """The interpreter's generator for a state: its slots, the exception that it handles, its stack."""
    n = len(decode(where.code).names)
    slots = [UNBOUND if o is _C.UNBOUND else o for o in state[:n]]
    handled = state.pop(n) if where.handlers else None
    stack = [NULL if o is _C.NULL else o for o in state[n:]]
    return resume_generator(where.code, where.index, globals, slots, stack, handled=handled, sent=sent)


def is_protected(program: Program, index: int) -> bool:
    """Whether leaving a generator at this instruction for good runs code of its own: a `finally`, the end of a `with`."""
    handler = program.instrs[index].handler
    if handler is None:
        return False
    first = program.instrs[handler.target]
    return not (first.op is Op.INTRINSIC and first.a == "STOPITERATION_ERROR")
