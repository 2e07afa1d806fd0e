"""CPython 3.11."""

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
    Rule,
    Step,
    arg,
    backward,
    bit,
    calls,
    const,
    forward,
    item,
    jumps_if,
    literal,
    name,
    numbered,
    one,
    shifted_name,
    without,
)

SHAPE = "null_first"

NUMBERS = numbered("""
    0 CACHE POP_TOP PUSH_NULL  9 NOP UNARY_POSITIVE UNARY_NEGATIVE UNARY_NOT  15 UNARY_INVERT  25 BINARY_SUBSCR
    30 GET_LEN MATCH_MAPPING MATCH_SEQUENCE MATCH_KEYS  35 PUSH_EXC_INFO CHECK_EXC_MATCH CHECK_EG_MATCH
    49 WITH_EXCEPT_START GET_AITER GET_ANEXT BEFORE_ASYNC_WITH BEFORE_WITH END_ASYNC_FOR  60 STORE_SUBSCR DELETE_SUBSCR
    68 GET_ITER GET_YIELD_FROM_ITER PRINT_EXPR LOAD_BUILD_CLASS  74 LOAD_ASSERTION_ERROR RETURN_GENERATOR
    82 LIST_TO_TUPLE RETURN_VALUE IMPORT_STAR SETUP_ANNOTATIONS YIELD_VALUE ASYNC_GEN_WRAP PREP_RERAISE_STAR POP_EXCEPT
    90 STORE_NAME DELETE_NAME UNPACK_SEQUENCE FOR_ITER UNPACK_EX STORE_ATTR DELETE_ATTR STORE_GLOBAL DELETE_GLOBAL SWAP
    100 LOAD_CONST LOAD_NAME BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP LOAD_ATTR COMPARE_OP IMPORT_NAME IMPORT_FROM
    110 JUMP_FORWARD JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP  114 POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_TRUE
    116 LOAD_GLOBAL IS_OP CONTAINS_OP RERAISE COPY  122 BINARY_OP SEND LOAD_FAST STORE_FAST DELETE_FAST
    128 POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_FORWARD_IF_NONE RAISE_VARARGS GET_AWAITABLE MAKE_FUNCTION BUILD_SLICE
    134 JUMP_BACKWARD_NO_INTERRUPT MAKE_CELL LOAD_CLOSURE LOAD_DEREF STORE_DEREF DELETE_DEREF JUMP_BACKWARD
    142 CALL_FUNCTION_EX  144 EXTENDED_ARG LIST_APPEND SET_ADD MAP_ADD LOAD_CLASSDEREF COPY_FREE_VARS  151 RESUME
    152 MATCH_CLASS  155 FORMAT_VALUE BUILD_CONST_KEY_MAP BUILD_STRING  160 LOAD_METHOD  162 LIST_EXTEND SET_UPDATE
    164 DICT_MERGE DICT_UPDATE PRECALL  171 CALL KW_NAMES POP_JUMP_BACKWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_NONE
    175 POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_TRUE
""")

CACHES = {
    "BINARY_OP": 1,
    "BINARY_SUBSCR": 4,
    "CALL": 4,
    "COMPARE_OP": 2,
    "LOAD_ATTR": 4,
    "LOAD_GLOBAL": 5,
    "LOAD_METHOD": 10,
    "PRECALL": 1,
    "STORE_ATTR": 4,
    "STORE_SUBSCR": 1,
    "UNPACK_SEQUENCE": 1,
}


def conversion(raw: Raw) -> str | None:
    """What FORMAT_VALUE applies before formatting."""
    return (None, "str", "repr", "ascii")[raw.arg & 3]


def converts_below_spec(raw: Raw) -> bool:
    """Does FORMAT_VALUE convert a value that lies below its format specification?"""
    return raw.arg & 4 != 0 and raw.arg & 3 != 0


def function_attrs(raw: Raw) -> tuple[str, ...]:
    """What MAKE_FUNCTION finds on the stack below the code."""
    return tuple(attr for n, attr in enumerate(FUNCTION_ATTRS) if raw.arg >> n & 1)


