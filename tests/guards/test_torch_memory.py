"""What is read from torch's memory must say what torch says when it is asked."""

import abc
import ctypes
import functools
import platform
import random
import threading
from contextlib import nullcontext

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import dynacore.capture  # noqa: F401  (finds out where things lie)
from dynacore import _C, torch_memory
from dynacore.graph.meta import TensorSpec
from dynacore.graph.state import torch_state_checks
from dynacore.guards.plan import any_grad_checker
from dynacore.torch_api import (
    SWITCHES,
    InferenceMode,
    sdp_priority_order,
    set_conj,
    set_fp32_precision,
    set_neg,
    set_sdp_priority_order,
    tensor_checker,
)

#: older ones keep dispatch keys elsewhere, and are asked
KNOWN = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13)
needs_places = pytest.mark.skipif(not KNOWN, reason="where this torch keeps things isn't known")


@needs_places
def test_everything_was_found():
    assert torch_memory.find_tensors() and torch_memory.find_state()


class Subclass(torch.Tensor):
    pass


def make(choose):
    """A random tensor; two of them are often alike."""
    dims = choose.randrange(4)
    shape = [choose.choice([1, 2, 3]) for _ in range(dims)]
    if choose.random() < 0.05:
        shape = [1] * choose.choice([5, 6, 7])
    dtype = choose.choice([torch.float32] * 4 + [torch.float64, torch.int64, torch.complex64])
    tensor = torch.empty(shape, dtype=dtype, device=choose.choice(["cpu"] * 6 + ["meta"]))
    match choose.randrange(16):
        case 0:
            tensor = tensor.t() if tensor.dim() == 2 else tensor
        case 1:
            tensor = torch.empty_strided(shape, [7 * (i + 1) for i in range(len(shape))], dtype=dtype)
        case 2 | 3 if dtype.is_floating_point:
            tensor.requires_grad_()
        case 4 if dtype.is_floating_point:
            tensor = tensor.requires_grad_() * 1
        case 5 if dtype.is_floating_point:
            tensor = torch.nn.Parameter(tensor, requires_grad=choose.random() < 0.5)
        case 6 if dtype.is_floating_point:
            tensor = tensor.requires_grad_().view(shape)
        case 7 if dtype.is_floating_point:
            tensor = tensor.requires_grad_().detach()
        case 8 if dtype.is_floating_point:
            tensor = tensor.requires_grad_().requires_grad_(False)
        case 9:
            tensor = tensor.as_subclass(Subclass)
        case 10 if dtype.is_complex:
            set_conj(tensor, True)
        case 11:
            set_neg(tensor, True)
        case 12:
            with InferenceMode(True):
                tensor = torch.empty(shape, dtype=dtype)
        case 14:
            tensor = tensor[None].squeeze(0)
        case 15 if dtype.is_floating_point:
            tensor = tensor.view(shape).requires_grad_()
    return tensor


def mutate(choose, tensor):
    """Change a tensor in place."""
    try:
        match choose.randrange(7):
            case 0:
                tensor.requires_grad_(choose.random() < 0.5)
            case 1:
                tensor.data = torch.empty_like(tensor.data)
            case 2:
                tensor.data = make(choose).data
            case 3:
                tensor.t_()
            case 4:
                tensor.unsqueeze_(0)
            case 5:
                tensor.detach_()
            case 6:
                tensor.resize_([choose.choice([1, 2, 3])])
    except (RuntimeError, NotImplementedError, AssertionError):
        pass  # torch doesn't allow it


