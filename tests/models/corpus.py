"""Functions to run, stop and resume anywhere: (function, arguments) in CASES."""

import contextlib
import sys
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path

LOG = []


def say(*what):
    """A side effect whose order is checked."""
    LOG.append(what)
    return what[-1] if what else None


@contextlib.contextmanager
def fresh_log():
    """The log of what happens in the block."""
    LOG.clear()
    said = []
    try:
        yield said
    finally:
        said += [repr(what) for what in LOG]
        LOG.clear()


@dataclass
class Point:
    x: int
    y: int = 0


Pair = namedtuple("Pair", "left right")


class Manager:
    def __init__(self, name, swallow=()):
        self.name, self.swallow = name, swallow

    def __enter__(self):
        say("enter", self.name)
        return self.name

    def __exit__(self, kind, value, traceback):
        say("exit", self.name, kind, str(value), str(sys.exc_info()[1]))
        return kind is not None and issubclass(kind, self.swallow)


class Base:
    def __init__(self, n=1):
        self.n = n

    def scaled(self, by):
        return self.n * by

    @property
    def twice(self):
        return self.n * 2


class Child(Base):
    def __init__(self, n):
        super().__init__(n + 1)
        self.extra = say("child", n)

    def scaled(self, by, *, plus=0):
        return super().scaled(by) + plus + super(Child, self).n

    def in_closure(self, by):
        add = lambda: self.n
        return super().twice + add() + by


