"""How often programs that vary are captured: a bounded, stated number of times, with plain Python as the oracle."""

import functools
import gc
import itertools

import pytest
import torch
from capture.compare import difference
from torch import nn

import dynacore
from dynacore import stats


class Captures:
    """Counts captures between two looks."""

    def __init__(self):
        self.last = stats.counters["entries"]

    def new(self) -> int:
        now = stats.counters["entries"]
        self.last, new = now, now - self.last
        return new


@pytest.fixture
def captures():
    dynacore.reset()
    return Captures()


def compiled(function):
    return dynacore.compile(function, backend="eager", fullgraph=True)


X = torch.arange(4.0)


def test_fresh_lambdas_of_one_line(captures):
    for scale in (torch.tensor(2.0), torch.tensor(3.0), torch.tensor(4.0)):
        fresh = compiled(lambda x: x * scale)
        assert torch.equal(fresh(X), X * scale)
    assert captures.new() == 1


def test_numbers_in_closures_open_at_the_second(captures):
    for scale in range(2, 12):
        fresh = compiled(lambda x: x * scale)
        assert torch.equal(fresh(X), X * scale)
    assert captures.new() == 2


def test_fresh_functions_in_closures_count_by_their_code(captures):
    for shift in (torch.tensor(2.0), torch.tensor(3.0), torch.tensor(4.0)):

        def inner(x):
            return x + shift

        fresh = compiled(lambda x: inner(x) * 2)
        assert torch.equal(fresh(X), (X + shift) * 2)
    assert captures.new() == 1


def test_other_functions_in_closures_are_captured_anew(captures):
    for inner in (torch.sin, torch.cos, torch.exp):
        fresh = compiled(lambda x: inner(x))
        assert torch.equal(fresh(X), inner(X))
    assert captures.new() == 3


def test_fresh_partials(captures):
    def scaled(x, scale):
        return x * scale

    for scale in (torch.tensor(2.0), torch.tensor(3.0), torch.tensor(4.0)):
        fresh = compiled(functools.partial(scaled, scale=scale))
        assert torch.equal(fresh(X), X * scale)
    assert captures.new() == 1


