"""The API as captured code sees it, and what capture says to the user."""

import pytest
import torch

import dynacore
from dynacore import _C, FullGraphError, RecompileLimitError

X = torch.arange(3.0)


class Graphs(list):
    """A backend that keeps its graphs."""

    def __call__(self, gm, inputs):
        self.append(gm)
        return gm.forward

    def ops(self):
        return [sum(node.op.startswith("call") for node in gm.graph.nodes) for gm in self]


@pytest.fixture
def graphs():
    return Graphs()


def test_is_compiling(graphs):
    def f(x):
        if dynacore.is_compiling() and torch.compiler.is_compiling() and not torch.jit.is_scripting():
            return x + 1
        return x - 1

    assert torch.equal(dynacore.compile(f, backend=graphs, fullgraph=True)(X), X + 1)
    assert torch.equal(f(X), X - 1)


def test_graph_break(graphs):
    def f(x):
        y = x + 1
        dynacore.graph_break()
        return y * 2

    assert torch.equal(dynacore.compile(f, backend=graphs)(X), f(X))
    assert graphs.ops() == [1, 1]


def test_a_disabled_function_runs_for_real_and_breaks_once(graphs):
    ran = []

    @dynacore.disable
    def off(x):
        ran.append(dynacore.is_compiling())
        return x + 1

    def f(x):
        return off(x * 2) * 3

    compiled = dynacore.compile(f, backend=graphs)
    for _ in range(2):
        assert torch.equal(compiled(X), (X * 2 + 1) * 3)
    assert ran == [False, False]
    assert graphs.ops() == [1, 1]


def test_torchs_own_disable_counts(graphs):
    @torch.compiler.disable
    def off(x):
        return x + 1

    compiled = dynacore.compile(lambda x: off(x * 2) * 3, backend=graphs)
    assert torch.equal(compiled(X), (X * 2 + 1) * 3)
    assert graphs.ops() == [1, 1]


def test_disable_as_context_in_captured_code(graphs):
    inner = dynacore.compile(lambda x: x * 2, backend=graphs)

    def f(x):
        x = x + 1
        with dynacore.disable():
            x = inner(x)
        return x - 1

    compiled = dynacore.compile(f, backend=graphs)
    for _ in range(2):
        assert torch.equal(compiled(X), (X + 1) * 2 - 1)
    assert _C.disable_depth(0) == 0


def test_a_compiled_module_in_captured_code_is_captured(graphs):
    net = torch.nn.Linear(3, 3)
    inner = dynacore.compile(net, backend=graphs)
    outer = dynacore.compile(lambda x: inner(x + 1) * 2, backend=graphs, fullgraph=True)
    torch.testing.assert_close(outer(X), net(X + 1) * 2)
    assert len(graphs) == 1


def test_allow_in_graph_is_one_node(graphs):
    @dynacore.allow_in_graph
    def opaque(x, y):
        return x.numpy().sum() * y

    def f(x):
        return opaque(x + 1, x) * 2

    compiled = dynacore.compile(f, backend=graphs, fullgraph=True)
    torch.testing.assert_close(compiled(X), f(X))
    assert graphs.ops() == [3]
    assert opaque in [node.target for node in graphs[0].graph.nodes]


def size(x):
    return x.sum()


def softmax(x, dim):
    return x.sum(dim)


def sin(x):
    LOG.append("called")
    return x.sin()


LOG = []


@pytest.mark.parametrize(("leaf", "args"), [(size, ()), (softmax, (0,)), (sin, ())])
def test_a_leaf_named_like_an_operation_of_torch_is_what_it_is(graphs, leaf, args):
    dynacore.allow_in_graph(leaf)

    def f(x):
        leaf(x, *args)
        y = leaf(x + 1, *args)
        return y * y.dim()

    compiled = dynacore.compile(f, backend=graphs, fullgraph=True)
    x = torch.ones(3, 4)
    LOG.clear()
    ours, ours_said = compiled(x), LOG[-2:]
    LOG.clear()
    torch.testing.assert_close(ours, f(x))
    assert ours_said == LOG


def test_an_operation_of_the_users_named_like_one_of_torch(graphs):
    @torch.library.custom_op("dynacore_tests::relu", mutates_args=())
    def relu(x: torch.Tensor) -> torch.Tensor:
        return x.sum(0)

    relu.register_fake(lambda x: x.new_empty(x.shape[1:]))
    operation = torch.ops.dynacore_tests.relu

    def f(x):
        y = operation(x + 1)
        return y * y.dim()

    compiled = dynacore.compile(f, backend=graphs, fullgraph=True)
    x = torch.ones(3, 4)
    torch.testing.assert_close(compiled(x), f(x))


