"""What lies between a kernel's source and its launch: the cache, and kernels that don't compile."""

import os
import subprocess
import sys

import pytest
import torch
from gpu.helpers import run
from gpu.programs import ONE_KERNEL, tensors

import backend_gpu
import dynacore
from backend_gpu.runtime import cache


def test_a_damaged_entry_is_made_anew(tmp_path):
    with backend_gpu.config.patch(cache_dir=str(tmp_path)):
        path = cache.keep("kernel.py", b"x = 1\n")
        assert cache.read("kernel.py") == b"x = 1\n"
        path.write_bytes(path.read_bytes()[:-1] + b"!")
        assert cache.read("kernel.py") is None
        assert cache.keep("kernel.py", b"x = 1\n").exists() and cache.read("kernel.py") == b"x = 1\n"


def test_processes_that_write_the_same_entry_at_once_leave_it_whole(tmp_path):
    code = (
        "import sys; from backend_gpu.runtime import cache\n"
        "for n in range(200):\n"
        "    cache.write('entry', b'a' * 1000)\n"
        "    assert cache.read('entry') == b'a' * 1000\n"
    )
    environment = {**os.environ, "BACKEND_GPU_CACHE": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    running = [subprocess.Popen([sys.executable, "-c", code], env=environment) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert os.listdir(tmp_path) == ["entry"]


def test_a_cache_that_can_not_be_written_is_replaced_with_a_message(tmp_path, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with backend_gpu.config.patch(cache_dir=str(blocked)):
        assert cache.folder() != blocked
        run(ONE_KERNEL["gelu"][0], *tensors((3, 5)))


def test_a_kernel_that_does_not_compile_leaves_its_graph_to_aten(monkeypatch):
    from backend_gpu.runtime.device import Interpreter

    monkeypatch.setattr(Interpreter, "warm", lambda self, sources: [backend_gpu.CompileFailure("kernel k: refused")])
    x = torch.randn(3)
    with pytest.raises(dynacore.DynacoreError, match="refused"):
        dynacore.compile(torch.sin, backend="gpu")(x)
    dynacore.reset()
    with backend_gpu.config.patch(strict=False):
        backend_gpu.clear_reports()
        assert torch.equal(dynacore.compile(torch.sin, backend="gpu")(x), torch.sin(x))
    assert "refused" in backend_gpu.reports()[0].eager


def test_modes_that_record_say_that_only_a_gpu_does():
    x = torch.randn(3)
    for mode in ("reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"):
        backend_gpu.clear_reports()
        dynacore.reset()
        assert torch.equal(dynacore.compile(torch.neg, backend="gpu", mode=mode)(x), -x)
        (report,) = backend_gpu.reports()
        assert (report.recording is None) == (mode == "max-autotune-no-cudagraphs")
        if report.recording is not None:
            assert "only a GPU records" in report.recording.reasons
