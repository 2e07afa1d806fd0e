"""Compiled `nn.Module`s: a second object over the same state, whose call is compiled.

The object is an instance of a subclass made for the model's class. It shares the model's `__dict__`, so names, hooks,
buffers and modes are one and the same on both; what it calls is the model itself, so that `self` in user code is the
model. The compiled callables sit in slots named `__call__` and `forward`: calling costs one descriptor read.
"""

from __future__ import annotations

import copy
import weakref
from abc import ABCMeta
from collections.abc import Callable
from typing import Any, cast

from torch import nn

from .shims import forward_shim, shim

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


class _Meta(type):
    """First base of the metaclass of every class of compiled modules."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """`type(compiled)(...)` in a method of the model's class makes an ordinary model."""
        return cls._dynacore_class(*args, **kwargs)  # type: ignore[attr-defined]


class CompiledModule:
    """First base of every class of compiled modules."""

    __slots__ = ()

    _dynacore_class: type
    _dynacore_model: nn.Module
    _dynacore_wrap: Wrap

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Ends here: the model's class isn't told of the subclass made for it."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        original = cls._dynacore_class
        return original.__new__(original, *args, **kwargs)

    @property
    def __class__(self) -> type:
        """The model's class, which code in the model may compare with."""
        return type(self._dynacore_model)

    @__class__.setter
    def __class__(self, cls: type) -> None:
        self._dynacore_model.__class__ = cls

    @property
    def _orig_mod(self) -> nn.Module:
        """The model, under the name that torch.compile gives it."""
        return self._dynacore_model

    def __getattr__(self, name: str) -> Any:
        # Reached for what the model has beyond its dict: slots, and properties of a class that it was given later.
        return getattr(object.__getattribute__(self, "_dynacore_model"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._dynacore_model, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._dynacore_model, name)

    def __copy__(self) -> Any:
        return wrap_module(copy.copy(self._dynacore_model), self._dynacore_wrap)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return wrap_module(copy.deepcopy(self._dynacore_model, memo), self._dynacore_wrap)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return wrap_module, (self._dynacore_model, self._dynacore_wrap)


_SLOTS = ("__call__", "forward", "_dynacore_model", "_dynacore_wrap")
_classes: weakref.WeakKeyDictionary[type, weakref.ref[type]] = weakref.WeakKeyDictionary()


def wrap_module(model: nn.Module, wrap: Wrap) -> Any:
    """A module over the same state as `model` whose call is `wrap` of the model's call."""
    if isinstance(model, CompiledModule):
        if model._dynacore_wrap == wrap:
            return model
        model = model._dynacore_model
    cls = _class_for(type(model))
    try:
        compiled: Any = object.__new__(cls)
    except TypeError:
        # The model's class also derives from a C type with storage of its own, as dict: that can't be shared.
        return wrap(shim(model))
    object.__setattr__(compiled, "__dict__", model.__dict__)
    values = (wrap(shim(model)), wrap(forward_shim(model)), model, wrap)
    for name, value in zip(_SLOTS, values, strict=True):
        cls.__dict__[name].__set__(compiled, value)
    return compiled


def _class_for(cls: type) -> type:
    known = _classes.get(cls)
    made = known() if known is not None else None
    if made is None:
        made = _make_class(cls)
        _classes[cls] = weakref.ref(made)
    return made


def _make_class(cls: type) -> type:
    """The subclass for compiled modules, made without running the code of a user's metaclass."""
    metaclass = type(cls)
    meta = _Meta if metaclass is type else type.__new__(type, metaclass.__name__, (_Meta, metaclass), {})
    namespace = {
        "__slots__": _SLOTS,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "_dynacore_class": cls,
    }
    make = ABCMeta.__new__ if issubclass(metaclass, ABCMeta) else type.__new__
    return cast(type, make(meta, cls.__name__, (CompiledModule, cls), namespace))
