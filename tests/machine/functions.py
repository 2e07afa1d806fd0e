"""Programs: calls, arguments, closures, scopes, recursion, decorators."""

from __future__ import annotations

import functools
import itertools

from machine.oracle import program, say

STATE: dict = {}
COUNTER = 0


@program((3,), (0,))
def counter_closure(n):
    count = n

    def step(by=1, *, times=1):
        nonlocal count
        count += by * times
        return count

    first = step()
    step(2, times=3)
    step(by=5)
    return first, count, step


@program((4,))
def late_binding(n):
    fs = []
    for i in range(n):
        fs.append(lambda: i)
    gs = [lambda k=k: k for k in range(n)]
    return [f() for f in fs], [g() for g in gs], i, fs[0], gs[-1]


@program((1,))
def shared_cells(x):
    def set_(v):
        nonlocal x
        x = v
        return x

    def get():
        return x

    before = get()
    set_([before])
    inner = get()
    inner.append("seen")
    x = x + ["outer"]
    return before, get(), inner, get() is x, set_, get


@program((0,), (1,))
def unbound_local(flag):
    if flag:
        x = 1
    try:
        say(x)
        del x
        return x
    except UnboundLocalError as error:
        return str(error)


@program((0,), (1,))
def unbound_free(flag):
    def read():
        return y

    if flag:
        y = 1
    try:
        return read()
    except NameError as error:
        return type(error).__name__, str(error), error.name


@program((1,))
def deleted_cell(x):
    def read():
        return x

    say(read())
    del x
    try:
        read()
    except NameError as error:
        say(str(error))
    try:
        return x
    except UnboundLocalError as error:
        say(str(error))
    x = 2
    return read()


@program((5,), (0,), (12,))
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


@program((6,), (9,))
def mutual(n):
    def even(k):
        return True if k == 0 else odd(k - 1)

    def odd(k):
        return False if k == 0 else even(k - 1)

    return even(n), odd(n)


def signature(a, b=2, /, c=3, *args, d, e=5, **kwargs):
    return a, b, c, args, d, e, kwargs


@program(
    ((1,), {"d": 4}), ((1, 2, 3, 4, 5), {"d": 0, "z": 9}), ((), {"d": 1}), ((1,), {}), ((1,), {"d": 1, "a": 2}),
    ((1,), {"c": 7, "d": 1}), ((1, 2, 3), {"c": 7, "d": 1}),
)  # fmt: skip
def binding(args, kwargs):
    try:
        return signature(*args, **kwargs)
    except TypeError as error:
        return str(error)


@program((1,))
def binding_errors(x):
    out = []

    def two(a, b):
        return a, b

    def kw(*, k):
        return k

    for f, a, k in (
        (two, (x,), {}), (two, (1, 2, 3), {}), (two, (1,), {"c": 2}), (two, (1, 2), {"b": 3}), (kw, (1,), {}),
        (kw, (), {}), (two, (), {}),
    ):  # fmt: skip
        try:
            out.append(f(*a, **k))
        except TypeError as error:
            out.append(str(error))
    try:
        two(1, 2, **{"a": 1})
    except TypeError as error:
        out.append(str(error))
    try:
        two(*5)
    except TypeError as error:
        out.append(str(error))
    try:
        two(**[1])
    except TypeError as error:
        out.append(str(error))
    try:
        two(**{1: 2})
    except TypeError as error:
        out.append(str(error))
    try:
        x(1)
    except TypeError as error:
        out.append(str(error))
    return out


@program((1,), (2,))
def mutable_default(x):
    def f(v, seen=[], *, counts={}):
        seen.append(v)
        counts[v] = counts.get(v, 0) + 1
        return seen, counts

    a, c = f(x)
    b, d = f(x + 1)
    return a is b, a, c, d is c, f.__defaults__[0] is a, f.__kwdefaults__


def accumulate(v, seen=[]):
    seen.append(v)
    return list(seen)


@program((1,), (2,))
def real_mutable_default(x):
    accumulate.__defaults__[0].clear()
    accumulate(x)
    return accumulate(x + 1), accumulate.__defaults__


