"""An entry's function: host calls, the graph, the effects, then the result or a hard instruction and what follows."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType, FunctionType, ModuleType
from typing import Any

from bytecode_models import Op

from .. import _C, logs
from ..graph import failures
from ..library.polyfills.support import without_our_lines
from ..library.registry import STANDS_FOR
from ..machine.core import CALLER_READERS, FRAME_READERS, Finished, Frame, Machine, Stopped
from ..points import PointTable, Where
from ..reasons import Break
from ..sources import Source
from ..suspended import Suspended, closes_silently
from ..torch_api import Tensor as RealTensor
from ..values import (
    DELETED,
    Cell,
    DictObj,
    ExcObj,
    GenObj,
    ItemsIter,
    Known,
    ListObj,
    Obj,
    Pending,
    SeqIter,
    SetObj,
    Tensor,
    Value,
)
from .changes import write_dict, write_list, write_set
from .hard import HARD, Hard, special_methods, stand_in
from .values import NAMESPACE, Cycle, Rebuilder, by_value

END = object()
#: types of objects whose end nobody notices
DIE_QUIETLY = (int, float, str, bytes, type(None), RealTensor, type, FunctionType, ModuleType)


class Restart(Exception):
    """The program has to be captured once more, with a break at an earlier instruction."""

    def __init__(self, where: tuple, cause: Break):
        self.where = where
        self.cause = cause


@dataclass
class Emitted:
    """What an entry is made of."""

    lines: list[str]
    namespace: dict[str, Any]
    handed: list[Source]
    boxed: bool  # the function gets its objects in one list, which it empties
    graph: Any  # GraphModule or None
    recovery: failures.Failing | None  # how to go on when the graph raises
    inputs: list[Value]
    n_outputs: int
    code: CodeType  # whose name and file the function shows
    line: int

    def source(self, n_handed: int) -> str:
        """The function's text; it takes all `n_handed` objects, of which guards alone need some."""
        names = [f"v{i}" for i in range(n_handed)]
        if not self.boxed:
            return "\n    ".join([f"def entry({', '.join(names)}):", *self.lines])
        # Objects that only guards need die with the box.
        del names[len(self.handed) :]
        opening = [f"{', '.join(names)}, = box[:{len(names)}]"] if names else []
        return "\n    ".join(["def entry(box):", *opening, "box.clear()", *self.lines])

    def function(self, n_handed: int) -> FunctionType:
        """Compile it so that its frame shows the user's name, file and line."""
        source = self.source(n_handed)
        if logs.enabled("source"):
            logs.emit("source", source)
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if hasattr(node, "lineno"):
                node.lineno = node.end_lineno = self.line
                node.col_offset = node.end_col_offset = 0
        exec(compile(tree, self.code.co_filename, "exec"), self.namespace)
        function = self.namespace.pop("entry")
        function.__code__ = function.__code__.replace(co_name=self.code.co_name, co_qualname=self.code.co_qualname)
        return function


