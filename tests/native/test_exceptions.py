"""Exceptions find the handlers of the frames that wait, and tracebacks show these frames."""

import sys
import traceback

import pytest
from native.extension import C, compiled, never, point, rest


def identity(x):
    return x


def outer_code(x):
    return identity(x)


def raises(error):
    def body(x):
        raise error

    return body


def collect(where):
    """A point that returns its state."""
    return C.Point(None, rest(lambda state: (where, state)))


def run(frames, exc=None):
    """What a call gives whose entry returns these frames, or raises `exc` into them."""
    return compiled(identity, lambda x: C.resume_raise(frames, exc) if exc else C.Continuation(frames))(0)


def handling(cls, where):
    """A waiting frame whose handler for `cls` gets nothing but the exception."""
    return waiting((cls, where, 0, True, None))


def waiting(*handlers, line=0):
    made = C.Point(None, never, code=outer_code.__code__, line=line)
    made.handlers = handlers
    return made


def test_handler_gets_the_kept_state_lasti_and_the_exception():
    error = ValueError("boom")
    for keep, push, lasti, expected in [
        (1, True, None, ["a", error]),
        (2, True, 14, ["a", "b", 14, error]),
        (0, False, 14, [14]),
        (0, False, None, []),
        (9, True, None, ["a", "b", "c", error]),
    ]:
        frame = waiting((ValueError, collect("handler"), keep, push, lasti))
        assert run([(frame, ["a", "b", "c"])], error) == ("handler", expected)


def test_first_matching_handler_of_the_innermost_frame():
    error = KeyError("boom")
    handlers = [(cls, collect(cls), 0, False, None) for cls in (ValueError, LookupError, KeyError, BaseException)]
    assert run([(waiting(), []), (waiting(*handlers), [])], error) == (LookupError, [])
    assert run([(waiting(*handlers[::-1]), [])], error) == (BaseException, [])


def test_frames_outside_the_handler_still_wait():
    handler = C.Point(None, rest(lambda state: "handled"))
    frames = [(handling(ValueError, handler), []), (collect("outer"), [1])]
    assert run(frames, ValueError()) == ("outer", [1, "handled"])


@pytest.mark.parametrize("from_entry", [True, False])
def test_exception_of_a_frame_reaches_those_that_wait(from_entry):
    error = ValueError("boom")
    body = raises(error)
    inner = point(body) if from_entry else C.Point(None, rest(body))
    assert run([(inner, [0]), (handling(ValueError, collect("handler")), [])]) == ("handler", [error])


def test_exception_that_nobody_handles():
    error = ValueError("boom")
    with pytest.raises(ValueError, match="boom") as caught:
        run([(point(raises(error)), [0]), (handling(KeyError, collect("handler")), []), (waiting(), [])])
    assert caught.value is error


def test_exception_in_a_handler_goes_outwards():
    failing = C.Point(None, rest(raises(KeyError("second"))))
    frames = [
        (handling(ValueError, failing), []),
        (handling(KeyError, collect("outer")), []),
    ]
    where, (error,) = run(frames, ValueError("first"))
    assert where == "outer" and error.args == ("second",)


