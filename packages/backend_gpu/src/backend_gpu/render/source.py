"""The source of one kernel: parameters, the variables x and r, and the body in the order of its passes over r."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..ir.index import Atom, Div, Index, Mod, of_atom, variables
from ..ir.loops import Loops, R, Stmt, X, indices
from ..ir.nodes import Node
from . import product
from .body import Body
from .text import POINTERS, IndexText
from .tiles import Tile, even, needs_64_bits

HEADER = """import triton
import triton.language as tl

from backend_gpu.render import mathlib as math


@triton.jit
"""


@dataclass
class Source:
    """A kernel as text. `parameters` are (name, Triton type) in order; constexprs follow with their values."""

    name: str
    text: str
    parameters: list[tuple[str, str]]
    constexprs: dict[str, int]
    tile: Tile
    partials: int = 0
    """How many numbers a program leaves for the last one, which finishes the kernel."""
    counters: int = 0
    """How many numbers programs count in who is the last; 0: there is no such step."""
    sizes: int = 1
    """How many numbers of elements stand behind the tensors: several where kernels run side by side, and the rows,
    columns and batches of a product."""
    checks: bool = False
    symbols: list[str] = field(default_factory=list)


def render(kernel: Loops, tile: Tile) -> Source:
    """The Triton source of a kernel for one tile."""
    return combine(kernel, tile) if kernel.parts else Writer(kernel, tile).source()


def combine(kernel: Loops, tile: Tile) -> Source:
    """Several pointwise kernels side by side: which one a program runs is decided by its number."""
    pointers = pointer_names(kernel)
    lines, sizes = ["program = tl.program_id(0)"], []
    checks, counters = False, 0
    for number, part in enumerate(kernel.parts):
        writer = Writer(part, tile, pointers, number)
        part_source = writer.source()
        checks |= part_source.checks
        counters = max(counters, part_source.counters)
        sizes.append((writer.xnumel, "i64" if writer.wide else "i32"))
        lines.append(f"programs = tl.cdiv({writer.xnumel}, XBLOCK)")
        lines.append("if (program >= 0) & (program < programs):")
        lines += [f"    {line}" for line in writer.lines]
        lines.append("program -= programs")
    parameters = [(pointers[buffer], POINTERS[buffer.dtype]) for buffer in kernel.buffers] + sizes
    parameters += [(name, "i64") for name in kernel.symbols]
    parameters += [("counter_ptr", "*i32")] if counters else []
    names = [*(name for name, _ in parameters), "XBLOCK: tl.constexpr"]
    title = f'    """{len(kernel.parts)} kernels side by side, {tile.x} elements a program."""\n'
    text = f"{HEADER}def {kernel.name}({', '.join(names)}):\n{title}" + "".join(f"    {line}\n" for line in lines)
    return Source(kernel.name, text, parameters, {"XBLOCK": tile.x}, tile, counters=counters, sizes=len(sizes),
                  checks=checks, symbols=kernel.symbols)  # fmt: skip


def pointer_names(kernel: Loops) -> dict[Node, str]:
    """A parameter's name for each buffer."""
    names: dict[Node, str] = {}
    for buffer in kernel.buffers:
        name = re.sub(r"\W", "_", buffer.name)
        while f"{name}_ptr" in names.values():
            name += "_"
        names[buffer] = f"{name}_ptr"
    return names


