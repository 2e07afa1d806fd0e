"""Models of Hugging Face's transformers: equal to eager in results, gradients, buffers and random numbers."""

import pytest
import torch
from capture.compare import assert_like_eager, number_of_operations

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()

from capture.transformer_models import ONE_GRAPH, SEVERAL_GRAPHS  # noqa: E402

MODES = pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])


@MODES
@pytest.mark.parametrize("name", ONE_GRAPH)
def test_one_graph(name, training):
    torch.manual_seed(0)
    module, args, kwargs = ONE_GRAPH[name]()
    graphs = assert_like_eager(module, args, kwargs, training=training, fullgraph=True)
    assert len(graphs) == 1
    assert number_of_operations(graphs) > 10


@MODES
@pytest.mark.parametrize("name", SEVERAL_GRAPHS)
def test_several_graphs(name, training):
    torch.manual_seed(0)
    module, args, kwargs = SEVERAL_GRAPHS[name]()
    graphs = assert_like_eager(module, args, kwargs, training=training, fullgraph=False)
    assert number_of_operations(graphs) > 20
