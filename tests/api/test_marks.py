"""disable, graph_break, is_compiling, allow_in_graph, mark_dynamic and mark_static as plain Python sees them."""

import inspect
import threading

import pytest
import torch

import dynacore
from dynacore import _C, ArgumentError, marks


def test_disable_as_function_decorator_and_with_arguments():
    def f(x, y=2):
        """Doc."""
        return x + y, _C.disable_depth(0)

    for g in (dynacore.disable(f), dynacore.disable()(f), dynacore.disable(reason="slow")(f)):
        assert g(1) == (3, 1)
        assert _C.disable_depth(0) == 0
        assert (g.__name__, g.__doc__, g.__wrapped__) == ("f", "Doc.", f)
        assert inspect.signature(g) == inspect.signature(f)
        assert marks.is_disabled(g)
    assert not marks.is_disabled(f)
    assert marks.disable_reason(dynacore.disable(f, reason="slow")) == "slow"
    assert dynacore.disable(f, recursive=False)(1) == (3, 0)


def test_the_depth_is_restored_after_an_exception():
    @dynacore.disable
    def f():
        raise KeyError(_C.disable_depth(0))

    with pytest.raises(KeyError, match="1"):
        f()
    assert _C.disable_depth(0) == 0


def test_disable_as_context_is_for_this_thread():
    depths = []
    with dynacore.disable():
        depths.append(_C.disable_depth(0))
        thread = threading.Thread(target=lambda: depths.append(_C.disable_depth(0)))
        thread.start()
        thread.join()
    assert [*depths, _C.disable_depth(0)] == [1, 0, 0]


def test_a_wrapper_around_a_disabled_function_is_not_disabled_itself():
    import functools

    inner = dynacore.disable(lambda: 1)

    @functools.wraps(inner)
    def outer():
        return inner()

    assert not marks.is_disabled(outer)


def test_disabling_twice_changes_nothing():
    f = dynacore.disable(lambda: _C.disable_depth(0))
    assert dynacore.disable(f) is f
    assert f() == 1


class Methods:
    @dynacore.disable
    def plain(self):
        return self, _C.disable_depth(0)

    @dynacore.disable
    @staticmethod
    def static():
        return _C.disable_depth(0)

    @dynacore.disable
    @classmethod
    def of_class(cls):
        return cls, _C.disable_depth(0)


def test_disabled_methods():
    methods = Methods()
    assert methods.plain() == (methods, 1)
    assert Methods.static() == methods.static() == 1
    assert Methods.of_class() == methods.of_class() == (Methods, 1)
    assert dynacore.disable(Methods.__dict__["plain"].__wrapped__.__get__(methods))() == (methods, 1)


def test_disabled_class_and_module():
    class Net(torch.nn.Module):
        def forward(self, x):
            return x, _C.disable_depth(0)

    net = Net()
    off = dynacore.disable(net)
    assert off(1) == (1, 1)
    assert net(1) == (1, 0)
    assert isinstance(off, Net)
    assert dynacore.disable(Net) is Net
    assert net(1) == (1, 1)


def test_what_cannot_be_disabled():
    with pytest.raises(ArgumentError, match="fn must be callable, not 3"):
        dynacore.disable(3)


def test_a_compiled_function_in_a_disabled_one_runs_as_it_is():
    graphs = []

    @dynacore.compile(backend=lambda gm, inputs: graphs.append(gm) or gm.forward)
    def f(x):
        return x + 1

    assert dynacore.disable(f)(torch.zeros(2)).tolist() == [1, 1]
    with dynacore.disable():
        f(torch.zeros(2))
    assert not graphs
    f(torch.zeros(2))
    assert len(graphs) == 1


def test_markers_do_nothing_in_plain_python():
    assert dynacore.graph_break() is None
    assert dynacore.graph_break("text") is None
    assert dynacore.is_compiling() is False


def test_allow_in_graph():
    def f():
        pass

    def g():
        pass

    assert dynacore.allow_in_graph(f) is f
    assert dynacore.allow_in_graph([g]) == [g]
    assert marks.is_allowed_in_graph(f)
    assert marks.is_allowed_in_graph(g)
    assert not marks.is_allowed_in_graph(lambda: 1)
    assert not marks.is_allowed_in_graph([])
    with pytest.raises(ArgumentError, match="fn must be callable, not 3"):
        dynacore.allow_in_graph(3)


def test_mark_dynamic_and_static():
    x = torch.ones(4, 5, 6)
    dynacore.mark_dynamic(x, 0)
    dynacore.mark_dynamic(x, (1, -1), min=2, max=64)
    assert getattr(x, marks.DYNAMIC_ATTRIBUTE) == {0: (None, None), 1: (2, 64), 2: (2, 64)}
    dynacore.mark_static(x, 1)
    assert getattr(x, marks.DYNAMIC_ATTRIBUTE) == {0: (None, None), 2: (2, 64)}
    assert getattr(x, marks.STATIC_ATTRIBUTE) == {1}
    dynacore.mark_dynamic(x, 1)
    assert getattr(x, marks.STATIC_ATTRIBUTE) == set()
    dynacore.mark_static(x)
    assert getattr(x, marks.STATIC_ATTRIBUTE) == {0, 1, 2}
    assert getattr(x, marks.DYNAMIC_ATTRIBUTE) == {}


@pytest.mark.parametrize(
    ("arguments", "keywords", "text"),
    [
        ((3,), {}, "no dimension 3 in a tensor with 2 dimensions"),
        ((-3,), {}, "no dimension -3"),
        (("0",), {}, "no dimension '0'"),
        ((True,), {}, "no dimension True"),
        ((0,), {"min": 5}, "dimension 0 has size 4, outside min=5"),
        ((0,), {"max": 3}, "outside min=None, max=3"),
        ((0,), {"min": 8, "max": 3}, "min=8 is above max=3"),
        ((0,), {"min": -1}, "min must be an integer of 0 or more, not -1"),
    ],
)
def test_wrong_marks_leave_the_tensor_as_it_was(arguments, keywords, text):
    x = torch.ones(4, 5)
    with pytest.raises(ArgumentError, match=text):
        dynacore.mark_dynamic(x, *arguments, **keywords)
    assert not vars(x)


def test_marks_are_for_tensors():
    with pytest.raises(ArgumentError, match="t must be a tensor, not 3"):
        dynacore.mark_dynamic(3, 0)
    with pytest.raises(ArgumentError, match="t must be a tensor, not 3"):
        dynacore.mark_static(3)
