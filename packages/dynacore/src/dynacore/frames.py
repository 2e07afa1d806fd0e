"""A frame of the machine: one activation of a Python function, executed symbolically."""

from __future__ import annotations

from types import CodeType

from bytecode_models import Instr, Program

from .values import DictObj, GenObj, Value


class Null(Value):
    """The NULL that CPython keeps on the value stack beside callables."""

    __slots__ = ()
    cls = type(None)

    def __init__(self) -> None:
        self.source = None

    def __repr__(self) -> str:
        return "NULL"


NULL = Null()


class Frame:
    """Locals, value stack and position of one activation.

    `slots` has one item per local, cell and free variable (None: unbound); cells hold `values.Cell`. `pc` is the index
    of the next instruction, `ins` the one being executed and `saved` the stack before it: a break can restore it.
    """

    __slots__ = (
        "closure",
        "code",
        "discard",
        "gen",
        "globals",
        "handled",
        "handlers",
        "ins",
        "instrs",
        "null_above",
        "pc",
        "program",
        "saved",
        "slots",
        "stack",
        "trusted",
    )

    def __init__(self, program: Program, globals: DictObj, closure: tuple[Value, ...] = (), trusted: bool = False):
        self.program = program
        self.code: CodeType = program.code
        self.instrs: tuple[Instr, ...] = program.instrs
        self.globals = globals
        self.closure = closure
        self.slots: list[Value | None] = [None] * len(program.names)
        self.stack: list[Value] = []
        self.saved: list[Value] = []
        self.pc = 0
        self.ins: Instr = program.instrs[0]
        self.handlers: list[int] = []  # stack positions where active handlers keep the previous exception
        self.handled: list[Value] = []  # the exceptions that they handle; `except` takes its own off the stack
        self.gen: GenObj | None = None  # the generator whose body this is
        self.discard = False  # the return value isn't wanted
        self.null_above = False  # a NULL goes above the return value
        self.trusted = trusted  # a polyfill of ours: its globals need no guards

    @property
    def line(self) -> int:
        """The line of the instruction being executed."""
        return self.ins.line or self.code.co_firstlineno
