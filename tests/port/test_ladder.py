"""The rungs of the ladder that any interpreter can climb hold for every release that is known."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from models import dumps

import bytecode_models
from bytecode_models.model import releases

ROOT = Path(__file__).resolve().parents[2]


def kit(*arguments):
    path = os.pathsep.join(map(str, (Path(bytecode_models.__file__).parents[1], ROOT / "tests")))
    command = [sys.executable, str(ROOT / "ci" / "port.py"), *arguments]
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("release", releases()[1:], ids="{0[0]}.{0[1]}".format)
def test_known_releases(release):
    done = kit(f"{release[0]}.{release[1]}", "--dumps", str(dumps.DATA))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": holds") == 3
    assert "wrote" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["3.98"], "give the interpreter, or --dumps"),
        (["3.98", sys.executable], "not 3.98"),
        (["3.98", "no/such/python"], "No such file or directory: 'no/such/python'"),
    ],
)
def test_mistakes_are_explained(arguments, message):
    done = kit(*arguments)
    assert done.returncode
    assert message in done.stderr
