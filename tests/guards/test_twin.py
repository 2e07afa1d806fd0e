"""The C walk and its twin in plain Python agree on every accessor and check, and on random worlds."""

import random
import weakref
from collections import OrderedDict, namedtuple
from types import CellType, MethodType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native.extension import C, node, root
from native.worlds import World

from dynacore.guards import spec, twin


def both(tree, n_handed, state):
    """What both say; they must say the same."""
    spec.validate(tree, n_handed)
    found = C.Guards(tree, n_handed).check(state)
    handed, failure = twin.evaluate(tree, n_handed, state)
    assert (found is None) == (handed is None) == (failure is not None), str(failure)
    if found is not None:
        assert all(map(same, found, handed))
    return found


def same(left, right):
    return left is right or (type(left) is MethodType and left == right)


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 10**6))
def test_agree_on_random_worlds(seed):
    world = World(random.Random(seed))
    for _ in range(3):
        tree, n_handed, state = world.tree()
        both(tree, n_handed, state)
        remembering = C.Guards(tree, n_handed)
        for _ in range(20):
            for _ in range(world.random.randrange(3)):
                world.mutate()
            expected = both(tree, n_handed, state)
            for _ in range(2):
                found = remembering.check(state)
                assert (found is None) == (expected is None)
                assert found is None or all(map(same, found, expected))


class Base:
    inherited = 1

    def __init__(self):
        self.own = 2


class Derived(Base):
    def method(self):
        pass


class Slots:
    __slots__ = ("empty", "filled")


class Liar:
    @property
    def __dict__(self):
        return {"key": "a lie"}

    @property
    def __class__(self):
        return dict


class ListSubclass(list):
    def __getitem__(self, index):
        return "a lie"

    def __len__(self):
        return 100


class DictSubclass(dict):
    def __missing__(self, key):
        return "a lie"


class Raises:
    def __eq__(self, other):
        raise RuntimeError

    def __bool__(self):
        raise RuntimeError

    __hash__ = None


def function(a=1, *, b=2):
    return CELL_OWNER


def closure():
    captured = 1
    return lambda: captured


CELL_OWNER = closure()
Pair = namedtuple("Pair", "left right")
slots = Slots()
slots.filled = 3
nan = float("nan")
derived = Derived()
ordered = OrderedDict(a=1, b=2)
ordered.move_to_end("a")
liar = Liar()
instance_with_same_code = lambda a=1, *, b=2: None

ACCESS = [
    # accessor, key, object, what is found (KeyError: a miss)
    ("attr", "own", derived, 2),
    ("attr", "inherited", derived, 1),
    ("attr", "missing", derived, KeyError),
    ("dict", None, derived, derived.__dict__),
    ("dict", None, function, function.__dict__),
    ("dict", None, pytest, pytest.__dict__),
    ("dict", None, 3, KeyError),
    ("dict", None, slots, KeyError),
    ("dict", None, Derived, KeyError),
    ("key", "a", {"a": 1}, 1),
    ("key", (1, 2), {(1, 2): 5}, 5),
    ("key", 1.0, {1: "int"}, "int"),
    ("key", "b", {"a": 1}, KeyError),
    ("key", "b", DictSubclass(), KeyError),
    ("key", "a", liar, KeyError),
    ("key", Raises(), {}, KeyError),
    ("item", 1, [1, 2], 2),
    ("item", 1, (1, 2), 2),
    ("item", 1, Pair(1, 2), 2),
    ("item", 0, ListSubclass([7]), 7),
    ("item", 2, [1, 2], KeyError),
    ("item", 0, "text", KeyError),
    ("type", None, liar, Liar),
    ("mro", "inherited", Derived, 1),
    ("mro", "method", Derived, Derived.method),
    ("mro", "mro", Derived, KeyError),
    ("mro", "inherited", derived, KeyError),
    ("cell", None, CellType("x"), "x"),
    ("cell", None, CellType(), KeyError),
    ("cell", None, derived, KeyError),
    ("func", "code", function, function.__code__),
    ("func", "defaults", function, function.__defaults__),
    ("func", "defaults", CELL_OWNER, None),
    ("func", "kwdefaults", function, function.__kwdefaults__),
    ("func", "closure", CELL_OWNER, CELL_OWNER.__closure__),
    ("func", "globals", function, globals()),
    ("func", "dict", function, function.__dict__),
    ("func", "code", derived.method, KeyError),
    ("method", "self", derived.method, derived),
    ("method", "func", derived.method, Derived.method),
    ("method", "self", len, KeyError),
    ("slot", "filled", slots, 3),
    ("slot", "empty", slots, KeyError),
    ("slot", "own", derived, 2),
    ("call", len, [1, 2], 2),
    ("call", len, 3, KeyError),
]


