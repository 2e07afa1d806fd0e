"""The logic of recording and replaying, on the CPU: a stand-in records a call, and replaying it runs it again into the
memory that it had."""

import pytest
import torch

import backend_gpu
from backend_gpu.runtime.cudagraphs import VARIANTS, Pool, Recorder, Tally
from backend_gpu.runtime.gpu import Gpu
from backend_gpu.runtime.launch import counters


class StandIn:
    """Records by keeping the call. A replay overwrites the outputs, as a device would."""

    def __init__(self):
        self.now, self.waits, self.recording = "stream 0", [], False
        self.replays = 0

    def record(self, work):
        state = torch.get_rng_state()
        outputs = work()
        torch.set_rng_state(state)  # nothing runs while a device records
        # Nobody may hold the outputs but the recorder: the stand-in keeps addresses of their memory only by closure.
        holder = [outputs]

        def again(recording_outputs):
            for old, new in zip(recording_outputs, work()):
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)

        return (again, holder), outputs

    def replay(self, recording):
        self.replays += 1
        again, (outputs,) = recording
        again(outputs)

    def stream(self):
        return self.now

    def after(self, stream):
        self.waits.append((self.now, stream))

    def recording_now(self):
        return self.recording


def recorder(run, mutated=(), never=None, pool=None):
    return Recorder(run, pool or Pool(StandIn()), mutated, never, Tally())


def double(args):
    x, w = args
    args.clear()
    return [x * w + 1]


def test_a_shape_is_recorded_once_it_was_seen_often_enough_and_then_replayed():
    r, w = recorder(double), torch.tensor(2.0)
    for number in range(6):
        x = torch.full((3,), float(number))
        (out,) = r([x, w])
        assert torch.equal(out, x * 2 + 1)
        del out
    assert (r.tally.recorded, r.tally.replayed, r.tally.ran) == (1, 4, 2)
    assert r.tally.reasons == {"not seen often enough yet": 2}


def test_parameters_are_not_copied_and_a_moved_one_is_noticed():
    keep = []
    r, w = recorder(double), torch.tensor([2.0, 3.0])
    for _ in range(4):
        keep.append(torch.ones(2))
        r([keep[-1], w])
    (recording,) = r._pool.recordings
    assert [position for position, _ in recording.static] == [1]
    w.mul_(2)  # in place: the recording reads it where it is
    assert torch.equal(r([torch.ones(2), w])[0], torch.tensor([5.0, 7.0]))
    moved = torch.tensor([10.0, 20.0])
    assert torch.equal(r([torch.ones(2), moved])[0], torch.tensor([11.0, 21.0]))
    assert r.tally.recorded == 2


def test_outputs_that_the_caller_holds_are_not_overwritten():
    r, w = recorder(double), torch.tensor(2.0)
    held = [r([torch.full((2,), float(n)), w])[0] for n in range(12)]
    for number, out in enumerate(held):
        assert torch.equal(out, torch.full((2,), 2.0 * number + 1))
    assert r.tally.recorded == VARIANTS and r.tally.reasons["outputs are still held"] == 12 - 2 - VARIANTS


def test_a_view_of_an_output_counts_as_holding_it():
    r, w = recorder(double), torch.tensor(2.0)
    for _ in range(3):
        r([torch.zeros(4), w])
    view = r([torch.arange(4.0), w])[0][1:3]
    r([torch.full((4,), 9.0), w])
    assert torch.equal(view, torch.tensor([3.0, 5.0]))


def test_mutated_inputs_are_written_back():
    def bump(args):
        x, step = args
        args.clear()
        x.add_(step)
        return [x * 10]

    r = recorder(bump, mutated=(0,))
    x = torch.zeros(3)
    for number in range(6):
        (out,) = r([x, torch.full((3,), float(number))])
        assert torch.equal(out, x * 10)
    assert torch.equal(x, torch.full((3,), 15.0)) and r.tally.replayed == 4


def test_random_numbers_go_on_as_they_would():
    def draw(args):
        (x,) = args
        args.clear()
        return [x + torch.rand(3)]

    r = recorder(draw)
    torch.manual_seed(0)
    want = [torch.rand(3) for _ in range(5)]
    torch.manual_seed(0)
    for expected in want:
        (out,) = r([torch.zeros(3)])
        torch.testing.assert_close(out, expected)
        del out


