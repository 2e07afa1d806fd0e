"""torch's state through compiled programs and their continuations: as in plain Python, each piece of it.

It changes between calls, inside a program and behind a break, in a `with` that a break or an exception cuts, and in
another thread; and a backend that looks at it while it compiles compiles anew for what changed.
"""

import threading
import warnings
from contextlib import contextmanager, nullcontext
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import dynacore
from dynacore.graph.state import COMPILED, MATTERS, RUN
from dynacore.torch_api import SWITCHES

B = torch.backends


def attributes(name, *values):
    """A setting that is an attribute under torch."""
    *path, last = name.split(".")[1:]

    def owner():
        found = torch
        for part in path:
            found = getattr(found, part)
        return found

    return (lambda: getattr(owner(), last)), (lambda value: setattr(owner(), last, value)), values


def asked(get, put, *values):
    return get, put, values or (True, False)


def set_mkldnn(value):
    torch._C._set_mkldnn_enabled(value)


def set_nnpack(value):
    torch._C._set_nnpack_enabled(value)


def warn_only(value):
    torch.use_deterministic_algorithms(value, warn_only=value)


SWITCHED = "torch.backends.cuda."
#: piece of state -> (getter, setter, values, the first of which is restored)
SETTINGS = {
    "grad mode": asked(torch.is_grad_enabled, torch.set_grad_enabled),
    "default dtype": asked(torch.get_default_dtype, torch.set_default_dtype, torch.float32, torch.float64),
    "deterministic algorithms": asked(
        torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, False, True
    ),
    "deterministic algorithms, warnings": asked(
        torch.is_deterministic_algorithms_warn_only_enabled, warn_only, False, True
    ),
    "number of threads": asked(torch.get_num_threads, torch.set_num_threads, 1, 2),
    "float32_matmul_precision": asked(
        torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest", "high"
    ),
    "anomaly mode": asked(torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly, False, True),
    "random numbers": asked(torch.initial_seed, torch.manual_seed, 1, 2),
    "torch.backends.opt_einsum": attributes("torch.backends.opt_einsum.strategy", "auto", "greedy"),
    "torch.backends.mkldnn.enabled": asked(torch._C._get_mkldnn_enabled, set_mkldnn),
    "torch.backends.nnpack.enabled": asked(torch._C._get_nnpack_enabled, set_nnpack),
    SWITCHED + "flash_sdp_enabled": asked(B.cuda.flash_sdp_enabled, B.cuda.enable_flash_sdp),
    SWITCHED + "mem_efficient_sdp_enabled": asked(B.cuda.mem_efficient_sdp_enabled, B.cuda.enable_mem_efficient_sdp),
    SWITCHED + "math_sdp_enabled": asked(B.cuda.math_sdp_enabled, B.cuda.enable_math_sdp),
    SWITCHED + "cudnn_sdp_enabled": asked(B.cuda.cudnn_sdp_enabled, B.cuda.enable_cudnn_sdp),
    SWITCHED + "fp16_bf16_reduction_math_sdp_allowed": asked(
        B.cuda.fp16_bf16_reduction_math_sdp_allowed, B.cuda.allow_fp16_bf16_reduction_math_sdp, False, True
    ),
    **{
        name: attributes(name, *values)
        for name, *values in (
            ("torch.backends.cudnn.enabled", True, False),
            ("torch.backends.cudnn.benchmark", False, True),
            ("torch.backends.cudnn.deterministic", False, True),
            ("torch.backends.mkldnn.deterministic", False, True),
            (SWITCHED + "matmul.allow_fp16_accumulation", False, True),
            (SWITCHED + "matmul.allow_fp16_reduced_precision_reduction", True, False),
            (SWITCHED + "matmul.allow_bf16_reduced_precision_reduction", True, False),
            ("torch.utils.deterministic.fill_uninitialized_memory", True, False),
            ("torch.backends.fp32_precision", "none", "ieee"),
            ("torch.backends.cudnn.fp32_precision", "none", "ieee"),
            ("torch.backends.cudnn.conv.fp32_precision", "tf32", "ieee"),
            ("torch.backends.cudnn.rnn.fp32_precision", "tf32", "ieee"),
            (SWITCHED + "matmul.fp32_precision", "ieee", "tf32"),
            ("torch.backends.mkldnn.fp32_precision", "none", "ieee"),
            ("torch.backends.mkldnn.conv.fp32_precision", "ieee", "bf16"),
            ("torch.backends.mkldnn.rnn.fp32_precision", "ieee", "bf16"),
            ("torch.backends.mkldnn.matmul.fp32_precision", "ieee", "bf16"),
        )
    },
}


