"""Sizes that vary, as the rules of `shapes` see them: numbers whose comparisons are decided as in the captured call.

A rule computes with `Size` as it does with int. What it decides is guarded, so what it answers holds for every call
that the guards let through. A `Size` isn't an int and has no `__index__`: what would take its value at present fails,
and the rule counts as not covering the case.
"""

from __future__ import annotations

from typing import Any

import torch

from ..objects.integers import quotient
from ..reasons import Break
from ..values import Const, Host, Tensor, Value
from .layouts import all_same, channels_last, computed, contiguous


class Size:
    """A size that only the running entry knows."""

    __slots__ = ("host", "m")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, m: Any, host: Host) -> None:
        self.m = m
        self.host = host

    def __repr__(self) -> str:
        return f"Size({self.host!r})"

    @property
    def computed(self) -> bool:
        """Whether only the graph's run tells the size."""
        return self.host.computed

    def smaller(self, other: Any) -> Any:
        """The smaller of this and another size, whichever that turns out to be."""
        return combined(self.m, "min", self, other)

    def larger(self, other: Any) -> Any:
        """The larger of this and another size, whichever that turns out to be."""
        return combined(self.m, "max", self, other)

    def surely_equals(self, other: Any) -> bool:
        """Whether this is equal to another size, or an int, whatever the sizes are."""
        value = operand(other)
        answer = value and self.m.host_binary("==", self.host, value)
        return type(answer) is Const and answer.value

    def over(self, other: Any) -> Any:
        """This divided by a factor of it, which torch refuses to be 0."""
        value = operand(other)
        form = value and quotient(self.m.form_of(self.host), self.m.form_of(value))
        if form is None or not example(other):
            raise Break("host-value-branch", "whether a size divides another one")
        now = self.host.example // example(other)
        return size_of(self.m, self.m.with_form(form, "//", self.host, value, now))

    def surely_divides(self, other: Any) -> bool:
        """Whether another size is a multiple of this one, and not the other way round; one of them has to be."""
        mine, theirs = self.m.form_of(self.host), self.m.form_of(operand(other))
        if quotient(theirs, mine) is None and quotient(mine, theirs) is None:
            raise Break("host-value-branch", "which of two strides is smaller")
        return quotient(theirs, mine) is not None

    def __add__(self, other: Any) -> Any:
        return combined(self.m, "+", self, other)

    def __radd__(self, other: Any) -> Any:
        return combined(self.m, "+", other, self)

    def __sub__(self, other: Any) -> Any:
        return combined(self.m, "-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return combined(self.m, "-", other, self)

    def __mul__(self, other: Any) -> Any:
        return combined(self.m, "*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return combined(self.m, "*", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return combined(self.m, "//", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return combined(self.m, "//", other, self)

    def __mod__(self, other: Any) -> Any:
        return combined(self.m, "%", self, other)

    def __rmod__(self, other: Any) -> Any:
        return combined(self.m, "%", other, self)

    def __neg__(self) -> Any:
        return combined(self.m, "-", 0, self)

    def __eq__(self, other: object) -> Any:
        return decided(self.m, "==", self, other)

    def __ne__(self, other: object) -> Any:
        return decided(self.m, "!=", self, other)

    def __lt__(self, other: Any) -> Any:
        return decided(self.m, "<", self, other)

    def __le__(self, other: Any) -> Any:
        return decided(self.m, "<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return decided(self.m, ">", self, other)

    def __ge__(self, other: Any) -> Any:
        return decided(self.m, ">=", self, other)

    def __bool__(self) -> bool:
        return decided(self.m, "!=", self, 0)


def operand(value: Any) -> Value | None:
    """A rule's number as a value; None for what isn't an int."""
    if type(value) is Size:
        return value.host
    return Const(value) if type(value) is int else None


def combined(m: Any, symbol: str, a: Any, b: Any) -> Any:
    """An operator on sizes."""
    left, right = operand(a), operand(b)
    if left is None or right is None:
        return NotImplemented
    return size_of(m, m.host_binary(symbol, left, right))


def decided(m: Any, symbol: str, a: Any, b: Any) -> Any:
    """A comparison of sizes, guarded to come out as it does now."""
    left, right = operand(a), operand(b)
    if left is None or right is None:
        return NotImplemented
    answer = m.host_binary(symbol, left, right)
    return answer.value if type(answer) is Const else m.decide(answer)


def size_of(m: Any, value: Value) -> Any:
    """A number's value for rules: an int, or a `Size`."""
    if type(value) is Const:
        return value.value
    assert type(value) is Host
    now = m.settled(value)
    return now.value if type(now) is Const else Size(m, value)


def value_of(size: Any) -> Value:
    """The machine's value of a size."""
    if type(size) is Size:
        return size.m.settled(size.host)
    return Const(size)


def example(size: Any) -> int:
    """What a size is in the call that is captured."""
    return size.host.example if type(size) is Size else size


def varies(sizes: Any) -> bool:
    """Whether any of the sizes varies."""
    return any(type(size) is Size for size in sizes)


class Shaped:
    """A tensor as rules see it when its sizes, or those of another argument, vary.

    It has what rules ask of a tensor and nothing else: what it lacks makes a rule fail.
    """

    __slots__ = ("device", "dtype", "fake", "requires_grad", "shape", "strides")

    def __init__(self, tensor: Tensor, casts: bool = False) -> None:
        fake = self.fake = tensor.fake
        # Where autocast brings the operands to one dtype, rules needn't care for theirs.
        self.dtype = torch.float32 if casts and fake.dtype.is_floating_point else fake.dtype
        self.device = fake.device
        self.requires_grad = fake.requires_grad
        self.shape, self.strides = tensor.layout or (tuple(fake.shape), fake.stride())

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # type: ignore[override]
        """Rules ask whether an argument is a tensor."""
        return torch.Tensor

    def dim(self) -> int:
        return len(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def stride(self, dim: int | None = None) -> Any:
        return self.strides if dim is None else self.strides[dim]

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> Any:
        return product(self.shape)

    def is_contiguous(self, memory_format: Any = torch.contiguous_format) -> bool:
        """As torch answers: strides of dimensions of size one don't matter."""
        if memory_format is torch.contiguous_format:
            expected = contiguous(self.shape)
        elif (memory_format, self.dim()) in ((torch.channels_last, 4), (torch.channels_last_3d, 5)):
            expected = channels_last(self.shape)
        else:
            return False
        if any(map(computed, (*self.shape, *self.strides))):
            return all_same(self.strides, expected)
        rows = zip(self.shape, self.strides, expected, strict=True)
        return any(size == 0 for size in self.shape) or all(size == 1 or a == b for size, a, b in rows)


def fixed(size: Any) -> int:
    """A size as a constant: guarded to stay what it is."""
    return size.m.specialise(size.host).value if type(size) is Size else size


def product(sizes: Any) -> Any:
    """The product of sizes."""
    result: Any = 1
    for size in sizes:
        result = result * size
    return result


__all__ = ["Shaped", "Size", "example", "fixed", "product", "size_of", "value_of", "varies"]
