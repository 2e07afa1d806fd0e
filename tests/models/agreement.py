"""A decoded program against what `dis` says of the same code object (`dumps.code_facts`), of whatever release."""

from bytecode_models import Op
from bytecode_models.decode import raw_instructions
from bytecode_models.effects import effect
from bytecode_models.tables import (
    read_exception_table,
    read_locations,
    write_exception_table,
    write_locations,
)

# What has no neutral instruction of its own, and what has none right before another instruction.
FOLDED = {"CACHE", "EXTENDED_ARG", "PRECALL", "KW_NAMES"}
TAKEN = {
    ("LOAD_CONST", "CALL_KW"),
    ("PUSH_NULL", "CALL_FUNCTION_EX"),
    ("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE"),
    ("SET_FUNCTION_ATTRIBUTE", "SET_FUNCTION_ATTRIBUTE"),
}
#: Where `dis` and the models count differently on purpose, and why.
OTHER_EFFECT = {
    "FOR_ITER": "dis has what END_FOR drops on the stack at its target; unspecialised it goes on behind that",
    "END_FOR": "stands for specialised forms alone",
    "SEND": "dis counts what END_SEND drops, whichever way it goes (3.11: the iterator stays)",
    "RETURN_GENERATOR": "dis doesn't see what the first send() pushes (3.11, 3.12)",
    "RETURN_VALUE": "dis counts the caller's stack from 3.14 on",
    "RETURN_CONST": "nothing is left behind it",
    "RERAISE": "nothing is left behind it",
}
SLOT_OPERATIONS = {
    Op.LOAD_LOCAL, Op.LOAD_LOCAL_CLEAR, Op.STORE_LOCAL, Op.DELETE_LOCAL, Op.MAKE_CELL, Op.LOAD_CELL, Op.LOAD_DEREF,
    Op.STORE_DEREF, Op.DELETE_DEREF, Op.LOAD_CLASS_DEREF,
}  # fmt: skip
NEVER_FALLS_THROUGH = {
    "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS",
    "RERAISE",
}  # fmt: skip


def check(program, model, facts):
    """Assert that the program is what the facts say."""
    listed = [Listed(*raw) for raw in facts["raw"]]
    groups = {}
    for instr in program.instrs:
        groups.setdefault(instr.offset, []).append(instr)
    assert groups.keys() == {raw.offset for raw in listed} - folded(listed)
    check_instructions(program, groups, listed)
    check_positions(program, facts["positions"])
    check_handlers(program, facts["handlers"])
    check_depths(program, groups, listed, facts["handlers"])
    check_encoding(program.code, model)
    check_slots(program, facts["slots"])


class Listed:
    """A raw instruction as `dis` lists it."""

    def __init__(self, offset, name, arg, target, effect, jump_effect, named=()):
        self.offset, self.name, self.arg = offset, name, arg
        self.named = [named] if isinstance(named, str) else [*named]
        self.target = None if name == "END_ASYNC_FOR" else target  # it has one for sys.monitoring (3.14)
        self.effect, self.jump_effect = effect, jump_effect

    def __repr__(self):
        return f"{self.offset} {self.name} {self.arg}"


def folded(listed):
    """Offsets of raw instructions that are folded into the one behind them."""
    named = [raw for raw in listed if raw.name not in ("CACHE", "EXTENDED_ARG")]
    taken = {raw.offset for raw, after in zip(named, named[1:]) if (raw.name, after.name) in TAKEN}
    return taken | {raw.offset for raw in listed if raw.name in FOLDED}


def check_instructions(program, groups, listed):
    """Effects and jumps."""
    names = {raw.offset: raw for raw in listed}
    before = 0
    for raw in listed:
        if raw.offset not in groups:
            before += raw.effect
            continue
        group = groups[raw.offset]
        if raw.named:
            assert operands(program, group) == raw.named, raw
        if raw.name not in OTHER_EFFECT:
            assert sum(map(effect, group)) == before + raw.effect, raw
        before = 0
        jumping = [at for at, instr in enumerate(group) if instr.target is not None]
        if raw.target is None:
            assert not jumping, raw
            continue
        (jump,) = jumping
        if raw.name not in OTHER_EFFECT:
            assert sum(map(effect, group[:jump])) + effect(group[jump], jump=True) == raw.jump_effect, raw
        to = raw.target
        if raw.name == "FOR_ITER" and names[to].name == "END_FOR":
            # END_FOR stands there for specialised forms, in 3.13 with a POP_TOP that drops the iterator.
            to += 2 if not group[jump].b or names[to].effect == -2 else 4
        assert program.resumption.starts[group[jump].target] == to, raw


