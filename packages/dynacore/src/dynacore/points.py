"""Where execution can be entered, and how the interpreter goes on from there without us."""

from __future__ import annotations

import functools
import linecache
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from bytecode_models import NULL, UNBOUND, Op, decode, resume_function

from . import _C
from .library.polyfills.support import without_our_lines
from .library.stand_ins import real_object
from .recompiles import Misses
from .shims import is_shim
from .suspended import Suspended, real_generator

Point = _C.Point


@dataclass(frozen=True)
class Where:
    """What tells points of one compiled function apart."""

    code: CodeType
    index: int
    depth: int
    handlers: tuple[int, ...] = ()  # stack positions where active handlers keep the previous exception
    waits: int | None = None  # the instruction that waits for a value here
    drop: bool = False  # the value that arrives isn't wanted
    plain: bool = False  # never captured
    trusted: bool = False  # code of a polyfill
    globals_id: int = 0
    null_above: bool = False  # a NULL goes above the value that arrives


class PointTable:
    """The points of one compiled function, made on demand."""

    def __init__(self, miss: Callable[[Any, list[Any]], Any]):
        self.miss = miss
        self.points: dict[Where, Any] = {}

    def get(self, where: Where, globals: dict) -> Any:
        """The point at `where`."""
        point = self.points.get(where)
        if point is None:
            point = self.points[where] = self.make(where, globals)
        return point

    def make(self, where: Where, globals: dict) -> Any:
        """A new point with its fallback and handlers."""
        program = decode(where.code)
        at = program.instrs[where.index if where.waits is None else where.waits]
        data = PointData(where, globals, self)
        point = Point(None if where.plain else self.miss, data.rest, code=where.code, line=at.line or 0, data=data)
        # What is raised again keeps the traceback that it has.
        again = where.waits is not None and (at.op is Op.RERAISE or at.op is Op.RAISE and not at.a)
        point.visible = not where.trusted and not again
        self.points[where] = point  # a handler may lead back here
        below = len(program.names) + program.is_generator
        if where.handlers:
            point.handled = below
            below += 1
        if where.waits is not None:
            point.handlers = self.handlers(where, program.instrs[where.waits], below, globals)
        return point

    def handlers(self, where: Where, ins: Any, below: int, globals: dict) -> tuple:
        """Where exceptions go that arrive while a frame waits in `ins`; the value stack begins at `below`.

        Exceptions leave an active handler only through code that ends it: the target's active handlers are `where`'s.
        """
        found: list[tuple] = []
        if ins.op is Op.FOR_ITER:
            depth = where.depth - 1 - (ins.a if ins.b else 0)
            out = self.get(
                Where(
                    where.code, ins.target, depth, where.handlers, None, False, False, where.trusted, where.globals_id
                ),
                globals,
            )
            found.append((StopIteration, out, below + depth, False, None))
        if ins.handler is not None:
            target, depth, lasti = ins.handler
            there = Where(
                where.code,
                target,
                depth + lasti + 1,
                where.handlers,
                None,
                False,
                False,
                where.trusted,
                where.globals_id,
            )
            found.append((BaseException, self.get(there, globals), below + depth, True, ins.lasti if lasti else None))
        return tuple(found)

    def clear(self) -> None:
        """Forget all entries and points inside functions."""
        for point in self.points.values():
            point.clear()
        self.points.clear()


def arrive(where: Where, stack: list[Any], null: Any) -> None:
    """What becomes of the value that arrived last on a stack."""
    if where.drop:
        stack.pop()
    if where.null_above:
        stack.append(null)


def unseen(rest: Callable[[], Any]) -> Any:
    """Run the rest of a polyfill: what it raises has no traceback line for it."""
    try:
        return rest()
    except BaseException as error:
        failed = error
    return _C.resume_raise([], without_our_lines(failed))


class PointData:
    """What Python keeps with a point."""

    def __init__(self, where: Where, globals: dict, table: PointTable):
        self.where = where
        self.globals = globals
        self.table = weakref.ref(table)
        self.forget()

    def forget(self) -> None:
        """As before the first capture."""
        self.dynamic: set[tuple] = set()  # paths of scalars that varied
        self.broke = False  # an entry of this point ends in a break
        self.skip = False  # captured no more
        self.told = False  # that the recompile limit was reached
        self.misses = Misses()

    def rest(self, state: list[Any]) -> Callable[[], Any]:
        """A function that lets the interpreter run the rest of the frame, or a generator's up to its next `yield`."""
        where = self.where
        program = decode(where.code)
        n = len(program.names)
        if program.is_generator:
            holder = state.pop(n)
            arrive(where, state, _C.NULL)
            holder.real = real_generator(where, self.globals, state, sent=False)
            return holder.real.__next__
        if not where.trusted:
            state[:] = [o.generator() if type(o) is Suspended else real_object(o) for o in state]
        slots = [UNBOUND if o is _C.UNBOUND else o for o in state[:n]]
        handled = state.pop(n) if where.handlers else None
        stack = [NULL if o is _C.NULL else o for o in state[n:]]
        state.clear()
        arrive(where, stack, NULL)
        rest = resume_function(where.code, where.index, self.globals, slots, stack, handled=handled)
        return functools.partial(unseen, rest) if where.trusted else rest

    def describe(self) -> str:
        """Where this is, for messages."""
        if is_shim(self.where.code):
            return f"the call of {self.where.code.co_qualname}"
        line = decode(self.where.code).instrs[self.where.index].line or self.where.code.co_firstlineno
        text = linecache.getline(self.where.code.co_filename, line).strip()
        return f'File "{self.where.code.co_filename}", line {line}, in {self.where.code.co_qualname}\n    {text}'
