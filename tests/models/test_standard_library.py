"""Code objects of the standard library: what is decoded agrees with `dis`, and all of them can be entered anywhere.

A sample by default. With BYTECODE_MODELS_FULL=1 all of them, and those of site-packages (half an hour); it may also be
`stdlib` or the name of a package, for those code objects alone. One in ten of them is entered then.
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
from models.agreement import check
from models.dumps import code_facts

from bytecode_models import UNBOUND, Op, current, decode, resume_function, resume_generator
from bytecode_models.__main__ import nested_codes
from bytecode_models.decode import raw_instructions

FULL = os.environ.get("BYTECODE_MODELS_FULL", "")
ONE_IN = 1 if FULL else 30  # files
ENTERED_ONE_IN = 10 if FULL else 1  # code objects
PARTS = 200 if FULL else 8  # a part's programs are in memory together
CHECKED = []


@cache
def sources():
    """Every n-th file, as a path."""
    places = {name: Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")}
    if FULL in ("", "stdlib"):
        roots = [places["stdlib"]]
    else:
        roots = places.values() if FULL == "1" else [places["purelib"] / FULL, places["platlib"] / FULL]
    files = {path for root in roots for path in root.rglob("*.py") if path.is_file()}
    wanted = (path for path in files if FULL not in ("", "stdlib") or "site-packages" not in path.parts)
    return sorted(wanted)[::ONE_IN]


def codes(path):
    """All code objects of a file; none where it is broken on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return list(nested_codes(compile(path.read_bytes(), path.name, "exec", dont_inherit=True)))
        except (SyntaxError, ValueError):
            return []


@pytest.fixture(params=range(PARTS), ids=str, scope="module")
def some_codes(request):
    """A part of the code objects."""
    return [code for path in sources()[request.param :: PARTS] for code in codes(path)]


def test_all_agrees_with_dis(some_codes):
    for code in some_codes:
        check(decode(code), current(), code_facts(code))
    CHECKED.append(len(some_codes))


def test_handlers_find_their_items(some_codes):
    for code in some_codes:
        program = decode(code)
        for instr, depth in zip(program.instrs, program.depths, strict=True):
            if instr.handler is not None and depth is not None:
                # A handler of 3.15 covers the end of a generator expression, where the iterator is gone.
                assert depth >= instr.handler.depth or instr.op in (Op.LOAD_CONST, Op.RETURN), (code, instr)


def test_entered_code_is_the_original_behind_a_prefix(some_codes):
    for code in some_codes[::ENTERED_ONE_IN]:
        program = decode(code)
        if not program.is_function or program.is_async_generator:
            continue
        after = program.instrs[program.creation + 1 :]
        reachable = [instr for instr in after if program.depths[instr.index] is not None]
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


def test_unknown_opcodes_are_reported():
    rules = {name: rule for name, rule in current().rules.items() if name != "RESUME"}
    model = dataclasses.replace(current(), rules=rules)
    number = model.numbers["RESUME"]
    with pytest.raises(ValueError, match=f"opcode {number} at offset .*unknown to the model"):
        list(raw_instructions(enter.__code__, model))


def test_sample_is_worth_its_name(capsys):
    if FULL:
        with capsys.disabled():
            print(f"\n{sum(CHECKED):,} code objects of {len(sources()):,} files agree with dis")
    assert sum(len(codes(path)) for path in sources()[:: len(sources()) // 20]) > 200
