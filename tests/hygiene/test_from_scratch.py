"""The tutorial runs, and says what it promises."""

import runpy

from hygiene.tree import ROOT


def test_the_tutorial_runs(capsys):
    runpy.run_path(str(ROOT / "docs" / "from_scratch.py"), run_name="__main__")
    told = capsys.readouterr().out
    assert "LOAD_GLOBAL" in told
    assert "torch.sin(x0)" in told
