"""Reductions along r: of a tile that holds whole rows, and by accumulators in a loop."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from ..ir.loops import R, Stmt
from .text import TYPES, number

if TYPE_CHECKING:
    from .body import Body

HALVES = (torch.float16, torch.bfloat16)


def neutral(kind: str, dtype: torch.dtype) -> str:
    """What an element outside the row counts as."""
    if kind in ("sum", "squares"):
        return "0.0" if dtype.is_floating_point else "0"
    if kind == "prod":
        return "1.0" if dtype.is_floating_point else "1"
    lowest = kind in ("max", "argmax")
    if dtype.is_floating_point:
        return 'float("-inf")' if lowest else 'float("inf")'
    info = torch.iinfo(dtype)
    return str(info.min if lowest else info.max)


def spread(body: Body, argument: int) -> str:
    """The operand as a block of whole tiles."""
    text = body.operand(argument, typed=True)
    if not body.kernel.stmts[argument].dims & R or body.kernel.stmts[argument].dims != 3:
        return f"tl.broadcast_to({text}, [XBLOCK, RBLOCK])"
    return text


def _masked(body: Body, text: str, kind: str, dtype: torch.dtype) -> str:
    return text if body.w.r_even else f"tl.where(r_in, {text}, {neutral(kind, dtype)})"


def _over_row(kind: str, text: str) -> str:
    if kind == "prod":
        return f"tl.reduce({text}, 1, math.multiply)[:, None]"
    return f"tl.{kind}({text}, 1)[:, None]"


def reduce_tile(body: Body, position: int, stmt: Stmt) -> None:
    """A reduction of rows that are held whole."""
    (argument,) = stmt.args
    kind, source = stmt.attrs["kind"], body.kernel.stmts[argument]
    value = spread(body, argument)
    name = body.name(position)
    if kind == "squares":
        count = body.w.index.write(stmt.attrs["count"])
        mean = f"{_over_row('sum', _masked(body, value, 'sum', source.dtype))} / {count}"
        body.line(f"{name}_mean = {mean}")
        body.line(f"{name} = {value} - {name}_mean")
        body.line(f"{name} = {_over_row('sum', _masked(body, f'{name} * {name}', 'sum', source.dtype))}")
        return
    if kind in ("argmax", "argmin"):
        _position(body, name, kind, value, source.dtype, "r")
        return
    if kind in ("max", "min") and source.dtype in HALVES:
        value = f"{value}.to(tl.float32)"
    reduced = _over_row(kind, _masked(body, value, kind, source.dtype))
    body.assign(position, f"({reduced}).to({TYPES[stmt.dtype]})" if stmt.dtype != torch.float32 else reduced)
    if kind in ("max", "min") and source.dtype.is_floating_point and not stmt.attrs.get("no_nan"):
        flags = _masked(body, f"({value} != {value}).to(tl.int32)", "sum", torch.int32)
        _restore_nan(body, name, flags, stmt.dtype)


def _restore_nan(body: Body, name: str, flags: str, dtype: torch.dtype) -> None:
    """Eager's maximum of a row with NaN is NaN, the machine's isn't."""
    body.line(f"{name} = tl.where({_over_row('max', flags)} > 0, {number(math.nan, dtype)}, {name})")


def _position(body: Body, name: str, kind: str, value: str, dtype: torch.dtype, place: str) -> None:
    """The first place of the extreme value; NaN counts as the most extreme."""
    best = kind[3:]
    body.line(f"{name}_value = {value}" + (".to(tl.float32)" if dtype in HALVES else ""))
    masked = _masked(body, f"{name}_value", kind, dtype)
    body.line(f"{name}_hit = {name}_value == {_over_row(best, masked)}")
    if dtype.is_floating_point:
        body.line(f"{name}_nan = {_masked(body, f'({name}_value != {name}_value).to(tl.int32)', 'sum', torch.int32)}")
        body.line(f"{name}_hit = tl.where({_over_row('max', f'{name}_nan')} > 0, {name}_nan > 0, {name}_hit)")
    hit = f"{name}_hit" if body.w.r_even else f"{name}_hit & r_in"
    body.line(f"{name} = tl.min(tl.where({hit}, {place}, 2147483647), 1)[:, None].to(tl.int64)")


