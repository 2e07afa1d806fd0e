"""The table of reasons: every code that the source names is in it, and every row says what to do."""

import ast
import pickle
import re
from pathlib import Path

import pytest

import dynacore
from dynacore import FullGraphError
from dynacore.reasons import REASONS, Break, BreakSite

SOURCE = Path(dynacore.__file__).parent


def break_codes(path):
    """(line, code or None) of every `Break(...)` call in a file; None where the code isn't a literal."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Break":
            first = node.args[0] if node.args else None
            yield node.lineno, first.value if isinstance(first, ast.Constant) else None


def test_every_code_in_the_source_is_in_the_table():
    unknown = [
        f"{path.relative_to(SOURCE)}:{line}: {code}"
        for path in SOURCE.rglob("*.py")
        for line, code in break_codes(path)
        if code is not None and code not in REASONS
    ]
    assert not unknown, "codes missing from dynacore.reasons: " + "\n".join(unknown)


def test_every_row_is_used():
    text = "".join(path.read_text() for path in SOURCE.rglob("*.py") if path.name != "reasons.py")
    assert not [code for code in REASONS if f'"{code}"' not in text]


@pytest.mark.parametrize("code", REASONS)
def test_rows_are_complete(code):
    row = REASONS[code]
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code)
    assert row.code == code
    assert row.summary
    assert row.hint


def test_a_break_formats_nothing_until_it_is_shown():
    class Loud:
        def __str__(self):
            raise AssertionError

    assert Break("tensor-truth", Loud()).code == "tensor-truth"
    assert str(Break("tensor-truth", "x")) == "tensor-truth: x"


def test_the_hint_of_a_rule_replaces_the_tables():
    assert BreakSite.of(Break("import", "json"), "f.py", 1, "f").hint == REASONS["import"].hint
    assert BreakSite.of(Break("import", "json", "do this"), "f.py", 1, "f").hint == "do this"


def test_a_site_names_the_inlined_callers_outermost_first():
    callers = (("b.py", 2, "middle"), ("c.py", 1, "outer"), ("<dynacore>", 1, "shim"))
    text = BreakSite.of(Break("import"), "a.py", 3, "inner", callers).describe()
    assert [line for line in text.splitlines() if "File" in line] == [
        '  File "c.py", line 1, in outer',
        '  File "b.py", line 2, in middle',
        '  File "a.py", line 3, in inner',
    ]


def test_the_full_graph_error_tells_all_and_can_be_pickled():
    site = BreakSite.of(Break("tensor-truth", "x.sum() > 0"), __file__, 1, "f")
    error = FullGraphError([site])
    assert isinstance(error, RuntimeError)
    for part in (
        "fullgraph=True",
        "tensor-truth",
        "x.sum() > 0",
        f'"{__file__}", line 1, in f',
        "hint: use torch.where",
    ):
        assert part in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert again.breaks == (site,)
    assert str(again) == str(error)
