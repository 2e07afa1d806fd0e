"""Code objects to neutral instructions."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterator
from functools import cached_property
from types import CodeType
from typing import Any

from .effects import Shape, shapes
from .image import Code
from .model import VersionModel, current
from .ops import Handler, Instr, Op
from .rules import Raw, Rule, Step
from .tables import read_exception_table


class Program:
    """A code object as neutral instructions.

    `names` has a name per slot; `cells` are the slots whose cell is made by this code (parameters among them), `frees`
    those that hold a cell of the closure. The code object itself is referred to weakly, so that a cached program
    doesn't keep it alive.
    """

    def __init__(self, code: Code, instrs: tuple[Instr, ...], resumption: Resumption) -> None:
        self._code = weakref.ref(code)
        self.instrs = instrs
        self.names = slot_names(code)
        self.nlocals = code.co_nlocals
        self.cells = frozenset(self.names.index(name) for name in code.co_cellvars)
        self.frees = tuple(range(len(self.names) - len(code.co_freevars), len(self.names)))
        self.is_generator = bool(code.co_flags & inspect.CO_GENERATOR)
        self.is_coroutine = bool(code.co_flags & inspect.CO_COROUTINE)
        self.is_async_generator = bool(code.co_flags & inspect.CO_ASYNC_GENERATOR)
        #: Is it the code of a function, rather than of a class body or a module?
        self.is_function = bool(code.co_flags & inspect.CO_OPTIMIZED and code.co_flags & inspect.CO_NEWLOCALS)
        self.resumption = resumption

    @property
    def code(self) -> Any:
        """The code object (of another release: its image), which must still be alive."""
        code = self._code()
        if code is None:
            raise ReferenceError("the code object of this program is gone")
        return code

    @cached_property
    def shapes(self) -> tuple[Shape | None, ...]:
        """The value stack before each instruction; None where control can't come."""
        return shapes(self.instrs)

    @cached_property
    def depths(self) -> tuple[int | None, ...]:
        """Number of stack items (NULLs included) before each instruction; None where control can't come."""
        return tuple(shape and shape.depth for shape in self.shapes)

    @cached_property
    def creation(self) -> int:
        """The instruction that makes the generator or coroutine; -1 where there is none."""
        made = (instr.index for instr in self.instrs if instr.op is Op.START and instr.a == "create_generator")
        return next(made, -1)

    def __repr__(self) -> str:
        return f"<Program of {self._code()!r}, {len(self.instrs)} instructions>"


class Resumption:
    """What is needed to enter a program in its middle: where the raw instructions begin and end, how to do the rest
    of those that stand for several neutral ones, and the codes built so far."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.rests: dict[int, tuple[tuple[str, int], ...]] = {}
        self.codes: dict[Any, CodeType] = {}  # per layout


def slot_names(code: Code) -> tuple[str, ...]:
    """A name for every slot: locals, cells that aren't parameters, free variables."""
    varnames = code.co_varnames
    return (*varnames, *(name for name in code.co_cellvars if name not in varnames), *code.co_freevars)


_programs: dict[int, tuple[weakref.ref[Code], Program]] = {}


def decode(code: Code, model: VersionModel | None = None) -> Program:
    """The program of `code`, decoded once in its life. Code of another release needs its model."""
    if model is not None and model is not current():
        return _Decoder(code, model).program()
    # Code objects compare by value, and equal ones may come from different files: the key is the identity.
    key = id(code)
    known = _programs.get(key)
    if known is not None and known[0]() is code:
        return known[1]
    program = _Decoder(code, current()).program()
    _programs[key] = (weakref.ref(code, lambda ref: _forget(key, ref)), program)
    return program


def _forget(key: int, ref: weakref.ref[Code]) -> None:
    # A new code object may have taken the address, and its program the key, before this call.
    known = _programs.get(key)
    if known is not None and known[0] is ref:
        del _programs[key]


def raw_instructions(code: Code, model: VersionModel) -> Iterator[tuple[int, Rule, Raw]]:
    """(opcode, rule, the instruction) for each instruction with its EXTENDED_ARGs folded; one `Raw` serves for all."""
    raw = Raw(code, model.numbers)
    data = raw.data
    extended = model.numbers["EXTENDED_ARG"]
    table = model.table
    offset = start = high = 0
    while offset < len(data):
        opcode = data[offset]
        value = high << 8 | data[offset + 1]
        if opcode == extended:
            high = value
            offset += 2
            continue
        caches, rule = table[opcode]
        if rule is None:
            raise ValueError(f"opcode {opcode} at offset {offset} of {code!r} is unknown to the model {model.release}")
        raw.arg, raw.start, raw.offset = value, start, offset
        offset += 2 + 2 * caches
        raw.end = offset
        yield opcode, rule, raw
        start, high = offset, 0


class _Decoder:
    """One pass over a code object, then another that turns offsets into indexes."""

    def __init__(self, code: Code, model: VersionModel) -> None:
        self.code = code
        self.model = model
        self.resumption = Resumption()
        self.drafts: list[tuple[Op, Any, Any, Any, int | None, int]] = []
        self.index_at: dict[int, int] = {}

    def program(self) -> Program:
        # Instructions that are folded into the one behind them (EXTENDED_ARG, KW_NAMES) belong to it: it begins there.
        begin: int | None = None
        for _, rule, raw in raw_instructions(self.code, self.model):
            first = len(self.drafts)
            if begin is None:
                begin = raw.start
            self.index_at[raw.start] = self.index_at[raw.offset] = first
            try:
                for step in rule:
                    if step.when is None or step.when(raw):
                        self._add(step, raw, first)
            except LookupError:
                raise ValueError(f"{self._place(raw.offset)} has operand {raw.arg}, which means nothing") from None
            count = len(self.drafts) - first
            if count:
                self.resumption.starts += [begin] * count
                self.resumption.ends += [raw.end] * count
                raw.folded = begin = None
        return Program(self.code, self._resolve(), self.resumption)

    def _add(self, step: Step, raw: Raw, first: int) -> None:
        a, b, c = (operand(raw) if callable(operand) else operand for operand in step[1:4])
        if step.op is None:
            raw.folded = a
            return
        index = len(self.drafts)
        if index > first:
            self.resumption.rests[index] = tuple(
                (name, operand(raw) if callable(operand) else operand) for name, operand in step.rest
            )
        self.drafts.append((step.op, a, b, c, step.target and step.target(raw), raw.offset))

    def _resolve(self) -> tuple[Instr, ...]:
        positions = list(self.code.co_positions())
        handlers = self._handlers()
        instrs = []
        for index, (op, a, b, c, target, offset) in enumerate(self.drafts):
            place = positions[offset // 2]
            to = None if target is None else self._index(offset, target)
            instrs.append(Instr(op, a, b, c, to, handlers.get(offset), place[0], offset, index, place))
        return tuple(instrs)

    def _index(self, offset: int, target: int) -> int:
        """The instruction to which the one at `offset` jumps."""
        index = self.index_at.get(target)
        if index is None:
            raise ValueError(f"{self._place(offset)} jumps into an instruction")
        return index

    def _place(self, offset: int) -> str:
        return f"opcode {self.code.co_code[offset]} at offset {offset} of {self.code!r}"

    def _handlers(self) -> dict[int, Handler]:
        found: dict[int, Handler] = {}
        for entry in read_exception_table(self.code.co_exceptiontable):
            handler = Handler(self.index_at[entry.target], entry.depth, entry.lasti)
            found.update(dict.fromkeys(range(entry.start, entry.end, 2), handler))
        return found
