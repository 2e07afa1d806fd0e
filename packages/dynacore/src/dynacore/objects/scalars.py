"""Scalars that only the running entry knows (`values.Host`): expressions over them, decisions on them."""

from __future__ import annotations

import math
from typing import Any

from .. import logs
from ..errors import SpecialisedSizeError
from ..reasons import Break
from ..sources import Source
from ..torch_api import TORCHS_FILES
from ..values import IN_GRAPH, TEXT_OF, Const, Host, Value
from .integers import Form, Integers, key_of, value_of
from .integers import constant as constant_form
from .number_functions import ALWAYS, can_call, how_to_call

#: numbers that take part in host expressions
NUMBERS = (int, float, bool)
#: operators that can't fail and give a scalar, for any operands that are numbers
SAFE_OPERATORS = frozenset({"+", "-", "*", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^", "min", "max"})
#: how many operators an expression may nest before its value is taken as it is
DEEP = 32
DIVISIONS = frozenset({"/", "//", "%"})
ORDER = frozenset({"<", "<=", ">", ">=", "==", "!="})
#: shifts by the operator that does the same with a power of two
SHIFTS = {"<<": "*", ">>": "//"}
#: operators on ints whose results have forms
WITH_FORM = frozenset({"+", "-", "*", "//", "%", "min", "max"})


class Scalars:
    """Unspecialised scalars."""

    def __init__(self) -> None:
        self.integers = Integers()
        self.atoms: list[Host] = []  # the number behind each atom
        self.marked: list[Host] = []  # sizes of which the program says that they vary
        self.told: set[int] = set()  # ids of numbers of which the log has said that they became constants
        self.by_form: dict[tuple, Host] = {}  # one value for all ways to compute a number

    def host(self, text: str, operands: tuple[Value, ...], example: Any) -> Value:
        """The expression `text` over `operands`, whose value in this call is `example`."""
        made = Host(example, None, text, operands)
        made.depth = 1 + max((o.depth for o in operands if type(o) is Host), default=0)
        return self.specialise(made) if made.depth > DEEP else made

    # -- integers in canonical form ------------------------------------------------------------------------------------

    def size_at(self, source: Source, value: int, low: int) -> Host:
        """A tensor's size or stride that varies from call to call, of at least `low`."""
        known = self.seen.get(id(source))
        if known is None:
            known = self.seen[id(source)] = Host(value, source)
            self.keep.append(source)
            known.form = self.new_atom(known, low)
            self.relations.append(("rel", Host(True, None, TEXT_OF[">="], (known, Const(low))), True))
        return known

    def new_atom(self, value: Host, low: int | None = None) -> Form:
        """The form of a number that isn't an expression over others."""
        form: Form = {(self.integers.atom(low),): 1}
        self.atoms.append(value)
        self.by_form[key_of(form)] = value
        return form

    def form_of(self, value: Value) -> Form | None:
        """The canonical form of an int; None for other values."""
        if type(value) is Const:
            return constant_form(value.value) if type(value.value) is int else None
        if type(value) is not Host or value.cls is not int:
            return None
        if value.form is None:
            value.form = self.new_atom(value)
        return value.form

    def with_form(self, form: Form, symbol: str, a: Value, b: Value, example: int) -> Value:
        """The value of an int whose form is known: one value per form."""
        number = value_of(form)
        if number is not None:
            return Const(number)
        known = self.by_form.get(key_of(form))
        if known is None:
            known = Host(example, None, TEXT_OF[symbol], (a, b))
            known.depth = 1 + max(o.depth for o in (a, b) if type(o) is Host)
            if len(self.atoms) < len(self.integers.low):  # a quotient or remainder became an atom
                self.atoms.append(known)
            elif known.depth > DEEP:
                known = self.written_out(form, example)
            known.form = form
            self.by_form[key_of(form)] = known
        return known

    def written_out(self, form: Form, example: int) -> Host:
        """The sum of products that a form is."""
        total: Host | Const | None = None
        for monomial, factor in form.items():
            term: Host | Const = Const(factor)
            for atom in monomial:
                term = self.written("*", term, self.atoms[atom])
            total = term if total is None else self.written("+", total, term)
        assert type(total) is Host and total.example == example
        return total

    def written(self, symbol: str, a: Host | Const, b: Host | Const) -> Host:
        """An operator on ints, as it is written."""
        made = Host(evaluate(symbol, self.example_of(a), self.example_of(b)), None, TEXT_OF[symbol], (a, b))
        made.depth = 1 + max(o.depth for o in (a, b) if type(o) is Host)
        return made

    def settled(self, value: Host) -> Value:
        """An open int, or the constant that it has been found to be."""
        if not self.integers.replaced or value.cls is not int:
            return value
        number = value_of(self.integers.normal(self.form_of(value)))  # type: ignore[arg-type]
        return value if number is None else Const(number)

    def compared(self, symbol: str, a: Value, b: Value, outcome: bool) -> Value:
        """A comparison of numbers of which one is open."""
        left, right = self.form_of(a), self.form_of(b)
        if left is not None and right is not None:
            known = self.integers.compare(symbol, left, right)
            if known is not None:
                return Const(known)
        return self.host(TEXT_OF[symbol], (a, b), outcome)

    def decide_comparison(self, value: Host) -> bool | None:
        """The outcome of a comparison of ints, guarded unless it follows from what is known; None for other values."""
        symbol = value.symbol
        if symbol not in ORDER:
            return None
        a, b = (self.form_of(operand) for operand in value.operands)
        if a is None or b is None:
            return None
        known = self.integers.compare(symbol, a, b)
        if known is None:
            self.relations.append(("rel", value, value.example))
            self.learn(symbol, a, b, value.example)
            known = value.example
        return known

    def host_call(self, function: Value, args: list[Value], kwargs: dict[str, Value], example: Any) -> Host:
        """Have the entry call `function`, before its graph, in program order; the result is a scalar like `example`."""
        if self.graph.n_ops and self.touched:
            # The call must not see objects in a state from before changes that the entry has yet to write back.
            raise Break("host-value-branch", "call after changes")
        if any(type(value) is Host and value.computed for value in (*args, *kwargs.values())):
            raise Break("host-value-branch", "call with what the graph gives")
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
        if symbol in "&|^" and float in (a.cls, b.cls):
            self.throw(
                TypeError, f"unsupported operand type(s) for {symbol}: '{a.cls.__name__}' and '{b.cls.__name__}'"
            )
        if symbol in SAFE_OPERATORS or symbol in DIVISIONS:
            try:
                result = evaluate(symbol, x, y)
            except ArithmeticError:  # a division by 0, or an int that is no float
                return self.specialised_binary(symbol, a, b)
            if symbol in DIVISIONS and type(b) is Host:
                self.decide_if_open(self.compared("!=", b, Const(0), True))
            return self.combined(symbol, a, b, result)
        if type(b) is Const and type(x) is type(y) is int:
            if symbol in SHIFTS and 0 <= y < 64:
                return self.host_binary(SHIFTS[symbol], a, Const(1 << y))
            if symbol == "**" and y in (2, 3):
                return self.host_binary("*", a if y == 2 else self.host_binary("*", a, a), a)
        return self.open_call(function_of(symbol), [a, b]) or self.specialised_binary(symbol, a, b)

    def open_call(self, function: Any, args: list[Value]) -> Value | None:
        """A function of numbers of which some are open, as an expression over them; None if they must be known."""
        if not all(map(self.is_number, args)):
            return None
        numbers = [self.example_of(arg) for arg in args]
        how = how_to_call(function, numbers)
        if how is None or not can_call(how[1], numbers):
            return None
        try:
            result = function(*numbers)
        except (ArithmeticError, TypeError, ValueError):  # the program's own error, for these very values
            return None
        if not self.meets(how[1], args):
            return None
        return self.host(how[0], tuple(args), result)

    def meets(self, condition: str, args: list[Value]) -> bool:
        """Whether a condition holds of numbers in every call: a guard sees to it, where one can."""
        if any(type(arg) is Host and arg.computed for arg in args):
            return self.surely_meets(condition, args)
        holds = can_call(condition, [self.example_of(arg) for arg in args])
        if holds and condition != ALWAYS:
            self.require(f"({condition})", tuple(args), True)
        return holds

    def surely_meets(self, condition: str, args: list[Value]) -> bool:
        """Whether a condition holds of a number that the graph gives, and constants, whatever the number is.

        The numbers of which a condition holds, with constants beside them, have no gaps: both ends tell.
        """
        number, *constants = args
        bounds = self.extent(number)
        if condition == ALWAYS or bounds is None or not all(type(value) is Const for value in constants):
            return condition == ALWAYS
        beside = [self.example_of(value) for value in constants]
        return all(can_call(condition, [end, *beside]) for end in bounds)

    def extent(self, value: Value) -> Any:
        """The smallest and the largest number that this may be; None where that isn't known."""
        if type(value) is Const:
            return value.value, value.value
        assert type(value) is Host
        if value.text == "float({0})":
            return self.extent(value.operands[0])
        parts = [self.extent(operand) for operand in value.operands]
        if None in parts or value.cls is not int and value.symbol != "/":
            return None
        ends = [max(map(abs, part)) for part in parts]
        if value.symbol == "/":
            (low, high), (by, same) = parts
            return sorted((low / by, high / by)) if by == same and ends[0] < 1e300 else None
        if value.call != IN_GRAPH and value.symbol not in WITH_FORM:
            return None
        most = 1 << 64 if value.call == IN_GRAPH else sum(ends) + math.prod(ends)
        least = self.integers.lower(self.form_of(value))  # type: ignore[arg-type]
        return -most if least is None else least, most

    def decide_if_open(self, value: Value) -> bool:
        """The truth of a comparison."""
        return self.decide(value) if type(value) is Host else value.value  # type: ignore[attr-defined]

    def combined(self, symbol: str, a: Value, b: Value, result: Any) -> Value:
        """An operator that can't fail; ints are brought into canonical form."""
        if symbol in ORDER:
            return self.compared(symbol, a, b, result)
        if symbol in WITH_FORM:
            left, right = self.form_of(a), self.form_of(b)
            if left is not None and right is not None:
                form = self.integers.combine(symbol, left, right)
                if form is not None:
                    return self.with_form(form, symbol, a, b, result)
        return self.host(TEXT_OF[symbol], (a, b), result)

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
        if value.cls is range or value.cls in (str, bytes) and value.symbol == "*":
            for operand in value.operands:
                self.settle(operand)
            return Const(value.example)
        if value.cls is int:
            now = self.settled(value)
            if type(now) is Const:
                return now
        if value.source is not None:
            value.source.check("eq", value.example)
        elif value.guardable:
            self.relations.append(("rel", value, value.example))
        else:
            raise Break("host-value-branch", "its value is needed while capturing")
        form = self.form_of(value)
        if form is not None:
            self.learn("==", form, constant_form(value.example), True)
        return Const(value.example)

    def learn(self, symbol: str, a: Form, b: Form, outcome: bool) -> None:
        """Take a comparison of ints as it came out; sizes that were marked as varying mustn't become constants."""
        self.integers.learn(symbol, a, b, outcome)
        if symbol == "==" and outcome and logs.enabled("dynamic"):
            self.tell_fixed()
        for size in self.marked:
            if type(self.settled(size)) is Const:
                raise SpecialisedSizeError(str(size.source), size.example, *self.place())

    def place(self) -> tuple[str, int]:
        """The line of the program that runs, if there is one outside of torch."""
        places = [(frame.code.co_filename, frame.line) for frame in reversed(self.frames)]
        own = [place for place in places if not place[0].startswith(TORCHS_FILES)]
        return (own or [self.graph.where])[0]

    def tell_fixed(self) -> None:
        """Say which sizes and numbers have become constants."""
        for number in self.atoms:
            if number.source is not None and id(number) not in self.told and type(self.settled(number)) is Const:
                self.told.add(id(number))
                where = "{}:{}".format(*self.graph.where)
                logs.emit("dynamic", f"{number.source} is taken as it is in this call, {number.example}\n  {where}")

    def specialise_parts(self, value: Host) -> None:
        """Take every number in an expression at its present value."""
        form = self.form_of(value)
        if form is None or value.text == "" or not value.operands:
            self.specialise(value)
            return
        for operand in value.operands:
            if type(operand) is Host:
                self.specialise_parts(operand)

    def decide(self, value: Host) -> bool:
        """The truth of an open scalar, guarded."""
        if value.cls is int:
            differs = self.compared("!=", value, Const(0), bool(value.example))
            if type(differs) is not Host:
                return differs.value  # type: ignore[attr-defined]
            value = differs
        if not value.guardable:
            raise Break("host-value-branch")
        known = self.decide_comparison(value) if value.cls is bool else None
        if known is not None:
            return known
        outcome = bool(value.example)
        self.relations.append(("rel", Host(outcome, None, "bool({})", (value,)), outcome))
        return outcome


def evaluate(symbol: str, x: Any, y: Any) -> Any:
    """An operator on two numbers."""
    return function_of(symbol)(x, y)


def function_of(symbol: str) -> Any:
    """What an operator does."""
    from .operators import FUNCTIONS

    return FUNCTIONS[symbol]