def operands(program, group):
    """Names of the slots, else of what else the instructions name."""
    slots = [program.names[instr.a] for instr in group if instr.op in SLOT_OPERATIONS]
    return slots or [instr.a for instr in group if isinstance(instr.a, str)]


def check_positions(program, runs):
    """Lines and columns."""
    places = [tuple(place) for units, place in runs for _ in range(units)]
    for instr in program.instrs:
        assert instr.positions == places[instr.offset // 2]
        assert instr.line == instr.positions[0]


def covered(entries):
    """The entry of the exception table for each offset that has one: the first one that covers it."""
    found = {}
    for entry in reversed(entries):
        found.update(dict.fromkeys(range(entry[0], entry[1], 2), entry))
    return found


def check_handlers(program, entries):
    """Where exceptions go, from each instruction."""
    by_offset = covered(entries)
    for instr in program.instrs:
        entry = by_offset.get(instr.offset)
        assert (instr.handler is None) is (entry is None), instr
        if entry is not None:
            _, _, target, depth, lasti = entry
            assert program.instrs[instr.handler.target].offset >= target
            assert program.resumption.starts[instr.handler.target] == target
            assert instr.handler[1:] == (depth, lasti)


def check_depths(program, groups, listed, entries):
    """The depth before each instruction, against a walk over the raw ones that uses nothing of ours."""
    depths = walk(listed, entries)
    first = {group[0].offset: program.depths[group[0].index] for group in groups.values()}
    begins = {group[0].offset: program.resumption.starts[group[0].index] for group in groups.values()}
    for raw in listed:
        if raw.offset not in first:
            continue
        ours, theirs = first[raw.offset], depths.get(begins[raw.offset])
        if ours is None:
            skipped = raw.name in ("END_FOR", "POP_TOP")
            assert theirs is None or skipped, raw
        elif theirs is not None or raw.name != "POP_ITER":
            assert ours == theirs, raw
        if ours is not None:
            assert 0 <= ours <= program.code.co_stacksize + 1, raw


def walk(listed, entries):
    """The depth at each reachable offset."""
    following = dict(zip((raw.offset for raw in listed), listed[1:]))
    by_offset = {raw.offset: raw for raw in listed}
    handlers = covered(entries)
    found, todo = {}, [(listed[0].offset, 0)]
    while todo:
        at, depth = todo.pop()
        if at in found:
            assert found[at] == depth, (at, found[at], depth)
            continue
        found[at] = depth
        raw = by_offset[at]
        handler = handlers.get(at)
        if handler is not None:
            todo.append((handler[2], handler[3] + handler[4] + 1))
        if raw.target is not None:
            todo.append((raw.target, depth + raw.jump_effect))
        if raw.name not in NEVER_FALLS_THROUGH:
            extra = 1 if raw.name == "RETURN_GENERATOR" and raw.effect == 0 else 0
            todo.append((following[at].offset, depth + raw.effect + extra))
    return found


def check_encoding(code, model):
    """Assembling what was read, behind an empty prefix, gives the same bytes, exception table and line table."""
    names = {number: name for name, number in model.numbers.items()}
    data, end = bytearray(), 0
    for opcode, _, raw in raw_instructions(code, model):
        assert raw.start == end
        data += model.emit(names[opcode], raw.arg)
        end = raw.end
    assert bytes(data) == code.co_code
    assert write_exception_table(read_exception_table(code.co_exceptiontable)) == code.co_exceptiontable
    locations = list(read_locations(code.co_linetable, code.co_firstlineno))
    assert write_locations(code.co_firstlineno, locations) == code.co_linetable
    assert [place for units, place in locations for _ in range(units)] == list(code.co_positions())


def check_slots(program, names):
    """Locals, cells and free variables."""
    assert program.names == tuple(names)
    assert [program.names[slot] for slot in program.frees] == list(program.code.co_freevars)
    assert {program.names[slot] for slot in program.cells} == {*program.code.co_cellvars}
    for instr in program.instrs:
        if instr.op is Op.MAKE_CELL:
            # A free variable may be made anew inside a comprehension (3.12, in an annotation scope).
            assert instr.a in program.cells or instr.a in program.frees
