"""Modules written by hand, against eager: results, gradients, buffers, random numbers; in one graph or several."""

import pytest
import torch
from capture.compare import assert_like_eager, number_of_operations
from capture.layers import ONE_GRAPH, SEVERAL_GRAPHS

MODES = pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])


@MODES
@pytest.mark.parametrize("fullgraph", [True, False], ids=["fullgraph", "breaks_allowed"])
@pytest.mark.parametrize("name", ONE_GRAPH)
def test_one_graph(name, training, fullgraph):
    torch.manual_seed(0)
    module, args, kwargs = ONE_GRAPH[name]()
    graphs = assert_like_eager(module, args, kwargs, training=training, fullgraph=fullgraph)
    # A second one where the module's own state differs from call to call.
    assert len(graphs) <= 2
    assert number_of_operations(graphs) > 0


@MODES
@pytest.mark.parametrize("name", SEVERAL_GRAPHS)
def test_several_graphs(name, training):
    torch.manual_seed(0)
    module, args, kwargs = SEVERAL_GRAPHS[name]()
    graphs = assert_like_eager(module, args, kwargs, training=training, fullgraph=False, calls=3)
    assert number_of_operations(graphs) > 0
