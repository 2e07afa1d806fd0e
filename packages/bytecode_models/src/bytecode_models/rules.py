"""How a release says what a raw instruction means: readers, steps, and the rules on which all releases agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from .image import Code
from .ops import Op


class Raw:
    """The raw instruction being decoded, with what readers need of its code object."""

    __slots__ = ("arg", "consts", "data", "end", "folded", "names", "numbers", "offset", "start")

    def __init__(self, code: Code, numbers: Mapping[str, int]) -> None:
        self.data = code.co_code
        self.numbers = numbers  # of the release's opcodes
        self.consts = code.co_consts
        self.names = code.co_names
        self.arg = 0
        self.start = 0  # offset of the first prefix (EXTENDED_ARG and what is folded), else of the instruction
        self.offset = 0
        self.end = 0  # offset behind the inline caches
        self.folded: Any = None  # left by a prefix instruction such as KW_NAMES

    def next_is(self, opcode: str) -> bool:
        """Is `opcode` the instruction behind this one?"""
        at, extended = self.end, self.numbers["EXTENDED_ARG"]
        while self.data[at] == extended:
            at += 2
        return self.data[at] == self.numbers[opcode]


Reader = Callable[[Raw], Any]
#: Raw instructions (name, operand or reader) that do the rest of a raw instruction. AGAIN: it is run from its start.
Rest = tuple[tuple[str, int | Reader], ...]
AGAIN: Final = ("AGAIN", 0)


class Step(NamedTuple):
    """One neutral instruction of a raw one. A callable operand is a reader. Without `op` the operand `a` is folded
    into the next instruction. `rest` continues right before this step, when it isn't the first one."""

    op: Op | None
    a: Any = None
    b: Any = None
    c: Any = None
    target: Reader | None = None
    when: Reader | None = None
    rest: Rest = ()


Rule = tuple[Step, ...]


def arg(raw: Raw) -> int:
    """The operand as it is."""
    return raw.arg


def flag(raw: Raw) -> bool:
    """The operand as a truth value."""
    return bool(raw.arg)


def const(raw: Raw) -> Any:
    """The constant that the operand numbers."""
    return raw.consts[raw.arg]


def name(raw: Raw) -> str:
    """The name that the operand numbers."""
    return raw.names[raw.arg]


def folded(raw: Raw) -> Any:
    """What the prefix instruction before left."""
    return raw.folded


def forward(raw: Raw) -> int:
    """Target of a forward jump."""
    return raw.end + 2 * raw.arg


def forward_and(units: int) -> Reader:
    """Target of a forward jump that goes on behind the instructions at its end, which specialised forms alone run."""
    return lambda raw: raw.end + 2 * (raw.arg + units)


def backward(raw: Raw) -> int:
    """Target of a backward jump."""
    return raw.end - 2 * raw.arg


def high(raw: Raw) -> int:
    """The first slot of an operand that holds two."""
    return raw.arg >> 4


def low(raw: Raw) -> int:
    """The second slot of an operand that holds two."""
    return raw.arg & 15


def before(opcode: str) -> Reader:
    """Is `opcode` the next instruction? Then this one may be folded into it."""
    return lambda raw: raw.next_is(opcode)


def not_before(opcode: str) -> Reader:
    """Is another instruction next?"""
    return lambda raw: not raw.next_is(opcode)


def bit(n: int) -> Reader:
    """Is bit `n` of the operand set?"""
    return lambda raw: bool(raw.arg >> n & 1)


def shifted_name(n: int) -> Reader:
    """The name numbered by the operand without its low `n` bits."""
    return lambda raw: raw.names[raw.arg >> n]


def literal(value: Any) -> Reader:
    """A fixed operand that is itself callable."""
    return lambda raw: value


def item(table: Mapping[int, Any] | tuple[Any, ...], shift: int = 0) -> Reader:
    """The entry of `table` that the operand numbers."""
    return lambda raw: table[raw.arg >> shift]