class Emitter(Rebuilder):
    """Writes one entry."""

    def __init__(self, machine: Machine, points: PointTable, two_phase: set[int]):
        super().__init__(machine, two_phase, kept_polyfills(machine.frames))
        self.points = points
        self.escaping: set[int] = set()  # ids of generators that objects refer to which others may hold
        self.handled_name: str | None = None  # the exception being handled where the hard instruction runs

    def write(self, outcome: Finished | Stopped) -> Emitted:
        """The whole function."""
        m = self.m
        host = self.host_lines()
        recovery = failures.failing(m.graph.fx, repeatable=not host)
        if recovery is not None and recovery.repeatable:
            for source in (*m.given_at, *([m.this] if m.this is not None else [])):
                self.hand(source)
        self.escaping = escaping_generators(m)
        self.hold()
        self.advance()
        self.effects()
        if isinstance(outcome, Finished):
            self.finish(outcome.value)
        else:
            self.stop(outcome.cause)
        self.refuse_dropped_generators()
        graph, inputs = m.graph.finish(self.outputs) if m.graph.needed(self.outputs) else (None, [])
        calls = self.graph_call(inputs, recovery) if graph is not None else []
        boxed = isinstance(outcome, Stopped)
        frame = m.frames[-1] if m.frames else m.outermost
        return Emitted(
            host + calls + self.lines,
            self.namespace(),
            self.handed,
            boxed,
            graph,
            recovery,
            inputs,
            len(self.outputs),
            frame.code,
            frame.line,
        )

    def hold(self) -> None:
        """What the frame was given lives until the effects are written: its end may run code."""
        for value in self.m.given:
            source, obj = value.source, getattr(value, "obj", None)
            if source is not None and source.accessor == "arg" and not issubclass(type(obj), DIE_QUIETLY):
                self.hand(source)

    # -- pieces --------------------------------------------------------------------------------------------------------

    def get(self, value: Value) -> str:
        if type(value) is Pending:
            found = self.hand(value.source)
            return f"real_object({found})" if type(value.obj) in STANDS_FOR and id(value) not in self.kept else found
        if type(value) is GenObj and value.obj is not None:
            return f"{self.hand(value.source)}.generator()" if not value.running else self.hand(value.source)  # type: ignore[arg-type]
        if type(value) is GenObj and value.running:
            return self.suspended(value)  # no generator of the interpreter can stand in the middle of a call
        return super().get(value)

    def host_lines(self) -> list[str]:
        """Calls that come before the graph."""
        for i, (function, args, kwargs) in enumerate(self.m.steps_host):
            arguments = [self.get(a) for a in args] + [f"{name}={self.get(a)}" for name, a in kwargs.items()]
            self.lines.append(f"h{i} = {self.get(function)}({', '.join(arguments)})")
        lines, self.lines = self.lines, []
        return lines

    def graph_call(self, inputs: list[Value], recovery: failures.Failing | None) -> list[str]:
        """The lines that run the graph."""
        outputs = "".join(f"t{i}, " for i in range(len(self.outputs)))
        kept, self.lines = self.lines, []
        arguments = ", ".join([self.get(v) for v in inputs])
        assert not self.lines, "a graph's input is an object of the call"
        self.lines = kept
        call = f"{outputs}{'= ' if outputs else ''}graph({arguments})"
        if recovery is None:
            return [call]
        changed = ", ".join([self.get(v) for v in inputs if type(v) is Tensor and v.node in recovery.changed])
        unchanged = f"versions({changed}) == before" if changed else "True"
        state = ", ".join(map(self.hand, self.m.given_at)) if recovery.repeatable else ""
        function = self.hand(self.m.this) if self.m.this is not None else "None"
        return [
            *([f"before = versions({changed})"] if changed else []),
            "try:",
            f"    {call}",
            "except BaseException as error:",
            f"    other = recover(error, {function}, [{state}], {unchanged})",
            "    if other is None:",
            "        raise",
            "    return other",
        ]

    def namespace(self) -> dict[str, Any]:
        """The globals of the entry's function."""
        names = {
            "NULL": _C.NULL,
            "UNBOUND": _C.UNBOUND,
            "END": END,
            "resume": _C.resume,
            "resume_raise": _C.resume_raise,
        }
        own = next((frame for frame in reversed(self.m.frames) if not frame.trusted), self.m.outermost)
        if own.globals.obj:  # what is made here belongs to the module of the code
            names["__name__"] = own.globals.obj.get("__name__")
        names.update(
            NAMESPACE,
            versions=failures.versions,
            without_our_lines=without_our_lines,
            Continuation=_C.Continuation,
            set_handled=_C.set_handled_exception,
            special_methods=special_methods,
            stand_in=stand_in,
        )
        names.update(self.pool)
        return names

    # -- effects -------------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Take the items that the guards looked at."""
        self.lines += [f"next({self.get(iterator)}, None)" for iterator in self.m.advanced.values()]

    def effects(self) -> None:
        """Write changed objects from outside back, in the order of their first change."""
        # What is made real when others refer to it has to be up to date by then.
        for value in sorted(self.m.touched.values(), key=lambda value: value.cls not in STANDS_FOR):
            if isinstance(value, Tensor) or value.obj is None or value.source is None:
                continue
            name = self.hand(value.source)
            for attribute, item in list(value.attrs.items()):
                if item is DELETED:
                    self.lines.append(f"object.__delattr__({name}, {attribute!r})")
                else:
                    self.lines.append(f"object.__setattr__({name}, {attribute!r}, {self.get(item)})")
            writer = WRITERS.get(type(value))
            if writer is not None:
                writer(self, value, name)

    def write_cell(self, value: Cell, name: str) -> None:
        self.lines.append(
            f"del {name}.cell_contents"
            if value.contents is None
            else f"{name}.cell_contents = {self.get(value.contents)}"
        )

    # -- endings -------------------------------------------------------------------------------------------------------

    def finish(self, value: Value) -> None:
        """The whole function was captured, or a generator's body up to its next `yield`."""
        gen = self.m.outermost.gen
        if gen is not None and gen.frame is None:
            self.lines.append(f"raise StopIteration({'' if self.m.is_none(value) else self.get(value)})")
        else:
            self.lines.append(f"return {self.get(value)}")

    def stop(self, cause: Break) -> None:
        """The innermost frame's current instruction runs as plain Python; every frame goes on behind it."""
        frames = self.m.frames
        self.refuse_generators(frames)
        frame = frames[-1]
        ins = frame.ins
        template = HARD.get(ins.op)
        looks_down = cause.code == "caller-inspection" or calls_one_of(frame, CALLER_READERS)
        if looks_down and len(frames) > 1:
            caller = frames[0]
            raise Restart((caller.code, caller.ins.index), Break("caller-inspection", frame.code.co_qualname))
        if template is None or reads_frame(frame) or cause.code in ("code-too-large", "caller-inspection"):
            self.abandon(frames)
            return
        operands: dict[int, str] = {}
        needed: set[str] = set()

        def operand(at: int) -> str:
            text = operands.get(at)
            if text is None:
                value = frame.stack[-at]
                # A name even for a constant: the compiler has warnings for what is done to literals.
                text = operands[at] = self.constant(value.value) if by_value(value) else self.get(value)
            needed.add(text)
            return text

        hard = template(operand, frame.stack, ins)
        if any(line.find("GLOBALS") >= 0 for line in hard.lines):
            self.pool["GLOBALS"] = frame.globals.obj
        below = frame.stack[: len(frame.stack) - hard.pops] if hard.pops else list(frame.stack)
        waiting = [self.waiting(frames, at) for at in range(len(frames) - 2, -1, -1)]
        handled = self.m.handled_here()
        self.handled_name = self.get(handled) if handled is not None else None
        self.outcomes(frame, hard, below, waiting)

    def refuse_generators(self, frames: list[Frame]) -> None:
        """A break inside a generator to which another one delegates moves to the instruction that delegates."""
        for caller, frame in pairwise(frames):
            if frame.gen is not None and caller.ins.op is Op.SEND:
                raise Restart((caller.code, caller.ins.index), Break("generator-unsupported", frame.code.co_qualname))

    def refuse_dropped_generators(self) -> None:
        """A generator dropped where closing it runs code of its own has to be a real one."""
        for gen in self.m.generators:
            if gen.started and gen.frame is not None and gen.obj is None and id(gen) not in self.names:
                # `yield from` closes what it delegates to, be it any object.
                closed = any(type(v) is not GenObj and hasattr(v.cls, "close") for v in gen.frame.stack)
                if closed or not closes_silently(gen.frame.program, gen.frame.ins.index, gen.frame.globals.obj or {}):
                    raise Restart(
                        gen.made_at,
                        Break("generator-unsupported", f"{gen.frame.code.co_qualname} isn't run to its end"),
                    )

    def iterate_for_real(self, v: ItemsIter) -> None:
        """The break moves to where the iterator was made."""
        raise Restart(v.made_at, Break("iterate-unknown", v.cls.__name__))

    def state(self, frame: Frame, stack: list[Value]) -> str:
        """The list that a point needs."""
        slots = ["UNBOUND" if s is None else self.top(s) for s in frame.slots]
        holder = [self.suspended(frame.gen)] if frame.gen is not None else []
        return f"[{', '.join(slots + holder + [self.top(v) for v in frame.handled[-1:] + stack])}]"

    def top(self, value: Value) -> str:
        """An item of a state: a generator that only captured code holds stays one that captured code can resume."""
        if type(value) is GenObj and id(value) not in self.escaping:
            if value.obj is not None or value.started and value.frame is not None:
                return self.suspended(value)
        return self.get(value)

    def suspended(self, gen: GenObj) -> str:
        """The object that stands for a generator between entries."""
        if gen.obj is not None:
            return self.hand(gen.source)  # type: ignore[arg-type]
        name = self.names.get(id(gen))
        if name is None:
            name = self.assign(gen, f"{self.constant(Suspended)}()", "g")
            self.move(gen, name)
        return name

    def move(self, gen: GenObj, name: str) -> None:
        """Write where a generator stands now."""
        if gen.running or gen.frame is None:
            self.lines.append(f"{name}.move(None, None)")
            return
        frame = gen.frame
        point = self.point(frame, frame.pc, len(frame.stack) + 1, waits=None)
        slots = ["UNBOUND" if s is None else self.top(s) for s in frame.slots]
        state = ", ".join(slots + [self.top(v) for v in frame.handled[-1:] + frame.stack])
        self.lines.append(f"{name}.move({point}, [{state}])")

    def point(self, frame: Frame, index: int, depth: int, *, waits: int | None, **how: bool) -> str:
        """A name for the point where `frame` goes on; `how` are other fields of `Where`."""
        where = Where(
            frame.code,
            index,
            depth,
            tuple(frame.handlers),
            waits,
            trusted=frame.trusted,
            globals_id=id(frame.globals.obj),
            **how,
        )
        return self.constant(self.points.get(where, frame.globals.obj))

    def waiting(self, frames: list[Frame], at: int) -> str:
        """A frame that waits for the one above it."""
        frame = frames[at]
        above = frames[at + 1]
        state = self.state(frame, frame.stack)
        point = self.point(
            frame,
            frame.pc,
            len(frame.stack) + 1,
            waits=frame.ins.index,
            drop=above.discard,
            null_above=above.null_above,
        )
        return f"({point}, {state})"

    def outcomes(self, frame: Frame, hard: Hard, below: list[Value], waiting: list[str]) -> None:
        """Run the instruction, and hand over to the point for what came out."""
        ins, depth = frame.ins, len(below)
        index = ins.index + 1
        results = hard.results
        point = self.point(frame, index, depth + len(results), waits=ins.index)
        state = self.state(frame, below)
        self.lines.append(f"s = {state}")
        self.lines.append(f"frames = [{', '.join([f'({point}, s)', *waiting])}]")
        self.release(hard)
        handles = ins.handler is not None or self.handled_name is not None
        if waiting or handles or frame.gen is not None or hard.again or frame.trusted:
            self.guarded(hard)
        else:
            self.lines += hard.lines
        if hard.raises:
            return
        if hard.branch:
            other = self.point(frame, ins.target, depth, waits=None)  # type: ignore[arg-type]
            self.lines += ["if r:", f"    frames[0] = ({other}, s)", "return Continuation(frames)"]
            return
        if hard.exhausted:
            drop = ins.a if ins.b else 0
            out = self.point(frame, ins.target, depth - drop, waits=None)  # type: ignore[arg-type]
            self.lines += [f"if {hard.exhausted}:"]
            self.lines += [f"    del s[-{drop}:]"] if drop else []
            self.lines += [f"    frames[0] = ({out}, s)", "    return Continuation(frames)"]
        if not results:
            self.lines.append("return Continuation(frames)")
            return
        self.lines += [f"s.append({text})" for text in results[:-1]]
        self.lines.append(f"return resume(frames, {results[-1]})")

    def guarded(self, hard: Hard) -> None:
        """The instruction's lines where the trampoline handles what they raise."""
        handled = self.handled_name
        self.lines += [f"p = set_handled({handled})"] if handled is not None else []
        self.lines += [
            "failed = None",
            "try:",
            *("    " + line for line in hard.lines),
            "except BaseException as e:",
            "    failed = e",
        ]
        self.lines += ["set_handled(p)"] if handled is not None else []  # where Python itself restores nothing more
        # The trampoline adds the line of this frame, as of those that wait.
        stripped = "failed" if hard.again else "failed.with_traceback(failed.__traceback__.tb_next)"
        if self.m.frames[-1].trusted and not hard.again:
            stripped = "without_our_lines(failed)"
        self.lines += ["if failed is not None:", f"    return resume_raise(frames, {stripped})"]

    def release(self, hard: Hard) -> None:
        """Drop the entry's own references: objects live as long as the user's frame would keep them."""
        text = "\n".join(hard.lines)
        used = set(ast_names(text))
        mine = (
            [f"v{i}" for i in range(len(self.handed))]
            + [f"t{i}" for i in range(len(self.outputs))]
            + list(self.names.values())
        )
        drop = [
            name
            for name in dict.fromkeys(mine)
            if name.isidentifier() and name not in used and name != self.handled_name
        ]
        if drop:
            self.lines.append(f"del {', '.join(drop)}")

    def abandon(self, frames: list[Frame]) -> None:
        """The interpreter runs the instruction and the rest of its frame; the callers go on captured."""
        frame = frames[-1]
        point = self.point(frame, frame.ins.index, len(frame.stack), waits=None, plain=True)
        own = f"({point}, {self.state(frame, frame.stack)})"
        waiting = [self.waiting(frames, at) for at in range(len(frames) - 2, -1, -1)]
        self.lines.append(f"return Continuation([{', '.join([own, *waiting])}])")


