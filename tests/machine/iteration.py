"""Programs: generators, iterators, containers and their mutation while they are iterated."""

from __future__ import annotations

import copy
import itertools
import sys
from collections import deque

from machine.oracle import program, say


def counter(n):
    for i in range(n):
        got = yield i
        if got:
            say("got", got)
    return "done"


def echo():
    received = []
    while True:
        try:
            value = yield len(received)
            received.append(value)
        except ValueError as error:
            received.append(("error", str(error)))
        except GeneratorExit:
            say("closed", received)
            raise


@program((3,), (0,))
def generator_basics(n):
    g = counter(n)
    out = list(g)
    h = counter(n)
    try:
        out.append(next(h))
        out.append(h.send("hello"))
    except StopIteration as error:
        out.append(("stop", error.value))
    return out, list(h), list(h), next(h, "default")


@program(())
def generator_throw():
    g = echo()
    out = [next(g), g.send(1), g.throw(ValueError("thrown")), g.send(2)]
    try:
        g.throw(KeyError("not handled"))
    except KeyError as error:
        out.append(str(error))
    try:
        next(g)
    except StopIteration:
        out.append("ended")
    h = echo()
    next(h)
    h.close()
    h.close()
    try:
        h.send(1)
    except StopIteration:
        out.append("closed")
    fresh = echo()
    try:
        fresh.send(1)
    except TypeError as error:
        out.append(str(error))
    try:
        fresh.throw(KeyError, "early")
    except KeyError as error:
        out.append(repr(error))
    return out


def delegating(n):
    first = yield from counter(n)
    second = yield from [10, 20]
    try:
        third = yield from echo()
    except KeyError as error:
        third = repr(error)
    return first, second, third


@program((2,))
def generator_delegation(n):
    g = delegating(n)
    out = [next(g), g.send("x"), next(g), next(g), next(g), g.send("to echo"), g.throw(ValueError("inside"))]
    try:
        g.throw(KeyError("end"))
    except StopIteration as error:
        out.append(error.value)
    return out


@program((3,))
def generator_finally(n):
    def gen():
        try:
            for i in range(n):
                say("yield", i)
                yield i
        finally:
            say("cleanup", repr(sys.exc_info()[1]))

    for x in gen():
        if x == 1:
            break
    say("after break")
    g = gen()
    next(g)
    g.close()
    try:
        h = gen()
        next(h)
        h.throw(RuntimeError("r"))
    except RuntimeError as error:
        say(str(error))
    return [*gen()]


@program((3,))
def generator_escapes(n):
    def gen(k):
        total = 0
        for i in range(k):
            total += i
            try:
                yield total, i
            except ValueError:
                yield "caught"

    fresh, started, ended = gen(n), gen(n), gen(0)
    next(started)
    list(ended)
    return fresh, started, ended, (x * n for x in range(2)), map(str, [n]), zip([1], [2])


@program((2,))
def generator_expressions(n):
    lazy = (say("lazy", i) * n for i in range(3) if i != 1)
    say("before")
    out = [next(lazy), sum(lazy), list(lazy)]
    nested = ((i, j) for i in range(n) for j in range(i + 1))
    return (
        out, list(nested), tuple(x for x in "ab"), {k: v for k, v in ((1, 2), (3, 4))},
        max((x % 3 for x in range(5)), default=0), " ".join(str(i) for i in range(n)),
    )  # fmt: skip


@program(())
def generator_errors():
    def bad():
        yield 1
        raise LookupError("in generator")

    def reentrant():
        yield next(me)

    out = []
    g = bad()
    try:
        for x in g:
            out.append(x)
    except LookupError as error:
        out.append(str(error))
    out.append(list(g))
    me = reentrant()
    try:
        next(me)
    except ValueError as error:
        out.append(str(error))

    def ignores():
        while True:
            try:
                yield
            except GeneratorExit:
                yield "no"

    k = ignores()
    next(k)
    try:
        k.close()
    except RuntimeError as error:
        out.append(str(error))
    return out


@program((1,))
def uncaught_in_generator(x):
    def gen():
        yield x
        yield 1 // 0

    return [
        v
        for v in gen()
    ]


@program(())
def exc_info_and_generators():
    def gen():
        say("start", repr(sys.exc_info()[1]))
        try:
            raise KeyError("inner")
        except KeyError:
            yield repr(sys.exc_info()[1])
            say("resumed", repr(sys.exc_info()[1]))
        yield repr(sys.exc_info()[1])

    g = gen()
    out = [next(g), repr(sys.exc_info()[1])]
    try:
        raise ValueError("outer")
    except ValueError:
        out += [next(g), repr(sys.exc_info()[1])]
    return out


