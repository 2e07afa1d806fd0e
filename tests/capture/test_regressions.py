"""Programs that once went wrong, each held against plain Python."""

import collections
import enum
import inspect
import re
import sys
import traceback

import numpy
import pytest
import torch

import dynacore
import dynacore.guards.plan


def outcome(function, *args):
    """What a call gives, or the exception that it raises: class, text, and lines of the traceback."""
    try:
        return function(*args)
    except Exception as error:
        lines = [(frame.name, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)[1:]]
        return type(error), str(error), lines


def compiled(function):
    return dynacore.compile(function, backend="eager")


@pytest.mark.parametrize("device", ["nowhere", "cpu:x"])
def test_device_that_does_not_exist(device):
    def move(x):
        return (x + 1).to(device)

    def make(x):
        return x + torch.ones(2, device=device)

    for program in (move, make):
        assert outcome(compiled(program), torch.ones(2)) == outcome(program, torch.ones(2))


def test_break_behind_a_handler_in_an_instruction_without_a_line():
    def program(x, fail):
        try:
            try:
                if fail:
                    torch.ones(2).item()
            except KeyError as error:
                raise RuntimeError("wrong") from error
            finally:
                x = x * 2
        except ZeroDivisionError:
            return x
        return x

    run = compiled(program)
    for fail in (True, False, True):
        ours, plain = outcome(run, torch.ones(2), fail), outcome(program, torch.ones(2), fail)
        assert torch.equal(ours, plain) if isinstance(plain, torch.Tensor) else ours == plain


class Box:
    n = 0


def embed_and_tell(x, i, log, box):
    log.append("before")
    box.n = len(log)
    y = torch.nn.functional.embedding(i, x + 1)
    log.append("after")
    return y


def embed_and_handle(x, i, log, box):
    try:
        log.append("before")
        y = torch.nn.functional.embedding(i, x + 1)
        log.append("after")
    except IndexError as error:
        log.append(str(error))
        y = x * 0
    finally:
        log.append("finally")
    return y


def embed_behind_a_break(x, i, log, box):
    with torch.no_grad(), torch.autocast("cpu"):
        log.append(str(torch.is_grad_enabled()))
        dynacore.graph_break()
        x.sum().item()
        return torch.nn.functional.embedding(i, x @ x)


def change_behind_it(x, i, log, box):
    with torch.no_grad():
        y = torch.nn.functional.embedding(i, x)
        x.add_(1)
    return y


@pytest.mark.parametrize("program", [embed_and_tell, embed_and_handle, embed_behind_a_break, change_behind_it])
def test_graph_that_raises(program):
    run = compiled(program)
    for i in ([1], [7], [0], [-1]):
        states = []
        for function in (program, run):
            log, box, x = [], Box(), torch.ones(3, 3)
            result = outcome(function, x, torch.tensor(i), log, box)
            modes = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
            states.append((repr(result), log, box.n, x.tolist(), modes))
        assert states[0] == states[1]


def test_graph_that_raises_leaves_the_modes_as_they_were():
    def program(x, i):
        with torch.no_grad(), torch.autocast("cpu"):
            x.add_(1)
            return torch.nn.functional.embedding(i, torch.rand(3, 3))

    for function in (program, compiled(program)):
        with pytest.raises(IndexError):
            function(torch.ones(3, 3), torch.tensor([7]))
        assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("sequence", [[1], (1, 2)])
def test_sequence_repeated_beyond_memory(sequence):
    def program(x, sequence, n):
        try:
            return x + len(sequence * n)
        except (MemoryError, OverflowError) as error:
            return x, type(error)

    run = compiled(program)
    for n in (2, 2**60, 2**70):
        assert repr(run(torch.ones(2), sequence, n)) == repr(program(torch.ones(2), sequence, n))


