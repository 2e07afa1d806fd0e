"""Integer expressions in canonical form: which two are equal, and what follows from the bounds of their parts.

A form is a polynomial over atoms with integer coefficients: a dict from monomials (sorted tuples of atoms' numbers) to
coefficients, none of them zero. An atom is a number that only the running entry knows (a tensor's size, an int that
varies), or a quotient, remainder, minimum or
maximum that doesn't simplify. Equal forms are equal for all values of the atoms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

Monomial = tuple[int, ...]
Form = dict[Monomial, int]
ONE: Monomial = ()

#: products with more terms than these aren't followed
MAX_TERMS = 64


def constant(value: int) -> Form:
    """The form of a known number."""
    return {ONE: value} if value else {}


def value_of(form: Form) -> int | None:
    """The number that the form is, None if it varies."""
    if not form:
        return 0
    return form.get(ONE) if len(form) == 1 else None


def key_of(form: Form) -> tuple:
    """Equal for equal forms."""
    return tuple(sorted(form.items()))


def plus(a: Form, b: Form, sign: int = 1) -> Form:
    """`a + sign * b`."""
    result = dict(a)
    for monomial, factor in b.items():
        total = result.get(monomial, 0) + sign * factor
        if total:
            result[monomial] = total
        else:
            result.pop(monomial, None)
    return result


def times(a: Form, b: Form) -> Form | None:
    """`a * b`; None when that has too many terms."""
    if len(a) * len(b) > MAX_TERMS:
        return None
    result: Form = {}
    for m, f in a.items():
        for n, g in b.items():
            monomial = tuple(sorted(m + n)) if m and n else m or n
            total = result.get(monomial, 0) + f * g
            if total:
                result[monomial] = total
            else:
                del result[monomial]
    return result


def quotient(a: Form, b: Form) -> Form | None:
    """`a / b` where `b` has one term that divides every term of `a`; None otherwise."""
    if len(b) != 1:
        return constant(1) if a == b and a else None
    ((divisor, factor),) = b.items()
    result: Form = {}
    for monomial, coefficient in a.items():
        rest = list(monomial)
        for atom in divisor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if coefficient % factor:
            return None
        result[tuple(rest)] = coefficient // factor
    return result


class Integers:
    """The atoms of one capture, what is known of them, and what was decided about them."""

    def __init__(self) -> None:
        self.low: list[int | None] = []  # by atom: the smallest value that it can have
        self.replaced: dict[int, Form] = {}  # atoms known to equal something else
        self.decided: dict[tuple, bool] = {}  # (symbol, form) -> whether `form symbol 0` is guarded to hold
        self.composed: dict[tuple, int] = {}  # (symbol, form, form) -> atom

    def atom(self, low: int | None) -> int:
        """A new atom."""
        self.low.append(low)
        return len(self.low) - 1

    def normal(self, form: Form) -> Form:
        """The form with known equalities applied."""
        while self.replaced:
            found = next((m for m in form if any(atom in self.replaced for atom in m)), None)
            if found is None:
                break
            factor = form[found]
            product: Form | None = {tuple(atom for atom in found if atom not in self.replaced): factor}
            for atom in found:
                if atom in self.replaced and product is not None:
                    product = times(product, self.replaced[atom])
            if product is None:
                break
            form = plus({m: f for m, f in form.items() if m != found}, product)
        return form

    def combine(self, symbol: str, a: Form, b: Form) -> Form | None:
        """The form of `a symbol b`; None where there is none."""
        a, b = self.normal(a), self.normal(b)
        if symbol == "+":
            return plus(a, b)
        if symbol == "-":
            return plus(a, b, -1)
        if symbol == "*":
            return times(a, b)
        if symbol == "//":
            exact = quotient(a, b)
            return exact if exact is not None else self.composite(symbol, a, b)
        if symbol in ("min", "max"):
            above = self.compare(">=", a, b)
            if above is not None:
                return a if above is (symbol == "max") else b
            return self.extremum(symbol, *sorted((a, b), key=key_of))
        if symbol == "%":
            return {} if quotient(a, b) is not None else self.composite(symbol, a, b)
        return None

    def composite(self, symbol: str, a: Form, b: Form) -> Form:
        """The atom of a quotient or remainder."""
        mark = (symbol, key_of(a), key_of(b))
        atom = self.composed.get(mark)
        if atom is None:
            positive = self.least(b, 1)
            floor = 0 if positive and (symbol == "%" or self.least(a, 0)) else None
            atom = self.composed[mark] = self.atom(floor)
        return {(atom,): 1}

    def extremum(self, symbol: str, a: Form, b: Form) -> Form:
        """The atom of the smaller or the larger of two, which neither always is."""
        mark = (symbol, key_of(a), key_of(b))
        atom = self.composed.get(mark)
        if atom is None:
            lows = [low for low in (self.lower(a), self.lower(b)) if low is not None]
            if symbol == "min":
                atom = self.atom(min(lows) if len(lows) == 2 else None)
            else:
                atom = self.atom(max(lows, default=None))
            self.composed[mark] = atom
            for one in (a, b):
                self.learn("<=" if symbol == "min" else ">=", {(atom,): 1}, one, True)
        return {(atom,): 1}

    def least(self, form: Form, bound: int) -> bool:
        """Whether the form is known to be `bound` or more."""
        low = self.lower(form)
        return low is not None and low >= bound

    def lower(self, form: Form) -> int | None:
        """A number below which the form doesn't come; None if none is known.

        Every atom is written as its smallest value plus something not negative; if no term of that something has a
        negative coefficient, the smallest value is what remains.
        """
        shifted: Form = {}
        for monomial, factor in form.items():
            product: Form | None = {ONE: factor}
            for atom in monomial:
                low = self.low[atom]
                if low is None or product is None:
                    return None
                product = times(product, plus({(atom,): 1}, constant(low)))
            if product is None:
                return None
            shifted = plus(shifted, product)
        if any(factor < 0 for monomial, factor in shifted.items() if monomial):
            return None
        return shifted.get(ONE, 0)

    # -- decisions -----------------------------------------------------------------------------------------------------

    def difference(self, a: Form, b: Form) -> Form:
        """`a - b`, divided by the common factor of its terms."""
        form = plus(self.normal(a), self.normal(b), -1)
        common = math.gcd(*form.values()) if form else 1
        return {m: f // common for m, f in form.items()} if common > 1 else form

    def compare(self, symbol: str, a: Form, b: Form) -> bool | None:
        """Whether `a symbol b`, where that follows from the forms, the bounds and earlier decisions."""
        d = self.difference(a, b)
        number = value_of(d)
        if number is not None:
            return _holds(symbol, number)
        if symbol in ("==", "!="):
            equal = self._equal(d)
            return equal if equal is None or symbol == "==" else not equal
        if symbol in ("<", ">="):
            above = self._at_least_zero(d)
            return above if above is None or symbol == ">=" else not above
        above = self._at_least_zero(plus(constant(-1), d))
        return above if above is None or symbol == ">" else not above

    def _equal(self, d: Form) -> bool | None:
        d = _signed(d)
        known = self.decided.get(("==", key_of(d)))
        if known is not None:
            return known
        if self.least(d, 1) or self.least(_negated(d), 1):
            return False
        return None

    def _at_least_zero(self, d: Form) -> bool | None:
        known = self.decided.get((">=", key_of(d)))
        if known is not None:
            return known
        below = self.decided.get((">=", key_of(plus(constant(-1), d, -1))))
        if below is not None:
            return not below
        if self.least(d, 0):
            return True
        return False if self.least(_negated(d), 1) else None

    def learn(self, symbol: str, a: Form, b: Form, outcome: bool) -> None:
        """Take it that `a symbol b` is as it came out: a guard holds every call to that."""
        d = self.difference(a, b)
        if symbol in ("==", "!="):
            equal = outcome if symbol == "==" else not outcome
            self.decided["==", key_of(_signed(d))] = equal
            if equal:
                self.equate(d)
                self.equate_divided()
            return
        if symbol in (">", "<="):
            d = plus(constant(-1), d)
        above = outcome if symbol in (">", ">=") else not outcome
        self.decided[">=", key_of(d)] = above
        self.raise_bound(d if above else plus(constant(-1), d, -1))

    def raise_bound(self, d: Form) -> None:
        """Take it that `d` isn't negative: a bound, if it is an atom and a number."""
        for monomial, factor in d.items():
            if len(monomial) == 1 and factor == 1 and len(d) <= 2 and d.keys() <= {monomial, ONE}:
                (atom,) = monomial
                low, least = self.low[atom], -d.get(ONE, 0)
                self.low[atom] = least if low is None else max(low, least)

    def equate(self, d: Form) -> None:
        """Put an atom's equal in its place from now on, if `d == 0` gives one."""
        for monomial, factor in sorted(d.items(), reverse=True):
            if len(monomial) == 1 and abs(factor) == 1:
                (atom,) = monomial
                rest = {m: -f * factor for m, f in d.items() if m != monomial}
                if not any(atom in m for m in rest) and not self._leads_back(atom, rest.keys()):
                    self.replaced[atom] = rest
                    return

    def equate_divided(self) -> None:
        """A number whose quotient and remainder are known is known itself."""
        for (symbol, a, b), atom in list(self.composed.items()):
            rest = self.composed.get(("%", a, b)) if symbol == "//" else None
            if rest is not None and not self.replaced.keys().isdisjoint((atom, rest)):
                form = self.normal(dict(a))
                parts = [value_of(self.normal(one)) for one in ({(atom,): 1}, dict(b), {(rest,): 1})]
                if value_of(form) is None and None not in parts:
                    whole, by, over = parts
                    self.equate(plus(form, constant(whole * by + over), -1))  # type: ignore[operator]

    def _leads_back(self, atom: int, monomials: Iterable[Monomial]) -> bool:
        """Whether replacing the atom by these would go in a circle."""
        return any(
            other == atom or (other in self.replaced and self._leads_back(atom, self.replaced[other]))
            for monomial in monomials
            for other in monomial
        )


def _negated(form: Form) -> Form:
    return {m: -f for m, f in form.items()}


def _signed(form: Form) -> Form:
    """The form or its negative, the same for both."""
    return form if form[min(form)] > 0 else _negated(form)


def _holds(symbol: str, difference: int) -> bool:
    outcomes: dict[str, Any] = {
        "<": difference < 0, "<=": difference <= 0, ">": difference > 0, ">=": difference >= 0,
        "==": difference == 0, "!=": difference != 0,
    }  # fmt: skip
    return outcomes[symbol]
