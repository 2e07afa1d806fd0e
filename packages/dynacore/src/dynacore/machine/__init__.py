"""The symbolic machine."""

from . import handlers_control, handlers_data
from .core import Finished, Machine, Stopped
from ..frames import Frame

__all__ = ["Finished", "Frame", "Machine", "Stopped", "handlers_control", "handlers_data"]
