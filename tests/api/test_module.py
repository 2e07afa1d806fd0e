"""Compiled modules: modules over the same state as the original, under the same names."""

import copy
import gc
import inspect
import io
import pickle
import weakref

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

import dynacore


class Net(nn.Module):
    """A net."""

    kind = "net"

    def __init__(self, width=3):
        super().__init__()
        self.lin = nn.Linear(3, width)
        self.norm = nn.BatchNorm1d(width)
        self.register_buffer("steps", torch.zeros(()))
        self.scale = 1.0

    def forward(self, x, *, shift=0.0):
        """Goes forward."""
        return self.norm(self.lin(x)) * self.scale + shift

    def twice(self, x):
        return self(self(x))

    @property
    def doubled(self):
        return self.scale * 2


class Pair:
    """The original and the compiled module, with what their graphs' backend saw."""

    def __init__(self, model):
        self.graphs = 0
        self.model = model
        self.compiled = dynacore.compile(model, backend=self.backend)

    def backend(self, gm, inputs):
        self.graphs += 1
        return gm.forward


@pytest.fixture
def pair():
    torch.manual_seed(0)
    return Pair(Net())


X = torch.arange(12.0).reshape(4, 3) / 12


def test_it_is_a_module_of_the_same_class_and_names(pair):
    model, compiled = pair.model, pair.compiled
    assert compiled is not model
    assert isinstance(compiled, Net)
    assert compiled.__class__ is Net
    assert type(compiled).__name__ == "Net"
    assert type(compiled).__doc__ == "A net."
    assert repr(compiled) == repr(model)
    assert list(compiled.state_dict()) == list(model.state_dict())
    for names in ("named_parameters", "named_buffers", "named_children"):
        ours, theirs = dict(getattr(compiled, names)()), dict(getattr(model, names)())
        assert list(ours) == list(theirs)
        assert all(ours[name] is theirs[name] for name in ours)
    assert [name for name, _ in compiled.named_modules()] == [name for name, _ in model.named_modules()]
    assert compiled._orig_mod is model
    assert inspect.signature(compiled.forward) == inspect.signature(model.forward)
    assert set(dir(model)) <= set(dir(compiled))


def test_calls_are_compiled_and_equal(pair):
    model = copy.deepcopy(pair.model)
    for shift in (0.0, 0.0):
        torch.testing.assert_close(pair.compiled(X, shift=shift), model(X, shift=shift))
    assert pair.graphs == 1
    torch.testing.assert_close(pair.compiled.forward(X), model.forward(X))
    assert pair.graphs == 2
    torch.testing.assert_close(pair.compiled.twice(X), model.twice(X))
    torch.testing.assert_close(dict(pair.compiled.state_dict()), dict(model.state_dict()))


def test_the_original_stays_uncompiled(pair):
    pair.model(X)
    assert pair.graphs == 0


def test_training_through_it(pair):
    model = copy.deepcopy(pair.model)
    for module in (model, pair.compiled):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            module(X).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(dict(pair.compiled.state_dict()), dict(model.state_dict()))


def test_attributes_are_the_originals(pair):
    model, compiled = pair.model, pair.compiled
    compiled.scale = 4.0
    assert model.scale == compiled.scale == 4.0
    assert compiled.doubled == 8.0
    model.extra = 1
    assert compiled.extra == 1
    del compiled.extra
    assert not hasattr(model, "extra")
    weight = nn.Parameter(torch.zeros(3, 3))
    compiled.lin.weight = weight
    assert model.lin.weight is weight
    compiled.other = nn.Linear(1, 1)
    assert "other" in dict(model.named_children())
    compiled.register_buffer("mean", torch.ones(1))
    assert model.mean is compiled.mean
    assert torch.equal(compiled(X), model(X))
    for wrong in (model, compiled):
        with pytest.raises(AttributeError, match="'Net' object has no attribute 'missing'"):
            _ = wrong.missing


