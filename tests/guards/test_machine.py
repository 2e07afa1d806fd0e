"""A program whose surroundings are changed at random between its calls: never a stale result, no needless capture."""

import types

import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import dynacore
from dynacore import stats

SOURCE = """
import torch
import weakref

scale = 2
unused = 0

def helper(x, power=1, *, bias=0):
    return x * power + bias

def other_helper(x, power=1, *, bias=0):
    return x - power - bias

class Meta(type):
    tag = 1

class Special(dict):
    def __missing__(self, key):
        return 40

class Target:
    value = 2

class Base(metaclass=Meta):
    shift = 1
    unread = 0

class Other:
    shift = 8

class Thing(Base):
    __slots__ = ("slot",)

    def __init__(self):
        self.factor = 3
        self.unread_too = 0
        self.options = {"a": 1, "b": 2}
        self.parts = [1, 2]
        self.special = Special(a=1)
        self.target = Target()
        self.seen = weakref.ref(self.target)
        self.slot = 5

    def method(self, x):
        return x * self.factor + self.shift

class Twin(Thing):
    def method(self, x):
        return x - self.factor

def make(held):
    def inner(x):
        return x - held

    def rebind(value):
        nonlocal held
        held = value

    return inner, rebind

def program(thing, inner, x):
    y = helper(thing.method(x) * scale)
    for part in thing.parts:
        y = y + part
    y = inner(y) + thing.slot
    if isinstance(thing, Other):
        y = y + 1
    if hasattr(thing, "late"):
        y = y * thing.late
    y = y * type(thing).tag + thing.special["a"] + torch.zeros(1)
    try:
        text = len(thing)
    except TypeError as error:
        text = str(error)
    return y + thing.options["a"], len(thing.options), abs(-scale), text, y.requires_grad, y.dtype, behind(thing, y)

def behind(thing, y):
    target = thing.seen()
    return 0 if target is None else target.value
"""

NUMBERS = st.integers(-2, 3)
TEXTS = ("a", "c", "d")


def doubled(x, *args, **kwargs):
    return x * 2


