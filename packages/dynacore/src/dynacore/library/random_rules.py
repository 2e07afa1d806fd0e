"""Random numbers of Python: drawn anew in every run, as a call that the entry makes in program order.

Only draws that give one number are captured. Whatever fills or reorders an object, and reading or setting a generator's
state, is left to the interpreter.
"""

from __future__ import annotations

import random
from types import FunctionType
from typing import Any

from ..reasons import Break
from ..values import Const, Host, Known, Value
from .registry import RULES, rule

Random = random.Random


def draw(m: Any, method: Any, self: Value, args: tuple[Value, ...], example: Any) -> Value:
    """Let the entry call `method` on the generator."""
    if self.source is None and not isinstance(self, Known):
        raise Break("random-state", "a generator made here")
    if getattr(self, "changed", False) or self.cls not in (Random, random.SystemRandom):
        raise Break("random-state", self.cls.__name__)
    if not all(type(arg) in (Const, Host) for arg in args):
        raise Break("random-state", method.__qualname__)
    return m.host_call(m.const(method), [self, *args], {}, example)


def numbers(m: Any, method: Any, kind: tuple[type, ...], args: tuple[Value, ...]) -> None:
    """Leave calls that could raise to the interpreter."""
    if not all(arg.cls in kind for arg in args):
        raise Break("random-state", method.__qualname__)


def _float(name: str, count: int, default: tuple[float, ...] = ()) -> None:
    """A method that takes up to `count` floats and gives a float."""
    method = vars(Random)[name]

    def sample(m: Any, self: Value, *args: Value) -> Value:
        if not count - len(default) <= len(args) <= count:
            raise Break("call-arguments", f"random.{name}")
        numbers(m, method, (int, float), args)
        return draw(m, method, self, args, 0.5)

    rule(method)(sample)


for _name, _count, _default in (
    ("uniform", 2, ()),
    ("gauss", 2, (0.0, 1.0)),
    ("normalvariate", 2, (0.0, 1.0)),
    ("lognormvariate", 2, ()),
    ("triangular", 3, (0.0, 1.0, 0.5)),
):
    _float(_name, _count, _default)


@rule(Random.random)
def random_random(m: Any, self: Value, /) -> Value:
    return draw(m, Random.random, self, (), 0.5)


@rule(Random.getrandbits)
def random_getrandbits(m: Any, self: Value, k: Value, /) -> Value:
    if m.constant_of(k) < 0:
        raise Break("random-state", "getrandbits")
    return draw(m, Random.getrandbits, self, (k,), 1)


@rule(Random.randint)
def random_randint(m: Any, self: Value, a: Value, b: Value) -> Value:
    return integers(m, Random.randint, self, (a, b), lambda low, high: low <= high)


@rule(Random.randrange)
def random_randrange(m: Any, self: Value, start: Value, *stop: Value) -> Value:
    return integers(m, Random.randrange, self, (start, *stop), lambda *bounds: len(range(*bounds)) > 0)


def integers(m: Any, method: Any, self: Value, args: tuple[Value, ...], valid: Any) -> Value:
    """A draw out of a range of ints that isn't empty."""
    real = [m.constant_of(arg) for arg in args]
    if not all(type(bound) is int for bound in real) or (len(real) == 3 and real[2] == 0) or not valid(*real):
        raise Break("random-state", method.__qualname__)
    return draw(m, method, self, tuple(map(Const, real)), real[0])


def leave(name: str) -> Any:
    """A rule that leaves a method to the interpreter."""

    def refuse(m: Any, *args: Value, **kwargs: Value) -> Value:
        raise Break("random-state", name)

    return refuse


for _name, _method in vars(Random).items():  # everything else that draws
    if type(_method) is FunctionType and not _name.startswith("_") and id(_method) not in RULES:
        rule(_method)(leave(f"random.{_name}"))