def value_branch(x):
    y = x + 1
    if y.sum() > 0:  # the line that breaks
        return y * 2
    return y


LINE = value_branch.__code__.co_firstlineno + 2


def test_the_full_graph_error_names_line_reason_and_way_out(graphs):
    f = dynacore.compile(value_branch, backend=graphs, fullgraph=True)
    for _ in range(2):
        with pytest.raises(FullGraphError) as caught:
            f(X)
    assert not graphs
    (site,) = caught.value.breaks
    assert (site.code, site.file, site.line, site.function) == ("tensor-truth", __file__, LINE, "value_branch")
    assert "if y.sum() > 0:  # the line that breaks" in str(caught.value)
    assert "torch.where" in str(caught.value)


def test_each_break_is_logged_once(graphs, caplog):
    with dynacore.config.patch(logs="graph_breaks"):
        for _ in range(3):
            dynacore.compile(value_branch, backend=graphs)(X)
    (record,) = caplog.records
    assert record.name == "dynacore.graph_breaks"
    assert f'File "{__file__}", line {LINE}, in value_branch' in record.message


def test_recompilations_say_what_failed_and_both_values(graphs, caplog):
    f = dynacore.compile(lambda x, mode: x + len(mode), backend=graphs)
    with dynacore.config.patch(logs="recompiles"):
        f(X, "first")
        f(X, "second")
    (record,) = caplog.records
    assert record.name == "dynacore.recompiles"
    assert "'first'" in record.message
    assert "'second'" in record.message
    assert "mode" in record.message


@pytest.mark.parametrize(
    ("artifact", "text"), [("guards", "x: tensor"), ("graph", "add"), ("source", "def "), ("bytecode", "BINARY")]
)
def test_other_artifacts(graphs, caplog, artifact, text):
    with dynacore.config.patch(logs=artifact):
        dynacore.compile(lambda x: x + 1, backend=graphs)(X)
    assert {record.name for record in caplog.records} == {f"dynacore.{artifact}"}
    assert text.lower() in caplog.text.lower()


def test_the_recompile_limit(graphs, caplog):
    def f(x, mode):
        return x + len(mode)

    compiled = dynacore.compile(f, backend=graphs)
    with dynacore.config.patch(recompile_limit=2):
        for n in range(5):
            assert torch.equal(compiled(X, "m" * n), f(X, "m" * n))
    assert len(graphs) == 2
    assert "recompile limit (2) reached" in caplog.text
    assert len(caplog.records) == 1
    strict = dynacore.compile(f, backend=graphs)
    with dynacore.config.patch(recompile_limit=1, fail_on_recompile_limit=True):
        strict(X, "a")
        with pytest.raises(RecompileLimitError, match=r"recompile limit \(1\)"):
            strict(X, "b")


def test_the_recompile_limit_names_the_size_that_the_program_decides_by(graphs, caplog):
    def f(x):
        for n in range(2, 12):
            if x.shape[0] == n:
                return x + n
        return x

    compiled = dynacore.compile(f, backend=graphs)
    with dynacore.config.patch(recompile_limit=5):
        for n in range(2, 12):
            assert torch.equal(compiled(torch.ones(n)), f(torch.ones(n)))
    (said,) = [record.getMessage() for record in caplog.records if "recompile limit" in record.getMessage()]
    assert "`x.shape[0]` kept changing: " in said
    assert "The program decides by it" in said


def test_a_cut_at_every_instruction_changes_nothing(graphs):
    def f(x):
        total = [x * i for i in range(3)]
        return sum(total) + 1

    with dynacore.config.patch(testing_cut=lambda code, index: True, verify=True):
        assert torch.equal(dynacore.compile(f, backend=graphs)(X), f(X))


def test_errors_of_the_program_look_as_in_eager(graphs):
    def f(x):
        y = x + 1
        return y @ torch.ones(7)

    compiled = dynacore.compile(f, backend=graphs)
    with pytest.raises(RuntimeError) as plain:
        f(X)
    for _ in range(2):
        with pytest.raises(RuntimeError) as ours:
            compiled(X)
        assert (type(ours.value), str(ours.value)) == (type(plain.value), str(plain.value))
        places = [(entry.frame.code.path, entry.lineno) for entry in ours.traceback[1:]]
        assert places == [(entry.frame.code.path, entry.lineno) for entry in plain.traceback[1:]]