def unfolded(raw: Raw) -> bool:
    """Has nothing been folded, neither this instruction nor one before it?"""
    return raw.folded is None


def without(n: int) -> Reader:
    """The operand with bit `n` cleared."""
    return lambda raw: raw.arg & ~(1 << n)


def one(op: Op, a: Any = None, b: Any = None, c: Any = None, *, target: Reader | None = None) -> Rule:
    """A raw instruction that is one neutral instruction."""
    return (Step(op, a, b, c, target),)


def jumps_if(opcode: str, target: Reader) -> dict[str, Rule]:
    """The conditional jumps whose names begin with `opcode`."""
    return {
        f"{opcode}_IF_{condition.upper()}": one(Op.JUMP_IF, condition, target=target)
        for condition in ("true", "false", "none", "not_none")
    }


def calls(shape: str) -> dict[str, Rule]:
    """Calls, and loads of attributes to be called, where callable and receiver are laid out in this shape."""

    def method(raw: Raw) -> tuple[bool, bool]:
        return raw.arg & 1 != 0, raw.arg & 2 != 0

    return {
        "CALL": one(Op.CALL, arg, folded, shape),
        "CALL_FUNCTION_EX": one(Op.CALL_EX, bit(0), None, shape),
        "LOAD_ATTR": (
            Step(Op.LOAD_METHOD, shifted_name(1), shape, when=bit(0)),
            Step(Op.LOAD_ATTR, shifted_name(1), when=lambda raw: not raw.arg & 1),
        ),
        "LOAD_SUPER_ATTR": one(Op.LOAD_SUPER, shifted_name(2), method, shape),
    }


def make_function(attributes: Mapping[int, str]) -> dict[str, Rule]:
    """MAKE_FUNCTION and the instructions behind it that set attributes, topmost first: folded into the last of them."""
    again = "SET_FUNCTION_ATTRIBUTE"

    def found(raw: Raw) -> tuple[str, ...]:
        return attributes[raw.arg], *raw.folded

    return {
        "MAKE_FUNCTION": (Step(None, (), when=before(again)), Step(Op.MAKE_FUNCTION, (), when=unfolded)),
        again: (Step(None, found, when=before(again)), Step(Op.MAKE_FUNCTION, found, when=not_before(again))),
    }


BINARY_SYMBOLS: Final = ("+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^")
COMPARE_SYMBOLS: Final = ("<", "<=", "==", "!=", ">", ">=")
#: Order on the stack, and bit in the operand, of what a function may get when it is made.
FUNCTION_ATTRS: Final = ("defaults", "kwdefaults", "annotations", "closure")
RESUME_PLACES: Final = ("function", "yield", "yield_from", "await")

