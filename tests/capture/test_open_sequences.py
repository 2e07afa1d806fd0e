"""Ranges, lists, texts and dicts whose lengths, items or keys vary with a size: one graph until one is looked into."""

import random

import pytest
import torch
from capture.test_shapes import Compiled

import dynacore


def lists(x):
    n = x.shape[0]
    zeros, tensors = [0] * n, n * [x.sum(), None]
    zeros.append(n)
    return zeros, zeros, tensors, len(zeros), len(tensors), [[1] * n] * x.shape[1], [0] * (3 - n)


def ranges(x):
    n = x.shape[0]
    numbers, order = range(n), list(range(1, n))
    order.append(7)
    lengths = len(numbers), len(range(0, n, 3)), len(range(n, 1, -2)), len(order), len(range(n + 1, n))
    return numbers, numbers, order, lengths, range(n, 0, -1), isinstance(numbers, range), x + len(range(2, n))


def texts(x):
    n = x.shape[0]
    bar = "=" * n + ">" + (20 - n) * "."
    return bar, f"[{bar}] {'-' * n}", b"-" * n, "%s" % ("{}" * n), x + 1


def metrics(x):
    found = {"loss": x.sum(), f"part {x.shape[0]}": 1, "n": x.shape[0], ("of", f"{x.shape[0]}"): 2}
    found[f"part {x.shape[0]}"] += 1
    for i in range(2):
        found[f"{i}/{x.shape[0]}"] = x[i]
    return found, len(found), list(found), found.get("part"), f"part {x.shape[0]}" in found


@pytest.mark.parametrize("program", [lists, ranges, texts, metrics])
def test_one_graph_for_all_sizes(program):
    run = Compiled(program, dynamic=True)
    for n in (9, 8, 5, 3, 7, 2, 12):
        run(torch.ones(n, n + 1))
    assert len(run.graphs) == 1


def within(x):
    return x + (4 in range(x.shape[0])), x.shape[0] in range(4, 7)


def within_other(x):
    return x + (x.shape[0] in range(x.shape[1]))


def named(x):
    found = {"part 3": 0, "part 5": 1}
    found[f"part {x.shape[0]}"] = x.sum()
    return found, found.get("part 7")


def equal(x):
    n, m = x.shape
    return x + ({"n": n, "of": [m, {}]} == {"of": [4, {}], "n": n}), {"n": n} != {"n": m}, {n: 1} == {m: 1}


@pytest.mark.parametrize(("program", "most"), [(within, 4), (within_other, 2), (named, 4), (equal, 4)])
def test_a_graph_for_each_answer(program, most):
    run = Compiled(program, dynamic=True)
    for n in (9, 8, 5, 3, 7, 2, 4, 12, 6, 11, 5, 10):
        for m in (4, n, 20):
            run(torch.ones(n, m))
    assert len(run.graphs) == most


def looks(x):
    n = x.shape[0]
    numbers, order, zeros, text = range(n), list(range(n)), [0, 1] * n, "ab" * n
    random.Random(n).shuffle(order)
    parts = numbers[1], numbers[-1], numbers[1:], numbers.stop, numbers == range(5), list(reversed(numbers))
    letters = list(text), text[1:], "ba" in text
    return x[order], parts, letters, [v + 1 for v in zeros], zeros[-1], str(numbers), max(numbers), bool(zeros)


def in_a_class(x):
    class Made:
        pass

    made, other = Made(), Made()
    vars(made)[f"a{x.shape[0]}"] = x.shape[0]
    other.__dict__ = {f"a{x.shape[0]}": 2}
    return x + getattr(made, "a5", -1), getattr(other, "a7", -1), vars(made), (lambda **named: named)(**vars(made))


def breaking(x):
    numbers, zeros, text = range(x.shape[0]), [0] * x.shape[0], "-" * x.shape[0]
    dynacore.graph_break()
    zeros.append(1)
    total = x
    for i in numbers:
        dynacore.graph_break()
        total = total + i
    return total, zeros, text, numbers


@pytest.mark.parametrize("program", [looks, in_a_class, breaking])
@pytest.mark.parametrize("dynamic", [None, True])
def test_what_is_looked_at_is_as_in_plain_python(program, dynamic):
    run = Compiled(program, dynamic=dynamic)
    for n in (9, 8, 5, 3, 7, 2, 5, 7):
        run(torch.arange(float(n)))


def test_numbers_of_any_size_and_sign():
    def program(x, n):
        return x, "-" * n, [0] * n, range(n), list(range(n)), len(range(n)), len([0] * n)

    run = Compiled(program)
    for n in (3, 4, -1, -5, 0, 7, 1_000, 200_000, 2_000_000):
        run(torch.ones(2), n)


def test_nothing_longer_than_a_list_may_be_is_made():
    run = Compiled(lambda x, n: (x, "-" * n))
    for n in (3, 4, 1 << 62):  # the last is a MemoryError, as in plain Python
        run(torch.ones(2), n)
    with pytest.raises(OverflowError):  # CPython 3.15 says it in other words once it has specialised the instruction
        run.compiled(torch.ones(2), 1 << 80)


def test_dicts_with_a_nan_are_equal_by_identity():
    nan, other = float("nan"), float("nan")
    run = Compiled(lambda x, n: (x, {"a": nan, "b": n} == {"b": n, "a": nan}, {"a": nan} == {"a": other}))
    for n in range(3):
        run(torch.ones(2), n)
