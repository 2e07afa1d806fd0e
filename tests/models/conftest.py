"""These tests concern bytecode_models alone: they run where neither torch nor dynacore is installed, or works."""

import pytest


@pytest.fixture(autouse=True)
def clean_dynacore():
    """Nothing to clean here."""
