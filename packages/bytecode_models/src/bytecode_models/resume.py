"""Functions and generators that enter a code object in its middle.

The user's own bytecode runs unchanged behind a prefix that fills the frame: it takes every live value out of an extra
free variable, which no slot number notices since free variables come last, and jumps.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import CellType, CodeType, CoroutineType, FunctionType, GeneratorType
from typing import Any, NamedTuple

from .decode import Program, decode
from .model import VersionModel, current
from .ops import NULL, UNBOUND, Op
from .rules import AGAIN
from .tables import Positions, Protected, read_exception_table, write_exception_table, write_locations

_ARGUMENT_FLAGS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class _Layout(NamedTuple):
    """What the prefix depends on: everything about a frame but its values."""

    at: int
    bound: tuple[int, ...]  # slots that get a value, free variables of the user excepted
    stack: tuple[_Item, ...]
    handled: bool  # is an exception being handled?


class _Item(NamedTuple):
    """A stack item: a value, NULL, or the place in the code where an exception was raised (in code units)."""

    is_value: bool
    raised_at: int | None = None


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
    if index <= program.creation:
        raise ValueError(f"{code!r} is no generator yet at instruction {index}")
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
    layout = _Layout(index, bound, _items(program, index, stack), handled is not None)
    codes = program.resumption.codes
    built = codes.get(layout)
    if built is None:
        built = codes[layout] = _Encoder(program, layout, current()).code()
    free = locals[own:] if closure_of is None else closure_of.__closure__ or ()
    values = [locals[slot] for slot in bound]
    for value, item in zip(stack, layout.stack):
        if item.is_value:
            values.append(value)
        elif item.raised_at is not None:
            values.append(Exception())
    if layout.handled:
        values.append(handled)
    closure = (*free, *map(CellType, values))
    name = program.code.co_name if closure_of is None else closure_of.__name__
    # The one parameter that may be left is overwritten by the prefix.
    return FunctionType(built, globals, name, (None,) * built.co_argcount, closure)


def _items(program: Program, index: int, stack: Sequence[Any]) -> tuple[_Item, ...]:
    """What lies on the stack."""
    shape = program.shapes[index]
    if shape is None or shape.depth != len(stack):
        wanted = "no" if shape is None else shape.depth
        raise ValueError(f"{program!r} has {wanted} stack items at {index}, not {len(stack)}")
    items = [_Item(item is not NULL) for item in stack]
    for at in shape.lastis:
        items[at] = _Item(False, stack[at])
    return tuple(items)


class _Encoder:
    """Builds the code object of a resumed frame."""

    def __init__(self, program: Program, layout: _Layout, model: VersionModel) -> None:
        self.program = program
        self.layout = layout
        self.model = model
        self.original = program.code
        handed = sum(item.is_value or item.raised_at is not None for item in layout.stack)
        self.extra = len(layout.bound) + handed + layout.handled
        self.prefix = bytearray()
        self.protected: list[Protected] = []
        self.places: list[tuple[int, Positions]] = []  # code units of the prefix, and their positions

    def code(self) -> CodeType:
        """The original code behind its prefix."""
        original = self.original
        self._fill()
        start = len(self.prefix)
        rest, target = self._rest()
        self._add(*rest)
        end = len(self.prefix)
        # A unit that is never run stands between the prefix and the original: it carries the line back.
        self._add(("JUMP_FORWARD", target // 2 + 1))
        self._add(("NOP", 0), at=(original.co_firstlineno, None, None, None))
        names = tuple(f".live{n}" for n in range(self.extra))
        return original.replace(
            co_code=bytes(self.prefix) + original.co_code,
            co_linetable=write_locations(original.co_firstlineno, self.places) + original.co_linetable,
            co_exceptiontable=self._exception_table(start, end),
            co_freevars=original.co_freevars + names,
            co_stacksize=max(original.co_stacksize, len(self.layout.stack)) + 2,
            co_argcount=self._argcount(),
            co_posonlyargcount=0,
            co_kwonlyargcount=0,
            co_flags=original.co_flags & ~_ARGUMENT_FLAGS,
        )

    def _add(self, *instructions: tuple[str, int], at: Positions | None = None) -> None:
        """Append raw instructions to the prefix, at the positions of the instruction that is entered."""
        added = self.model.assemble(instructions)
        self.prefix += added
        if added:
            self.places.append((len(added) // 2, at or self.program.instrs[self.layout.at].positions))

    def _argcount(self) -> int:
        # super() without arguments insists on a first parameter.
        return int(self.original.co_argcount > 0 and "__class__" in self.original.co_freevars)

    def _fill(self) -> None:
        """Raw instructions that make the frame what it was."""
        _, bound, stack, handled = self.layout
        frees = len(self.program.frees) + self.extra
        if frees:
            self._add(("COPY_FREE_VARS", frees))
        if self.program.is_generator or self.program.is_coroutine:
            self._add(("RETURN_GENERATOR", 0), ("POP_TOP", 0))
        self._add(("RESUME", self.model.resume_arg))
        slots = iter(range(len(self.program.names), len(self.program.names) + self.extra))
        if self._argcount() and 0 not in bound:
            self._add(("DELETE_FAST", 0))
        for slot in bound:
            self._add(*_take(next(slots)), ("STORE_FAST", slot))
        for depth, item in enumerate(stack):
            if item.raised_at is not None:
                self._add(*_take(next(slots)))
                self._raise(depth, item.raised_at)
            elif item.is_value:
                self._add(*_take(next(slots)))
            else:
                self._add(("PUSH_NULL", 0))
        if handled:
            self._add(*_take(next(slots)), ("POP_EXCEPT", 0))  # what it pops is what sys.exc_info() gives from here on

    def _raise(self, depth: int, raised_at: int) -> None:
        """Have the interpreter push the place that is to blame, by raising there: 3.14 keeps no Python integer for it.

        The place is this one, but it has the positions of the original one, which is all that can be seen of it.
        """
        start = len(self.prefix)
        self._add(("RERAISE", 0), at=list(self.original.co_positions())[raised_at])
        end = len(self.prefix)
        self.protected.append(Protected(start, end, end, depth, True))
        self._add(("POP_TOP", 0))

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

    def _exception_table(self, start: int, end: int) -> bytes:
        """The prefix's entries and the original ones; the rest of a raw instruction is protected as that one is."""
        shift = len(self.prefix)
        offset = self.program.instrs[self.layout.at].offset
        moved = [
            entry._replace(start=entry.start + shift, end=entry.end + shift, target=entry.target + shift)
            for entry in read_exception_table(self.original.co_exceptiontable)
        ]
        around = [entry for entry in moved if entry.start <= offset + shift < entry.end] if start < end else []
        rest = [Protected(start, end, entry.target, entry.depth, entry.lasti) for entry in around]
        return write_exception_table([*self.protected, *rest, *moved])


def _take(slot: int) -> tuple[tuple[str, int], tuple[str, int]]:
    """Push a value that was handed over, and let go of it."""
    return ("LOAD_DEREF", slot), ("DELETE_DEREF", slot)
