"""The tables describe exactly what the C module takes."""

import weakref

import pytest
from native.extension import C, node, root

from dynacore.guards import spec


class Thing:
    pass


THING = Thing()
ARGUMENTS = {
    "index": 0,
    "object": 1,
    "weakref": weakref.ref(THING),
    "name": "name",
    "none": None,
    "func_field": "code",
    "method_field": "self",
    "type": int,
    "tuple": (),
    "pair": ("name", 1),
    "handed": (0, 0),
    "relation": (max, (0,)),
    "program": ((0, 0), (0,)),
}
WRONG = {
    "index": -1,
    "weakref": 1,
    "name": 1,
    "func_field": "self",
    "method_field": "code",
    "type": 1,
    "tuple": [],
    "pair": 1,
    "handed": (0, 1),
    "relation": (max, (1,)),
    "program": ((0, 1), (0,)),
}


def accepts(tree, n_handed):
    """Whether both take the tree; they must agree."""
    answers = []
    for take in (spec.validate, C.Guards):
        try:
            take(tree, n_handed)
            answers.append(True)
        except (TypeError, ValueError):
            answers.append(False)
    assert answers[0] == answers[1], tree
    return answers[0]


def trees():
    """Every accessor and check by its name, with the kind of its argument and a tree around it."""
    for name, kind in spec.STARTS.items():
        yield kind, lambda argument, name=name: (root(node(name, argument)), 0)
    for name, kind in spec.STEPS.items():
        yield kind, lambda argument, name=name: (root(node("arg", 0, node(name, argument))), 0)
    for name, kind in spec.CHECKS.items():
        batch = (("tensors", all),) if name == "tensor" else ()
        yield (
            kind,
            lambda argument, name=name, batch=batch: (
                root(node("arg", 0, checks=((name, argument),)), checks=batch),
                0,
            ),
        )
    for name, kind in spec.ROOT_CHECKS.items():
        checks = (("tensor", 0),) if name.startswith("tensors") else ()
        yield (
            kind,
            lambda argument, name=name, checks=checks: (
                root(node("arg", 0, handed=0, checks=checks), checks=((name, argument),)),
                1,
            ),
        )


@pytest.mark.parametrize(("kind", "make"), list(trees()))
def test_tables(kind, make):
    assert accepts(*make(ARGUMENTS[kind.argument]))
    if kind.argument in WRONG:
        assert not accepts(*make(WRONG[kind.argument]))
    tree, n_handed = make(ARGUMENTS[kind.argument])
    assert C.Guards(tree, n_handed).slow == spec.slow_count(tree) == kind.slow


@pytest.mark.parametrize(
    ("tree", "n_handed"),
    [
        (root(node("arg", 0, handed=0)), 0),
        (root(node("arg", 0, handed=0)), 2),
        (root(node("arg", 0, handed=0), node("arg", 1, handed=0)), 1),
        (root(node("arg", 0, handed=-2)), 0),
        (root(node("arg", 0, handed="0")), 1),
        (root(node("unknown")), 0),
        (root(node("attr", "name")), 0),
        (root(node("arg", 0, node("arg", 1))), 0),
        (root(node("arg", 0, node("const", 1))), 0),
        (root(root()), 0),
        (root(node("arg", 0, checks=(("unknown", 1),))), 0),
        (root(node("arg", 0, checks=(("same", (0, 0)),), handed=0)), 1),
        (root(node("arg", 0), checks=(("type", int),)), 0),
        (root(node("arg", 0, checks=(("tensor", 0),))), 0),
        (root(checks=(("tensors", all),)), 0),
        (root(node("arg", 0, checks=(("tensor", 1),)), checks=(("tensors", all),)), 0),
        (root(node("arg", 0, checks=(("tensor", 0), ("tensor", 0))), checks=(("tensors", all),)), 0),
        (root(node("arg", 10**30)), 0),
        (("root", None, (), 0, ()), 1),
        (("root", 1, (), -1, ()), 0),
        (("root", None, (), -1), 0),
        (("root", None, [], -1, ()), 0),
        (("root", None, (), -1, []), 0),
        (("root", None, (1,), -1, ()), 0),
        (("arg", 0, (), -1, ()), 0),
        ((1, None, (), -1, ()), 0),
    ],
)
def test_malformed(tree, n_handed):
    assert not accepts(tree, n_handed)


def test_depth_is_limited():
    tree = node("item", 0)
    for _ in range(5000):
        tree = node("item", 0, tree)
    with pytest.raises(ValueError, match="too deep"):
        C.Guards(root(node("arg", 0, tree)), 0)


def test_deep_trees_are_walked():
    nested, tree = [], node("item", 0)
    innermost = nested
    for _ in range(3000):
        innermost.append([])
        innermost = innermost[0]
        tree = node("item", 0, tree)
    innermost.append([])
    guards = C.Guards(root(node("const", nested, tree)), 0)
    assert [guards.check([]) for _ in range(3)] == [[]] * 3
    innermost.clear()
    assert guards.check([]) is None
