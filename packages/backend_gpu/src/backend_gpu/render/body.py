"""The body of a kernel: its statements in the order of the passes over r, each as a line of Triton."""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING

import torch

from ..ir.index import Index, variables
from ..ir.loops import R, Stmt, X, indices
from ..ir.pointwise import HALVES, TABLE
from .product import NAMES, write_product
from .reduce import Accumulators, reduce_tile, spread
from .text import TYPES, number, typed_number

if TYPE_CHECKING:
    from .source import Writer

RESERVED = {"x", "r", "tl", "math", "triton", "xnumel", "x_in", "r_in", "start", "first", "last", "slot"}


class Body:
    """Writes the statements of one kernel."""

    def __init__(self, writer: Writer):
        self.w = writer
        self.kernel = writer.kernel
        self.names: dict[int, str] = {}
        self.written: set[int] = set()
        self._taken: set[str] = set(RESERVED) | set(writer.pointers.values()) | set(self.kernel.symbols)
        if self.kernel.form == "product":
            self._taken |= NAMES
        self._wide: dict[int, str] = {}
        self.partials, self.counts = 0, False
        """How many numbers a program leaves for the last one, and whether there is anything that the last one does."""
        self.wide_partials = any(s.op == "grid" and s.dtype in (torch.float64, torch.int64) for s in self.kernel.stmts)

    def line(self, text: str) -> None:
        """Add a line at the current indentation."""
        self.w.lines.append(self._indent + text)

    _indent = ""

    # --- order ----------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """All statements."""
        if self.kernel.form == "rows" and not self.kernel.persistent:
            self._passes()
        else:
            self.w.name_parts(R)
            self.w.name_parts(X | R)
            for position, stmt in enumerate(self.kernel.stmts):
                if not stmt.finish:
                    self._statement(position, stmt)
        self._finish()

    def _passes(self) -> None:
        """One loop over r for each stage that needs one; what is known per row is computed between them."""
        stmts = self.kernel.stmts
        last = max(stmt.stage for stmt in stmts)
        for stage in range(last + 1):
            for position, stmt in enumerate(stmts):
                if not stmt.dims & R and not stmt.finish and stmt.op not in ("reduce", "online", "grid"):
                    if stmt.stage == stage:
                        self._statement(position, stmt)
            wanted = self.wanted(stage)
            if wanted:
                self._one_pass(stage, wanted)
        for position, stmt in enumerate(stmts):
            if not stmt.dims & R and not stmt.finish and stmt.op not in ("grid",) and position not in self.written:
                self._statement(position, stmt)

    def wanted(self, stage: int) -> set[int]:
        """The statements per r that the pass of a stage needs, and the reductions that it makes."""
        stmts = self.kernel.stmts
        ends = [
            position
            for position, stmt in enumerate(stmts)
            if (stmt.op in ("reduce", "online") and stmt.stage == stage + 1 and not stmt.attrs.get("online"))
            or (stmt.op in ("store", "check") and stmt.dims & R and stmt.stage == stage and not stmt.finish)
        ]
        found: set[int] = set()
        stack = list(ends)
        while stack:
            position = stack.pop()
            stmt = stmts[position]
            if position in found or (position not in ends and not stmt.dims & R):
                continue
            found.add(position)
            stack += stmt.args
            stack += [int(name[1:]) for name in index_values(stmt)]
        return found

    def _one_pass(self, stage: int, wanted: set[int]) -> None:
        stmts = self.kernel.stmts
        made = [p for p in sorted(wanted) if stmts[p].op in ("reduce", "online") and stmts[p].stage == stage + 1]
        accumulators = {position: Accumulators(self, position, stmts[position]) for position in made}
        for accumulator in accumulators.values():
            accumulator.start()
        self.line(f"for start in range(0, {self.w.rows_end()}, RBLOCK):")
        before, parts = self._indent, dict(self.w.index.parts)
        self._indent += "    "
        self.line("r = start + tl.arange(0, RBLOCK)[None, :]")
        if not self.w.r_even:
            self.line(f"r_in = r < {self.w.rows_end()}")
        outer = self.w.lines
        self.w.lines = []
        self.w.name_parts(R)
        self.w.name_parts(X | R)
        outer += [self._indent + line for line in self.w.lines]
        self.w.lines = outer
        for position in sorted(wanted):
            if position in accumulators:
                accumulators[position].step()
            else:
                self._statement(position, stmts[position])
        self._indent, self.w.index.parts = before, parts
        for position in wanted:
            if position not in accumulators:
                self._wide.pop(position, None)
        for position, accumulator in accumulators.items():
            accumulator.end()
            self.written.add(position)

    # --- statements -----------------------------------------------------------------------------------------------

    def name(self, position: int) -> str:
        """The variable of a statement's value; constants stand where they are used."""
        if position not in self.names:
            stmt = self.kernel.stmts[position]
            base = stmt.node.name if stmt.node is not None else stmt.op
            if stmt.op == "load":
                base = f"{stmt.attrs['buffer'].name}_at" if stmt.attrs["guards"] else stmt.attrs["buffer"].name
            base = re.sub(r"\W", "_", base).strip("_") or "t"
            base = f"{base}_" if keyword.iskeyword(base) or base.startswith("tl") else base
            name, count = base, 1
            while name in self._taken:
                name, count = f"{base}_{count}", count + 1
            self._taken.add(name)
            self.names[position] = name
            self.w.index.names[f"v{position}"] = name
        return self.names[position]

    def operand(self, position: int, dtype: torch.dtype | None = None, typed: bool = False) -> str:
        """A value as an operand, in fp32 where `dtype` asks for it and its own is a half type."""
        stmt = self.kernel.stmts[position]
        if stmt.op == "const":
            kind = dtype or stmt.dtype
            value = float(stmt.attrs["value"]) if kind.is_floating_point else stmt.attrs["value"]
            return typed_number(value, kind) if typed else number(value, kind)
        name = self.name(position)
        if dtype is not None and stmt.dtype != dtype:
            return f"{name}.to({TYPES[dtype]})"
        return name

    def assign(self, position: int, text: str) -> None:
        """The line that gives a statement its value."""
        self.line(f"{self.name(position)} = {text}")

    def _statement(self, position: int, stmt: Stmt) -> None:
        self.written.add(position)
        for name in index_values(stmt):
            self.name(int(name[1:]))
        if stmt.op == "const":
            return
        if stmt.op == "index":
            self.assign(position, f"({self.w.index.write(stmt.attrs['expr'])}).to(tl.int64)")
        elif stmt.op == "load":
            self._load(position, stmt)
        elif stmt.op == "store":
            self._store(stmt)
        elif stmt.op == "check":
            self._check(stmt)
        elif stmt.op == "reduce":
            reduce_tile(self, position, stmt)
        elif stmt.op == "product":
            write_product(self, position, stmt)
        elif stmt.op == "scan":
            self.assign(position, f"tl.{stmt.attrs['kind']}({spread(self, stmt.args[0])}, 1)")
        elif stmt.op == "grid":
            pass
        elif stmt.op in ("cast", "bitcast"):
            self._cast(position, stmt)
        else:
            self._pointwise(position, stmt)

    def _cast(self, position: int, stmt: Stmt) -> None:
        source = self.kernel.stmts[stmt.args[0]]
        value = self.operand(stmt.args[0], typed=True)
        if stmt.op == "bitcast":
            self.assign(position, f"{value}.to({TYPES[stmt.dtype]}, bitcast=True)")
            return
        if source.dtype in HALVES or stmt.dtype in HALVES and source.dtype != torch.float32:
            value = f"{wrapped(value)}.to(tl.float32)"  # half types know this way only
        if stmt.dtype == torch.bool:
            self.assign(position, f"{wrapped(value)} != 0")
        elif stmt.dtype == torch.float32 and source.dtype in HALVES:
            self.assign(position, value)
        elif stmt.dtype == torch.uint8 and source.dtype.is_floating_point:
            self.assign(position, f"{wrapped(value)}.to(tl.int32).to(tl.uint8)")
        else:
            self.assign(position, f"{wrapped(value)}.to({TYPES[stmt.dtype]})")

    def _pointwise(self, position: int, stmt: Stmt) -> None:
        row = TABLE[stmt.op]
        sources = [self.kernel.stmts[argument] for argument in stmt.args]
        constant = all(source.op == "const" for source in sources)
        half = any(source.dtype in HALVES for source in sources) and stmt.op != "where"
        operands = []
        for argument, source in zip(stmt.args, sources):
            wide = torch.float32 if half and source.dtype in HALVES else None
            typed = constant or row.triton.startswith(("math.", "tl.")) and stmt.op != "where"
            operands.append(self.operand(argument, wide, typed))
        if stmt.op == "where":
            values = [s.op == "const" for s in sources[1:]]
            operands[1:] = [
                self.operand(argument, None, all(values) or source.dtype in (torch.float64, torch.int64))
                for argument, source in zip(stmt.args[1:], sources[1:])
            ]
        if row.triton.startswith(("(", "-(", "~(")):
            text = row.triton.replace("({", "{").replace("})", "}").format(*map(wrapped, operands))
        else:
            text = row.triton.format(*operands)
        if half and stmt.dtype in HALVES:
            text = f"({text}).to({TYPES[stmt.dtype]})"
        self.assign(position, text)

    # --- memory ---------------------------------------------------------------------------------------------------

    def _load(self, position: int, stmt: Stmt) -> None:
        guards = stmt.attrs["guards"]
        conditions = self.w.mask(stmt, stmt.dims, guards)
        offset = self._spread_address(stmt) if conditions else self._address(stmt)
        address = f"{self.w.pointers[stmt.attrs['buffer']]} + {offset}"
        if not conditions:
            self.assign(position, f"tl.load({address})")
            return
        fill = stmt.attrs["fill"] or 0
        other = f", other={number(fill, stmt.dtype)}" if conditions else ""
        if isinstance(fill, float) and fill == 0:
            other = ", other=0.0"
        self.assign(position, f"tl.load({address}, mask={' & '.join(conditions)}{other})")

    def _address(self, stmt: Stmt) -> str:
        """An offset that has the shape of the access, even where the index is a number."""
        text = self.w.index.write(stmt.attrs["index"])
        return text if text[0] != "-" else f"({text})"

    def _spread_address(self, stmt: Stmt) -> str:
        """The offset as a block that covers all dimensions of the access."""
        text, shape = self._address(stmt), self.shape(stmt.dims)
        if not shape or index_dims(stmt.attrs["index"], self.kernel.stmts) == stmt.dims:
            return text
        if isinstance(stmt.attrs["index"], int):
            return f"tl.full({shape}, {text}, tl.int32)"
        return f"tl.broadcast_to({text}, {shape})"

    def _store(self, stmt: Stmt) -> None:
        buffer = stmt.attrs["buffer"]
        guards = stmt.attrs["guards"]
        dims = stmt.dims
        value = self.operand(stmt.args[0], typed=True)
        offset = self._address(stmt)
        if not stmt.finish:
            shape, offset = self.shape(dims), self._spread_address(stmt)
            if shape and self.kernel.stmts[stmt.args[0]].dims != dims:
                value = f"tl.broadcast_to({value}, {shape})"
        conditions = self.w.mask(stmt, dims, guards)
        mask = f", mask={' & '.join(conditions)}" if conditions else ""
        value = f"({value}).to({TYPES[buffer.dtype]})" if self._loose(stmt) else value
        pointer = self.w.pointers[buffer]
        call = "tl.atomic_add" if stmt.attrs["kind"] == "add" else "tl.store"
        relaxed = ', sem="relaxed"' if stmt.attrs["kind"] == "add" else ""
        self.line(f"{call}({pointer} + {offset}, {value}{mask}{relaxed})")

    def _loose(self, stmt: Stmt) -> bool:
        return self.kernel.stmts[stmt.args[0]].dtype != stmt.attrs["buffer"].dtype

    def shape(self, dims: int) -> str:
        """The shape of a block that covers these dimensions; empty for one number."""
        if not self.w.two:
            return "[XBLOCK]" if dims & X else ""
        return f"[{'XBLOCK' if dims & X else '1'}, {'RBLOCK' if dims & R else '1'}]"

    def _check(self, stmt: Stmt) -> None:
        value = self.operand(stmt.args[0], typed=True)
        size = self.w.index.write(stmt.attrs["size"])
        conditions = self.w.mask(stmt, stmt.dims, stmt.attrs["guards"])
        inside = f"(0 <= {value}) & ({value} < {size})"
        outside = "".join(f" | ~({condition})" for condition in conditions)
        self.line(f'tl.device_assert({inside}{outside}, "index out of range")')

    # --- the end, in the last program -----------------------------------------------------------------------------

    def _finish(self) -> None:
        """What is known or may be written when all programs are through is left to the last one to come. Of a reduction
        over all rows each leaves its part, and the last combines them."""
        stmts = self.kernel.stmts
        grids = [position for position, stmt in enumerate(stmts) if stmt.op == "grid"]
        if not any(stmt.finish for stmt in stmts):
            return
        self.partials, self.counts = len(grids), True
        if self.w.alone:
            self.line("programs = tl.num_programs(0)")
        for slot, position in enumerate(grids):
            stmt = stmts[position]
            value = f"tl.broadcast_to({self.operand(stmt.args[0], typed=True)}, {self.shape(X)})"
            if not self.w.x_even:
                value = f"tl.where(x_in, {value}, {neutral_text(stmt)})"
            part = self._all(stmt.attrs["kind"], value)
            self.line(f"tl.store(partials_ptr + {slot} * programs + {self.w.program}, {part})")
        self.line("tl.debug_barrier()")
        counter = f"counter_ptr + {self.w.number}" if self.w.number else "counter_ptr"
        self.line(f'last = tl.atomic_add({counter}, 1, sem="acq_rel") == programs - 1')
        self.line("if last:")
        self._indent += "    "
        for slot, position in enumerate(grids):
            self._combine(slot, position, stmts[position])
        for position, stmt in enumerate(stmts):
            if stmt.finish and stmt.op != "grid":
                self._statement(position, stmt)
        self.line(f"tl.store({counter}, 0)")
        self._indent = self._indent[:-4]

    def _all(self, kind: str, value: str) -> str:
        """A block reduced to one number."""
        inner = f"tl.sum({value}, 1)" if kind == "sum" else f"tl.{kind}({value}, 1)"
        if kind == "prod":
            return f"tl.reduce(tl.reshape({value}, [XBLOCK]), 0, math.multiply)"
        return f"tl.{kind}({inner}, 0)" if self.w.two else f"tl.{kind}({value}, 0)"

    def _combine(self, slot: int, position: int, stmt: Stmt) -> None:
        name, kind = self.name(position), stmt.attrs["kind"]
        dtype = "tl.float64" if self.wide_partials else "tl.float32"
        self.line(f"{name} = tl.full([1024], {neutral_text(stmt)}, {dtype})")
        self.line("for first in range(0, programs, 1024):")
        self.line("    slot = first + tl.arange(0, 1024)")
        self.line(f"    {name}_part = tl.load(partials_ptr + {slot} * programs + slot, mask=slot < programs, "
                  f'other={neutral_text(stmt)}, cache_modifier=".cg")')  # fmt: skip
        joined = {"sum": "{0} + {1}", "prod": "{0} * {1}", "max": "tl.maximum({0}, {1})", "min": "tl.minimum({0}, {1})"}
        self.line(f"    {name} = {joined[kind].format(name, f'{name}_part')}")
        whole = f"tl.reduce({name}, 0, math.multiply)" if kind == "prod" else f"tl.{kind}({name}, 0)"
        self.line(f"{name} = ({whole}).to({TYPES[stmt.dtype]})")