def test_traceback_shows_waiting_frames_once():
    line = outer_code.__code__.co_firstlineno + 1
    hidden = waiting()
    hidden.visible = False
    frames = [(waiting(line=line), []), (hidden, []), (C.Point(None, never, line=1), []), (waiting(line=line + 1), [])]
    with pytest.raises(ZeroDivisionError) as caught:
        run([(point(lambda x: 1 / x), [0]), *frames])
    names = [(entry.name, entry.lineno) for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert [name for name, _ in names] == [
        "test_traceback_shows_waiting_frames_once",
        "run",
        "outer_code",
        "outer_code",
        "<lambda>",
    ]
    assert [number for name, number in names if name == "outer_code"] == [line + 1, line]


def test_frames_of_tracebacks_can_be_looked_into():
    def with_cells(x):
        return lambda: x

    frames = [(C.Point(None, never, code=code, line=7), []) for code in (with_cells.__code__, with_cells(1).__code__)]
    with pytest.raises(ValueError) as caught:
        run(frames, ValueError())
    tb = caught.value.__traceback__
    while tb.tb_frame.f_code.co_name != "<lambda>" or tb.tb_lineno != 7:
        assert tb.tb_frame.f_locals is not None
        tb = tb.tb_next
    assert tb.tb_frame.f_locals == {} and tb.tb_frame.f_back is None
    assert tb.tb_frame.f_code.co_filename == __file__
    traceback.clear_frames(tb)


def test_traceback_of_a_handled_exception_starts_at_the_frame_that_handles_it():
    line = outer_code.__code__.co_firstlineno + 1
    handling_frame = handling(ZeroDivisionError, collect("handler"))
    handling_frame.line = line
    _, (error,) = run([(point(lambda x: 1 / x), [0]), (handling_frame, [])])
    assert [entry.name for entry in traceback.extract_tb(error.__traceback__)] == ["outer_code", "<lambda>"]


def test_context_is_left_alone():
    error, other = ValueError("boom"), KeyError("other")
    try:
        raise other
    except KeyError:
        with pytest.raises(ValueError):
            run([(waiting(), [])], error)
    assert error.__context__ is None


def test_handled_exception_is_what_exc_info_sees():
    first, second = ValueError(1), ValueError(2)
    try:
        raise first
    except ValueError:
        assert C.set_handled_exception(second) is first
        assert sys.exc_info()[1] is second
        with pytest.raises(ValueError) as caught:
            raise
        assert caught.value is second
        assert C.set_handled_exception(None) is second
        assert sys.exc_info()[1] is None
        assert C.set_handled_exception(first) is None
        assert sys.exc_info()[1] is first
    with pytest.raises(TypeError, match="an exception or None is needed"):
        C.set_handled_exception(ValueError)


def handler_frame(handled, *, at=1):
    """A waiting frame that is handling an exception, which lies at an index of its state."""
    made = point(lambda *items: sys.exc_info()[1], count=2)
    made.handled = at
    return made, ["slot", handled]


def test_frames_see_the_exception_that_the_nearest_waiting_frame_handles():
    first, second = ValueError(1), ValueError(2)
    seen = []

    def look(*items):
        seen.append(sys.exc_info()[1])

    plain = point(look, count=0)
    frames = [(plain, []), (plain, []), handler_frame(first), (plain, []), handler_frame(second), (plain, [])]
    try:
        raise KeyError
    except KeyError as error:
        run(frames)
        assert seen == [first, first, second, error]
        assert sys.exc_info()[1] is error
    assert sys.exc_info()[1] is None


def test_what_a_frame_set_as_handled_ends_with_it():
    seen = []

    def handler(x):
        C.set_handled_exception(ValueError())
        return C.Continuation([(point(lambda x: seen.append(sys.exc_info()[1])), [x])])

    run([(point(handler), [0])])
    assert seen == [None]
    assert sys.exc_info()[1] is None


@pytest.mark.parametrize("at", [0, 9, 2**30])
def test_index_without_an_exception_is_ignored(at):
    seen = []
    look = point(lambda: seen.append(sys.exc_info()[1]))
    run([(look, []), handler_frame(ValueError(), at=at)])
    assert seen == [None]


def test_no_exception_outlives_its_handler():
    import gc
    import weakref

    class Boom(Exception):
        pass

    watches = []

    def body(x):
        error = Boom()
        watches.append(weakref.ref(error))
        try:
            return C.resume_raise([(handling(Boom, C.Point(None, rest(lambda state: None))), [])], error)
        finally:
            del error

    compiled(identity, body)(0)
    gc.collect()
    assert watches[0]() is None
