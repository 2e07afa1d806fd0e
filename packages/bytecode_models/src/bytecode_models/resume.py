"""Functions and generators that enter a code object in its middle.

The user's own bytecode runs unchanged behind a prefix that fills the frame: it takes every live value out of an extra
free variable, which no slot number notices since free variables come last, and jumps.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from types import CellType, CodeType, CoroutineType, FunctionType, GeneratorType
from typing import Any, NamedTuple

from .decode import Program, decode
from .model import VersionModel, current
from .ops import NULL, UNBOUND, Op
from .rules import AGAIN
from .tables import Protected, read_exception_table, write_exception_table, write_locations

_ARGUMENT_FLAGS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class _Layout(NamedTuple):
    """What the prefix depends on: everything about a frame but its values."""

    at: int
    bound: tuple[int, ...]  # slots that get a value, free variables of the user excepted
    stack: tuple[bool, ...]  # per item: is it a value, not NULL?
    handled: bool  # is an exception being handled?


def resume_function(
    code: CodeType,
    index: int,
    globals: dict[str, Any],
    locals: Sequence[Any],
    stack: Sequence[Any],
    *,
    handled: BaseException | None = None,
    closure_of: FunctionType | None = None,
) -> FunctionType:
    """A function of no arguments, to be called once, that runs the rest of a frame of `code` from instruction `index`.

    `locals` has one item per slot: a value, UNBOUND, or the cell itself where the slot is a cell or free variable (the
    cells of free variables come from `closure_of` where it is given). `stack` is the value stack, bottom to top, with
    NULL where an item is empty, and `Instr.lasti` where a handler asks for it. `handled` is the exception that the
    frame is handling (the one before it lies on `stack`, where ENTER_HANDLER put it); without it sys.exc_info() stays
    as it is. `index` may lie inside a raw instruction.
    """
    program = decode(code)
    if not program.is_function or program.is_generator or program.is_coroutine or program.is_async_generator:
        raise ValueError(f"{code!r} isn't the code of a plain function")
    return _resume(program, index, globals, locals, stack, handled, closure_of)


def resume_generator(
    code: CodeType,
    index: int,
    globals: dict[str, Any],
    locals: Sequence[Any],
    stack: Sequence[Any],
    *,
    handled: BaseException | None = None,
    closure_of: FunctionType | None = None,
    sent: bool = True,
) -> GeneratorType[Any, Any, Any] | CoroutineType[Any, Any, Any]:
    """A generator or coroutine of `code` in the middle of its life; arguments as for `resume_function`.

    With `sent` it is suspended in the YIELD before `index`: what it is resumed with is pushed on `stack`. Without, the
    first `next` runs it from `index` on as it is.
    """
    program = decode(code)
    if not program.is_generator and not program.is_coroutine:
        raise ValueError(f"{code!r} isn't the code of a generator or coroutine")
    if not sent:
        return _resume(program, index, globals, locals, stack, handled, closure_of)()
    if program.instrs[index - 1].op is not Op.YIELD:
        raise ValueError(f"instruction {index} of {code!r} isn't behind a YIELD")
    # Running the YIELD itself suspends the generator with everything in place that throw() and close() look at.
    generator = _resume(program, index - 1, globals, locals, [*stack, None], handled, closure_of)()
    generator.send(None)
    return generator


def _resume(
    program: Program,
    index: int,
    globals: dict[str, Any],
    locals: Sequence[Any],
    stack: Sequence[Any],
    handled: BaseException | None,
    closure_of: FunctionType | None,
) -> FunctionType:
    if len(locals) != len(program.names):
        raise ValueError(f"{program!r} has {len(program.names)} slots, not {len(locals)}")
    own = len(locals) - len(program.frees)
    bound = tuple(slot for slot in range(own) if locals[slot] is not UNBOUND)
    layout = _Layout(index, bound, tuple(item is not NULL for item in stack), handled is not None)
    codes = program.resumption.codes
    built = codes.get(layout)
    if built is None:
        built = codes[layout] = _Encoder(program, layout, current()).code()
    code, shift = built
    stack = list(stack)
    for at in _lastis(program, layout):
        stack[at] += shift
    free = locals[own:] if closure_of is None else closure_of.__closure__ or ()
    values = [locals[slot] for slot in bound] + [item for item in stack if item is not NULL]
    if layout.handled:
        values.append(handled)
    closure = (*free, *map(CellType, values))
    name = code.co_name if closure_of is None else closure_of.__name__
    # The one parameter that may be left is overwritten by the prefix.
    return FunctionType(code, globals, name, (None,) * code.co_argcount, closure)


def _lastis(program: Program, layout: _Layout) -> tuple[int, ...]:
    """Where on the stack lie offsets, which the prefix shifts."""
    shape = program.shapes[layout.at]
    if shape is None or shape.depth != len(layout.stack):
        wanted = "no" if shape is None else shape.depth
        raise ValueError(f"{program!r} has {wanted} stack items at {layout.at}, not {len(layout.stack)}")
    return shape.lastis


class _Encoder:
    """Builds the code object of a resumed frame."""

    def __init__(self, program: Program, layout: _Layout, model: VersionModel) -> None:
        self.program = program
        self.layout = layout
        self.model = model
        self.original = program.code
        self.extra = len(layout.bound) + sum(layout.stack) + layout.handled

    def code(self) -> tuple[CodeType, int]:
        """The code, and how many units stand before the original ones."""
        original, model = self.original, self.model
        head = model.assemble(self._fill())
        rest, target = self._rest()
        tail = model.assemble(rest)
        # A unit that is never run stands between the prefix and the original: it carries the line back.
        prefix = head + tail + model.assemble([("JUMP_FORWARD", target // 2 + 1)])
        units = len(prefix) // 2
        prefix += model.assemble([("NOP", 0)])
        instr = self.program.instrs[self.layout.at]
        names = tuple(f".live{n}" for n in range(self.extra))
        code = original.replace(
            co_code=prefix + original.co_code,
            co_linetable=write_locations(units, original.co_firstlineno, instr.positions) + original.co_linetable,
            co_exceptiontable=self._exception_table(len(prefix), len(head), len(head) + len(tail)),
            co_freevars=original.co_freevars + names,
            co_stacksize=max(original.co_stacksize, len(self.layout.stack)) + 2,
            co_argcount=self._argcount(),
            co_posonlyargcount=0,
            co_kwonlyargcount=0,
            co_flags=original.co_flags & ~_ARGUMENT_FLAGS,
        )
        return code, units + 1

    def _argcount(self) -> int:
        # super() without arguments insists on a first parameter.
        return int(self.original.co_argcount > 0 and "__class__" in self.original.co_freevars)

    def _fill(self) -> Iterator[tuple[str, int]]:
        """Raw instructions that make the frame what it was."""
        _, bound, stack, handled = self.layout
        frees = len(self.program.frees) + self.extra
        if frees:
            yield "COPY_FREE_VARS", frees
        if self.program.is_generator or self.program.is_coroutine:
            yield "RETURN_GENERATOR", 0
            yield "POP_TOP", 0
        yield "RESUME", self.model.resume_arg
        slots = iter(range(len(self.program.names), len(self.program.names) + self.extra))
        if self._argcount() and 0 not in bound:
            yield "DELETE_FAST", 0
        for slot in bound:
            yield from _take(next(slots))
            yield "STORE_FAST", slot
        for is_value in stack:
            if is_value:
                yield from _take(next(slots))
            else:
                yield "PUSH_NULL", 0
        if handled:
            yield from _take(next(slots))
            yield "POP_EXCEPT", 0  # what it pops is what sys.exc_info() gives from here on

    def _rest(self) -> tuple[tuple[tuple[str, int], ...], int]:
        """Raw instructions that finish the raw instruction in whose middle we are, and the offset to go on at."""
        index, resumption = self.layout.at, self.program.resumption
        rest = resumption.rests.get(index)
        if rest is None:
            if self.program.instrs[index].op is Op.BIND_FREE_VARS:  # the prefix did that
                index += 1
            return (), resumption.starts[index]
        if rest[-1] == AGAIN:
            return rest[:-1], resumption.starts[index]
        return rest, resumption.ends[index]

    def _exception_table(self, shift: int, start: int, end: int) -> bytes:
        """The original table moved by `shift`; the rest of a raw instruction is protected as that one is."""
        offset = self.program.instrs[self.layout.at].offset
        entries = list(read_exception_table(self.original.co_exceptiontable))
        moved = [
            entry._replace(start=entry.start + shift, end=entry.end + shift, target=entry.target + shift)
            for entry in entries
        ]
        if start < end:
            around = [entry for entry in moved if entry.start <= offset + shift < entry.end]
            moved[:0] = [Protected(start, end, entry.target, entry.depth, entry.lasti) for entry in around]
        return write_exception_table(moved)


def _take(slot: int) -> Iterator[tuple[str, int]]:
    """Push a value that was handed over, and let go of it."""
    yield "LOAD_DEREF", slot
    yield "DELETE_DEREF", slot
