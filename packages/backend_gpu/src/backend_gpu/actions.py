"""A program as a list of actions: between the schedule with its plan of memory and the Python source that runs.

Each action holds what it reads, makes and lets go as data, and writes its own lines, so that what is checked
(`check_program`) is what runs. Tensors are known by the variable that holds them; two variables may hold one memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .ir.index import Index
from .ir.loops import Loops
from .ir.nodes import Node


@dataclass(frozen=True)
class Operand:
    """A tensor for ATen or the caller: a variable as it is, or (with `shape`) a view of the memory that it holds."""

    name: str
    text: str
    shape: tuple[Index, ...] | None = None
    strides: tuple[Index, ...] = ()
    offset: Index = 0


@dataclass
class Take:
    """The arguments; and from their shapes the symbolic sizes: (name, source)."""

    names: list[str]
    tensors: dict[str, Node]
    sizes: list[tuple[str, str]] = field(default_factory=list)

    def lines(self) -> list[str]:
        taken = [f"{', '.join(self.names)}{',' if len(self.names) == 1 else ''} = args"] if self.names else []
        return [*taken, "args.clear()", *(f"{symbol} = {source}" for symbol, source in self.sizes)]


@dataclass
class Allocate:
    """A variable for a tensor: new memory, or what another variable (`source`) holds."""

    name: str
    node: Node
    source: str | None
    value: str

    def lines(self) -> list[str]:
        return [f"{self.name} = {self.value}" + ("" if self.source is None else "  # its memory is free again")]


@dataclass
class Launch:
    """A kernel over variables, one for each of its buffers, and numbers. `idle`: it has nothing to do."""

    launcher: str
    kernel: Loops
    tensors: list[str]
    numbers: list[str]
    idle: bool = False

    def lines(self) -> list[str]:
        call = f"{self.launcher}({', '.join([*self.tensors, *self.numbers])})"
        return [f"# nothing to do: {call}" if self.idle else call]


@dataclass
class Call:
    """A call of ATen. It makes variables, laid out as their nodes say, or writes into one that is there (`out`)."""

    target: object
    reads: list[Operand]
    source: str
    """The call as Python."""
    made: list[tuple[str, Node, int, str]] = field(default_factory=list)
    """Variable, node, which of the results, and what brings that into the node's layout, with `{}` for it."""
    out: tuple[str, Node] | None = None

    def lines(self) -> list[str]:
        if self.out is not None:
            return [self.source]
        holder = self.source if len(self.made) == 1 else "results"
        taken = [f"{name} = {text.format(holder + '[' + str(which) + ']')}" for name, _, which, text in self.made]
        return taken if len(self.made) == 1 else [f"results = {self.source}", *taken, "del results"]


@dataclass
class Drop:
    """Variables that are let go."""

    names: list[str]

    def lines(self) -> list[str]:
        return [f"del {', '.join(self.names)}"]


@dataclass
class Return:
    """What the program returns: tensors, and numbers as source."""

    values: list[Operand | str]

    def lines(self) -> list[str]:
        return [f"return [{', '.join(v if isinstance(v, str) else v.text for v in self.values)}]"]


Action = Take | Allocate | Launch | Call | Drop | Return


def source_of(actions: Sequence[Action]) -> str:
    """The Python source of a program."""
    return "def run(args):\n" + "".join(f"    {line}\n" for action in actions for line in action.lines())
