"""CPython 3.12."""

from __future__ import annotations

from .model import VersionModel
from .ops import Op
from .rules import (
    AGAIN,
    BINARY_SYMBOLS,
    COMPARE_SYMBOLS,
    FUNCTION_ATTRS,
    RESUME_PLACES,
    SHARED,
    Raw,
    Step,
    arg,
    bit,
    const,
    folded,
    forward,
    item,
    literal,
    name,
    numbered,
    one,
    shifted_name,
)

SHAPE = "null_first"

NUMBERS = numbered("""
    0 CACHE POP_TOP PUSH_NULL INTERPRETER_EXIT END_FOR END_SEND  9 NOP  11 UNARY_NEGATIVE UNARY_NOT  15 UNARY_INVERT
    17 RESERVED  25 BINARY_SUBSCR BINARY_SLICE STORE_SLICE  30 GET_LEN MATCH_MAPPING MATCH_SEQUENCE MATCH_KEYS
    35 PUSH_EXC_INFO CHECK_EXC_MATCH CHECK_EG_MATCH  49 WITH_EXCEPT_START GET_AITER GET_ANEXT BEFORE_ASYNC_WITH
    53 BEFORE_WITH END_ASYNC_FOR CLEANUP_THROW  60 STORE_SUBSCR DELETE_SUBSCR  68 GET_ITER GET_YIELD_FROM_ITER
    71 LOAD_BUILD_CLASS  74 LOAD_ASSERTION_ERROR RETURN_GENERATOR  83 RETURN_VALUE  85 SETUP_ANNOTATIONS
    87 LOAD_LOCALS  89 POP_EXCEPT STORE_NAME DELETE_NAME UNPACK_SEQUENCE FOR_ITER UNPACK_EX STORE_ATTR DELETE_ATTR
    97 STORE_GLOBAL DELETE_GLOBAL SWAP LOAD_CONST LOAD_NAME BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP LOAD_ATTR
    107 COMPARE_OP IMPORT_NAME IMPORT_FROM JUMP_FORWARD  114 POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE LOAD_GLOBAL IS_OP
    118 CONTAINS_OP RERAISE COPY RETURN_CONST BINARY_OP SEND LOAD_FAST STORE_FAST DELETE_FAST LOAD_FAST_CHECK
    128 POP_JUMP_IF_NOT_NONE POP_JUMP_IF_NONE RAISE_VARARGS GET_AWAITABLE MAKE_FUNCTION BUILD_SLICE
    134 JUMP_BACKWARD_NO_INTERRUPT MAKE_CELL LOAD_CLOSURE LOAD_DEREF STORE_DEREF DELETE_DEREF JUMP_BACKWARD
    141 LOAD_SUPER_ATTR CALL_FUNCTION_EX LOAD_FAST_AND_CLEAR EXTENDED_ARG LIST_APPEND SET_ADD MAP_ADD
    149 COPY_FREE_VARS YIELD_VALUE RESUME MATCH_CLASS  155 FORMAT_VALUE BUILD_CONST_KEY_MAP BUILD_STRING
    162 LIST_EXTEND SET_UPDATE DICT_MERGE DICT_UPDATE  171 CALL KW_NAMES CALL_INTRINSIC_1 CALL_INTRINSIC_2
    175 LOAD_FROM_DICT_OR_GLOBALS LOAD_FROM_DICT_OR_DEREF
""")

CACHES = {
    "BINARY_OP": 1,
    "BINARY_SUBSCR": 1,
    "CALL": 3,
    "COMPARE_OP": 1,
    "FOR_ITER": 1,
    "LOAD_ATTR": 9,
    "LOAD_GLOBAL": 4,
    "LOAD_SUPER_ATTR": 1,
    "SEND": 1,
    "STORE_ATTR": 4,
    "STORE_SUBSCR": 1,
    "UNPACK_SEQUENCE": 1,
}

UNARY_POSITIVE = 5
INTRINSICS_1 = (
    None,
    "PRINT",
    "IMPORT_STAR",
    "STOPITERATION_ERROR",
    "ASYNC_GEN_WRAP",
    "UNARY_POSITIVE",
    "LIST_TO_TUPLE",
    "TYPEVAR",
    "PARAMSPEC",
    "TYPEVARTUPLE",
    "SUBSCRIPT_GENERIC",
    "TYPEALIAS",
)
INTRINSICS_2 = (
    None,
    "PREP_RERAISE_STAR",
    "TYPEVAR_WITH_BOUND",
    "TYPEVAR_WITH_CONSTRAINTS",
    "SET_FUNCTION_TYPE_PARAMS",
)


def conversion(raw: Raw) -> str | None:
    """What FORMAT_VALUE applies before formatting."""
    return (None, "str", "repr", "ascii")[raw.arg & 3]


def converts_below_spec(raw: Raw) -> bool:
    """Does FORMAT_VALUE convert a value that lies below its format specification?"""
    return raw.arg & 4 != 0 and raw.arg & 3 != 0


def function_attrs(raw: Raw) -> tuple[str, ...]:
    """What MAKE_FUNCTION finds on the stack below the code."""
    return tuple(attr for n, attr in enumerate(FUNCTION_ATTRS) if raw.arg >> n & 1)


def behind_end_for(raw: Raw) -> int:
    """Where an exhausted FOR_ITER goes: END_FOR is for the specialised form alone."""
    return forward(raw) + 2


