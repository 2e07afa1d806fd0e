"""The machine: executes neutral instructions over symbolic values, one frame on top of another.

Instruction handlers (`handlers_*.py`) hold stack discipline; what an operation means is in `objects/`, and what is
known of callables written in C is in `library/`. The machine does nothing to the user's objects.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, GeneratorType
from typing import Any, NoReturn

from bytecode_models import Op, decode

from .._C import NULL as NULL_OBJECT
from .._C import UNBOUND
from ..frames import NULL, Frame
from ..library import load as load_library
from ..objects import Objects
from ..reasons import Break
from ..sources import Source
from ..suspended import Suspended
from ..values import PUSHED, Cell, Const, ExcObj, GenObj, Known, ListObj, Obj, Pending, Raised, Value

#: one handler per neutral operation, filled by the `handlers_*` modules
HANDLERS: list[Callable | None] = [None] * (max(Op) + 1)


def handles(*ops: Op) -> Callable[[Callable], Callable]:
    """Register the handler of neutral operations: `handler(machine, frame, instr)`."""

    def register(function: Callable) -> Callable:
        for op in ops:
            HANDLERS[op] = function
        return function

    return register


#: functions that look at their caller's frame: they run for real, with all locals in place
FRAME_READERS = (locals, vars, dir, eval, exec, sys._getframe)


#: those that look at the frames below, too
CALLER_READERS = tuple(getattr(sys, name) for name in ("_getframe", "_getframemodulename") if hasattr(sys, name))


#: how many instructions may run without a tensor operation in between
STRETCH = 50_000


#: kinds of values that may be an object from outside with code that runs at its end
MAY_END_LOUDLY = (Known, Obj, Pending, GenObj)


def ends_loudly(obj: Any) -> bool:
    """Whether code may run when the object is freed."""
    return obj is not None and (type(obj) is GeneratorType or hasattr(type(obj), "__del__"))


class Finished(Exception):
    """The outermost frame returned, or yielded where it is the body of a generator."""

    def __init__(self, value: Value):
        self.value = value


class Stopped(Exception):
    """The current instruction can't be expressed; the frames stand as before it."""

    def __init__(self, cause: Break):
        self.cause = cause


