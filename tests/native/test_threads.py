"""Eight threads at once: entries, memos and guards that run Python code are shared."""

import sys
import threading

from native.extension import SLOWDOWN, C, compiled, never, node, point, root, take

THREADS = 8


def run_together(body):
    """Run `body(thread number)` in all threads; the first exception is raised here."""
    errors = []
    barrier = threading.Barrier(THREADS)

    def run(number):
        barrier.wait()
        try:
            body(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]


def test_entries_are_added_and_removed_while_others_call():
    def identity(x):
        return x

    function = compiled(identity, lambda x: ("entry", x))

    def body(number):
        for i in range(400 // SLOWDOWN):
            entry = C.Entry(take(1), lambda x: ("entry", x))
            function.point.add(entry)
            assert function((number, i)) == ("entry", (number, i))
            function.point.remove(entry)

    run_together(body)
    assert len(function.point.entries) == 1


def test_guards_that_run_python_code_are_walked_by_several_threads():
    class Config:
        pass

    config = Config()
    config.values = {"a": [1, 2, 3]}
    spin = lambda obj: sum(range(50)) or True  # gives other threads a chance in the middle of a walk
    values = node("key", "values", node("key", "a", checks=(("len", 3), ("true", spin)), handed=1))
    attribute = node("attr", "values", checks=(("true", spin),))
    tree = root(node("const", config, node("dict", None, values), attribute), node("arg", 0, handed=0))
    where = C.Point(None, never, code=(lambda x: None).__code__)
    where.add(C.Entry(C.Guards(tree, 2), lambda x, found: (x, found)))
    function = C.Compiled(lambda x: None, where)

    def body(number):
        for i in range(200 // SLOWDOWN):
            if number == 0:
                config.values = {"a": [number, i, 3]}
            thread, found = function(number)
            assert thread == number and len(found) == 3

    run_together(body)


def test_disable_depth_belongs_to_the_thread():
    function = compiled(lambda x: "plain", lambda x: "entry")

    def body(number):
        for _ in range(100 // SLOWDOWN):
            if number % 2:
                C.disable_depth(1)
                assert function(0) == "plain"
                C.disable_depth(-1)
            else:
                assert function(0) == "entry"

    run_together(body)


def test_continuations_in_all_threads():
    def step(total, n):
        return total if n == 0 else C.resume([(loop, [total + n])], n - 1)

    loop = point(step)
    function = compiled(lambda x: None, lambda x: C.resume([(loop, [0])], x))

    def body(number):
        for _ in range(20):
            assert function(100 + number) == sum(range(101 + number))

    run_together(body)