@program(([1, 2, 3, 4],))
def grow_while_iterating(items):
    seen = []
    for x in items:
        seen.append(x)
        if x < 3:
            items.append(x + 10)
        if x == 3:
            items.remove(1)
    return seen


@program(({"a": 1, "b": 2},), ({},))
def dict_changes_while_iterating(d):
    out = []
    try:
        for k in d:
            out.append(k)
            d[k + "!"] = 0
    except RuntimeError as error:
        out.append(str(error))
    for k in list(d):
        if k.endswith("!"):
            del d[k]
    for k, v in d.items():
        d[k] = v + 1
    s = {1, 2}
    try:
        for x in s:
            s.add(x + 10)
    except RuntimeError as error:
        out.append(str(error))
    return out, d


@program((3,), (0,))
def loops(n):
    total, seen = 0, []
    for i in range(n * 2):
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
    while True:
        k -= 1
        if k < 0:
            break
    return total, seen, k


@program(([1, 2, 3],), ([],))
def iterators(items):
    it = iter(items)
    first = next(it, None)
    out = [first, list(it), list(it)]
    a, b = itertools.tee(items)
    e = enumerate(items)
    z = zip(items, items[1:])
    m = map(lambda v: v * 2, items)
    r = reversed(items)
    for pair in z:
        out.append(pair)
        break
    out += [next(e, 0), next(m, 0), next(r, 0), list(zip(it, items)), list(a), next(b, 0)]
    second = iter(items)
    next(second, 0)
    return out, e, z, r, second


@program(([1, 2, 3],))
def iterator_aliasing(items):
    it = iter(items)
    pairs = list(zip(it, it))
    items.append(4)
    rest = list(it)
    j = iter(items)
    box = {"it": j}
    next(box["it"])
    return pairs, rest, next(j), box, j is box["it"], iter(j) is j


@program(
    lambda: (iter([1, 2, 3]),), lambda: (iter({"a": 1}),), lambda: (iter("abc"),), lambda: (zip([1, 2], [3, 4]),),
    lambda: (enumerate("ab"),), lambda: (counter(3),), lambda: (iter(()),),
)  # fmt: skip
def given_iterators(it):
    first = next(it, "none")
    for x in it:
        say(x)
        break
    return first, list(it), next(it, "end")


@program(([3, 1, 2],), ([],))
def list_methods(items):
    alias = items
    items.append(4)
    items.extend((5, 6))
    items.insert(1, "i")
    items.insert(-1, "j")
    items.insert(100, "k")
    popped = items.pop(), items.pop(0)
    items.reverse()
    items.remove("i")
    copy = items.copy()
    items += [7]
    other = items + [8]
    items *= 1
    n = items.count(7), items.index(7)
    items.sort(key=str)
    return popped, copy, other, n, items is alias, len(items), items == copy, [0] * 3, [[]] * 2, items[-1:]


@program(({"b": 1, "a": 2},), ({},))
def dict_methods(d):
    alias = d
    d["c"] = 3
    d.update({"d": 4}, e=5)
    got = d.get("zz"), d.get("a", 0), d.setdefault("s", []), d.setdefault("c", "no")
    popped = d.pop("d"), d.pop("nope", None)
    d["s"].append(1)
    del d["c"]
    d["c"] = "last"
    merged = d | {"m": 1}
    d |= {"n": 2}
    items = list(d.items()), list(d.keys()), list(d.values()), list(reversed(d))
    last = d.popitem()
    return (
        got, popped, merged, items, last, "a" in d, len(d), d == alias, dict(d) is d, dict.fromkeys("xy", 0),
        d.keys() & {"a", "c"}, d.copy(),
    )  # fmt: skip


@program(({"b": 1, "a": 2},))
def dict_order(d):
    d["x"] = 1
    del d["b"]
    d["b"] = 5
    v = d.pop("a")
    d["a"] = v
    d["x"] = 2
    first = next(iter(d))
    d[first] = d.pop(first)
    k = d.keys()
    d["late"] = 0
    return list(d), list(k), len(k), "late" in k, k, d.items(), d


