"""Attributes of tensors, and methods that only read metadata: constants under the guard on the tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..reasons import Break
from ..values import Const, ListObj, Tensor, TupleObj, Value
from .layouts import computed
from .sizes import Shaped, value_of

#: attributes that the stand-in has right
FROM_STAND_IN = frozenset(
    "shape dtype ndim requires_grad is_leaf layout itemsize nbytes is_sparse is_sparse_csr is_quantized is_mkldnn "
    "is_nested".split()
)
#: attributes that tell leaves from results of operations, which the tensor guard doesn't
OF_HISTORY = frozenset(("is_leaf", "retains_grad", "grad_fn", "grad"))
#: attributes that are operations: views of the tensor
VIEWS = frozenset(("T", "mT", "H", "mH", "real", "imag", "data"))
#: attributes that say whether the tensor is on a device
DEVICE_FLAGS = frozenset("is_cpu is_cuda is_xpu is_mps is_meta is_xla is_ipu is_maia is_mtia is_vulkan".split())


def tensor_attr(m: Any, t: Tensor, name: str) -> Value | None:
    """The attribute `name` of `t`; None when it isn't known here."""
    if name == "shape":
        return size_value(m, Shaped(t).shape)
    if name == "nbytes" and t.layout is not None:
        return m.binary("*", value_of(Shaped(t).numel()), Const(t.fake.itemsize), False)
    if name == "device":
        return m.const(t.device)
    if name in OF_HISTORY:
        rely_on_leaf(t)
    if name in FROM_STAND_IN:
        return m.const(getattr(t.fake, name))
    if name in DEVICE_FLAGS:
        return Const(t.device.type == name[3:])
    if name in VIEWS:
        return m.graph.call(getattr, [t, Const(name)])
    if name == "grad_fn":
        return no_history(t)
    if name == "retains_grad":
        return retains_grad(t)
    if name == "grad":
        return gradient(m, t)
    if name == "__class__":
        return m.const(t.cls)
    if hasattr(torch.Tensor, name):
        return None
    return own_attribute(m, t, name)


def rely_on_leaf(t: Tensor) -> None:
    """Assume that a tensor from outside is a leaf, or that it isn't."""
    if t.obj is not None and t.source is not None and t.obj.requires_grad:
        t.source.child("slot", "is_leaf").check("is", t.obj.is_leaf)


def rely_on_base(t: Tensor) -> None:
    """Assume what a leaf from outside that requires a gradient views: with grad mode off, its views go by that."""
    if t.obj is None or t.source is None or not (t.obj.requires_grad and t.obj.is_leaf):
        return
    base = t.source.child("slot", "_base")
    if t.obj._base is None:
        base.check("is", None)
    else:
        base.child("slot", "requires_grad").check("is", t.obj._base.requires_grad)


def size_value(m: Any, size: Any) -> TupleObj:
    """A torch.Size as a value."""
    return TupleObj([value_of(n) for n in size], torch.Size)


def no_history(t: Tensor) -> Value:
    """`grad_fn`, as long as it is None."""
    if t.fake.grad_fn is not None:
        raise Break("autograd", "Tensor.grad_fn")
    return Const(None)


def retains_grad(t: Tensor) -> Value:
    """`retains_grad`, which no captured operation sets."""
    if t.obj is None or t.source is None:
        return Const(False)
    t.source.child("slot", "retains_grad").check("is", t.obj.retains_grad)
    return Const(t.obj.retains_grad)


def gradient(m: Any, t: Tensor) -> Value:
    """`grad`: of a tensor from outside what is there; a tensor made here has none yet."""
    if t.obj is not None:
        if not t.obj.is_leaf and not t.obj.retains_grad:
            raise Break("autograd", "Tensor.grad of a tensor that isn't a leaf")
        return m.wrap(t.obj.grad, t.source.child("slot", "grad"))
    if not t.fake.is_leaf:
        raise Break("autograd", "Tensor.grad of a tensor that isn't a leaf")
    return Const(None)


def own_attribute(m: Any, t: Tensor, name: str) -> Value | None:
    """What the program stored on a tensor from outside."""
    if t.obj is None or t.source is None:
        return None
    namespace = t.source.child("dict")
    if name in t.obj.__dict__:
        return m.wrap(t.obj.__dict__[name], namespace.child("key", name))
    namespace.check("lacks", name)
    return None


# -- methods ---------------------------------------------------------------------------------------------------------


def metadata(name: str) -> Callable[..., Value]:
    """The handler of a method that reads metadata alone: its answer is a constant."""

    def read(graph: Any, t: Tensor, *args: Value, **kwargs: Value) -> Value:
        m = graph.m
        if name in OF_LAYOUT and any(type(v) is Tensor and v.layout is not None for v in (t, *args)):
            return of_layout(m, t, name, [*args, *kwargs.values()])
        others = [value.fake if type(value) is Tensor else m.constant_of(value) for value in args]
        try:
            answer = getattr(t.fake, name)(*others, **{key: m.constant_of(value) for key, value in kwargs.items()})
        except Exception as error:
            raise Break("op-failed-on-meta", f"{name}: {error}") from None
        return size_value(m, answer) if type(answer) is torch.Size else m.const(answer)

    return read


