"""Functions are stopped before each instruction that they run, and resumed in the interpreter: nothing may change."""

import gc
import sys
import traceback
import weakref
from types import CellType

import pytest
from models.corpus import CASES, Child, fresh_log, say
from models.outcome import fresh, lines_in, outcome
from models.reference import Cut, Frame

from bytecode_models import NULL, UNBOUND, Op, decode, resume_function

VISITS = 2  # an instruction is a place to stop at, the first times that it is reached


def ids(case):
    return case[0].__name__ if callable(case[0]) else None


def resumed(frame):
    """The function that goes on where `frame` has stopped."""
    function, state = frame.function, (frame.locals, frame.stack)
    has_cells = all(isinstance(frame.locals[slot], CellType) for slot in frame.program.frees)
    closure_of = None if has_cells else function
    code, names = function.__code__, function.__globals__
    return resume_function(code, frame.index, names, *state, handled=frame.handled, closure_of=closure_of)


def steps_to_stop_at(visited):
    seen = {}
    for step, index in enumerate(visited):
        seen[index] = seen.get(index, 0) + 1
        if seen[index] <= VISITS:
            yield step


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=lambda value: getattr(value, "__name__", ""))
class TestCorpus:
    def test_reference(self, function, arguments):
        frame = Frame(function, fresh(arguments))
        assert outcome(frame.call)[0] == outcome(lambda: function(*fresh(arguments)))[0]

    def test_cut_everywhere(self, function, arguments):
        expected, raised = outcome(lambda: function(*fresh(arguments)))
        whole = Frame(function, fresh(arguments))
        outcome(whole.call)
        for step in steps_to_stop_at(whole.visited):
            frame = Frame(function, fresh(arguments), steps=step)

            def run():
                with pytest.raises(Cut):
                    frame.call()
                return resumed(frame)()

            got, exception = outcome(run)
            where = f"{function.__name__}, step {step}, {decode(function.__code__).instrs[frame.index]}"
            assert got == expected, where
            lines = lines_in(exception, function.__code__.co_name)
            assert not lines or lines == lines_in(raised, function.__code__.co_name), where


def stopped(function, arguments, at):
    """A frame of `function` that has stopped before the first instruction for which `at` holds."""
    program = decode(function.__code__)
    whole = Frame(function, fresh(arguments))
    outcome(whole.call)
    step = next(step for step, index in enumerate(whole.visited) if at(program.instrs[index]))
    frame = Frame(function, arguments, steps=step)
    with pytest.raises(Cut):
        frame.call()
    return frame


def test_hundreds_of_slots_and_many_stack_items():
    slots, items = 300, 80
    lines = [f"    v{n} = {n}" for n in range(slots)]
    nested = "".join(f"(v{n} - " for n in range(items - 1)) + f"v{slots - 1}" + ")" * (items - 1)
    names = {}
    exec("\n".join(["def f():", *lines, f"    g = lambda: v{slots - 1}", f"    return g(), {nested}"]), names)
    frame = stopped(names["f"], (), lambda instr: instr.op is Op.BINARY)
    assert len(frame.stack) == items + 1
    assert resumed(frame)() == names["f"]()


class Resource:
    """Something whose end can be watched."""

    def __deepcopy__(self, memo):
        return Resource()


def drops(resource, use):
    extra = [resource]
    use("held")
    del extra
    resource = None
    use("dropped")
    return len([])


def test_values_die_when_the_resumed_frame_drops_them():
    resource = Resource()
    alive = weakref.ref(resource)
    seen = []
    frame = stopped(drops, (resource, lambda what: None), lambda instr: instr.op is Op.CALL)
    frame.stack[1 if frame.stack[0] is NULL else 0] = lambda what: seen.append((what, alive() is not None))
    frame.locals[1] = lambda what: seen.append((what, alive() is not None))
    function = resumed(frame)
    del resource, frame.locals, frame.stack
    assert function() == 0
    assert seen == [("held", True), ("dropped", False)]


def test_nothing_is_left_behind():
    frame = stopped(drops, (object(), say), lambda instr: instr.op is Op.CALL)
    with fresh_log():
        resumed(frame)()
    gc.collect()
    values = [*frame.locals, *frame.stack, CellType]
    before = [sys.getrefcount(value) for value in values]
    with fresh_log():
        for _ in range(50):
            resumed(frame)()
    gc.collect()
    after = [sys.getrefcount(value) for value in values]
    assert before == after


def test_programs_and_codes_die_with_their_code():
    names = {}
    exec("def f(x):\n    return [x + 1]\n", names)
    code = names["f"].__code__
    program = decode(code)
    assert decode(code) is program
    load = next(instr for instr in program.instrs if instr.op is Op.LOAD_LOCAL)
    assert resume_function(code, load.index, {}, [4], [])() == [5]
    gone, program_gone = weakref.ref(code), weakref.ref(program)
    names.clear()
    del code, program, load
    gc.collect()
    assert gone() is None
    assert program_gone() is None