RULES = {name: rule for name, rule in SHARED.items() if name in NUMBERS} | {
    "EXTENDED_ARG": (),
    "KW_NAMES": (Step(None, const),),
    "LOAD_ASSERTION_ERROR": one(Op.LOAD_CONST, literal(AssertionError)),
    "LOAD_FAST": one(Op.LOAD_LOCAL, arg, False),
    "LOAD_FAST_CHECK": one(Op.LOAD_LOCAL, arg, True),
    "LOAD_FAST_AND_CLEAR": one(Op.LOAD_LOCAL_CLEAR, arg),
    "LOAD_CLOSURE": one(Op.LOAD_CELL, arg),
    "LOAD_FROM_DICT_OR_DEREF": one(Op.LOAD_CLASS_DEREF, arg, True),
    "LOAD_FROM_DICT_OR_GLOBALS": one(Op.LOAD_CLASS_GLOBAL, name),
    "LOAD_LOCALS": one(Op.LOAD_LOCALS),
    "LOAD_GLOBAL": (
        Step(Op.PUSH_NULL, when=bit(0)),
        Step(Op.LOAD_GLOBAL, shifted_name(1), rest=(("LOAD_GLOBAL", lambda raw: raw.arg & ~1),)),
    ),
    "IMPORT_NAME": one(Op.IMPORT_NAME, name),
    "LOAD_ATTR": (
        Step(Op.LOAD_METHOD, shifted_name(1), SHAPE, when=bit(0)),
        Step(Op.LOAD_ATTR, shifted_name(1), when=lambda raw: not raw.arg & 1),
    ),
    "LOAD_SUPER_ATTR": one(Op.LOAD_SUPER, shifted_name(2), lambda raw: (raw.arg & 1 != 0, raw.arg & 2 != 0), SHAPE),
    "BINARY_OP": one(Op.BINARY, item(BINARY_SYMBOLS * 2), lambda raw: raw.arg >= len(BINARY_SYMBOLS)),
    "BINARY_SUBSCR": one(Op.LOAD_ITEM),
    "BINARY_SLICE": (Step(Op.BUILD, "slice", 2), Step(Op.LOAD_ITEM, rest=(("BINARY_SUBSCR", 0),))),
    "STORE_SLICE": (Step(Op.BUILD, "slice", 2), Step(Op.STORE_ITEM, rest=(("STORE_SUBSCR", 0),))),
    "COMPARE_OP": one(Op.COMPARE, item(COMPARE_SYMBOLS, 4), False),
    "BUILD_CONST_KEY_MAP": one(Op.BUILD, "const_key_dict", arg),
    "FORMAT_VALUE": (
        Step(Op.SWAP, 2, when=converts_below_spec),
        Step(Op.CONVERT, conversion, when=conversion, rest=(("SWAP", 2), AGAIN)),
        Step(Op.SWAP, 2, when=converts_below_spec, rest=(("SWAP", 2), ("FORMAT_VALUE", 4))),
        Step(Op.FORMAT, bit(2), rest=(("FORMAT_VALUE", lambda raw: raw.arg & 4),)),
    ),
    "CALL": one(Op.CALL, arg, folded, SHAPE),
    "CALL_FUNCTION_EX": one(Op.CALL_EX, bit(0), None, SHAPE),
    "CALL_INTRINSIC_1": (
        Step(Op.UNARY, "+", when=lambda raw: raw.arg == UNARY_POSITIVE),
        Step(Op.INTRINSIC, item(INTRINSICS_1), 1, when=lambda raw: raw.arg != UNARY_POSITIVE),
    ),
    "CALL_INTRINSIC_2": one(Op.INTRINSIC, item(INTRINSICS_2), 2),
    "MAKE_FUNCTION": one(Op.MAKE_FUNCTION, function_attrs),
    "POP_JUMP_IF_TRUE": one(Op.JUMP_IF, "true", target=forward),
    "POP_JUMP_IF_FALSE": one(Op.JUMP_IF, "false", target=forward),
    "POP_JUMP_IF_NONE": one(Op.JUMP_IF, "none", target=forward),
    "POP_JUMP_IF_NOT_NONE": one(Op.JUMP_IF, "not_none", target=forward),
    "GET_ITER": one(Op.GET_ITER, "loop", 1),
    "GET_YIELD_FROM_ITER": one(Op.GET_ITER, "yield_from", 1),
    "FOR_ITER": one(Op.FOR_ITER, 1, True, target=behind_end_for),
    "END_FOR": (Step(Op.POP), Step(Op.POP, rest=(("POP_TOP", 0),))),
    "RETURN_CONST": (Step(Op.LOAD_CONST, const), Step(Op.RETURN, rest=(("RETURN_VALUE", 0),))),
    "BEFORE_WITH": one(Op.ENTER_WITH, False),
    "BEFORE_ASYNC_WITH": one(Op.ENTER_WITH, True),
    "WITH_EXCEPT_START": one(Op.CALL_EXIT, 4, False),
    "RESUME": one(Op.START, item(RESUME_PLACES)),
    "SEND": one(Op.SEND, 1, False, target=forward),
    "END_SEND": one(Op.END_SEND, 1),
    "CLEANUP_THROW": one(Op.THROW_CLEANUP),
}

MODEL = VersionModel((3, 12), NUMBERS, CACHES, RULES, internal=frozenset({"INTERPRETER_EXIT", "RESERVED"}))
