"""backend_gpu promises nothing that it can't do."""

import importlib.metadata

import pytest
import torch

import backend_gpu
import dynacore


def test_it_says_that_it_is_not_available():
    assert backend_gpu.available() is False


def test_compiling_with_it_is_an_error_that_names_the_remedy():
    compiled = dynacore.compile(lambda x: x + 1, backend=backend_gpu.compile)
    with pytest.raises(dynacore.DynacoreError, match="inductor"):
        compiled(torch.ones(2))


def test_its_error_is_one_of_dynacore():
    with pytest.raises(backend_gpu.BackendUnavailable) as caught:
        backend_gpu.compile(torch.fx.symbolic_trace(torch.nn.ReLU()), [torch.ones(2)])
    assert isinstance(caught.value, dynacore.DynacoreError)


def test_it_registers_no_backend():
    points = importlib.metadata.entry_points(group="torch_dynamo_backends")
    assert not [point for point in points if point.value.startswith("backend_gpu")]
    assert "gpu" not in dynacore.list_backends()
