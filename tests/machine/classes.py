"""Programs: classes, descriptors, super, attribute hooks, metaclasses, subclasses of builtins."""

from __future__ import annotations

import abc
import functools
import types
from collections import OrderedDict, defaultdict, deque

from machine.oracle import program, say


class Base:
    kind = "base"
    shared: list = []

    def __init__(self, n=1):
        self.n = n

    def scaled(self, by):
        return self.n * by

    @property
    def twice(self):
        return self.n * 2

    @twice.setter
    def twice(self, value):
        say("set twice", value)
        self.n = value // 2

    @twice.deleter
    def twice(self):
        say("del twice")
        self.n = 0

    @classmethod
    def make(cls, n):
        return cls(n)

    @staticmethod
    def helper(x):
        return x + 100

    @functools.cached_property
    def heavy(self):
        say("heavy", self.n)
        return [self.n]


class Child(Base):
    kind = "child"

    def __init__(self, n):
        super().__init__(n + 1)
        self.extra = say("child", n)

    def scaled(self, by, *, plus=0):
        return super().scaled(by) + plus + super(Child, self).n if hasattr(super(), "n") else super().scaled(by) + plus

    @property
    def twice(self):
        return super().twice + 1

    @classmethod
    def make(cls, n):
        return super().make(n * 10)

    def in_closure(self, by):
        add = lambda: self.n
        return [super(Child, self).twice for _ in range(2)], add() + by


@program((3,), (0,))
def construction(n):
    b, c = Base(n), Child(n)
    return (
        b, c, b.scaled(2), c.scaled(3, plus=1), c.twice, b.twice, Base.make(n), Child.make(n), c.helper(1),
        Child.helper(2), c.in_closure(1),
    )  # fmt: skip


@program((3,))
def properties(n):
    b = Base(n)
    b.twice = 10
    del b.twice
    out = [b.n, Base.twice.fget(b), type(Base.twice).__name__]
    c = Child(n)
    for action in (lambda: setattr(c, "twice", 4), lambda: delattr(c, "twice"), lambda: c.missing):
        try:
            action()
        except AttributeError as error:
            out.append((str(error), error.name, error.obj is c))
    return out


@program((lambda: (Base(3), Child(4))), (lambda: (Child(1), Child(1))))
def given_instances(a, b):
    a.n += 1
    b.extra2 = a
    a.kind = "own"
    del b.extra
    b.extra = "back"
    a.twice = 8
    a.heavy.append(1)
    return a.heavy is a.heavy, b.scaled(2), a.__dict__, vars(b), a.kind, type(a).kind, hasattr(b, "heavy")


@program((lambda: (lambda a: (a, a))(Base(2))))
def same_instance_twice(a, b):
    a.n = 5
    b.n += 1
    a.items = []
    b.items.append(1)
    return a.n, b.n, a is b, a


@program((lambda: (Base(2),)))
def attribute_order(a):
    a.p = 1
    a.q = 2
    del a.n
    a.n = 3
    del a.p
    a.p = 4
    d = a.__dict__
    d["z"] = 5
    a.y = 6
    del a.z
    out = list(a.__dict__)
    setattr(a, "w", 7)
    return out, a.__dict__ is d, list(d), getattr(a, "none", "default"), a


@program((1,))
def made_attribute_order(x):
    b = Base(x)
    b.p = 1
    del b.n
    b.n = 2
    try:
        del b.never
    except AttributeError as error:
        say(str(error))
    b.__dict__["k"] = b
    return b, list(vars(b)), b.k is b


class Slots:
    __slots__ = ("a", "b", "__weakref__")

    def __init__(self, a):
        self.a = a


@program((1,))
def slots(x):
    s = Slots(x)
    out = [s.a]
    for action in (lambda: s.b, lambda: setattr(s, "c", 1), lambda: delattr(s, "b")):
        try:
            action()
        except AttributeError as error:
            out.append(str(error))
    s.b = [s]
    del s.a
    out.append(hasattr(s, "a"))
    s.a = 2
    return out, s, hasattr(s, "__dict__")


@program((lambda: (Slots(3),)))
def given_slots(s):
    s.b = s.a
    del s.a
    try:
        return s.a
    except AttributeError as error:
        say(str(error))
    s.a = 7
    return s.a + s.b


