"""Integer expressions over loop variables and symbolic sizes, kept in a normal form.

A constant is a Python int. Anything else is an `Expr`: a sum of monomials with integer coefficients. The factors of a
monomial are atoms: a variable, a floor division or a remainder. All operations simplify as far as the ranges of the
variables allow, so two expressions that are equal for every value are mostly equal as objects, too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from typing import Union

Index = Union[int, "Expr"]
Monomial = tuple["Atom", ...]
UNBOUNDED = 1 << 62


class Atom:
    """A factor of a monomial. `key` orders atoms and tells them apart."""

    __slots__ = ("_hash", "_order", "key")
    key: tuple[object, ...]

    def __init__(self, key: tuple[object, ...]) -> None:
        self.key = key
        self._hash = hash(key)
        self._order: tuple[str, int] | None = None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Atom) and self._hash == other._hash and self.key == other.key)


class Var(Atom):
    """A variable with `low <= value < high`; `high` is an index where the range has a symbolic size.

    Variables of one name with other ranges are other variables: what is simplified depends on the range.
    """

    __slots__ = ("high", "low", "name")

    def __init__(self, name: str, high: Index = UNBOUNDED, low: int = 0) -> None:
        super().__init__(("var", name, low, high))
        self.name, self.low, self.high = name, low, high

    def __repr__(self) -> str:
        return self.name


class Div(Atom):
    """`value // by`, rounded down."""

    __slots__ = ("by", "value")

    def __init__(self, value: Expr, by: Index) -> None:
        super().__init__(("div", value, by))
        self.value, self.by = value, by

    def __repr__(self) -> str:
        return f"({self.value} // {_factor(self.by)})"


class Mod(Atom):
    """`value % by`, with the sign of `by`, which is positive."""

    __slots__ = ("by", "value")

    def __init__(self, value: Expr, by: Index) -> None:
        super().__init__(("mod", value, by))
        self.value, self.by = value, by

    def __repr__(self) -> str:
        return f"({self.value} % {_factor(self.by)})"


def _factor(value: Index) -> str:
    return str(value) if isinstance(value, int) or value.is_atom() else f"({value})"


class Expr:
    """A sum: `terms` maps monomials to coefficients other than 0; the empty monomial is the constant."""

    __slots__ = ("_hash", "_items", "terms")

    def __init__(self, terms: dict[Monomial, int]) -> None:
        self.terms = terms
        self._items = frozenset(terms.items())
        self._hash = hash(self._items)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Expr) and self._hash == other._hash and self._items == other._items)

    def __repr__(self) -> str:
        parts = []
        for monomial, coefficient in sorted(self.terms.items(), key=lambda item: (not item[0], str(item[0]))):
            factors = [repr(atom) for atom in monomial]
            if coefficient != 1 or not factors:
                factors.insert(0, str(coefficient))
            parts.append("*".join(factors))
        return " + ".join(parts).replace("+ -", "- ")

    def is_atom(self) -> bool:
        """Whether this is one factor, which needs no parentheses."""
        return len(self.terms) == 1 and all(len(m) == 1 and c == 1 for m, c in self.terms.items())

    def __add__(self, other: Index) -> Index:
        return add(self, other)

    __radd__ = __add__

    def __neg__(self) -> Index:
        return mul(self, -1)

    def __sub__(self, other: Index) -> Index:
        return add(self, mul(other, -1))

    def __rsub__(self, other: int) -> Index:
        return add(other, mul(self, -1))

    def __mul__(self, other: Index) -> Index:
        return mul(self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Index) -> Index:
        return div(self, other)

    def __mod__(self, other: Index) -> Index:
        return mod(self, other)


def var(name: str, high: Index = UNBOUNDED, low: int = 0) -> Expr:
    """A variable as an expression."""
    return of_atom(Var(name, high, low))


def of_atom(atom: Atom) -> Expr:
    """An atom as an expression."""
    return Expr({(atom,): 1})


def _terms(value: Index) -> dict[Monomial, int]:
    if isinstance(value, int):
        return {(): value} if value else {}
    return value.terms


def make(terms: Mapping[Monomial, int]) -> Index:
    """The index with these terms, zeros left out."""
    kept = {monomial: c for monomial, c in terms.items() if c}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Expr(kept)


def add(a: Index, b: Index) -> Index:
    """`a + b`; a remainder and the division that it belongs to become what was divided."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    terms = dict(_terms(a))
    for monomial, c in _terms(b).items():
        terms[monomial] = terms.get(monomial, 0) + c
    return _join(make(terms))


