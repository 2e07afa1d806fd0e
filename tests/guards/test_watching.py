"""Programs whose surroundings change between two calls: a compiled one must see what plain Python sees.

Whether a fact is watched, polled or looked up is the interpreter's affair; every case here runs warm first.
"""

import builtins
import gc
import importlib
import sys
import threading
import types
import weakref

import pytest
import torch

import dynacore
import dynacore.capture
from dynacore import _C

X = torch.arange(3.0)
CASES = {}


def case(make):
    """Register a program: `make()` gives a function of a tensor, and changes to its surroundings, in their order."""
    CASES[make.__name__] = make
    return make


def outcome(function, x):
    """What a call gives, comparably."""
    try:
        result = function(x)
    except Exception as error:
        return type(error), str(error)
    return result.tolist() if isinstance(result, torch.Tensor) else result


def same_as_plain(compiled, plain):
    assert outcome(compiled, X) == outcome(plain, X)


class Config:
    def __init__(self):
        self.scale = 2.0
        self.names = ["a", "b"]
        self.table = {"a": 1.0, "b": 2.0}


@case
def attribute_of_an_instance():
    config = Config()

    def program(x):
        return x * config.scale

    return program, [
        lambda: setattr(config, "scale", 3.0),
        lambda: config.__dict__.update(scale=4.0),
        lambda: object.__setattr__(config, "scale", 5.0),
        lambda: vars(config).__setitem__("scale", 6.0),
        lambda: setattr(config, "__dict__", {"scale": 7.0}),
        lambda: setattr(config, "scale", 8.0),
        lambda: delattr(config, "scale"),
        lambda: setattr(config, "scale", 9),
        lambda: config.__dict__.clear(),
    ]


def warm_writer():
    """Writes an attribute by an instruction that the interpreter has specialised."""

    def write(obj, value):
        obj.scale = value

    other = Config()
    for step in range(200):
        write(other, float(step))
    return write


@case
def attribute_written_by_specialised_code():
    config, write = Config(), warm_writer()

    def program(x):
        return x * config.scale

    return program, [lambda value=value: write(config, value) for value in (3.0, 4.0, 4, 5.0)]


@case
def class_attributes():
    class Base:
        scale = 2.0

        def method(self, x):
            return x * self.scale

    class Derived(Base):
        pass

    obj = Derived()

    def program(x):
        return obj.method(x)

    def other_method(self, x):
        return x - self.scale

    return program, [
        lambda: setattr(Base, "scale", 3.0),
        lambda: setattr(Derived, "scale", 4.0),
        lambda: setattr(obj, "scale", 5.0),
        lambda: delattr(obj, "scale"),
        lambda: delattr(Derived, "scale"),
        lambda: setattr(Base, "method", other_method),
        lambda: setattr(obj, "method", lambda x: x + 100),
        lambda: delattr(obj, "method"),
        lambda: setattr(Derived, "method", lambda self, x: x + 200),
        lambda: type.__setattr__(Derived, "method", lambda self, x: x + 300),
        lambda: delattr(Derived, "method"),
        lambda: delattr(Base, "method"),
    ]


@case
def bases_and_classes():
    class First:
        scale = 2.0

    class Second:
        scale = 3.0

    class Middle(First):
        pass

    class Derived(Middle):
        pass

    class Other:
        scale = 10.0

    obj = Derived()

    def program(x):
        return x * obj.scale

    return program, [
        lambda: setattr(Middle, "__bases__", (Second,)),
        lambda: setattr(Middle, "__bases__", (First, Second)),
        lambda: setattr(First, "scale", 4.0),
        lambda: setattr(obj, "__class__", Other),
        lambda: setattr(Other, "scale", 11.0),
        lambda: setattr(obj, "__class__", Derived),
    ]


@case
def getattr_hooks_added_later():
    class Plain:
        pass

    obj = Plain()
    obj.scale = 2.0

    def program(x):
        return x * obj.scale

    return program, [
        lambda: setattr(Plain, "__getattr__", lambda self, name: 5.0),
        lambda: delattr(obj, "scale"),
        lambda: setattr(Plain, "__getattr__", lambda self, name: 6.0),
        lambda: setattr(Plain, "scale", property(lambda self: 7.0)),
        lambda: setattr(Plain, "__getattribute__", lambda self, name: 8.0),
    ]


