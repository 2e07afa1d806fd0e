"""From a miss to an entry: one capture, its guards, its function; recompile limits; what goes wrong."""

from __future__ import annotations

import functools
import sys
import threading
import time
import weakref
from types import CodeType, FunctionType
from typing import Any

from bytecode_models import decode
from bytecode_models.listing import listing

from . import _C, logs, stats, torch_memory
from .artifacts import Artifact, Registry, conditions, lives_on
from .backends import call_backend, compiles
from .config import config
from .emit.entry import Emitted, Restart, write_entry
from .errors import DynacoreError, FullGraphError, InternalError, RecompileLimitError
from .graph.builder import Graph
from .graph.failures import Failing, Recovery
from .graph.state import SETTERS, TorchState, capture_allowed, rely_on_switches
from .guards import probe
from .guards.coverage import covered
from .guards.plan import Plan, bound
from .guards.twin import Failure, evaluate
from .library import load as load_library
from .machine import Finished, Frame, Machine, Stopped
from .options import Options
from .points import PointData, PointTable, Where
from .reasons import Break, BreakSite
from .shims import is_shim, parameters
from .sources import Handed, This
from .values import Tensor, Value

_lock = threading.RLock()
_owners: weakref.WeakSet[Owner] = weakref.WeakSet()
_registry = Registry()
MAX_RESTARTS = 32


class _Busy(threading.local):
    capturing = False


_busy = _Busy()


class Owner:
    """What functions of one code, with the same globals and options, share: points, and what was captured."""

    def __init__(self, code: CodeType, namespace: dict, options: Options):
        self.code = code
        self.namespace = namespace
        self.options = options
        self.this = This(code.co_qualname)
        self.table = PointTable(self.miss)
        self.data = PointData(Where(code, 0, 0), namespace, self.table)
        self.artifacts: list[Artifact] = []
        self.starts: weakref.WeakKeyDictionary[Any, FunctionType] = weakref.WeakKeyDictionary()  # point: its function
        _owners.add(self)

    def start(self, function: FunctionType) -> Any:
        """A point at the first instruction of `function`."""
        start = Start(function, self)
        captured = decode(self.code).is_function and not self.code.co_flags & (0x20 | 0x80 | 0x200 | 0x100)
        miss = start.miss if captured else None
        point = _C.Point(miss, start.plain, code=self.code, line=self.code.co_firstlineno, data=self.data)
        self.starts[point] = function
        return point

    def miss(self, point: Any, state: list[Any], function: FunctionType | None = None) -> Any:
        """No entry holds: capture one, or None to go on in the interpreter. At a start, for a call of `function`."""
        data: PointData = point.data
        if data.skip or _busy.capturing or sys.gettrace() is not None or capture_allowed() is not None:
            return None
        with _lock:
            try:
                return self.entry_for(point, state, function)
            except DynacoreError:
                raise
            except Exception as error:
                self.internal_error(data, error)
                return None

    def entry_for(self, point: Any, state: list[Any], function: FunctionType | None) -> Any:
        """An entry that another thread or function has by now, else a new one; None if there may be no more."""
        for entry in point.entries:
            if entry.valid and entry.guards.check(state) is not None:
                return entry
        if function is not None and (entry := self.share(point, state, function)) is not None:
            return entry
        if not self.may_add(point, state, function):
            return None
        _busy.capturing = True
        capture = Capture(self, point, state, function)
        try:
            return capture.run()
        finally:
            _busy.capturing = False
            capture.dispose()

    def share(self, point: Any, state: list[Any], function: FunctionType) -> Any:
        """An entry made from what was captured for another function with this code; None where none of it holds."""
        now = conditions()
        own = [entry.data for entry in point.entries]
        for artifact in self.artifacts:
            if artifact not in own and artifact.conditions == now:
                guards = artifact.guards(function)
                if guards.check(state) is not None:
                    entry = artifact.entry(guards)
                    point.add(entry)
                    return entry
        return None

    def adopt(self, artifact: Artifact) -> None:
        """Offer what was captured to the other functions of this code."""
        self.artifacts.insert(0, artifact)
        if lives_on(self.code, self.namespace) and all(one.portable() for one in self.artifacts):
            _registry.keep(self)
        else:
            _registry.drop(self)

    def may_add(self, point: Any, state: list[Any], function: FunctionType | None) -> bool:
        """Whether the limit allows one more entry; learns which scalar varies."""
        now = conditions()
        known = [one for one in self.artifacts if one.conditions == now]
        if function is None:
            known = [entry.data for entry in point.entries]
        if not known:
            return True
        data: PointData = point.data
        miss = self.why_missed(known[0], point, state, function)
        if miss is not None:
            data.misses.add(miss)
            logs.emit("recompiles", f"recompiling {data.where.code.co_qualname}\n  {data.describe()}\n  {miss}")
        for artifact in known:
            data.dynamic.update(artifact.facts.varied(state, function))
        limit = config.recompile_limit
        functions = {id(one) for one in list(self.starts.values())}
        if len(point.entries) < limit and len(known) < limit * max(1, len(functions)):
            return True
        if not data.told or config.fail_on_recompile_limit:
            data.told = True
            text = (
                f"recompile limit ({limit}) reached at\n  {data.describe()}\n  {data.misses.explain()}\n"
                "  Calls that fit an entry go on using it; others run as plain Python from here on."
            )
            if config.fail_on_recompile_limit:
                raise RecompileLimitError(text)
            logs.warn(text)
        return False

    def why_missed(self, artifact: Artifact, point: Any, state: list[Any], function: Any) -> Failure | None:
        """What didn't hold of the newest that was captured, by the Python twin."""
        try:
            return artifact.facts.miss(artifact.tree, artifact.n_handed, state, state_names(point), function)
        except Exception:  # the user's objects may do anything when they are shown
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
        for point in self.starts:
            point.clear()
        self.artifacts.clear()
        self.data.forget()
        self.table.clear()


