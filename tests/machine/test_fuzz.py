"""Random programs over numbers, containers, closures, exceptions and tensors do what they do in plain Python."""

import contextlib
import linecache
import sys
import warnings
import zlib

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machine.fuzzing import write
from machine.oracle import difference, outcome, say

import dynacore
from bytecode_models import decode
from dynacore.emit.hard import HARD


class Custom(Exception):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


class Thing:
    def __init__(self, value):
        self.value = value

    def method(self, by):
        self.value += by
        return self.value % 41


class Manager:
    def __init__(self, name, swallow=()):
        self.name, self.swallow = name, swallow

    def __enter__(self):
        say("enter", self.name)

    def __exit__(self, kind, value, traceback):
        say("exit", self.name, repr(value))
        return kind is not None and issubclass(kind, self.swallow)


@contextlib.contextmanager
def managed(name):
    say("enter", name)
    try:
        yield
    except KeyError:
        say("swallowed")
    finally:
        say("exit", name)


def helper(v):
    say("helper", v)
    return v * 2 % 23


def scale(t):
    return t * 3 + 1


def call(function, *args, **kwargs):
    return function(*args, **kwargs)


def count(n):
    for v in range(n):
        got = yield v
        say("count", got)


HELPERS = (Custom, Thing, Manager, managed, helper, scale, call, count)
NAMES = {"sys": sys, "torch": torch, "say": say} | {f.__name__: f for f in HELPERS}


@st.composite
def programs(draw):
    """The source of a random program."""
    return write(lambda n: draw(st.integers(0, n - 1)))


def build(source):
    """The function of a program's source, with lines that tracebacks find."""
    name = f"<fuzz {zlib.crc32(source.encode())}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    names = {"__name__": "fuzz", "STATE": {}, **NAMES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        exec(compile(source, name, "exec"), names)
    return names["program"]


CALLS = (
    lambda: (torch.tensor([1.0, -2.0]), [1, 2, 3], {"a": 1, "b": 2}, 3),
    lambda: (torch.tensor([-1.0, 0.5]), [0], {}, 0),
    lambda: (torch.tensor([1.0, -2.0]), [1, 2, 3], {"a": 1, "b": 2}, 4),
)


def agrees(source, cut=None):
    dynacore.reset()
    function = build(source)
    compiled = dynacore.compile(function, backend="eager")
    with dynacore.config.patch(verify=True, testing_cut=cut):
        for call in (*CALLS, *CALLS):
            theirs = outcome(function, call)
            assert not difference(outcome(compiled, call), theirs), source


FUZZ = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@FUZZ
@given(programs())
def test_programs(source):
    agrees(source)


@FUZZ
@given(programs(), st.integers(0, 1000))
def test_programs_with_cuts(source, seed):
    def cut(code, index):
        return decode(code).instrs[index].op in HARD and zlib.crc32(f"{seed} {code.co_name} {index}".encode()) % 6 == 0

    agrees(source, cut)
