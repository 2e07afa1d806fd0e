"""Python's object model over symbolic values, once: each module mirrors one part of CPython's `Objects/`."""

from __future__ import annotations

from .attribute_writes import AttributeWrites
from .attributes import Attributes
from .calls import Calls
from .compare import Compare
from .dicts import Dicts
from .functions import Functions
from .iteration import Iteration
from .names import Names
from .operators import Operators
from .owners import OwnerAttributes
from .scalars import Scalars
from .subscripts import Subscripts
from .wrapping import Wrapping


class Objects(
    Wrapping,
    Names,
    Attributes,
    OwnerAttributes,
    AttributeWrites,
    Calls,
    Functions,
    Operators,
    Compare,
    Subscripts,
    Dicts,
    Iteration,
    Scalars,
):
    """The operations that instruction handlers call; the machine is one."""
