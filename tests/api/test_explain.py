"""`dynacore.explain`: a report of what capture made of one call."""

import functools
import types

import pytest
import torch

import dynacore
from dynacore import stats
from dynacore.explain import Explanation
from dynacore.reasons import Break, BreakSite
from dynacore.stats import Record

X = torch.arange(3.0)


def breaks_once(x):
    y = x + 1
    dynacore.graph_break()  # the line that breaks
    return y * 2


LINE = breaks_once.__code__.co_firstlineno + 2


def check_one_break(explanation):
    assert torch.equal(explanation.result, breaks_once(X))
    assert (explanation.graph_count, explanation.op_count, explanation.graph_break_count) == (2, 2, 1)
    (site,) = explanation.breaks
    assert (site.file, site.line, site.function, site.code) == (
        __file__,
        LINE,
        "breaks_once",
        "graph-break-requested",
    )
    (cost,) = explanation.break_costs
    assert (cost.entries, cost.continuations, cost.graphs, cost.operations) == (1, 1, 1, 1)
    assert sum(explanation.guards.values()) > 0
    for part in (
        "2 graphs with 2 operations, 1 place where capture breaks",
        f'File "{__file__}", line {LINE}, in breaks_once',
        "dynacore.graph_break()  # the line that breaks",
        "[graph-break-requested]",
        "hint: ",
        "cost: this instruction runs as plain Python; 1 entry behind it, with 1 graph and 1 operation, ",
        "Guards: ",
    ):
        assert part in str(explanation), part


def test_a_function_that_breaks():
    check_one_break(dynacore.explain(breaks_once)(X))


def test_a_function_without_breaks():
    explanation = dynacore.explain(lambda x, y=1: x + y)(X, y=2)
    assert torch.equal(explanation.result, X + 2)
    assert (explanation.graph_count, explanation.op_count, explanation.breaks) == (1, 1, ())
    assert "1 graph with 1 operation, 0 places where capture breaks" in str(explanation)
    assert "Break" not in str(explanation)
    assert "1 graph, 1 operation, 0 breaks" in repr(explanation)


def test_a_compiled_function_is_explained_afresh_with_its_backend():
    graphs = []

    @dynacore.compile(backend=lambda gm, inputs: graphs.append(gm) or gm.forward)
    def f(x):
        return breaks_once(x)

    f(X)
    for _ in range(2):
        graphs.clear()
        explanation = dynacore.explain(f)(X)
        check_one_break(explanation)
        assert len(graphs) == 2
    graphs.clear()
    f(X)
    assert not graphs, "the function itself has lost nothing"


def test_full_graph_functions_are_explained_too():
    f = dynacore.compile(breaks_once, fullgraph=True, backend="eager")
    check_one_break(dynacore.explain(f)(X))
    with pytest.raises(dynacore.FullGraphError) as caught:
        f(X)
    (site,) = caught.value.breaks
    assert (site.line, site.code) == (LINE, "graph-break-requested")


def test_modules_methods_and_objects():
    class Net(torch.nn.Module):
        def forward(self, x):
            return breaks_once(x)

        def method(self, x):
            return breaks_once(x)

    net = Net()
    for target in (net, dynacore.compile(net, backend="eager"), net.method, dynacore.compile(net.method)):
        check_one_break(dynacore.explain(target)(X))


def test_it_really_runs_once():
    seen = []
    dynacore.explain(lambda x: seen.append(x))(X)
    assert len(seen) == 1


def test_errors_of_the_program_pass():
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        dynacore.explain(f)(X)
    assert not stats.collecting()


def test_disabled_functions_are_said_to_be_disabled():
    explanation = dynacore.explain(dynacore.disable(breaks_once))(X)
    assert explanation.graph_count == 0
    assert [site.code for site in explanation.breaks] == ["call-disabled"]


# --- the report itself --------------------------------------------------------------------------------------------


def record(at_start, stop=None, graph=object(), n_ops=2, line=1):
    return Record(breaks_once.__code__, line, at_start, graph, n_ops, {"type": 3, "is": 1}, stop, 0.01)


def test_costs_are_summed_by_place():
    site = BreakSite.of(Break("tensor-truth"), __file__, LINE, "f")
    records = [
        record(True, site),
        record(False, site, line=5),
        record(False, site, graph=None, n_ops=0),
        record(True),
    ]
    explanation = Explanation("f", records, None)
    (cost,) = explanation.break_costs
    assert (cost.entries, cost.continuations, cost.graphs, cost.operations, cost.guards) == (3, 2, 1, 2, 8)
    assert (explanation.graph_count, explanation.op_count, explanation.guards) == (3, 6, {"type": 12, "is": 4})
    text = str(explanation)
    assert "captured in 40 ms" in text
    assert "2. breaks_once from line 5: 2 operations, 4 guards, breaks at line" in text
    assert "3. breaks_once from line 1: no graph" in text
    assert "Guards: 16 (12 type, 4 is)" in text


def test_collectors_nest_and_counters_count():
    site = BreakSite.of(Break("tensor-truth"), __file__, LINE, "f")
    with stats.collect() as outer:
        stats.add(record(True))
        with stats.collect() as inner:
            stats.add(record(True, site))
    stats.add(record(True))
    assert (len(outer), len(inner)) == (2, 1)
    assert stats.counters["entries"] == stats.counters["graphs"] == 3
    assert stats.counters["operations"] == 6
    assert stats.counters["breaks"] == stats.counters["break:tensor-truth"] == 1


class Named(torch.nn.Module):
    def forward(self, tokens, *others, scale):
        return tokens * scale if tokens.shape[0] > 2 and others[0].shape[0] > 2 else tokens


def test_sizes_are_those_of_the_parameters_of_forward():
    compiled = dynacore.compile(Named(), backend="eager", dynamic=True)
    report = str(dynacore.explain(compiled)(torch.ones(3, 4), torch.ones(3), scale=torch.ones(4)))
    assert "tokens.shape[0] > 2" in report
    assert "scale.shape[0] >= 2" in report
    assert "args[1].shape[0] > 2" in report  # it has no name of its own
    report = str(dynacore.explain(dynacore.compile(Named().forward, backend="eager", dynamic=True))(
        torch.ones(3, 4), torch.ones(3), scale=torch.ones(4)))  # fmt: skip
    assert "tokens.shape[0] > 2" in report


def test_methods_and_partials_are_explained_as_they_were_compiled():
    def longer(n, x):
        return x * 2 if x.shape[0] > n else x

    for target in (types.MethodType(longer, 2), functools.partial(longer, 2)):
        compiled = dynacore.compile(target, backend="eager", dynamic=True)
        assert "x.shape[0] > 2" in str(dynacore.explain(compiled)(X))
