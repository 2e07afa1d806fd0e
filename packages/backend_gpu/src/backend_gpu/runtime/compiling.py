"""Compiling one kernel with Triton's compiler, for the device that is there or for any that is named."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ..render.source import Source
from . import cache
from .loading import import_path, module_name

ALIGNED = 16
"""What Triton's compiler takes pointers and sizes to be divisible by, where told so."""
TARGETS = {"sm_80": ("cuda", 80, 32), "sm_90": ("cuda", 90, 32), "gfx942": ("hip", "gfx942", 64)}
"""The targets that kernels are proven to compile for where no GPU is: backend, architecture, threads of a warp."""


@dataclass(frozen=True)
class Request:
    """What decides a compiled kernel. `divisible` are the positions of arguments divisible by 16; `target` is
    (backend, architecture, threads of a warp)."""

    module: str
    path: str
    name: str
    signature: tuple[tuple[str, str], ...]
    constexprs: tuple[tuple[str, int], ...]
    divisible: tuple[int, ...]
    target: tuple[str, Any, int]
    warps: int
    stages: int
    debug: bool = False

    def text(self) -> str:
        """As one line of JSON."""
        return json.dumps(self.__dict__)

    @staticmethod
    def of_text(text: str) -> Request:
        """The inverse of `text`."""
        values = json.loads(text)
        for name in ("signature", "constexprs"):
            values[name] = tuple(tuple(pair) for pair in values[name])
        return Request(**{**values, "divisible": tuple(values["divisible"]), "target": tuple(values["target"])})


def request(source: Source, target: tuple[str, Any, int], divisible: tuple[int, ...]) -> Request:
    """The request for a kernel; puts its source into the cache."""
    name = module_name(source)
    path = cache.keep(f"{name}.py", source.text.encode())
    return Request(
        name, str(path), source.name, tuple(source.parameters), tuple(source.constexprs.items()), divisible, target,
        source.tile.warps, source.tile.stages, source.checks,
    )  # fmt: skip


def compile_request(wanted: Request) -> Any:
    """Triton's compiled kernel. It comes from Triton's own cache when it was compiled before."""
    from triton import compiler
    from triton.backends.compiler import GPUTarget

    function = getattr(import_path(wanted.module, wanted.path), wanted.name)
    signature = dict(wanted.signature) | {name: "constexpr" for name, _ in wanted.constexprs}
    attrs = {(position,): [["tt.divisibility", ALIGNED]] for position in wanted.divisible}
    source = compiler.ASTSource(fn=function, signature=signature, constexprs=dict(wanted.constexprs), attrs=attrs)
    options = {"num_warps": wanted.warps, "num_stages": wanted.stages}
    options |= {"debug": wanted.debug, "sanitize_overflow": False}  # debug: assertions are obeyed
    return compiler.compile(source, target=GPUTarget(*wanted.target), options=options)


def facts(compiled: Any) -> dict[str, Any]:
    """What the compiler says of a kernel: the kind and size of its code, shared memory, registers and spills."""
    kind = "cubin" if "cubin" in compiled.asm else "hsaco"
    code = compiled.asm[kind]
    found = {"kind": kind, "bytes": len(code), "shared": compiled.metadata.shared, "hash": compiled.hash}
    found.update(_resources(compiled, kind))
    return found


def _resources(compiled: Any, kind: str) -> dict[str, int]:
    """Registers and spills: of ptxas's report in the cubin's sections, or the metadata in AMD's assembly."""
    if kind == "hsaco":
        text = compiled.asm["amdgcn"]
        numbers = {name: re.search(rf"\.{name}:\s+(\d+)", text) for name in ("vgpr_count", "vgpr_spill_count")}
        return {
            short: int(match.group(1)) if (match := numbers[name]) else 0
            for name, short in (("vgpr_count", "registers"), ("vgpr_spill_count", "spills"))
        }
    from .elf import cubin_resources

    return cubin_resources(compiled.asm["cubin"], compiled.metadata.name)
