"""Entries, misses, continuations: who runs with which state."""

import gc
import sys
import threading
import weakref

import pytest
from native.extension import SLOWDOWN, C, compiled, never, node, point, refuse, rest, root, take


def identity(x):
    return x


class Thing:
    """Something that can be referred to weakly."""


def start(body):
    """A compiled one-argument function whose entry runs `body`."""
    return compiled(identity, body)


def test_newest_entry_whose_guards_hold_runs():
    compiled_identity = start(lambda x: "any")
    entries = compiled_identity.point
    integers = C.Guards(root(node("arg", 0, checks=(("type", int),))), 0)
    entry = C.Entry(integers, lambda: "int", data="free")
    entries.add(entry)
    assert (compiled_identity(1), compiled_identity("1")) == ("int", "any")
    assert (entry.hits, entry.data, entry.valid) == (1, "free", True)
    entry.valid = False
    assert compiled_identity(1) == "any"
    assert entry.hits == 1
    entry.valid = True
    assert [other.hits for other in entries.entries] == [1, 2]
    assert entries.remove(entry) is True
    assert entries.remove(entry) is False
    assert compiled_identity(1) == "any"
    entries.clear()
    assert entries.entries == ()


def test_miss_installs_an_entry():
    seen = []

    def miss(where, state):
        seen.append((where, list(state)))
        entry = C.Entry(take(1), lambda x: x + 1)
        where.add(entry)
        return entry

    where = C.Point(miss, never, code=identity.__code__)
    function = C.Compiled(identity, where)
    assert [function(1), function(2)] == [2, 3]
    assert seen == [(where, [1])]


def test_miss_may_decline_or_return_what_does_not_hold():
    answers = iter([None, C.Entry(refuse(), never), 7, C.Entry(C.Guards(root(), 0), lambda: "entry")])
    where = C.Point(lambda where, state: next(answers), rest(lambda state: ("fallback", state)), code=identity.__code__)
    function = C.Compiled(identity, where)
    assert function(1) == ("fallback", [1])
    assert function(2) == ("fallback", [2])
    with pytest.raises(TypeError, match="miss returned int"):
        function(3)
    assert function(4) == "entry"


def test_exception_in_miss_is_the_calls():
    def miss(where, state):
        raise LookupError("in miss")

    with pytest.raises(LookupError, match="in miss"):
        C.Compiled(identity, C.Point(miss, never, code=identity.__code__))(1)


def test_miss_may_keep_the_state():
    kept = []
    arguments = [node("arg", i, node("call", lambda _: kept[-1].clear()), handed=i) for i in range(2)]
    guards = C.Guards(root(*arguments), 2)
    miss = lambda where, state: kept.append(state) or C.Entry(guards, lambda a, b: (a, b))
    assert C.Compiled(lambda a, b: None, C.Point(miss, never))("still", "there") == ("still", "there")
    assert kept == [[]]


def test_continuations_run_innermost_first_and_values_travel_outwards():
    log = []

    def frame(name):
        return point(lambda *items: log.append((name, items)) or f"value of {name}", count=2)

    inner, middle, outer = frame("inner"), frame("middle"), frame("outer")
    body = start(lambda x: C.Continuation([(inner, [x, 0]), (middle, [1]), (outer, [2])]))
    assert body("x") == "value of outer"
    assert log == [("inner", ("x", 0)), ("middle", (1, "value of inner")), ("outer", (2, "value of middle"))]


def test_resume_appends_the_value():
    inner, outer = point(lambda a, b: a + b), point(lambda a, b: a * b)
    assert start(lambda x: C.resume([(inner, [x]), (outer, [10])], 5))(2) == 70
    assert start(lambda x: C.resume([], "the value itself"))(0) == "the value itself"


def test_a_frame_that_returns_a_continuation_keeps_those_that_wait():
    last = point(lambda a, b: (a, b))
    second = point(lambda a: C.resume([(last, [a])], "second"))
    outer = point(lambda a, b: ["outer", a, b])
    assert start(lambda x: C.Continuation([(second, [x]), (outer, [0])]))(1) == ["outer", 0, (1, "second")]


def test_many_continuations_need_no_stack():
    count = 100_000 // SLOWDOWN

    def step(n):
        return n if n == count else C.resume([(loop, [])], n + 1)

    loop = point(step)
    depth = []
    where = point(lambda n, total: depth.append(len(stack())) or total)
    assert start(lambda x: C.resume([(loop, []), (where, [0])], 0))(None) == count
    assert depth == [len(stack()) + 1]


def test_many_waiting_frames():
    count = 5000 // SLOWDOWN
    add = point(lambda a, b: a + b)
    assert start(lambda x: C.resume([(add, [1]) for _ in range(count)], 0))(None) == count

    def nest(n):
        return C.Continuation([(deeper, [n - 1]), (add, [1])]) if n else 0

    deeper = point(nest)
    assert start(nest)(count) == count


def stack():
    frame, frames = sys._getframe(1), []
    while frame:
        frames.append(frame)
        frame = frame.f_back
    return frames


def test_state_lists_must_be_lists_of_frames():
    for frames in ([(1, [])], [(point(), ())], [point()], ((point(), []),)):
        with pytest.raises(TypeError, match="frame"):
            C.Continuation(frames)
    with pytest.raises(ValueError, match="needs a frame"):
        C.Continuation([])
    with pytest.raises(TypeError, match="an exception is needed, not type"):
        C.resume_raise([], ValueError)


