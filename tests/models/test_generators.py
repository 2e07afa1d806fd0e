"""Generators and coroutines are stopped everywhere, running and suspended, and live on as real ones."""

import gc
import sys
import types
import weakref

import pytest
from models.corpus import fresh_log
from models.corpus_generators import SCRIPTS, counter, delegating, guarded
from models.outcome import describe, fresh
from models.reference import Cut, Frame

from bytecode_models import decode, resume_generator


def resumed(frame, sent):
    """The generator that goes on where `frame` has stopped."""
    closed = any(not isinstance(frame.locals[slot], types.CellType) for slot in frame.program.frees)
    return resume_generator(
        frame.function.__code__,
        frame.index,
        frame.function.__globals__,
        frame.locals,
        frame.stack,
        handled=frame.handled,
        closure_of=frame.function if closed else None,
        sent=sent,
    )


def act(generator, action, *arguments):
    """One line of a script, and what came of it."""
    try:
        return "gave", repr(getattr(generator, action)(*arguments))
    except (Exception, GeneratorExit) as exception:
        return "raised", describe(exception), getattr(exception, "value", None)


def play(generator, script, results):
    for action in script:
        results.append(act(generator, *fresh(action)))
    return results


def plain(function, arguments, script):
    with fresh_log() as said:
        results = play(function(*fresh(arguments)), script, [])
    return results, said


@pytest.mark.parametrize(("function", "arguments", "script"), SCRIPTS, ids=lambda value: getattr(value, "__name__", ""))
class TestScripts:
    def test_reference(self, function, arguments, script):
        with fresh_log() as said:
            results = play(Frame(function, fresh(arguments)).run(), script, [])
        assert (results, said) == plain(function, arguments, script)

    def test_cut_while_suspended(self, function, arguments, script):
        expected = plain(function, arguments, script)
        for at in range(1, len(script)):
            frame = Frame(function, fresh(arguments))
            with fresh_log() as said:
                running = frame.run()
                results = play(running, script[:at], [])
                if running.gi_frame is None:
                    break
                generator = resumed(frame, sent=True)
                frame.abandoned = True
                play(generator, script[at:], results)
            assert (results, said) == expected, at

    def test_cut_while_running(self, function, arguments, script):
        expected = plain(function, arguments, script)
        whole = Frame(function, fresh(arguments))
        with fresh_log():
            play(whole.run(), script, [])
        start = next(step for step, index in enumerate(whole.visited) if whole.program.instrs[index].a == "function")
        for step in range(start, len(whole.visited)):
            frame = Frame(function, fresh(arguments), steps=step)
            with fresh_log() as said:
                running, results, at = frame.run(), [], 0
                with pytest.raises(Cut):
                    for at, action in enumerate(script):
                        results.append(act(running, *fresh(action)))
                generator = resumed(frame, sent=False)
                results.append(act(generator, "send", None))
                if script[at][0] == "close":
                    results[-1] = close_result(results[-1])
                play(generator, script[at + 1 :], results)
            where = step, decode(function.__code__).instrs[frame.index]
            assert (results, said) == expected, where


def close_result(result):
    """What close() makes of the frame's end, which it waits for."""
    if result[0] == "gave":
        return "raised", describe(RuntimeError("generator ignored GeneratorExit")), None
    return ("gave", "None") if result[1][0] in (GeneratorExit, StopIteration) else result


def suspended(function, *arguments):
    """A frame that has come to its first YIELD."""
    frame = Frame(function, arguments)
    with fresh_log():
        next(running := frame.run())
    frame.abandoned = True
    running.close()
    return frame


def test_it_is_a_generator_like_any_other():
    frame = suspended(counter, 3)
    generator = resumed(frame, sent=True)
    assert type(generator) is types.GeneratorType
    assert (generator.__name__, generator.__qualname__) == ("counter", "counter")
    assert not generator.gi_running
    assert generator.gi_frame.f_locals == {"n": 3, "i": 0}
    assert generator.gi_frame.f_lineno == counter.__code__.co_firstlineno + 2
    assert next(generator) == 1


def test_it_says_to_what_it_delegates():
    frame = suspended(delegating, 3)
    generator = resumed(frame, sent=True)
    assert generator.gi_yieldfrom is frame.receiver(frame.program.instrs[frame.index - 1])
    assert resumed(suspended(counter, 3), sent=True).gi_yieldfrom is None


def test_closing_runs_the_end():
    with fresh_log() as said:
        generator = resumed(suspended(guarded, 3), sent=True)
        del generator
        gc.collect()
    assert any("'exit', 'generator'" in what for what in said)


def test_values_die_with_it():
    class Resource:
        pass

    frame = suspended(counter, 3)
    frame.locals[0] = resource = Resource()
    alive = weakref.ref(resource)
    generator = resumed(frame, sent=True)
    del frame, resource
    gc.collect()  # the reference interpreter's own cycles
    assert alive() is not None
    generator.close()
    assert alive() is None


def handles():
    try:
        raise KeyError("kept")
    except KeyError:
        yield "in handler"
        yield repr(sys.exc_info()[1])
    yield repr(sys.exc_info()[1])


def test_the_exception_it_handles_is_its_own():
    generator = resumed(suspended(handles), sent=True)
    assert sys.exc_info()[1] is None
    assert next(generator) == "KeyError('kept')"
    try:
        raise ValueError("of the caller")
    except ValueError as error:
        assert next(generator) == repr(error)
    assert sys.exc_info()[1] is None


def test_what_cannot_be_resumed_is_refused():
    async def asynchronous():
        yield

    code = counter.__code__
    with pytest.raises(ValueError, match="isn't behind a YIELD"):
        resume_generator(code, 5, {}, [1, 2, 3], [])
    for index in range(decode(code).creation + 1):
        with pytest.raises(ValueError, match="is no generator yet at instruction"):
            resume_generator(code, index, {}, [1, 2, 3], [], sent=False)
    for other in (asynchronous.__code__, describe.__code__):
        with pytest.raises(ValueError, match="isn't the code of a generator"):
            resume_generator(other, 0, {}, [], [])