def test_equal_codes_of_different_files_have_their_own_programs():
    first, second = (compile("def f(): return 1", name, "exec").co_consts[0] for name in ("one.py", "two.py"))
    assert first == second
    assert decode(first).code is first
    assert decode(second).code is second


def chained(x):
    first = x + 1
    second = (
        first
        + say("second", first)
    )  # fmt: skip
    return second + [
        x
    ]


def test_traceback_shows_the_line_and_the_columns():
    with pytest.raises(TypeError) as plain, fresh_log():
        chained(1)
    frame = stopped(chained, (1,), lambda instr: instr.op is Op.BUILD)
    with pytest.raises(TypeError) as cut:
        resumed(frame)()
    assert traceback.format_tb(cut.tb)[-1] == traceback.format_tb(plain.tb)[-1]


def test_identity_of_the_resumed_function():
    frame = stopped(Child.scaled, (Child(1), 2), lambda instr: instr.op is Op.BINARY)
    function, original = resumed(frame), Child.scaled
    assert (function.__name__, function.__qualname__) == ("scaled", "Child.scaled")
    assert function.__code__.co_filename == original.__code__.co_filename
    assert function.__code__.co_firstlineno == original.__code__.co_firstlineno
    assert function.__globals__ is original.__globals__


def shows_locals(a, b):
    c = a
    del b
    kept = lambda: c
    say("here")
    return sorted(locals()), kept()


def test_locals_are_those_of_the_user():
    frame = stopped(shows_locals, (1, 2), lambda instr: instr.op is Op.CALL)
    with fresh_log():
        assert resumed(frame)() == (["a", "c", "kept"], 1)


def profiled(function, error):
    """The events of the function's frame, with lines counted from its first."""
    events = []

    def profile(frame, event, argument):
        if frame.f_code.co_name == function.__name__ and event in ("call", "return"):
            events.append((event, frame.f_lineno - function.__code__.co_firstlineno))

    sys.setprofile(profile)
    try:
        with pytest.raises(error):
            function()
    finally:
        sys.setprofile(None)
    return events


def test_profilers_see_balanced_events():
    frame = stopped(chained, ([1],), lambda instr: instr.op is Op.BINARY)
    assert profiled(resumed(frame), TypeError) == [("call", 1), ("return", 1)]


def blames_its_body(manager):
    with manager:
        (lambda: None)()
        manager.missing()
    return manager


class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *what):
        return False


def test_the_line_to_blame_survives_a_handler():
    frame = stopped(blames_its_body, (Quiet(),), lambda instr: instr.op is Op.CALL_EXIT)
    assert profiled(resumed(frame), AttributeError) == [("call", 1), ("return", 3)]


class Old:
    def name(self):
        return "old"


class New(Old):
    def name(self):
        get = super
        say("between")
        return get().name(), (lambda: self)() is self

    def unbound(self):
        get = super
        del self
        say("between")
        return get().name()


def test_super_without_arguments_finds_them():
    frame = stopped(New.name, (New(),), lambda instr: instr.op is Op.POP)
    with fresh_log():
        assert resumed(frame)() == ("old", True)


def test_super_without_arguments_notices_a_deleted_self():
    frame = stopped(New.unbound, (New(),), lambda instr: instr.op is Op.CALL)
    with pytest.raises(RuntimeError, match=r"super\(\): arg\[0\] deleted"), fresh_log():
        resumed(frame)()


def outer_handler(inside):
    try:
        raise KeyError("outer")
    except KeyError:
        try:
            raise ValueError("inner")
        except ValueError:
            say("innermost")
            chain = [repr(sys.exc_info()[1])]
        chain.append(repr(sys.exc_info()[1]))
    chain.append(repr(sys.exc_info()[1]))
    return chain


def test_handled_exceptions_are_nested_and_given_back():
    frame = stopped(outer_handler, (0,), lambda instr: instr.op is Op.LOAD_CONST and instr.a == "innermost")
    with fresh_log():
        assert resumed(frame)() == ["ValueError('inner')", "KeyError('outer')", "None"]
    assert sys.exc_info() == (None, None, None)


def test_free_variables_can_come_from_the_function():
    shared = [1]

    def reads(x):
        y = x + 1
        return shared, y

    code = reads.__code__
    instr = next(i for i in decode(code).instrs if i.op is Op.LOAD_DEREF)
    locals_ = [1, 5, UNBOUND]
    assert resume_function(code, instr.index, {}, locals_, [], closure_of=reads)() == (shared, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((0, {}, [], []), "has 1 slots, not 0"), ((1, {}, [1], [2, 3]), "has 0 stack items at 1, not 2")],
)
def test_impossible_states_are_refused(arguments, message):
    def f(x):
        return x

    with pytest.raises(ValueError, match=message):
        resume_function(f.__code__, *arguments)


def test_only_functions_are_resumed():
    def generator():
        yield

    for code in (generator.__code__, compile("x = 1", "", "exec")):
        with pytest.raises(ValueError, match="isn't the code of a plain function"):
            resume_function(code, 0, {}, [], [])
