"""Programs: exceptions, their chain, handlers, finally, tracebacks, sys.exc_info()."""

from __future__ import annotations

import contextlib
import sys
import traceback

from machine.oracle import program, say


class Custom(Exception):
    def __init__(self, code, *, detail="none"):
        super().__init__(code, detail)
        self.code = code
        self.detail = detail

    def __str__(self):
        return f"custom {self.code}"


class Plain(ValueError):
    pass


@program((0,), (1,), (2,), (3,), (4,))
def basic_handlers(i):
    out = []
    try:
        out.append("body")
        if i == 1:
            raise KeyError("k", 1)
        if i == 2:
            raise Plain("plain")
        if i == 3:
            raise Custom(3, detail=out)
        out.append(1 // (i - 4))
    except KeyError as error:
        out.append(("key", error.args, str(error), repr(error)))
    except (ValueError, ZeroDivisionError) as error:
        out.append((type(error).__name__, str(error)))
    except Custom as error:
        out.append((error.code, str(error), error.detail is out, error.args[0]))
    else:
        out.append("else")
    finally:
        out.append("finally")
    return out


@program((0,), (1,), (2,))
def uncaught(i):
    say("start", i)
    try:
        return [1, 2][i]
    finally:
        say("cleanup")


@program((0,), (1,))
def raise_from(i):
    try:
        try:
            {}["missing"]
        except KeyError as error:
            if i:
                raise ValueError("wrapped") from error
            raise ValueError("implicit")
    except ValueError as error:
        say(repr(error.__cause__), repr(error.__context__), error.__suppress_context__)
        raise RuntimeError("outer") from None


@program(())
def nested_contexts():
    try:
        raise KeyError(1)
    except KeyError as first:
        try:
            raise ValueError(2)
        except ValueError as second:
            try:
                raise TypeError(3)
            except TypeError as third:
                return (
                    first.__context__, repr(second.__context__), repr(third.__context__),
                    repr(third.__context__.__context__), first,
                )  # fmt: skip


@program((3,))
def except_in_loop(n):
    out = []
    for i in range(n):
        try:
            if i == 1:
                raise ValueError(i)
            if i == 2:
                continue
            out.append(i)
        except ValueError as error:
            out.append(str(error))
            continue
        finally:
            out.append("f")
    return out


@program((1,), (2,), (3,))
def return_in_finally(x):
    for i in range(2):
        try:
            if x == 3:
                raise KeyError("lost")
            return say("value", x)
        finally:
            if x > 1:
                break
    return "after"


@program(())
def finally_overrides():
    def f():
        try:
            raise ValueError("hidden")
        finally:
            return "kept"

    def g():
        try:
            return say("try")
        finally:
            say("finally")

    def h():
        while True:
            try:
                raise KeyError
            except KeyError:
                break
            finally:
                say("h finally")
        return sys.exc_info()

    return f(), g(), h()


@program(())
def exc_info_everywhere():
    out = [sys.exc_info()]

    def inner():
        out.append(repr(sys.exc_info()[1]))
        try:
            raise TypeError("t")
        except TypeError:
            out.append(repr(sys.exc_info()[1]))
        out.append(repr(sys.exc_info()[1]))

    try:
        raise KeyError("k")
    except KeyError:
        inner()
        out.append(sys.exc_info()[0])
        try:
            inner()
            raise ValueError("v")
        except ValueError as error:
            out.append((repr(sys.exc_info()[1]), repr(error.__context__)))
        out.append(repr(sys.exc_info()[1]))
    out.append(sys.exc_info())
    return out


@program((0,), (1,))
def bare_raise(i):
    def rethrow():
        raise

    try:
        try:
            raise ValueError("first")
        except ValueError:
            say("handling")
            if i:
                rethrow()
            raise
    except ValueError as error:
        say("again", str(error), repr(error.__context__))
    try:
        rethrow()
    except RuntimeError as error:
        return str(error)


@program((0,), (5,))
def deep_raise(n):
    def a(k):
        return b(k)

    def b(k):
        if k:
            return a(k - 1)
        raise LookupError("deep")

    a(n)


@program(())
def handler_raises():
    try:
        raise KeyError("a")
    except KeyError:
        raise ValueError("b")
    finally:
        say(repr(sys.exc_info()[1]), repr(sys.exc_info()[1].__context__))


@program(())
def handler_calls_failing():
    def fail(what):
        raise TypeError(what)

    try:
        fail("one")
    except TypeError:
        fail("two")


@program((0,), (1,))
def name_unbound_after(i):
    error = "before"
    try:
        raise KeyError(1)
    except KeyError as error:
        kept = error if i else None
    try:
        return error
    except UnboundLocalError as caught:
        return str(caught), kept


@program((1,))
def tracebacks_inside(x):
    def fail():
        say("x")
        return 1 / 0

    try:
        fail()
    except ZeroDivisionError as error:
        found = [(f.lineno, f.name) for f in traceback.extract_tb(error.__traceback__)]
        try:
            raise error
        except ZeroDivisionError as again:
            more = [(f.lineno, f.name) for f in traceback.extract_tb(again.__traceback__)]
        return found, more, again if x > 1 else None


@program((0,), (1,), (2,))
def with_traceback(i):
    saved = None
    try:
        raise KeyError("saved")
    except KeyError as error:
        saved = error
    if i == 1:
        raise saved
    if i == 2:
        raise saved.with_traceback(None)
    try:
        raise saved
    except KeyError as error:
        return error is saved, repr(error.__context__)


@program(())
def raise_in_handler_of_same():
    e = ValueError("e")
    try:
        raise e
    except ValueError:
        try:
            raise e
        except ValueError as again:
            return again is e, again.__context__


@program((KeyError,), (ValueError,), (IndexError,))
def dynamic_classes(kind):
    kinds = (KeyError, IndexError)
    try:
        raise kind("dynamic")
    except kinds as error:
        return "listed", type(error) is kind
    except Exception as error:
        return "other", str(error)


@program((1,), ("text",), (None,), (int,))
def raise_wrong_things(x):
    try:
        raise x
    except TypeError as error:
        say(str(error))
    try:
        raise ValueError("v") from x
    except (TypeError, ValueError) as error:
        say(str(error), repr(error.__cause__))
    try:
        try:
            raise KeyError("k")
        except x:
            return "caught"
    except (TypeError, KeyError) as error:
        return type(error).__name__, str(error), repr(error.__context__)


@program(())
def attribute_errors():
    out = []
    for action in (
        lambda: (1).foo, lambda: "s".foo, lambda: [].foo, lambda: None.foo, lambda: int.foo, lambda: sys.foo,
        lambda: (lambda: 0).foo,
    ):  # fmt: skip
        try:
            action()
        except AttributeError as error:
            out.append((str(error), error.name))
    return out


@program(())
def common_errors():
    out = []
    for action in (
        lambda: [][0], lambda: {}[0], lambda: (1,)[3], lambda: "a" + 1, lambda: 1 + "a", lambda: [] + (),
        lambda: len(5), lambda: int("x"), lambda: undefined_name, lambda: None(),
        lambda: [1, 2].index(3), lambda: [].pop(), lambda: {}.pop("k"), lambda: set().pop(), lambda: "a".index("b"),
        lambda: {[]: 1}, lambda: {[]}, lambda: hash([]), lambda: 1 in 5,
        lambda: iter(5), lambda: next(iter([])), lambda: max([]), lambda: float("q"), lambda: chr(-1),
        lambda: 1 < "a", lambda: [1] < [""], lambda: -"a", lambda: [].remove(1),
        lambda: (1, 2)[0:"a"], lambda: [1]["a"], lambda: {}.popitem(), lambda: range(0)[1], lambda: 2 ** 5 % 0,
        lambda: [*5], lambda: {**5}, lambda: sum(["a"]), lambda: "%d" % "x",
        lambda: "{}".format(), lambda: dict([1]), lambda: tuple(5), lambda: sorted([1, "a"]), lambda: zip(5),
        lambda: isinstance(1, 1), lambda: 1 @ 2, lambda: [] @ [], lambda: print @ 1,
    ):  # fmt: skip
        try:
            out.append(action())
        except Exception as error:
            out.append((type(error).__name__, str(error), error.args))
    return out


@program((0,), (1,), (2,))
def else_and_finally(i):
    try:
        if i == 1:
            raise KeyError("body")
    except KeyError:
        say("handler")
        raise
    else:
        say("else")
        if i == 2:
            raise ValueError("from else")
    finally:
        say("finally", repr(sys.exc_info()[1]))
    return "end"


@program((0,), (1,), (2,))
def contextlib_(i):
    @contextlib.contextmanager
    def manager(name):
        say("enter", name)
        try:
            yield name
        except KeyError as error:
            say("swallow", str(error))
        finally:
            say("exit", name)

    with contextlib.suppress(ZeroDivisionError):
        say(1 // i)
    with manager("a") as a, manager("b"):
        if i == 1:
            raise KeyError("inner")
        if i == 2:
            raise ValueError(a)
    with contextlib.ExitStack() as stack:
        names = [stack.enter_context(manager(n)) for n in "xy"]
        stack.callback(say, "callback", i)
    with contextlib.nullcontext(5) as five, contextlib.closing(manager("c").gen):
        return names, five


@program(([KeyError, ValueError],), ([KeyError],), ([OSError, TypeError],))
def groups(kinds):
    try:
        raise ExceptionGroup("many", [kind(kind.__name__) for kind in kinds])
    except* ValueError as group:
        say("values", [repr(e) for e in group.exceptions])
    except* (KeyError, TypeError) as group:
        say("others", [repr(e) for e in group.exceptions])
    return "handled"


@program((1,), (3,))
def assertions(x):
    assert x, "zero"
    try:
        assert x > 1, f"too small: {x}"
    except AssertionError as error:
        return str(error)
    assert x > 5, [x]


@program(())
def notes():
    error = ValueError("v")
    error.add_note("first")
    error.extra = [1]
    try:
        raise error
    except ValueError as caught:
        caught.add_note("second")
        return caught.__notes__, caught.extra, caught


@program((0,), (1,))
def exception_objects(i):
    e = Custom(i, detail="d")
    f = KeyError()
    g = OSError(2, "no file", "name")
    h = StopIteration(5)
    e.__cause__ = f
    e.__context__ = g
    out = [
        e.args, e.code, f.args, g.errno, g.filename, str(g), h.value, e.__suppress_context__,
        isinstance(g, FileNotFoundError), repr(f), e,
    ]  # fmt: skip
    if i:
        raise e
    return out


@program((0,), (1,), (2,))
def suppressing(i):
    class Manager:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, tb):
            say(kind, repr(value), tb is not None, repr(sys.exc_info()[1]))
            if i == 2:
                raise RuntimeError("from exit")
            return i == 1

    with Manager():
        raise ValueError("body")
    return "suppressed"


@program(([3, 0, 2],), ([],))
def failing_comprehension(items):
    x = "kept"
    try:
        return [10 // x for x in items], {k: 10 // k for k in items}, sum(10 // k for k in items)
    except ZeroDivisionError as error:
        return x, str(error), [t.tb_lineno for t in iterate_traceback(error.__traceback__)]


def iterate_traceback(tb):
    while tb is not None:
        yield tb
        tb = tb.tb_next


@program(())
def stop_iteration_leaks():
    def gen():
        yield 1
        raise StopIteration("inside")

    def plain():
        raise StopIteration(7)

    out = []
    try:
        list(gen())
    except RuntimeError as error:
        out.append((str(error), repr(error.__cause__), repr(error.__context__)))
    try:
        plain()
    except StopIteration as error:
        out.append(error.value)
    try:
        [plain() for _ in range(2)]
    except StopIteration as error:
        out.append(error.value)
    out.append(list(map(lambda v: plain() if v else v, [0, 1, 2])))
    return out


@program((0,), (1,))
def multi_line(i):
    values = [
        say("first"),
        say("second",
            1 // i),
        say("third"),
    ]
    return dict(
        a=values,
        b=values[
            i + 5
        ],
    )


@program((2,))
def loop_traceback(n):
    for k in range(n, -1, -1):
        say(10 // k)


@program(())
def error_in_default():
    def outer(x):
        def inner(y=x.missing):
            return y

        return inner

    return outer(3)


@program(())
def mutated_then_raises():
    items = []
    try:
        for k in (1, 2, 0, 3):
            items.append(k)
            items.append(6 // k)
    except ZeroDivisionError as error:
        error.items = items
        raise


@program(([1, 2, 3],))
def partial_effects(items):
    items.append(4)
    d = {"a": items}
    items[0] = d
    items.remove(2)
    raise Custom(items, detail=d)


@program()
def cyclic_context():
    try:
        raise ValueError(1)
    except ValueError as error:
        error.__context__ = error
        raise TypeError(2)  # noqa: B904