@case
def class_attributes_behind_an_instance():
    class Class:
        scale = 2.0

    class Module(types.ModuleType):
        scale = 2.0

    obj, module = Class(), Module("module")
    obj.scale = module.scale = 3.0

    def program(x):
        return x * obj.scale + module.scale

    return program, [
        lambda: setattr(Class, "scale", 5.0),
        lambda: setattr(Class, "scale", property(lambda self: 6.0)),
        lambda: setattr(Module, "scale", property(lambda self: 7.0)),
        lambda: delattr(Class, "scale"),
    ]


@case
def metaclass_attributes():
    class Meta(type):
        scale = 2.0

    class Class(metaclass=Meta):
        pass

    def program(x):
        return x * Class.scale

    return program, [
        lambda: setattr(Meta, "scale", 3.0),
        lambda: setattr(Class, "scale", 4.0),
        lambda: setattr(Meta, "scale", property(lambda cls: 5.0)),
        lambda: delattr(Meta, "scale"),
    ]


@case
def metaclass_with_its_own_mro():
    class Left:
        scale = 2.0

    class Right:
        scale = 3.0

    class Meta(type):
        def mro(cls):
            return [cls, *ORDER, object]

    ORDER = [Left]

    class Class(Left, Right, metaclass=Meta):
        pass

    obj = Class()

    def program(x):
        return x * obj.scale

    def reorder():
        ORDER[:] = [Right]
        Class.__bases__ = (Right, Left)

    return program, [reorder, lambda: setattr(Right, "scale", 4.0)]


@case
def globals_and_builtins():
    namespace = {"scale": 2.0, "__builtins__": dict(vars(builtins)), "len": lambda x: 10}
    exec("def program(x):\n    return x * scale + len([1, 2])", namespace)

    return namespace["program"], [
        lambda: namespace.update(scale=3.0),
        lambda: exec("scale = 4.0", namespace),
        lambda: exec("def f():\n global scale\n scale = 5.0\nfor _ in range(100): f()", namespace),
        lambda: namespace.pop("len"),  # the builtin shows through
        lambda: namespace["__builtins__"].update(len=lambda x: 20),
        lambda: namespace.setdefault("len", lambda x: 30),
        lambda: namespace.pop("scale"),
    ]


@case
def functions():
    def helper(x, a=2.0, *, b=1.0):
        return x * a + b

    def other(x, a=2.0, *, b=1.0):
        return x - a - b

    def program(x):
        return helper(x)

    return program, [
        lambda: setattr(helper, "__defaults__", (3.0,)),
        lambda: setattr(helper, "__kwdefaults__", {"b": 5.0}),
        lambda: helper.__kwdefaults__.update(b=6.0),
        lambda: setattr(helper, "__code__", other.__code__),
        lambda: setattr(helper, "__defaults__", None),
    ]


@case
def closures():
    def make(scale):
        def helper(x):
            return x * scale

        return helper

    helper = make(2.0)

    def program(x):
        return helper(x)

    cell = helper.__closure__[0]

    def rebind():
        nonlocal helper
        helper = make(4.0)

    return program, [
        lambda: setattr(cell, "cell_contents", 3.0),
        lambda: setattr(cell, "cell_contents", 3),
        rebind,
        lambda: cell.__delattr__("cell_contents"),
        lambda: helper.__closure__[0].__delattr__("cell_contents"),
    ]


@case
def containers():
    config = Config()

    class Names(dict):
        def __missing__(self, key):
            return 50.0

    config.special = Names(a=1.0)

    def program(x):
        for name in config.names:
            x = x * config.table[name]
        return x + config.special["a"]

    return program, [
        lambda: config.names.append("a"),
        lambda: config.names.__setitem__(0, "b"),
        lambda: config.table.update(b=5.0),
        lambda: config.special.pop("a"),
        lambda: config.special.update(a=4.0),
        lambda: config.table.pop("b"),
        lambda: config.names.clear(),
    ]


