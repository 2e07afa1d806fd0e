"""Alternatives: what is timed, what is taken and noted, and that they all give the same numbers."""

import json

import pytest
import torch
import torch.nn.functional as F
from gpu.alternatives import Clock, fastest
from gpu.helpers import assert_same, checked_reports
from gpu.programs import tensors

import backend_gpu
import dynacore
from backend_gpu import alternatives, split
from backend_gpu.ir.loops import Loops
from backend_gpu.render.source import Source
from backend_gpu.render.tiles import Tile
from backend_gpu.runtime.choosing import Alternative, Chooser
from backend_gpu.split import Rule

MODE = "max-autotune-no-cudagraphs"


class Adds:
    """An alternative that adds its first argument to the second, or fails."""

    def __init__(self, error=None):
        self.error, self.calls = error, 0

    def sources(self):
        return []

    def __call__(self, x, out, *sizes):
        self.calls += 1
        if self.error is not None:
            raise self.error
        out.add_(x)


class Machine:
    """A device whose clock is a test's."""

    interpreted, name, shared_memory = False, "a machine", 1 << 16

    def __init__(self, clock):
        self.clock, self.warmed = clock, 0

    def warm(self, sources):
        self.warmed += 1
        return []


def chooser(clock, ways, key="a kernel", choices=None):
    found = [Alternative(name, lambda way=way: way) for name, way in ways.items()]
    note = (choices if choices is not None else []).append
    return Chooser(Source("k", key, [], {}, Tile(1)), key, found, 2, [1], Machine(clock), note)


@pytest.fixture
def own_cache(tmp_path):
    with backend_gpu.config.patch(cache_dir=str(tmp_path), strict=False):
        yield tmp_path


def test_the_fastest_is_taken_noted_and_what_was_written_is_put_back(own_cache):
    choices = []
    x, out = torch.ones(4), torch.full((4,), 5.0)
    for measured in (["a", "b", "c"], []):  # the second time it's read from the cache
        clock = Clock(lambda name: name == "b", calls=True)
        ways = {"a": Adds(), "b": Adds(), "c": Adds()}
        run = chooser(clock, ways, choices=choices)
        run(x, out, 4)
        assert clock.measured == measured and ways["b"].calls == 1 + len(measured) // 3
    assert torch.equal(out, torch.full((4,), 7.0))
    assert [choice.chosen for choice in choices] == ["b", "b"] and choices[0].times == {"a": 2.0, "b": 1.0, "c": 2.0}
    (entry,) = own_cache.iterdir()
    assert json.loads(entry.read_bytes().split(b"\n", 1)[1])["chosen"] == "b"
    assert str(choices[0]) == "k (4): b 1000.0000 ms; a 2000.0000 ms; c 2000.0000 ms"


def test_sizes_between_the_same_powers_of_two_share_a_choice(own_cache):
    clock, choices = Clock(lambda name: name == "b"), []
    run = chooser(clock, {"a": Adds(), "b": Adds()}, choices=choices)
    for size in (17, 20, 32, 33, 17):
        run(torch.ones(1), torch.ones(1), size)
    assert len(clock.measured) == 4 and [choice.sizes for choice in choices] == [(17,), (33,)]


@pytest.mark.parametrize("first", [True, False])
def test_what_fails_is_left_out_with_a_message(own_cache, caplog, first):
    failing = Adds(RuntimeError("too many registers"))
    ways = {"a": failing, "b": Adds()} if first else {"a": Adds(), "b": failing}
    run = chooser(Clock(lambda name: True, calls=True), ways, key=f"failing {first}")
    with caplog.at_level("WARNING"):
        for _ in range(3):
            run(torch.ones(1), torch.ones(1), 1)
    assert failing.calls == 1 and ways["b" if first else "a"].calls == 4
    with backend_gpu.config.patch(strict=True, cache_dir=str(own_cache / "other")):
        with pytest.raises(RuntimeError, match="too many registers"):
            chooser(Clock(lambda name: True, calls=True), ways)(torch.ones(1), torch.ones(1), 1)