def described(value):
    """A value in a form that tells whatever differs."""
    if isinstance(value, torch.Tensor):
        kind = str(value.dtype), str(value.device), tuple(value.shape), value.requires_grad, value.is_inference()
        return (*kind, value.tolist())
    if isinstance(value, (tuple, list)):
        return [described(item) for item in value]
    return repr(value)


def same(ours, theirs):
    """Hold one value to another."""
    assert described(ours) == described(theirs)


class FunctionMode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Doubled(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.sin else result


class DispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ops.aten.sin.default else result


@contextmanager
def default_dtype(dtype):
    """A context manager of a user's, in Python."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


#: name -> what makes the context manager; and the pieces of state that it changes
MODES = {
    "no_grad": torch.no_grad,
    "enable_grad": torch.enable_grad,
    "set_grad_enabled": partial(torch.set_grad_enabled, False),
    "inference mode": torch.inference_mode,
    "inference mode, off": partial(torch.inference_mode, False),
    "autocast": partial(torch.autocast, "cpu"),
    "autocast, float16": partial(torch.autocast, "cpu", dtype=torch.float16),
    "autocast, off": partial(torch.autocast, "cpu", enabled=False),
    "autocast, cuda": partial(torch.autocast, "cuda", dtype=torch.bfloat16),
    "default dtype": partial(default_dtype, torch.float64),
    "default device": partial(torch.device, "cpu"),
    "torch function modes": Doubled,
    "torch function modes, idle": FunctionMode,
    "torch dispatch modes": DispatchMode,
    "attention": partial(sdpa_kernel, SDPBackend.MATH),
    "order of attention's kernels": partial(
        sdpa_kernel, [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True
    ),
    "cudnn": partial(B.cudnn.flags, enabled=False),
    "mkldnn": partial(B.mkldnn.flags, enabled=False),
    "anomaly mode": partial(torch.autograd.set_detect_anomaly, True),
    "hooks for saved tensors": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "random numbers": partial(torch.random.fork_rng, devices=[]),
}


def seen(x):
    """What a program sees of torch's state, by what operations give and by asking."""
    y = (x @ x).sin()
    answers = (
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"), torch.is_autocast_enabled("cuda"), torch.get_default_dtype(),
        B.cudnn.enabled, B.cuda.math_sdp_enabled(), B.cuda.flash_sdp_enabled(), torch.is_anomaly_enabled(),
    )  # fmt: skip
    return y, y.requires_grad, y.dtype, y.is_inference(), torch.zeros(1), torch.rand(2), answers


def whole(mode, x):
    with mode():
        inside = seen(x)
    return inside, seen(x)


def cut(mode, x):
    with mode():
        first = seen(x)
        dynacore.graph_break()
        second = seen(x.detach())
    return first, second, seen(x)


def thrown(mode, x):
    try:
        with mode():
            inside = seen(x)
            dynacore.graph_break()
            raise ValueError("thrown")
    except ValueError as error:
        return inside, str(error), seen(x)


def thrown_by_graph(mode, x):
    try:
        with mode():
            inside = seen(x)
            torch.zeros(2) @ torch.zeros(3)
    except RuntimeError:
        return inside, seen(x)


def left(mode, x):
    with mode():
        dynacore.graph_break()
        return seen(x)


def rounds(mode, x):
    results = []
    for _ in range(3):
        results.append(seen(x))
        with mode():
            dynacore.graph_break()
            results.append(seen(x))
    return results


def nested(mode, x):
    with torch.no_grad():
        with mode():
            dynacore.graph_break()
            inside = seen(x)
            with torch.enable_grad():
                inner = seen(x)
        between = seen(x)
    return inside, inner, between, seen(x)


MODE_PROGRAMS = (whole, cut, thrown, thrown_by_graph, left, rounds, nested)


def example():
    return (torch.arange(4, dtype=torch.float32).reshape(2, 2) / 4).requires_grad_()


def result(function, *args):
    """What a call gives, and the state that it leaves."""
    torch.manual_seed(3)
    return function(*args), seen(example())


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("program", MODE_PROGRAMS)
@pytest.mark.parametrize("mode", MODES)
def test_modes_in_a_program(mode, program):
    compiled = dynacore.compile(program, backend="eager")
    for _ in range(2):
        same(result(compiled, MODES[mode], example()), result(program, MODES[mode], example()))


@pytest.mark.parametrize("program", [whole, cut])
@pytest.mark.parametrize("mode", MODES)
def test_modes_around_a_call(mode, program):
    compiled = dynacore.compile(program, backend="eager")
    for around in (nullcontext, MODES[mode], nullcontext, MODES[mode]):
        x, y = example(), example()
        with around():
            ours = result(compiled, nullcontext, x)
        with around():
            same(ours, result(program, nullcontext, y))


@pytest.mark.parametrize("mode", ["no_grad", "inference mode", "autocast", "default device", "torch function modes"])
def test_modes_of_another_thread(mode):
    compiled = dynacore.compile(cut, backend="eager")
    results = []

    def call(around):
        with around():
            results.append(result(compiled, nullcontext, example()))

    for around in (MODES[mode], nullcontext, MODES[mode]):
        other = MODES[mode] if around is nullcontext else nullcontext
        with other():  # of this thread, which the other one doesn't see
            thread = threading.Thread(target=call, args=(around,))
            thread.start()
            thread.join()
        with around():
            same(results.pop(), result(cut, nullcontext, example()))


def reads(get, put, value, x):
    return (x + 1) * 2, get()


def reads_behind(get, put, value, x):
    x = x + 1
    dynacore.graph_break()
    return x * 2, get()


def changes(get, put, value, x):
    before = get()
    put(value)
    try:
        y, here = torch.ones(2) + x.sin(), get()
        dynacore.graph_break()
        return y, torch.zeros(1) + y, here, get(), torch.rand(1)
    finally:
        put(before)


def throws(get, put, value, x):
    before = get()
    try:
        put(value)
        y = x.sin()
        dynacore.graph_break()
        raise ValueError(str(get()))
    except ValueError as error:
        return str(error), y, get()
    finally:
        put(before)


def leaves_it(get, put, value, x):
    y = x + 1
    put(value)
    return y.cos()


PRECISIONS = (
    (B, "none"), (B.cudnn, "none"), (B.cudnn.conv, "tf32"), (B.cudnn.rnn, "tf32"), (B.cuda.matmul, "none"),
    (B.mkldnn, "none"), (B.mkldnn.matmul, "none"), (B.mkldnn.conv, "none"), (B.mkldnn.rnn, "none"),
)  # fmt: skip


@contextmanager
def restored(name):
    _, put, values = SETTINGS[name]
    put(values[0])
    try:
        yield
    finally:
        put(values[0])
        if "precision" in name:
            torch.set_float32_matmul_precision("highest")
            for owner, value in PRECISIONS:
                owner.fp32_precision = value


@pytest.mark.parametrize("program", [reads, reads_behind, changes, throws, leaves_it])
@pytest.mark.parametrize("name", SETTINGS)
def test_settings(name, program):
    get, put, values = SETTINGS[name]
    compiled = dynacore.compile(program, backend="eager")
    with restored(name):
        for now in (*values, *values):
            for value in values:
                found = []
                for function in (compiled, program):
                    torch.manual_seed(5)
                    put(now)
                    found.append((function(get, put, value, example()), get()))
                same(*found)


@pytest.mark.parametrize("name", [name for name in SETTINGS if MATTERS.get(name, RUN) is not RUN])
def test_what_compilers_look_at(name):
    """A backend that keeps what it saw when it compiled never runs under anything else."""
    get, put, values = SETTINGS[name]
    compiled_under = []

    def backend(graph, inputs):
        was = get()
        compiled_under.append(was)

        def run(*given):
            assert get() == was
            return graph(*given)

        return run

    @dynacore.compile(backend=backend)
    def attention(x):
        x = torch.einsum("bhij,bhkj->bhik", x, x)
        dynacore.graph_break()
        return torch.einsum("bhij,bhkj->bhik", F.scaled_dot_product_attention(x, x, x), x)

    x = torch.ones(1, 1, 2, 2)
    with restored(name):
        for value in (*values, *values):
            put(value)
            attention(x)
    assert sorted(map(str, compiled_under)) == sorted([*map(str, values)] * 2)


def test_the_order_of_kernels_that_compilers_look_at():
    orders = []

    def backend(graph, inputs):
        orders.append(torch._C._get_sdp_priority_order())
        return graph

    @dynacore.compile(backend=backend)
    def attention(x):
        return F.scaled_dot_product_attention(x, x, x)

    x = torch.ones(1, 1, 2, 2)
    for _ in range(2):
        attention(x)
        with MODES["order of attention's kernels"]():
            attention(x)
    assert len(orders) == 2 and orders[0] != orders[1]


@pytest.mark.parametrize("name", ["grad mode", "default dtype", "torch.backends.cudnn.enabled"])
def test_settings_of_a_hot_entry(name):
    """Behind many calls that went well, when guards are read from memory."""
    get, put, values = SETTINGS[name]
    compiled = dynacore.compile(reads, backend="eager")
    x = example()
    with restored(name):
        for value in values * 3:
            put(value)
            for _ in range(40):
                assert compiled(get, put, None, x)[1] == value


# -- random numbers --------------------------------------------------------------------------------------------------


def seeds(x):
    torch.manual_seed(3)
    first = torch.rand(2)
    dynacore.graph_break()
    return first + torch.rand(2) + F.dropout(x, 0.5)


def state_read_and_set(x):
    state = torch.get_rng_state()
    first = torch.rand(2)
    torch.set_rng_state(state)
    return first, torch.rand(2), state


def forked(x):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        first = torch.randn(2)
    return first, torch.randn(2)


def fork_left_by_an_exception(x):
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            first = torch.randn(2)
            dynacore.graph_break()
            raise ValueError
    except ValueError:
        return first, torch.rand(2)


def initial_seeds(x):
    first = torch.initial_seed()
    torch.manual_seed(7)
    return first, torch.initial_seed(), torch.default_generator.initial_seed(), torch.rand(1)


def own_generator(x):
    generator = torch.Generator()
    generator.manual_seed(1)
    return torch.rand(2, generator=generator), generator.initial_seed(), generator.get_state()


GENERATOR = torch.Generator()


def global_generator(x):
    return torch.rand(2, generator=GENERATOR), torch.randn(1, generator=GENERATOR), torch.rand(1)


def drawn_for_nothing(x):
    torch.rand(3)
    F.dropout(x, 0.5)
    return x + 1


def many_draws(x):
    return (
        F.dropout(x, 0.3), torch.bernoulli(x * 0.5), F.gumbel_softmax(x, dim=0), x.clone().normal_(),
        torch.empty(2).uniform_(), torch.randperm(4), torch.randint(0, 9, (2,)), torch.multinomial(torch.ones(4), 2),
        F.rrelu(x, training=True), F.alpha_dropout(x, 0.5, True), torch.rand_like(x),
    )  # fmt: skip


def draws_in_a_loop(x):
    for _ in range(3):
        x = x + torch.rand(2)
        if x.sum() > 3:
            x = x * torch.rand(2)
        dynacore.graph_break()
    return x, torch.rand(1)


def default_generator(x):
    torch.default_generator.manual_seed(11)
    return torch.rand(2), torch.default_generator.get_state()


RANDOM = (
    seeds, state_read_and_set, forked, fork_left_by_an_exception, initial_seeds, own_generator, global_generator,
    drawn_for_nothing, many_draws, draws_in_a_loop, default_generator,
)  # fmt: skip


#: AOTAutograd drops what nobody uses, and with it what that would have drawn
DRAWS = [(p, b) for p in RANDOM for b in ("eager", "aot_eager") if (p, b) != (drawn_for_nothing, "aot_eager")]


@pytest.mark.parametrize("program, backend", DRAWS)
def test_random_numbers(program, backend):
    found = []
    for function in (dynacore.compile(program, backend=backend), program):
        torch.manual_seed(0)
        GENERATOR.manual_seed(4)
        results = []
        for round in range(3):
            results.append(function(torch.ones(2)))
            if round == 1:
                torch.manual_seed(99)
        found.append((results, torch.rand(2)))
    same(*found)


def test_a_generator_that_is_given():
    def draw(x, generator):
        return x + torch.rand(2, generator=generator)

    compiled = dynacore.compile(draw, backend="eager")
    for seed in (1, 2, 1):
        same(*(f(torch.ones(2), torch.Generator().manual_seed(seed)) for f in (compiled, draw)))


def test_denormal_numbers_are_flushed_when_kernels_run():
    def tiny(x):
        return x * 0.5

    compiled = dynacore.compile(tiny, backend="eager")
    x = torch.full((2,), 1.5e-38)
    try:
        for flush in (False, True, False):
            if not torch.set_flush_denormal(flush):
                pytest.skip("this processor doesn't flush")
            same(compiled(x), tiny(x))
    finally:
        torch.set_flush_denormal(False)


def test_each_piece_of_state_has_its_programs():
    covered = {name.split(",")[0] for name in (*SETTINGS, *MODES)}
    covered |= {"flushing of denormal numbers", "torch.func transforms", "preferred libraries"}
    assert set(MATTERS) <= covered
    assert {switch.name for switch in SWITCHES} == {name for name, when in MATTERS.items() if when is COMPILED}
