"""From a miss to an entry: one capture, its guards, its function; recompile limits; what goes wrong."""

from __future__ import annotations

import functools
import sys
import threading
import time
import weakref
from types import FunctionType
from typing import Any

from bytecode_models import decode
from bytecode_models.listing import listing

from . import _C, logs, stats
from .backends import call_backend
from .config import config
from .emit.entry import Emitted, Restart, write_entry
from .errors import DynacoreError, FullGraphError, InternalError, RecompileLimitError
from .graph.builder import Graph
from .graph.failures import Failing, Recovery
from .graph.state import capture_allowed
from .guards.plan import Plan
from .guards.twin import evaluate
from .library import load as load_library
from .machine import Finished, Frame, Machine, Stopped
from .options import Options
from .points import PointData, PointTable, Where
from .reasons import Break, BreakSite
from .values import Tensor, Value

_lock = threading.RLock()
_owners: weakref.WeakSet[Owner] = weakref.WeakSet()
MAX_RESTARTS = 32


class _Busy(threading.local):
    capturing = False


_busy = _Busy()


class Owner:
    """One compiled function: its options and its points."""

    def __init__(self, function: FunctionType, options: Options):
        self.function = function
        self.options = options
        self.table = PointTable(self.miss)
        self.start = self.make_start()
        _owners.add(self)

    def make_start(self) -> Any:
        """The point at the function's first instruction."""
        code = self.function.__code__
        data = PointData(Where(code, 0, 0), self.function.__globals__, self.table)
        captured = decode(code).is_function and not code.co_flags & (0x20 | 0x80 | 0x200 | 0x100)
        return _C.Point(self.miss if captured else None, self.plain, code=code, line=code.co_firstlineno, data=data)

    def plain(self, state: list[Any]) -> Any:
        """The call of the function as it is."""
        code = self.function.__code__
        n, kwonly = code.co_argcount, code.co_kwonlyargcount
        args, at = state[:n], n + kwonly
        keywords = dict(zip(code.co_varnames[n:at], state[n:at]))
        if code.co_flags & 0x04:
            args += state[at]
            at += 1
        if code.co_flags & 0x08:
            keywords.update(state[at])
        state.clear()
        return functools.partial(self.function, *args, **keywords)

    def miss(self, point: Any, state: list[Any]) -> Any:
        """No entry holds: capture one, or None to go on in the interpreter."""
        data: PointData = point.data
        if data.skip or _busy.capturing or sys.gettrace() is not None or capture_allowed() is not None:
            return None
        with _lock:
            for entry in point.entries:  # another thread may have been here
                if entry.valid and entry.guards.check(state) is not None:
                    return entry
            if not self.may_add(point, state):
                return None
            _busy.capturing = True
            capture = Capture(self, point, state)
            try:
                entry = capture.run()
            except DynacoreError:
                raise
            except Exception as error:
                self.internal_error(data, error)
                return None
            finally:
                _busy.capturing = False
                capture.dispose()
        return entry

    def may_add(self, point: Any, state: list[Any]) -> bool:
        """Whether the limit allows one more entry; learns which scalar varies."""
        if not point.entries:
            return True
        data: PointData = point.data
        failure = self.why_missed(point, state)
        if failure is not None:
            logs.emit("recompiles", f"recompiling {data.where.code.co_qualname}\n  {data.describe()}\n  {failure}")
        for entry in point.entries:
            data.dynamic.update(entry.data.varied(state))
        if len(point.entries) < config.recompile_limit:
            return True
        if not data.told:
            data.told = True
            text = (
                f"recompile limit ({config.recompile_limit}) reached at\n  {data.describe()}\n"
                f"  last guard that failed: {failure or 'unknown'}\n"
                "  Calls that no entry fits now run as plain Python. Make the value constant, pass it as a tensor, "
                "or raise dynacore.config.recompile_limit."
            )
            if config.fail_on_recompile_limit:
                raise RecompileLimitError(text)
            logs.warn(text)
        return False

    def why_missed(self, point: Any, state: list[Any]) -> Any:
        """The failure of the newest entry, by the Python twin."""
        entry = point.entries[0]
        try:
            failure = evaluate(entry.guards.tree, entry.guards.n_handed, state, state_names(point))[1]
            return entry.data.other_tensor(state) or failure if failure is not None else None
        except Exception:
            return None

    def internal_error(self, data: PointData, error: Exception) -> None:
        """A mistake of ours: say so once, run the frame as plain Python."""
        data.skip = True
        if config.on_internal_error == "raise":
            raise InternalError(f"internal error while capturing {data.where.code.co_qualname}: {error!r}") from error
        logs.warn_once(
            ("internal", type(error), str(error)),
            f"internal error while capturing\n  {data.describe()}\n  {type(error).__name__}: {error}\n"
            "  The frame runs as plain Python. Please report this with the program, and with "
            "dynacore.config.on_internal_error = 'raise' for the traceback.",
        )

    def reset(self) -> None:
        """Forget everything captured."""
        self.start.clear()
        self.start.data = PointData(Where(self.start.code, 0, 0), self.function.__globals__, self.table)
        self.table.clear()


