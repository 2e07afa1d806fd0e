"""Programs whose surroundings change between two calls: a compiled one must see what plain Python sees.

Whether a fact is watched, polled or looked up is the interpreter's affair; every case here runs warm first.
"""

import abc
import gc
import linecache
import sys
import threading
import weakref

import pytest
import torch
from guards import class_changes, class_facts  # noqa: F401 — more cases
from guards.surroundings import CASES, Config

import dynacore
import dynacore.capture
from dynacore import _C, stats

X = torch.arange(3.0)


def outcome(function, x):
    """What a call gives, comparably."""
    try:
        result = function(x)
    except Exception as error:
        return type(error), str(error)
    return result.tolist() if isinstance(result, torch.Tensor) else result


def same_as_plain(compiled, plain):
    assert outcome(compiled, X) == outcome(plain, X)


@pytest.fixture(params=["watched", "polled"])
def watching(request):
    """With what the interpreter's watchers see, and without them."""
    found = _C.watchable()
    if request.param == "watched" and not any(found):
        pytest.skip("this interpreter has no watchers")
    if request.param == "polled":
        _C.set_watchable((False,) * 4)
    yield request.param
    _C.set_watchable(found)


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
@pytest.mark.parametrize("warm", [1, 5])
def test_a_change_is_seen(make, warm, watching):
    program, changes = make()
    compiled = dynacore.compile(program, backend="eager")
    for change in (lambda: None, *changes):
        change()
        for _ in range(warm):
            same_as_plain(compiled, program)


def test_changes_while_the_entry_runs(watching):
    """The graph's own effects, a hook and a backend change what the entry relied on; the next call sees it."""
    config = Config()
    model = torch.nn.Linear(3, 3)
    model.register_forward_hook(lambda m, args, out: setattr(config, "scale", config.scale + 1.0))

    def program(x):
        config.seen = config.scale
        return model(x).detach() * 0 + config.scale

    compiled = dynacore.compile(program, backend="eager")
    values = []
    for function in (program, compiled):
        config.scale = 1.0
        values.append([function(X)[0].item() for _ in range(12)])
    assert values[0] == values[1]


def test_changes_by_another_thread(watching):
    config = Config()

    def program(x):
        return x * 0 + config.scale

    compiled = dynacore.compile(program, backend="eager")
    compiled(X)
    stop = threading.Event()

    def write():
        while not stop.is_set():
            config.scale = 2.0
            config.other = 1
            config.scale = 3.0

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert {compiled(X)[0].item() for _ in range(300)} <= {2.0, 3.0}
    finally:
        stop.set()
        thread.join()
    for value in (5.0, 6.0, 7.0):
        config.scale = value
        assert compiled(X)[0].item() == value


def entries(compiled):
    return compiled.point.entries


@pytest.mark.parametrize("kind", ["attribute", "global", "class", "dict"])
def test_a_value_that_toggles_makes_no_storm(kind, watching):
    class Holder:
        pass

    namespace = {"flag": True}
    exec("def of_globals(x):\n    return x + 1 if flag else x - 1", namespace)
    holder = Holder()

    def program(x):
        return x + 1 if (namespace["flag"] if kind == "dict" else holder.flag) else x - 1

    def set_flag(value):
        if kind == "attribute":
            holder.flag = value
        elif kind == "class":
            Holder.flag = value
        else:
            namespace["flag"] = value

    set_flag(True)
    function = namespace["of_globals"] if kind == "global" else program
    compiled = dynacore.compile(function, backend="eager")
    for step in range(300):
        set_flag(step % 2 == 0)
        same_as_plain(compiled, function)
    assert len(entries(compiled)) == 2
    assert sum(entry.guards.stats["recordings"] for entry in entries(compiled)) < 40


def test_a_counter_on_a_module_costs_no_walk(watching):
    model = torch.nn.Linear(3, 3).eval()
    model.steps = 0

    def program(x):
        return model(x)

    compiled = dynacore.compile(program, backend="eager")
    compiled(X)
    for _ in range(200):
        model.steps += 1
        compiled(X)
    (entry,) = entries(compiled)
    stats = entry.guards.stats
    assert stats["recordings"] < len(entry.guards.tree[4]) + 8


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.settings = {"scales": [1.0, 2.0]}

    def forward(self, x):
        return torch.relu(self.linear(x)) * self.settings["scales"][1]


def compiled_model(make):
    model = make()
    return model, dynacore.compile(model, backend="eager")


def compiled_closure(make):
    model = make()
    return model, dynacore.compile(lambda x: model(x) + 1, backend="eager")


def compiled_function_of_a_model(make):
    model = make()
    compiled = dynacore.compile(lambda x, model: model(x), backend="eager")
    return model, lambda x: compiled(x, model)


def objects_in_use():
    """How much is alive, of what a compiled function could leave behind."""
    gc.collect()
    return {
        "objects": len(gc.get_objects()),
        **_C.watched(),
    }


@pytest.mark.parametrize("compiled", [compiled_model, compiled_closure, compiled_function_of_a_model])
@pytest.mark.parametrize("make", [Scaled, lambda: torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())])
def test_dropped_models_leave_nothing(compiled, make):
    def use():
        model, call = compiled(make)
        for x in (X, X, torch.ones(5, 3)):
            call(x)
        return weakref.ref(model)

    models = 15
    gone = [use() for _ in range(3)]
    before = objects_in_use()
    gone.extend(use() for _ in range(models))
    assert not any(reference() for reference in gone)
    del gone[3:]
    after = objects_in_use()
    grown = {kind: after[kind] - before[kind] for kind in before}
    assert all(grown[kind] < models for kind in grown), grown  # less than one of anything a model


def test_sources_of_graphs_go_with_their_code():
    def sources():
        gc.collect()
        return {name for name in linecache.cache if name.startswith("<eval_with_key>")}

    def use(scale):
        compiled = dynacore.compile(eval(f"lambda x: x * {scale}"), backend="eager")
        assert torch.equal(compiled(X), X * scale)
        return sources()

    before = sources()
    during = [use(scale) for scale in range(2, 5)]
    assert all(during)  # this is where torch.fx keeps them
    assert not sources() - before


def test_explain_says_how_facts_are_kept():
    config = Config()

    def program(x):
        return x * config.scale

    told = dynacore.explain(program)(X)
    how = {fact.how for fact in told.facts}
    assert how <= {"watched", "polled", "looked up"}
    assert ("watched" in how) == any(_C.watchable())
    assert "Of what is not an argument: " in str(told)
    text = [str(fact) for fact in told.facts]
    assert any(line.endswith("cell_contents: polled (cell)") for line in text)
    if _C.watchable()[1]:
        assert any(line.endswith(".__dict__: watched (dict)") for line in text)
    assert sys.getrefcount(config) < 8


def test_a_class_is_registered_while_its_answer_is_captured():
    """By what capture imports, say: the answer is asked for once more."""

    class Shape(abc.ABC):  # noqa: B024
        pass

    class Later(abc.ABC):  # noqa: B024
        pass

    def program(x, late):
        if isinstance(late, Shape):
            return x + 1
        return x.sin()

    def cut(code, index):
        if not registered and code is program.__code__ and index > 8:
            registered.append(Later.register(type("Registered", (), {})))
        return False

    registered = []
    before = stats.counters["entries"]
    with dynacore.config.patch(verify=True, testing_cut=cut):
        compiled = dynacore.compile(program, backend="eager")
        for _ in range(3):
            assert torch.equal(compiled(X, 1), X.sin())
    assert registered and stats.counters["entries"] == before + 1