class Machine(Objects):
    """One capture: the frames, what was read from outside (`root`), what was changed (`touched`), and the graph."""

    def __init__(
        self,
        graph_factory: Callable[[Machine], Any],
        options: Any,
        forced: frozenset = frozenset(),
        dynamic: frozenset = frozenset(),
    ):
        load_library()
        self.root = Source(None, "root")
        self.this: Source | None = None  # where a start's function is
        self.frames: list[Frame] = self.root.frames
        self.options = options
        self.forced = forced  # (code, index) of instructions that must break
        self.dynamic = dynamic  # paths of scalars that varied: taken as Host
        self.sizes_vary: bool | None = None  # whether sizes of arguments stay open: True, False, or those that varied
        self.cut: Callable[[CodeType, int], bool] | None = None
        self.steps = 0
        self.open_loops = False  # whether a loop over a range that varied stays one: where it breaks anyway
        self.limit = STRETCH
        self.ops_seen = 0
        self.open_scalars = False  # whether numbers of the state stay open: in the middle of a function they do
        self.outside = sys.exception()  # what the entry's caller is handling
        super().__init__()
        self.graph = graph_factory(self)

    # -- the start -----------------------------------------------------------------------------------------------------

    def enter(
        self, frame: Frame, state: list[Any], index: int, handlers: tuple[int, ...], drop: bool, null_above: bool
    ) -> None:
        """Stand at instruction `index` of the outermost frame with the state of a `Point`.

        The value that arrived last is dropped, or has a NULL put above it, where asked for.
        """
        self.outermost = frame
        self.frames.append(frame)
        self.open_scalars = index > 0
        self.given_at = sources = [self.root.child("arg", i) for i in range(len(state))]
        if index and frame.program.is_generator:
            n = len(frame.slots)
            self.run_inside(frame, state[n], sources[n])
            state, sources = state[:n] + state[n + 1 :], sources[:n] + sources[n + 1 :]
        self.fill(frame, state, sources, len(frame.slots) if index else len(state), handlers)
        if drop:
            frame.stack.pop()
        if null_above:
            frame.stack.append(NULL)
        frame.pc = index
        self.given = [v for v in (*frame.slots, *frame.stack) if v is not None and type(v) is not Const]

    def fill(self, frame: Frame, objects: list[Any], sources: list[Source], n: int, handlers: tuple[int, ...]) -> None:
        """Give a frame its `n` slots, the exception that it handles, and its stack."""
        for i, (obj, source) in enumerate(zip(objects[:n], sources)):
            if obj is UNBOUND:
                source.check("is", UNBOUND)
            elif type(obj) is CellType:
                frame.slots[i] = self.wrap(obj, source)
            else:
                frame.slots[i] = pending = Pending(obj, source)
                self.keep.append(pending)
        values: list[Value] = []
        for obj, source in zip(objects[n:], sources[n:]):
            if obj is NULL_OBJECT:
                source.check("is", NULL_OBJECT)
                values.append(NULL)
            else:
                values.append(self.wrap(obj, source))
        innermost = values[:1] if handlers else []
        frame.stack = values[len(innermost) :]
        frame.handlers = list(handlers)
        # What a handler handles is what the one inside it keeps as the previous exception.
        frame.handled = [frame.stack[position] for position in handlers[1:]] + innermost

    def run_inside(self, frame: Frame, holder: Any, source: Source) -> None:
        """The outermost frame is the body of a running generator."""
        source.check("type", Suspended)
        gen = frame.gen = GenObj(frame, None, holder, source)
        gen.running = gen.started = True
        self.seen[id(holder)] = gen
        self.touch(gen)

    def suspended_value(self, holder: Suspended, source: Source) -> Value:
        """A generator that an earlier entry left, ready to be resumed in here."""
        source.check("type", Suspended)
        if holder.real is not None:
            return self.wrap(holder.real, source.child("slot", "real"))
        source.child("slot", "real").check("is", None)
        source.child("slot", "point").check("is", holder.point)
        gen = GenObj(None, None, holder, source)
        if holder.point is not None:
            data = holder.point.data
            frame = gen.frame = Frame(decode(data.where.code), self.globals_of(data.globals), (), data.where.trusted)
            frame.gen = gen
            items = source.child("slot", "state")
            state: list[Any] = holder.state  # type: ignore[assignment]
            self.fill(
                frame, state, [items.child("item", i) for i in range(len(state))], len(frame.slots), data.where.handlers
            )
            frame.pc = data.where.index
            frame.ins = frame.instrs[frame.pc - 1]
            gen.started = True
        return gen

    def nothing_dropped(self) -> bool:
        """Whether all lives that lived at the start: the frame holds what it was given, and nothing of it changed."""
        frame = self.outermost
        held = {id(getattr(v, "obj", v)) for v in (*frame.slots, *frame.stack)}
        changed = any(v.obj is not None for v in self.touched.values())
        return not changed and all(id(getattr(v, "obj", v)) in held for v in self.given)

    def load_pending(self, frame: Frame, slot: int) -> Value:
        """Look at a local for the first time."""
        pending = frame.slots[slot]
        value = frame.slots[slot] = self.wrap(pending.obj, pending.source)  # type: ignore[union-attr, arg-type]
        return value

    def check_drop(self, frame: Frame, value: Value | None) -> None:
        """`frame` lets go of a value: one whose end may run code has to be gone before anything else happens."""
        if type(value) in MAY_END_LOUDLY and ends_loudly(value.obj):  # type: ignore[union-attr]
            holders = [v for f in self.frames for v in (*f.slots, *f.stack) if v is value]
            if len(holders) == 1:
                raise Break("finalizer", type(value.obj).__name__)  # type: ignore[union-attr]

    # -- frames --------------------------------------------------------------------------------------------------------

    def push_frame(self, frame: Frame) -> Any:
        """Make `frame` the current one; its return value becomes the result of the caller's instruction."""
        if len(self.frames) >= self.options.inline_depth_limit:
            raise Break("recursion-depth", frame.code.co_qualname)
        self.frames.append(frame)
        return PUSHED

    def push_python(self, function: FunctionType, args: list[Value], kwargs: dict[str, Value] | None = None) -> Any:
        """Run one of our own Python functions (a polyfill) as a frame."""
        return self.call_function_object(self.const(function), args, kwargs or {}, trusted=True)

    def return_value(self, frame: Frame, value: Value) -> None:
        """Leave `frame` with `value`."""
        frames = self.frames
        if frame.gen is not None and len(frames) > 1:
            self.unwind(self.make_exception(StopIteration, [value] if not self.is_none(value) else []), finished=1)
            return
        if len(frames) == 1:
            if frame.gen is not None:
                frame.gen.frame, frame.gen.running = None, False
            raise Finished(value)
        frames.pop()
        if not frame.discard:
            frames[-1].stack.append(value)
        if frame.null_above:
            frames[-1].stack.append(NULL)

    def yield_value(self, frame: Frame, value: Value) -> None:
        """Suspend the generator whose body `frame` is and hand `value` to the frame that resumed it."""
        if frame.gen is None:
            raise Break("generator-unsupported", frame.code.co_qualname)
        frame.gen.running = False
        if len(self.frames) == 1:
            raise Finished(value)
        self.frames.pop()
        self.frames[-1].stack.append(value)

    def resume_generator(self, gen: Any, sent: Value) -> Any:
        """Run a suspended generator: the next value it yields becomes the current instruction's result."""
        if gen.running:
            self.throw(ValueError, "generator already executing")
        if gen.frame is None:
            self.throw(StopIteration)
        self.touch(gen)
        gen.running = True
        gen.started = True
        gen.frame.stack.append(sent)
        return self.push_frame(gen.frame)

    def throw_into(self, gen: Any, exc: ExcObj) -> Any:
        """Raise `exc` where a suspended generator stands; what it yields next becomes the instruction's result."""
        if gen.running:
            self.throw(ValueError, "generator already executing")
        if gen.frame is None or not gen.started:
            gen.frame = None
            self.raise_from(exc)
        self.touch(gen)
        gen.running = True
        self.push_frame(gen.frame)
        try:
            self.unwind(exc)
        except Break:
            self.frames.pop()
            gen.running = False
            raise
        return PUSHED

    # -- exceptions ----------------------------------------------------------------------------------------------------

    def unwind(self, exc: ExcObj, finished: int = 0, again: bool = False) -> None:
        """Go to the innermost handler for `exc`; without any, the raising instruction is run for real.

        `finished` frames on top have returned and only pass the exception on (a generator's StopIteration). What is
        raised `again` has its traceback line for the raising frame.
        """
        depth = len(self.frames) - 1
        passed = []
        while depth >= 0:
            frame = self.frames[depth]
            if depth < len(self.frames) - finished and (
                self.exit_iteration(frame, exc) or frame.ins.handler is not None
            ):
                break
            passed.append((exc, frame))
            if depth:
                self.attribute_error_context(self.frames[depth - 1], exc)
            if frame.gen is not None and not (finished and depth == len(self.frames) - 1):
                exc = self.stopiteration_error(exc)
            depth -= 1
        else:
            raise Break("exception-uncaught", exc.cls.__name__)
        raising = self.frames[-1] if again or finished else None
        for leaving, left in passed:
            self.add_trace(leaving, left, raising)
            if left.gen is not None:
                left.gen.frame, left.gen.running = None, False
        del self.frames[depth + 1 :]
        if self.exit_iteration(frame, exc):
            self.finish_iteration(frame, exc)
            return
        self.add_trace(exc, frame, raising)
        handler = frame.ins.handler
        del frame.stack[handler.depth :]
        if handler.lasti:
            frame.stack.append(self.const(frame.ins.lasti))
        frame.stack.append(exc)
        frame.pc = handler.target

    def attribute_error_context(self, frame: Frame, exc: ExcObj) -> None:
        """An AttributeError that leaves the code behind an attribute says of which, unless it says so already."""
        if frame.ins.op in (Op.LOAD_ATTR, Op.LOAD_METHOD) and issubclass(exc.cls, AttributeError) and exc.obj is None:
            exc.fields.setdefault("name", self.const(frame.ins.a))
            exc.fields.setdefault("obj", frame.saved[-1])

    def stopiteration_error(self, exc: ExcObj) -> ExcObj:
        """What leaves a generator's body for `exc`: a StopIteration becomes RuntimeError."""
        if not issubclass(exc.cls, StopIteration):
            return exc
        made = self.make_exception(RuntimeError, [self.const("generator raised StopIteration")])
        self.set_exception_field(made, "__cause__", exc)
        self.set_exception_field(made, "__context__", exc)
        return made

    def add_trace(self, exc: ExcObj, frame: Frame, raising: Frame | None) -> None:
        """Add the traceback line of a frame that the exception passes."""
        if frame is not raising and not frame.trusted:
            self.touch(exc)
            exc.trace.append((frame.code, frame.line))

    def exit_iteration(self, frame: Frame, exc: ExcObj) -> bool:
        """Whether `exc` is the StopIteration that ends the loop or delegation in which `frame` waits."""
        return frame.ins.op in (Op.FOR_ITER, Op.SEND) and issubclass(exc.cls, StopIteration)

    def finish_iteration(self, frame: Frame, exc: ExcObj) -> None:
        """Leave a `for` loop, or a `yield from` with the iterator's return value."""
        ins = frame.ins
        frame.stack[:] = frame.saved
        if ins.op == Op.FOR_ITER:
            if ins.b:
                del frame.stack[-ins.a :]
        else:
            frame.stack[-1] = self.exception_field(exc, "value")
            if ins.b:
                del frame.stack[-2]
        frame.pc = ins.target  # type: ignore[assignment]

    def raise_from(self, exc: ExcObj) -> NoReturn:
        """Raise `exc` at the current instruction, with the exception being handled as its context."""
        handled = self.handled_exception()
        if handled is not None and handled is not exc:
            self.chained(exc, handled)
        raise Raised(exc)

    def handled_here(self) -> Value | None:
        """The exception that the frames of this capture handle."""
        return next((frame.handled[-1] for frame in reversed(self.frames) if frame.handled), None)

    def handled_exception(self) -> Value | None:
        """What `sys.exc_info()` sees in the current frame; the entry's caller may be handling one."""
        handled = self.handled_here()
        if handled is None:
            outside = self.wrap(self.outside, self.root.child("const", sys.exception).child("call", operator.call))
            handled = None if self.is_none(outside) else outside
        return handled

    # -- the loop ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Execute until the outermost frame returns (`Finished`) or an instruction can't be expressed (`Stopped`)."""
        frames = self.frames
        handlers = HANDLERS
        cut, forced = self.cut, self.forced
        where = self.graph
        while True:
            frame = frames[-1]
            ins = frame.instrs[frame.pc]
            frame.ins = ins
            frame.saved = saved = frame.stack.copy()
            frame.pc += 1
            where.where = (frame.code.co_filename, frame.line)
            self.steps += 1
            if self.steps > self.limit and self.too_long():
                self.restore(frame, saved)
                raise Stopped(Break("code-too-large", frame.code.co_qualname))
            try:
                if forced and (frame.code, ins.index) in forced:
                    raise Break("forced")
                if cut is not None and not frame.trusted and cut(frame.code, ins.index):
                    raise Break("forced")
                handler = handlers[ins.op]
                if handler is None:
                    raise Break("unsupported-instruction", ins.op.name)
                handler(self, frame, ins)
            except Raised as raised:
                try:
                    self.unwind(raised.value, again=raised.again)
                except Break as cause:
                    self.restore(frame, saved)
                    raise Stopped(cause) from None
            except Break as cause:
                if frames[-1] is not frame:
                    # A rule pushed a frame and then gave up: rules must decide first.
                    raise AssertionError(f"break after a frame was pushed: {cause}") from cause
                self.restore(frame, saved)
                raise Stopped(cause) from None

    def too_long(self) -> bool:
        """Whether so many instructions ran without a tensor operation that the interpreter had better run them."""
        if self.graph.n_ops > self.ops_seen:
            self.ops_seen = self.graph.n_ops
            self.limit = self.steps + STRETCH
            return False
        return True

    def step(self, frame: Frame) -> None:
        """Execute `frame.ins` alone."""
        handler = HANDLERS[frame.ins.op]
        assert handler is not None
        handler(self, frame, frame.ins)

    def dispose(self) -> None:
        """Let go of the user's objects at once: they must not live until the next garbage collection."""
        for value in self.seen.values():
            if hasattr(value, "obj"):
                value.obj = None
            if isinstance(value, ListObj):
                value.loader = None
        for kept in self.keep:
            if type(kept) is Pending:
                kept.obj = None
        for frame in (self.outermost, *self.frames):
            frame.slots.clear()
            frame.stack.clear()
            frame.saved.clear()
        self.outside = None
        self.frames.clear()
        self.seen.clear()
        self.keep.clear()
        self.touched.clear()
        self.given.clear()

    def keep_apart(self) -> None:
        """Guard that changed objects from outside aren't also what was found in other places."""
        others = [v for v in self.seen.values() if isinstance(v, Obj) and v.obj is not None and v.source is not None]
        for changed in list(self.touched.values()):
            if isinstance(changed, Obj) and changed.obj is not None and changed.source is not None:
                for other in others:
                    if other is not changed and type(other) is type(changed):
                        self.differ(changed, other)

    def restore(self, frame: Frame, saved: list[Value]) -> None:
        """Put `frame` back to before its current instruction."""
        frame.stack[:] = saved
        frame.pc = frame.ins.index

    def call_from(self, frame: Frame, f: Value, args: list[Value], kwargs: dict[str, Value]) -> Any:
        """A call made by `frame`'s own code: some functions look at the frame that calls them."""
        if type(f) is Known:
            if f.obj is super and not args:
                return self.zero_argument_super(frame)
            if f.obj is globals and not args:
                return frame.globals
            if f.obj in FRAME_READERS and not (args and f.obj in (vars, dir)):
                raise Break("locals-inspection", f.obj.__name__)
        return self.call(f, args, kwargs)

    def zero_argument_super(self, frame: Frame) -> Value:
        """`super()`: the class cell and the first argument of the frame."""
        names = frame.program.names
        if "__class__" not in names or not frame.code.co_argcount:
            raise Break("call-arguments", "super()")
        cell, receiver = frame.slots[names.index("__class__")], frame.slots[0]
        if type(receiver) is Cell:
            receiver = self.cell_contents(receiver)
        elif type(receiver) is Pending:
            receiver = self.load_pending(frame, 0)
        start = self.cell_contents(cell)  # type: ignore[arg-type]
        if type(start) is not Known or receiver is None:
            raise Break("call-arguments", "super()")
        return self.make_super(start.obj, receiver)

    def frame_for(self, code: CodeType, globals: Any, closure: tuple[Value, ...] = (), trusted: bool = False) -> Frame:
        """A new frame for `code`."""
        return Frame(decode(code), globals, closure, trusted)


__all__ = ["HANDLERS", "NULL", "Finished", "Frame", "Machine", "Stopped", "handles"]