def test_references_of_the_state_are_dropped_before_the_function_runs():
    alive = []
    kept, dropped = Thing(), Thing()
    watch = weakref.ref(dropped)
    where = C.Point(None, never)
    guards = C.Guards(root(node("arg", 1, handed=0)), 1)
    where.add(C.Entry(guards, lambda thing: alive.append(watch())))
    frames = [(where, [dropped, kept])]
    del dropped
    start(lambda x: C.Continuation(frames.copy()) if not frames.clear() else None)
    entry = start(lambda x: C.Continuation([frames.pop()]))
    entry(0)
    assert alive == [None]


def test_boxed_arguments_can_be_dropped_early():
    def body(box):
        watch = weakref.ref(box[0])
        box.clear()
        return watch()

    where = C.Point(None, never)
    where.add(C.Entry(take(1), body, boxed=True))
    assert start(lambda x: C.Continuation([(where, [Thing()])]))(0) is None
    watched = point(lambda thing: weakref.ref(thing)())
    assert isinstance(start(lambda x: C.Continuation([(watched, [Thing()])]))(0), Thing)


def test_entries_may_call_compiled_functions():
    def factorial(n):
        return n * function(n - 1) if n else 1

    function = compiled(factorial)
    assert function(20) == 2432902008176640000


def test_recursion_ends_in_recursion_error():
    function = start(lambda x: function(x))
    with pytest.raises(RecursionError):
        function(1)
    circular = C.Compiled(identity, C.Point(None, never, code=identity.__code__))
    circular.point.add(C.Entry(take(1), circular))
    with pytest.raises(RecursionError):
        circular(1)


def test_c_stack_is_watched():
    function = start(lambda x: function(x))
    errors = []

    def run():
        try:
            function(1)
        except RecursionError as error:
            errors.append(error)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
    assert len(errors) == 1


def test_signals_are_handled_between_steps():
    import signal

    interrupted = []

    def step(n):
        if n == 3:
            signal.raise_signal(signal.SIGUSR1)
        return n if n == 10 else C.resume([(loop, [])], n + 1)

    loop = point(step)
    previous = signal.signal(signal.SIGUSR1, lambda *_: interrupted.append(1))
    try:
        assert start(step)(0) == 10
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert interrupted == [1]


def test_reference_counts_stay():
    thing, key = Thing(), object()
    adder = point(lambda a, b: a)
    function = start(lambda x: C.resume([(adder, [x])], key))
    boxed = C.Compiled(identity, C.Point(None, never, code=identity.__code__))
    boxed.point.add(C.Entry(take(1), lambda box: box.pop(), boxed=True))
    fallback = C.Compiled(
        identity, C.Point(lambda where, state: None, rest(lambda state: state[0]), code=identity.__code__)
    )

    def counts():
        return [sys.getrefcount(x) for x in (thing, key, adder, function, boxed, fallback, function.point.entries[0])]

    def run():
        for call in (function, boxed, fallback):
            assert call(thing) is thing
            assert call(x=thing) is thing
            with pytest.raises(TypeError):
                call(thing, thing)

    run()
    before = counts()
    for _ in range(5):
        run()
    gc.collect()
    assert counts() == before


def test_everything_can_be_collected():
    def make():
        loop = Thing()
        where = C.Point(lambda where, state: loop, never, code=identity.__code__)
        function = C.Compiled(identity, where)
        loop.where, loop.function = where, function
        where.data = loop
        where.handlers = ((ValueError, where, 0, True, None),)
        guards = C.Guards(root(node("const", loop, node("dict"))), 0)
        entry = C.Entry(guards, lambda: function, data=loop)
        where.add(entry)
        function.loop = loop
        function(1)
        loop.continuation = C.Continuation([(where, [loop])])
        return [weakref.ref(x) for x in (where, function, guards, entry, loop)]

    watches = make()
    gc.collect()
    assert [watch() for watch in watches] == [None] * 5


def test_attributes():
    function = start(identity)
    function.__name__ = "name"
    function.anything = 1
    assert (function.__wrapped__, function.__name__, vars(function)["anything"]) == (identity, "name", 1)
    assert repr(function) == f"<compiled {identity!r}>"
    assert repr(C.UNBOUND) == "UNBOUND" and repr(C.NULL) == "NULL"
    where = C.Point(None, never, code=identity.__code__, line=3, data="data")
    assert (where.code, where.line, where.handled, where.data, where.visible) == (
        identity.__code__,
        3,
        -1,
        "data",
        True,
    )
    with pytest.raises(TypeError, match="handlers must be"):
        where.handlers = ((ValueError, where, 0, True),)
    with pytest.raises(TypeError, match="an Entry is needed"):
        where.add(function)
    for bad in ({"miss": 1}, {"fallback": 1}, {"code": 1}):
        with pytest.raises(TypeError, match=f"{next(iter(bad))} must be"):
            C.Point(**({"miss": None, "fallback": never} | bad))


def test_compiled_is_copied_and_pickled_like_a_function():
    import copy
    import pickle

    function = start(identity)
    function.__module__, function.__qualname__ = __name__, "pickled"
    globals()["pickled"] = function
    try:
        assert copy.copy(function) is function and copy.deepcopy([function])[0] is function
        assert pickle.loads(pickle.dumps(function)) is function
    finally:
        del globals()["pickled"]
