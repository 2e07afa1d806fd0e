"""The fast path below const and weak roots: it must say what a walk would say, whatever was changed in between."""

import gc
import random
import signal
import sys
import weakref
from types import CellType, MethodType

import pytest
from native.extension import SLOWDOWN, WATCHABLE, C, node, rest, root
from native.worlds import World, read_often


@pytest.fixture(autouse=True, params=["watched", "polled"])
def watching(request):
    """Everything here must hold with what the interpreter's watchers see, and without them."""
    if request.param == "watched" and not any(WATCHABLE):
        pytest.skip("this interpreter has no watchers")
    C.set_watchable(WATCHABLE if request.param == "watched" else (False,) * 4)
    yield request.param
    C.set_watchable(WATCHABLE)


def same(left, right):
    """Reading a method through an instance binds it anew each time."""
    return left is right or (type(left) is MethodType and left == right)


@pytest.mark.parametrize("seed", range(120 // SLOWDOWN))
def test_memo_agrees_with_a_fresh_walk(seed):
    world = World(random.Random(seed))
    for _ in range(10):
        tree, n_handed, state = world.tree()
        remembering = C.Guards(tree, n_handed)
        for _ in range(40):
            for _ in range(world.random.randrange(3)):
                world.mutate()
            expected = C.Guards(tree, n_handed).check(state)
            for _ in range(2):
                found = remembering.check(state)
                assert (found is None) == (expected is None)
                assert found is None or all(map(same, found, expected))


class Module:
    def __init__(self, **attributes):
        vars(self).update(attributes)

    def forward(self):
        pass


def watched(*nodes, module=None, checks=()):
    """Guards on what lies below an instance's dict, and the instance."""
    module = module or Module(weight=object(), bias=None, sub={"a": 1}, items=[1, 2], pair=(10**9, "x"))
    tree = root(node("const", module, node("dict", None, *nodes), checks=(("type", Module), *checks)))
    return C.Guards(tree, sum(n[3] != -1 for n in nodes)), module


def recalls(guards):
    """Whether a check of these guards, which hold, needs no walk now."""
    assert guards.check([]) is not None
    before = guards.stats
    assert guards.check([]) is not None
    after = guards.stats
    return after["recalls"] == before["recalls"] + 1 and after["walks"] == before["walks"]


def test_what_held_is_not_walked_again():
    guards, module = watched(node("key", "weight", handed=0), node("key", "sub", node("key", "a", checks=(("eq", 1),))))
    assert recalls(guards)
    assert guards.check([]) == [module.weight]
    assert guards.stats == {"walks": 1, "recordings": 1, "recalls": 2}


def set_class(module):
    class Other(Module):
        pass

    module.__class__ = Other


CHANGES = {
    "setattr": lambda m: setattr(m, "bias", 1),
    "delattr": lambda m: delattr(m, "bias"),
    "dict item": lambda m: vars(m).update(bias=1),
    "dict swapped": lambda m: setattr(m, "__dict__", dict(vars(m), bias=1)),
    "object.__setattr__": lambda m: object.__setattr__(m, "bias", 1),
    "class": set_class,
    "nested dict": lambda m: m.sub.update(a=2),
    "nested dict item gone": lambda m: m.sub.clear(),
    "nested dict replaced": lambda m: setattr(m, "sub", {"a": 2}),
    "list item": lambda m: m.items.__setitem__(1, 3),
    "list length": lambda m: m.items.append(3),
    "tuple": lambda m: setattr(m, "pair", (10**9 + 1, "x")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_seen(change):
    guards, module = watched(
        node("key", "bias", checks=(("is", None),)),
        node("key", "sub", node("key", "a", checks=(("eq", 1),)), checks=(("len", 1),)),
        node("key", "items", node("item", 1, checks=(("eq", 2),)), checks=(("len", 2),)),
        node("key", "pair", checks=(("eq", (10**9, "x")),)),
    )
    assert recalls(guards)
    change(module)
    assert guards.check([]) is None


def test_changes_of_classes_are_seen():
    class Base:
        def forward(self):
            pass

    class Derived(Base):
        pass

    checks = (("mro_is", ("forward", Base.forward)), ("mro_lacks", "other"))
    guards = C.Guards(root(node("const", Derived, checks=checks)), 0)
    original = Base.forward
    for change, undo in [
        (lambda: setattr(Base, "forward", None), lambda: setattr(Base, "forward", original)),
        (lambda: setattr(Derived, "forward", None), lambda: delattr(Derived, "forward")),
        (lambda: setattr(Base, "other", None), lambda: delattr(Base, "other")),
        (lambda: setattr(Derived, "__bases__", (Module,)), lambda: setattr(Derived, "__bases__", (Base,))),
    ]:
        assert recalls(guards)
        change()
        assert guards.check([]) is None
        undo()


def test_changes_of_base_classes_are_seen():
    class Base:
        pass

    class Middle(Base):
        pass

    class Derived(Middle):
        pass

    class Other(Base):
        pass

    mro = C.Guards(root(node("const", Derived, checks=(("mro_eq", Derived.__mro__),))), 0)
    fields = [node("slot", "__bases__", node("item", 0, checks=(("is", Middle),))), node("slot", "__base__")]
    bases = C.Guards(root(node("const", Derived, *fields)), 0)
    for change, undo, guards in [
        (lambda: setattr(Derived, "__bases__", (Other,)), lambda: setattr(Derived, "__bases__", (Middle,)), mro),
        (lambda: setattr(Derived, "__bases__", (Middle, Other)), lambda: setattr(Derived, "__bases__", (Middle,)), mro),
        (lambda: setattr(Middle, "__bases__", (Other,)), lambda: setattr(Middle, "__bases__", (Base,)), mro),
        (lambda: setattr(Derived, "__bases__", (Other,)), lambda: setattr(Derived, "__bases__", (Middle,)), bases),
    ]:
        assert recalls(guards)
        change()
        assert guards.check([]) is None
        undo()
    Base.attribute = 1
    assert mro.check([]) == bases.check([]) == []


def test_changes_of_functions_and_cells_are_seen():
    def outer():
        captured = 5

        def function(a=1, *, b=2):
            return captured

        return function

    function, other = outer(), outer()
    fields = [
        node("func", "defaults", node("item", 0, checks=(("eq", 1),))),
        node("func", "kwdefaults", node("key", "b", checks=(("eq", 2),))),
        node("func", "closure", node("item", 0, node("cell", checks=(("eq", 5),)))),
    ]
    guards = C.Guards(root(node("const", function, *fields, checks=(("func_code", function.__code__),))), 0)
    for name, value in [("__defaults__", (3,)), ("__kwdefaults__", {"b": 3}), ("__code__", (lambda: 1).__code__)]:
        assert recalls(guards)
        old = getattr(function, name)
        if name == "__code__":
            value = other.__code__.replace(co_name="other")
        setattr(function, name, value)
        assert guards.check([]) is None
        setattr(function, name, old)
    assert recalls(guards)
    function.__closure__[0].cell_contents = 6
    assert guards.check([]) is None


def test_another_object_at_the_same_address():
    """A cell's word is the same when the object in it was replaced by one that got its memory."""
    cell = CellType(tuple([1]))
    guards = C.Guards(root(node("const", cell, node("cell", None, node("item", 0, checks=(("eq", 1),))))), 0)
    assert recalls(guards)
    address = id(cell.cell_contents)
    for _ in range(1000):
        cell.cell_contents = None
        cell.cell_contents = tuple([2])
        if id(cell.cell_contents) == address:
            break
    assert id(cell.cell_contents) == address
    assert guards.check([]) is None


def test_constant_at_the_same_address():
    cell = CellType(float("1000.5"))
    guards = C.Guards(root(node("const", cell, node("cell", None, checks=(("eq", 1000.5),)))), 0)
    assert recalls(guards)
    cell.cell_contents = None
    cell.cell_contents = float("2000.5")  # floats are made from the last one that was freed
    assert guards.check([]) is None


def test_a_dict_that_changes_all_the_time_does_not_stop_the_rest():
    guards, module = watched(node("key", "weight", handed=0), node("key", "sub", node("key", "a", checks=(("eq", 1),))))
    for step in range(20):
        module.counter = step
        assert guards.check([]) == [module.weight]
    assert guards.stats["walks"] < 6
    module.weight = new = object()
    assert guards.check([]) == [new]
    module.sub["a"] = 2
    assert guards.check([]) is None


def test_a_value_that_changes_all_the_time_does_not_stop_the_rest():
    guards, module = watched(node("key", "weight", handed=0), node("key", "bias", checks=(("is", None),)))
    for _ in range(20):
        module.weight = new = object()
        assert guards.check([]) == [new]
    assert guards.stats["walks"] < 10
    module.bias = 1
    assert guards.check([]) is None
    module.bias = None
    assert guards.check([]) == [new]


def test_rare_changes_cost_nothing_afterwards(watching):
    guards, module = watched(node("key", "bias", checks=(("is", None),)))
    for step in range(10):
        module.counter = step
        assert all(guards.check([]) is not None for _ in range(30))
    before = guards.stats["recordings"]
    module.counter = "last"
    assert guards.check([]) is not None
    # The version of the dict is still what is remembered, where there is one; a watcher says what doesn't matter.
    versions = watching == "polled" and C.capabilities["instance_dict_versions"]
    assert guards.stats["recordings"] == before + versions


def test_dicts_that_the_interpreter_inlines_again():
    class Plain:
        def __init__(self):
            self.alpha = 1

    plain = Plain()
    guards = C.Guards(root(node("const", plain, node("dict", None, node("key", "alpha", checks=(("eq", 1),))))), 0)
    for _ in range(20):
        read_often(plain)
        assert guards.check([]) is not None
    assert guards.stats["walks"] < 8
    plain.alpha = 2
    assert guards.check([]) is None


class Split:
    """Its instances share the keys of their dicts."""

    def __init__(self):
        self.first = 1
        self.counter = 0
        self.last = 2


@pytest.mark.parametrize(
    "change",
    [
        lambda obj: setattr(obj, "last", 3),
        lambda obj: delattr(obj, "last"),
        lambda obj: vars(obj).clear(),
        lambda obj: setattr(obj, "__dict__", {}),
    ],
)
def test_values_of_a_split_dict(change):
    obj = Split()
    last = node("key", "last", checks=(("eq", 2),))
    guards = C.Guards(root(node("const", obj, node("dict", None, node("key", "first", handed=0), last))), 1)
    for step in range(10):
        obj.counter = step
        assert guards.check([]) == [1]
    assert guards.stats["walks"] < 5
    change(obj)
    assert guards.check([]) is None
    obj.first = obj.last = 2
    assert guards.check([]) == [2]


def test_another_key_in_the_place_of_a_value():
    value = object()
    names = {"counter": 0, "a": None, "b": value}
    guards = C.Guards(root(node("const", names, node("key", "b", handed=0))), 1)
    for step in range(10):
        names["counter"] = step
        assert guards.check([]) == [value]
    assert guards.stats["walks"] < 5
    names.popitem()
    names["c"] = value
    assert guards.check([]) is None


def test_equality_of_what_can_change_is_asked_each_time():
    class Version:
        def __init__(self, number):
            self.number = number

        def __eq__(self, other):
            return self.number == other.number

        __hash__ = None

    version = Version(1)
    guards = C.Guards(root(node("const", [version], node("item", 0, checks=(("eq", Version(1)),)))), 0)
    assert recalls(guards)
    version.number = 2
    assert guards.check([]) is None


def test_weak_roots_do_not_keep_their_object():
    module = Module(weight=object())
    module.cycle = {"module": module}
    watch = weakref.ref(module)
    below = node(
        "dict", None, node("key", "cycle", node("key", "module", checks=(("type", Module),)), checks=(("len", 1),))
    )
    guards = C.Guards(root(node("weak", watch, below)), 0)
    for _ in range(10):
        module.counter = 1
        del module.counter
        assert guards.check([]) == []
        module.alpha = 1
        read_often(module)
    entry = C.Entry(guards, lambda: "entry")
    where = C.Point(None, rest(lambda state: "fallback"), code=(lambda: 0).__code__)
    where.add(entry)
    function = C.Compiled(lambda: 0, where)
    assert function() == "entry"
    del module
    gc.collect()
    assert watch() is None
    assert guards.check([]) is None
    assert entry.valid
    assert function() == "fallback"
    assert not entry.valid


def test_memo_keeps_nothing_but_constants():
    class Layer:
        pass

    module = Module(layer=Layer())
    module.layer.weight = Layer()
    watches = [weakref.ref(module.layer), weakref.ref(module.layer.weight)]
    layer = node("key", "layer", node("dict", None, node("key", "weight", handed=0)), checks=(("type", Layer),))
    guards = C.Guards(root(node("const", module, node("dict", None, layer))), 1)
    assert recalls(guards)
    module.layer = None
    assert [watch() for watch in watches] == [None, None]
    assert guards.check([]) is None


def test_python_code_in_a_guard_may_change_everything():
    module = Module(items=[Module(weight=object()) for _ in range(5)], sub={})

    def wreck(obj):
        WRECKERS.clear()
        module.items.clear()
        module.sub.clear()
        vars(module).clear()
        gc.collect()
        return True

    items = [
        node("item", i, node("dict", None, node("key", "weight", checks=(("true", probe),), handed=i)))
        for i in range(5)
    ]
    tree = root(node("const", module, node("dict", None, node("key", "items", *items))))

    guards = C.Guards(tree, 5)
    assert recalls(guards)
    WRECKERS.append(wreck)
    assert guards.check([]) is not None  # a remembered walk: all that it needs was referred to before the code ran
    assert guards.check([]) is None


WRECKERS: list = []


def probe(obj):
    return all([wreck(obj) for wreck in WRECKERS])


def test_guards_inside_guards():
    module = Module(bias=None)
    answers = []

    def again(obj):
        if len(answers) < 2:
            answers.append(None)
            answers.append(guards.check([]))
        return True

    guards = C.Guards(
        root(node("const", module, node("dict", None, node("key", "bias", checks=(("true", again),), handed=0)))), 1
    )
    assert guards.check([]) == [None]
    assert guards.check([]) == [None]
    assert answers == [None, None, [None], [None]]


def test_interrupts_in_a_guard_are_postponed():
    def interrupt(obj):
        raise KeyboardInterrupt

    guards = C.Guards(root(node("const", None, checks=(("true", interrupt),))), 0)
    # A process started in a shell's background ignores interrupts.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            assert guards.check([]) is None
            for _ in range(10**6):
                pass
    finally:
        signal.signal(signal.SIGINT, handler)


def test_reference_counts_stay():
    module = Module(weight=object(), sub={"a": 1}, items=[object()])
    guards, _ = watched(
        node("key", "weight", handed=0),
        node("key", "items", node("item", 0, checks=(("type", object),)), handed=1),
        node("key", "sub", node("key", "a", checks=(("true", lambda x: True),)), handed=2),
        module=module,
    )
    tracked = (module, module.weight, module.items, module.items[0], module.sub, vars(module), Module)
    guards.check([])
    before = [sys.getrefcount(x) for x in tracked]
    for step in range(50):
        guards.check([])
        if step % 5 == 0:
            module.counter = step
    assert [sys.getrefcount(x) for x in tracked] == before