def test_where_everything_fails_the_first_one_says_why(own_cache):
    ways = {"a": Adds(RuntimeError("no such instruction")), "b": Adds(RuntimeError("too many registers"))}
    run = chooser(Clock(lambda name: True, calls=True), ways)
    with pytest.raises(RuntimeError, match="no such instruction"):
        run(torch.ones(1), torch.ones(1), 1)


def test_without_memory_to_measure_the_first_one_runs(own_cache, monkeypatch):
    def full(self):
        raise torch.OutOfMemoryError("no")

    clock, ways = Clock(lambda name: name == "b"), {"a": Adds(), "b": Adds()}
    out = torch.ones(1)
    monkeypatch.setattr(torch.Tensor, "clone", full)
    for _ in range(2):
        chooser(clock, ways)(torch.ones(1), out, 1)
    assert not clock.measured and ways["a"].calls == 2 and not list(own_cache.iterdir())


def test_while_a_stream_is_recorded_nothing_is_measured(own_cache):
    clock, ways = Clock(lambda name: name == "b"), {"a": Adds(), "b": Adds()}
    run, arguments = chooser(clock, ways), (torch.ones(1), torch.ones(1), 1)
    clock.is_ready = False
    run(*arguments)
    assert ways["a"].calls == 1 and not clock.measured
    clock.is_ready = True
    run(*arguments)
    assert ways["b"].calls == 1 and clock.measured == ["a", "b"]


def test_a_damaged_note_is_measured_anew(own_cache):
    for content in (b"not json", b'{"chosen": "gone", "times": {}}', b"[]"):
        for entry in own_cache.iterdir():
            entry.unlink()
        clock = Clock(lambda name: True)
        chooser(clock, {"a": Adds(), "b": Adds()})(torch.ones(1), torch.ones(1), 1)
        (entry,) = own_cache.iterdir()
        backend_gpu.runtime.cache.write(entry.name, content)
        chooser(clock, {"a": Adds(), "b": Adds()})(torch.ones(1), torch.ones(1), 1)
        assert len(clock.measured) == 4


def test_tiles_start_with_the_usual_one_and_differ():
    for form, persistent in (("pointwise", True), ("rows", True), ("rows", False)):
        tile = Tile(1, 2048, 8, 1, persistent)
        found = alternatives.tiles(Loops("k", form, 64, 2048, [], [], [], persistent), tile)
        assert found[0] == tile and len(set(found)) == len(found) > 2


def test_kernels_of_other_rows_share_no_tiles_that_are_measured(plans):
    """With the usual tile neither needs a mask; with a larger one one of them does."""
    from backend_gpu.kernels import Kernels
    from backend_gpu.runtime.device import Interpreter

    for size in (8192, 24576):
        dynacore.reset()
        dynacore.compile(torch.relu, backend="gpu", dynamic=False)(torch.randn(size))
    steps = [plan.steps[0] for plan in plans]
    for note, launchers in ((None, 1), ([].append, 2)):
        kernels = Kernels(Interpreter(), torch.device("cpu"), note)
        assert len({kernels.name(step) for step in steps}) == launchers


