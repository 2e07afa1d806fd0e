"""Capture PyTorch programs from CPython bytecode at run time."""

from .config import config

__all__ = ["config"]
