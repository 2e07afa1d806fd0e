"""Processes that compile kernels at the same time, each with an interpreter of its own."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..config import config
from ..errors import CompileFailure
from .compiling import Request


class Worker:
    """One process. It is started at its first request, and once more if it died in between."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def compile(self, wanted: Request) -> dict[str, Any]:
        """The facts of a compiled kernel. Raises `CompileFailure` with the compiler's text."""
        with self._lock:
            for _ in range(2):
                answer = self._ask(wanted.text())
                if answer is not None:
                    break
            else:
                raise CompileFailure(f"the compiler died over kernel {wanted.name}")
        if "error" in answer:
            raise CompileFailure(f"kernel {wanted.name}: {answer['error']}")
        return answer

    def _ask(self, line: str) -> dict[str, Any] | None:
        try:
            process = self._started()
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(line + "\n")
            process.stdin.flush()
            text = process.stdout.readline()
            if text:
                return json.loads(text)
        except (OSError, ValueError):
            pass
        self.stop()
        return None

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
            paths = [str(Path(__file__).resolve().parents[2]), *(p for p in sys.path if p)]
            environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
            self._process = subprocess.Popen(
                [sys.executable, "-m", "backend_gpu.runtime.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True, env=environment,
            )  # fmt: skip
        return self._process

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
            self._process = None


class Workers:
    """A pool of workers."""

    def __init__(self, count: int = 0):
        self.count = count or config.workers or min(8, os.cpu_count() or 1)
        self._workers = [Worker() for _ in range(self.count)]
        self._free = list(self._workers)
        self._changed = threading.Condition()
        self._threads = ThreadPoolExecutor(self.count)
        atexit.register(self.stop)

    def compile_all(self, wanted: Sequence[Request]) -> list[dict[str, Any] | CompileFailure]:
        """The facts of each kernel, or why it can't be compiled."""
        return list(self._threads.map(self._one, dict.fromkeys(wanted))) if wanted else []

    def _one(self, wanted: Request) -> dict[str, Any] | CompileFailure:
        with self._changed:
            while not self._free:
                self._changed.wait()
            worker = self._free.pop()
        try:
            return worker.compile(wanted)
        except CompileFailure as failure:
            return failure
        finally:
            with self._changed:
                self._free.append(worker)
                self._changed.notify()

    def stop(self) -> None:
        """End all processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.stop()