def arithmetic(a, b):
    c = a + b * 2 - (a // 3) ** 2
    c += a @ Matrix() if a > 100 else -b
    c <<= 1
    return (c, ~c, +c, not c, c % 7, a / b, a & b, a | b, a ^ b, a >> 1, a is b, a is not b, a in (1, b), a not in [b])


class Matrix:
    def __rmatmul__(self, other):
        return other + 1000


def loops(n):
    total, seen = 0, []
    for i in range(n):
        if i == 1:
            continue
        if i == 4:
            break
        for j in [i, i * 10]:
            total += j
            seen.append((i, j))
    else:
        say("no break")
    k = 0
    while k < 3:
        k += 1
        if k == 2:
            continue
        seen.append(k)
    else:
        say("while ended")
    return total, seen


def early_return(items):
    for i, item in enumerate(items):
        with Manager(item):
            try:
                if item == "b":
                    return i, item
            finally:
                say("finally", item)
    return None


def handlers(n):
    out = []
    for i in range(n):
        try:
            try:
                if i == 1:
                    raise KeyError(i)
                if i == 2:
                    raise ValueError(i) from KeyError("cause")
                out.append(1 // (i - 3))
            except KeyError as error:
                out.append((repr(error), repr(sys.exc_info()[1])))
                try:
                    raise TypeError("inner")
                except TypeError:
                    out.append((repr(sys.exc_info()[1]), repr(sys.exc_info()[1].__context__)))
                out.append(repr(sys.exc_info()[1]))
            except (ValueError, LookupError) as error:
                say("value", repr(error.__cause__))
                raise
            finally:
                out.append(("finally", i, repr(sys.exc_info()[1])))
        except ValueError as error:
            out.append(("outer", str(error), repr(error.__context__)))
        except ZeroDivisionError:
            out.append("zero")
        else:
            out.append(("else", i))
    return out


def uncaught(depth):
    say("start")
    try:
        try:
            return [1, 2][depth]
        except IndexError as error:
            say("caught", str(error))
            raise RuntimeError("from handler") from error
        finally:
            say("cleanup")
    finally:
        say("outer cleanup", repr(sys.exc_info()[1]))


def reraised(value):
    with Manager("outer"):
        try:
            with Manager("inner", ValueError):
                raise ValueError(value)
            say("swallowed")
            with Manager("last"):
                int("x" * value)
        except TypeError:
            say("not this one")


def return_in_finally(x):
    for _ in range(2):
        try:
            return say("value", x)
        finally:
            if x > 1:
                break
    return "after"


def exception_variable(x):
    try:
        raise KeyError(x)
    except KeyError as error:  # noqa: F841
        pass
    return error  # noqa: F821


def groups(kinds):
    try:
        raise ExceptionGroup("many", [kind(kind.__name__) for kind in kinds])
    except* ValueError as group:
        say("values", [repr(e) for e in group.exceptions])
    except* (KeyError, TypeError) as group:
        say("others", [repr(e) for e in group.exceptions])
    return "handled"


def closures(n):
    count = n

    def step(by=1, *, times=1):
        nonlocal count
        count += by * times
        return count

    fs = [lambda k=k: (k, count) for k in range(2)]
    step()
    step(2, times=3)
    del step
    n = n + 1
    inner = lambda: n
    return [f() for f in fs], count, inner()


def make_reader(shared, step):
    def reader(key):
        shared[key] += step
        try:
            return [shared[k] for k in sorted(shared)], (lambda: shared)()[key]
        finally:
            shared[key] -= step

    return reader


def comprehensions(rows):
    i = "outer"
    flat = [x for row in rows for x in row if x % 2]
    squares = {x: x * x for x in flat}
    names = {str(x) for x in flat}
    nested = [[y + len(rows) for y in row] for row in rows]
    shadow = [i for i in range(3)]
    calls = [f() for f in [lambda: x * 2 for x in range(2)]]
    return flat, squares, sorted(names), nested, shadow, i, calls, sum(x for x in flat)


def failing_comprehension(items):
    x = "kept"
    try:
        return [10 // x for x in items]
    except ZeroDivisionError:
        return x, sys.exc_info()[0]


def booleans(a, b, c):
    d = (a and b) or c
    e = a or (b and not c)
    f = 1 < a <= 3 < b
    g = "yes" if a and b else "no" if c else "maybe"
    if a is None or (b is not None and c):
        g += "!"
    return d, e, f, g, (a or b, b and c), say("arg", a or "default", k_or_none(b))


def k_or_none(k):
    return k or None


def strings(a, b):
    width = 6
    return f"{a}|{a!r:>{width}}|{b!s}|{b:05.1f}|{a!a}|{width=}|{b!r:^{width + 4}}|" "tail", "%s-%d" % (a, width)


def failing_halves(items, spec):
    """What fails in the second half of an instruction that is two."""
    failed = []
    try:
        say(no_such_function(items))
    except NameError as error:
        failed.append(str(error))
    try:
        say("slice", items[1:2])
    except TypeError as error:
        failed.append(str(error))
    try:
        items[1:2] = [1]
    except TypeError as error:
        failed.append(str(error))
    try:
        say(f"{items!r:{spec}}")
    except ValueError as error:
        failed.append(str(error))
    with Manager("format", ValueError):
        say(f"{items!s:{spec}}")
    say(f"{Loud()!r}", f"{Loud()!s:>3}")
    return failed, (items and spec) or say("none")


class Loud:
    def __repr__(self):
        return Text(say("repr"))

    def __format__(self, spec):
        return say("formatted", spec)


class Text(str):
    """A string that is formatted in its own way."""

    def __format__(self, spec):
        return say("text", spec)


def slices(items):
    i, j = 1, 4
    part = items[i:j]
    items[i:j] = ["x", *part, "y"]
    items[0:2] = []
    del items[-1]
    tail = items[j:]
    return part, items[::2], items[:i], items[j - 1 :], items[i:j:2], tail, items


def star_arguments(*args, key="k", **rest):
    head, *middle, last = args
    (a, b), [c] = (1, 2), [3]
    merged = {"first": 1, **rest, "last": last}
    call = collect(*args, *middle, key=key, **rest)
    return head, middle, last, merged, call, [*args, *middle], {*middle}, (*args, a, b, c)


def deleted_arguments(first, /, *args, key=1, **rest):
    del args, rest, key, first
    failed = []
    for read in (lambda: first, lambda: rest):  # noqa: F821
        try:
            read()
        except NameError as error:
            failed.append(str(error))
    try:
        return args
    except NameError as error:
        return failed, str(error)


def deleted_star(*args):
    del args
    try:
        return args
    except NameError as error:
        return str(error)


def collect(*args, **kwargs):
    return args, sorted(kwargs.items())


def duplicated_keyword(rest):
    return collect(1, key=2, **rest)


def unpacking(items):
    try:
        a, b = items
    except ValueError as error:
        return str(error)
    return a, b


def unbound(flag):
    if flag:
        x = 1
    del flag
    try:
        say(x)
        del x
        return x  # noqa: F821
    except UnboundLocalError as error:
        return str(error)


def matching(subject):
    match subject:
        case 0 | 1:
            return "small"
        case [x, y, *rest] if x:
            return "sequence", x, y, rest
        case {"kind": kind, "at": [a, _], **others}:
            return "mapping", kind, a, others
        case Point(x=0) | Pair(0, _):
            return "zero"
        case Point(x, y) as point:
            return "point", x + y, point.x
        case str() | None:
            return "text"
    return "nothing"


def objects(n):
    child = Child(n)
    child.n -= 1
    child.tag = "t"
    del child.extra
    plain = Base()
    bound = child.scaled
    return child.scaled(2, plus=1), bound(3), plain.twice, child.in_closure(4), hasattr(child, "extra"), child.tag


def globals_and_imports(x):
    global TEMPORARY
    TEMPORARY = x
    import os.path as path
    from math import floor, pi

    y = TEMPORARY
    del TEMPORARY
    try:
        return path.basename("a/b"), floor(pi), y, TEMPORARY
    except NameError as error:
        return str(error)


def makes_class(n):
    class Local:
        size = n

        def get(self: "Local", more: int = 2) -> int:
            return self.size + more + n

    return Local().get(), Local.__qualname__, sorted(Local.get.__annotations__)


def asserting(x):
    assert x > 1, f"too small: {x}"
    assert x > 2
    return x


def long_jump(n):
    value = n
    for _ in range(2):
        value += 1 + n; value -= 2 + n; value *= 3 + n; value ^= 4 + n; value |= 5 + n; value &= 0xFFFF
        value += 1 + n; value -= 2 + n; value *= 3 + n; value ^= 4 + n; value |= 5 + n; value &= 0xFFFF
        value += 1 + n; value -= 2 + n; value *= 3 + n; value ^= 4 + n; value |= 5 + n; value &= 0xFFFF
        value += 1 + n; value -= 2 + n; value *= 3 + n; value ^= 4 + n; value |= 5 + n; value &= 0xFFFF
        value += say(1, n); value -= len([2, n]); value *= max(3, n); value ^= min(4, n); value |= abs(n)
        value += say(1, n); value -= len([2, n]); value *= max(3, n); value ^= min(4, n); value |= abs(n)
    return value


def shortcuts(items):
    """What later releases run without the generator that it says."""
    found = any(say("any", x) for x in items), all(say("all", x) for x in items)
    made = tuple(x for x in items if say(x)), list(x + 1 for x in items), set(x for x in items)
    try:
        return found, made, tuple(1 // x for x in items)
    except ZeroDivisionError as error:
        return found, made, str(error)


def deeply_nested(n):
    with Manager("a"), Manager("b", KeyError) as b:
        for i in range(n):
            try:
                while True:
                    try:
                        if i:
                            raise KeyError(b)
                        break
                    except ValueError:
                        say("never")
                    finally:
                        say("leave", i)
            except LookupError:
                say("lookup", i, repr(sys.exc_info()[1]))
                raise
    return "after"


CASES = [
    (arithmetic, (7, 3)),
    (arithmetic, (101, 5)),
    (loops, (3,)),
    (loops, (6,)),
    (early_return, (["a", "b", "c"],)),
    (early_return, ([],)),
    (handlers, (5,)),
    (uncaught, (5,)),
    (uncaught, (1,)),
    (reraised, (3,)),
    (return_in_finally, (1,)),
    (return_in_finally, (2,)),
    (exception_variable, (1,)),
    (groups, ([ValueError, KeyError],)),
    (groups, ([ValueError, OSError],)),
    (closures, (3,)),
    (make_reader({"a": 1, "b": 2}, 3), ("b",)),
    (comprehensions, ([[1, 2, 3], [5]],)),
    (failing_comprehension, ([5, 0],)),
    (booleans, (2, 5, 0)),
    (booleans, (None, "", 1)),
    (booleans, (0, 3, [])),
    (strings, ("é", 2.5)),
    (failing_halves, (3, "q")),
    (slices, (list(range(7)),)),
    (star_arguments, (1, 2, 3, 4)),
    (deleted_arguments, (1, 2)),
    (deleted_star, (1, 2)),
    (duplicated_keyword, ({"key": 3},)),
    (unpacking, ((1, 2),)),
    (unpacking, ((1, 2, 3),)),
    (unbound, (True,)),
    (unbound, (False,)),
    *((matching, (subject,)) for subject in (
        1, (1, 2, 3), {"kind": "k", "at": (1, 2), "more": 3}, Point(0, 1), Pair(0, 1), Point(1, 2), None, 2.5
    )),
    (objects, (3,)),
    (globals_and_imports, (4,)),
    (makes_class, (4,)),
    (asserting, (1,)),
    (asserting, (2,)),
    (asserting, (3,)),
    (long_jump, (3,)),
    (deeply_nested, (2,)),
    (shortcuts, ([2, 1],)),
    (shortcuts, ([3, 0, 1],)),
    (Child.scaled, (Child(2), 3)),
    (Child.in_closure, (Child(2), 3)),
]  # fmt: skip


def later_programs():
    """Cases in the syntax of later releases, up to the running one."""
    for path in sorted((Path(__file__).parent / "programs").glob("3.*.txt")):
        if tuple(map(int, path.name.split(".")[:2])) <= sys.version_info[:2]:
            names = {"say": say, "__name__": f"models.programs.{path.name}"}
            exec(compile(path.read_text("utf-8"), str(path), "exec", dont_inherit=True), names)
            yield from names["CASES"]


CASES += later_programs()
