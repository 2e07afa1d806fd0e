"""Stack effects against `dis.stack_effect`, for every opcode of every release and every shape of its operand."""

import pytest
from models import dumps
from models.agreement import FOLDED, OTHER_EFFECT
from models.probe import counted, effects_of

from bytecode_models import model_for
from bytecode_models.model import releases


@pytest.fixture(params=releases(), ids="{0[0]}.{0[1]}".format)
def model(request):
    return model_for(request.param)


#: Where the compiler makes few operands, and `dis` takes all others to be one of them.
MEANINGFUL = {"BUILD_SLICE": {2, 3}}


def operands(facts, name):
    """(number, operand)"""
    return enumerate(dumps.OPERANDS if name in facts["flags"]["hasarg"] else (0,))


def test_effects_are_those_of_dis(model):
    facts = dumps.read("opcodes", model.release)
    compared = 0
    for name in sorted({*model.numbers} - model.internal - OTHER_EFFECT.keys() - FOLDED):
        for at, arg in operands(facts, name):
            try:
                ours = effects_of(model, name, arg)
            except ValueError:  # an operand that has no meaning
                continue
            if arg not in MEANINGFUL.get(name, (arg,)):
                continue
            theirs = tuple(counted(facts, name, at, jump) for jump in (False, True))
            if None not in theirs:
                assert ours == theirs, (name, arg)
                compared += 1
    assert compared > 1500


#: What the interpreter leaves, by its own evaluation loop, where `dis` says otherwise: (goes on, jumps).
LEFT = {
    (3, 11): {"FOR_ITER": (1, -1), "SEND": (0, -1), "RETURN_GENERATOR": (1, 1)},
    (3, 12): {"FOR_ITER": (1, -1), "SEND": (0, 0), "RETURN_GENERATOR": (1, 1), "END_FOR": (-2, -2)},
    (3, 13): {"FOR_ITER": (1, -1), "SEND": (0, 0), "RETURN_GENERATOR": (1, 1), "END_FOR": (-1, -1)},
    (3, 14): {"FOR_ITER": (1, 0), "SEND": (0, 0), "RETURN_GENERATOR": (1, 1), "END_FOR": (-1, -1)},
    (3, 15): {"FOR_ITER": (1, 0), "SEND": (0, 0), "RETURN_GENERATOR": (1, 1), "END_FOR": (-1, -1)},
}


def test_differences_are_those_that_are_listed(model):
    left = LEFT.get(model.release, LEFT[max(LEFT)])
    facts = dumps.read("opcodes", model.release)
    for name in OTHER_EFFECT.keys() & model.numbers.keys():
        ours = effects_of(model, name, 1)
        theirs = tuple(counted(facts, name, 1 if name in facts["flags"]["hasarg"] else 0, j) for j in (False, True))
        if ours != theirs:
            assert ours == left.get(name, (-1, -1)), name
