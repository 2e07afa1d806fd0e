"""Compiled functions beside everything else that looks at frames: tracing, profiling, monitoring, other evaluators."""

import asyncio
import contextlib
import gc
import subprocess
import sys
import weakref

import pytest
from native import building
from native.extension import SLOWDOWN, C, compiled, never, point, rest


def identity(x):
    return x


def resumed(x):
    """Two steps: the entry itself, then a point behind it."""
    return C.resume([(point(lambda a, b: a + b), [x])], 1)


# -- frames of every kind as bodies ------------------------------------------------------------------------------------


def test_deep_recursion_over_the_chunks_of_frames():
    """Frames of Python functions lie in chunks of 16 KiB; a run of calls crosses many of them, and comes back."""
    depth = 400 // min(SLOWDOWN, 4)

    def many_locals(n):
        a = b = c = d = e = f = g = h = n
        return a + b + c + d + e + f + g + h if not n else function(n - 1) + n

    function = compiled(many_locals)
    for _ in range(20):
        assert function(depth) == depth * (depth + 1) // 2


def test_closures_and_cells():
    def make(start):
        total = start

        def add(x, *more, scale=1, **named):
            nonlocal total
            total += scale * (x + sum(more)) + sum(named.values())
            return lambda: total

        return add

    plain, function = make(10), make(10)
    function = C.Compiled(function, started(function))
    for args, kwargs in [((1,), {}), ((1, 2, 3), {"scale": 2}), ((1,), {"z": 5})]:
        assert function(*args, **kwargs)() == plain(*args, **kwargs)()


def started(function):
    """A point that runs the plain function on the state of a call: its parameters in order."""

    def body(x, scale, more, named):
        return function(x, *more, scale=scale, **named)

    made = C.Point(None, never, code=function.__code__)
    made.add(C.Entry(C.Guards(("root", None, (), -1, tuple(("arg", i, (), i, ()) for i in range(4))), 4), body))
    return made


def test_generators_resume_compiled_functions():
    inner = compiled(identity, resumed)

    def numbers(n):
        for i in range(n):
            received = yield inner(i)
            if received:
                yield inner(received)

    generator = numbers(3)
    assert next(generator) == 1
    assert generator.send(10) == 11
    assert list(generator) == [2, 3]
    with pytest.raises(KeyError):
        numbers(3).throw(KeyError)
    thrown = numbers(3)
    next(thrown)
    with pytest.raises(ValueError, match="thrown in"):
        thrown.throw(ValueError("thrown in"))


def test_generators_that_entries_make():
    function = compiled(identity, lambda x: (i * i for i in range(x)))
    assert list(function(4)) == [0, 1, 4, 9]
    kept = function(4)
    next(kept)
    kept.close()
    assert list(kept) == []


def test_coroutines():
    inner = compiled(identity, resumed)

    async def work(x):
        await asyncio.sleep(0)
        return inner(x)

    function = compiled(identity, work)

    async def main():
        return await asyncio.gather(*(function(i) for i in range(5)))

    assert asyncio.run(main()) == [1, 2, 3, 4, 5]


def test_exceptions_pass_through_context_managers_and_generators():
    log = []

    @contextlib.contextmanager
    def managed():
        try:
            yield log.append("in")
        except ZeroDivisionError as error:
            log.append(type(error))
            raise LookupError("translated") from error

    function = compiled(identity, lambda x: C.resume([(point(lambda a, b: a / b), [1])], x))
    with pytest.raises(LookupError, match="translated") as caught, managed():
        function(0)
    assert log == ["in", ZeroDivisionError]
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_objects_die_when_they_would():
    class Thing:
        pass

    def run():
        things = [Thing() for _ in range(3)]
        watches = [weakref.ref(thing) for thing in things]
        look = point(lambda a, b: [watch() for watch in watches])
        function = compiled(identity, lambda x: C.resume([(look, [0])], 1))
        alive = function(things.pop())
        return [thing is not None for thing in alive], watches

    alive, watches = run()
    assert alive[:2] == [True, True]
    assert [watch() for watch in watches] == [None] * 3


# -- those who watch ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("install", [sys.settrace, sys.setprofile])
def test_tracing_and_profiling(install):
    function = compiled(identity, resumed)
    seen = []

    def watcher(frame, event, arg):
        seen.append((event, frame.f_code.co_name))
        return watcher

    previous = sys.gettrace() if install is sys.settrace else sys.getprofile()
    install(watcher)
    try:
        result = [function(i) for i in range(10)]
    finally:
        install(previous)
    assert result == list(range(1, 11))
    assert seen.count(("call", "resumed")) == 10
    assert seen.count(("call", "<lambda>")) == 10


