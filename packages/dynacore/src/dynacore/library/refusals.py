"""Callables that always run in the interpreter, each with the reason that the user is shown."""

from __future__ import annotations

import builtins
import collections
import dataclasses
import enum
import gc
import io
import logging
import os
import sys
import threading
import time
import typing
import warnings
import weakref
from typing import Any

from ..reasons import Break
from ..values import Value
from .registry import RULES, rule

#: reason code -> callables
TABLE: dict[str, tuple[Any, ...]] = {
    "output": (
        print, warnings.warn, warnings.warn_explicit, warnings.simplefilter, warnings.filterwarnings,
        *(vars(logging.Logger)[name] for name in (
            "debug", "info", "warning", "error", "critical", "exception", "log", "isEnabledFor", "getEffectiveLevel")),
        *(getattr(logging, name) for name in ("debug", "info", "warning", "error", "critical", "exception", "log")),
        sys.stdout.write, sys.stderr.write, io.TextIOWrapper.write, io.StringIO.write,
    ),
    "environment": (
        open, input, time.sleep, time.time, time.time_ns, time.perf_counter, time.perf_counter_ns, time.monotonic,
        time.process_time, os.getcwd, os.listdir, os.stat, os.getpid, os.urandom, os.putenv, os.unsetenv,
        sys.getrecursionlimit, sys.setrecursionlimit, gc.collect, gc.disable, gc.enable,
    ),
    "thread": (threading.Thread.start, threading.Thread.join, type(threading.RLock()).acquire),
    "locals-inspection": (globals, locals, eval, exec, dir, sys._getframe, sys.exc_info, breakpoint),
    "caller-inspection": (
        *(f for f in (getattr(sys, "_getframemodulename", None),) if f is not None),
        collections.namedtuple, typing.NamedTuple, dataclasses.make_dataclass, enum.EnumType._create_,
    ),
    "class-body": (builtins.__build_class__,),
    "import": (__import__,),
    "weakref": (weakref.ref, weakref.proxy),
    "construct-unknown": (memoryview, bytearray),
}  # fmt: skip


def refuse(code: str, name: str) -> Any:
    """A rule that leaves the call to the interpreter."""

    def leave(m: Any, *args: Value, **kwargs: Value) -> Value:
        raise Break(code, name)

    return leave


for _code, _callables in TABLE.items():
    for _callable in _callables:
        if id(_callable) not in RULES:
            rule(_callable)(refuse(_code, getattr(_callable, "__qualname__", type(_callable).__name__)))
