"""Operations whose results' sizes depend on the values of tensors: `nonzero`, masks, `unique` and their like.

Under `config.capture_dynamic_output_shape_ops` they stay in the graph, and such a size is a number that the graph
gives, as `.item()` is. A rule answers with `Spec`s, as those of `shapes` do, with new sizes in them; it raises `Break`
for what it doesn't cover, and answers None where the result's size depends on no values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..config import config
from ..errors import DynacoreError
from ..reasons import Break
from ..values import IN_GRAPH, Host
from .layouts import Spec, broadcast, contiguous, is_packed, registering
from .layouts import computed as is_computed
from .ops import is_leaf_by_mark
from .shapes_views import indexed, place
from .sizes import Shaped, Size, example, product, value_of, varies
from .symbolic import as_rules_see

MASKS = (torch.bool, torch.uint8)
#: what a rule may index with beside a mask
PARTS = (int, slice, type(None), type(Ellipsis))


class NewSizes:
    """The sizes that results get. What counts the same elements of the same tensor is one size."""

    def __init__(self, graph: Any):
        self.graph = graph

    def size(self, most: Any = None, least: int = 0) -> Size:
        """A size of its own, between two bounds."""
        m = self.graph.m
        # Any number between the bounds will do, as nothing can be decided on it: small, and not that of the last one.
        value = least + 3 + 2 * (len(m.atoms) % 16)
        number = Host(value if most is None else max(min(value, example(most)), least), None, "", (), IN_GRAPH)
        number.form = m.new_atom(number, least)
        if most is not None:
            m.integers.learn(">=", m.form_of(value_of(most)), number.form, True)
        return Size(m, number)

    def count(self, x: Shaped) -> Size:
        """How many elements of a tensor aren't zero."""
        known = self.graph.counts.get(id(x.fake))
        if known is None:
            known = self.graph.counts[id(x.fake)] = x.fake, self.size(x.numel())
        return known[1]


Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}

rule = registering(RULES)


def new(shape: Any, dtype: torch.dtype) -> Spec:
    """A contiguous result."""
    shape = tuple(shape)
    return shape, contiguous(shape), dtype


def need(condition: bool) -> None:
    """Leave to the interpreter what a rule doesn't cover."""
    if not condition:
        raise Break("data-dependent-shape", "in an unusual form")


@rule("nonzero argwhere")
def nonzero(sizes: NewSizes, x: Shaped, *, as_tuple: bool = False) -> Any:
    """The places of elements that aren't zero."""
    need(x.dim() > 0 and type(as_tuple) is bool)
    n = sizes.count(x)
    if as_tuple:
        return (new((n,), torch.int64),) * x.dim()
    return (n, x.dim()), (1, n), torch.int64


@rule("where")
def where(sizes: NewSizes, condition: Shaped, *values: Any, **named: Any) -> Any:
    """`torch.where` of a condition alone."""
    return nonzero(sizes, condition, as_tuple=True) if not values and not named else None


@rule("masked_select")
def masked_select(sizes: NewSizes, x: Shaped, mask: Shaped) -> Any:
    """The elements that a mask picks."""
    need(isinstance(mask, torch.Tensor) and mask.dtype is torch.bool)
    shape = broadcast([x.shape, mask.shape])
    whole = len(shape) == mask.dim() and all(a is b or a == b for a, b in zip(shape, mask.shape, strict=True))
    return new((sizes.count(mask) if whole and mask.dim() else sizes.size(product(shape)),), x.dtype)


@rule("getitem __getitem__")
def getitem(sizes: NewSizes, x: Shaped, index: Any) -> Any:
    """What one mask picks, beside numbers, slices, None and Ellipsis."""
    parts = list(index) if isinstance(index, tuple) else [index]
    masks = [part for part in parts if isinstance(part, torch.Tensor) and part.dtype in MASKS]
    if not masks:
        return None
    (mask,) = masks if len(masks) == 1 else (None,)
    need(mask is not None and mask.dim() > 0)
    assert mask is not None
    need(all(part is mask or type(part) in PARTS for part in parts))
    return new(indexed(x, index, [sizes.count(mask)], lambda part: part.dim())[0], x.dtype)