def test_identity_of_a_bool_that_only_the_run_knows():
    class Lot:
        def __init__(self, size):
            self.size = size

        def __bool__(self):
            return self.size > 0

    def program(x, n, lot):
        positive = n > 0
        return positive is True, positive is not False, positive is None, bool(lot), not lot, x + n + lot.size

    run = compiled(program)
    for n in (1, 2, 3, -1, 0, 2.5, 3.5, -2.0):
        assert repr(run(torch.ones(2), n, Lot(n))) == repr(program(torch.ones(2), n, Lot(n)))


def test_text_of_an_object_that_changes():
    array, log = numpy.arange(3), bytearray(b"a")

    def program(x):
        return str(array), f"{array}", "%s" % (array,), repr(log), x + 1

    run = compiled(program)
    assert repr(run(torch.ones(2))) == repr(program(torch.ones(2)))
    array[0], log[0] = 7, 98
    assert repr(run(torch.ones(2))) == repr(program(torch.ones(2)))


class Told(Exception):
    def __init__(self, text="nothing", more=1):
        super().__init__(text)
        self.more = more


class Asking(Exception):
    def __init__(self, text):
        super().__init__(text)


class Other(Exception):
    def __new__(cls):
        return 3


def test_raised_class_that_is_made_in_python():
    def raises(x, raised, cause):
        if cause is None:
            raise raised
        raise raised from cause

    def catches(x, raised, cause):
        try:
            raises(x, raised, cause)
        except Exception as error:
            x = x + getattr(error, "more", 5)
            return x, repr(error), repr(error.__cause__), repr(error.__context__)

    def chains(x, raised, cause):
        try:
            {}["key"]
        except KeyError:
            raises(x, raised, cause)

    for program in (raises, catches, chains):
        run = compiled(program)
        for raised in (Told, Asking, Other, KeyError):
            for cause in (None, Told, KeyError, Asking, Told("made"), 3):
                ours, plain = (repr(outcome(f, torch.ones(1), raised, cause)) for f in (run, program))
                assert ours == plain


@pytest.mark.parametrize("given", [numpy.float64(1), numpy.int64(1), numpy.ones(2), re.match("(a)", "a"), "ab", 3])
def test_iteration_of_what_only_has_subscripts(given):
    def unpacks(given):
        first, second = given
        return first, second

    def walks(given):
        return [item for item in given]

    def lists(given):
        return list(given)

    def spreads(given):
        return [*given, 1], (*given,)

    def joins(given):
        return "".join(given)

    for program in (unpacks, walks, lists, spreads, joins):
        ours, plain = outcome(compiled(program), given), outcome(program, given)
        assert repr(ours) == repr(plain)


def test_retained_gradient_is_seen():
    def program(x):
        return x.retains_grad, (x + 1).retains_grad

    run, x = compiled(program), torch.ones(2, requires_grad=True) * 1
    assert run(x) == program(x) == (False, False)
    x.retain_grad()
    assert run(x) == program(x) == (True, False)


def test_error_of_a_builtin_has_no_lines_of_ours():
    def largest(items):
        return max(items)

    def total(items):
        return sum(items, "")

    def largest_of(items):
        return max([1, 2], key=lambda item: item / (item - 2))

    for program in (largest, total, largest_of):
        run = compiled(program)
        for items in ([], {}, set(), [1, "a"], (3,)):
            assert outcome(run, items) == outcome(program, items)


def test_index_out_of_range_in_a_list():
    def kept(x, rows):
        return x[rows]

    def dropped(x, rows):
        x[rows]
        return x + 1

    for program in (kept, dropped):
        run = compiled(program)
        for rows in ([0, 1], [1, 7], (slice(None), [5])):
            ours, plain = (repr(outcome(f, torch.ones(3, 3), rows)) for f in (run, program))
            assert ours == plain


def caller():
    return sys._getframe(1).f_code.co_name, inspect.currentframe().f_back.f_locals.get("mark")


def look_down(x):
    def between():
        mark = x + 1
        return caller(), mark

    mark = x
    return caller(), between(), mark


def make_named(x):
    return collections.namedtuple("Made", "a").__module__, enum.Enum("Made", "A").__module__, x