class Start:
    """One compiled function, as the point that its calls enter knows it.

    The point holds this object and not the other way round: without a cycle both end with the compiled function.
    """

    def __init__(self, function: FunctionType, owner: Owner):
        self.function = function
        self.owner = owner

    def miss(self, point: Any, state: list[Any]) -> Any:
        """No entry of this function holds."""
        return self.owner.miss(point, state, self.function)

    def plain(self, state: list[Any]) -> Any:
        """The call of the function as it is."""
        return plain_call(self.function, state)


def plain_call(function: FunctionType, state: list[Any]) -> Any:
    """The call of a function whose arguments were bound to its parameters."""
    code = function.__code__
    n, kwonly = code.co_argcount, code.co_kwonlyargcount
    args, at = state[:n], n + kwonly
    keywords = dict(zip(code.co_varnames[n:at], state[n:at]))
    if code.co_flags & 0x04:
        args += state[at]
        at += 1
    if code.co_flags & 0x08:
        keywords.update(state[at])
    state.clear()
    return functools.partial(function, *args, **keywords)


class Capture:
    """One capture at one point; at a start, for a call of `function`."""

    def __init__(self, owner: Owner, point: Any, state: list[Any], function: FunctionType | None):
        self.owner = owner
        self.point = point
        self.state = state
        self.function = function
        self.began = time.perf_counter()
        self.machine: Machine | None = None

    def run(self) -> Any:
        """Execute, emit, guard, install."""
        forced: set[tuple] = set()
        cause: Break | None = None
        for _ in range(MAX_RESTARTS):
            machine, outcome = self.execute(frozenset(forced))
            self.machine = machine
            if machine.overtaken():
                continue
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
            except Break as impossible:
                return self.leave(machine, impossible)
            return self.install(machine, emitted, site)
        raise AssertionError("too many restarts of one capture")

    def leave(self, machine: Machine, cause: Break) -> None:
        """What the frame holds can't be made: the interpreter makes it, from here on."""
        site = self.site(machine, Stopped(cause))
        assert site is not None
        if self.owner.options.fullgraph:
            raise FullGraphError([site])
        logs.emit_break(site)
        self.point.data.skip = True

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
        machine.sizes_vary = self.owner.options.dynamic
        closure: tuple[Value, ...] = ()
        if self.function is not None:
            machine.this = machine.root.child("const", self.owner.this)
            machine.this.check("func_code", where.code)
            cells = machine.this.child("func", "closure")
            closure = tuple(
                machine.wrap(cell, cells.child("item", i)) for i, cell in enumerate(self.function.__closure__ or ())
            )
        frame = Frame(decode(where.code), machine.globals_of(data.globals), closure, where.trusted)
        machine.root.key = self.names()
        machine.enter(frame, self.state, where.index, where.handlers, where.drop, where.null_above)
        try:
            machine.run()
        except (Finished, Stopped) as outcome:
            return machine, without_frames(outcome)
        raise AssertionError("the machine ends with an outcome")

    def names(self) -> tuple[str, ...]:
        """What the items of the state are called; those of a module's call, as its `forward` calls them."""
        names = state_names(self.point)
        if self.function is not None and is_shim(self.function.__code__):
            names = Handed(names)
            names.parameters = parameters(self.function.__wrapped__)  # type: ignore[attr-defined]
        return names

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
            if compiles(self.owner.options.backend):
                rely_on_switches(machine.root, emitted.graph)
            self.compile_graph(emitted)
        if emitted.recovery is not None:
            emitted.namespace["recover"] = self.recovery(machine, emitted.recovery)
        machine.keep_apart()
        plan = Plan(machine.root, emitted.handed, machine.relations, machine.graph.rely_on_gradients())
        n = len(plan.handed)
        artifact = Artifact(plan.tree, n, emitted.function(n), emitted.boxed, plan.facts, conditions())
        entry = artifact.entry(artifact.guards(self.function))
        if config.verify:
            self.verify(artifact)
        self.point.data.broke |= site is not None
        self.point.add(entry)
        if self.function is not None:
            self.owner.adopt(artifact)
        self.report(machine, emitted, plan, site, entry.guards)
        return entry

    def compile_graph(self, emitted: Emitted) -> None:
        """Hand the graph to the backend; what it gives back is `graph` in the entry's function."""
        if logs.enabled("graph"):
            logs.emit("graph", emitted.graph.print_readable(print_output=False))
        examples = [v.obj if isinstance(v, Tensor) else v.example for v in emitted.inputs]  # type: ignore[attr-defined]
        options, names = self.owner.options, emitted.namespace
        before = TorchState()
        try:
            names["graph"] = call_backend(
                options.backend_name,
                options.backend,
                emitted.graph,
                examples,
                emitted.n_outputs,
                lambda f: names.__setitem__("graph", f),
            )
        finally:
            before.restore(SETTERS)  # a backend that runs the graph to trace it, and fails there, leaves what it set

    def recovery(self, machine: Machine, failing: Failing) -> Recovery:
        """What the entry calls when its graph raises."""
        data: PointData = self.point.data
        at_start = self.function is not None

        def again(function: Any, state: list[Any]) -> Any:
            fallback = functools.partial(plain_call, function) if at_start else data.rest
            where = data.where
            return _C.Continuation([(_C.Point(None, fallback, code=where.code, line=0, data=data), state)])

        return Recovery(failing, machine.graph.before, again, data)

    def verify(self, artifact: Artifact) -> None:
        """The guards of a new entry must hold for the state that it was made from."""
        failure = evaluate(bound(artifact.tree, self.function), artifact.n_handed, self.state)[1]
        if failure is not None:
            raise AssertionError(f"a guard fails on the state that was captured: {failure}")

    def report(self, machine: Machine, emitted: Emitted, plan: Plan, site: BreakSite | None, guards: _C.Guards) -> None:
        """Logs and records."""
        if site is not None:
            logs.emit_break(site)
        where = self.point.data.where
        line = decode(where.code).instrs[where.index].line or where.code.co_firstlineno
        stats.add(
            stats.Record(
                where.code,
                line,
                self.function is not None,
                emitted.graph,
                machine.graph.n_ops if emitted.graph is not None else 0,
                plan.kinds,
                site,
                time.perf_counter() - self.began,
                tuple(dict.fromkeys(plan.constraints)),
                guards,
            )
        )
        if logs.enabled("guards"):
            checks = [(source, *check) for source in machine.root.nodes() for check in source.checks.values()]
            logs.emit("guards", "\n".join(f"  {source}: {name} {argument!r}" for source, name, argument in checks))
            guards.check(list(self.state))  # what holds is remembered
            logs.emit("guards", "\n".join(f"  {fact}" for fact in covered(guards)))
        if logs.enabled("bytecode"):
            logs.emit("bytecode", "\n".join(listing(decode(where.code))))


