"""Names of classes and functions in texts: a program may change them, so what has them in its text relies on them."""

from __future__ import annotations

import types
from typing import Any

from ..library.stand_ins import c_name, named_like
from ..reasons import Break
from .wrapping import C_METHODS, FUNCTION, is_heap

#: what texts say of a class
NAMES = ("__name__", "__qualname__", "__module__")
#: C objects whose text names the class that they belong to
OF_A_CLASS = (*C_METHODS, types.MemberDescriptorType, types.GetSetDescriptorType)
ALIASES = (types.GenericAlias, types.UnionType)


class Names:
    """What texts call things, under guards."""

    def name_of(self, cls: type) -> str:
        """What the errors of C call a class."""
        if is_heap(cls):
            self.rely_on(cls, "__name__")
        return c_name(cls)

    def named_like(self, cls: type, **namespace: Any) -> Any:
        """An object with a class of the same names: errors say of it what they say of an instance of `cls`."""
        self.rely_on_names(cls)
        return named_like(cls, **namespace)

    def rely_on(self, obj: Any, field: str) -> None:
        """Guard a field that tells a name."""
        self.wrap(getattr(obj, field), self.root.child("const", obj).child("slot", field))

    def rely_on_names(self, cls: type) -> None:
        """Guard whatever a text may say of a class."""
        if is_heap(cls):
            for name in NAMES:
                self.rely_on(cls, name)

    def rely_on_text(self, obj: Any) -> None:
        """Guard the names in the text of an object that is used by identity."""
        self.rely_on_names(type(obj))
        if isinstance(obj, type):
            self.rely_on_names(obj)
        elif type(obj) is FUNCTION:
            self.rely_on(obj, "__qualname__")
        elif isinstance(obj, OF_A_CLASS):
            self.rely_on_names(obj.__objclass__)
        elif isinstance(obj, types.BuiltinFunctionType):
            self.rely_on_names(type(obj.__self__))
        elif isinstance(obj, ALIASES):
            for part in (getattr(obj, "__origin__", None), *obj.__args__):
                if not isinstance(part, (type, *ALIASES, type(None), type(Ellipsis))):
                    raise Break("format-unknown", type(part).__name__)
                self.rely_on_text(part)


__all__ = ["Names"]