class Writer:
    """Writes one kernel. `lines` is the body so far."""

    def __init__(
        self, kernel: Loops, tile: Tile, pointers: dict[Node, str] | None = None, number: int | None = None
    ):  # fmt: skip
        self.kernel, self.tile = kernel, tile
        self.alone, self.number = number is None, number or 0
        """Whether the kernel runs by itself; else its number among those that run side by side."""
        self.xnumel = "xnumel" if self.alone else f"xnumel{number}"
        self.program = "tl.program_id(0)" if self.alone else "program"
        self.wide = needs_64_bits(kernel)
        self.x_even = even(kernel, tile)
        self.r_even = isinstance(kernel.r, int) and kernel.r > 0 and kernel.r % tile.r == 0
        self.pointers = pointers or pointer_names(kernel)
        self.index = IndexText({})
        self.lines: list[str] = []
        self.two = kernel.form != "pointwise"
        self.body = Body(self)

    def source(self) -> Source:
        kernel = self.kernel
        self._variables()
        self.body.write()
        partials = self.body.partials
        symbols = kernel.symbols
        parameters = [(self.pointers[buffer], POINTERS[buffer.dtype]) for buffer in kernel.buffers]
        size = "i64" if self.wide else "i32"
        sizes = [self.xnumel, "rnumel", "batches"] if kernel.form == "product" else [self.xnumel]
        parameters += [(name, size) for name in sizes]
        parameters += [(name, size) for name in symbols]
        if partials:
            parameters.append(("partials_ptr", "*fp64" if self.body.wide_partials else "*fp32"))
        if self.body.counts:
            parameters.append(("counter_ptr", "*i32"))
        constexprs = {"XBLOCK": self.tile.x}
        if self.two:
            constexprs["RBLOCK"] = self.tile.r
        if self.tile.k:
            constexprs["KBLOCK"] = self.tile.k
        names = [name for name, _ in parameters] + [f"{name}: tl.constexpr" for name in constexprs]
        title = f'    """{self._title()}"""\n'
        lines = "\n".join(f"    {line}" for line in self.lines)
        text = f"{HEADER}def {kernel.name}({', '.join(names)}):\n{title}{lines}"
        counters = self.number + 1 if self.body.counts else 0
        return Source(kernel.name, text + "\n", parameters, constexprs, self.tile, partials, counters, len(sizes),
                      any(stmt.op == "check" for stmt in kernel.stmts), symbols)  # fmt: skip

    def _title(self) -> str:
        where = ", ".join(self.kernel.where[:6])
        shape = "elements" if self.kernel.form == "pointwise" else f"rows of {self.kernel.r}"
        if self.kernel.form == "product":
            shape = f"by {self.tile.r} elements of a product, {self.tile.k} factors at a time"
        return f"One program: {self.tile.x} {shape}." + (f" From {where}." if where else "")

    def _variables(self) -> None:
        """x and r, their masks, and the parts of indices that stand in several places."""
        if self.kernel.form == "product":
            product.variables(self)
            self.name_parts(X)
            return
        start = f"{self.program}.to(tl.int64)" if self.wide else self.program
        x = f"{start} * XBLOCK + tl.arange(0, XBLOCK)"
        self.lines.append(f"x = ({x})[:, None]" if self.two else f"x = {x}")
        if not self.x_even:
            self.lines.append(f"x_in = x < {self.xnumel}")
        if self.two and self.tile.persistent:
            self.lines.append("r = tl.arange(0, RBLOCK)[None, :]")
            if not self.r_even:
                self.lines.append(f"r_in = r < {self.rows_end()}")
        self.name_parts(X)

    def rows_end(self) -> str:
        """The length of a row as source."""
        return self.index.write(self.kernel.r)

    def name_parts(self, dims: int) -> None:
        """Give a name to each division and remainder of the loop variables (of x alone, or of r)."""
        for stmt in self.kernel.stmts:
            for value in indices(stmt):
                self._name_atoms(value, dims)

    def _name_atoms(self, value: Index, dims: int) -> None:
        if isinstance(value, int):
            return
        for monomial in value.terms:
            for atom in monomial:
                if isinstance(atom, (Div, Mod)) and atom not in self.index.parts and self._dims(atom) == dims:
                    self._name_atoms(atom.value, dims)
                    text = self.index.atom(atom)
                    letter = "x" if dims == X else "r"
                    name = f"{letter}{sum(part.startswith(letter) for part in self.index.parts.values())}"
                    self.lines.append(f"{name} = {text[1:-1]}")
                    self.index.parts[atom] = name

    @staticmethod
    def _dims(atom: Atom) -> int:
        names = {v.name for v in variables(of_atom(atom))}
        if any(name.startswith("v") for name in names):
            return -1
        return (X if "x" in names else 0) | (R if "r" in names else 0)

    def mask(self, stmt: Stmt, dims: int, guards: tuple[tuple[Index, Index, Index], ...]) -> list[str]:
        """The conditions of an access that covers these dimensions."""
        conditions = []
        if dims & X and not self.x_even and not stmt.finish:
            conditions.append("x_in")
        if dims & R and not self.r_even:
            conditions.append("r_in")
        return conditions + self.index.condition(guards)
