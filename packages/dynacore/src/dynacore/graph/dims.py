"""Which sizes of a tensor from outside stay open, and how its strides follow from them."""

from __future__ import annotations

from typing import Any

import torch

from .. import logs
from ..marks import DYNAMIC_ATTRIBUTE, STATIC_ATTRIBUTE
from ..sources import Source
from ..specialise import Varying
from ..torch_api import SYMBOLIC_OPERATORS
from ..values import Const, Host
from .layouts import contiguous
from .sizes import Size, example

#: below this a size isn't kept open: dimensions of size 0 and 1 follow rules of their own
SMALLEST = 2


def size_source(tensor: Source, dim: int) -> Source:
    """Where a tensor's size is found."""
    return tensor.child("slot", "shape").child("item", dim)


def stride_source(tensor: Source, dim: int) -> Source:
    """Where a tensor's stride is found."""
    return tensor.child("call", torch.Tensor.stride).child("item", dim)


def steps_to_size(steps: tuple, dim: int) -> tuple:
    """`size_source(tensor, dim).steps`, from the steps to the tensor."""
    return (*steps, ("slot", "shape"), ("item", dim))


def steps_to_stride(steps: tuple, dim: int) -> tuple:
    """`stride_source(tensor, dim).steps`, from the steps to the tensor."""
    return (*steps, ("call", torch.Tensor.stride), ("item", dim))


def layout(m: Any, tensor: torch.Tensor, source: Source) -> tuple[tuple, tuple] | None:
    """Shape and strides with a `Size` for each that varies from call to call; None where none does."""
    open_dims = opened(m, tensor, source)
    open_strides = varied_strides(m, tensor, source)
    if not open_dims and not open_strides:
        return None
    marked = tensor.__dict__.get(DYNAMIC_ATTRIBUTE, ())
    shape = tuple([
        Size(m, m.size_at(size_source(source, d), n, least(open_dims[d], n))) if d in open_dims else n
        for d, n in enumerate(tensor.shape)
    ])  # fmt: skip
    for dim, bounds in open_dims.items():
        bounded(m, shape[dim], *bounds)
        if dim in marked:
            m.marked.append(shape[dim].host)
    if logs.enabled("dynamic"):
        logs.emit("dynamic", f"open sizes: {', '.join(str(size_source(source, d)) for d in open_dims)}")
    return shape, strides(m, tensor, shape, source, open_strides)


def least(bounds: tuple[int | None, int | None], size: int) -> int:
    """The smallest value that a size is kept open for; a call below what the program said decides that itself."""
    low = bounds[0] or SMALLEST
    return low if SMALLEST <= low <= size else SMALLEST


def bounded(m: Any, size: Size, low: int | None, high: int | None) -> None:
    """Hold a size to what `mark_dynamic` said of it."""
    if low is not None and low > SMALLEST:
        m.decide_if_open(m.host_binary(">=", size.host, Const(low)))
    if high is not None:
        m.decide_if_open(m.host_binary("<=", size.host, Const(high)))


def opened(m: Any, tensor: torch.Tensor, source: Source) -> dict[int, tuple[int | None, int | None]]:
    """The dimensions whose sizes stay open, with the bounds that the program gave."""
    if m.sizes_vary is False:
        return {}
    own = tensor.__dict__
    marked = own.get(DYNAMIC_ATTRIBUTE, {})
    if not marked and not m.dynamic and m.sizes_vary is None:
        return {}
    static = own.get(STATIC_ATTRIBUTE, ())
    always = m.sizes_vary and not isinstance(tensor, torch.nn.Parameter) and not belongs_to_module(source)
    steps = source.steps if m.dynamic else ()
    found = {}
    for dim, size in enumerate(tensor.shape):
        if dim in static:
            continue
        if size < SMALLEST:
            if (dim in marked or always) and logs.enabled("dynamic"):
                logs.emit("dynamic", f"{size_source(source, dim)} is {size}: sizes 0 and 1 are taken as they are")
            continue
        if dim in marked or always or (m.dynamic and steps_to_size(steps, dim) in m.dynamic):
            found[dim] = marked.get(dim, (None, None))
    return found


def belongs_to_module(source: Source) -> bool:
    """Whether a tensor is a module's own."""
    node: Source | None = source
    while node is not None:
        if node.accessor == "const" or node.key in ("_parameters", "_buffers"):
            return True
        node = node.parent
    return False


def varied_strides(m: Any, tensor: torch.Tensor, source: Source) -> dict[int, Size]:
    """The strides that have differed between calls on their own."""
    if m.sizes_vary is False or not m.dynamic:
        return {}
    steps = source.steps
    return {
        dim: Size(m, m.size_at(stride_source(source, dim), step, SMALLEST))
        for dim, step in enumerate(tensor.stride())
        if step >= SMALLEST and steps_to_stride(steps, dim) in m.dynamic
    }


def strides(m: Any, tensor: torch.Tensor, shape: tuple, source: Source, given: dict[int, Size]) -> tuple:
    """The strides as given; else as products of sizes where they are such in this call and a guard holds them to it."""
    real = tensor.stride()
    dense = contiguous(shape)
    if not given and tuple(map(example, dense)) == real and all(size not in (0, 1) for size in tensor.shape):
        source.child("call", torch.Tensor.is_contiguous).check("is", True)
        return dense
    found: list[Any] = [given.get(dim, step) for dim, step in enumerate(real)]
    expected: Any = 1
    for dim in sorted(range(len(shape)), key=lambda d: (real[d], -d)):
        if dim not in given and real[dim] and real[dim] == example(expected):
            found[dim] = expected
        if real[dim]:
            expected = found[dim] * shape[dim]
    for dim, step in enumerate(found):
        if type(step) is Size and dim not in given:
            own = Host(real[dim], stride_source(source, dim))
            condition = Host(True, None, "({} == {})", (own, step.host))
            m.relations.append(("rel", condition, True))
    return tuple(found)


class Leaves:
    """Numbers that vary on their own, collected while others are written as expressions over them."""

    def __init__(self) -> None:
        self.hosts: list[Host] = []
        self._index: dict[int, int] = {}

    def expression(self, value: Any) -> Any:
        """A size, or an int's value, as `specialise.Varying` has it."""
        host = value.host if type(value) is Size else value
        if type(host) is not Host:
            return host.value if type(host) is Const else host
        if host.source is None and host.symbol in SYMBOLIC_OPERATORS:
            return (host.symbol, *map(self.expression, host.operands))
        if id(host) not in self._index:
            self._index[id(host)] = len(self.hosts)
            self.hosts.append(host)
        return "leaf", self._index[id(host)]

    def layout(self, layout: tuple[tuple, tuple]) -> tuple[tuple, tuple]:
        """Sizes and strides as expressions."""
        return tuple(map(self.expression, layout[0])), tuple(map(self.expression, layout[1]))

    def known(self, m: Any) -> tuple[tuple[int, bool], ...]:
        """For each leaf its value in this call, and whether it is a size of 2 or more."""
        return tuple([(host.example, m.integers.least(m.form_of(host), SMALLEST)) for host in self.hosts])


def varying(m: Any, inputs: list[Any], unbacked: bool) -> Varying | None:
    """How the sizes of a graph's inputs vary; None where they don't, and no operation gives numbers (`unbacked`)."""
    leaves = Leaves()

    def of_input(value: Any) -> Any:
        if type(value) is Host:
            return leaves.expression(value) if value.cls is int else None
        return value.layout and leaves.layout(value.layout)

    found = tuple(map(of_input, inputs))
    if not unbacked and all(one is None for one in found):
        return None
    return Varying(leaves.known(m), found, unbacked)