def test_modes_devices_and_dtypes(pair):
    model, compiled = pair.model, pair.compiled
    assert compiled.eval() is compiled
    assert not model.training and not model.norm.training and not compiled.training
    assert torch.equal(compiled(X), model(X))
    model.train()
    assert compiled.training
    assert compiled.double() is compiled
    assert model.lin.weight.dtype == torch.float64
    assert torch.equal(compiled.eval()(X.double()), model(X.double()))
    compiled.requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_state_dicts_go_both_ways(pair):
    other = Net()
    pair.compiled.load_state_dict(other.state_dict())
    assert torch.equal(pair.model.lin.weight, other.lin.weight)
    other.load_state_dict(pair.compiled.state_dict())


@pytest.mark.parametrize("side", ["model", "compiled"])
def test_hooks_on_either_side(pair, side):
    seen = []
    owner = getattr(pair, side)
    pair.compiled(X)
    handles = [
        owner.register_forward_pre_hook(lambda module, args: seen.append(("pre", module))),
        owner.register_forward_hook(lambda module, args, out: out + 1),
        owner.register_full_backward_hook(lambda module, grad_in, grad_out: seen.append(("back", module))),
    ]
    expected = pair.model(X)
    expected.sum().backward()
    assert seen == [("pre", pair.model), ("back", pair.model)]
    seen.clear()
    result = pair.compiled(X)
    result.sum().backward()
    assert torch.equal(result, expected)
    assert seen == [("pre", pair.model), ("back", pair.model)]
    for handle in handles:
        handle.remove()
    torch.testing.assert_close(pair.compiled(X), expected - 1)


@pytest.mark.parametrize("side", ["model", "compiled"])
def test_forward_replaced_on_either_side(pair, side):
    pair.compiled(X)
    setattr(getattr(pair, side), "forward", lambda x: x * 5)
    assert torch.equal(pair.compiled(X), X * 5)
    assert torch.equal(pair.compiled.forward(X), X * 5)
    delattr(getattr(pair, side), "forward")
    assert torch.equal(pair.compiled.eval()(X), pair.model(X))


def test_self_in_user_code_is_the_original():
    class Selfish(nn.Module):
        def forward(self, x):
            return x, self, type(self), super().__repr__()

    model = Selfish()
    compiled = dynacore.compile(model, backend="eager")
    assert compiled(X)[1:] == (model, Selfish, repr(model))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, copy.copy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_of_the_compiled_one_are_compiled(duplicate):
    model = Net().eval()
    compiled = dynacore.compile(model, backend="eager")
    again = duplicate(compiled)
    assert isinstance(again, Net)
    assert again._orig_mod is not model
    assert again._dynacore_wrap == compiled._dynacore_wrap
    assert torch.equal(again(X), model(X))
    again.scale = 5.0
    assert model.scale == 1.0
    assert torch.equal(again(X), model(X) * 5)


def test_copies_and_pickles_of_the_original_know_nothing(pair):
    for again in (copy.deepcopy(pair.model), pickle.loads(pickle.dumps(pair.model))):
        assert type(again) is Net
        assert vars(again).keys() == vars(pair.model).keys()
    buffer = io.BytesIO()
    torch.save(pair.model, buffer)
    buffer.seek(0)
    assert type(torch.load(buffer, weights_only=False)) is Net


def test_a_model_that_holds_its_compiled_self(pair):
    vars(pair.model)["fast"] = pair.compiled
    again = copy.deepcopy(pair.model)
    assert again.fast._orig_mod is again


def test_as_a_part_of_another_module(pair):
    whole = nn.Sequential(pair.compiled, nn.ReLU())
    plain = nn.Sequential(pair.model, nn.ReLU())
    assert list(whole.state_dict()) == list(plain.state_dict())
    whole.eval()
    assert torch.equal(whole(X), plain(X))
    assert pair.graphs == 1
    torch.testing.assert_close(dynacore.compile(whole, backend="eager")(X), plain(X))


