"""All programs: name -> (function, calls)."""

from machine import (  # noqa: F401
    classes,
    definitions,
    exceptions,
    expressions,
    functions,
    histories,
    iteration,
    lifetimes,
    matching,
    protocols,
    special_methods,
    states,
    tensors,
)
from machine.oracle import CALLS
from models.corpus import CASES

for at, (function, given) in enumerate(CASES):
    CALLS[f"models_{function.__name__}_{at}"] = (function, (given,))

PROGRAMS = dict(sorted(CALLS.items()))
