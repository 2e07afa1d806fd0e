"""Traceback lines for frames that ran only symbolically."""

from __future__ import annotations

import functools
import types
from types import CodeType


@functools.lru_cache(maxsize=4096)
def raiser(name: str, qualname: str, filename: str, line: int) -> types.FunctionType:
    """A function that raises its argument and whose frame looks like the user's, at `line`."""
    source = "\n" * (line - 1) + "def f(e): raise e"
    namespace: dict = {}
    exec(compile(source, filename, "exec"), namespace)
    function = namespace["f"]
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=qualname)
    return function


def add_line(exc: BaseException, code: CodeType, line: int) -> None:
    """Put a frame of `code` at `line` in front of the traceback of `exc`."""
    context, cause, suppress = exc.__context__, exc.__cause__, exc.__suppress_context__
    try:
        raiser(code.co_name, code.co_qualname, code.co_filename, max(line, 1))(exc)
    except BaseException as caught:
        trace = caught.__traceback__
        exc.__traceback__ = trace.tb_next if trace is not None else None
    exc.__context__, exc.__cause__, exc.__suppress_context__ = context, cause, suppress