probe.find_watchable(_C)
torch_memory.find_tensors()
torch_memory.find_state()


def state_names(point: Any) -> tuple[str, ...]:
    """What the items of a point's state are called: parameters at a start, all slots inside a function."""
    return decode(point.data.where.code).names


def without_frames(outcome: Any) -> Any:
    """An outcome without its traceback, whose frames would keep the call's objects alive in a cycle."""
    if isinstance(outcome, Stopped):
        outcome.cause.__traceback__ = outcome.cause.__context__ = None
    outcome.__context__ = None
    return outcome.with_traceback(None)


def compile_function(function: FunctionType, options: Options, alone: bool = False) -> Any:
    """The compiled form of a Python function; `alone`: sharing nothing with other functions of its code."""
    load_library()  # here, as loading what compiles belongs to compiling: the first call is for capture
    with _lock:
        return _C.Compiled(function, owner_of(function, options, alone).start(function))


def owner_of(function: FunctionType, options: Options, alone: bool) -> Owner:
    """Who owns what is captured for this function."""
    code, namespace = function.__code__, function.__globals__
    key = (id(code), id(namespace), options.key)  # an owner keeps both, and the options, alive
    owner = None if alone else _registry.get(key)
    if owner is None:
        owner = Owner(code, namespace, options)
        if not alone:
            _registry.owners[key] = owner
    return owner


def reset() -> None:
    """Forget all entries of all compiled functions."""
    _registry.clear()
    for owner in list(_owners):
        owner.reset()
