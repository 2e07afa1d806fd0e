"""`import dynacore` brings in nothing heavy: that is what keeps it quick."""

import subprocess
import sys

PROGRAM = """
import torch
import dynacore
import sys
print([name for name in ("torch._dynamo", "torch._inductor", "sympy", "numpy.testing") if name in sys.modules])
dynacore.compile(lambda x: x + 1, backend="eager")
print([name for name in ("torch._dynamo", "torch._inductor") if name in sys.modules])
"""


def test_import_brings_in_nothing_heavy():
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    assert subprocess.check_output(command, text=True).splitlines() == ["[]", "[]"]