@case
def slots_and_named_tuples():
    class Slotted:
        __slots__ = ("scale",)

    obj = Slotted()
    obj.scale = 2.0

    def program(x):
        return x * obj.scale

    return program, [
        lambda: setattr(obj, "scale", 3.0),
        lambda: delattr(obj, "scale"),
        lambda: setattr(obj, "scale", 4.0),
        lambda: setattr(Slotted, "scale", 9.0),
    ]


@case
def names_of_functions_and_classes():
    class Class:
        pass

    def helper():
        pass

    def program(x):
        return x + len(Class.__name__) + len(helper.__name__) * 10 + len(helper.__qualname__) * 100

    return program, [
        lambda: setattr(Class, "__name__", "Another"),
        lambda: setattr(helper, "__name__", "another"),
        lambda: setattr(helper, "__qualname__", "x"),
    ]


@case
def modules():
    torch.manual_seed(0)

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)
            self.register_buffer("shift", torch.ones(3))
            self.scale = 2.0

        def forward(self, x):
            return self.linear(x) * self.scale + self.shift

    model = Layer()
    program = model.forward

    def with_bias(value):
        model.linear.bias = torch.nn.Parameter(torch.full((3,), value))

    def replace_data():
        model.linear.weight.data = torch.eye(3)

    hooks = []
    return lambda x: program(x).detach(), [
        lambda: setattr(model, "scale", 3.0),
        lambda: with_bias(1.0),
        replace_data,
        lambda: model.linear.weight.data.mul_(2.0),
        lambda: model.linear.double().float(),
        lambda: model.linear.weight.requires_grad_(False),
        lambda: setattr(model, "shift", torch.zeros(3)),
        lambda: setattr(model, "linear", torch.nn.Linear(3, 3)),
        lambda: hooks.append(model.linear.register_forward_hook(lambda m, args, out: out + 1)),
        lambda: hooks.pop().remove(),
        lambda: model.load_state_dict({k: torch.zeros_like(v) for k, v in model.state_dict().items()}),
        lambda: model.linear._parameters.update(bias=None),
        lambda: delattr(model, "linear"),
    ]


@case
def module_reloaded(name="dynacore_test_reloaded"):
    module = types.ModuleType(name)
    source = ["def helper(x):\n    return x * 2.0"]

    class Loader:
        def create_module(self, spec):
            return None

        def exec_module(self, module):
            exec(source[0], vars(module))

    module.__spec__ = importlib.machinery.ModuleSpec(name, Loader())
    module.__loader__ = module.__spec__.loader
    exec(source[0], vars(module))

    def program(x):
        return module.helper(x)

    def reload(text):
        source[0] = text
        vars(module).clear()
        exec(text, vars(module))

    return program, [
        lambda: reload("def helper(x):\n    return x * 3.0"),
        lambda: setattr(module, "helper", lambda x: x - 1),
        lambda: delattr(module, "helper"),
    ]


@case
def objects_at_the_same_address():
    holder = Config()
    holder.inner = Config()

    def program(x):
        return x * holder.inner.scale

    def replace(value):
        address = id(holder.inner)
        for _ in range(200):
            holder.inner = None
            holder.inner = Config()
            holder.inner.scale = value
            if id(holder.inner) == address:
                break

    return program, [lambda value=value: replace(value) for value in (3.0, 4.0, 5.0)]


@case
def weak_references():
    target = [Config()]
    reference = weakref.ref(target[0])

    def program(x):
        found = reference()
        return x if found is None else x * found.scale

    def end():
        target.clear()
        gc.collect()

    return program, [lambda: setattr(target[0], "scale", 3.0), end]


@pytest.fixture(params=["watched", "polled"])
def watching(request):
    """With what the interpreter's watchers see, and without them."""
    found = _C.watchable()
    if request.param == "watched" and not any(found):
        pytest.skip("this interpreter has no watchers")
    if request.param == "polled":
        _C.set_watchable((False,) * 4)
    yield request.param
    _C.set_watchable(found)


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
@pytest.mark.parametrize("warm", [1, 5])
def test_a_change_is_seen(make, warm, watching):
    program, changes = make()
    compiled = dynacore.compile(program, backend="eager")
    for change in (lambda: None, *changes):
        change()
        for _ in range(warm):
            same_as_plain(compiled, program)