def total(values: Iterable[Index]) -> Index:
    """The sum of all values."""
    terms: dict[Monomial, int] = {}
    for value in values:
        for monomial, c in _terms(value).items():
            terms[monomial] = terms.get(monomial, 0) + c
    return _join(make(terms))


def product(values: Iterable[Index]) -> Index:
    """The product of all values, 1 for none."""
    result: Index = 1
    for value in values:
        result = mul(result, value)
    return result


def mul(a: Index, b: Index) -> Index:
    """`a * b`, multiplied out."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 1:
        return b
    if b == 1:
        return a
    terms: dict[Monomial, int] = {}
    for left, c in _terms(a).items():
        for right, d in _terms(b).items():
            monomial = tuple(sorted(left + right, key=_order))
            terms[monomial] = terms.get(monomial, 0) + c * d
    return _join(make(terms))


def _order(atom: Atom) -> tuple[str, int]:
    if atom._order is None:
        atom._order = (atom.name, 0) if isinstance(atom, Var) else (repr(atom), 1)
    return atom._order


def _join(value: Index) -> Index:
    """Undo splits: `m*(e // m) + e % m` is `e`, and `m*((e // m) % n) + e % m` is `e % (m*n)`."""
    if isinstance(value, int):
        return value
    for monomial, c in value.terms.items():
        for position, atom in enumerate(monomial):
            if isinstance(atom, Mod):
                rest = monomial[:position] + monomial[position + 1 :]
                joined = _join_one(value, monomial, rest, atom, c)
                if joined is not None:
                    return _join(joined)
    return value


def _join_one(value: Expr, monomial: Monomial, rest: Monomial, atom: Mod, c: int) -> Index | None:
    quotient = div(atom.value, atom.by)
    scale = mul(Expr({rest: c}) if rest else c, atom.by)
    # The plain pair: scale*quotient has to be among the terms as it is.
    wanted = mul(scale, quotient)
    if isinstance(wanted, Expr) and all(value.terms.get(m) == k for m, k in wanted.terms.items()):
        terms = {m: k for m, k in value.terms.items() if m != monomial and m not in wanted.terms}
        return add(make(terms), mul(Expr({rest: c}) if rest else c, atom.value))
    if not isinstance(quotient, Expr):
        return None
    for other, k in value.terms.items():
        for upper in other:
            if isinstance(upper, Mod) and upper.value == quotient:
                without = list(other)
                without.remove(upper)
                if make({tuple(without): k}) == scale:
                    terms = {m: n for m, n in value.terms.items() if m not in (monomial, other)}
                    whole = mod(atom.value, mul(atom.by, upper.by))
                    return add(make(terms), mul(Expr({rest: c}) if rest else c, whole))
    return None


@functools.lru_cache(maxsize=1 << 16)
def bounds(value: Index) -> tuple[int, int]:
    """The least and the greatest value; ±UNBOUNDED where nothing is known."""
    if isinstance(value, int):
        return value, value
    low = high = 0
    for monomial, c in value.terms.items():
        lo, hi = 1, 1
        for atom in monomial:
            a, b = _atom_bounds(atom)
            corners = (_clip(lo * a), _clip(lo * b), _clip(hi * a), _clip(hi * b))
            lo, hi = min(corners), max(corners)
        lo, hi = (lo * c, hi * c) if c > 0 else (hi * c, lo * c)
        low, high = _clip(low + _clip(lo)), _clip(high + _clip(hi))
    return low, high


def _clip(value: int) -> int:
    return max(-UNBOUNDED, min(UNBOUNDED, value))


def _atom_bounds(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Var):
        top = bounds(atom.high)[1]
        return atom.low, (top if top >= UNBOUNDED else top - 1)
    if isinstance(atom, Mod):
        top = bounds(atom.by)[1]
        low, high = bounds(atom.value)
        limit = top if top >= UNBOUNDED else top - 1
        return 0, min(limit, high) if low >= 0 else limit
    assert isinstance(atom, Div)
    low, high = bounds(atom.value)
    least, most = bounds(atom.by)
    least = max(least, 1)
    results = [_floor(low, least), _floor(low, most), _floor(high, least), _floor(high, most)]
    return min(results), max(results)


def _floor(value: int, by: int) -> int:
    if abs(value) >= UNBOUNDED:
        return value
    return value // by


def is_below(value: Index, limit: Index) -> bool:
    """Whether `0 <= value < limit` is sure."""
    if not not_negative(value):
        return False
    high = bounds(value)[1]
    if isinstance(limit, int):
        return high < limit
    if high < bounds(limit)[0]:
        return True
    if isinstance(value, Expr) and value.is_atom():
        (atom,) = next(iter(value.terms))
        if isinstance(atom, Div):
            return is_below(atom.value, mul(limit, atom.by))
    return _below_symbolic(value, limit)


def not_negative(value: Index) -> bool:
    """Whether `0 <= value` is sure."""
    if bounds(value)[0] >= 0:
        return True
    if not isinstance(value, Expr):
        return False
    low: Index = 0
    for monomial, c in value.terms.items():
        if monomial and min(map(_least, monomial)) < 0:
            return False
        end = product(_top(atom) for atom in monomial) if c < 0 else product(map(_bottom, monomial))
        low = add(low, mul(end, c))
    return bounds(low)[0] >= 0


def _below_symbolic(value: Index, limit: Expr) -> bool:
    top = _highest(value)
    return top is not None and bounds(add(limit, mul(top, -1)))[0] >= 1


def _highest(value: Index) -> Index | None:
    """The value with every variable at the end of its range, symbolic perhaps; None where that isn't the highest."""
    terms = _terms(value).items()
    if any(monomial and (c < 0 or min(map(_least, monomial)) < 0) for monomial, c in terms):
        return None
    return total(mul(product(map(_top, monomial)), c) for monomial, c in terms)


