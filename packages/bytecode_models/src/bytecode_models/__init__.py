"""CPython bytecode as release-neutral instructions, and functions that resume a frame in its middle."""

from .decode import Program, decode
from .model import UnsupportedVersion, VersionModel, current, model_for
from .ops import NULL, UNBOUND, Handler, Instr, Op
from .resume import resume_function, resume_generator

__all__ = [
    "NULL",
    "UNBOUND",
    "Handler",
    "Instr",
    "Op",
    "Program",
    "UnsupportedVersion",
    "VersionModel",
    "current",
    "decode",
    "model_for",
    "resume_function",
    "resume_generator",
]