def test_an_exception_in_a_tracer_is_the_calls():
    function = compiled(identity, resumed)

    def watcher(frame, event, arg):
        if frame.f_code.co_name == "<lambda>":
            raise RuntimeError("no tracing here")
        return watcher

    previous = sys.gettrace()
    sys.settrace(watcher)
    try:
        with pytest.raises(RuntimeError, match="no tracing here"):
            function(1)
    finally:
        sys.settrace(previous)
    assert function(1) == 2


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="there is no sys.monitoring here")
def test_monitoring():
    monitoring, tool = sys.monitoring, 4
    function = compiled(identity, resumed)
    events = monitoring.events
    started, unwound = [], []
    monitoring.use_tool_id(tool, "dynacore's tests")
    try:
        monitoring.register_callback(tool, events.PY_START, lambda code, at: started.append(code.co_name))
        monitoring.register_callback(tool, events.PY_UNWIND, lambda code, at, error: unwound.append(code.co_name))
        monitoring.set_events(tool, events.PY_START | events.PY_UNWIND | events.LINE)
        assert [function(i) for i in range(5)] == [1, 2, 3, 4, 5]
        with pytest.raises(TypeError):
            function(None)
    finally:
        monitoring.set_events(tool, events.NO_EVENTS)
        monitoring.free_tool_id(tool)
    assert started.count("resumed") == started.count("<lambda>") == 6
    assert unwound.count("<lambda>") == 1


def test_the_recursion_limit_counts_each_call_once():
    def measure(function):
        depths = []

        def descend(n):
            depths.append(n)
            return holder[0](n + 1)

        holder = [function(descend)]
        with pytest.raises(RecursionError):
            holder[0](0)
        return len(depths)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(300)
    try:
        plain, ours = measure(lambda f: f), measure(lambda f: C.Compiled(f, point(f, code=f.__code__)))
    finally:
        sys.setrecursionlimit(limit)
    assert abs(plain - ours) <= 2


EVALUATOR = """
#include <Python.h>

static long evaluated = 0;

static PyObject *
evaluate(PyThreadState *tstate, struct _PyInterpreterFrame *frame, int throwing)
{
    evaluated++;
    return _PyEval_EvalFrameDefault(tstate, frame, throwing);
}

static PyObject *
install(PyObject *self, PyObject *on)
{
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    _PyInterpreterState_SetEvalFrameFunc(interpreter, on == Py_True ? evaluate : _PyEval_EvalFrameDefault);
    return PyLong_FromLong(evaluated);
}

static PyMethodDef methods[] = {{"install", install, METH_O, NULL}, {NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "evaluator", NULL, -1, methods};

PyMODINIT_FUNC
PyInit_evaluator(void)
{
    return PyModule_Create(&definition);
}
"""


def test_another_frame_evaluator(tmp_path):
    """PEP 523: whoever replaces the evaluator of frames sees ours like all others, and nothing else changes."""
    source = tmp_path / "evaluator.c"
    source.write_text(EVALUATOR, "utf-8")
    building.need_compiler()
    evaluator = building.load(
        building.link(building.compile_objects([source], tmp_path), tmp_path / "evaluator.so"), "evaluator"
    )
    function = compiled(identity, resumed)
    deep = compiled(identity, lambda x: deep(x - 1) if x else 0)
    loop = point(lambda n: n if n == 1000 else C.resume([(loop, [])], n + 1))
    before = evaluator.install(True)
    try:
        assert [function(i) for i in range(10)] == list(range(1, 11))
        assert deep(50) == 0
        assert compiled(identity, lambda x: C.resume([(loop, [])], 0))(None) == 1000
        with pytest.raises(RecursionError):
            deep(10**6)
        assert list(i for i in (function(n) for n in range(3))) == [1, 2, 3]
    finally:
        after = evaluator.install(False)
    assert after - before > 1000
    assert function(1) == 2


def test_interpreters_end_with_compiled_functions_alive():
    """What waits in modules and in threads when the interpreter ends is freed without a crash."""
    program = """
import sys
sys.path[:] = {path!r}
from native.extension import C, compiled, never, point, rest
import builtins
function = compiled(lambda x: x, lambda x: C.resume([(point(lambda a, b: a + b), [x])], 1))
builtins.kept = function
function.cycle = [function, C.Continuation([(function.point, [function])])]
class AtEnd:
    def __del__(self):
        print(function(41))
builtins.last = AtEnd()
""".format(path=sys.path)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout in ("42\n", "")


def test_nothing_is_left_behind():
    function = compiled(identity, resumed)
    fallback = C.Compiled(identity, C.Point(None, rest(lambda state: state[0]), code=identity.__code__))
    function(1), fallback(1)
    gc.collect()
    before = len(gc.get_objects())
    for i in range(200 // SLOWDOWN):
        function(i), fallback(i)
        with pytest.raises(TypeError):
            function(None)
    gc.collect()
    assert len(gc.get_objects()) - before < 20