class Positive:
    """A data descriptor."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        if obj is None:
            return self
        say("get", self.name)
        return getattr(obj, self.name)

    def __set__(self, obj, value):
        if value < 0:
            raise ValueError(f"{self.name} can't be {value}")
        setattr(obj, self.name, value)

    def __delete__(self, obj):
        say("delete", self.name)
        delattr(obj, self.name)


class NonData:
    def __get__(self, obj, owner=None):
        return "descriptor", obj is None, owner.__name__


class Account:
    balance = Positive()
    plain = NonData()

    def __init__(self, balance):
        self.balance = balance


@program((5,), (-5,))
def descriptors(n):
    try:
        a = Account(n)
    except ValueError as error:
        return str(error)
    out = [a.balance, a.plain, Account.plain, Account.balance.name]
    a.plain = "instance"
    a.__dict__["balance"] = "hidden"
    out += [a.plain, a.balance]
    del a.balance
    try:
        a.balance
    except AttributeError as error:
        out.append(str(error))
    return out, a.__dict__


class Hooked:
    def __init__(self):
        object.__setattr__(self, "log", [])

    def __getattr__(self, name):
        if name.startswith("no"):
            raise AttributeError(f"no such {name}")
        return "got", name

    def __setattr__(self, name, value):
        self.log.append(("set", name, value))
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        self.log.append(("del", name))
        super().__delattr__(name)


class Intercepted:
    x = 1

    def __getattribute__(self, name):
        say("getattribute", name)
        if name == "fake":
            return "fake!"
        return super().__getattribute__(name)

    def __getattr__(self, name):
        say("getattr", name)
        return name * 2

    def method(self):
        return self.x + 1


@program((), name="attribute_hooks")
def attribute_hooks():
    h, i = Hooked(), Intercepted()
    h.a = 1
    h.b = 2
    del h.a
    out = [h.a, h.b, hasattr(h, "nothing"), getattr(h, "nope", 3), i.fake, i.x, i.other, i.method()]
    try:
        del h.zzz
    except AttributeError as error:
        out.append(str(error))
    return out, h.__dict__


class Meta(type):
    registry: list = []

    def __call__(cls, *args, **kwargs):
        say("meta call", cls.__name__)
        obj = super().__call__(*args, **kwargs)
        obj.made_by = "meta"
        return obj

    def __getattr__(cls, name):
        return f"{cls.__name__}.{name}"

    @property
    def size(cls):
        return len(cls.__name__)

    def __len__(cls):
        return 42

    def __contains__(cls, item):
        return item == 1

    def __iter__(cls):
        return iter([cls.__name__, 1])

    def __instancecheck__(cls, obj):
        return obj == "instance" or type.__instancecheck__(cls, obj)

    def __getitem__(cls, key):
        return cls, key


class WithMeta(metaclass=Meta):
    def __init__(self, v):
        self.v = v


@program((1,))
def metaclasses(x):
    w = WithMeta(x)
    return (
        w, WithMeta.size, WithMeta.anything, len(WithMeta), 1 in WithMeta, list(WithMeta),
        isinstance("instance", WithMeta), isinstance(w, WithMeta), isinstance(3, WithMeta), WithMeta["k"],
        type(w) is WithMeta, bool(WithMeta),
    )  # fmt: skip


class Abstract(abc.ABC):
    @abc.abstractmethod
    def f(self): ...


class Concrete(Abstract):
    def f(self):
        return "f"


@program(())
def abstract_classes():
    try:
        Abstract()
    except TypeError as error:
        say(str(error))
    return Concrete().f(), isinstance(Concrete(), Abstract), issubclass(Concrete, Abstract)


class A:
    def hello(self):
        return ["A"]


class B(A):
    def hello(self):
        return ["B", *super().hello()]


class C(A):
    def hello(self):
        return ["C", *super().hello()]


class D(B, C):
    def hello(self):
        return ["D", *super().hello()]


@program(())
def diamonds():
    d = D()
    s = super(B, d)
    out = [d.hello(), s.hello(), [k.__name__ for k in D.__mro__], super(C, d).hello()]
    try:
        super(A, d).hello()
    except AttributeError as error:
        out.append(str(error))
    try:
        super(B, A())
    except TypeError as error:
        out.append(str(error))
    return out, isinstance(d, A), issubclass(D, (C, int)), D.__bases__ == (B, C)


class Stack(list):
    def push(self, x):
        self.append(x)
        return self

    def __getitem__(self, i):
        return "item", super().__getitem__(i)


class Defaults(dict):
    def __missing__(self, key):
        self[key] = value = [key]
        return value


class Name(str):
    def shout(self):
        return self.upper() + "!"


class Number(int):
    def __add__(self, other):
        return Number(int(self) + int(other) + 1)


@program((1,))
def builtin_subclasses(x):
    s = Stack([x])
    s.push(2).push(3)
    s.note = "n"
    d = Defaults(a=1)
    d["z"].append(2)
    n = Name("bob")
    return (
        s, s[0], len(s), list(s), s == [x, 2, 3], d, d["a"], d.get("q"), n, n.shout(), n + "x", Number(2) + 3,
        Number(4) * 2, isinstance(n, str), type(Number(1) + 1), s.note,
    )  # fmt: skip


@program((lambda: (Stack([1, 2]), Defaults(b=2))))
def given_builtin_subclasses(s, d):
    s.push(d)
    s.tag = s
    d["new"]
    d.tag = "t"
    s[0:1]
    del s[0]
    s.extend([7])
    d.update(q=1)
    del d["b"]
    d["b"] = 3
    return s, d, list(d), len(s)


@program((2,))
def local_class(n):
    class Local(Base):
        size = n
        items = [i * n for i in range(3)]

        def get(self: Local, more: int = 2) -> int:
            return self.size + more + n

        def parent(self):
            return super().scaled(self.size)

    o = Local(3)
    Local.size = 10
    return (
        o.get(), o.parent(), Local.__qualname__, Local.items, [c.__name__ for c in Local.__mro__],
        isinstance(o, Base), o,
    )  # fmt: skip


@program((1,))
def class_attributes(x):
    Base.shared.clear()
    Base.shared.append(x)
    a, b = Base(1), Child(2)
    a.shared.append("via a")
    b.shared = ["own"]
    Base.level = "class"
    out = [a.level, b.level, Child.level]
    del Base.level
    out += [
        hasattr(a, "level"), Base.shared, b.shared, Child.shared is Base.shared, Base.__dict__["kind"],
        getattr(Base, "kind"), Base.__name__,
    ]  # fmt: skip
    return out


@program((2,))
def bound_methods(n):
    b, c = Base(n), Base(n)
    f, g = b.scaled, b.scaled
    return (
        f(2), f == g, f is g, f == c.scaled, f.__self__ is b, f.__func__ is Base.scaled, f.__name__,
        [b.scaled][0](3), Base.scaled(b, 4), {f: 1}.get(g), f, Base.make.__func__(Child, 1),
        types.MethodType(lambda s, k: (s.n, k), b)(9),
    )  # fmt: skip


class Node:
    def __init__(self, value, parent=None):
        self.value = value
        self.children = []
        self.parent = parent
        if parent is not None:
            parent.children.append(self)


@program((1, 2))
def collections_(a, b):
    dd = defaultdict(list)
    dd["x"].append(a)
    dd["y"]
    od = OrderedDict([(1, a), (2, b)])
    od.move_to_end(1)
    q = deque([a, b], maxlen=2)
    q.append(3)
    q.appendleft(0)
    return dd, od, q, list(od), dd.default_factory, q.maxlen, od.popitem(), q[0]


class Prop:
    @property
    def fails(self):
        raise AttributeError("inside")

    @property
    def other(self):
        raise ValueError("other")

    def __getattr__(self, name):
        say("fallback", name)
        return "fallback"


@program(())
def property_errors():
    p = Prop()
    out = [p.fails, getattr(p, "fails", 1), hasattr(p, "x")]
    try:
        hasattr(p, "other")
    except ValueError as error:
        out.append(str(error))
    return out


class Initless:
    def __new__(cls, *args, **kwargs):
        say("new", cls.__name__, args, kwargs)
        self = super().__new__(cls)
        self.args = args
        return self if args else "not an instance"


class WithInit(Initless):
    def __init__(self, *args, **kwargs):
        say("init", args, kwargs)
        self.done = True

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)


@program((1,))
def new_and_init(x):
    out = [Initless(x), Initless(), WithInit(x, k=1), WithInit()]
    for cls, args in ((Base, (1, 2)), (Node, ()), (A, (1,))):
        try:
            out.append(cls(*args))
        except TypeError as error:
            out.append(str(error))
    return out


@program((1,))
def isinstance_forms(x):
    b = Child(x)
    out = [
        isinstance(b, Base), isinstance(b, (int, Base)), isinstance(x, int | str), isinstance(True, int),
        issubclass(bool, int), type(b) is Child, type(b) == Base, b.__class__ is Child,
    ]  # fmt: skip
    try:
        isinstance(1, "int")
    except TypeError as error:
        out.append(str(error))
    return out
