"""What is watched: each change is told, nothing is kept alive, and nobody loses a watch because another stops."""

import gc
import random
import weakref

import pytest
from native.extension import PROBE, SLOWDOWN, WATCHABLE, C, node, root

DICTS, INSTANCES, TYPES, FUNCTIONS = WATCHABLE
needs_dicts = pytest.mark.skipif(not DICTS, reason="this interpreter doesn't tell about dicts")
needs_instances = pytest.mark.skipif(not INSTANCES, reason="this interpreter doesn't tell about attributes")
needs_functions = pytest.mark.skipif(not FUNCTIONS, reason="this interpreter doesn't tell about functions")
needs_types = pytest.mark.skipif(not TYPES, reason="this interpreter doesn't tell about classes")


@pytest.fixture(autouse=True)
def collect_little():
    """Collections go through what the test makes, not through all that other tests loaded."""
    gc.freeze()
    yield
    gc.unfreeze()


def watched():
    """How much is watched, of what isn't garbage."""
    gc.collect()
    return C.watched()


def test_the_probe_says_what_is_watched():
    assert C.watchable() == WATCHABLE
    assert PROBE.find_watchable(C) == WATCHABLE


def test_a_probe_that_misses_a_write_turns_the_watchers_off(monkeypatch):
    def not_a_change(obj):
        return obj

    for name, kind in [
        ("DICT_WRITES", 0),
        ("INSTANCE_WRITES", 1),
        ("CLASS_WRITES", 2),
        ("FUNCTION_WRITES", 3),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(PROBE, name, (not_a_change,))
            assert PROBE.find_watchable(C)[kind] is False
    assert PROBE.find_watchable(C) == WATCHABLE


@needs_dicts
def test_each_watcher_is_told():
    namespace = {"a": 1}
    first, second = C.Watch(namespace), C.Watch(namespace)
    assert first.unchanged and second.unchanged
    namespace["a"] = 2
    assert not first.unchanged and not second.unchanged
    third = C.Watch(namespace)
    del namespace["a"]
    assert not third.unchanged


@needs_dicts
def test_one_that_stops_takes_nothing_from_the_others():
    before = watched()["dicts"]
    namespace = {"a": 1}
    first, second = C.Watch(namespace), C.Watch(namespace)
    del first
    gc.collect()
    namespace["a"] = 2
    assert not second.unchanged
    last = C.Watch(namespace)
    del second
    assert watched()["dicts"] == before + 1
    namespace.clear()
    assert not last.unchanged


@needs_dicts
def test_what_nobody_wants_is_watched_no_longer():
    before = watched()
    namespace = {"a": 1}
    watch = C.Watch(namespace)
    assert watched()["dicts"] == before["dicts"] + 1
    namespace["a"] = 2  # it has said what it had to say
    assert watched() == before
    del watch
    watch = C.Watch(namespace)
    del watch
    assert watched() == before


@needs_dicts
def test_an_object_that_goes_is_told_and_forgotten():
    before = watched()
    namespace = {"a": 1}
    watch = C.Watch(namespace)
    del namespace
    assert not watch.unchanged
    assert watched() == before


@needs_types
def test_a_class_that_goes_is_forgotten():
    before = watched()
    for _ in range(50):
        cls = type("Class", (), {"a": 1})
        watch = C.Watch(cls)
        gone = weakref.ref(cls)
        del cls
        gc.collect()
        assert gone() is None
        assert watched() == before
        assert not watch.unchanged


@needs_functions
def test_functions_that_come_and_go():
    before = watched()
    for _ in range(50):

        def function(a=1):
            return a

        watch = C.Watch(function)
        assert watched()["functions"] == before["functions"] + 1
        assert watch.unchanged
        function.__defaults__ = (2,)
        assert not watch.unchanged
        again = C.Watch(function)
        del function
        assert watched() == before
        assert not again.unchanged


@needs_functions
def test_a_function_costs_nothing_until_it_changes():
    def function(a=1, *, b=2):
        return a + b

    fields = (node("func", "defaults", node("item", 0, checks=(("eq", 1),))), node("func", "kwdefaults", handed=0))
    guards = C.Guards(root(node("const", function, *fields, checks=(("func_code", function.__code__),))), 1)
    assert holds(guards)
    for _ in range(10):
        assert guards.check([]) == [{"b": 2}]
    assert guards.stats["walks"] == 1
    function.__kwdefaults__ = new = {"b": 3}
    assert guards.check([]) == [new]
    function.__defaults__ = (5,)
    assert not holds(guards)
    for step in range(100):
        function.__defaults__ = (step % 2,)
        assert holds(guards) == (step % 2 == 1)
    assert guards.stats["recordings"] < 10


@needs_dicts
def test_addresses_are_used_again():
    for _ in range(200):
        namespace = {"a": 1}
        watch = C.Watch(namespace)
        del namespace
        namespace = {"b": 1}  # often at the same address
        fresh = C.Watch(namespace)
        assert not watch.unchanged and fresh.unchanged
        namespace["b"] = 2
        assert not fresh.unchanged


@needs_dicts
@pytest.mark.parametrize("seed", range(10))
def test_watches_that_come_and_go(seed):
    choose = random.Random(seed)
    before = watched()
    namespaces = [{"a": 0} for _ in range(20)]
    watches: dict[int, list] = {}
    for _ in range(2000 // SLOWDOWN):
        i = choose.randrange(20)
        mine = watches.setdefault(i, [])
        match choose.randrange(5):
            case 0 | 1:
                mine.append(C.Watch(namespaces[i]))
            case 2 if mine:
                mine.pop(choose.randrange(len(mine)))
            case 3:
                namespaces[i]["a"] += 1
                assert not any(watch.unchanged for watch in mine)
                mine.clear()
            case 4:
                namespaces[i] = {"a": 0}
                assert not any(watch.unchanged for watch in mine)
                mine.clear()
        assert all(watch.unchanged for some in watches.values() for watch in some)
    watches.clear()
    mine = None
    assert watched() == before


class Layer:
    def __init__(self):
        self.weight = object()
        self.training = False
        self.step = 0


def below(layer, *keys, checks=()):
    """Guards on attributes of an instance."""
    children = [node("key", key, checks=(("eq", getattr(layer, key)),)) for key in keys]
    return C.Guards(root(node("const", layer, node("dict", None, *children, checks=checks))), 0)


def holds(guards):
    return guards.check([]) is not None


@needs_instances
def test_writes_that_do_not_matter_cost_no_walk():
    layer = Layer()
    guards = below(layer, "training")
    assert holds(guards)
    for step in range(10):
        layer.step = step
        assert holds(guards)
    assert guards.stats == {"walks": 1, "recordings": 1, "recalls": 10}
    layer.training = True
    assert not holds(guards)


@needs_instances
def test_a_dict_that_is_written_all_day_is_watched_no_longer():
    layer = Layer()
    guards = below(layer, "training")
    before = watched()["dicts"]
    assert holds(guards)
    assert watched()["dicts"] == before + 1
    for step in range(1000):
        layer.step = step
    assert watched()["dicts"] == before
    assert holds(guards)
    assert watched()["dicts"] == before  # looked at from now on
    for step in range(100):
        layer.step = step
        assert holds(guards)
    assert guards.stats["walks"] == 2
    layer.training = True
    assert not holds(guards)


@needs_instances
def test_a_fact_that_toggles_is_not_recorded_again_and_again():
    layer = Layer()
    on, off = below(layer, "weight"), None
    layer.training = True
    on = below(layer, "training")
    layer.training = False
    off = below(layer, "training")
    for step in range(200):
        layer.training = step % 2 == 0
        assert holds(on) == layer.training
        assert holds(off) == (not layer.training)
    assert on.stats["recordings"] < 8 and off.stats["recordings"] < 8


@needs_instances
@pytest.mark.parametrize(
    "change",
    [
        lambda layer: setattr(layer, "new", 1),
        lambda layer: delattr(layer, "step"),
        lambda layer: vars(layer).clear(),
    ],
)
def test_keys_that_come_and_go_matter_to_those_who_know_all_keys(change):
    layer = Layer()
    guards = below(layer, "training", checks=(("keys", ("weight", "training", "step")), ("lacks", "new")))
    assert holds(guards)
    layer.step = 5
    assert holds(guards)
    assert guards.stats["walks"] == 1
    change(layer)
    assert not holds(guards)


@needs_instances
def test_a_first_value_for_a_key_that_the_class_has_known():
    """CPython 3.12 calls it a change of the value."""
    Layer().new = 1
    layer = Layer()
    guards = below(layer, "training", checks=(("lacks", "new"), ("len", 3)))
    assert holds(guards)
    layer.new = 1
    assert not holds(guards)


def test_guards_that_are_dropped_watch_nothing():
    before = watched()
    layers = [Layer() for _ in range(5)]
    guards = [below(layer, "training") for layer in layers for _ in range(3)]
    assert all(map(holds, guards))
    assert watched()["dicts"] == before["dicts"] + 5 * INSTANCES
    del guards[::3]
    assert watched()["dicts"] == before["dicts"] + 5 * INSTANCES
    layers[0].training = True
    assert not holds(guards[0])
    assert watched()["dicts"] == before["dicts"] + 4 * INSTANCES
    guards.clear()
    assert watched() == before


def test_models_that_come_and_go_leave_nothing():
    before = watched()
    kept = []
    for _ in range(2000 // SLOWDOWN):
        layer = Layer()
        dictionary = node("dict", None, node("key", "training", checks=(("eq", False),)))
        guards = C.Guards(root(node("weak", weakref.ref(layer), dictionary)), 0)
        assert holds(guards)
        kept.append(guards)
        del layer
    gc.collect()
    assert watched() == before
    assert not any(map(holds, kept))


@needs_types
def test_a_metaclass_with_an_mro_of_its_own():
    class Meta(type):
        def mro(cls):
            return super().mro()

    class Left:
        attribute = 1

    class Right:
        attribute = 2

    class Class(Left, metaclass=Meta):
        pass

    with pytest.raises(TypeError):
        C.Watch(Class)
    guards = C.Guards(root(node("const", Class, checks=(("mro_is", ("attribute", 1)),))), 0)
    assert holds(guards) and holds(guards)
    Class.__bases__ = (Right,)
    assert not holds(guards)