def make_named_below(x):
    return make_named(x)


@pytest.mark.parametrize("program", [look_down, make_named, make_named_below])
def test_functions_that_look_at_their_callers(program):
    run = compiled(program)
    assert program(2) == run(2) == run(2)


class Guarded:
    def __getattr__(self, name):
        raise AttributeError(f"no {name}")

    @property
    def broken(self):
        raise AttributeError("broken")


def test_attribute_errors_from_python_code_say_which_attribute():
    def program(obj):
        out = []
        for read in (lambda: obj.some, lambda: obj.broken, lambda: obj.method()):
            try:
                read()
            except AttributeError as error:
                out.append((str(error), error.name, error.obj is obj))
        return out

    given = Guarded()
    assert compiled(program)(given) == program(given)


class LazyNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.LazyConv2d(4, 3)
        self.norm = torch.nn.LazyBatchNorm2d()
        self.linear = torch.nn.LazyLinear(2)

    def forward(self, x):
        return self.linear(self.norm(self.conv(x)).flatten(1))


def test_lazy_modules():
    """Parameters without sizes come where captured code met tensors before; they refuse every question."""

    def made_here(x):
        torch.manual_seed(0)
        return torch.nn.LazyLinear(4)(x)

    for x in (torch.ones(2, 3), torch.ones(5, 3)):
        assert torch.equal(compiled(made_here)(x), made_here(x))
    images = torch.arange(150.0).reshape(2, 3, 5, 5).sin()
    plain, net = LazyNet(), compiled(LazyNet())
    for _ in range(2):  # the first call makes the parameters
        torch.manual_seed(0)
        want = plain(images)
        torch.manual_seed(0)
        assert torch.equal(net(images), want)


def test_a_subclass_where_a_tensor_was_is_not_asked():
    class Telling(torch.Tensor):
        asked = []

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            cls.asked.append(getattr(function, "__name__", function))
            return super().__torch_function__(function, types, args, kwargs or {})

    def program(x):
        return x * 2

    run = compiled(program)
    run(torch.ones(3))
    told = torch.ones(4).as_subclass(Telling)
    Telling.asked.clear()
    assert type(run(told)) is Telling
    ours = Telling.asked[:]
    Telling.asked.clear()
    program(told)
    assert ours == Telling.asked


def test_a_mistake_while_learning_from_a_miss_costs_only_speed(monkeypatch, caplog):
    def fails(*args):
        raise LookupError("learning")

    monkeypatch.setattr(dynacore.guards.plan.Facts, "varied", fails)
    with dynacore.config.patch(on_internal_error="fallback"):
        run = compiled(lambda x: x + 1)
        run(torch.ones(2))
        assert torch.equal(run(torch.ones(3)), torch.full((3,), 2.0))
    assert "internal error while capturing" in caplog.text


def test_a_number_that_makes_an_operation_give_its_argument_back():
    """Dropout of nothing is the tensor itself; other whole numbers, open because they vary, make it another one."""

    def program(x, p):
        y = torch.nn.functional.dropout(x, p)
        return y, y is x

    run = compiled(program)
    for n in (3, 4):
        for p in (0, 1, 0.5, 0, 0.25, 1, 1.0, 0.0):
            x = torch.ones(n)
            torch.manual_seed(0)
            ours, same = run(x, p)
            torch.manual_seed(0)
            plain, plainly_same = program(x, p)
            assert torch.equal(ours, plain) and same == plainly_same, (n, p)


@pytest.mark.parametrize("name", "elu celu leaky_relu softplus hardshrink softshrink".split())
def test_true_as_a_number_is_not_taken_for_in_place(name):
    function = getattr(torch.nn.functional, name)

    def program(x, a):
        y = x + 0
        return function(y, a), y

    run = compiled(program)
    for a in (0.5, True, 2.0):
        x = torch.arange(-2.0, 3.0)
        assert [v.tolist() for v in run(x, a)] == [v.tolist() for v in program(x, a)]
