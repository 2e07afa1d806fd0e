"""One operation's arguments: as stand-ins for inference, and as nodes for the graph."""

from __future__ import annotations

from typing import Any

import torch

from ..objects.number_functions import ALWAYS, FINITE
from ..reasons import Break
from ..torch_types import device_types, is_plain
from ..values import Const, DictObj, Host, Known, ListObj, SliceObj, Tensor, TupleObj, Value
from . import ops

#: Python's types where torch takes them for dtypes
DTYPES = {float: torch.float64, int: torch.int64, bool: torch.bool, complex: torch.complex128}

#: operations whose result has the same metadata for every int or float operand, and which fail for none
OPEN_SCALARS = frozenset(
    "add sub mul truediv div true_divide rsub iadd isub imul itruediv eq ne lt le gt ge "
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ "
    "__iadd__ __isub__ __imul__ __itruediv__ "
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ add_ sub_ mul_ div_".split()
)
#: conditions under which a float may stay open (see `number_functions`); a random operation that raises isn't run again
PART, SHARE, NOT_NEGATIVE, POSITIVE = "0 < {0} < 1", "0 <= {0} <= 1", "0 <= {0} < inf", "0 < {0} < inf"


def open_floats() -> dict[str, dict[Any, str]]:
    """For each operation the arguments, by position and name, that may be any float that meets the condition.

    The result has the same metadata for all of them. Under None stand all arguments not named, and what is in them.
    """
    everywhere = OPEN_SCALARS | frozenset(
        "pow __pow__ __rpow__ pow_ float_power fmod remainder mod __mod__ floordiv floor_divide __floordiv__ "
        "clamp clip clamp_ clip_ clamp_min clamp_max masked_fill masked_fill_ where fill fill_ full full_like new_full "
        "tensor scalar_tensor lerp lerp_ addcmul addcmul_ addcdiv addcdiv_ "
        "layer_norm rms_norm linspace huber_loss smooth_l1_loss normalize addmm baddbmm addmv new_tensor _threshold "
        "leaky_relu elu celu softplus threshold hardtanh hardshrink softshrink nan_to_num clamp_min_ clamp_max_ "
        "addr addbmm index_add index_fill pad constant_pad_nd setitem __setitem__ copysign "
        "xlogy xlog1py special_xlogy special_xlog1py "
        "batch_norm instance_norm group_norm local_response_norm cosine_similarity cross_entropy "
        "triplet_margin_loss margin_ranking_loss hinge_embedding_loss cosine_embedding_loss multi_margin_loss "
        "gaussian_nll_loss poisson_nll_loss norm linalg_vector_norm renorm dist cdist pdist pairwise_distance "
        "lp_pool1d lp_pool2d quantile nanquantile logit isclose logspace histc "
        "_foreach_add _foreach_sub _foreach_mul _foreach_div _foreach_pow _foreach_lerp _foreach_addcmul "
        "_foreach_addcdiv _foreach_add_ _foreach_sub_ _foreach_mul_ _foreach_div_ _foreach_pow_ _foreach_lerp_ "
        "_foreach_addcmul_ _foreach_addcdiv_".split()
    )
    drop = "dropout dropout_ dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout"
    return {
        **{name: {None: ALWAYS} for name in everywhere},
        **{name: {1: PART, "p": PART} for name in drop.split()},
        "scaled_dot_product_attention": {4: PART, "dropout_p": PART, "scale": ALWAYS},
        "gumbel_softmax": {1: ALWAYS, "tau": ALWAYS},
        "native_dropout": {1: PART, "p": PART},
        "bernoulli": {1: SHARE, "p": SHARE},
        "bernoulli_": {1: SHARE, "p": SHARE},
        "exponential_": {1: POSITIVE, "lambd": POSITIVE},
        "normal_": {1: FINITE, "mean": FINITE, 2: NOT_NEGATIVE, "std": NOT_NEGATIVE},
        "normal": {0: FINITE, "mean": FINITE, 1: NOT_NEGATIVE, "std": NOT_NEGATIVE},
        "cauchy_": {1: FINITE, "median": FINITE, 2: POSITIVE, "sigma": POSITIVE},
        "log_normal_": {1: FINITE, "mean": FINITE, 2: POSITIVE, "std": POSITIVE},
        "geometric_": {1: PART, "p": PART},
    }


OPEN_FLOATS = open_floats()
#: two ends of a range, by place, name and default; any dtype has room for what lies between
ENDS = "-3e4 <= {0} <= {1} <= 3e4"
OPEN_RANGES = {
    "uniform_": ((1, "from", 0.0), (2, "to", 1.0)),
    "rrelu": ((1, "lower", 1 / 8), (2, "upper", 1 / 3)),
    "rrelu_": ((1, "lower", 1 / 8), (2, "upper", 1 / 3)),
}
PASSED_AS_THEY_ARE = (*device_types(), type(None), type(Ellipsis))


