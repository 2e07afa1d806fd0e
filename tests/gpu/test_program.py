"""The checker of programs: it finds nothing in those that are made, and whatever is broken in them on purpose."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from gpu.helpers import run

from backend_gpu import kernels
from backend_gpu.actions import Allocate, Call, Drop, Launch, Return
from backend_gpu.check_program import check_program
from backend_gpu.ir.check import IRError

X, W = torch.randn(4, 6), torch.randn(6, 6)


def chain(x, w):
    """A kernel in place behind each of two products, one of a view, and memory that is taken over."""
    h = F.gelu(x @ w).softmax(-1)
    values, at = torch.sort(h @ w.t(), -1)
    return (values.flip(-1) * at).cumsum(-1)


@pytest.fixture
def checked(monkeypatch):
    """The arguments of the checker for `chain`."""
    seen = []
    monkeypatch.setattr(kernels, "check_program", lambda *arguments: seen.append(arguments))
    run(chain, X, W)
    ((actions, graph, sources),) = seen
    check_program(actions, graph, sources)
    return actions, graph, sources


def of(actions, kind, which=0):
    """The position of the nth action of a kind."""
    return [position for position, action in enumerate(actions) if isinstance(action, kind)][which]


def without(kind, which=0):
    def change(actions):
        del actions[of(actions, kind, which)]

    return change


def with_changes(kind, which=0, **changes):
    """The nth action of a kind, with attributes computed from it."""

    def change(actions):
        position = of(actions, kind, which)
        action = actions[position]
        new = {name: value(action) for name, value in changes.items()}
        actions[position] = dataclasses.replace(action, **new)

    return change


def drop_early(actions):
    at = of(actions, Drop)
    actions.insert(at - 2, actions.pop(at))


def output_into_the_argument(actions):
    call = actions[of(actions, Call)]
    call.out = (call.reads[0].name, call.out[1])


def view_further_back(actions):
    position = next(p for p, a in enumerate(actions) if isinstance(a, Call) and any(o.shape for o in a.reads))
    operand = next(o for o in actions[position].reads if o.shape)
    actions[position].reads.append(dataclasses.replace(operand, offset=1))


def take_over_twice(actions):
    at = next(p for p, a in enumerate(actions) if isinstance(a, Allocate) and a.source)
    launch = next(p for p, a in enumerate(actions) if p > at and isinstance(a, Launch))
    actions.insert(launch + 1, dataclasses.replace(actions[at], name="another"))


def read_what_was_overwritten(actions):
    at = next(p for p, a in enumerate(actions) if isinstance(a, Allocate) and a.source)
    call = next(p for p, a in enumerate(actions) if p > at and isinstance(a, Call))
    old = dataclasses.replace(actions[call].reads[0], name=actions[at].source, shape=None)
    drop = next(p for p, a in enumerate(actions) if isinstance(a, Drop) and actions[at].source in a.names)
    actions.insert(call, actions.pop(drop))
    actions[call - 1].reads.append(old)


BROKEN = {
    "a buffer isn't allocated": (without(Allocate), "isn't there"),
    "a buffer is allocated twice": (lambda a: a.insert(2, a[of(a, Allocate)]), "is there already"),
    "a product isn't computed": (without(Call), "read before anything was written"),
    "a kernel isn't launched": (without(Launch), "was overwritten by"),
    "nothing is returned": (without(Return), "ends with what it returns"),
    "memory is kept": (without(Drop), "should have been let go"),
    "memory is let go too early": (drop_early, "isn't there"),
    "an input is let go": (lambda a: a.insert(1, Drop(["arg0_1"])), "isn't the program's"),
    "an input's memory is taken": (with_changes(Allocate, source=lambda a: "arg0_1"), "is the caller's"),
    "memory is taken over twice": (take_over_twice, "was taken over before"),
    "an input is written": (output_into_the_argument, "isn't laid out as the result"),
    "a view leaves its memory": (view_further_back, "past the end"),
    "what was overwritten is read": (read_what_was_overwritten, "was overwritten by"),
    "an argument is missing": (with_changes(Launch, tensors=lambda a: a.tensors[1:]), "variable for each buffer"),
    "a number is missing": (with_changes(Launch, numbers=lambda a: []), "number for each size"),
    "nobody looks at a layout": (
        with_changes(Call, 2, made=lambda a: [(n, node, w, "{}") for n, node, w, _ in a.made]), "at the layout",
    ),
    "arguments are moved": (
        with_changes(Launch, -1, tensors=lambda a: a.tensors[1:] + a.tensors[:1]), "another dtype",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_program_is_refused(what, checked):
    actions, graph, sources = checked
    change, message = BROKEN[what]
    broken = [dataclasses.replace(action) for action in actions]
    change(broken)
    with pytest.raises(IRError, match=message):
        check_program(broken, graph, sources)


def test_in_place_only_where_each_element_is_read_where_it_is_written(monkeypatch):
    """A kernel that mirrors rows may not write over what it reads, as one that doubles them may."""
    seen = []
    monkeypatch.setattr(kernels, "check_program", lambda *arguments: seen.append(arguments))
    for function in (lambda x, w: (x @ w) * 2, lambda x, w: (x @ w).flip(0)):
        run(function, X, W)
    (doubled, *known), (mirrored, *others) = seen
    assert [action.source for action in doubled if isinstance(action, Allocate)] == [None, "mm_1"]
    check_program(doubled, *known)
    broken = [dataclasses.replace(action) for action in mirrored]
    second = of(broken, Allocate, 1)
    assert broken[second].source is None
    broken[second] = dataclasses.replace(broken[second], source="mm_1")
    with pytest.raises(IRError, match="overwrites another element"):
        check_program(broken, *others)


def test_memory_is_let_go_where_nothing_takes_it_over():
    """Peak memory is what is live, not what might have been of use: a dead tensor of another size goes at once."""
    (report,) = run(lambda x, w: torch.sort((x @ w)[:, :3])[0] @ x[:3], X, W)
    lines = report.program.splitlines()
    assert lines.index("    del mm_1") < next(n for n, line in enumerate(lines) if "mm.out" in line and n > 5)