def guards_like(tensors, dynamic=False, any_grad=False):
    """Guards that hold the state to these tensors, and the checker that torch makes for them."""
    specs = [TensorSpec(tensor) for tensor in tensors]
    for spec in specs:
        if dynamic and spec.shape:
            spec.shape = (None, *spec.shape[1:])
            spec.stride = (None,) * len(spec.stride)
    name, make_checker = ("tensors_any_grad", any_grad_checker) if any_grad else ("tensors", tensor_checker)
    checker = make_checker(specs)
    handed = range(len(specs))[::2]
    nodes = tuple(
        ("arg", i, (("shape", spec.shape), ("tensor", i)), handed.index(i) if i in handed else -1, ())
        for i, spec in enumerate(specs)
    )
    return _C.Guards(("root", None, ((name, checker),), -1, nodes), len(handed)), checker


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("any_grad", [False, True])
@pytest.mark.parametrize("seed", range(16))
def test_tensors_are_read_as_torch_says(seed, any_grad, dynamic):
    choose = random.Random(seed)
    for _ in range(40):
        tensors = [make(choose) for _ in range(choose.choice([1, 1, 2, 3]))]
        guards, checker = guards_like(tensors, dynamic, any_grad)
        kept = list(tensors)
        for _ in range(12):
            now = [choose.choice([own, own, make(choose)]) for own in kept]
            for _ in range(choose.randrange(3)):
                mutate(choose, choose.choice(now))
            expected = bool(checker(*now))
            for _ in range(2):
                found = guards.check(now)
                assert (found is not None) == expected
                assert found is None or all(a is b for a, b in zip(found, now[::2], strict=True))