class Arguments:
    """The arguments of one call, seen from both sides.

    `args` and `kwargs` hold stand-ins; `for_fx()` gives the same structure with nodes. Scalars that only the running
    entry knows become inputs of the graph where they are plain operands, and constants elsewhere.
    """

    __slots__ = (
        "args", "before", "by_fake", "graph", "hosts", "kwargs", "kwvalues", "name", "open", "run", "target",
        "tensors", "values",
    )  # fmt: skip

    def __init__(self, graph: Any, target: Any, name: str, values: list[Value], kwvalues: dict[str, Value]):
        self.graph = graph
        self.target = self.run = target
        self.name = name
        self.values = values
        self.kwvalues = kwvalues
        self.tensors: list[Tensor] = []
        self.hosts: dict[int, Any] = {}  # id of an open number -> the constant that it is taken for
        self.open: set[int] = set()  # ids of ints that stay open if a rule follows them
        open_ = name in OPEN_SCALARS and not kwvalues and any(accepts_scalar(value) for value in values)
        self.args = [v.example if open_ and is_open(v) else self.stand_in(v, at) for at, v in enumerate(values)]
        self.kwargs = {key: self.stand_in(value, key) for key, value in kwvalues.items()}
        self.by_fake = {id(tensor.fake): tensor for tensor in self.tensors}
        self.before = [fingerprint(tensor.fake) for tensor in self.tensors]

    def stand_in(self, value: Value, place: int | str | None = None) -> Any:
        """The object that takes `value`'s place during inference; `place` says which argument it is."""
        kind = type(value)
        if kind is Tensor:
            if not is_plain(value.cls):
                raise Break("tensor-subclass", value.cls.__qualname__)
            self.tensors.append(value)
            return value.fake
        if kind is Const:
            return number(value.value)
        if kind is Host:
            return self.number_in(value, place)
        if kind is Known:
            if isinstance(value.obj, type) and value.obj in DTYPES:
                return DTYPES[value.obj]
            if isinstance(value.obj, PASSED_AS_THEY_ARE) or self.user_function(value.obj):
                self.graph.m.constant_of(value)  # it is relied on by identity
                return value.obj
            raise Break("graph-input", f"{self.name} of {type(value.obj).__name__}")
        if kind is TupleObj:
            return tuple([self.stand_in(item) for item in value.items])
        if kind is ListObj and value.cls is list:
            return [self.stand_in(item) for item in value.items]
        if kind is SliceObj:
            return slice(*[self.stand_in(item) for item in value.items])
        if kind is DictObj and value.cls is dict:
            return {self.graph.m.constant_of(k): self.stand_in(v) for k, v in self.graph.m.d_items(value)}
        raise Break("graph-input", f"{self.name} of {value.cls.__name__}")

    def number_in(self, value: Host, place: int | str | None) -> Any:
        """An open number during inference."""
        places = OPEN_FLOATS.get(self.name, {})
        condition = places.get(place, places.get(None))
        if value.cls is int and condition in (None, ALWAYS):
            now = self.graph.m.settled(value)
            if type(now) is Host:
                self.open.add(id(value))
                return value.example
        if value.cls is float and condition is not None and self.graph.m.meets(condition, [value]):
            return value.example
        if value.cls is float and self.is_end(place):
            return value.example
        constant = self.hosts[id(value)] = self.graph.m.specialise(value).value
        return constant

    def is_end(self, place: int | str | None) -> bool:
        """Whether the argument is one end of a range that may be any whose ends are in order."""
        ends = []
        for at, name, default in OPEN_RANGES.get(self.name, ()):
            given = self.values[at] if at < len(self.values) else self.kwvalues.get(name)
            ends.append(Const(default) if given is None else given)
        named = [place in (at, name) for at, name, _ in OPEN_RANGES.get(self.name, ())]
        return any(named) and all(map(self.graph.m.is_number, ends)) and self.graph.m.meets(ENDS, ends)

    @property
    def varying(self) -> bool:
        """Whether a size or number among the arguments varies that the result's layout may depend on."""
        return bool(self.open) or any(tensor.layout is not None for tensor in self.tensors)

    def user_function(self, obj: Any) -> bool:
        """Whether a declared leaf may be handed this object as it is."""
        return ops.is_leaf_by_mark(self.target) and callable(obj)

    def mutated(self) -> bool:
        """Whether inference changed an argument."""
        return any(fingerprint(tensor.fake) != before for tensor, before in zip(self.tensors, self.before, strict=True))

    def for_fx(self) -> tuple[tuple, dict[str, Any]]:
        """The arguments as nodes and constants."""
        return tuple([self.to_fx(v) for v in self.values]), {k: self.to_fx(v) for k, v in self.kwvalues.items()}

    def to_fx(self, value: Value) -> Any:
        """One argument as `torch.fx` takes it."""
        kind = type(value)
        if kind is Tensor:
            return self.graph.node_of(value)
        if kind is Const:
            return number(value.value)
        if kind is Host:
            return self.hosts[id(value)] if id(value) in self.hosts else self.graph.number_of(value)
        if kind is TupleObj:
            return tuple([self.to_fx(item) for item in value.items])
        if kind is ListObj:
            return [self.to_fx(item) for item in value.items]
        if kind is SliceObj:
            return slice(*[self.to_fx(item) for item in value.items])
        if kind is DictObj:
            return {self.graph.m.constant_of(k): self.to_fx(v) for k, v in self.graph.m.d_items(value)}
        return DTYPES.get(value.obj, value.obj) if isinstance(value.obj, type) else value.obj


def is_open(value: Value) -> bool:
    """Whether the value is a number that only the running entry knows."""
    return type(value) is Host and (value.cls is int or value.cls is float)


def accepts_scalar(value: Value) -> bool:
    """Whether the value is a tensor with which any int or float can be combined without an error that depends on it."""
    return type(value) is Tensor and (value.fake.dtype.is_floating_point or value.fake.dtype is torch.int64)


def fingerprint(fake: torch.Tensor) -> tuple:
    """What an in-place operation changes."""
    version = None if fake.is_inference() else fake._version
    return version, fake.shape, fake.stride(), fake.dtype, fake.requires_grad


def number(value: Any) -> Any:
    """A constant as torch's argument parser takes it: NumPy's scalars as Python's, in slices too."""
    if type(value) is slice:
        return slice(*map(number, (value.start, value.stop, value.step)))
    if type(value).__module__ == "numpy":
        return value.item()
    return value