def ast_names(text: str) -> list[str]:
    """The names that statements read or write."""
    return [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]


def kept_polyfills(frames: list[Frame]) -> set[int]:
    """The instances of polyfills whose attributes running polyfills use, as ids."""
    kept: set[int] = set()
    todo = [v for frame in frames if frame.trusted for v in (*frame.slots, *frame.stack)]
    while todo:
        value = todo.pop()
        if type(value) is Pending:
            kept.add(id(value))
        elif value is not None and value.cls in STANDS_FOR and id(value) not in kept:
            kept.add(id(value))
            todo += value.attrs.values()
    return kept


def reads_frame(frame: Frame) -> bool:
    """Whether the instruction calls something that looks at the calling frame: that has to be the real one."""
    ins = frame.ins
    return calls_one_of(frame, (super, *FRAME_READERS) if ins.op is Op.CALL and not ins.a else FRAME_READERS)


def calls_one_of(frame: Frame, readers: tuple) -> bool:
    """Whether the instruction is a call of one of these."""
    ins, stack = frame.ins, frame.stack
    if ins.op not in (Op.CALL, Op.CALL_EX):
        return False
    below = ins.a if ins.op is Op.CALL else 2 if ins.a else 1
    return any(
        type(v) is Known and any(v.obj is reader for reader in readers) for v in stack[-below - 2 : len(stack) - below]
    )


