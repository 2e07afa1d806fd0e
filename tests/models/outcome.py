"""Running something and remembering all that can be seen of it."""

import copy

from models.corpus import fresh_log


def describe(exception):
    """Type, text and the exceptions that it hangs on."""
    if exception is None:
        return None
    inner = [describe(e) for e in getattr(exception, "exceptions", ())]
    return (
        type(exception),
        str(exception),
        inner,
        describe(exception.__cause__),
        describe(exception.__context__),
        exception.__suppress_context__,
    )


def outcome(run):
    """(kind, what was returned or raised, log) of run(), and the exception itself."""
    with fresh_log() as said:
        try:
            result = "returned", repr(run()), said
        except Exception as exception:
            return ("raised", describe(exception), said), exception
    return result, None


def lines_in(exception, code_name):
    """Of the traceback's entries for frames of that name: the line, and the one at which the frame ended."""
    lines = []
    traceback = exception and exception.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_name == code_name:
            lines.append((traceback.tb_lineno, traceback.tb_frame.f_lineno))
        traceback = traceback.tb_next
    return lines


def fresh(arguments):
    """Arguments that no earlier run has changed."""
    return copy.deepcopy(arguments)
