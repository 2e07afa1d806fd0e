"""One raw instruction at a time, decoded by any model: what becomes of it, and what it does to the stack."""

from base64 import b64encode

from models.agreement import SLOT_OPERATIONS

from bytecode_models import Op
from bytecode_models.decode import decode
from bytecode_models.effects import effect
from bytecode_models.image import BYTES, NAMES, NUMBERS, TEXTS, CodeImage

MANY = 1100  # names, constants and slots
FAKE_NAMES = tuple(f"name{n}" for n in range(MANY))
CONSTANTS = tuple(("constant", str(n)) for n in range(MANY))
#: Folded into the instruction behind them: what the probe puts in front.
PREFIXES = {"CALL_KW": "LOAD_CONST", "SET_FUNCTION_ATTRIBUTE": "MAKE_FUNCTION", "CALL": "PRECALL"}


def is_local(instr):
    """Does it name a slot?"""
    return instr.op in SLOT_OPERATIONS


def image(code):
    """A code object of nothing but these bytes."""
    data = dict.fromkeys(TEXTS, "probe") | dict.fromkeys(NUMBERS, 0)
    data |= dict.fromkeys(NAMES, ()) | dict.fromkeys(BYTES, "")
    locations = b"\xf8" * (len(code) // 2)  # no position, one unit each
    data |= {"co_consts": [], "co_code": b64encode(code).decode(), "co_linetable": b64encode(locations).decode()}
    data |= {"co_names": FAKE_NAMES, "co_varnames": FAKE_NAMES, "co_nlocals": MANY}
    made = CodeImage(data)
    made.co_consts = CONSTANTS
    return made


def probe(model, name, arg):
    """The neutral instructions of one raw instruction; it stands between NOPs, so that it can jump either way."""
    jumps = any(step.target for step in model.rules[name])
    around = [("NOP", 0)] * (2 * arg + 10 if jumps else 1)
    before = [(prefix, arg)] if (prefix := PREFIXES.get(name)) in model.numbers else []
    head = model.assemble([*around, *before])
    code = image(head + model.emit(name, arg) + model.assemble(around))
    return [i for i in decode(code, model).instrs if len(head) <= i.offset < len(code.co_code) - 2 * len(around)]


def meant(model, name):
    """The same for the first operand that means something."""
    for arg in (0, 1, 2):
        try:
            return probe(model, name, arg)
        except ValueError:
            pass
    raise AssertionError(f"no operand of {name} means anything")


def group_of(model, name, arg):
    """The operations with their operands, None where the operand means nothing."""
    try:
        return [(i.op, i.a, i.b, i.c, i.target) for i in probe(model, name, arg)]
    except ValueError:
        return None


def effects_of(model, name, arg):
    """Change of the stack by the instruction and what is folded into it: going on, and jumping where it may."""
    group = probe(model, name, arg)
    jump = next((at for at, instr in enumerate(group) if instr.target is not None), None)
    falls = sum(map(effect, group))
    if jump is None:
        return falls, falls
    return falls, sum(map(effect, group[:jump])) + effect(group[jump], jump=True)


def counted(facts, name, at, jump):
    """What dis says for the at-th operand, with what is folded in; None where it knows no such operand."""
    rows = facts["effects"][name]
    row = rows[min(jump, len(rows) - 1)]
    found = row[at] if len(row) > 1 else row[0]
    if found is None or PREFIXES.get(name) not in facts["effects"]:
        return found
    return found + counted(facts, PREFIXES[name], at, jump)


def iterator_widths(model):
    """For each opcode that has to do with iterators: of how many stack items it takes them to be."""
    others = (Op.FOR_ITER, Op.POP_ITER, Op.SEND, Op.END_SEND, Op.THROW_CLEANUP)
    rules = {name: model.rules[name] for name in model.numbers.keys() & model.rules.keys()}
    made = {
        name: 1 + sum(step.op is Op.PUSH_NULL for step in rule)
        for name, rule in rules.items()
        if any(step.op is Op.GET_ITER for step in rule)
    }
    return made | {name: step.a for name, rule in rules.items() for step in rule if step.op in others}