def neutral_text(stmt: Stmt) -> str:
    """What a reduction over all rows starts with."""
    kind = stmt.attrs["kind"]
    if kind in ("sum", "prod"):
        return {"sum": "0.0", "prod": "1.0"}[kind] if stmt.dtype.is_floating_point else {"sum": "0", "prod": "1"}[kind]
    if stmt.dtype.is_floating_point:
        return 'float("-inf")' if kind == "max" else 'float("inf")'
    info = torch.iinfo(stmt.dtype)
    return str(info.min if kind == "max" else info.max)


def wrapped(text: str) -> str:
    """An operand in parentheses where it needs them beside an operator."""
    plain = re.fullmatch(r"[\w.]+(e-\d+)?(\.to\([\w.]+\))*", text) or text.startswith(("tl.", "float("))
    return text if plain else f"({text})"


def index_dims(index: Index, stmts: list[Stmt]) -> int:
    """Whether an index varies with x and with r."""
    dims = 0
    for variable in variables(index):
        dims |= {"x": X, "r": R}.get(variable.name, 0)
        if variable.name.startswith("v"):
            dims |= stmts[int(variable.name[1:])].dims
    return dims


def index_values(stmt: Stmt) -> list[str]:
    """The values (v0, v1, …) in a statement's indices."""
    found = {v.name for part in indices(stmt) for v in variables(part) if v.name.startswith("v")}
    return sorted(found, key=lambda name: int(name[1:]))