def test_containers_keep_their_protocols():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    compiled = dynacore.compile(model, backend="eager")
    assert len(compiled) == 3
    assert compiled[0] is model[0]
    assert type(compiled[:2]) is nn.Sequential
    assert list(compiled) == list(model)
    compiled.append(nn.Tanh())
    assert torch.equal(compiled(X), model(X))


def test_making_another_of_the_same_type(pair):
    other = type(pair.compiled)(width=5)
    assert type(other) is Net
    assert other.lin.out_features == 5
    assert type(pair.compiled.__class__(2)) is Net


def test_weights_reparametrised_after_compilation(pair):
    pair.compiled(X)
    parametrizations.weight_norm(pair.compiled.lin)
    assert torch.equal(pair.compiled.eval()(X), pair.model(X))
    linear = nn.Linear(3, 3)
    compiled = dynacore.compile(linear, backend="eager")
    compiled(X)
    parametrize.register_parametrization(compiled, "weight", nn.Tanh())
    assert parametrize.is_parametrized(linear)
    assert compiled.__class__ is type(linear)
    assert torch.equal(compiled.weight, linear.weight)
    assert torch.equal(compiled(X), linear(X))
    parametrize.remove_parametrizations(linear, "weight")
    assert torch.equal(compiled(X), linear(X))


def test_classes_with_slots_metaclasses_and_subclass_hooks():
    made = []

    class Meta(type):
        def __init__(cls, *args, **kwargs):
            super().__init__(*args)
            made.append(cls.__name__)

    class Odd(nn.Module, metaclass=Meta):
        __slots__ = ("slotted",)

        def __init_subclass__(cls, *, needed, **kwargs):
            made.append("subclass")

        def forward(self, x):
            return x + self.slotted

    model = Odd()
    compiled = dynacore.compile(model, backend="eager")
    compiled.slotted = 2.0
    assert model.slotted == compiled.slotted == 2.0
    assert torch.equal(compiled(X), X + 2)
    assert made == ["Odd"]


def test_abstract_classes():
    import abc

    class Base(nn.Module, abc.ABC):
        @abc.abstractmethod
        def forward(self, x): ...

    class Real(Base):
        def forward(self, x):
            return x + 1

    compiled = dynacore.compile(Real(), backend="eager")
    assert isinstance(compiled, Base)
    assert not isinstance(Real(), type(compiled))
    assert torch.equal(compiled(X), X + 1)


def test_graph_modules():
    traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 2), nn.ReLU()))
    compiled = dynacore.compile(traced, backend="eager")
    assert isinstance(compiled, torch.fx.GraphModule)
    assert compiled.code == traced.code
    assert torch.equal(compiled(X), traced(X))
    assert torch.equal(copy.deepcopy(compiled)(X), traced(X))


def test_a_module_that_is_a_dict_too_is_called_compiled():
    class Both(nn.Module, dict):
        def forward(self, x):
            return x + self["k"]

    model = Both()
    model["k"] = 3.0
    assert torch.equal(dynacore.compile(model, backend="eager")(X), X + 3)


def test_compiling_a_compiled_module(pair):
    assert dynacore.compile(pair.compiled, backend=pair.backend) is pair.compiled
    other = dynacore.compile(pair.compiled, backend="eager")
    assert other._orig_mod is pair.model
    other(X)
    assert pair.graphs == 0
    off = dynacore.disable(pair.model)
    assert dynacore.compile(off, backend=pair.backend) is off


def test_it_lets_its_model_go():
    model = Net()
    compiled = dynacore.compile(model, backend="eager")
    compiled(X)
    gone = [weakref.ref(model), weakref.ref(model.lin.weight), weakref.ref(compiled)]
    del model, compiled
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3


def test_its_death_leaves_the_model_alive(pair):
    model = pair.model
    expected = copy.deepcopy(model)(X)
    del pair.compiled
    gc.collect()
    assert torch.equal(model(X), expected)
    assert list(model.state_dict())
