"""Programs, and changes to what surrounds them: one call after each of them must see it."""

import builtins
import gc
import types
import weakref

import torch

CASES = {}


def case(make):
    """Register a program: `make()` gives a function of a tensor, and changes to its surroundings, in their order."""
    CASES[make.__name__] = make
    return make


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
        # Not `module.scale`: 3.14's specialised instruction doesn't see what the module's class gains later.
        return x * obj.scale + getattr(module, "scale")

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
def module_reloaded():
    module = types.ModuleType("reloaded")
    exec("def helper(x):\n    return x * 2.0", vars(module))

    def program(x):
        return module.helper(x)

    def reload(text):
        vars(module).clear()
        exec(text, vars(module))

    return program, [
        lambda: exec("def helper(x):\n    return x * 4.0", vars(module)),
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
