"""The opinion of xdis, a third party, on every release that it knows. It is needed by these tests alone.

Where it differs, the interpreter has said otherwise itself: in its committed dump, which the model is held against too.
"""

import pytest
from models import dumps
from models.agreement import FOLDED, OTHER_EFFECT
from models.probe import PREFIXES, counted, effects_of

from bytecode_models import model_for
from bytecode_models.model import releases

op_imports = pytest.importorskip("xdis.op_imports")
cross_dis = pytest.importorskip("xdis.cross_dis")

#: Opcodes that xdis numbers in another way, by release.
OTHER_NUMBER = {(3, 14): {"ENTER_EXECUTOR"}}
#: Opcodes whose stack effect xdis takes to be another one.
OTHER_XDIS_EFFECT = {
    (3, 11): {"BUILD_SLICE", "MAKE_FUNCTION", "JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP"},
    (3, 12): {"BUILD_SLICE", "MAKE_FUNCTION"},
    (3, 13): {"BUILD_SLICE", "MAKE_FUNCTION"},
    (3, 14): {"MAKE_FUNCTION"},
}
#: Releases of which it has no tables.
UNKNOWN = {(3, 15)}


def opinion(release):
    """The opcode module of a release."""
    return op_imports.op_imports[".".join(map(str, release))]


@pytest.fixture(params=[release for release in releases() if release not in UNKNOWN], ids="{0[0]}.{0[1]}".format)
def model(request):
    return model_for(request.param)


def test_numbers(model):
    theirs = opinion(model.release).opmap
    different = {name for name, number in model.numbers.items() if theirs.get(name) != number}
    assert different == OTHER_NUMBER.get(model.release, set())
    facts = dumps.read("opcodes", model.release)
    assert all(facts["numbers"][name] == model.numbers[name] for name in different)


def test_effects(model):
    theirs = opinion(model.release)
    facts = dumps.read("opcodes", model.release)
    different = set()
    for name in {*model.numbers} - model.internal - OTHER_EFFECT.keys() - FOLDED - PREFIXES.keys():
        for arg in (2, 3):
            try:
                ours = effects_of(model, name, arg)
            except ValueError:
                continue
            for jump in (False, True):
                if ours[jump] != cross_dis.xstack_effect(model.numbers[name], theirs, arg, jump):
                    different.add(name)
                    at = dumps.OPERANDS.index(arg) if name in facts["flags"]["hasarg"] else 0
                    assert ours[jump] == counted(facts, name, at, jump), "xdis is right"
    assert different == OTHER_XDIS_EFFECT[model.release]


def test_unknown_releases_are_still_unknown():
    for release in UNKNOWN & {*releases()}:
        assert ".".join(map(str, release)) not in op_imports.op_imports, "xdis knows it now: take it out of UNKNOWN"
