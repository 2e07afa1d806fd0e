"""`import dynacore` is quick and brings in nothing heavy."""

import subprocess
import sys

PROGRAM = """
import time, torch
before = time.process_time()  # other processes don't count
import dynacore
print(time.process_time() - before)
import sys
print([name for name in ("torch._dynamo", "torch._inductor", "sympy", "numpy.testing") if name in sys.modules])
dynacore.compile(lambda x: x + 1, backend="eager")
print([name for name in ("torch._dynamo", "torch._inductor") if name in sys.modules])
"""


def test_import_time_and_modules():
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    seconds, heavy, later = zip(
        *(subprocess.check_output(command, text=True).splitlines() for _ in range(3)), strict=True
    )
    assert min(map(float, seconds)) <= 0.1, seconds
    assert set(heavy) == set(later) == {"[]"}
