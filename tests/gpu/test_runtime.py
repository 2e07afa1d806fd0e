"""What lies between a kernel's source and its launch: the cache, measuring, and kernels that don't compile."""

import os
import subprocess
import sys

import pytest
import torch
from gpu.helpers import run
from gpu.programs import ONE_KERNEL, tensors

import backend_gpu
import dynacore
from backend_gpu.render.tiles import Tile
from backend_gpu.runtime import autotune, cache


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


class Clock:
    """Kernels that take as long as their tile says, and write what they are given to."""

    def __init__(self, seconds):
        self.seconds, self.measured, self.last = seconds, [], None

    def launcher(self, tile):
        def launch(x, out):
            self.last = tile
            if self.seconds[tile] is None:
                raise RuntimeError("too many registers")
            out.add_(x)

        return launch

    def time(self, call):
        call()
        self.measured.append(self.last)
        return self.seconds[self.last]


def test_the_fastest_tile_is_taken_noted_and_what_was_written_is_put_back(tmp_path):
    tiles = [Tile(128), Tile(256), Tile(512), Tile(1024)]
    clock = Clock(dict(zip(tiles, [3.0, 1.0, None, 2.0])))
    x, out = torch.ones(4), torch.full((4,), 5.0)
    with backend_gpu.config.patch(cache_dir=str(tmp_path)):
        for _ in range(2):
            found = autotune.best("key", tiles, clock.launcher, [x, out], [1], clock.time)
            assert found == Tile(256) and torch.equal(out, torch.full((4,), 5.0))
        assert len(clock.measured) == 3  # the second time it was read from the cache


def test_without_memory_to_measure_the_usual_tile_is_taken(tmp_path):
    class Full:
        def clone(self):
            raise torch.OutOfMemoryError("no")

    with backend_gpu.config.patch(cache_dir=str(tmp_path)):
        assert autotune.best("other", [Tile(1), Tile(2)], None, [Full()], [0], None) == Tile(1)


def test_candidates_start_with_the_usual_tile_and_differ():
    from backend_gpu.ir.loops import Loops

    for form, persistent in (("pointwise", True), ("rows", True), ("rows", False)):
        tile = Tile(1, 2048, 8, 1, persistent)
        found = autotune.candidates(Loops("k", form, 64, 2048, [], [], [], persistent), tile)
        assert found[0] == tile and len(set(found)) == len(found) > 2


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
