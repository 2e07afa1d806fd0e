"""Files kept between processes: named by what they are made of, written whole, checked when read."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from ..config import config
from ..report import warn_once

MARK = b"# backend_gpu sha256 "


def folder() -> Path:
    """The folder of the cache, made where it can be; else a temporary one, said once."""
    wanted = Path(config.cache_dir) if config.cache_dir else Path.home() / ".cache" / "backend_gpu"
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        if os.access(wanted, os.W_OK):
            return wanted
        reason = "it can't be written to"
    except OSError as error:
        reason = str(error)
    warn_once(("cache", str(wanted)), f"backend_gpu: no cache at {wanted}: {reason}. Kernels are kept for this process "
              "alone; set BACKEND_GPU_CACHE to a folder that can be written to.")  # fmt: skip
    return _temporary()


_made: list[tempfile.TemporaryDirectory[str]] = []


def _temporary() -> Path:
    if not _made:
        _made.append(tempfile.TemporaryDirectory(prefix="backend_gpu_"))
    return Path(_made[0].name)


def key_of(*parts: str) -> str:
    """The name of an entry made of these texts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()[:40]


def read(name: str) -> bytes | None:
    """The content of an entry; None where there is none or it is damaged, and then it is removed."""
    path = folder() / name
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head, _, content = data.partition(b"\n")
    if head == MARK + hashlib.sha256(content).hexdigest().encode():
        return content
    path.unlink(missing_ok=True)
    return None


def write(name: str, content: bytes) -> Path:
    """Put an entry there in one step, so that no process ever sees a part of it. Returns its path."""
    path = folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "wb") as file:
        file.write(MARK + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    os.replace(temporary, path)
    return path


def keep(name: str, content: bytes) -> Path:
    """The path of an entry with this content, written only where it isn't there as it should be."""
    path = folder() / name
    if read(name) != content:
        return write(name, content)
    return path
