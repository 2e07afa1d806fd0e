"""The proof of the porting kit: a release that doesn't exist is ported to, by it, and one file is written by hand."""

import filecmp
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from models import dumps
from port.fake import MERGED_NAME, RENAMED, SPLIT, fake_dumps, reassembled

import bytecode_models
from bytecode_models import model_for
from bytecode_models.image import CodeImage
from bytecode_models.model import releases

ROOT = Path(__file__).resolve().parents[2]
RELEASE = (3, 99)
NEWEST = max(releases())

#: What a person adds to the skeleton: the rules of the opcodes that it names.
RULES = '''\
def half(raw: Raw) -> int:
    """Target of a jump whose operand holds a bit more."""
    return raw.end + 2 * (raw.arg >> 1)


RULES = {
    "UNARY_COMPLEMENT": one(Op.UNARY, "~"),
    "IS": one(Op.IS, False),
    "IS_NOT": one(Op.IS, True),
    "POP_JUMP_IF_NONENESS": (
        Step(Op.JUMP_IF, "none", target=half, when=lambda raw: not raw.arg & 1),
        Step(Op.JUMP_IF, "not_none", target=half, when=bit(0)),
    ),
}
'''
IMPORTS = "from .ops import Op\nfrom .rules import Raw, Step, bit, numbered, one\n"

COMPARE = """\
import json, sys
from bytecode_models import decode, model_for
from bytecode_models.__main__ import nested_codes
from bytecode_models.image import CodeImage
from models import dumps
from pathlib import Path
old, new, folder = (3, int(sys.argv[1])), (3, 99), Path(sys.argv[2])
def programs(release, folder):
    for module in dumps.read("codes", release, folder):
        for code in nested_codes(CodeImage(module["image"])):
            instrs = decode(code, model_for(release)).instrs
            yield [(i.op, repr(i.a), i.b, i.c, i.target, i.handler, i.positions) for i in instrs]
pairs = list(zip(programs(old, dumps.DATA), programs(new, folder), strict=True))
assert all(ours == theirs for ours, theirs in pairs)
print(len(pairs), "programs are the same")
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the package and of the C sources, and the dumps of the release."""
    folder = tmp_path_factory.mktemp("port")
    package = Path(bytecode_models.__file__).parent
    shutil.copytree(package, folder / "package" / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "packages/dynacore/csrc", folder / "csrc")
    opcodes, codes = fake_dumps(NEWEST)
    for kind, content in (("opcodes", opcodes), ("codes", codes)):
        (folder / dumps.committed(kind, RELEASE).name).write_text(json.dumps(content), "utf-8")
    return folder


def run(tree, *command):
    path = os.pathsep.join(map(str, (tree / "package", ROOT / "tests", ROOT / "ci")))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *map(str, command)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def port(tree):
    """One run of the kit: exit status, what it says."""
    done = run(tree, ROOT / "ci" / "port.py", "3.99", "--dumps", tree, "--csrc", tree / "csrc")
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def skeleton(tree):
    """The model of the release."""
    return tree / "package" / "bytecode_models" / "v399.py"


def fill_in(tree, rules):
    """What a person does to the model."""
    written = skeleton(tree).read_text("utf-8").replace("from .rules import numbered\n", IMPORTS)
    skeleton(tree).write_text(written.replace("RULES = {}\n", rules), "utf-8")


def changed(tree):
    """Files of the package that aren't what they were."""
    original, copy = Path(bytecode_models.__file__).parent, tree / "package" / "bytecode_models"
    compared = filecmp.dircmp(original, copy, ignore=["__pycache__"])
    return sorted(compared.diff_files + compared.left_only + compared.right_only)


def test_port_to_a_release_that_does_not_exist(tree):
    skeleton(tree).unlink(missing_ok=True)
    status, said = port(tree)
    assert status == 1
    for name in (*RENAMED.values(), *SPLIT["IS_OP"], MERGED_NAME):
        assert f"  {name}: effect" in said, "is reported"
        assert f"  {name}: no rule" in said, "is missing on the first rung"
    assert "removed:\n  IS_OP\n  POP_JUMP_IF_NONE\n  POP_JUMP_IF_NOT_NONE\n  UNARY_INVERT\n" in said
    assert "LOAD_ATTR: 9 -> 7" in said
    assert "UNARY_COMPLEMENT: effect 0 (as UNARY_INVERT had)" in said
    assert "rung 1, tables: missing" in said
    assert changed(tree) == ["v399.py"]

    fill_in(tree, RULES)
    status, said = port(tree)
    assert status == 0, said
    assert "rung 1, tables: holds" in said
    assert "rung 3, code objects: holds" in said
    assert "wrote" not in said, "what is there isn't touched"
    assert changed(tree) == ["v399.py"], "one file"

    done = run(tree, "-c", COMPARE, NEWEST[1], tree)
    assert "programs are the same" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("one(Op.IS, True)", "one(Op.IMPORT_FROM, 'x')", "rung 2, stack effects: missing\n  IS_NOT 0: effects (1, 1)"),
        ("raw.end + 2", "raw.end + 4", f"rung 3, code objects: missing\n  {MERGED_NAME}: in "),
    ],
)
def test_a_mistake_is_named_by_its_opcode(tree, right, wrong, told):
    skeleton(tree).unlink(missing_ok=True)
    port(tree)
    fill_in(tree, RULES.replace(right, wrong))
    status, said = port(tree)
    assert status == 1
    assert told in said


def test_the_c_header_is_a_copy_that_is_included(tree):
    port(tree)
    header = (tree / "csrc" / "cpython_399.h").read_text("utf-8")
    newest = "cpython_{}{}.h".format(*NEWEST)
    assert header == (tree / "csrc" / newest).read_text("utf-8").replace("{}.{}".format(*NEWEST), "3.99")
    text = (tree / "csrc" / "cpython.c").read_text("utf-8")
    assert f'#include "{newest}"\n#elif PY_VERSION_HEX < 0x03640000\n#include "cpython_399.h"\n#else' in text


def test_the_fake_is_assembled_as_the_compiler_would():
    opcodes = dumps.opcodes()
    for function in (fake_dumps, port, run, test_port_to_a_release_that_does_not_exist, model_for):
        original, again = reassembled(getattr(function, "__wrapped__", function).__code__, opcodes)
        where = list(CodeImage(again).co_positions()), list(CodeImage(original).co_positions())
        assert where[0] == where[1]
        # 3.11 has an entry for each instruction, later ones for neighbours at one place.
        assert again | {"co_linetable": ""} == original | {"co_linetable": ""}
