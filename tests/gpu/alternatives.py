"""A clock for tests: alternatives are as fast as the test says, so that each can be made the one that runs."""

import contextlib
from unittest import mock

from backend_gpu.runtime.choosing import Chooser
from backend_gpu.runtime.device import Interpreter


class Clock:
    """The alternative whose name `wanted` accepts is the fastest; `measured` lists what was timed."""

    def __init__(self, wanted, calls=False):
        self.wanted, self.calls, self.measured, self.is_ready = wanted, calls, [], True

    def ready(self):
        return self.is_ready

    def seconds(self, name, call):
        self.measured.append(name)
        if self.calls:
            call()
        return 1.0 if self.wanted(name) else 2.0


@contextlib.contextmanager
def fastest(wanted, calls=False):
    """Measure with such a clock inside the block; what other tests had measured doesn't count."""
    clock = Clock(wanted if callable(wanted) else lambda name: name.startswith(wanted), calls)
    with mock.patch.object(Interpreter, "clock", clock), mock.patch.object(Chooser, "_noted", lambda *_: None):
        yield clock


def template(name):
    """Whether an alternative of a product is a template's tile."""
    return not name.startswith("ATen")