@rule("unique unique_consecutive")
def unique(
    sizes: NewSizes, x: Shaped, *args: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None,
    sorted: bool = True,
) -> Any:  # fmt: skip
    """Different elements, or slices along one dimension."""
    need(not args and type(return_inverse) is type(return_counts) is bool)
    need(not return_inverse or is_packed(x))  # type: ignore[arg-type]
    if dim is None:
        n = sizes.size(x.numel())
        found, inverse = new((n,), x.dtype), new(x.shape, torch.int64)
    else:
        need(x.dim() == 1)  # slices of more dimensions aren't laid out in order
        n = sizes.size(x.shape[place(dim, x.dim())])
        found, inverse = new((n,), x.dtype), new((x.shape[0],), torch.int64)
    results = [found, *([inverse] if return_inverse else []), *([new((n,), torch.int64)] if return_counts else [])]
    return tuple(results) if len(results) > 1 else found


@rule("bincount")
def bincount(sizes: NewSizes, x: Shaped, weights: Any = None, minlength: Any = 0) -> Any:
    """How often each number occurs."""
    need(type(minlength) is int and minlength >= 0)
    dtype = torch.int64 if weights is None else weights.dtype if weights.dtype is torch.float32 else torch.float64
    return new((sizes.size(least=minlength),), dtype)


@rule("repeat_interleave")
def repeat_interleave(
    sizes: NewSizes, x: Shaped, repeats: Any = None, dim: Any = None, *, output_size: Any = None
) -> Any:
    """Elements repeated as often as a tensor says."""
    if output_size is not None or not (repeats is None or isinstance(repeats, torch.Tensor)):
        return None
    if repeats is None:
        return new((sizes.size(),), x.dtype)
    if dim is None:
        return new((sizes.size(),), x.dtype)
    dim = place(dim, x.dim())
    return new((*x.shape[:dim], sizes.size(), *x.shape[dim + 1 :]), x.dtype)


@rule("one_hot")
def one_hot(sizes: NewSizes, x: Shaped, num_classes: Any = -1) -> Any:
    """As many classes as the largest number asks for."""
    if type(num_classes) is not int or num_classes != -1:
        return None
    return new((*x.shape, sizes.size(least=1)), torch.int64)


# -- in a call --------------------------------------------------------------------------------------------------------


def covered(name: str) -> bool:
    """Whether an operation whose result's size depends on values stays in the graph."""
    return config.capture_dynamic_output_shape_ops and name in RULES


def specs(call: Any, state: Any) -> Any:
    """What the operation returns, with new sizes in it; None where its sizes depend on no values."""
    if not covered(call.name) or is_leaf_by_mark(call.target):
        return None
    args = [as_rules_see(call, value, arg, state) for value, arg in zip(call.values, call.args, strict=True)]
    named = {k: as_rules_see(call, v, call.kwargs.get(k), state) for k, v in call.kwvalues.items()}
    try:
        return RULES[call.name](NewSizes(call.graph), *args, **named)
    except (Break, DynacoreError):
        raise
    except Exception:  # not covered, or arguments that the operation doesn't take, which it says itself
        raise Break("data-dependent-shape", call.name) from None


def examples(found: Any) -> Any:
    """The specs with sizes as numbers, for stand-ins."""
    if not isinstance(found[-1], torch.dtype):
        return tuple(map(examples, found))
    shape, strides, dtype = found
    return tuple(map(example, shape)), tuple(map(example, strides)), dtype


def layouts(found: Any) -> Any:
    """Shape and strides of the results; None where nothing of them varies."""
    if not isinstance(found[-1], torch.dtype):
        return list(map(layouts, found))
    return found[:2] if varies(found[0]) else None


def among(call: Any) -> bool:
    """Whether only the graph's run tells a size of the arguments."""
    sizes = [size for tensor in call.tensors if tensor.layout is not None for size in tensor.layout[0]]
    return any(map(is_computed, sizes))
