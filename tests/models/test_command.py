"""`python -m bytecode_models dis`."""

import pytest

from bytecode_models.__main__ import main

SOURCE = """\
class A:
    def f(self, x):
        try:
            return g(x or 1, key=2)
        except E:
            pass
def g(*a, **k): return 1
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "example.py"
    path.write_text(SOURCE)
    return str(path)


def test_lists_one_function(source, capsys):
    assert main(["dis", f"{source}:A.f"]) == 0
    out = capsys.readouterr().out
    assert "A.f (line 2)" in out
    assert "CALL               2, ('key',), " in out
    assert "(except " in out
    assert "BUILD_CLASS" not in out
    assert "offset" not in out


def test_lists_all_and_the_raw_instructions(source, capsys):
    assert main(["dis", source, "--raw"]) == 0
    out = capsys.readouterr().out
    for part in ("<module> (line 1)", "A (line 1)", "g (line 7)", "LOAD_BUILD_CLASS", "offset 0: RESUME 0"):
        assert part in out


@pytest.mark.parametrize(("where", "message"), [("none.py", "no such file"), ("{}:missing", "defines no function")])
def test_mistakes_are_explained(source, where, message, capsys):
    with pytest.raises(SystemExit):
        main(["dis", where.format(source)])
    assert message in capsys.readouterr().err