@pytest.mark.parametrize("any_grad", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_batch_of_many_tensors(seed, any_grad):
    choose = random.Random(seed)
    tensors = [make(choose) for _ in range(60)]
    guards, checker = guards_like(tensors, any_grad=any_grad)
    for _ in range(60):
        now = [choose.choice([tensor, tensor.detach()]) if choose.random() < 0.1 else tensor for tensor in tensors]
        if choose.random() < 0.3:
            now[choose.randrange(60)] = make(choose)
        expected = bool(checker(*now))
        assert (guards.check(now) is not None) == (guards.check(now) is not None) == expected
        at = choose.randrange(60)
        was, tensors[at] = tensors[at], make(choose)
        assert (guards.check(tensors) is not None) == bool(checker(*tensors))
        tensors[at] = was


@needs_places
def test_a_gradient_that_does_not_matter_is_not_asked_for():
    tensors = [torch.zeros(2, 3), torch.nn.Parameter(torch.zeros(3)), torch.zeros(2, requires_grad=True).detach()]
    asked = []
    specs = [TensorSpec(tensor) for tensor in tensors]
    checker = any_grad_checker(specs)

    def ask(*given):
        asked.append(given)
        return checker(*given)

    nodes = tuple(("arg", i, (("tensor", i),), i, ()) for i in range(3))
    guards = _C.Guards(("root", None, (("tensors_any_grad", ask),), -1, nodes), 3)
    assert guards.check(tensors) and len(asked) == 1
    for tensor in [*tensors, *tensors]:
        tensor.requires_grad_(not tensor.requires_grad)
        assert guards.check(tensors) and len(asked) == 1
    assert guards.check([*tensors[:2], torch.zeros(2).double()]) is None and len(asked) == 2


class FunctionMode(torch.overrides.TorchFunctionMode):
    pass


class DispatchMode(TorchDispatchMode):
    pass


def switched(get, set_to, value):
    """A context that switches one of torch's flags and restores it."""

    class Switch:
        def __enter__(self):
            self.before = get()
            set_to(value)

        def __exit__(self, *exc):
            set_to(self.before)

    return Switch()


def matmul_tf32():
    return torch.backends.cuda.matmul


STATES = {
    "grad": lambda: torch.set_grad_enabled(not torch.is_grad_enabled()),
    "inference": lambda: torch.inference_mode(True),
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "autocast half": lambda: torch.autocast("cpu", torch.float16),
    "autocast cuda": lambda: switched(
        lambda: torch.is_autocast_enabled("cuda"), lambda on: torch.set_autocast_enabled("cuda", on), True
    ),
    "autocast without cache": lambda: torch.autocast("cpu", torch.bfloat16, cache_enabled=False),
    "default dtype": lambda: switched(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
    "deterministic": lambda: switched(
        torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True
    ),
    "threads": lambda: switched(torch.get_num_threads, torch.set_num_threads, 3),
    "function mode": FunctionMode,
    "default device": lambda: torch.device("meta"),
    "dispatch mode": DispatchMode,
    "no torch function": torch._C.DisableTorchFunction,
    "no torch function in subclasses": torch._C.DisableTorchFunctionSubclass,
    "tf32": lambda: switched(
        lambda: matmul_tf32().allow_tf32, lambda value: setattr(matmul_tf32(), "allow_tf32", value), True
    ),
    "fp16 reduction": lambda: switched(
        lambda: matmul_tf32().allow_fp16_reduced_precision_reduction,
        lambda value: setattr(matmul_tf32(), "allow_fp16_reduced_precision_reduction", value),
        False,
    ),
    "bf16 reduction": lambda: switched(
        lambda: matmul_tf32().allow_bf16_reduced_precision_reduction,
        lambda value: setattr(matmul_tf32(), "allow_bf16_reduced_precision_reduction", value),
        False,
    ),
}


#: under a mode nothing is captured: guards hold that none is active
NEVER = (STATES["function mode"], STATES["default device"], STATES["dispatch mode"])


def state_guards():
    """Guards on torch's state as it is now."""
    return _C.Guards(("root", None, tuple(("state", pair) for pair in torch_state_checks()), -1, ()), 0)


def holds(guards):
    return guards.check([]) is not None


@pytest.mark.parametrize("enter", STATES.values(), ids=STATES)
def test_each_state_is_seen(enter):
    with enter():
        pass  # a flag that was never set is told apart from one that was set back
    guards = state_guards()
    for _ in range(3):
        assert holds(guards)
        with enter():
            assert not holds(guards)
            assert not holds(guards)
        assert holds(guards)


@pytest.mark.parametrize("enter", STATES.values(), ids=STATES)
def test_guards_made_in_a_state_hold_there_alone(enter):
    with enter():
        guards = state_guards()
        allowed = holds(guards)
    assert allowed == (enter not in NEVER)
    assert holds(guards) != allowed
    with enter():
        assert holds(guards) == holds(state_guards())


@pytest.mark.parametrize("outer", ["autocast", "grad", "no torch function", "default dtype"])
@pytest.mark.parametrize("inner", STATES)
def test_states_inside_each_other(outer, inner):
    """Words that were read in one state mustn't answer for another."""
    guards = {}
    for _ in range(2):
        for first, second in [((), ()), (outer, ()), (outer, inner), ((), inner)]:
            with STATES[first]() if first else nullcontext(), STATES[second]() if second else nullcontext():
                guards.setdefault((first, second), state_guards())
                for other in guards.values():
                    assert holds(other) == all(function() == value for _, (function, value) in other.tree[2])


@needs_places
@pytest.mark.parametrize("switch", SWITCHES, ids=[switch.name for switch in SWITCHES])
def test_each_switch_is_among_the_words(switch):
    before, was = _C.state_words(), switch.ask()
    if switch.arguments:
        set_to, other = functools.partial(set_fp32_precision, *switch.ask.args), "ieee" if was != "ieee" else "none"
    else:
        getter = switch.ask.__name__.removeprefix("_get_")
        setters = f"_set_{getter}", f"_set_sdp_use_{getter.removesuffix('_sdp_enabled')}"
        set_to, other = next(getattr(torch._C, name) for name in setters if hasattr(torch._C, name)), not was
    set_to(other)
    try:
        assert _C.state_words() != before
    finally:
        set_to(was)
    assert switch.ask() == was


@needs_places
def test_the_order_of_kernels_and_registered_classes_are_among_the_words():
    before, order = _C.state_words(), sdp_priority_order()
    assert before == _C.state_words()
    set_sdp_priority_order(order[::-1])
    try:
        assert _C.state_words() != before
    finally:
        set_sdp_priority_order(order)
    assert before == _C.state_words()
    abc.ABCMeta("Abstract", (), {}).register(FunctionMode)
    assert before != _C.state_words()


def test_what_is_among_the_words_is_asked_when_they_differ():
    """A class registered elsewhere costs one question; where nothing is read it is asked in each call."""
    answers = [0]

    def ask():
        answers.append(abc.get_cache_token())
        return len(answers) > 0

    guards = _C.Guards(("root", None, (("state", (ask, True)),), -1, ()), 0)
    for _ in range(4):
        assert holds(guards)
    first, read = len(answers), _C.state_words() is not None
    abc.ABCMeta("Abstract", (), {}).register(FunctionMode)
    for _ in range(4):
        assert holds(guards)
    assert len(answers) - first == (1 if read else 4)
    assert torch_memory.check_of(ask, "state") == "call0_is"
    assert torch_memory.check_of(abc.get_cache_token, "state") == ("state" if read else "call0_is")


def test_a_function_that_only_loads_is_told_from_others():
    """Its machine code says where it loads from; whatever else a function does, it is called."""
    code = ctypes.create_string_buffer(64)
    address = ctypes.addressof(code)
    function = (address, 1 << 12, 0, 0, 0xFF, False)
    loads, ends = b"\x0f\xb6\x87" + (0x123).to_bytes(4, "little"), b"\xc3"
    on_x86 = platform.machine() == "x86_64"
    for text, found in (
        (loads + ends, (0x1120, 0xFF << 24)),
        (b"\xf3\x0f\x1e\xfa" + loads + ends, (0x1120, 0xFF << 24)),
        (loads + b"\x90", None),
        (b"\x0f\xb6\x86" + loads[3:] + ends, None),
        (b"\x48\x83\xec\x08" + loads + ends, None),
    ):
        code.raw = text.ljust(64, b"\xc3")
        assert torch_memory.load_of(function) == (found if on_x86 else None)
    code.raw = (b"\x0f\xb6\x05" + (9).to_bytes(4, "little") + ends).ljust(64)
    assert torch_memory.load_of(function) == (torch_memory.load(address + 16, 1) if on_x86 else None)


def test_transforms_are_seen():
    guards = state_guards()
    answers = []

    def body(x):
        answers.append(holds(guards))
        return x.sum()

    assert holds(guards)
    torch.func.vmap(body)(torch.zeros(2, 2))
    torch.func.grad(body)(torch.zeros(2))
    torch.func.functionalize(body)(torch.zeros(2))
    assert answers == [False] * 3 and holds(guards)


def test_each_thread_has_its_own():
    guards = state_guards()
    answers = []

    def run():
        torch.set_num_threads(torch.get_num_threads())
        answers.append(holds(guards))
        with torch.no_grad():
            answers.append(holds(guards))
        answers.append(holds(guards))

    assert holds(guards)
    with torch.no_grad():
        assert not holds(guards)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert answers == [True, False, True]
    assert holds(guards)


@needs_places
def test_without_knowing_where_things_lie_torch_is_asked():
    _C.set_tensor_layout(None)
    _C.set_state_readers(None)
    try:
        assert _C.tensor_words(torch.zeros(2)) is None and _C.state_words() is None
        test_tensors_are_read_as_torch_says(1, False, False)
        test_each_state_is_seen(STATES["grad"])
    finally:
        test_everything_was_found()


@needs_places
def test_a_place_that_misses_a_change_is_not_used(monkeypatch):
    layout = list(torch_memory.find_layout())
    for wrong in range(3, len(layout)):
        monkeypatch.setattr(torch_memory, "find_layout", lambda at=wrong: tuple(
            value if i != at or isinstance(value, type) else value ^ 1 for i, value in enumerate(layout)
        ))  # fmt: skip
        assert not torch_memory.find_tensors(), wrong
    monkeypatch.undo()
    test_everything_was_found()
