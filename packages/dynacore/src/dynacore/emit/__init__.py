"""Emission: from the machine's final state to the Python source of an entry."""