class Accumulators:
    """One reduction in a loop over r: what it keeps per lane, a step of the loop, and the end."""

    def __init__(self, body: Body, position: int, stmt: Stmt):
        self.body, self.position, self.stmt = body, position, stmt
        self.name = body.name(position)
        self.kind = "online" if stmt.op == "online" else stmt.attrs["kind"]
        self.source = body.kernel.stmts[stmt.args[0]].dtype
        self.dtype = torch.float32 if self.source in HALVES else self.source
        self.places = torch.int64 if body.w.wide else torch.int32
        self.nowhere = str(torch.iinfo(self.places).max)

    def _full(self, suffix: str, value: str, dtype: torch.dtype | None = None) -> None:
        kind = TYPES[dtype or self.dtype]
        self.body.line(f"{self.name}{suffix} = tl.full([XBLOCK, RBLOCK], {value}, {kind})")

    def start(self) -> None:
        """Before the loop."""
        if self.kind == "online":
            self._full("_max", 'float("-inf")')
            self._full("_sum", "0.0")
        elif self.kind == "squares":
            self._full("_mean", "0.0")
            self._full("_m2", "0.0")
            self._full("_count", "0.0")
        else:
            self._full("_all", neutral(self.kind, self.dtype))
            if self.kind in ("argmax", "argmin"):
                self._full("_at", self.nowhere, self.places)
            elif self._nan():
                self._full("_nan", "0", torch.int32)

    def _nan(self) -> bool:
        return self.kind in ("max", "min") and self.source.is_floating_point and not self.stmt.attrs.get("no_nan")

    def step(self) -> None:
        """Inside the loop."""
        line, name = self.body.line, self.name
        value = spread(self.body, self.stmt.args[0])
        if self.source in HALVES:
            value = f"{value}.to(tl.float32)"
        if self.kind == "online":
            line(f"{name}_new = tl.maximum({name}_max, {_masked(self.body, value, 'max', self.dtype)})")
            # A lane that has seen nothing but -inf adds nothing, instead of exp(-inf + inf).
            line(f'{name}_base = tl.where({name}_new == float("-inf"), 0.0, {name}_new)')
            step = _masked(self.body, f"tl.exp({value} - {name}_base)", "sum", self.dtype)
            line(f"{name}_sum = {name}_sum * tl.exp({name}_max - {name}_base) + {step}")
            line(f"{name}_max = {name}_new")
        elif self.kind == "squares":
            seen = "1.0" if self.body.w.r_even else "tl.where(r_in, 1.0, 0.0)"
            line(f"{name}_count += {seen}")
            line(f"{name}_delta = {value} - {name}_mean")
            mean = f"{name}_mean + {name}_delta / {name}_count"
            mean = mean if self.body.w.r_even else f"tl.where(r_in, {mean}, {name}_mean)"
            line(f"{name}_next = {mean}")
            add = f"{name}_delta * ({value} - {name}_next)"
            line(f"{name}_m2 += {_masked(self.body, add, 'sum', self.dtype)}")
            line(f"{name}_mean = {name}_next")
        else:
            self._step_simple(value)

    def _step_simple(self, value: str) -> None:
        line, name = self.body.line, self.name
        masked = _masked(self.body, value, self.kind, self.dtype)
        if self.kind == "sum":
            line(f"{name}_all += {masked}")
        elif self.kind == "prod":
            line(f"{name}_all *= {masked}")
        elif self.kind in ("max", "min"):
            line(f"{name}_all = tl.{self.kind}imum({name}_all, {masked})")
            if self._nan():
                flags = _masked(self.body, f"({value} != {value}).to(tl.int32)", "sum", torch.int32)
                line(f"{name}_nan = tl.maximum({name}_nan, {flags})")
        else:
            self._step_position(value)

    def _step_position(self, value: str) -> None:
        line, name = self.body.line, self.name
        sign = ">" if self.kind == "argmax" else "<"
        line(f"{name}_value = {value}")
        better = f"({name}_value {sign} {name}_all) | ({name}_at == {self.nowhere})"
        if self.dtype.is_floating_point:
            fresh = f"({name}_value != {name}_value) & ({name}_all == {name}_all)"
            better = f"(({better}) & ({name}_all == {name}_all)) | ({fresh})"
        inside = "" if self.body.w.r_even else " & r_in"
        line(f"{name}_better = ({better}){inside}")
        line(f"{name}_all = tl.where({name}_better, {name}_value, {name}_all)")
        line(f"{name}_at = tl.where({name}_better, r.to({TYPES[self.places]}), {name}_at)")

    def end(self) -> None:
        """Behind the loop: lanes become one."""
        line, name = self.body.line, self.name
        if self.kind == "online":
            partner = self.body.name(self.stmt.attrs["partner"])
            line(f"{partner} = tl.max({name}_max, 1)[:, None]")
            line(f"{name} = tl.sum({name}_sum * tl.exp({name}_max - {partner}), 1)[:, None]")
            self.body.written.add(self.stmt.attrs["partner"])
        elif self.kind == "squares":
            count = self.body.w.index.write(self.stmt.attrs["count"])
            line(f"{name}_whole = tl.sum({name}_mean * {name}_count, 1)[:, None] / {count}")
            line(f"{name}_delta = {name}_mean - {name}_whole")
            line(f"{name} = tl.sum({name}_m2 + {name}_count * {name}_delta * {name}_delta, 1)[:, None]")
        elif self.kind in ("argmax", "argmin"):
            self._end_position()
        else:
            reduced = _over_row(self.kind, f"{name}_all")
            line(f"{name} = ({reduced}).to({TYPES[self.stmt.dtype]})")
            if self._nan():
                _restore_nan(self.body, name, f"{name}_nan", self.stmt.dtype)

    def _end_position(self) -> None:
        line, name = self.body.line, self.name
        line(f"{name}_hit = {name}_all == {_over_row(self.kind[3:], f'{name}_all')}")
        if self.dtype.is_floating_point:
            line(f"{name}_nan = ({name}_all != {name}_all).to(tl.int32)")
            line(f"{name}_hit = tl.where({_over_row('max', f'{name}_nan')} > 0, {name}_nan > 0, {name}_hit)")
        line(f"{name} = tl.min(tl.where({name}_hit, {name}_at, {self.nowhere}), 1)[:, None].to(tl.int64)")