def write_entry(machine: Machine, points: PointTable, outcome: Finished | Stopped) -> Emitted:
    """Emit the machine's final state; containers that contain themselves are found by trying."""
    two_phase: set[int] = set()
    while True:
        try:
            return Emitter(machine, points, two_phase).write(outcome)
        except Cycle as cycle:
            if id(cycle.value) in two_phase or type(cycle.value) in (ItemsIter, GenObj):
                raise Break("not-constant", f"a {cycle.value.cls.__name__} that contains itself") from None
            two_phase.add(id(cycle.value))


def escaping_generators(machine: Machine) -> set[int]:
    """The generators that containers, objects and closures refer to: others than captured code may get at them."""
    found: set[int] = set()
    seen: set[int] = set()
    frames = [*machine.frames, machine.outermost, *[gen.frame for gen in machine.generators if gen.frame is not None]]
    tops = [v for frame in frames for v in (*frame.slots, *frame.stack) if v is not None]
    work = [inner for top in tops + list(machine.touched.values()) for inner in parts(top)]
    while work:
        value = work.pop()
        if id(value) not in seen:
            seen.add(id(value))
            if type(value) is GenObj:
                found.add(id(value))
            work += parts(value)
    return found


def parts(value: Value) -> list[Value]:
    """The values that an object refers to, iterators and generators excepted: only captured code looks into those."""
    inner: list[Value] = []
    if isinstance(value, Obj) and not isinstance(value, (GenObj, SeqIter)):
        inner += [v for v in value.attrs.values() if v is not DELETED]
        inner += [v for v in (value.namespace, *(getattr(value, name, None) for name in PARTS)) if isinstance(v, Value)]
        items = getattr(value, "items", ()) if getattr(value, "loader", None) is None else unread(value)
        if isinstance(value, DictObj):
            items = [v for entry in items.values() if entry is not DELETED for v in entry]
        inner += [v for v in (items.values() if isinstance(items, dict) else items) if isinstance(v, Value)]
        inner += [v for v in getattr(value, "closure", ()) if isinstance(v, Value)]
    return inner


def unread(value: Any) -> list[Value]:
    """What is known to be in a list whose items nobody has asked for."""
    return [*value.tail, *(value.recipe.operands if value.recipe is not None else ())]


PARTS = ("contents", "func", "self", "owner", "defaults", "kwdefaults", "cause", "context")

WRITERS: dict[type, Any] = {
    GenObj: Emitter.move,
    ListObj: write_list,
    DictObj: write_dict,
    SetObj: write_set,
    Cell: Emitter.write_cell,
    ExcObj: Emitter.exception_fields,
}

__all__ = ["Emitted", "Restart", "write_entry"]