def test_backward_after_forward_reads_what_the_forward_left():
    pool = Pool(StandIn())
    forward = recorder(lambda args: [args[0] * 2, args[0].exp()], pool=pool)
    backward = recorder(lambda args: [args[0] * args[1]], pool=pool)
    for number in range(6):
        x = torch.full((2,), float(number))
        _, saved = forward([x])
        (grad,) = backward([saved, torch.ones(2)])
        torch.testing.assert_close(grad, x.exp())
        del saved, grad
    assert forward.tally.replayed == 4 and backward.tally.replayed >= 3


def test_parameters_that_a_backward_pass_needs_are_nobodys_outputs():
    r, w = recorder(lambda args: [args[0] * args[1], args[1]]), torch.tensor(2.0)
    kept = []
    for number in range(6):
        out, saved = r([torch.full((2,), float(number)), w])
        assert torch.equal(out, torch.full((2,), 2.0 * number)) and saved.data_ptr() == w.data_ptr()
        kept.append(saved)
        del out
    assert (r.tally.recorded, r.tally.replayed) == (1, 4)


def test_recorded_kernels_count_in_memory_of_their_own(monkeypatch):
    """What is recorded sets its counters itself, each time that it is replayed; nothing else uses them."""
    cpu = torch.device("cpu")
    recorded, another = counters(cpu, None), counters(cpu, None)
    recorded.add_(1)
    assert recorded.data_ptr() != another.data_ptr() and not another.any() and not counters(cpu, 5).any()
    assert counters(cpu, 5) is counters(cpu, 5)
    gpu = Gpu.__new__(Gpu)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert gpu.stream_key() is None


def test_an_earlier_recording_waits_while_a_later_ones_outputs_are_held():
    pool = Pool(StandIn())
    first, second = recorder(double, pool=pool), recorder(double, pool=pool)
    w = torch.tensor(2.0)
    for _ in range(3):
        first([torch.zeros(2), w])
        second([torch.zeros(2), w])
    early, late = pool.recordings
    (held,) = second([torch.ones(2), w])
    assert not pool.may_replay(early)
    first([torch.full((2,), 7.0), w])
    assert torch.equal(held, torch.full((2,), 3.0))
    del held
    assert pool.may_replay(early) and pool.may_replay(late)


def test_another_stream_waits_for_the_last_one():
    pool = Pool(StandIn())
    r, w = recorder(double, pool=pool), torch.tensor(2.0)
    for _ in range(3):
        r([torch.zeros(2), w])
    pool.device.now = "stream 1"
    r([torch.zeros(2), w])
    assert pool.device.waits == [("stream 1", "stream 0")]


def test_what_can_not_be_recorded_runs_and_is_counted():
    r = recorder(double, never="work on the CPU")
    r([torch.ones(2), torch.tensor(2.0)])
    assert r.tally.reasons == {"work on the CPU": 1}

    def failing(work):
        raise RuntimeError("out of memory")

    pool = Pool(StandIn())
    pool.device.record = failing
    r = recorder(double, pool=pool)
    for _ in range(4):
        (out,) = r([torch.ones(2), torch.tensor(2.0)])
        assert torch.equal(out, torch.full((2,), 3.0))
    assert [reason for reason in r.tally.reasons if "out of memory" in reason]


def test_the_number_of_shapes_is_limited():
    with backend_gpu.config.patch(cudagraph_limit=2):
        r, w = recorder(double), torch.tensor(2.0)
        for size in (1, 2, 3):
            r([torch.ones(size), w])
    assert r.tally.reasons["too many different shapes"] == 1


def test_inside_another_recording_nothing_is_recorded():
    r = recorder(double)
    r._pool.device.recording = True
    for _ in range(5):
        r([torch.ones(2), torch.tensor(2.0)])
    assert r.tally.recorded == 0


@pytest.mark.parametrize("number", [3, 4])
def test_numbers_are_part_of_the_key(number):
    r = recorder(lambda args: [args[0] * args[1]])
    for _ in range(4):
        assert torch.equal(r([torch.ones(2), number])[0], torch.full((2,), float(number)))
    assert len(r._seen) == 1
