"""What the tables of the library hold."""

import math
import re

import pytest
import torch

import dynacore
from dynacore import stats
from dynacore.library import folding, load
from dynacore.library.refusals import TABLE
from dynacore.reasons import REASONS

PURE = [str.upper, int.__add__, math.sqrt, int.from_bytes, re.Match.group, abs, int, float.fromhex]
NOT_PURE = [list.append, str.__iter__, str.format, int.__new__, print, len, object.__repr__, re.Pattern.finditer, list]


@pytest.mark.parametrize("function", PURE)
def test_pure(function):
    assert folding.is_pure(function)


@pytest.mark.parametrize("function", NOT_PURE)
def test_not_known_to_be_pure(function):
    assert not folding.is_pure(function)


def test_literals():
    assert all(map(folding.is_literal, [1, [1, (2.5, {"a": None})], slice(1, None), {2}, b"x"]))
    assert not any(map(folding.is_literal, [[object()], {1: print}, int, (1, torch.float32)]))


def test_reasons_of_refusals_are_known():
    load()
    assert set(TABLE) <= set(REASONS)


def stops_of(function, *args):
    """What a function returns, compiled, and the codes of what it broke at."""
    with stats.collect() as records:
        result = dynacore.compile(function, backend="eager")(*args)
    return result, {record.stop.code for record in records if record.stop is not None}


def test_output_is_left_to_the_interpreter(capsys):
    def shout(x):
        print("before", int(x.shape[0]))
        return x + 1

    result, codes = stops_of(shout, torch.ones(2))
    assert result.tolist() == [2, 2]
    assert capsys.readouterr().out == "before 2\n"
    assert codes == {"output"}


DRAWS = ["random()", "uniform(1, 2)", "randint(1, 6)", "randrange(0, 10, 5)", "gauss(0, 1)", "choice([1, 2, 3])"]


@pytest.mark.parametrize("draw", [*DRAWS, "sample(range(9), 2)", "betavariate(1, 2)"])
def test_random_numbers_are_drawn_anew(draw):
    import random

    namespace = {"random": random}
    exec(f"def f(x): return x * 2, random.{draw}, random.{draw}", namespace)
    plain, compiled = namespace["f"], dynacore.compile(namespace["f"], backend="eager")
    x = torch.ones(1)
    random.seed(3)
    expected = [plain(x)[1:] for _ in range(3)], random.getstate()
    random.seed(3)
    found = [compiled(x)[1:] for _ in range(3)], random.getstate()
    assert found == expected


def test_random_number_in_the_graph():
    import random

    def noisy(x):
        return x + random.random() * random.uniform(0, 1)

    random.seed(5)
    expected = [noisy(torch.zeros(2)).tolist() for _ in range(3)]
    random.seed(5)
    compiled = dynacore.compile(noisy, backend="eager", fullgraph=True)
    assert [compiled(torch.zeros(2)).tolist() for _ in range(3)] == expected