class Capture:
    """One capture at one point."""

    def __init__(self, owner: Owner, point: Any, state: list[Any]):
        self.owner = owner
        self.point = point
        self.state = state
        self.began = time.perf_counter()
        self.machine: Machine | None = None

    def run(self) -> Any:
        """Execute, emit, guard, install."""
        forced: set[tuple] = set()
        cause: Break | None = None
        for _ in range(MAX_RESTARTS):
            machine, outcome = self.execute(frozenset(forced))
            self.machine = machine
            if isinstance(outcome, Stopped) and outcome.cause.code == "forced" and cause is not None:
                outcome.cause = cause
            site = self.site(machine, outcome)
            if site is not None and self.owner.options.fullgraph and site.code != "exception-uncaught":
                raise FullGraphError([site])
            try:
                emitted = write_entry(machine, self.owner.table, outcome)
            except Restart as restart:
                forced.add(restart.where)
                cause = restart.cause
                continue
            return self.install(machine, emitted, site)
        raise AssertionError("too many restarts of one capture")

    def dispose(self) -> None:
        """Let go of the call's objects."""
        self.state = []
        if self.machine is not None:
            self.machine.dispose()

    def execute(self, forced: frozenset) -> tuple[Machine, Any]:
        """Run the machine."""
        data: PointData = self.point.data
        where = data.where
        machine = Machine(Graph, config, forced, frozenset(data.dynamic))
        machine.cut = config.testing_cut
        machine.open_loops = data.broke
        closure: tuple[Value, ...] = ()
        at_start = self.point is self.owner.start
        if at_start and self.owner.function.__closure__:
            cells = machine.root.child("const", self.owner.function).child("func", "closure")
            closure = tuple(
                machine.wrap(c, cells.child("item", i)) for i, c in enumerate(self.owner.function.__closure__)
            )
        if at_start:
            machine.root.child("const", self.owner.function).check("func_code", where.code)
        frame = Frame(decode(where.code), machine.globals_of(data.globals), closure, where.trusted)
        machine.root.key = state_names(self.point)
        machine.enter(frame, self.state, where.index, where.handlers, where.drop)
        try:
            machine.run()
        except (Finished, Stopped) as outcome:
            return machine, without_frames(outcome)
        raise AssertionError("the machine ends with an outcome")

    def site(self, machine: Machine, outcome: Any) -> BreakSite | None:
        """The place of a break, for the logs and for `explain`."""
        if not isinstance(outcome, Stopped):
            return None
        frame = machine.frames[-1]
        callers = tuple((f.code.co_filename, f.line, f.code.co_qualname) for f in reversed(machine.frames[:-1]))
        return BreakSite.of(outcome.cause, frame.code.co_filename, frame.line, frame.code.co_qualname, callers)

    def install(self, machine: Machine, emitted: Emitted, site: BreakSite | None) -> Any:
        """Compile the graph, build the guards, add the entry."""
        if emitted.graph is not None:
            self.compile_graph(emitted)
        if emitted.recovery is not None:
            emitted.namespace["recover"] = self.recovery(machine, emitted.recovery)
        machine.keep_apart()
        plan = Plan(machine.root, emitted.handed, machine.relations)
        guards = _C.Guards(plan.tree, len(plan.handed))
        entry = _C.Entry(guards, emitted.function(len(plan.handed)), boxed=emitted.boxed, data=plan.facts)
        if config.verify:
            self.verify(plan)
        self.point.data.broke |= site is not None
        self.point.add(entry)
        self.report(machine, emitted, plan, site)
        return entry

    def compile_graph(self, emitted: Emitted) -> None:
        """Hand the graph to the backend; what it gives back is `graph` in the entry's function."""
        if logs.enabled("graph"):
            logs.emit("graph", emitted.graph.print_readable(print_output=False))
        examples = [v.obj if isinstance(v, Tensor) else v.example for v in emitted.inputs]  # type: ignore[attr-defined]
        options, names = self.owner.options, emitted.namespace
        names["graph"] = call_backend(
            options.backend_name,
            options.backend,
            emitted.graph,
            examples,
            emitted.n_outputs,
            lambda f: names.__setitem__("graph", f),
        )

    def recovery(self, machine: Machine, failing: Failing) -> Recovery:
        """What the entry calls when its graph raises."""
        point = self.point
        plain = _C.Point(None, point.fallback, code=point.code, line=point.line, data=point.data)
        return Recovery(failing, machine.graph.before, lambda state: _C.Continuation([(plain, state)]), point.data)

    def verify(self, plan: Plan) -> None:
        """The guards of a new entry must hold for the state that it was made from."""
        failure = evaluate(plan.tree, len(plan.handed), self.state)[1]
        if failure is not None:
            raise AssertionError(f"a guard fails on the state that was captured: {failure}")

    def report(self, machine: Machine, emitted: Emitted, plan: Plan, site: BreakSite | None) -> None:
        """Logs and records."""
        if site is not None:
            logs.emit_break(site)
        where = self.point.data.where
        line = decode(where.code).instrs[where.index].line or where.code.co_firstlineno
        stats.add(
            stats.Record(
                where.code,
                line,
                self.point is self.owner.start,
                emitted.graph,
                machine.graph.n_ops if emitted.graph is not None else 0,
                plan.kinds,
                site,
                time.perf_counter() - self.began,
            )
        )
        if logs.enabled("guards"):
            checks = [(source, *check) for source in machine.root.nodes() for check in source.checks.values()]
            logs.emit("guards", "\n".join(f"  {source}: {name} {argument!r}" for source, name, argument in checks))
        if logs.enabled("bytecode"):
            logs.emit("bytecode", "\n".join(listing(decode(where.code), where.code)))


def state_names(point: Any) -> tuple[str, ...]:
    """What the items of a point's state are called: parameters at a start, all slots inside a function."""
    return decode(point.data.where.code).names


def without_frames(outcome: Any) -> Any:
    """An outcome without its traceback, whose frames would keep the call's objects alive in a cycle."""
    if isinstance(outcome, Stopped):
        outcome.cause.__traceback__ = outcome.cause.__context__ = None
    outcome.__context__ = None
    return outcome.with_traceback(None)


def compile_function(function: FunctionType, options: Options) -> Any:
    """The compiled form of a Python function."""
    load_library()  # here, as loading what compiles belongs to compiling: the first call is for capture
    return _C.Compiled(function, Owner(function, options).start)


def reset() -> None:
    """Forget all entries of all compiled functions."""
    for owner in list(_owners):
        owner.reset()