def test_changes_while_the_entry_runs(watching):
    """The graph's own effects, a hook and a backend change what the entry relied on; the next call sees it."""
    config = Config()
    model = torch.nn.Linear(3, 3)
    model.register_forward_hook(lambda m, args, out: setattr(config, "scale", config.scale + 1.0))

    def program(x):
        config.seen = config.scale
        return model(x).detach() * 0 + config.scale

    compiled = dynacore.compile(program, backend="eager")
    values = []
    for function in (program, compiled):
        config.scale = 1.0
        values.append([function(X)[0].item() for _ in range(12)])
    assert values[0] == values[1]


def test_changes_by_another_thread(watching):
    config = Config()

    def program(x):
        return x * 0 + config.scale

    compiled = dynacore.compile(program, backend="eager")
    compiled(X)
    stop = threading.Event()

    def write():
        while not stop.is_set():
            config.scale = 2.0
            config.other = 1
            config.scale = 3.0

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert {compiled(X)[0].item() for _ in range(300)} <= {2.0, 3.0}
    finally:
        stop.set()
        thread.join()
    for value in (5.0, 6.0, 7.0):
        config.scale = value
        assert compiled(X)[0].item() == value


def entries(compiled):
    return compiled.point.entries


@pytest.mark.parametrize("kind", ["attribute", "global", "class", "dict"])
def test_a_value_that_toggles_makes_no_storm(kind, watching):
    class Holder:
        pass

    namespace = {"flag": True}
    exec("def of_globals(x):\n    return x + 1 if flag else x - 1", namespace)
    holder = Holder()

    def program(x):
        return x + 1 if (namespace["flag"] if kind == "dict" else holder.flag) else x - 1

    def set_flag(value):
        if kind == "attribute":
            holder.flag = value
        elif kind == "class":
            Holder.flag = value
        else:
            namespace["flag"] = value

    set_flag(True)
    function = namespace["of_globals"] if kind == "global" else program
    compiled = dynacore.compile(function, backend="eager")
    for step in range(300):
        set_flag(step % 2 == 0)
        same_as_plain(compiled, function)
    assert len(entries(compiled)) == 2
    assert sum(entry.guards.stats["recordings"] for entry in entries(compiled)) < 40


def test_a_counter_on_a_module_costs_no_walk(watching):
    model = torch.nn.Linear(3, 3).eval()
    model.steps = 0

    def program(x):
        return model(x)

    compiled = dynacore.compile(program, backend="eager")
    compiled(X)
    for _ in range(200):
        model.steps += 1
        compiled(X)
    (entry,) = entries(compiled)
    stats = entry.guards.stats
    assert stats["recordings"] < len(entry.guards.tree[4]) + 8


def test_dropped_models_leave_nothing():
    def make():
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
        compiled = dynacore.compile(model, backend="eager")
        compiled(X)
        compiled(X)
        return weakref.ref(model)

    gone = [make() for _ in range(3)]
    dynacore.reset()
    gc.collect()
    before = _C.watched(), len(gc.get_objects())
    for _ in range(20):
        gone.append(make())
    dynacore.reset()
    gc.collect()
    assert not any(reference() for reference in gone)
    after = _C.watched(), len(gc.get_objects())
    assert all(after[0][kind] <= before[0][kind] for kind in before[0])
    assert after[1] < before[1] + 500


def test_explain_says_how_facts_are_kept():
    config = Config()

    def program(x):
        return x * config.scale

    told = dynacore.explain(program)(X)
    how = {fact.how for fact in told.facts}
    assert how <= {"watched", "polled", "looked up"}
    assert ("watched" in how) == any(_C.watchable())
    assert "Of what is not an argument: " in str(told)
    text = [str(fact) for fact in told.facts]
    assert any(line.endswith("cell_contents: polled (cell)") for line in text)
    if _C.watchable()[1]:
        assert any(line.endswith(".__dict__: watched (dict)") for line in text)
    assert sys.getrefcount(config) < 8
