"""Backends: found by name, held to their protocol, and right in forward and backward."""

import inspect
import operator
import sys
from importlib import metadata

import pytest
import torch
from torch import fx

import dynacore
from dynacore import ArgumentError, BackendError, backends
from dynacore.options import make_options
from dynacore.specialise import LIMIT, with_constants


def graph_of(function, *names):
    """A graph module made by calling `function` with proxies for inputs of these names."""
    graph = fx.Graph()
    tracer = fx.proxy.GraphAppendingTracer(graph)
    outputs = function(*(fx.Proxy(graph.placeholder(name), tracer) for name in names))
    graph.output(tuple(proxy.node for proxy in outputs))
    return fx.GraphModule(torch.nn.Module(), graph)


def compile_graph(name, gm, inputs, n_outputs, **more):
    return backends.call_backend(name, make_options(name).backend, gm, inputs, n_outputs, **more)


# --- finding them -------------------------------------------------------------------------------------------------


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(backends, "_registered", {})


def test_registering_as_function_and_as_decorator(registry):
    def one(gm, inputs):
        return gm.forward

    assert dynacore.register_backend(one) is one

    @dynacore.register_backend
    def two(gm, inputs):
        return gm.forward

    @dynacore.register_backend(name="third", tags=("debug",))
    def three(gm, inputs):
        return gm.forward

    assert {"one", "two", "third", "eager", "aot_eager", "inductor"} <= set(dynacore.list_backends())
    assert make_options("third").backend is three
    assert make_options("third").backend_name == "third"
    dynacore.register_backend(one)
    for taken in ("one", "eager"):
        with pytest.raises(ArgumentError, match=f"name='{taken}'.*exists already"):
            dynacore.register_backend(three, name=taken)
    with pytest.raises(ArgumentError, match="give a callable, not 3"):
        dynacore.register_backend(3)
    with pytest.raises(ArgumentError, match="which has none"):
        dynacore.register_backend(type("Thing", (), {"__call__": three})())


def test_entry_points_are_found_and_loaded_at_use(monkeypatch):
    points = [
        metadata.EntryPoint("theirs", "test_backends_elsewhere:backend", backends.ENTRY_POINTS),
        metadata.EntryPoint("good", "operator:attrgetter", backends.ENTRY_POINTS),
    ]
    monkeypatch.setattr(metadata, "entry_points", lambda group: points if group == "torch_dynamo_backends" else [])
    assert {"theirs", "good"} <= set(dynacore.list_backends())
    assert make_options("good").backend is operator.attrgetter
    with pytest.raises(BackendError, match="'theirs', an entry point at test_backends_elsewhere:backend, doesn't load"):
        dynacore.compile(lambda x: x, backend="theirs")


def test_callables_get_mode_and_options_only_where_given():
    calls = []

    def backend(gm, inputs, **keywords):
        calls.append(keywords)
        return gm.forward

    for keywords in ({}, {"mode": "default"}, {"mode": "anything"}, {"options": {"level": 3}}):
        make_options(backend, **keywords).backend(graph_of(lambda x: (x,), "x"), [])
    assert calls == [{}, {}, {"mode": "anything"}, {"options": {"level": 3}}]


def test_equal_requests_are_equal_options():
    assert make_options("inductor", mode="default") == make_options("inductor", mode="default")
    assert make_options("inductor") != make_options("eager")
    assert make_options("eager") != make_options("eager", fullgraph=True)


def test_modes_of_inductor_are_its_settings():
    patches = make_options("inductor", mode="max-autotune").backend.keywords["patches"]
    assert patches["max_autotune"] is True
    patches = make_options("inductor", options={"max-autotune": True, "epilogue_fusion": False}).backend.keywords
    assert patches["patches"] == {"max_autotune": True, "epilogue_fusion": False}