@pytest.mark.parametrize(("accessor", "key", "obj", "expected"), ACCESS)
def test_accessor(accessor, key, obj, expected):
    for start in (node("arg", 0, node(accessor, key, handed=0)), node("const", obj, node(accessor, key, handed=0))):
        found = both(root(start), 1, [obj])
        assert found == (None if expected is KeyError else [expected])


CHECKS = [
    # check, argument, objects for which it holds, objects for which it doesn't
    ("is", derived, [derived], [Derived(), None]),
    ("is_not", None, [0, derived], [None]),
    ("type", int, [3], [True, 3.0, liar]),
    ("type", Liar, [liar], [dict]),
    ("eq", 1, [1, 2 - 1], [True, 1.0, 2, "1", None]),
    ("eq", 10**30, [10**29 * 10], [10**30 + 1]),
    ("eq", "text", ["text", "".join(["te", "xt"])], ["Text", b"text", 3]),
    ("eq", 0.0, [0.0], [-0.0, 0, False]),
    ("eq", nan, [nan, float("nan")], [0.0]),
    ("eq", complex(0.0, -0.0), [complex(0.0, -0.0)], [0j, 0.0]),
    ("eq", b"x", [b"x"], ["x", b"y"]),
    ("eq", (1, (2.0, "x")), [(1, (2.0, "x"))], [(1, (2, "x")), (True, (2.0, "x")), (1,), [1], Pair(1, (2.0, "x"))]),
    ("eq", frozenset([1, (0.0,)]), [frozenset([(0.0,), 1])], [frozenset([1, (-0.0,)]), frozenset([1]), {1, (0.0,)}]),
    ("eq", None, [None], [0, False]),
    ("eq", range(3), [range(3), range(0, 3)], [range(4), [0, 1, 2]]),
    ("eq", Raises(), [], [Raises(), 1]),
    ("eq", (Raises(),), [], [(Raises(),)]),
    ("len", 2, [[1, 2], (1, 2), {"a": 1, "b": 2}, {1, 2}, frozenset([1, 2]), Pair(1, 2), ordered], [[], "ab", 2, liar]),
    ("len", 1, [ListSubclass([7])], []),
    (
        "keys",
        ("a", "b"),
        [{"a": 1, "b": 2}],
        [{"b": 1, "a": 2}, {"a": 1}, {"a": 1, "b": 2, "c": 3}, ordered, ["a", "b"]],
    ),
    ("keys", ("b", "a"), [ordered, {"b": 1, "a": 2}], [OrderedDict(a=1, b=2)]),
    ("keys", (1, Derived), [{1: 2, Derived: 3}], [{True: 2, Derived: 3}, {1: 2, Base: 3}]),
    ("has", "a", [{"a": 1}, DictSubclass(a=1)], [{}, ["a"], liar, DictSubclass()]),
    ("lacks", "a", [{}, DictSubclass()], [{"a": 1}, [], liar]),
    ("has", Raises(), [], [{}]),
    ("lacks", Raises(), [], [{}]),
    ("mro_eq", (Derived, Base, object), [Derived], [Base, int, derived, type]),
    ("mro_eq", (), [], [Base]),
    ("mro_is", ("inherited", 1), [Base, Derived], [derived, int]),
    ("mro_is", ("method", Derived.method), [Derived], [Base]),
    ("mro_lacks", "method", [Base, int], [Derived, derived]),
    ("func_code", function.__code__, [function], [instance_with_same_code, CELL_OWNER, 3]),
    ("unbound_cell", None, [CellType()], [CellType(1), None]),
    ("true", bool, [1, "x"], [0, "", Raises()]),
]


@pytest.mark.parametrize(("name", "argument", "good", "bad"), CHECKS)
def test_check(name, argument, good, bad):
    for holds, objects in ((True, good), (False, bad)):
        for obj in objects:
            for start in (node("arg", 0, checks=((name, argument),)), node("const", obj, checks=((name, argument),))):
                guards = C.Guards(root(start), 0)
                assert (both(root(start), 0, [obj]) is not None) is holds, obj
                assert [guards.check([obj]) is not None for _ in range(3)] == [holds] * 3, obj


def test_weak_root():
    thing = Derived()
    tree = root(node("weak", weakref.ref(thing), handed=0))
    assert both(tree, 1, []) == [thing]
    del thing
    assert both(tree, 1, []) is None


def weakly(name, key):
    """The ways to ask about a key that isn't kept."""
    ask = {"weak_key": node("arg", 0, node("weak_key", weakref.ref(key), handed=0))}
    argument = (1, weakref.ref(key)) if name == "keys_weak" else weakref.ref(key)
    return root(ask.get(name) or node("arg", 0, checks=((name, argument),), handed=0))


