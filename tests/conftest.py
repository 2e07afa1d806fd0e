"""Every test starts from a clean dynacore, and a fault of capture fails it instead of falling back to plain Python."""

import importlib.util
import os

import pytest

# Triton decides at its first import, whoever imports it, whether it interprets kernels; tests/gpu needs that it does.
os.environ["TRITON_INTERPRET"] = "1"

# The tests of bytecode_models also run where neither torch nor dynacore is installed.
HAS_DYNACORE = importlib.util.find_spec("dynacore") is not None


def pytest_addoption(parser):
    parser.addoption("--all-cuts", action="store_true", help="cut programs at every instruction, not at a sample")
    parser.addoption("--compositions", type=int, default=25, help="how many random programs the GPU backend is given")


@pytest.fixture(autouse=HAS_DYNACORE)
def clean_dynacore():
    """Internal errors raise; compiled code, counters and what was already logged are forgotten."""
    import dynacore

    dynacore.reset()
    with dynacore.config.patch(on_internal_error="raise"):
        yield
    dynacore.reset()