def test_a_gpus_clock_flushes_the_cache_before_each_call(monkeypatch):
    """With stand-ins for the device: what is queued in which order, and that the median counts."""
    from backend_gpu.runtime.gpu import REPEATS, GpuClock

    queued, spans = [], iter([5.0] * (REPEATS // 2) + [3.0] * (REPEATS - REPEATS // 2))

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            queued.append("event")

        def synchronize(self):
            queued.append("wait")

        def elapsed_time(self, end):
            return next(spans)

    class Flush:
        def zero_(self):
            queued.append("flush")

    class Device:
        def __init__(self, index):
            assert index == 1

        def __enter__(self):
            queued.append("device")

        def __exit__(self, *exception):
            queued.append("end")

    monkeypatch.setattr(torch, "empty", lambda *size, **options: Flush())
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "device", Device)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    clock = GpuClock(1)
    assert clock.ready() and clock.seconds("a", lambda: queued.append("call")) == 5e-3
    assert queued == ["device", "call", *["flush", "event", "call", "event", "wait"] * REPEATS, "end"]


# --- ways to run over rows -------------------------------------------------------------------------------------------


def softmax_and_sum(x):
    return F.softmax(x, -1), x.sum(-1)


def norm(x):
    return F.layer_norm(x, x.shape[-1:])


def positions(x):
    return x.argmax(-1), x.amin(-1)


def over_batch(x):
    y = x.view(197, 5)
    return y.var(0), y.sum(0)


ROWS = {f.__name__: f for f in (softmax_and_sum, norm, positions, over_batch)}
SMALL = {"along": Rule(1, 256, 64, 16, 64), "across": Rule(32, 256, 16, 8, 64)}


def forced(function, x, wanted):
    """The choices made for a function, whose results are compared with eager's."""
    backend_gpu.clear_reports()
    dynacore.reset()
    with fastest(wanted):
        got = dynacore.compile(function, backend="gpu", mode=MODE, fullgraph=True, dynamic=False)(x)
    assert_same(got, function(x), 1e-4)
    return [choice for report in checked_reports() for choice in report.choices]


@pytest.mark.parametrize("kind", ["persistent", "looped", "rows in pieces"])
@pytest.mark.parametrize("program", ROWS)
def test_each_way_to_run_over_rows_gives_the_same_numbers(program, kind, monkeypatch):
    monkeypatch.setattr(alternatives, "LOOP_FROM", 2)
    monkeypatch.setattr(alternatives, "TRIED", SMALL)
    choices = forced(ROWS[program], *tensors((5, 197)), kind)
    taken = [choice for choice in choices if choice.chosen.startswith(kind)]
    assert taken and all({"persistent", "looped"} <= {n.split(",")[0] for n in choice.times} for choice in taken)
    assert any("rows in pieces" in choice.times for choice in choices)


def test_what_is_cut_by_rule_comes_first_and_runs_unmeasured(monkeypatch):
    monkeypatch.setattr(split, "RULES", SMALL)
    (x,) = tensors((5, 197))
    got = dynacore.compile(norm, backend="gpu", mode=MODE, fullgraph=True, dynamic=False)(x)
    assert_same(got, norm(x))
    (choice,) = [one for one in forced(norm, x, "rows in pieces") if "rows in pieces" in one.times]
    assert next(iter(choice.times)) == "rows in pieces"


def test_an_overwritten_input_is_read_before_in_each_way(monkeypatch):
    monkeypatch.setattr(alternatives, "LOOP_FROM", 2)
    monkeypatch.setattr(alternatives, "TRIED", SMALL)

    def centre(x):
        x.sub_(x.mean(-1, keepdim=True))
        return x.sum()

    for kind in ("persistent", "looped", "rows in pieces"):
        x, y = tensors((5, 197)) * 2
        x, y = x.clone(), y.clone()
        dynacore.reset()
        with fastest(kind):
            got = dynacore.compile(centre, backend="gpu", mode=MODE, fullgraph=True, dynamic=False)(x)
        assert_same([got, x], [centre(y), y], 1e-4)


def test_rows_that_are_looped_over_may_be_held_whole():
    (choice,) = forced(lambda x: F.softmax(x, -1), *tensors((2, 17000)), "persistent")
    assert choice.chosen.startswith("persistent, 1 x 32768")
    assert next(iter(choice.times)).startswith("looped")


def test_no_kernel_of_rows_writes_over_what_it_reads_while_that_is_open():
    def function(x):
        h = x @ x
        return F.softmax(h, -1) + 1

    for mode, over in (("default", True), (MODE, False)):
        backend_gpu.clear_reports()
        dynacore.reset()
        dynacore.compile(function, backend="gpu", mode=mode, fullgraph=True, dynamic=False)(*tensors((18, 18)))
        assert ("its memory is free again" in checked_reports()[0].program) == over


def test_the_report_says_what_was_chosen():
    forced(norm, *tensors((5, 197)), "persistent, 8")
    text = str(backend_gpu.reports()[0])
    assert "persistent, 8 x 256" in text and " ms; " in text