def test_without_a_compiler_inductor_is_eager_and_says_so_once(monkeypatch, caplog, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert make_options("inductor").backend is backends.eager
    assert make_options("inductor", mode="max-autotune").backend is backends.eager
    assert dynacore.compile(lambda x: x + 1)(torch.zeros(2)).tolist() == [1, 1]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "needs a C++ compiler" in caplog.text
    monkeypatch.setenv("CXX", sys.executable)
    assert backends.find_cxx_compiler() == sys.executable


# --- holding them to the protocol ---------------------------------------------------------------------------------


def two(x):
    return x + 1, x * 2


X = torch.arange(4.0)


def failing(gm, inputs):
    raise KeyError("inside")


@pytest.mark.parametrize(
    ("backend", "text"),
    [
        (failing, "backend 'mine' failed: KeyError: 'inside'.*suppress_errors"),
        (lambda gm, inputs: None, "backend 'mine' must return a callable, and returned None"),
    ],
)
def test_a_backend_that_fails(backend, text, caplog):
    gm = graph_of(two, "x")
    with pytest.raises(BackendError, match=text):
        backends.call_backend("mine", backend, gm, [X], 2)
    with dynacore.config.patch(suppress_errors=True):
        for _ in range(2):
            compiled = backends.call_backend("mine", backend, gm, [X], 2)
            torch.testing.assert_close(compiled(X), two(X))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "The graph runs eagerly" in caplog.text


def test_the_cause_is_kept_and_interrupts_pass():
    with pytest.raises(BackendError) as caught:
        backends.call_backend("mine", failing, graph_of(two, "x"), [X], 2)
    assert isinstance(caught.value.__cause__, KeyError)

    def interrupted(gm, inputs):
        raise KeyboardInterrupt

    with dynacore.config.patch(suppress_errors=True), pytest.raises(KeyboardInterrupt):
        backends.call_backend("mine", interrupted, graph_of(two, "x"), [X], 2)


def test_a_graph_spoilt_by_a_failing_backend_still_runs_right():
    def spoil(gm, inputs):
        for node in gm.graph.nodes:
            if node.op == "call_function":
                node.target = operator.sub
        gm.recompile()
        raise ValueError

    with dynacore.config.patch(suppress_errors=True):
        compiled = backends.call_backend("mine", spoil, graph_of(two, "x"), [X], 2)
    torch.testing.assert_close(compiled(X), two(X))


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ((X,), "returned 1 outputs, and the graph has 2"),
        ([X, X, X], "returned 3 outputs, and the graph has 2"),
        (X, "must return a tuple or list, not a Tensor"),
        (None, "must return a tuple or list, not a NoneType"),
    ],
)
def test_the_wrong_number_of_outputs(outputs, text):
    compiled = backends.call_backend("mine", lambda gm, inputs: lambda *args: outputs, graph_of(two, "x"), [X], 2)
    with pytest.raises(BackendError, match=f"backend 'mine': the compiled graph {text}"):
        compiled(X)


def test_the_check_is_made_once():
    installed = []

    def forward(*args):
        return two(*args)

    compiled = backends.call_backend(
        "mine", lambda gm, inputs: forward, graph_of(two, "x"), [X], 2, install=installed.append
    )
    assert not installed
    compiled(X)
    assert installed == [forward]


def test_a_failing_backend_reaches_the_user_and_leaves_the_function_usable():
    broken = [True]

    def sometimes(gm, inputs):
        if broken[0]:
            raise ValueError("not today")
        return gm.forward

    f = dynacore.compile(lambda x: x + 1, backend=sometimes)
    for _ in range(2):
        with pytest.raises(BackendError, match="backend 'sometimes' failed: ValueError: not today"):
            f(X)
    broken[0] = False
    assert torch.equal(f(X), X + 1)


# --- what they compute --------------------------------------------------------------------------------------------

NO_COMPILER = pytest.mark.skipif(backends.find_cxx_compiler() is None, reason="inductor needs a C++ compiler")
INDUCTOR = pytest.param("inductor", marks=[pytest.mark.slow, NO_COMPILER])
REAL = ["eager", "aot_eager", INDUCTOR]


@pytest.mark.parametrize("name", REAL)
def test_forward_and_backward(name):
    def program(x, w, b):
        hidden = torch.nn.functional.linear(x, w, b).relu()
        return hidden.sum(1), hidden.softmax(1)

    torch.manual_seed(0)
    inputs = [torch.randn(3, 4), torch.randn(5, 4, requires_grad=True), torch.randn(5, requires_grad=True)]
    compiled = compile_graph(name, graph_of(program, "x", "w", "b"), inputs, 2)
    for _ in range(2):
        wanted, got = program(*inputs), compiled(*inputs)
        torch.testing.assert_close(tuple(got), wanted)
        weights = inputs[1:]
        for ours, theirs in zip(
            torch.autograd.grad(got[0].sum() + got[1][0, 0], weights),
            torch.autograd.grad(wanted[0].sum() + wanted[1][0, 0], weights),
            strict=True,
        ):
            torch.testing.assert_close(ours, theirs)
        inputs[0] = inputs[0] + 1


