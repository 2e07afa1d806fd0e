"""Code objects that each release has compiled, as committed data: any interpreter checks the model of any release."""

import json
import types

import pytest
from models import dumps
from models.agreement import check

from bytecode_models import Op, decode, model_for
from bytecode_models.__main__ import nested_codes
from bytecode_models.image import CodeImage, dump, image_of
from bytecode_models.model import releases


@pytest.fixture(params=releases(), ids="{0[0]}.{0[1]}".format, scope="module")
def model(request):
    return model_for(request.param)


@pytest.fixture(scope="module")
def codes(model):
    """(image, facts) of each code object of the corpus."""
    modules = dumps.read("codes", model.release)
    return [
        (code, facts)
        for module in modules
        for code, facts in zip(nested_codes(CodeImage(module["image"])), module["facts"], strict=True)
    ]


def test_all_agrees_with_dis(model, codes):
    for code, facts in codes:
        check(decode(code, model), model, facts)
    assert len(codes) > 130


def test_every_opcode_is_in_the_corpus(model, codes):
    seen = {name for _, facts in codes for _, name, *_ in facts["raw"]}
    # Made by the interpreter alone, or where the corpus can't have it: interactive code.
    assert {*model.numbers} - model.internal - seen <= {"CACHE", "PRINT_EXPR", "EXTENDED_ARG", "NOT_TAKEN"}


def test_operations_of_the_corpus_are_the_same_in_every_release():
    """What the releases compile differently has the same operations: those of 3.11, and what later syntax needs."""
    used = {
        release: {
            instr.op
            for module in dumps.read("codes", release)
            for code in nested_codes(CodeImage(module["image"]))
            for instr in decode(code, model_for(release)).instrs
        }
        for release in releases()
    }
    first, *others = used.values()
    new = {op for ops in others for op in ops - first}
    assert new == {
        Op.LOAD_LOCAL_CLEAR, Op.LOAD_CLASS_GLOBAL, Op.LOAD_LOCALS, Op.LOAD_SUPER, Op.END_SEND, Op.THROW_CLEANUP,  # 3.12
        Op.TO_BOOL,  # 3.13
        Op.LOAD_SPECIAL, Op.POP_ITER, Op.BUILD_TEMPLATE, Op.BUILD_INTERPOLATION,  # 3.14
    }  # fmt: skip
    assert first | new == {*Op}


def test_images_are_faithful():
    for name in ("check", "corpus"):
        code = (check if name == "check" else dumps.corpus).__code__
        image = CodeImage(json.loads(json.dumps(dump(code))))
        assert [c for c in image.co_consts if not isinstance(c, CodeImage)] == [
            c for c in code.co_consts if not isinstance(c, types.CodeType)
        ]
        assert list(image.co_positions()) == list(code.co_positions())
        ours, theirs = ([instr._replace(a=None) for instr in decode(c).instrs] for c in (image, code))
        assert ours == theirs


def test_constants_of_images():
    source = "x = 1e309, -0.0, 2j, ..., b'b', 'é', {1, 2} == x, (1, (2, None)), x in {'b'}, x[1:2]"
    module = compile(source, "", "exec")
    image = image_of(module)
    assert repr(image.co_consts) == repr(module.co_consts)
