"""Scalars that only the running entry knows (`values.Host`): expressions over them, decisions on them."""

from __future__ import annotations

from typing import Any

from ..reasons import Break
from ..values import Const, Host, Value

#: numbers that take part in host expressions
NUMBERS = (int, float, bool)
#: operators that can't fail and give a scalar, for any operands that are numbers
SAFE_OPERATORS = frozenset({"+", "-", "*", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^"})
#: how many operators an expression may nest before its value is taken as it is
DEEP = 32
DIVISIONS = frozenset({"/", "//", "%"})


class Scalars:
    """Unspecialised scalars."""

    def host(self, text: str, operands: tuple[Value, ...], example: Any) -> Value:
        """The expression `text` over `operands`, whose value in this call is `example`."""
        made = Host(example, None, text, operands)
        made.depth = 1 + max((o.depth for o in operands if type(o) is Host), default=0)
        return self.specialise(made) if made.depth > DEEP else made

    def host_call(self, function: Value, args: list[Value], kwargs: dict[str, Value], example: Any) -> Host:
        """Have the entry call `function`, before its graph, in program order; the result is a scalar like `example`."""
        if self.graph.n_ops and self.touched:
            # The call must not see objects in a state from before changes that the entry has yet to write back.
            raise Break("host-value-branch", "call after changes")
        self.steps_host.append((function, list(args), dict(kwargs)))
        return Host(example, None, "", (), len(self.steps_host) - 1)

    def is_number(self, value: Value) -> bool:
        """Whether `value` can be an operand of a host expression."""
        return type(value) is Host and value.cls in NUMBERS or type(value) is Const and type(value.value) in NUMBERS

    def example_of(self, value: Value) -> Any:
        """The operand's value in the call being captured."""
        return value.example if type(value) is Host else value.value  # type: ignore[attr-defined]

    def host_binary(self, symbol: str, a: Value, b: Value) -> Value:
        """An operator with at least one open operand."""
        x, y = self.example_of(a), self.example_of(b)
        if symbol in SAFE_OPERATORS:
            if symbol in "&|^" and float in (a.cls, b.cls):
                self.throw(
                    TypeError, f"unsupported operand type(s) for {symbol}: '{a.cls.__name__}' and '{b.cls.__name__}'"
                )
            return self.host(f"({{}} {symbol} {{}})", (a, b), evaluate(symbol, x, y))
        if symbol in DIVISIONS:
            if not y:
                return self.specialised_binary(symbol, a, b)
            if type(b) is Host:
                self.require("({} != 0)", (b,), True)
            return self.host(f"({{}} {symbol} {{}})", (a, b), evaluate(symbol, x, y))
        return self.specialised_binary(symbol, a, b)

    def specialised_binary(self, symbol: str, a: Value, b: Value) -> Value:
        """An operator that may fail: for these very values."""
        return self.binary(symbol, self.settle(a), self.settle(b), False)

    def has_varied(self, value: Value) -> bool:
        """Whether a number is known to differ from call to call, not only open."""
        if type(value) is not Host or not value.guardable:
            return False
        if value.source is not None:
            return value.source.steps in self.dynamic
        return any(map(self.has_varied, value.operands))

    def settle(self, value: Value) -> Value:
        """`value` as a constant."""
        return self.specialise(value) if type(value) is Host else value

    def require(self, text: str, operands: tuple[Value, ...], outcome: bool) -> None:
        """Guard that a condition over scalars comes out as now."""
        condition = Host(outcome, None, text, operands)
        if not condition.guardable:
            raise Break("host-value-branch")
        self.relations.append(("rel", condition, outcome))

    def specialise(self, value: Host) -> Const:
        """Take an open scalar at its present value."""
        if value.source is not None:
            value.source.check("eq", value.example)
        elif value.guardable:
            self.relations.append(("rel", value, value.example))
        else:
            raise Break("host-value-branch", "its value is needed while capturing")
        return Const(value.example)

    def decide(self, value: Host) -> bool:
        """The truth of an open scalar, guarded."""
        if not value.guardable:
            raise Break("host-value-branch")
        outcome = bool(value.example)
        self.relations.append(("rel", Host(outcome, None, "bool({})", (value,)), outcome))
        return outcome


def evaluate(symbol: str, x: Any, y: Any) -> Any:
    """An operator on two numbers."""
    from .operators import FUNCTIONS

    return FUNCTIONS[symbol](x, y)
