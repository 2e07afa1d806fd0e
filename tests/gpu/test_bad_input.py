"""What this backend can't compile: an error that names the remedy, or ATen with a message; never a wrong result."""

import os
import subprocess
import sys

import pytest
import torch

import backend_gpu
import dynacore


def in_a_process(code, **environment):
    """What a fresh interpreter prints. None removes a variable."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    variables = {key: value for key, value in variables.items() if value is not None}
    return subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True).stdout


ASK = """
import torch, dynacore, backend_gpu
print(backend_gpu.available(), "gpu" in dynacore.list_backends())
try:
    dynacore.compile(torch.sin, backend="gpu")(torch.ones(2))
except dynacore.DynacoreError as error:
    print(error)
"""


def test_cpu_tensors_without_the_interpreter_are_an_error_that_names_it():
    out = in_a_process(ASK, TRITON_INTERPRET=None)
    assert "False True" in out and "TRITON_INTERPRET=1" in out


@pytest.mark.without_triton
def test_without_triton_the_error_says_what_to_install():
    out = in_a_process("import sys; sys.modules['triton'] = None" + ASK, TRITON_INTERPRET="1")
    assert "False True" in out and "install triton" in out


def test_modes_and_options_are_checked():
    with pytest.raises(dynacore.DynacoreError, match="did you mean 'max-autotune'"):
        dynacore.compile(torch.sin, backend="gpu", mode="max-autotun")(torch.ones(2))
    with pytest.raises(dynacore.DynacoreError, match="takes no options"):
        dynacore.compile(torch.sin, backend="gpu", options={"tile": 3})(torch.ones(2))
    with pytest.raises(dynacore.DynacoreError, match="no setting 'strickt'; did you mean 'strict'"):
        backend_gpu.config.strickt = True
    with pytest.raises(dynacore.DynacoreError, match="takes bool"):
        backend_gpu.config.strict = 1


class Odd(torch.Tensor):
    pass


UNUSUAL = {
    "sparse": lambda: torch.eye(3).to_sparse(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    "class Odd": lambda: torch.ones(3).as_subclass(Odd),
}


@pytest.mark.parametrize("what", UNUSUAL)
def test_unusual_tensors_go_to_aten(what):
    graph = torch.fx.symbolic_trace(lambda x: (torch.neg(x),))
    value = UNUSUAL[what]()
    kind = {"sparse": "layout"}.get(what, what)
    with pytest.raises(backend_gpu.BackendUnavailable, match=kind):
        backend_gpu.compile(graph, [value])
    if what == "quantized":
        return  # eager has no negation of it
    with backend_gpu.config.patch(strict=False):
        (got,) = backend_gpu.compile(graph, [value])(value)
    assert type(got) is type(torch.neg(value))


def test_complex_numbers_go_through_aten_and_are_counted():
    x = torch.randn(4, dtype=torch.complex64)
    backend_gpu.clear_reports()
    got = dynacore.compile(lambda x: (x * 2).abs() + 1, backend="gpu", fullgraph=True)(x)
    torch.testing.assert_close(got, (x * 2).abs() + 1)
    (report,) = backend_gpu.reports()
    assert {name for name, _ in report.aten_calls} == {"aten.mul", "aten.abs"} and report.kernels == 1


def test_a_position_out_of_range_does_not_read_other_memory():
    compiled = dynacore.compile(lambda x, i: x[i] * 2, backend="gpu")
    with pytest.raises(Exception):
        compiled(torch.ones(3), torch.tensor([0, 7]))


def test_a_size_that_depends_on_data_is_left_to_aten():
    x = torch.tensor([1.0, 0.0, 2.0])
    with backend_gpu.config.patch(strict=False):
        got = dynacore.compile(lambda x: x.nonzero().sum() + 1, backend="gpu")(x)
    assert int(got) == 3
