"""The table of small programs that use the standard library: a name to (function, arguments of each call).

Each takes a tensor first. Those in `BREAKS` can't be one graph; all others must be.
"""

PROGRAMS = {}
BREAKS = set()


def program(*calls, breaks=False):
    """Register a function with the arguments (after the tensor) of each call to make."""

    def register(function):
        PROGRAMS[function.__name__] = (function, calls or ((),))
        if breaks:
            BREAKS.add(function.__name__)
        return function

    return register


def attempt(function, *args, **kwargs):
    """What a call gives, or its exception's type and text."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)