class Surroundings(RuleBasedStateMachine):
    """Each rule changes one thing that a Python program can change; the invariant calls the program both ways."""

    def __init__(self):
        super().__init__()
        dynacore.reset()
        self.module = m = types.ModuleType("surroundings")
        exec(compile(SOURCE, "<surroundings>", "exec"), vars(m))
        self.codes = [m.helper.__code__, m.other_helper.__code__]
        self.thing = m.Thing()
        self.inner, self.rebind = m.make(7)
        self.x = torch.arange(3.0)
        self.compiled = dynacore.compile(m.program, backend="eager")
        self.grad = False
        self.relevant = True  # whether something that the program reads may have changed since its last call

    # -- what the program reads ----------------------------------------------------------------------------------------

    @rule(value=NUMBERS)
    def set_global(self, value):
        self.module.scale = value
        self.relevant = True

    @rule(shadow=st.booleans())
    def shadow_a_builtin(self, shadow):
        if shadow:
            self.module.abs = doubled
        else:
            vars(self.module).pop("abs", None)
        self.relevant = True

    @rule(value=NUMBERS, way=st.sampled_from(["setattr", "object", "dict", "update"]))
    def set_attribute(self, value, way):
        match way:
            case "setattr":
                self.thing.factor = value
            case "object":
                object.__setattr__(self.thing, "factor", value)
            case "dict":
                self.thing.__dict__["factor"] = value
            case "update":
                vars(self.thing).update(factor=value)
        self.relevant = True

    @rule(value=NUMBERS)
    def set_slot(self, value):
        self.thing.slot = value
        self.relevant = True

    @rule()
    def swap_dict(self):
        self.thing.__dict__ = dict(self.thing.__dict__)
        self.relevant = True

    @rule(value=NUMBERS, name=st.sampled_from(["Base", "Thing"]))
    def set_class_attribute(self, value, name):
        getattr(self.module, name).shift = value
        self.relevant = True

    @rule()
    def delete_class_attribute(self):
        if "shift" in vars(self.module.Thing):
            del self.module.Thing.shift
        self.relevant = True

    @rule(value=NUMBERS)
    def make_it_a_property(self, value):
        self.module.Thing.shift = property(lambda self: value)
        self.relevant = True

    @rule(shadow=st.booleans())
    def shadow_a_method(self, shadow):
        if shadow:
            self.thing.method = doubled
        else:
            vars(self.thing).pop("method", None)
        self.relevant = True

    @rule(late=st.sampled_from(["instance", "class", "getattr", "nowhere"]), value=NUMBERS)
    def give_it_late(self, late, value):
        vars(self.thing).pop("late", None)
        for name in ("late", "__getattr__"):
            if name in vars(self.module.Base):
                delattr(self.module.Base, name)
        match late:
            case "instance":
                self.thing.late = value
            case "class":
                self.module.Base.late = value
            case "getattr":
                self.module.Base.__getattr__ = lambda self, name: value
        self.relevant = True

    @rule(name=st.sampled_from(["Thing", "Twin"]))
    def set_class(self, name):
        self.thing.__class__ = getattr(self.module, name)
        self.relevant = True

    @rule(names=st.sampled_from([["Base"], ["Base", "Other"], ["Other", "Base"]]))
    def set_bases(self, names):
        self.module.Thing.__bases__ = tuple(getattr(self.module, name) for name in names)
        self.relevant = True

    @rule(code=st.integers(0, 1))
    def swap_code(self, code):
        self.module.helper.__code__ = self.codes[code]
        self.relevant = True

    @rule(power=NUMBERS, bias=NUMBERS)
    def set_defaults(self, power, bias):
        self.module.helper.__defaults__ = (power,)
        self.module.helper.__kwdefaults__ = {"bias": bias}
        self.relevant = True

    @rule(value=NUMBERS)
    def rebind_cell(self, value):
        self.rebind(value)
        self.relevant = True

    @rule(key=st.sampled_from(TEXTS), value=NUMBERS)
    def set_item(self, key, value):
        self.thing.options[key] = value
        self.relevant = True

    @rule(key=st.sampled_from(TEXTS[1:]))
    def delete_item(self, key):
        self.thing.options.pop(key, None)
        self.relevant = True

    @rule(items=st.lists(NUMBERS, max_size=3))
    def set_items(self, items):
        self.thing.parts[:] = items
        self.relevant = True

    @rule(way=st.sampled_from(["metaclass", "class", "property", "nowhere"]), value=NUMBERS)
    def set_metaclass_attribute(self, way, value):
        self.module.Meta.tag = 1  # a property would refuse what follows
        if "tag" in vars(self.module.Thing):
            del self.module.Thing.tag
        match way:
            case "metaclass":
                self.module.Meta.tag = value
            case "class":
                self.module.Thing.tag = value
            case "property":
                self.module.Meta.tag = property(lambda cls: value)
        self.relevant = True

    @rule(way=st.sampled_from(["set", "delete", "hook"]), value=NUMBERS)
    def change_a_dict_of_a_subclass(self, way, value):
        match way:
            case "set":
                self.thing.special["a"] = value
            case "delete":
                self.thing.special.pop("a", None)
            case "hook":
                self.module.Special.__missing__ = lambda self, key: value
        self.relevant = True

    @rule(end=st.booleans(), value=NUMBERS)
    def change_what_is_referred_to_weakly(self, end, value):
        if end:
            self.thing.target = None
        else:
            self.module.Target.value = value
        self.relevant = True

    @rule(name=st.sampled_from(["Thing", "Twin", "Other"]))
    def rename_the_class(self, name):
        type(self.thing).__name__ = name
        self.relevant = True

    @rule(factor=NUMBERS)
    def reload(self, factor):
        exec(f"def helper(x, power=1, *, bias=0):\n    return x * power * {factor} + bias", vars(self.module))
        self.relevant = True

    @rule(dtype=st.sampled_from([torch.float32, torch.float64]), grad=st.booleans(), needs=st.booleans())
    def change_tensors_and_modes(self, dtype, grad, needs):
        self.x = torch.arange(3.0, dtype=dtype, requires_grad=needs)
        self.grad = grad
        self.relevant = True

    @rule(dtype=st.sampled_from([torch.float32, torch.float64]))
    def set_default_dtype(self, dtype):
        torch.set_default_dtype(dtype)
        self.relevant = True

    def teardown(self):
        torch.set_default_dtype(torch.float32)

    @rule()
    def fresh_instance(self):
        self.thing = self.module.Thing()
        self.relevant = True

    # -- what it doesn't read ------------------------------------------------------------------------------------------

    @rule(value=NUMBERS, where=st.sampled_from(["global", "instance", "class", "function", "new"]))
    def change_what_is_not_read(self, value, where):
        match where:
            case "global":
                self.module.unused = value
            case "instance":
                self.thing.unread_too = value
            case "class":
                self.module.Base.unread = value
            case "function":
                self.module.other_helper.__defaults__ = (value,)
            case "new":
                setattr(self.module, f"name{value}", value)

    @rule()
    def nothing_changes(self):
        pass

    # -- the call ------------------------------------------------------------------------------------------------------

    @invariant()
    def calls_agree(self):
        with dynacore.config.patch(recompile_limit=64), torch.set_grad_enabled(self.grad):
            args = (self.thing, self.inner, self.x)
            expected = self.module.program(*args)
            before = stats.counters["entries"]
            result = self.compiled(*args)
            captured = stats.counters["entries"] - before
            assert torch.equal(result[0], expected[0])
            assert result[1:] == expected[1:]
            assert self.relevant or not captured, "captured anew though nothing that it read had changed"
            assert torch.equal(self.compiled(*args)[0], expected[0])
            assert stats.counters["entries"] - before == captured, "the entry made for this call doesn't hold for it"
        self.relevant = False


TestSurroundings = Surroundings.TestCase
TestSurroundings.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
