"""Code objects of the standard library: what is decoded agrees with `dis`, and all of them can be entered anywhere.

A sample by default; all of them with BYTECODE_MODELS_FULL=1 (minutes).
"""

import dataclasses
import dis
import os
import sysconfig
import types
import warnings
from functools import cache
from pathlib import Path

import pytest

from bytecode_models import UNBOUND, Op, current, decode, resume_function, resume_generator
from bytecode_models.__main__ import nested_codes
from bytecode_models.decode import raw_instructions
from bytecode_models.effects import effect
from bytecode_models.tables import read_exception_table, write_exception_table

ONE_IN = 1 if os.environ.get("BYTECODE_MODELS_FULL") else 15  # files
# What has no neutral instruction of its own, and what has none right before another instruction.
FOLDED = {"CACHE", "EXTENDED_ARG", "PRECALL", "KW_NAMES"}
TAKEN = {
    ("LOAD_CONST", "CALL_KW"),
    ("PUSH_NULL", "CALL_FUNCTION_EX"),
    ("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE"),
    ("SET_FUNCTION_ATTRIBUTE", "SET_FUNCTION_ATTRIBUTE"),
}
# dis counts what specialised forms or the compiler's view leave on the stack, or on the caller's (RETURN_VALUE, 3.14).
OTHER_EFFECT = {"FOR_ITER", "SEND", "RETURN_GENERATOR", "RETURN_VALUE"}


@cache
def sources():
    """Every n-th file of the library, broken ones of its tests excepted."""
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts and path.is_file())
    return [str(path.relative_to(root)) for path in files[::ONE_IN]]