def traced(label):
    def decorate(f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            say(label, f.__name__, args, kwargs)
            return f(*args, **kwargs)

        return wrapper

    return decorate


@traced("outer")
@traced("inner")
def decorated(a, b=1):
    """Documented."""
    return a + b


@program((1,), (2,))
def decorators(x):
    @traced("local")
    def g(y):
        return y * 2

    return decorated(x), decorated(x, b=5), g(x), decorated.__name__, g.__wrapped__(x), decorated.__doc__


@program((2,), (5,))
def global_counter(n):
    global COUNTER
    COUNTER = 0
    for _ in range(n):
        bump()
    seen = COUNTER
    bump(10)
    return seen, COUNTER


def bump(by=1):
    global COUNTER
    COUNTER += by
    return COUNTER


@program((2,))
def global_lifecycle(x):
    global FLEETING
    try:
        FLEETING
    except NameError as error:
        say(str(error))
    FLEETING = [x]
    alias = FLEETING
    FLEETING.append(1)
    FLEETING = FLEETING + [2]
    value = FLEETING
    del FLEETING
    try:
        del FLEETING
    except NameError as error:
        say(str(error))
    return alias, value, "FLEETING" in globals()


@program((1,), ("k",))
def global_dict(key):
    STATE.clear()
    STATE[key] = [1]
    STATE.setdefault(key, []).append(2)
    other = STATE.setdefault("other", STATE[key])
    STATE.update(third=3)
    del STATE[key]
    STATE[key] = "again"
    return list(STATE), other, STATE.pop("third"), STATE


@program((3,))
def partials(x):
    p = functools.partial(signature, x, d=1)
    q = functools.partial(p, 7, z=2)
    return p(), q(9), p.func is signature, q.args, q.keywords, functools.reduce(lambda a, b: a * 10 + b, [1, 2, x]), p


@program((4,))
def caches(n):
    @functools.lru_cache(maxsize=None)
    def fib(k):
        say("fib", k)
        return k if k < 2 else fib(k - 1) + fib(k - 2)

    return fib(n), fib(n), fib.cache_info()


@program((3,), (1,))
def itertools_(n):
    return (
        list(itertools.chain(range(n), "ab")), list(itertools.islice(itertools.count(n), 3)),
        list(itertools.accumulate([1, 2, n])), list(itertools.product([1, n], "x")),
        [(k, list(g)) for k, g in itertools.groupby([1, 1, n, n])],
        list(itertools.takewhile(lambda v: v < n, range(5))), list(itertools.zip_longest([1], [1, 2], fillvalue=n)),
        list(itertools.repeat(n, 2)), list(itertools.starmap(pow, [(2, n)])),
        list(itertools.permutations(range(n), 2)), list(itertools.pairwise(range(n))),
    )  # fmt: skip


@program((1, 2))
def returns_functions(a, b):
    def outer(x):
        """Doc."""

        def inner(y: int = b, *, z: str = "z") -> int:
            return x + y + a

        return inner

    f, g = outer(a), outer(b)
    f.tag = "t"
    return f, g, f(1), g(), f.tag, f.__annotations__, outer.__doc__, outer.__qualname__


@program(([1, 2],))
def aliased_arguments(items):
    def f(a, b):
        a.append("a")
        b.append("b")
        return a is b

    return f(items, items), f(items, list(items)), items


@program((3,))
def nested_nonlocal(n):
    def a():
        nonlocal n
        n += 1

        def b():
            nonlocal n
            n *= 2
            return n

        return b

    f = a()
    g = a()
    return f(), g(), n, f, g


@program((2,))
def callables(x):
    class Adder:
        def __init__(self, n):
            self.n = n

        def __call__(self, y, *, z=0):
            return self.n + y + z

    add = Adder(x)
    return add(1), add(1, z=2), callable(add), list(map(add, [1, 2])), callable(x)


@program((5,))
def recursion_with_state(n):
    path = []

    def walk(k):
        path.append(k)
        if k > 1:
            walk(k // 2)
            walk(k - 2)
        path.append(-k)

    walk(n)
    return path


@program((1, 2), (3, 4))
def function_attributes(a, b):
    def f(x, y=a, *, z=b):
        return x, y, z

    f.__defaults__ = (b,)
    f.__kwdefaults__ = {"z": "new"}
    f.note = [a]
    f.note.append(b)
    out = f(0), f.note, f.__name__, f.__module__, f.__dict__
    f.__name__ = "renamed"
    return out, f


@program((3,))
def deep_frames(n):
    def a(v):
        return b(v + 1) + [say("a", v)]

    def b(v):
        return c(v * 2) + [say("b", v)]

    def c(v):
        out = [d(k) for k in range(v)]
        return out

    def d(k):
        return say("d", k) * n

    return a(n)


@program((2,))
def locals_and_friends(x):
    y = [x]
    seen = sorted(locals())
    z = locals()["y"] is y
    return seen, z, eval("x + 1"), dir() == sorted(dir()), vars()["x"]


@program(([1, 2, 3],))
def mapped_lambda_effects(items):
    out = []
    r = list(map(lambda v: out.append(v) or v * 2, items))
    f = list(filter(lambda v: say("f", v) > 1, items))
    k = sorted(items, key=lambda v: say("key", -v))
    return r, out, f, k, max(items, key=lambda v: say("max", -v))
