"""`peek`: what an iterator gives next, without taking it."""

import pytest
from native.extension import C

MAKERS = [
    lambda: iter([1, "a", 3.5]),
    lambda: iter((1, 2)),
    lambda: iter(range(3, 20, 4)),
    lambda: iter(range(5, -9, -3)),
    lambda: iter(range(0)),
    lambda: iter([]),
    lambda: iter(()),
]


@pytest.mark.parametrize("number", range(len(MAKERS)))
def test_peek_gives_what_next_gives(number):
    iterator = MAKERS[number]()
    for value in MAKERS[number]():
        assert C.peek(iterator) == C.peek(iterator) == value
        assert next(iterator) == value
    for _ in range(2):
        with pytest.raises(IndexError, match="at its end"):
            C.peek(iterator)
        assert next(iterator, "end") == "end"


def test_peek_sees_a_list_that_grows():
    items = [1]
    iterator = iter(items)
    next(iterator)
    items.append(2)
    assert C.peek(iterator) == 2


OTHERS = [iter({}), iter(""), iter(range(2**70)), [1], 5, zip()]


@pytest.mark.parametrize("other", OTHERS, ids=lambda o: type(o).__name__)
def test_peek_refuses_other_iterators(other):
    with pytest.raises(TypeError, match="an iterator over a list, tuple or range"):
        C.peek(other)
