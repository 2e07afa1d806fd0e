"""What the machine knows of callables that it can't look into: rules, polyfills and pure functions (`registry`)."""

from __future__ import annotations

import importlib

#: the modules whose import fills the tables of `registry`
RULE_MODULES = (
    "polyfills",
    "builtins_rules",
    "functions_rules",
    "numbers_rules",
    "text_rules",
    "ranges_rules",
    "lists_rules",
    "deques_rules",
    "tuples_rules",
    "dicts_rules",
    "sets_rules",
    "objects_rules",
    "copies_rules",
    "random_rules",
    "refusals",
    "torch_rules",
    "optim_rules",
    "autograd_rules",
)

_loaded = False


def load() -> None:
    """Fill the tables; the first capture does this, so that importing dynacore stays cheap."""
    global _loaded
    if not _loaded:
        for name in RULE_MODULES:
            importlib.import_module(f"{__name__}.{name}")
        _loaded = True
    importlib.import_module(f"{__name__}.numpy_rules").fill()