@program(({1, 2, 3},), (set(),))
def set_methods(s):
    alias = s
    s.add(4)
    s.discard(1)
    s.discard(99)
    s |= {7}
    s.update([8], (9,))
    out = [
        s & {4, 7}, s - {4}, s ^ {4, 100}, s | {0}, s >= {4}, {4} < s, s.isdisjoint({55}), 4 in s, len(s),
        s == alias, s is alias, frozenset(s), s.copy() == s, {1}.union([2]), sorted(s),
    ]  # fmt: skip
    try:
        s.remove(99)
    except KeyError as error:
        out.append(error.args)
    s -= {8}
    s.clear()
    s.add("end")
    return out


@program(({1, 2},))
def frozensets(s):
    f = frozenset(s)
    d = {f: "set", frozenset(): "empty"}
    return (
        d[frozenset({1, 2})], f | {3}, f == s, hash(f) == hash(frozenset(s)), {f, frozenset(s)},
        [x for x in sorted(f)],
    )  # fmt: skip


@program(lambda: (lambda x: ({"a": x, "b": [x]},))([1]))
def nested_mutation(d):
    d["a"].append(2)
    d["b"].append(d["a"])
    d["c"] = {"in": d["a"]}
    d["c"]["in"] = d["c"]["in"] + [3]
    d["c"]["self"] = d
    first, *_ = d["b"]
    first[0] = "changed"
    return d["a"] is d["b"][0], d["b"][1] is first


@program(lambda: (lambda x: (x, x, [x]))([1, 2]))
def aliased_lists(a, b, box):
    a.append(3)
    b.pop(0)
    box[0].insert(0, "front")
    box.append(box[0])
    c = a
    c += ["plus"]
    c = c + ["new"]
    return a is b, box[0] is a, c, len(a)


@program(lambda: ([1, 2], [1, 2]), lambda: (lambda x: (x, x))([1, 2]))
def equal_or_same(a, b):
    a.append(3)
    return a == b, a is b, b


@program(((1, [2], {"k": (3,)}),))
def tuples(t):
    t[1].append("in tuple")
    try:
        t[0] = 5
    except TypeError as error:
        say(str(error))
    try:
        t[1] += [9]
    except TypeError as error:
        say(str(error))
    return t + (1,), t * 2, t.index(1), t.count(1), (1, 2) < (1, 3), hash((1, 2)) == hash((1, 2)), t[2]["k"]


@program(([1, 2, 3],))
def views(items):
    d = dict(zip("abc", items))
    keys, values, pairs = d.keys(), d.values(), d.items()
    d["z"] = 26
    return (
        keys, values, pairs, len(keys), ("z", 26) in pairs, 26 in values, keys - {"a"}, keys == set("abcz"),
        list(reversed(keys)),
    )  # fmt: skip


@program((deque([1, 2, 3]),))
def deques(q):
    q.append(4)
    q.appendleft(0)
    q.rotate(1)
    out = [q.pop(), q.popleft(), list(q), len(q), q[0], 2 in q]
    q.extend([9])
    q.remove(2)
    return out, q


@program((3,))
def comprehension_scopes(n):
    fs = [lambda: i for i in range(n)]
    x = 5
    gs = {k: (lambda: (k, x)) for k in range(n)}
    x = 6
    return (
        [f() for f in fs], [g() for g in gs.values()], [[(i, j) for j in range(i)] for i in range(n)],
        [y for y in [x] for x in [y + 1]], x,
    )  # fmt: skip


@program(([("b", 2), ("a", 1)],))
def loop_targets(pairs):
    d, holder = {}, type("Holder", (), {})()
    for holder.name, d["value"] in pairs:
        say(holder.name, d["value"])
    for i, (a, *b) in enumerate([(1, 2, 3), [4]]):
        say(i, a, b)
    for x in ():
        pass
    try:
        x
    except UnboundLocalError as error:
        say(str(error))
    return d, holder.name, i


@program(([5, 3],))
def iter_sentinel(items):
    it = iter(items.pop, 5)
    return list(it), items, list(iter(lambda: say("call", 1), 1))


@program((2,))
def infinite(n):
    def naturals():
        i = 0
        while True:
            yield i
            i += 1

    evens = (i for i in naturals() if i % 2 == 0)
    pairs = zip(evens, naturals())
    return (
        [next(pairs) for _ in range(n)], list(itertools.islice(evens, 2)),
        list(itertools.takewhile(lambda v: v < 3, naturals())),
    )  # fmt: skip


@program()
def reversed_constants_escape():
    text, numbers = reversed("abc"), reversed(range(5))
    next(numbers)
    return text, numbers, copy.copy(text), list(copy.copy(numbers))