@pytest.mark.parametrize("name", ["weak_key", "is_weak", "lacks_weak", "keys_weak"])
def test_weakly_held_keys(name):
    key, other = Derived(), Derived()
    good = {"weak_key": [{key: 1}], "is_weak": [key], "lacks_weak": [{}, {other: 1}], "keys_weak": [{1: 0, key: 2}]}
    bad = {
        "weak_key": [{}, {other: 1}, [], OrderedDict()],
        "is_weak": [other, weakref.ref(key), None],
        "lacks_weak": [{key: 1}, [], liar],
        "keys_weak": [{key: 2, 1: 0}, {1: 0, other: 2}, {1: 0}, [], OrderedDict({1: 0, key: 2})],
    }
    tree = weakly(name, key)
    guards = C.Guards(tree, 1)
    for holds, objects in ((True, good[name]), (False, bad[name])):
        for obj in objects:
            assert (both(tree, 1, [obj]) is not None) is holds
            assert [guards.check([obj]) is not None for _ in range(3)] == [holds] * 3
    died = weakref.ref(key)
    good.clear()
    bad.clear()
    del key, obj, objects
    assert died() is None
    for obj in ({}, {other: 1}, {1: 0, other: 2}, {1: 0, None: 1}, None):
        assert both(tree, 1, [obj]) is None
    for malformed in (other, None):
        with pytest.raises(ValueError, match="weakref"):
            C.Guards(root(node("arg", 0, checks=(("is_weak", malformed),))), 0)


def test_state_may_be_short():
    assert both(root(node("arg", 3)), 0, [1, 2]) is None


def pair_tree(*checks):
    return root(node("arg", 0, handed=0), node("arg", 1, handed=1), checks=checks)


def test_root_checks():
    one, other = Derived(), Derived()
    flag = [1]
    flagged = ("call0_is", (lambda: flag[0], 1))
    for checks, state, holds in [
        ((("same", (0, 1)),), [one, one], True),
        ((("same", (0, 1)),), [one, other], False),
        ((("differ", (0, 1)),), [one, other], True),
        ((("differ", (0, 1)),), [one, one], False),
        ((("rel", (lambda a, b: a < b, (0, 1))),), [1, 2], True),
        ((("rel", (lambda a, b: a < b, (1, 0))),), [1, 2], False),
        ((("rel", (lambda *all: len(all) == 12, (0,) * 12)),), [1, 2], True),
        ((("rel", (lambda a: a.missing, (0,))),), [1, 2], False),
        ((flagged,), [1, 2], True),
        ((("call0_is", (lambda: True, 1)),), [1, 2], False),
        ((("call0_is", (lambda: 1 / 0, 1)),), [1, 2], False),
    ]:
        assert (both(pair_tree(*checks), 2, state) is not None) is holds, checks
    guards = C.Guards(pair_tree(flagged), 2)
    assert guards.check([1, 2]) == [1, 2]
    flag[0] = 2
    assert guards.check([1, 2]) is None


def test_tensors_are_checked_in_one_batch():
    batches = []

    def checker(*tensors):
        batches.append(tensors)
        return all(tensor == index for index, tensor in enumerate(tensors))

    box = {"one": 1}
    tree = root(
        node("const", box, node("key", "one", checks=(("tensor", 1),), handed=0)),
        node("arg", 0, checks=(("tensor", 0),)),
        node("arg", 1, checks=(("tensor", 2),), handed=1),
        checks=(("tensors", checker),),
    )
    guards = C.Guards(tree, 2)
    assert [guards.check([0, 2]) for _ in range(3)] == [[1, 2]] * 3
    assert batches == [(0, 1, 2)] * 3
    assert both(tree, 2, [0, 2]) == [1, 2]
    assert both(tree, 2, [5, 2]) is None
    box["one"] = 7
    assert guards.check([0, 2]) is None
    box.clear()
    batches.clear()
    assert guards.check([0, 2]) is None
    assert batches == []


def test_global_state_is_asked_first_and_relations_last():
    log = []

    def note(name, answer=True):
        return lambda *_: log.append(name) or answer

    tree = root(
        node("arg", 0, checks=(("true", note("node")), ("tensor", 0)), handed=0),
        checks=(("rel", (note("rel"), (0,))), ("tensors", note("tensors")), ("call0_is", (note("global"), True))),
    )
    for evaluate in (C.Guards(tree, 1).check, lambda state: twin.evaluate(tree, 1, state)):
        log.clear()
        assert evaluate([1]) is not None
        assert log == ["global", "node", "tensors", "rel"]


def test_what_failed_is_tried_first():
    log = []

    def note(name, answer):
        return ("true", lambda obj: log.append(name) or obj != answer)

    guards = C.Guards(root(*(node("arg", 0, checks=(note(i, i),)) for i in range(4))), 0)
    assert guards.check([2]) is None
    assert log == [0, 1, 2]
    log.clear()
    assert guards.check([2]) is None
    assert log == [2]
    assert guards.check([9]) == []