def codes(name):
    path = Path(sysconfig.get_path("stdlib"), name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return list(nested_codes(compile(path.read_bytes(), name, "exec", dont_inherit=True)))
        except SyntaxError:
            return []


@pytest.fixture(params=range(8), ids=str, scope="module")
def some_codes(request):
    """An eighth of the code objects."""
    return [code for name in sources()[request.param :: 8] for code in codes(name)]


def test_instructions_agree_with_dis(some_codes):
    for code in some_codes:
        program = decode(code)
        groups = {}
        for instr in program.instrs:
            groups.setdefault(instr.offset, []).append(instr)
        listed = {raw.offset: raw for raw in dis.get_instructions(code)}
        assert groups.keys() == listed.keys() - folded(listed.values())
        before = 0
        for raw in listed.values():
            if raw.offset not in groups:
                before += stack_effect(raw)
                continue
            group = groups[raw.offset]
            for instr in group:
                assert instr.positions == tuple(raw.positions)
                assert instr.line == raw.positions.lineno
            check_jump(program, group, raw, listed)
            if raw.opname not in OTHER_EFFECT:
                check_effect(group, raw, before)
            before = 0


def folded(listed):
    """Offsets of raw instructions that are folded into the one behind them."""
    named = [raw for raw in listed if raw.opname not in ("CACHE", "EXTENDED_ARG")]
    taken = {raw.offset for raw, after in zip(named, named[1:]) if (raw.opname, after.opname) in TAKEN}
    return taken | {raw.offset for raw in listed if raw.opname in FOLDED}


def jumps(raw):
    """Does it jump? END_ASYNC_FOR has an offset for sys.monitoring alone."""
    return raw.opcode in dis.hasjrel and raw.opname != "END_ASYNC_FOR"


def check_jump(program, group, raw, listed):
    if not jumps(raw):
        assert all(instr.target is None for instr in group)
        return
    (jump,) = [instr for instr in group if instr.target is not None]
    to = raw.argval
    if raw.opname == "FOR_ITER" and listed[to].opname == "END_FOR":
        # It stands there for specialised forms, with a POP_TOP (3.13) that drops the iterator.
        to += 2 if not jump.b or stack_effect(listed[to]) == -2 else 4
    assert program.resumption.starts[jump.target] == to


def stack_effect(raw, jump=False):
    arg = raw.arg if raw.opcode >= dis.HAVE_ARGUMENT else None
    return dis.stack_effect(raw.opcode, arg, jump=jump)


def check_effect(group, raw, before):
    assert sum(effect(instr) for instr in group) == before + stack_effect(raw), raw
    if jumps(raw):
        (jump,) = [at for at, instr in enumerate(group) if instr.target is not None]
        jumped = sum(effect(instr) for instr in group[:jump]) + effect(group[jump], jump=True)
        assert jumped == stack_effect(raw, jump=True), raw


def test_depths_and_handlers_fit(some_codes):
    for code in some_codes:
        program = decode(code)
        entries = list(read_exception_table(code.co_exceptiontable))
        assert write_exception_table(entries) == code.co_exceptiontable
        assert [tuple(e) for e in entries] == [tuple(e) for e in dis._parse_exception_table(code)]
        for instr, depth in zip(program.instrs, program.depths, strict=True):
            entry = next((e for e in entries if e.start <= instr.offset < e.end), None)
            assert (instr.handler is None) is (entry is None)
            if depth is not None:
                assert 0 <= depth <= code.co_stacksize + 1, (code, instr)
            if entry is not None:
                assert program.instrs[instr.handler.target].offset == entry.target
                assert instr.handler[1:] == entry[3:]
                # A handler of 3.15 covers the end of a generator expression, where the iterator is gone.
                assert depth is None or depth >= entry.depth or instr.op in (Op.LOAD_CONST, Op.RETURN), (code, instr)


def test_slots(some_codes):
    for code in some_codes:
        program = decode(code)
        assert program.names == tuple(code._varname_from_oparg(n) for n in range(len(program.names)))
        assert [program.names[slot] for slot in program.frees] == list(code.co_freevars)
        assert {program.names[slot] for slot in program.cells} == {*code.co_cellvars}
        for instr in program.instrs:
            if instr.op is Op.MAKE_CELL:
                # A free variable may be made anew inside a comprehension (3.12, in an annotation scope).
                assert instr.a in program.cells or instr.a in program.frees


def test_entered_code_is_the_original_behind_a_prefix(some_codes):
    for code in some_codes:
        program = decode(code)
        if not program.is_function or program.is_async_generator:
            continue
        reachable = [instr for instr in program.instrs if program.depths[instr.index] is not None]
        for instr in reachable[:: max(1, len(reachable) // 3)]:
            check_entered(code, enter(code, program, instr.index), program.names, instr)


def enter(code, program, index):
    """The code that enters `code` with every other slot bound, and numbers on the stack."""
    slots = [UNBOUND if slot % 2 else slot for slot in range(len(program.names))]
    for slot in program.frees:
        slots[slot] = types.CellType()
    state = index, {}, slots, [0] * program.depths[index]
    if not program.is_generator and not program.is_coroutine:
        return resume_function(code, *state, handled=KeyError()).__code__
    generator = resume_generator(code, *state, handled=KeyError(), sent=False)
    generator.close()
    return generator.gi_code if program.is_generator else generator.cr_code


def check_entered(code, entered, names, instr):
    shift = (len(entered.co_code) - len(code.co_code)) // 2
    assert entered.co_code[2 * shift :] == code.co_code
    positions = list(entered.co_positions())
    assert positions[shift:] == list(code.co_positions())
    # On the stack all places that are to blame are given as the first one.
    blamed = {positions[shift]} if decode(code).shapes[instr.index].lastis else set()
    assert {*positions[: shift - 1]} == {instr.positions, *blamed}
    assert tuple(entered._varname_from_oparg(n) for n in range(len(names))) == names
    assert entered.co_cellvars == code.co_cellvars
    moved = [(start + 2 * shift, end + 2 * shift, target + 2 * shift, *rest)
             for start, end, target, *rest in dis._parse_exception_table(code)]  # fmt: skip
    assert [tuple(e) for e in dis._parse_exception_table(entered)][-len(moved) or 1 :] == moved
    *_, jump = [raw for raw in dis.get_instructions(entered) if raw.offset < 2 * shift - 2]
    assert jump.opname == "JUMP_FORWARD"
    assert 2 * shift <= jump.argval <= 2 * shift + instr.offset + 24


def test_raw_instructions_cover_the_code(some_codes):
    for code in some_codes:
        end = 0
        for _, _, raw in raw_instructions(code, current()):
            assert raw.start == end
            end = raw.end
        assert end == len(code.co_code)


def test_unknown_opcodes_are_reported():
    rules = {name: rule for name, rule in current().rules.items() if name != "RESUME"}
    model = dataclasses.replace(current(), rules=rules)
    number = model.numbers["RESUME"]
    with pytest.raises(ValueError, match=f"opcode {number} at offset .*unknown to the model"):
        list(raw_instructions(test_slots.__code__, model))


def test_sample_is_worth_its_name():
    assert sum(len(codes(name)) for name in sources()) > 1000
