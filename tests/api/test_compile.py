"""What can be compiled, and what the results look like from outside."""

import copy
import functools
import inspect
import pickle

import pytest
import torch

import dynacore
from dynacore import ArgumentError
from dynacore.marks import is_compiled


class Counting:
    """A backend that counts its graphs."""

    def __init__(self):
        self.graphs = 0

    def __call__(self, gm, inputs):
        self.graphs += 1
        return gm.forward


@pytest.fixture
def backend():
    return Counting()


@pytest.fixture
def compiled(backend):
    return functools.partial(dynacore.compile, backend=backend)


X = torch.arange(3.0)


def add(x, y=1.0, *rest, scale=2.0, **more):
    """Adds."""
    return (x + y) * scale


add.attribute = "kept"


def check(backend, compiled, plain, *args, **kwargs):
    """The compiled callable gives what the plain one gives, from one graph."""
    before = backend.graphs
    for _ in range(2):
        torch.testing.assert_close(compiled(*args, **kwargs), plain(*args, **kwargs))
    assert backend.graphs == before + 1


def test_function(backend, compiled):
    f = compiled(add)
    check(backend, f, add, X)
    assert f(X, 2.0, 3, scale=1.0, other=5).tolist() == [2, 3, 4]
    assert (f.__name__, f.__qualname__, f.__doc__, f.__module__) == ("add", "add", "Adds.", __name__)
    assert f.attribute == "kept"
    assert f.__wrapped__ is add
    assert inspect.signature(f) == inspect.signature(add)
    assert copy.deepcopy(f) is f


def test_wrong_arguments_raise_what_the_function_raises(compiled):
    f = compiled(lambda x, *, y: x)
    for args, kwargs in [((), {}), ((X, X), {}), ((X,), {"z": 1})]:
        with pytest.raises(TypeError) as plain:
            f.__wrapped__(*args, **kwargs)
        with pytest.raises(TypeError) as ours:
            f(*args, **kwargs)
        assert str(ours.value) == str(plain.value)


def test_decorators_with_and_without_arguments(backend, compiled):
    @dynacore.compile
    def bare(x):
        return x + 1

    @dynacore.compile()
    def empty(x):
        return x + 1

    @dynacore.compile(backend=backend)
    def with_backend(x):
        return x + 1

    assert all(map(is_compiled, (bare, empty, with_backend)))
    check(backend, with_backend, lambda x: x + 1, X)


class Methods:
    factor = 3.0

    def __init__(self, offset=1.0):
        self.offset = offset

    def plain(self, x):
        return x * self.factor + self.offset

    @staticmethod
    def static(x):
        return x - 1

    @classmethod
    def of_class(cls, x):
        return x * cls.factor

    def __call__(self, x, y=0.0):
        """Calls."""
        return x + self.offset + y


def test_bound_method(backend, compiled):
    one, other = Methods(), Methods(5.0)
    method = compiled(one.plain)
    check(backend, method, one.plain, X)
    assert method.__self__ is one
    one.offset = 7.0
    assert torch.equal(method(X), one.plain(X))
    assert torch.equal(compiled(other.plain)(X), other.plain(X))
    assert inspect.signature(method) == inspect.signature(one.plain)


def test_methods_compiled_in_a_class_body(backend, compiled):
    class Body:
        def __init__(self, k):
            self.k = k

        @dynacore.compile(backend=backend)
        def plain(self, x):
            return x * self.k

        @staticmethod
        @dynacore.compile(backend=backend)
        def static_inner(x):
            return x + 1

        @dynacore.compile(backend=backend)
        @staticmethod
        def static_outer(x):
            return x + 1

        @classmethod
        @dynacore.compile(backend=backend)
        def class_inner(cls, x):
            return x, cls

        @dynacore.compile(backend=backend)
        @classmethod
        def class_outer(cls, x):
            return x, cls

    body = Body(3)
    check(backend, body.plain, lambda x: x * 3, X)
    assert torch.equal(Body.plain(Body(4), X), X * 4)
    for owner in (body, Body):
        assert torch.equal(owner.static_inner(X), X + 1)
        assert torch.equal(owner.static_outer(X), X + 1)
        assert owner.class_inner(X) == (X, Body)
        assert owner.class_outer(X) == (X, Body)


def test_bound_class_method_and_static_method(backend, compiled):
    check(backend, compiled(Methods.of_class), Methods.of_class, X)
    check(backend, compiled(Methods.static), Methods.static, X)


