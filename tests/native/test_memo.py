"""The fast path below const roots: it must say what a walk would say, whatever was changed in between."""

import random
from types import MethodType

import pytest

from native.extension import C
from native.worlds import World


def same(left, right):
    """Reading a method through an instance binds it anew each time."""
    return left is right or (type(left) is MethodType and left == right)


@pytest.mark.parametrize("seed", range(int(__import__("os").environ.get("N","40"))))
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