@pytest.mark.parametrize("name", REAL)
def test_inputs_changed_in_place(name):
    def program(x, total):
        return total.add_(x), x * 2

    total = torch.zeros(4)
    compiled = compile_graph(name, graph_of(program, "x", "total"), [X, total], 2)
    out, doubled = compiled(X, total)
    assert torch.equal(total, X)
    assert torch.equal(out, total)
    assert torch.equal(doubled, X * 2)
    compiled(X, total)
    assert torch.equal(total, X * 2)


@pytest.mark.parametrize("first_apart", [True, False])
@pytest.mark.parametrize("name", REAL)
def test_inputs_that_share_memory_and_change(name, first_apart):
    def program(x, y):
        x.mul_(3)
        return x * 2, y + 1

    def apart():
        return [torch.arange(4.0), torch.ones(4)]

    def overlapping():
        base = torch.arange(5.0)
        return [base[1:], base[:-1]]

    def same():
        x = torch.arange(4.0)
        return [x, x]

    kinds = [apart, overlapping, same, apart]
    kinds = kinds if first_apart else kinds[1:]
    gm = graph_of(program, "x", "y")
    compiled = compile_graph(name, gm, kinds[0](), 2)
    for make in kinds:
        plain, ours = make(), make()
        torch.testing.assert_close(tuple(compiled(*ours)), program(*plain))
        torch.testing.assert_close(ours, plain)


@pytest.mark.parametrize("name", REAL)
def test_numbers_among_the_inputs_are_never_baked_in(name):
    def program(x, n, s, flag):
        return x * n + s, x * flag

    gm = graph_of(program, "x", "n", "s", "flag")
    whole = torch.arange(4)
    compiled = compile_graph(name, gm, [whole, 3, 2.5, True], 2)
    calls = [(3, 2.5, True), (4, 2.5, True), (4, 0.5, False), (4, 1, False), (4, 1.0, False), (4.0, True, 1)]
    for numbers in calls:
        torch.testing.assert_close(tuple(compiled(whole, *numbers)), program(whole, *numbers))


def test_zeros_nans_and_infinities_are_told_apart():
    compiled = compile_graph("aot_eager", graph_of(lambda x, s: (x * s,), "x", "s"), [X + 1, 0.0], 1)
    for s in (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 0.0):
        torch.testing.assert_close(1 / compiled(X + 1, s)[0], 1 / ((X + 1) * s), equal_nan=True)


def test_past_the_limit_of_artifacts_the_graph_runs(monkeypatch):
    made = []
    original = dynacore.torch_api.aot_eager
    monkeypatch.setattr(dynacore.torch_api, "aot_eager", lambda gm, inputs: made.append(1) or original(gm, inputs))
    compiled = compile_graph("aot_eager", graph_of(lambda x, n: (x + n,), "x", "n"), [X, 0], 1)
    for n in range(LIMIT + 3):
        assert torch.equal(compiled(X, n)[0], X + n)
    assert len(made) == LIMIT
    assert torch.equal(compiled(X, 1)[0], X + 1)


def test_constants_in_a_copy_of_the_graph():
    gm = graph_of(lambda x, n, y: (x * n + y, n), "x", "n", "y")
    copied = with_constants(gm, {1: 5})
    assert copied(X, X)[0].tolist() == (X * 5 + X).tolist()
    assert copied(X, X)[1] == 5
    assert gm(X, 2, X)[1] == 2


@pytest.mark.parametrize("name", ["aot_eager", INDUCTOR])
def test_compiled_training_equals_eager(name):
    def net():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))

    plain, trained = net(), net()
    compiled = dynacore.compile(trained, backend=name)
    for module in (plain, compiled):
        optimizer = torch.optim.Adam(module.parameters())
        for step in range(3):
            optimizer.zero_grad()
            module(torch.ones(2, 4) * step).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(dict(trained.state_dict()), dict(plain.state_dict()))


@pytest.mark.parametrize("name", REAL)
def test_gradients_where_no_gradient_given_shows_a_size_that_varies(name):
    compiled = dynacore.compile(lambda x: torch.nn.functional.pad(x, (0, 1)) * 2, backend=name, dynamic=True)
    for size in (3, 5):
        x = torch.ones(2, size, requires_grad=True)
        compiled(x).sum().backward()
        assert torch.equal(x.grad, torch.full((2, size), 2.0))


def test_the_default_backend_is_inductor():
    assert inspect.signature(dynacore.compile).parameters["backend"].default == "inductor"
