"""`python -m bytecode_models dis`."""

import sys

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
    for part in ("<module> (line 1)", "A (line 1)", "g (line 7)", "LOAD_BUILD_CLASS", "  0 RESUME 0"):
        assert part in out


def test_constants_are_shown_even_none(tmp_path, capsys):
    (tmp_path / "none.py").write_text("f(None)")
    assert main(["dis", str(tmp_path / "none.py")]) == 0
    assert "LOAD_CONST         None" in capsys.readouterr().out


def test_another_release_by_its_interpreter(source, capsys):
    running = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert main(["dis", f"{source}:A.f", "--raw"]) == 0
    plain = capsys.readouterr().out
    assert main(["dis", f"{source}:A.f", "--raw", "--version", running, "--python", sys.executable]) == 0
    assert capsys.readouterr().out == plain
    assert main(["dis", f"{source}:A.f", "--raw", "--version", running]) == 0
    assert capsys.readouterr().out == plain


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--version", "3.2"], r"CPython 3.2 has no bytecode model"),
        (["--version", "3"], "--version 3: not a release such as 3.14"),
        (["--version", "3.11", "--python", "no/such/python"], "no/such/python can't be run"),
        (["--version", "3.11", "--python", "false"], "false can't compile"),
    ],
)
def test_missing_interpreters_are_explained(source, options, message, capsys):
    with pytest.raises(SystemExit):
        main(["dis", source, *options])
    assert message in capsys.readouterr().err


def test_a_shim_without_that_release_is_no_interpreter(source, tmp_path, capsys):
    shim = tmp_path / "python3.11"
    shim.write_text("#!/bin/sh\necho 'command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    with pytest.raises(SystemExit):
        main(["dis", source, "--version", "3.11", "--python", str(shim)])
    assert "is no interpreter here; give its path with --python\ncommand not found" in capsys.readouterr().err


@pytest.mark.parametrize(("where", "message"), [("none.py", "no such file"), ("{}:missing", "defines no function")])
def test_mistakes_are_explained(source, where, message, capsys):
    with pytest.raises(SystemExit):
        main(["dis", where.format(source)])
    assert message in capsys.readouterr().err
