"""The tables of every release against what that release says of itself."""

import sys

import pytest
from models import dumps
from models.probe import CONSTANTS, FAKE_NAMES, group_of, is_local, iterator_widths, meant

from bytecode_models import Op, UnsupportedVersion, current, model_for
from bytecode_models.model import releases
from bytecode_models.rules import BINARY_SYMBOLS, COMPARE_SYMBOLS, Raw
from bytecode_models.tables import Protected, read_exception_table, write_exception_table


def raw(arg):
    """A raw instruction with an operand, of some code object."""
    instruction = Raw(raw.__code__, current().numbers)
    instruction.arg = arg
    return instruction


def stored(model):
    """The opcodes that code objects may contain."""
    return {*model.numbers} - model.internal


def steps_for(rule, arg):
    """The steps that are taken with an operand."""
    return [step for step in rule if step.when is None or step.when(raw(arg))]


@pytest.fixture(params=releases(), ids="{0[0]}.{0[1]}".format)
def model(request):
    return model_for(request.param)


@pytest.fixture
def facts(model):
    return dumps.read("opcodes", model.release)


def test_facts_are_those_of_the_interpreter():
    assert dumps.read("opcodes", sys.version_info) == dumps.opcodes()


def test_running_release():
    assert current().release == sys.version_info[:2]
    assert current() is model_for(sys.version_info[:2])


def test_numbers_and_caches(model, facts):
    assert model.numbers == facts["numbers"]
    assert model.caches == facts["caches"]


def test_every_opcode_has_a_rule(model):
    assert {*model.numbers} - {*model.rules} == model.internal
    assert {*model.rules} <= {*model.numbers}
    for name, number in model.numbers.items():
        assert model.table[number] == (model.caches.get(name, 0), model.rules.get(name))


class TestFlags:
    """What an operand means, told by what the decoder makes of it."""

    def test_jumps(self, model, facts):
        with_target = {name for name in stored(model) if any(i.target is not None for i in meant(model, name))}
        # The operand of END_ASYNC_FOR (3.14) tells sys.monitoring where the loop is: it doesn't jump.
        assert with_target == {*facts["flags"]["hasjrel"]} - {"END_ASYNC_FOR"}
        assert not facts["flags"]["hasjabs"]

    def test_names(self, model, facts):
        named = {name for name in stored(model) if any(i.a in FAKE_NAMES for i in meant(model, name))}
        assert named == {*facts["flags"]["hasname"]}

    def test_constants(self, model, facts):
        found = {name for name in stored(model) if any({i.a, i.b} & {*CONSTANTS} for i in meant(model, name))}
        # KW_NAMES and CALL_KW have their constant folded in.
        assert found - {"CALL", "CALL_KW"} == {*facts["flags"]["hasconst"]} - {"KW_NAMES"}

    def test_slots(self, model, facts):
        slots = {name for name in stored(model) if any(is_local(i) for i in meant(model, name))}
        assert slots == {*facts["flags"]["haslocal"], *facts["flags"]["hasfree"]} - {"COPY_FREE_VARS"}

    def test_operands(self, model, facts):
        with_operand = {*facts["flags"]["hasarg"]}
        for name in {*stored(model)} - with_operand:
            assert group_of(model, name, 0) == group_of(model, name, 1), name
        # What these are told by their operands, nobody but the interpreter needs to know.
        silent = {"EXTENDED_ARG", "NOP", "PRECALL", "KW_NAMES", "YIELD_VALUE", "END_ASYNC_FOR", "SEND"}
        for name in with_operand & {*stored(model)} - silent:
            assert len({str(group_of(model, name, arg)) for arg in (0, 1, 2, 3, 4, 8, 16, 32)} - {"None"}) > 1, name


def test_every_later_step_can_be_continued(model):
    for name, rule in model.rules.items():
        for step in rule[1:]:
            assert step.rest or step.when, name
            for other, _ in step.rest:
                assert other in model.numbers or other == "AGAIN"


def test_operators(model, facts):
    assert [f"{symbol}{suffix}" for suffix in ("", "=") for symbol in BINARY_SYMBOLS] == facts["binary"][:26]
    for number, symbol in enumerate(facts["binary"]):
        (step,) = steps_for(model.rules["BINARY_OP"], number)
        if step.op is Op.LOAD_ITEM:
            assert symbol == "[]"
        else:
            assert step.a(raw(number)) + ("=" if step.b(raw(number)) else "") == symbol
    assert list(COMPARE_SYMBOLS) == facts["compare"]


def test_intrinsics(model, facts):
    for arguments, names in enumerate(facts["intrinsics"], 1):
        for number, name in enumerate(names[1:], 1):
            (step,) = steps_for(model.rules[f"CALL_INTRINSIC_{arguments}"], number)
            if step.op is Op.UNARY:
                assert (name, step.a) == ("INTRINSIC_UNARY_POSITIVE", "+")
            else:
                assert (f"INTRINSIC_{step.a(raw(number))}", step.b) == (name, arguments)


def test_iterators_are_of_one_width(model):
    widths = iterator_widths(model)
    assert len(widths) >= 3
    assert len({*widths.values()}) == 1


def test_special_methods_and_constants(model, facts):
    for number, name in enumerate(facts["specials"]):
        assert model.rules["LOAD_SPECIAL"][0].a(raw(number)) == name
    for number, text in enumerate(facts["constants"]):
        assert repr(model.rules["LOAD_COMMON_CONSTANT"][0].a(raw(number))) == text


def test_unknown_releases_are_named():
    with pytest.raises(UnsupportedVersion, match=r"CPython 3\.2 .*supported: CPython 3\.11, 3\.12.*docs/porting\.md"):
        model_for((3, 2))


@pytest.mark.parametrize("tag", ["cpython-32", "pypy310", None])
def test_unknown_interpreters_are_named(tag, monkeypatch):
    monkeypatch.setattr(sys, "implementation", type(sys.implementation)(name="other", cache_tag=tag))
    with pytest.raises(UnsupportedVersion, match=r"(CPython 3\.2|pypy310|other) has no bytecode model"):
        current.__wrapped__()


def test_emitting_long_operands(model):
    extended = model.numbers["EXTENDED_ARG"]
    assert model.emit("LOAD_CONST", 0x12345) == bytes([extended, 1, extended, 0x23, model.numbers["LOAD_CONST"], 0x45])
    assert model.emit("LOAD_CONST", 0x10000)[:4] == bytes([extended, 1, extended, 0])
    assert len(model.emit("STORE_ATTR", 1)) == 2 + 2 * model.caches["STORE_ATTR"]


def test_exception_table_of_large_numbers():
    entries = [Protected(0, 2, 9000, 3, True), Protected(200, 70000, 400000, 0, False)]
    assert list(read_exception_table(write_exception_table(entries))) == entries
