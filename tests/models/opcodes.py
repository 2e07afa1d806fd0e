"""`python tests/models/opcodes.py` writes data/opcodes-3.X.json: what the running interpreter says of its opcodes.

The files are committed, so that any interpreter can check the model of any release.
"""

import dis
import json
import opcode
import sys
from pathlib import Path

DATA = Path(__file__).parent / "data"


def stored(name):
    """Can code objects contain it?"""
    return opcode.opmap.get(name, 256) < 256 and not name.startswith("INSTRUMENTED_")


def caches():
    """Units of inline cache, where there are any."""
    entries = opcode._inline_cache_entries
    named = entries.items() if hasattr(entries, "items") else zip(opcode.opname, entries)
    return {name: units for name, units in sorted(named) if units}


def dump():
    """Everything that a model can be checked against."""
    return {
        "release": list(sys.version_info[:2]),
        "numbers": {name: opcode.opmap[name] for name in sorted(opcode.opmap) if stored(name)},
        "caches": caches(),
        "jumps": sorted(dis.opname[number] for number in {*dis.hasjrel, *dis.hasjabs} if stored(dis.opname[number])),
        "compare": list(dis.cmp_op),
        "binary": [symbol for _, symbol in opcode._nb_ops],
        "intrinsics": [list(getattr(opcode, f"_intrinsic_{n}_descs", ())) for n in (1, 2)],
    }


def committed(release):
    """The file of one release."""
    return DATA / f"opcodes-{release[0]}.{release[1]}.json"


if __name__ == "__main__":
    committed(sys.version_info).write_text(json.dumps(dump(), indent=1) + "\n", "utf-8")