def of_layout(m: Any, t: Tensor, name: str, args: list[Value]) -> Value:
    """An answer about a tensor whose sizes vary."""
    shaped = Shaped(t)
    if name == "is_same_size":
        return same_size(shaped, *args)
    real = [m.constant_of(value) for value in args]
    if name == "__len__":
        return value_of(shaped.shape[0])
    if name in ("size", "stride") and real and real[0] is not None:
        if type(real[0]) is not int or not -t.fake.dim() <= real[0] < t.fake.dim():
            raise Break("op-failed-on-meta", f"{name}: {real[0]!r}")
    answer = getattr(shaped, OF_LAYOUT[name])(*real)
    if name in ("stride", "is_contiguous") and answer is not True and any(map(computed, shaped.shape)):
        raise Break("host-value-branch", f"{name} of a tensor whose size the graph gives")
    if name == "size" and isinstance(answer, tuple):
        return size_value(m, answer)
    if isinstance(answer, tuple):
        return TupleObj([value_of(n) for n in answer])
    return Const(answer) if type(answer) is bool else value_of(answer)


#: methods that answer about the layout, and the name of their question to a `Shaped`
OF_LAYOUT = {
    "size": "size", "stride": "stride", "numel": "numel", "nelement": "numel", "is_contiguous": "is_contiguous",
    "__len__": "__len__", "is_same_size": "",
}  # fmt: skip


def same_size(shaped: Shaped, other: Value) -> Value:
    """Whether two tensors have the same shape."""
    if type(other) is not Tensor:
        raise Break("op-failed-on-meta", "is_same_size")
    return Const(shaped.shape == Shaped(other).shape)


def get_device(graph: Any, t: Tensor) -> Value:
    """`Tensor.get_device`: the index, -1 on the CPU."""
    return Const(-1 if t.device.index is None else t.device.index)


def requires_grad_(graph: Any, t: Tensor, requires_grad: Value = Const(True)) -> Value:  # noqa: B008
    """`Tensor.requires_grad_`: nothing to do, or a change that a graph shouldn't hide."""
    if graph.m.constant_of(requires_grad) is not t.fake.requires_grad:
        raise Break("autograd", "Tensor.requires_grad_ changes the tensor")
    return t


METHODS: dict[str, Callable[..., Value | None]] = {
    name: metadata(name)
    for name in (
        "size stride dim ndimension numel nelement element_size is_contiguous is_floating_point is_complex is_signed "
        "is_same_size is_inference has_names is_conj is_neg __len__"
    ).split()
}
METHODS["get_device"] = get_device
METHODS["requires_grad_"] = requires_grad_


def takes_scale(*operands: Any) -> bool:
    """Whether `addcdiv` of these is computed as `scaled_quotient` does it."""
    dtypes = {operand.fake.dtype for operand in operands if type(operand) is Tensor}
    return all(type(operand) is Tensor for operand in operands) and len(dtypes) == 1 and dtypes.pop().is_floating_point


def scaled_quotient(
    graph: Any, t: Tensor, *args: Value, value: Value | None = None, in_place: bool, **named: Value
) -> Value | None:
    """`addcdiv` whose `value` is in a tensor: of what ATen computes with the number in it, in that order."""
    graph.asks_for_grad |= type(value) is Tensor  # as a number torch takes only one that requires no gradient
    if type(value) is not Tensor or value.fake.dim() or value.fake.requires_grad or value.fake.dtype.is_complex:
        return None
    if named or len(args) != 2 or not takes_scale(t, *args):
        return None
    kept = t.fake.dtype
    dtype = graph.m.const(torch.float32 if kept.itemsize < 4 else kept)
    x, first, second, scale = (graph.call("to", [operand, dtype], method=True) for operand in (t, *args, value))
    scaled = graph.call("div", [graph.call("mul", [first, scale], method=True), second], method=True)
    if in_place and kept.itemsize >= 4:
        return graph.call("add_", [t, scaled], method=True)
    result = graph.call("to", [graph.call("add", [x, scaled], method=True), graph.m.const(kept)], method=True)
    return graph.call("copy_", [t, result], method=True) if in_place else result


def scaled_quotients(graph: Any, *args: Value, **named: Value) -> Value | None:
    """`_foreach_addcdiv_` whose numbers are in one tensor: stand-ins lack them, so it is one operation a tensor."""
    *operands, scales = args
    lists = [v.items for v in operands if isinstance(v, (ListObj, TupleObj))]
    if named or len(args) != 4 or len(lists) != 3:
        return None
    if type(scales) is not Tensor or scales.layout is not None or scales.fake.dim() != 1:
        return None
    if {len(items) for items in lists} != {len(scales.fake)} or not all(takes_scale(*row) for row in zip(*lists)):
        return None
    for position, row in enumerate(zip(*lists)):
        value = graph.call("select", [scales, Const(0), Const(position)], method=True)
        scaled_quotient(graph, *row, value=value, in_place=True)  # type: ignore[arg-type]
    return args[0]


METHODS["addcdiv"] = functools.partial(scaled_quotient, in_place=False)
METHODS["addcdiv_"] = functools.partial(scaled_quotient, in_place=True)
OF_LISTS = {"_foreach_addcdiv_": scaled_quotients}
"""As `METHODS`, of operations over lists of tensors."""
