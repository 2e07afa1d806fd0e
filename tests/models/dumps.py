"""What an interpreter says of its opcodes and of code objects, as data: the models are held against it.

`python -m models.dumps FOLDER`, with tests/ on the path, writes the running interpreter's opcodes-3.X.json and
codes-3.X.json. Those of each release are committed, so that any interpreter can check the model of any release. This
file needs no model.
"""

import dis
import json
import opcode
import sys
from pathlib import Path

HERE = Path(__file__).parent
DATA = HERE / "data"
FLAGS = ("hasarg", "hasconst", "hasname", "haslocal", "hasfree", "hascompare", "hasjrel", "hasjabs")
NAMED = {*dis.hasname, *dis.haslocal, *dis.hasfree}
#: Operands at which stack effects are noted: all that fit into few bits, and large ones.
OPERANDS = (*range(34), 64, 65, 128, 129, 255, 256, 257, 258, 1000)


def stored(name):
    """Can code objects contain it?"""
    return opcode.opmap.get(name, 256) < 256 and not name.startswith("INSTRUMENTED_")


def caches():
    """Units of inline cache, where there are any."""
    entries = opcode._inline_cache_entries
    named = entries.items() if hasattr(entries, "items") else zip(opcode.opname, entries)
    return {name: units for name, units in sorted(named) if units}


def flags():
    """Which opcodes have an operand, and of what kind."""
    found = {}
    for flag in FLAGS:
        numbers = getattr(dis, flag, None)
        if numbers is None and flag == "hasarg":
            numbers = range(dis.HAVE_ARGUMENT, 256)
        if numbers is not None:
            found[flag] = sorted(dis.opname[n] for n in numbers if n < 256 and stored(dis.opname[n]))
    return found


def stack_effect(number, arg, jump=False):
    """What dis says, or None where it knows no such operand."""
    try:
        return dis.stack_effect(number, arg, jump=jump)
    except ValueError:
        return None


def effects():
    """Stack effects for OPERANDS, without and with the jump; one for opcodes without an operand."""
    found = {}
    for name in sorted(filter(stored, opcode.opmap)):
        number = opcode.opmap[name]
        arguments = OPERANDS if name in flags()["hasarg"] else (None,)
        found[name] = [[stack_effect(number, arg, jump) for arg in arguments] for jump in (False, True)]
        if found[name][0] == found[name][1]:
            found[name].pop()
        found[name] = [row if len({*row}) > 1 else row[:1] for row in found[name]]
    return found


def opcodes():
    """Everything that a model's tables can be checked against."""
    return {
        "release": list(sys.version_info[:2]),
        "numbers": {name: opcode.opmap[name] for name in sorted(opcode.opmap) if stored(name)},
        "caches": caches(),
        "flags": flags(),
        "effects": effects(),
        "compare": list(dis.cmp_op),
        "binary": [symbol for _, symbol in opcode._nb_ops],
        "intrinsics": [list(getattr(opcode, f"_intrinsic_{n}_descs", ())) for n in (1, 2)],
        "specials": list(getattr(opcode, "_special_method_names", ())),
        "constants": list(map(repr, getattr(opcode, "_common_constants", ()))),
    }


def raw_facts(raw):
    """[offset, name, operand, jump target, effect, effect of the jump], and the names of what the operand numbers."""
    arg = raw.arg if raw.opcode >= dis.HAVE_ARGUMENT else None
    target = raw.argval if raw.opcode in dis.hasjrel else None
    both = [stack_effect(raw.opcode, arg, jump) for jump in (False, True)]
    named = raw.opcode in NAMED and isinstance(raw.argval, (str, tuple))
    return [raw.offset, raw.opname, raw.arg or 0, target, *both, *([raw.argval] if named else [])]


def code_facts(code):
    """What dis says of one code object."""
    positions = []
    for place in code.co_positions():
        if positions and positions[-1][1] == place:
            positions[-1][0] += 1
        else:
            positions.append([1, place])
    return {
        "raw": [raw_facts(raw) for raw in dis.get_instructions(code)],
        "positions": positions,
        "handlers": [list(entry) for entry in dis._parse_exception_table(code)],
        "slots": [code._varname_from_oparg(n) for n in range(slot_count(code))],
    }


def slot_count(code):
    """Locals, cells that aren't parameters, free variables."""
    return code.co_nlocals + len({*code.co_cellvars} - {*code.co_varnames}) + len(code.co_freevars)


def corpus():
    """(name, source) of everything that the release can compile."""
    for name in ("corpus.py", "corpus_generators.py"):
        yield name, (HERE / name).read_text("utf-8")
    for folder in ("syntax", "programs"):
        for path in sorted((HERE / folder).glob("3.*.txt"), key=release_of):
            if release_of(path) <= sys.version_info[:2]:
                yield f"{folder}/{path.name}", path.read_text("utf-8")


def release_of(path):
    """3.14.txt is (3, 14)."""
    return tuple(map(int, path.name.split(".")[:2]))


def codes():
    """Image and facts of each code object of the corpus, nested ones after those that they stand in."""
    from bytecode_models.__main__ import nested_codes
    from bytecode_models.image import dump

    found = []
    for name, source in corpus():
        module = compile(source, name, "exec", dont_inherit=True)
        found.append({"image": dump(module), "facts": [code_facts(code) for code in nested_codes(module)]})
    return found


def committed(kind, release):
    """The file of one release."""
    return DATA / f"{kind}-{release[0]}.{release[1]}.json"


def read(kind, release, folder=DATA):
    """What it holds."""
    return json.loads((folder / committed(kind, release).name).read_text("utf-8"))


def write(folder):
    """Both files of the running interpreter."""
    name = committed("opcodes", sys.version_info).name
    (folder / name).write_text(json.dumps(opcodes(), indent=1) + "\n", "utf-8")
    text = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in codes())
    (folder / committed("codes", sys.version_info).name).write_text(f"[{text}]\n", "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