def _top(atom: Atom) -> Index:
    if isinstance(atom, Var):
        return of_atom(atom) if atom.high == UNBOUNDED else add(atom.high, -1)
    if isinstance(atom, Mod):
        return add(atom.by, -1)
    assert isinstance(atom, Div)
    top = _highest(atom.value)
    return of_atom(atom) if top is None or top == atom.value else div(top, atom.by)


def _bottom(atom: Atom) -> Index:
    return of_atom(atom) if isinstance(atom, Var) and atom.high == UNBOUNDED else _least(atom)


def _least(atom: Atom) -> int:
    return _atom_bounds(atom)[0]


def _divide_exactly(monomial: Monomial, c: int, by: Index) -> tuple[Monomial, int] | None:
    """The term divided by `by`, a constant or one monomial, if that leaves nothing over."""
    if isinstance(by, int):
        return (monomial, c // by) if c % by == 0 else None
    if len(by.terms) != 1:
        return None
    ((factors, d),) = by.terms.items()
    rest = list(monomial)
    for atom in factors:
        if atom not in rest:
            return None
        rest.remove(atom)
    return (tuple(rest), c // d) if c % d == 0 else None


def _split_multiples(value: Index, by: Index) -> tuple[Index, Index]:
    """`(q, r)` with `value == q*by + r`, q made of the terms that `by` divides."""
    if isinstance(value, Expr) and value == by:
        return 1, 0
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, c in _terms(value).items():
        exact = _divide_exactly(monomial, c, by)
        if exact is None:
            rest[monomial] = c
        else:
            quotient[exact[0]] = quotient.get(exact[0], 0) + exact[1]
    return make(quotient), make(rest)


def _coarse(value: Index, by: int) -> tuple[int, Index, int | Expr] | None:
    """`(g, a, b)` with `value == g*a + b`, `0 <= b < g` and g dividing `by`, for the largest such g above 1."""
    coefficients = {c for monomial, c in _terms(value).items() if monomial}
    for g in sorted({math.gcd(c, by) for c in coefficients}, reverse=True):
        if g == 1:
            return None
        multiple = {m: c // g for m, c in _terms(value).items() if c % g == 0}
        small = make({m: c for m, c in _terms(value).items() if c % g})
        if isinstance(small, int):
            whole, small = divmod(small, g)
            multiple[()] = multiple.get((), 0) + whole
        if is_below(small, g):
            return g, make(multiple), small
    return None


@functools.lru_cache(maxsize=1 << 16)
def div(value: Index, by: Index) -> Index:
    """`value // by` for a positive `by`; of an empty tensor's size, which no loop ever divides by, 0."""
    if by == 0:
        return 0
    if by == 1:
        return value
    if isinstance(value, int) and isinstance(by, int):
        return value // by
    quotient, rest = _split_multiples(value, by)
    if is_below(rest, by):
        return quotient
    if isinstance(rest, int) and is_below(add(rest, by), by):
        return add(quotient, -1)
    if isinstance(rest, Expr) and isinstance(by, int):
        coarse = _coarse(rest, by)
        if coarse is not None:
            g, multiple, _ = coarse
            return add(quotient, div(multiple, by // g))
        if rest.is_atom():
            (atom,) = next(iter(rest.terms))
            if isinstance(atom, Div):
                return add(quotient, div(atom.value, mul(atom.by, by)))
            if isinstance(atom, Mod) and isinstance(atom.by, int) and atom.by % by == 0:
                return add(quotient, mod(div(atom.value, by), atom.by // by))
    inner = rest if isinstance(rest, Expr) else None
    if inner is None:
        inner = Expr({(): int(rest)})  # type: ignore[arg-type]  # a constant over a symbolic size
    return add(quotient, of_atom(Div(inner, by)))


@functools.lru_cache(maxsize=1 << 16)
def mod(value: Index, by: Index) -> Index:
    """`value % by` for a positive `by`; 0 for an empty tensor's size."""
    if by in (0, 1):
        return 0
    if isinstance(value, int) and isinstance(by, int):
        return value % by
    rest = _split_multiples(value, by)[1]
    if is_below(rest, by):
        return rest
    if isinstance(rest, int) and is_below(add(rest, by), by):
        return add(rest, by)
    if isinstance(rest, Expr) and isinstance(by, int):
        coarse = _coarse(rest, by)
        if coarse is not None:
            g, multiple, small = coarse
            return add(mul(mod(multiple, by // g), g), small)
        if rest.is_atom():
            (atom,) = next(iter(rest.terms))
            if isinstance(atom, Mod) and isinstance(atom.by, int) and atom.by % by == 0:
                return mod(atom.value, by)
    if not isinstance(rest, Expr):
        rest = Expr({(): rest})
    return of_atom(Mod(rest, by))


def substitute(value: Index, values: Mapping[Atom, Index]) -> Index:
    """`value` with variables replaced, simplified anew."""
    if isinstance(value, int) or not values:
        return value
    parts = []
    for monomial, c in value.terms.items():
        factor: Index = c
        for atom in monomial:
            factor = mul(factor, _substitute_atom(atom, values))
        parts.append(factor)
    return total(parts)


def _substitute_atom(atom: Atom, values: Mapping[Atom, Index]) -> Index:
    if isinstance(atom, Var):
        return values.get(atom, of_atom(atom))
    assert isinstance(atom, (Div, Mod))
    inner, by = substitute(atom.value, values), substitute(atom.by, values)
    return div(inner, by) if isinstance(atom, Div) else mod(inner, by)


def variables(value: Index) -> set[Var]:
    """Every variable in an index, those inside divisions too."""
    found: set[Var] = set()
    for monomial in _terms(value):
        for atom in monomial:
            if isinstance(atom, Var):
                found.add(atom)
            elif isinstance(atom, (Div, Mod)):
                found |= variables(atom.value) | variables(atom.by)
    return found


def coefficient(value: Index, variable: Var) -> Index | None:
    """The factor of a variable in which the index is linear, else None."""
    parts: list[Index] = []
    for monomial, c in _terms(value).items():
        inside = [atom for atom in monomial if atom == variable]
        rest = tuple(atom for atom in monomial if atom != variable)
        if len(inside) > 1 or any(variable in variables(of_atom(atom)) for atom in rest):
            return None
        if inside:
            parts.append(make({rest: c}))
    return total(parts)


def evaluate(value: Index, values: Mapping[str, int]) -> int:
    """The number that an index has for these values of its variables."""
    if isinstance(value, int):
        return value
    result = 0
    for monomial, c in value.terms.items():
        for atom in monomial:
            if isinstance(atom, Var):
                c *= values[atom.name]
            elif isinstance(atom, Div):
                c *= evaluate(atom.value, values) // evaluate(atom.by, values)
            elif isinstance(atom, Mod):
                c *= evaluate(atom.value, values) % evaluate(atom.by, values)
        result += c
    return result


def contiguous_strides(shape: Iterable[Index]) -> tuple[Index, ...]:
    """Row-major strides of a shape, in elements."""
    strides: list[Index] = []
    step: Index = 1
    for size in reversed(tuple(shape)):
        strides.append(step)
        step = mul(step, size)
    return tuple(reversed(strides))


def flatten(indices: Iterable[Index], shape: Iterable[Index]) -> Index:
    """The row-major position of an element."""
    return total(mul(i, stride) for i, stride in zip(indices, contiguous_strides(shape)))


def unflatten(position: Index, shape: tuple[Index, ...]) -> tuple[Index, ...]:
    """The indices of the element at a row-major position, which is known to be inside."""
    result: list[Index] = []
    for size, stride in zip(shape, contiguous_strides(shape)):
        first = all(done == 1 for done in shape[: len(result)])
        outer = div(position, stride)
        result.append(outer if first else mod(outer, size))
    return tuple(result)
