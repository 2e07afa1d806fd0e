"""Stand-ins: tensors without data that mirror shape, strides, dtype and the autograd flags of the program's tensors.

An operation is run once on stand-ins to learn what it returns. They live on torch's `meta` device; the program's device
is kept beside them (`values.Tensor.device`). Real tensors are only read, and the process's state is as before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..reasons import Break
from ..torch_api import InferenceMode, set_conj, set_grad_enabled, set_neg, tree_map
from ..torch_types import is_plain
from . import shapes_layers, shapes_math, shapes_nn  # noqa: F401  (these fill QUICK)
from .arguments import Arguments
from .autocast import Unsuitable, autocast_specs
from .dims import steps_to_size, steps_to_stride
from .keywords import positional
from .layouts import Spec
from .ops import is_leaf_by_mark, is_view_op
from .shapes import IN_PLACE, QUICK, WITHOUT_GRAD
from .state import TorchState

META = torch.device("meta")

#: operators with an in-place form, by the names that both share with `operator` and the methods
OPERATORS_IN_PLACE = frozenset("add sub mul truediv floordiv mod pow and or xor".split())


class TensorSpec:
    """What a tensor guard holds a tensor to: the example itself and the metadata that messages show.

    Sizes and strides that vary are None; other guards hold them to what was decided on them. `requires_grad` is None
    where it doesn't matter.
    """

    __slots__ = ("device", "dtype", "example", "requires_grad", "shape", "stride")

    def __init__(self, example: torch.Tensor, layout: tuple[tuple, tuple] | None = None):
        self.example: torch.Tensor | None = example
        shape, stride = layout or (example.shape, example.stride())
        self.shape = tuple([size if type(size) is int else None for size in shape])
        self.stride = tuple([step if type(step) is int else None for step in stride])
        self.dtype = example.dtype
        self.device = example.device
        self.requires_grad: bool | None = example.requires_grad

    def varied(self, steps: tuple, now: Any) -> list[tuple]:
        """The steps to sizes of the tensor at `steps` that are others now; if all fit, to strides that are.

        A tensor of a class of its own isn't asked: it may answer by code, or refuse.
        """
        if not is_plain(type(now)) or now.dim() != len(self.shape) or now.layout is not torch.strided:
            return []
        return differing(steps_to_size, steps, self.shape, now.shape) or differing(
            steps_to_stride, steps, self.stride, now.stride()
        )

    def described(self, found: TensorSpec) -> str:
        """What the guard expects, or what `found` has there; both in the same words."""
        shape, stride = (
            [n if mine is not None else None for n, mine in zip(theirs, own)] if len(theirs) == len(own) else theirs
            for theirs, own in ((found.shape, self.shape), (found.stride, self.stride))
        )
        grad = ", requires_grad" if found.requires_grad and self.requires_grad is not None else ""
        return f"tensor({listed(shape)}, {found.dtype}, {found.device}, strides {listed(stride)}{grad})"

    def __repr__(self) -> str:
        return self.described(self)


def differing(to: Callable[[tuple, int], tuple], steps: tuple, expected: Any, found: Any) -> list[tuple]:
    """The steps to numbers that aren't those expected; None stands for any."""
    return [to(steps, dim) for dim, (own, now) in enumerate(zip(expected, found)) if own is not None and own != now]


def listed(sizes: Any) -> str:
    """Sizes as text; any size for those that vary."""
    return f"[{', '.join('*' if n is None else str(n) for n in sizes)}]"


def stand_in(real: torch.Tensor) -> torch.Tensor:
    """A stand-in for a tensor from outside."""
    if real.layout is not torch.strided or real.is_quantized or real.is_nested:
        raise Break("op-unsupported", f"a tensor of layout {real.layout}")
    with InferenceMode(real.is_inference()):
        fake = torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device=META)
        if real.is_conj():
            set_conj(fake, True)
        if real.is_neg():
            set_neg(fake, True)
    if real.requires_grad:
        fake = with_grad(fake, real.is_leaf, views_plain(real))
    return fake


def views_plain(t: torch.Tensor) -> bool:
    """Whether it is a view of a tensor that requires no grad: with grad mode off, its own views require none either."""
    return t._is_view() and not t._base.requires_grad  # type: ignore[union-attr]


def with_grad(fake: torch.Tensor, leaf: bool, view: bool) -> torch.Tensor:
    """`fake` requiring grad: as a leaf, a `view` of a tensor that doesn't or none, or as some operation's result."""
    before = torch.is_grad_enabled()
    set_grad_enabled(True)
    try:
        if leaf and view:
            return fake.view_as(fake).requires_grad_()
        fake.requires_grad_()
        return fake if leaf else non_leaf(fake)
    finally:
        set_grad_enabled(before)


def non_leaf(leaf: torch.Tensor) -> torch.Tensor:
    """A tensor like `leaf` that isn't one."""
    copy = leaf.clone()
    if copy.stride() == leaf.stride():
        return copy
    # clone() packs expanded and gapped tensors; this keeps the strides, and the result is no view of a leaf.
    return copy.new_empty_strided(leaf.shape, leaf.stride()).add_(leaf.sum())