def test_partial(backend, compiled):
    part = functools.partial(add, y=5.0, scale=1.0)
    f = compiled(part)
    check(backend, f, part, X)
    assert f(X, y=7.0).tolist() == [7, 8, 9]
    assert f.keywords == part.keywords
    assert inspect.signature(f) == inspect.signature(part)


def test_partial_of_a_module(backend, compiled):
    part = functools.partial(torch.nn.Linear(3, 2), X)
    check(backend, compiled(part), part)


def test_callable_object(backend, compiled):
    thing = Methods()
    f = compiled(thing)
    check(backend, f, thing, X)
    thing.offset = 9.0
    assert torch.equal(f(X, y=1.0), thing(X, y=1.0))
    assert (f.__name__, f.__doc__) == ("Methods", Methods.__doc__)
    assert inspect.signature(f) == inspect.signature(thing)
    assert "offset" not in vars(f)


@pytest.mark.parametrize(
    "function", [torch.sin, torch.Tensor.sin, torch.nn.functional.relu], ids=["sin", "Tensor.sin", "relu"]
)
def test_functions_written_in_c(backend, compiled, function):
    check(backend, compiled(function), function, X)


def test_functions_without_tensors(compiled):
    assert compiled(len)([1, 2]) == 2
    assert compiled("a-b".split)("-") == ["a", "b"]
    assert compiled(int.__add__)(1, 2) == 3


def test_compiling_twice(backend, compiled):
    f = compiled(add)
    assert compiled(f) is f
    other = Counting()
    g = dynacore.compile(f, backend=other)
    check(other, g, add, X)
    assert backend.graphs == 0
    check(backend, f, add, X)


def test_compiling_a_disabled_function_leaves_it_disabled(backend, compiled):
    f = dynacore.disable(add)
    assert compiled(f) is f


def test_disable_argument(compiled):
    assert dynacore.compile(add, disable=True) is add
    assert dynacore.compile(disable=True)(add) is add
    net = torch.nn.Linear(2, 2)
    assert dynacore.compile(net, disable=True) is net


def test_a_compiled_function_in_another(backend, compiled):
    inner = compiled(lambda x: x + 1)
    outer = compiled(lambda x: inner(x) * 2)
    check(backend, outer, lambda x: (x + 1) * 2, X)


@dynacore.compile(backend="eager")
def at_module_level(x):
    return x + 1


def test_pickling_by_name():
    assert pickle.loads(pickle.dumps(at_module_level)) is at_module_level


def test_a_class_is_compiled_in_place(backend, compiled):
    class Thing(Methods):
        def __call__(self, x, y=0.0):
            return super().__call__(x, y) * 2

    thing = Thing(2.0)
    plain = thing(X)
    assert compiled(Thing) is Thing
    method = vars(Thing)["__call__"]
    assert compiled(Thing) is Thing
    assert vars(Thing)["__call__"] is method
    check(backend, thing, lambda x: plain, X)
    assert torch.equal(Thing(3.0)(X), plain + 2)
    assert isinstance(thing, Thing)
    assert Thing.__name__ == "Thing"


def test_a_class_of_modules(backend, compiled):
    @compiled
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(3, 2)

        def forward(self, x):
            return self.lin(x)

    net = Net()
    check(backend, net, net.forward, X)
    assert list(net.state_dict()) == ["lin.weight", "lin.bias"]
    seen = []
    net.register_forward_hook(lambda module, args, out: seen.append(module))
    net(X)
    assert seen == [net]
    assert "__call__" not in vars(torch.nn.Module) or not is_compiled(vars(torch.nn.Module)["__call__"])


def test_a_class_whose_instances_cannot_be_called(compiled):
    class Plain:
        pass

    with pytest.raises(ArgumentError, match=r"instances of .*Plain.* can't be called"):
        compiled(Plain)


def test_reset_forgets_and_captures_again(backend, compiled):
    f = compiled(add)
    f(X)
    assert dynacore.stats.counters["graphs"] == 1
    dynacore.reset()
    assert not dynacore.stats.counters
    f(X)
    assert backend.graphs == 2


def test_what_was_compiled_is_freed(compiled):
    import gc
    import weakref

    thing = Methods()
    f = compiled(thing)
    f(X)
    gone = weakref.ref(thing), weakref.ref(f)
    del thing, f
    gc.collect()
    assert [ref() for ref in gone] == [None, None]
