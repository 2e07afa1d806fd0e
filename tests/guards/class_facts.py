"""More programs for `guards.test_watching`, as text: what is there, an expression, and changes that it must see."""

import textwrap

from guards.surroundings import case

FACTS = {
    "class of a module": (
        """
        import types
        class Other(types.ModuleType):
            v = property(lambda self: 5)
        m = types.ModuleType("m")
        m.v = 1
        """,
        "x + getattr(m, 'v')",  # not `m.v`: 3.14's specialised instruction doesn't look at the module's class
        ["m.__class__ = Other", "m.__class__ = types.ModuleType"],
    ),
    "class of a class": (
        """
        class One(type): pass
        class Two(type):
            z = 5
            def __call__(cls): return 8
        class A(metaclass=One): pass
        """,
        "(getattr(A, 'z', 0), isinstance(A, Two), A() == 8)",
        ["A.__class__ = Two"],
    ),
    "descriptors": (
        """
        class D: pass
        class A: v = D()
        a = A()
        """,
        "type(a.v).__name__",
        ["D.__get__ = lambda s, o, t=None: 4", "vars(a)['v'] = 'own'", "D.__set__ = lambda s, o, v: None",
         "del D.__set__", "D.__delete__ = lambda s, o: None", "del D.__get__"],
    ),
    "descriptors that only set": (
        """
        class D:
            def __set__(self, obj, value): obj.k = value * 2
        class A: v = D()
        a = A()
        def put(value):
            a.v = value
            return a.k
        """,
        "put(3)",
        ["D.__set__ = lambda s, o, v: setattr(o, 'k', v * 3)", "del A.v; A.k = 1", "A.v = D()"],
    ),
    "abstract methods": (
        "class A: pass",
        "type(A()).__name__",
        ["A.__abstractmethods__ = frozenset({'m'})", "A.__abstractmethods__ = frozenset()"],
    ),
    "callable": (
        "import enum\nclass E(enum.Enum):\n    A = 1\nclass I(int): pass\nparts = E.A, I(1)",
        "[callable(part) for part in parts]",
        ["E.__call__ = lambda self: 1", "I.__call__ = lambda self: 1", "del E.__call__"],
    ),
    "subclass of int": (
        "class I(int): pass\ni = I(3)",
        "(i < 4, i != 3, abs(i), float(i), int(i), divmod(i, 2), {i: 1}.get(3), i and 7, max(i, 2) == 3, f'{[i]}')",
        [f"I.__{name}__ = lambda self, *rest: {value}" for name, value in
         [("abs", 9), ("ne", 5), ("lt", 6), ("float", 2.5), ("divmod", 8), ("hash", 4), ("repr", "'R'")]]
        + ["I.__int__ = lambda self: 11", "I.__bool__ = lambda self: False", "del I.__abs__, I.__lt__"],
    ),
    "subclass of int with a tensor": (
        "class I(int): pass\ni = I(3)",
        "i * x",
        ["I.__mul__ = lambda self, other: other + 50", "del I.__mul__"],
    ),
    "subclass of str": (
        "class S(str): pass\ns = S('ab')",
        "({s: 1}.get('ab'), s < 'b', 1 if s else 2, s != 'ab', s == 'ab')",
        ["S.__hash__ = lambda self: 5", "S.__lt__ = lambda self, other: 6", "S.__bool__ = lambda self: False",
         "S.__ne__ = lambda self, other: 7", "S.__eq__ = lambda self, other: 8"],
    ),
    "equality of containers": (
        """
        import collections
        N = collections.namedtuple("N", "u v")
        class L(list): pass
        class S(set): pass
        n, l, s = N(1, 2), L([1]), S([1])
        """,
        "(n == (1, 2), l == [1], l != [1], s == {1})",
        ["N.__eq__ = lambda self, other: 5", "L.__ne__ = lambda self, other: 6", "S.__eq__ = lambda self, other: 7",
         "del N.__eq__"],
    ),
    "mappings merged": (
        "class D(dict): pass\nd = D(a=1)",
        "sorted({**d}.items())",
        ["D.keys = lambda self: ['z']", "D.__getitem__ = lambda self, key: 8", "D.__iter__ = lambda self: iter('y')"],
    ),
    "metaclass before class": (
        "class M(type):\n    def __getitem__(cls, key): return key\nclass A(metaclass=M): pass",
        "A[1]",
        ["A.__class_getitem__ = classmethod(lambda cls, key: 9)", "M.__getitem__ = lambda cls, key: 2",
         "del M.__getitem__"],
    ),
    "iterators that are none": (
        "class I:\n    def __iter__(self): return J()\nclass J:\n    def __next__(self): return 4\ni = I()",
        "next(iter(i))",
        ["del J.__next__", "J.__next__ = lambda self: 5", "I.__iter__ = lambda self: [1]"],
    ),
    "results of a wrong type": (
        "class A: pass\na = A()",
        "[attempt(f) for f in (hash, str, repr, int, float, iter, len, lambda a: format(a, ''), lambda a: type(A()))]",
        [f"A.__{name}__ = lambda *args: ('x',)" for name in
         ("hash", "str", "repr", "format", "int", "float", "iter", "len", "init")]
        + ["A.__hash__ = lambda self: -1", "A.__hash__ = lambda self: 2**70"],
    ),
    "special methods that are no functions": (
        """
        import functools
        def seen(*args): return [type(arg).__name__ for arg in args]
        class Callable:
            def __call__(self, *args): return seen(*args)
        class A:
            __neg__ = __add__ = __getitem__ = __ne__ = seen
        a = A()
        """,
        "(-a, a + 1, a[1], a != 1)",
        [f"A.__neg__ = A.__add__ = A.__getitem__ = A.__ne__ = {value}" for value in
         ("Callable()", "functools.partial(seen, 7)", "staticmethod(seen)", "classmethod(seen)", "seen.__call__")],
    ),
    "new and init": (
        "class A:\n    def __init__(self): self.v = 1",
        "A().v",
        ["A.__new__ = len", "A.__new__ = ''.join", "A.__new__ = object.__new__", "A.__init__ = staticmethod(len)"],
    ),
    "metaclass that says who is an instance": (
        "class M(type): pass\nclass A(metaclass=M):\n    v = 0\n    def __new__(cls): return object.__new__(cls)\n"
        "    def __init__(self): self.v = 1",
        "A().v",
        ["M.__instancecheck__ = lambda cls, obj: False", "M.__call__ = lambda cls: A", "M.__call__ = dict",
         "del M.__call__"],
    ),
}  # fmt: skip


def attempt(function, of):
    try:
        return function(of)
    except TypeError as error:
        return str(error)


def registered(name, setup, expression, changes):
    """Make it a case."""

    def make():
        namespace = {"attempt": lambda function: shown(attempt(function, namespace["a"]))}
        exec(textwrap.dedent(setup), namespace)
        exec(f"def program(x):\n    return {expression}", namespace)
        return namespace["program"], [lambda change=change: exec(change, namespace) for change in changes]

    make.__name__ = name.replace(" ", "_")
    case(make)


def shown(result):
    """A result without addresses."""
    return result if isinstance(result, (int, float, str)) and "0x" not in str(result) else type(result).__name__


for name, (setup, expression, changes) in FACTS.items():
    registered(name, setup, expression, changes)