class Layer(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        return self.norm(torch.relu(self.linear(x)))


def test_equal_modules_share_one_artifact(captures):
    layers = [Layer() for _ in range(32)]
    whole = [compiled(layer) for layer in layers]
    for layer, fast in zip(layers, whole):
        assert torch.equal(fast(X), layer(X))
    assert captures.new() == 1
    for layer, fast in zip(layers, whole):
        assert torch.equal(fast(X), layer(X))
    assert captures.new() == 0


def test_modules_of_another_structure_have_their_own(captures):
    layers = [Layer(), Layer(), Layer().eval().requires_grad_(False), Layer().double()]
    for layer in layers:
        x = X.to(layer.linear.weight.dtype)
        assert torch.equal(compiled(layer)(x), layer(x))
    assert captures.new() == 3


def test_modules_that_were_dropped_are_remembered_by_their_captures_alone(captures):
    import weakref

    gone = []
    for _ in range(3):
        layer = Layer()
        assert torch.equal(compiled(layer)(X), layer(X))
        gone.append(weakref.ref(layer))
        del layer
    import gc

    gc.collect()
    assert captures.new() == 1
    assert [ref() for ref in gone] == [None] * 3


class Thing:
    def __init__(self, factor):
        self.factor = factor
        self.bias = torch.ones(4)

    def method(self, x):
        return x * self.factor + self.bias


def test_fresh_instances(captures):
    fast = compiled(lambda thing, x: thing.method(x))
    for _ in range(5):
        thing = Thing(3)
        assert torch.equal(fast(thing, X), thing.method(X))
    assert captures.new() == 1


def test_methods_of_fresh_instances(captures):
    for _ in range(5):
        thing = Thing(3)
        assert torch.equal(compiled(thing.method)(X), thing.method(X))
    assert captures.new() == 1


def test_a_float_that_changes_every_call(captures):
    fast = compiled(lambda x, factor: x * factor)
    for i in range(10):
        assert torch.equal(fast(X, i + 0.5), X * (i + 0.5))
    assert captures.new() == 2


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


def test_a_counter_on_a_module(captures):
    plain, counting = Counting(), Counting()
    fast = compiled(counting)
    for _ in range(10):
        assert torch.equal(fast(X), plain(X))
    assert counting.calls == plain.calls == 10
    assert captures.new() == 2


def sliced(n, width):
    return torch.randn(n, width)[:, :4]


def stepped(n, width):
    return torch.randn(n, 4, width)[:, :, 0]


@pytest.mark.parametrize("given", [sliced, stepped])
@pytest.mark.parametrize(
    "program",
    [
        lambda x: x * 2 + 1,
        lambda x: (x @ x.t()).relu(),
        lambda x: torch.softmax(x, -1).sum(0),
        lambda x: (x.reshape(-1), x.contiguous(), x.stride(), x.is_contiguous()),
        lambda x: x.clone().add_(x)[1:],
    ],
    ids=["pointwise", "product", "softmax", "layout", "in place"],
)
def test_a_stride_that_varies_on_its_own(captures, program, given):
    fast = compiled(program)
    for width in range(5, 13):
        x = given(3, width)
        assert difference(fast(x), program(x)) is None
    assert captures.new() == 2
    for width in range(5, 13):
        x = given(width, width + 8)
        assert difference(fast(x), program(x)) is None
    assert captures.new() <= 2


@pytest.mark.parametrize("backend", ["aot_eager"])
def test_a_stride_that_varies_through_compilers(captures, backend):
    fast = dynacore.compile(lambda x: x.softmax(-1) * x, backend=backend)
    for width in range(5, 13):
        x = sliced(3, width)
        torch.testing.assert_close(fast(x), x.softmax(-1) * x)
    assert captures.new() == 2


def test_where_a_tensor_lies_in_its_memory_does_not_matter(captures):
    fast = compiled(lambda x: x + 1)
    for start in range(8):
        x = torch.randn(20)[start : start + 4]
        assert torch.equal(fast(x), x + 1)
    assert captures.new() == 1


def test_models_that_are_arguments(captures):
    fast = compiled(lambda model, x: model(x))
    layers = [Layer() for _ in range(6)]
    for layer in layers * 2:
        assert torch.equal(fast(layer, X), layer(X))
    assert captures.new() == 1
    for dtype in (torch.float64, torch.bfloat16):
        layer = Layer().to(dtype)
        assert torch.equal(fast(layer, X.to(dtype)), layer(X.to(dtype)))
    assert captures.new() == 2
    assert torch.equal(fast(layers[0], X), layers[0](X))
    assert captures.new() == 0


def test_lists_of_models_that_are_arguments(captures):
    fast = compiled(lambda models, x: sum(model(x) for model in models))
    for _ in range(4):
        models = [Layer() for _ in range(3)]
        assert torch.equal(fast(models, X), sum(model(X) for model in models))
    assert captures.new() == 1


def test_models_in_closures_and_partials(captures):
    def run(model, x):
        return model(x) + 1

    for _ in range(4):
        layer = Layer()
        assert torch.equal(compiled(functools.partial(run, layer))(X), layer(X) + 1)
        assert torch.equal(compiled(lambda x: layer(x))(X), layer(X))
        gc.collect()  # neither depends on when functions that are gone are collected
    assert captures.new() == 2


def test_fresh_functions_as_arguments(captures):
    fast = compiled(lambda function, x: function(x))
    for scale in (torch.tensor(2.0), torch.tensor(3.0), torch.tensor(4.0)):
        assert torch.equal(fast(lambda x: x * scale, X), X * scale)
    assert captures.new() == 1
    for scale in (torch.tensor(2.0), torch.tensor(3.0), torch.tensor(4.0)):
        assert torch.equal(fast(functools.partial(torch.mul, scale), X), X * scale)
    assert captures.new() == 1


class Numbered(nn.Module):
    """A layer with its place and its name."""

    def __init__(self, index):
        super().__init__()
        self.index = index
        self.name = f"layer {index}"
        self.inner = Counting()

    def forward(self, x):
        return self.inner(x) + self.index


def test_layers_with_their_index(captures):
    for index in range(2, 12):
        layer, twin = Numbered(index), Numbered(index)
        assert torch.equal(compiled(layer)(X), twin(X))
    assert captures.new() == 2


def test_counters_on_nested_modules(captures):
    model, twin = (nn.Sequential(Numbered(1), Counting(), Numbered(2)) for _ in range(2))
    fast = compiled(model)
    for _ in range(8):
        assert torch.equal(fast(X), twin(X))
    assert captures.new() == 2


def test_a_counter_that_is_branched_on(captures):
    class Alternating(Counting):
        def forward(self, x):
            self.calls += 1
            return x * 2 if self.calls % 2 else x * min(1.0, self.calls / 5)

    model, twin = Alternating(), Alternating()
    fast = compiled(model)
    for _ in range(12):
        assert torch.equal(fast(X), twin(X))
    assert captures.new() <= 4


def test_a_model_that_changes_its_dtype(captures):
    model = Layer()
    fast = compiled(model)
    for dtype in (torch.float32, torch.float64, torch.bfloat16) * 2:
        model.to(dtype)
        assert torch.equal(fast(X.to(dtype)), model(X.to(dtype)))
    assert captures.new() == 3


def test_dicts_in_any_order(captures):
    looked_up, walked = (lambda d: d["a"] - d["b"] + d["c"]), (lambda d: list(d.values()))
    for program, most in ((looked_up, 1), (walked, 6)):
        fast = compiled(program)
        for keys in itertools.permutations("abc"):
            given = {key: X + ord(key) for key in keys}
            assert difference(fast(given), program(given)) is None
        assert captures.new() == most
    keywords = compiled(lambda **d: d["a"] - d["b"])
    assert torch.equal(keywords(a=X, b=X * 2), -X)
    assert torch.equal(keywords(b=X * 2, a=X), -X)
    assert captures.new() == 1


def test_keys_beside_those_that_are_read(captures):
    fast = compiled(lambda d: d["a"] * 2)
    for n in range(6):
        assert torch.equal(fast({"a": X, **dict.fromkeys(range(n))}), X * 2)
    assert captures.new() == 1


def test_a_list_that_is_only_appended_to(captures):
    class Recording(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = []

        def forward(self, x):
            self.seen.append(x.sum())
            return x * 2

    model, seen = Recording(), []
    fast, onto = compiled(model), compiled(lambda items, x: items.append(x + 1))
    for _ in range(6):
        assert torch.equal(fast(X), X * 2)
        onto(seen, X)
    assert len(model.seen) == len(seen) == 6
    assert captures.new() == 2


def test_numbers_in_tuples_and_keywords(captures):
    def program(x, *args, pair, **named):
        return x * args[0] + pair[0] * pair[1] - named["lr"]

    fast = compiled(program)
    for i in range(2, 9):
        given = {"pair": (i, i + 0.5), "lr": 0.1 * i}
        assert torch.equal(fast(X, i, **given), program(X, i, **given))
    assert captures.new() == 2


def test_train_and_eval(captures):
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    fast = compiled(model)
    x = torch.ones(3, 4)
    for _ in range(4):
        model.train()
        fast(x)
        model.eval()
        assert torch.equal(fast(x), model(x))
    assert captures.new() == 2


def test_grad_mode(captures):
    fast = compiled(lambda x: (x * 2).relu())
    x = torch.ones(4, requires_grad=True)
    for _ in range(4):
        assert fast(x).requires_grad
        with torch.no_grad():
            assert not fast(x).requires_grad
    assert captures.new() == 2


def test_a_model_on_three_dtypes(captures):
    fast = compiled(lambda x: torch.softmax(x * 2, -1))
    for dtype in (torch.float32, torch.float64, torch.bfloat16) * 2:
        assert torch.equal(fast(X.to(dtype)), torch.softmax(X.to(dtype) * 2, -1))
    assert captures.new() == 3


def test_a_dict_in_another_order(captures):
    fast = compiled(lambda d: d["a"] - d["b"])
    assert torch.equal(fast({"a": X, "b": X * 2}), -X)
    assert torch.equal(fast({"b": X * 2, "a": X}), -X)
    assert captures.new() <= 2


def test_a_growing_list_is_captured_per_length(captures):
    fast = compiled(lambda tensors: sum(tensors))
    for n in range(1, 6):
        assert torch.equal(fast([X] * n), X * n)
    assert captures.new() == 5


def test_what_was_shared_still_is_guarded(captures):
    """One function's closure changes: its entries and nobody else's miss."""

    def make(inner):
        def function(x):
            return inner(x)

        def replace(other):
            nonlocal inner
            inner = other

        return function, replace

    first, replace = make(torch.sin)
    second, _ = make(torch.sin)
    fast_first, fast_second = compiled(first), compiled(second)
    assert torch.equal(fast_first(X), torch.sin(X))
    assert torch.equal(fast_second(X), torch.sin(X))
    assert captures.new() == 1
    replace(torch.cos)
    assert torch.equal(fast_first(X), torch.cos(X))
    assert torch.equal(fast_second(X), torch.sin(X))
    assert captures.new() == 1


def test_the_limit_counts_for_all_functions_of_a_code(captures, caplog):
    kept = []
    for i in range(12):
        name = f"name{i}"
        fresh = compiled(lambda x: (x + 1, name))
        assert fresh(X)[1] == name
        kept.append(fresh)
    assert captures.new() == 12
    del kept, fresh
    for i in range(20, 60):
        name = f"name{i}"
        assert dynacore.compile(lambda x: (x + 1, name), backend="eager")(X)[1] == name
    assert captures.new() <= 8


def test_failing_graphs_run_again_with_their_own_function(captures):
    """The graph's error leads into plain Python of the function that was called, not of the one captured."""
    for i in range(3):
        index = torch.tensor([i + 10])

        def function(x):
            try:
                return x[index] + 1
            except IndexError:
                return index

        assert torch.equal(dynacore.compile(function, backend="eager")(X), torch.tensor([i + 10]))


def test_settings_and_allowed_functions_keep_captures_apart(captures):
    def inner(x):
        return x.sin()

    def make():
        return lambda x: inner(x) + 1

    make_compiled = lambda: dynacore.compile(make(), backend="eager")
    make_compiled()(X)
    with dynacore.config.patch(inline_depth_limit=150):
        make_compiled()(X)
    assert captures.new() == 2
    make_compiled()(X)
    assert captures.new() == 0


@pytest.mark.parametrize("n", [1, 3])
def test_breaks_continue_in_shared_points(captures, n):
    def make(scale):
        def function(x):
            y = x * scale
            dynacore.graph_break()
            return y + scale

        return function

    for i in range(n):
        scale = torch.tensor(float(i))
        assert torch.equal(dynacore.compile(make(scale), backend="eager")(X), X * i + i)
    assert captures.new() == 2


class Identity:
    def __call__(self, x):
        return x


def fresh_class():
    return type("Identity", (Identity,), {})


@pytest.mark.parametrize(
    "function, varying, told",
    [
        (lambda x, mode: x if mode == "a" else x + 1, lambda i: "m" * i, ("`mode` kept", "'mm'", "constant")),
        (lambda x, items: x + len(items), lambda i: [0] * i, ("`items` kept", "length 3", "stacked")),
        (lambda x, f: f(x), lambda i: fresh_class()(), ("`f` kept", "type Identity", "type")),
    ],
)
def test_the_limit_says_what_changed_and_what_to_do(captures, caplog, function, varying, told):
    fast = dynacore.compile(function, backend="eager")
    calls = [(X, varying(i)) for i in range(9)]
    for args in calls:
        assert torch.equal(fast(*args), function(*args))
    assert captures.new() == dynacore.config.recompile_limit
    fast(*calls[0])  # entries stay in use
    (record,) = caplog.records
    line = function.__code__.co_firstlineno
    for text in (*told, f"line {line}", "recompile_limit", "go on using"):
        assert text in record.message