def infer(call: Arguments, state: TorchState, known: Any = None) -> Any:
    """Run an operation on stand-ins, in the modes that the program has set at this point; not where specs are `known`.

    Whatever it raises becomes a `Break`: the real run raises the real error, or works.
    """
    before = torch.is_grad_enabled()
    try:
        if torch.is_inference_mode_enabled() is not state.inference:
            with InferenceMode(state.inference):
                return run(call, state, known)
        return run(call, state, known)
    except Break:
        raise
    except Exception as error:
        if is_leaf_by_mark(call.target):
            return run_on_zeros(call)
        raise Break(reason_of(error), f"{call.name}: {error}") from None
    finally:
        set_grad_enabled(before)


def reason_of(error: Exception) -> str:
    """Why an operation fails on stand-ins: some need the values of a tensor."""
    text = str(error)
    if "item() cannot be called on meta" in text:
        return "tensor-to-python"
    return "data-dependent-shape" if "torch.nonzero()" in text else "op-failed-on-meta"


def run(call: Arguments, state: TorchState, known: Any) -> Any:
    """The operation's result: by a quick rule where one covers the case."""
    set_grad_enabled(state.grad)
    if known is not None:
        return made(known, gives_grad(call, state))
    if state.casts:
        try:
            return rebuilt(autocast_specs(call, state))
        except Unsuitable:
            return run_plain(call)
    result = quickly(call, state)
    return run_plain(call) if result is None else result


def quickly(call: Arguments, state: TorchState) -> Any:
    """What a quick rule says of the operation; None when no rule covers it."""
    in_place = in_place_of(call.name)
    rule = QUICK.get(in_place or call.name)
    if rule is None:
        return None
    try:
        args, named = positional(rule, call, call.args, call.kwargs)
        spec = rule(*args, **named)
    except Break:
        raise
    except Exception:  # the rule doesn't cover these arguments, or they are wrong, which the operation will say
        return None
    grad = gives_grad(call, state)
    if not in_place and spec is not IN_PLACE:
        return made(spec, grad)
    target = args[0]
    if spec is not IN_PLACE and (spec[0] != target.shape or not torch.can_cast(spec[2], target.dtype)):
        return None
    return overwritten(target, grad)


def gives_grad(call: Arguments, state: TorchState) -> bool:
    """Whether results require grad, if their dtype can."""
    return state.grad and call.name not in WITHOUT_GRAD and any(t.fake.requires_grad for t in call.tensors)


def in_place_of(name: str) -> str | None:
    """The operation of which `name` is the in-place form."""
    if name.startswith("__"):
        return name[3:-2] if name.startswith("__i") and name[3:-2] in OPERATORS_IN_PLACE else None
    if name.endswith("_"):
        return name[:-1]
    return name[1:] if name.startswith("i") and name[1:] in OPERATORS_IN_PLACE else None


def overwritten(target: torch.Tensor, grad: bool) -> torch.Tensor:
    """`target` after an in-place operation that may have made it require grad."""
    if grad and not target.requires_grad:
        return target.fill_(torch.zeros((), dtype=target.dtype, device=META, requires_grad=True))
    return target.zero_()


def run_plain(call: Arguments) -> Any:
    """Run the operation itself on stand-ins."""
    if call.name.endswith("_") and not call.name.startswith("__"):
        check_in_place(call)
    return call.run(*call.args, **call.kwargs)


def run_on_zeros(call: Arguments) -> Any:
    """A declared leaf that doesn't work without data: it is pure, so it may run on tensors of zeros."""

    def filled(obj: Any) -> Any:
        return torch.zeros_like(obj, device=devices[id(obj)]) if isinstance(obj, torch.Tensor) else obj

    devices = {id(tensor.fake): tensor.device for tensor in call.tensors}
    try:
        result = call.target(*tree_map(filled, call.args), **tree_map(filled, call.kwargs))
    except Exception as error:
        raise Break("op-failed-on-meta", f"{call.name}: {error}") from None
    return tree_map(lambda obj: stand_in(obj) if isinstance(obj, torch.Tensor) else obj, result)


def check_in_place(call: Arguments) -> None:
    """Decline an in-place operation whose result doesn't fit its tensor: stand-ins would take it."""
    plain = call.name[:-1]
    function = getattr(torch.Tensor, plain, None)
    target = call.args[0] if call.args else None
    if function is None or not isinstance(target, torch.Tensor) or is_view_op(plain):
        return
    with torch.no_grad():
        result = function(*call.args, **call.kwargs)
    if result.shape != target.shape or not torch.can_cast(result.dtype, target.dtype):
        raise Break("op-failed-on-meta", f"{call.name}: the result doesn't fit the tensor")


def made(spec: Spec | tuple[Spec | None, ...] | None, grad: bool) -> Any:
    """Stand-ins for an operation's result, or for each of its results."""
    if spec is None:
        return None
    shape, stride, dtype = spec if len(spec) == 3 else (None, None, None)
    if not isinstance(dtype, torch.dtype):
        results = [made(one, grad) for one in spec]
        named: Any = type(spec)
        return tuple(results) if named is tuple else named(results)  # such as torch.return_types.sort
    fake = torch.empty_strided(shape, stride, dtype=dtype, device=META)
    if grad and (dtype.is_floating_point or dtype.is_complex):
        return non_leaf(fake.requires_grad_())
    return fake


def rebuilt(specs: Any) -> Any:
    """Stand-ins after the specs that inference under autocast found."""
    if specs is None:
        return None
    if isinstance(specs[-1], bool):
        return made(specs[:3], specs[3])
    return type(specs)([rebuilt(one) for one in specs])
