"""Generators and coroutines to run, stop and resume anywhere: (function, arguments, what is done to it) in SCRIPTS."""

import sys

from models.corpus import Manager, say


def counter(n):
    for i in range(n):
        got = yield i
        if got:
            say("got", got)
    return "done"


def guarded(n):
    with Manager("generator", ZeroDivisionError):
        while True:
            try:
                yield n
                n -= 1
                say(1 // n)
            except ValueError as error:
                say("thrown", str(error), repr(sys.exc_info()[1]))
                got = yield "in handler"
                say(got, repr(sys.exc_info()[1]))
            finally:
                say("round", n)
    yield "swallowed"


def delegating(n):
    first = yield from counter(n)
    try:
        second = yield from guarded(n)
    except KeyError as error:
        second = repr(error)
    third = yield from [1, 2]
    return first, second, third


def squares(n):
    shared = n
    yield from (k * shared for k in range(n))
    return (lambda: shared)()


def wrong_stop():
    yield 1
    raise StopIteration("leaks")


class Wait:
    """An awaitable that yields once."""

    def __init__(self, value):
        self.value = value

    def __await__(self):
        return (yield self.value)


class AsyncManager:
    async def __aenter__(self):
        return await Wait("entering")

    async def __aexit__(self, kind, value, traceback):
        if kind is not GeneratorExit:
            say("leaving", kind, await Wait("leaving"))
        return kind is KeyError


class Ticks:
    def __init__(self, n):
        self.n = n

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.n:
            raise StopAsyncIteration
        self.n -= 1
        return await Wait(self.n)


async def coroutine(n):
    total = 0
    async with AsyncManager() as entered:
        async for tick in Ticks(n):
            total += tick or 0
            say("tick", tick)
        try:
            say(await Wait("waiting"))
        except ValueError:
            raise KeyError("swallowed") from None
    return total, entered


NEXT = ("send", None)
SCRIPTS = [
    (counter, (3,), [NEXT, ("send", "a"), NEXT, NEXT]),
    (counter, (3,), [NEXT, ("close",)]),
    (counter, (3,), [NEXT, ("throw", KeyError("k")), NEXT]),
    (guarded, (2,), [NEXT, ("throw", ValueError("v")), ("send", "s"), NEXT, NEXT, NEXT]),
    (guarded, (2,), [NEXT, ("throw", ValueError("v")), ("close",)]),
    (guarded, (3,), [NEXT, NEXT, ("throw", KeyError("k"))]),
    (delegating, (2,), [NEXT, ("send", "x"), NEXT, ("throw", ValueError("v")), ("throw", KeyError("k")), NEXT, NEXT]),
    (delegating, (2,), [NEXT, NEXT, NEXT, NEXT, ("throw", ZeroDivisionError()), NEXT, NEXT, NEXT, NEXT]),
    (delegating, (1,), [NEXT, NEXT, ("close",)]),
    (delegating, (1,), [NEXT, ("throw", StopIteration("early")), NEXT]),
    (squares, (3,), [NEXT, NEXT, NEXT, NEXT]),
    (wrong_stop, (), [NEXT, NEXT]),
    (coroutine, (2,), [NEXT, ("send", "in"), ("send", 5), ("send", 6), ("send", "w"), ("send", "out")]),
    (coroutine, (1,), [NEXT, NEXT, ("send", 5), ("throw", ValueError("v")), NEXT]),
    (coroutine, (1,), [NEXT, NEXT, ("close",)]),
]