SHARED: Final[dict[str, Rule]] = {
    "CACHE": (),
    "NOP": one(Op.NOP),
    "POP_TOP": one(Op.POP),
    "COPY": one(Op.COPY, arg),
    "SWAP": one(Op.SWAP, arg),
    "PUSH_NULL": one(Op.PUSH_NULL),
    "LOAD_CONST": one(Op.LOAD_CONST, const),
    "STORE_FAST": one(Op.STORE_LOCAL, arg),
    "DELETE_FAST": one(Op.DELETE_LOCAL, arg),
    "MAKE_CELL": one(Op.MAKE_CELL, arg),
    "COPY_FREE_VARS": one(Op.BIND_FREE_VARS, arg),
    "LOAD_DEREF": one(Op.LOAD_DEREF, arg),
    "STORE_DEREF": one(Op.STORE_DEREF, arg),
    "DELETE_DEREF": one(Op.DELETE_DEREF, arg),
    "STORE_GLOBAL": one(Op.STORE_GLOBAL, name),
    "DELETE_GLOBAL": one(Op.DELETE_GLOBAL, name),
    "LOAD_NAME": one(Op.LOAD_NAME, name),
    "STORE_NAME": one(Op.STORE_NAME, name),
    "DELETE_NAME": one(Op.DELETE_NAME, name),
    "LOAD_BUILD_CLASS": one(Op.LOAD_BUILD_CLASS),
    "SETUP_ANNOTATIONS": one(Op.SETUP_ANNOTATIONS),
    "IMPORT_NAME": one(Op.IMPORT_NAME, name, "eager"),
    "IMPORT_FROM": one(Op.IMPORT_FROM, name),
    "STORE_ATTR": one(Op.STORE_ATTR, name),
    "DELETE_ATTR": one(Op.DELETE_ATTR, name),
    "UNARY_NEGATIVE": one(Op.UNARY, "-"),
    "UNARY_NOT": one(Op.UNARY, "not"),
    "UNARY_INVERT": one(Op.UNARY, "~"),
    "IS_OP": one(Op.IS, flag),
    "CONTAINS_OP": one(Op.CONTAINS, flag),
    "STORE_SUBSCR": one(Op.STORE_ITEM),
    "DELETE_SUBSCR": one(Op.DELETE_ITEM),
    "BUILD_TUPLE": one(Op.BUILD, "tuple", arg),
    "BUILD_LIST": one(Op.BUILD, "list", arg),
    "BUILD_SET": one(Op.BUILD, "set", arg),
    "BUILD_MAP": one(Op.BUILD, "dict", arg),
    "BUILD_STRING": one(Op.BUILD, "string", arg),
    "BUILD_SLICE": one(Op.BUILD, "slice", arg),
    "LIST_APPEND": one(Op.APPEND, "list", arg),
    "SET_ADD": one(Op.APPEND, "set", arg),
    "MAP_ADD": one(Op.APPEND, "dict", arg),
    "LIST_EXTEND": one(Op.EXTEND, "list", arg),
    "SET_UPDATE": one(Op.EXTEND, "set", arg),
    "DICT_UPDATE": one(Op.EXTEND, "dict_update", arg),
    "DICT_MERGE": one(Op.EXTEND, "dict_merge", arg),
    "UNPACK_SEQUENCE": one(Op.UNPACK, arg),
    "UNPACK_EX": one(Op.UNPACK, lambda raw: raw.arg & 0xFF, lambda raw: raw.arg >> 8),
    "JUMP_FORWARD": one(Op.JUMP, target=forward),
    "JUMP_BACKWARD": one(Op.JUMP, target=backward),
    "JUMP_BACKWARD_NO_INTERRUPT": one(Op.JUMP, target=backward),
    "RETURN_VALUE": one(Op.RETURN),
    "RAISE_VARARGS": one(Op.RAISE, arg),
    "RERAISE": one(Op.RERAISE, arg),
    "PUSH_EXC_INFO": one(Op.ENTER_HANDLER),
    "POP_EXCEPT": one(Op.LEAVE_HANDLER),
    "CHECK_EXC_MATCH": one(Op.MATCH_EXC, "single"),
    "CHECK_EG_MATCH": one(Op.MATCH_EXC, "group"),
    "RETURN_GENERATOR": one(Op.START, "create_generator"),
    "YIELD_VALUE": one(Op.YIELD),
    "GET_AWAITABLE": one(Op.GET_AWAITABLE, arg),
    "GET_AITER": one(Op.GET_AITER),
    "GET_ANEXT": one(Op.GET_ANEXT),
    "END_ASYNC_FOR": one(Op.END_ASYNC_FOR),
    "GET_LEN": one(Op.MATCH, "len", 0),
    "MATCH_MAPPING": one(Op.MATCH, "mapping", 0),
    "MATCH_SEQUENCE": one(Op.MATCH, "sequence", 0),
    "MATCH_KEYS": one(Op.MATCH, "keys", 0),
    "MATCH_CLASS": one(Op.MATCH, "class", arg),
}


def numbered(text: str) -> dict[str, int]:
    """The opcode numbers written as `number NAME NAME …  number NAME …`: names count on from the number before them."""
    numbers: dict[str, int] = {}
    number = 0
    for word in text.split():
        if word.isdecimal():
            number = int(word)
        else:
            numbers[word] = number
            number += 1
    return numbers
