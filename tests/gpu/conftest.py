"""Tests of the GPU backend: numbers under Triton's interpreter, code by Triton's compiler. None of them needs a GPU.

They are skipped where Triton isn't installed.
"""

import importlib.util
import os

import pytest

HAS_TRITON = importlib.util.find_spec("triton") is not None


def pytest_collection_modifyitems(items):
    for item in items:
        if "gpu" not in item.path.parent.name:
            continue
        if not HAS_TRITON and "without_triton" not in item.keywords:
            item.add_marker(pytest.mark.skip(reason="Triton isn't installed"))


@pytest.fixture(autouse=True)
def strict_backend(tmp_path_factory):
    """Checkers on, every fallback an error, and a cache of this run's own."""
    import backend_gpu

    backend_gpu.clear_reports()
    cache = str(tmp_path_factory.getbasetemp() / "backend_gpu_cache")
    with backend_gpu.config.patch(check=True, strict=True, cache_dir=cache):
        yield
    backend_gpu.clear_reports()


@pytest.fixture(scope="session")
def compiler(tmp_path_factory):
    """Compiles kernels for named targets. The workers of a run share what was compiled."""
    from gpu.kernels import Compiler

    shared = tmp_path_factory.getbasetemp()
    made = Compiler((shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / "backend_gpu_kernels")
    yield made
    made.workers.stop()


@pytest.fixture(autouse=HAS_TRITON)
def every_kernel_compiles(strict_backend, compiler):
    """Whatever kernels a test generates compile for a named target, too; one that doesn't fails the test."""
    from gpu.kernels import kernels_of

    from backend_gpu import alternatives, pipeline

    found = []
    original = pipeline.schedule

    def kept(graph, **options):
        plan = original(graph, **options)
        found.extend(kernels_of(plan))
        return plan

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "schedule", kept)
        patch.setattr(alternatives, "schedule", kept)
        yield
    compiler.compile_new(found)


@pytest.fixture
def plans(monkeypatch):
    """The schedules made in a test, in order."""
    from backend_gpu import pipeline

    found = []
    original = pipeline.schedule

    def kept(graph, **options):
        found.append(original(graph, **options))
        return found[-1]

    monkeypatch.setattr(pipeline, "schedule", kept)
    return found