def jump_or_pop(condition: str) -> Rule:
    """JUMP_IF_X_OR_POP."""
    return (
        Step(Op.COPY, 1),
        Step(Op.JUMP_IF, condition, target=forward, rest=(("POP_TOP", 0), AGAIN)),
        Step(Op.POP, rest=(("POP_TOP", 0),)),
    )


RULES = {
    **{name: rule for name, rule in (SHARED | calls(SHAPE)).items() if name in NUMBERS},
    **jumps_if("POP_JUMP_FORWARD", forward),
    **jumps_if("POP_JUMP_BACKWARD", backward),
    "EXTENDED_ARG": (),
    "PRECALL": (),
    "KW_NAMES": (Step(None, const),),
    "LOAD_ASSERTION_ERROR": one(Op.LOAD_CONST, literal(AssertionError)),
    "LOAD_FAST": one(Op.LOAD_LOCAL, arg, True),
    "LOAD_CLOSURE": one(Op.LOAD_CELL, arg),
    "LOAD_CLASSDEREF": one(Op.LOAD_CLASS_DEREF, arg, False),
    "LOAD_GLOBAL": (
        Step(Op.PUSH_NULL, when=bit(0)),
        Step(Op.LOAD_GLOBAL, shifted_name(1), rest=(("LOAD_GLOBAL", without(0)),)),
    ),
    "LOAD_ATTR": one(Op.LOAD_ATTR, name),
    "LOAD_METHOD": one(Op.LOAD_METHOD, name, SHAPE),
    "UNARY_POSITIVE": one(Op.UNARY, "+"),
    "BINARY_OP": one(Op.BINARY, item(BINARY_SYMBOLS * 2), lambda raw: raw.arg >= len(BINARY_SYMBOLS)),
    "BINARY_SUBSCR": one(Op.LOAD_ITEM),
    "COMPARE_OP": one(Op.COMPARE, item(COMPARE_SYMBOLS), False),
    "BUILD_CONST_KEY_MAP": one(Op.BUILD, "const_key_dict", arg),
    "FORMAT_VALUE": (
        Step(Op.SWAP, 2, when=converts_below_spec),
        Step(Op.CONVERT, conversion, when=conversion, rest=(("SWAP", 2), AGAIN)),
        Step(Op.SWAP, 2, when=converts_below_spec, rest=(("SWAP", 2), ("FORMAT_VALUE", 4))),
        Step(Op.FORMAT, bit(2), rest=(("FORMAT_VALUE", lambda raw: raw.arg & 4),)),
    ),
    "MAKE_FUNCTION": one(Op.MAKE_FUNCTION, function_attrs),
    "PRINT_EXPR": (Step(Op.INTRINSIC, "PRINT", 1), Step(Op.POP, rest=(("POP_TOP", 0),))),
    "IMPORT_STAR": (Step(Op.INTRINSIC, "IMPORT_STAR", 1), Step(Op.POP, rest=(("POP_TOP", 0),))),
    "LIST_TO_TUPLE": one(Op.INTRINSIC, "LIST_TO_TUPLE", 1),
    "ASYNC_GEN_WRAP": one(Op.INTRINSIC, "ASYNC_GEN_WRAP", 1),
    "PREP_RERAISE_STAR": one(Op.INTRINSIC, "PREP_RERAISE_STAR", 2),
    "JUMP_IF_TRUE_OR_POP": jump_or_pop("true"),
    "JUMP_IF_FALSE_OR_POP": jump_or_pop("false"),
    "GET_ITER": one(Op.GET_ITER, "loop"),
    "GET_YIELD_FROM_ITER": one(Op.GET_ITER, "yield_from"),
    "FOR_ITER": one(Op.FOR_ITER, 1, True, target=forward),
    "BEFORE_WITH": one(Op.ENTER_WITH, False),
    "BEFORE_ASYNC_WITH": one(Op.ENTER_WITH, True),
    "WITH_EXCEPT_START": one(Op.CALL_EXIT, 4, False),
    "RESUME": one(Op.START, item(RESUME_PLACES)),
    "SEND": one(Op.SEND, 1, True, target=forward),
}

MODEL = VersionModel((3, 11), NUMBERS, CACHES, RULES)
