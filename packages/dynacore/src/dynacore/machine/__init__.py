"""The symbolic machine."""

from ..frames import Frame
from . import handlers_control, handlers_data
from .core import Finished, Machine, Stopped

__all__ = ["Finished", "Frame", "Machine", "Stopped", "handlers_control", "handlers_data"]
