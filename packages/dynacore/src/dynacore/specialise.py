"""What compilers take for granted about the inputs of a graph, and eager execution does not.

AOTAutograd writes a Python number that it is called with into what it makes; so each combination of numbers gets an
artifact of its own, with the numbers written into the graph, where the compiler can use them. Sizes that vary, and
ints, are symbols to it, and floats are tensors where a tensor does the same; what it relies on about symbols decides
which artifact a call gets. And where a graph changes an input in place, what it makes is right only for inputs that
share memory as the first ones did; so inputs that share memory run the graph as it is.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from . import logs
from .torch_api import graph_module, open_inputs, storage_key

LIMIT = 8
"""How many artifacts one graph gets for different numbers and relations of sizes. Past them it runs as it is."""

Compiler = Callable[[torch.fx.GraphModule, Sequence[Any]], tuple[Callable[..., Any], bool]]
"""Gives the compiled graph, and whether it changes an input in place."""


def specialised(
    gm: torch.fx.GraphModule, example_inputs: Sequence[Any], compiler: Compiler
) -> Callable[..., Any]:
    """Compile a graph whose inputs may be Python numbers, may have sizes that vary, and may share memory."""
    if isinstance(example_inputs, OpenInputs):
        example_inputs = example_inputs.real
    artifacts = _Artifacts(gm, compiler, example_inputs)
    first = artifacts.get(example_inputs)
    return first if first is not None and artifacts.always_right else artifacts.run


@dataclass(frozen=True)
class Varying:
    """How the sizes of a graph's inputs, and the ints among them, vary together.

    An expression is an int, ("leaf", index of the leaf), or (operator's symbol, expression, expression).
    """

    leaves: tuple[tuple[int, bool], ...]
    """Numbers that vary on their own: the value in the captured call, and whether it is a size, of at least 2."""
    inputs: tuple[Any, ...]
    """For each input: None where nothing varies, the expression of an int, or those of a tensor's (sizes, strides)."""
    unbacked: bool = False
    """Whether operations give numbers, or tensors whose sizes depend on values."""

    def places(self) -> list[tuple[int, int]] | None:
        """For each leaf an input that shows it, for `shown`: (input, which number). None where one is missing."""
        found: dict[Any, tuple[int, int]] = {}
        for i, varies in enumerate(self.inputs):
            sizes, strides = varies if varies is not None and is_layout(varies) else ((), ())
            for dim, size in enumerate(sizes):
                found.setdefault(size, (i, dim))
            for dim, step in enumerate(strides):
                found.setdefault(step, (i, -2 - dim))
            if varies is not None and not is_layout(varies):
                found[varies] = (i, -1)
        places = [found.get(("leaf", k)) for k in range(len(self.leaves))]
        return None if None in places else places  # type: ignore[return-value]


def shown(value: Any, which: int) -> int:
    """A number that an input shows: a tensor's size, an int itself at -1, below that a tensor's stride."""
    if which == -1:
        return value
    return value.shape[which] if which >= 0 else value.stride(-2 - which)


def is_layout(varies: Any) -> bool:
    """Whether this is said of a tensor, not of an int."""
    return type(varies[0]) is tuple


class OpenInputs(Sequence[Any]):
    """Example inputs with symbolic sizes, made when somebody looks at them: most backends don't."""

    def __init__(self, inputs: Sequence[Any], varying: Varying) -> None:
        self.real = inputs
        self._make = functools.cache(lambda: open_inputs(inputs, varying.leaves, varying.inputs)[0])

    def __len__(self) -> int:
        return len(self.real)

    def __getitem__(self, index: Any) -> Any:
        return self._make()[index]


class _Artifacts:
    def __init__(
        self, gm: torch.fx.GraphModule, compiler: Compiler, example_inputs: Sequence[Any]
    ) -> None:
        self._gm = gm
        self._compiler = compiler
        self._varying: Varying | None = gm.meta.get("varying")
        self._places = self._varying.places() if self._varying is not None else None
        followed = self._varying.inputs if self._varying is not None and self._places is not None else ()
        positions = range(len(example_inputs))
        self._numbers = [
            i
            for i in positions
            if isinstance(example_inputs[i], (bool, int, float, complex)) and not (followed and followed[i] is not None)
        ]
        self._floats = open_floats(gm, example_inputs)
        self._numbers = [i for i in self._numbers if i not in self._floats]
        self._others = [i for i in positions if i not in self._numbers]
        self._made: dict[Any, list[tuple[Callable[..., Any] | None, Callable[..., Any]]]] = {}
        self._count = 0
        self._mutates = False
        self._lock = threading.Lock()

    @property
    def always_right(self) -> bool:
        """Whether the one artifact is right for all inputs."""
        closed = self._numbers or self._floats or self._mutates
        return not closed and all(made[0][0] is None for made in self._made.values())

    def run(self, *inputs: Any) -> Any:
        artifact = self.get(inputs)
        if artifact is None:
            return self._gm.forward(*inputs)
        given = self._with_tensors(inputs)
        return artifact(*[given[i] for i in self._others])

    def _with_tensors(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The inputs with open floats as tensors."""
        if not self._floats:
            return inputs
        given = list(inputs)
        for i, dtype in self._floats.items():
            given[i] = torch.scalar_tensor(given[i], dtype=dtype)
        return given

    def get(self, inputs: Sequence[Any]) -> Callable[..., Any] | None:
        """The artifact for these inputs; None where the graph has to run as it is."""
        if self._mutates and share_memory(inputs):
            return None
        key = tuple(_key(inputs[i]) for i in self._numbers)
        if (artifact := self._find(key, inputs)) is not None:
            return artifact
        with self._lock:
            if self._find(key, inputs) is None and self._count < LIMIT:
                self._make(key, inputs)
            return self._find(key, inputs)

    def _find(self, key: Any, inputs: Sequence[Any]) -> Callable[..., Any] | None:
        """An artifact that was made for these numbers and whose conditions on sizes hold."""
        for holds, artifact in self._made.get(key, ()):
            if holds is None or holds(inputs):
                return artifact
        return None

    def _make(self, key: Any, inputs: Sequence[Any]) -> None:
        inputs = self._with_tensors(inputs)
        numbers = {i: inputs[i] for i in self._numbers}
        rest = [inputs[i] for i in self._others]
        graph = with_constants(self._gm, numbers)
        self._count += 1
        if self._varying is None:
            holds, (artifact, mutates) = None, self._compiler(graph, rest)
        elif self._varying.unbacked:
            holds, (artifact, mutates) = self._make_unbacked(graph, inputs, self._varying)
        elif self._places is None:
            holds, (artifact, mutates) = self._make_closed(inputs)
        else:
            holds, (artifact, mutates) = self._make_open(graph, inputs, self._varying, self._places)
        self._mutates |= mutates
        if not (mutates and share_memory(inputs)):
            self._made.setdefault(key, []).append((holds, artifact))

    def _make_open(
        self, graph: torch.fx.GraphModule, inputs: Sequence[Any], varying: Varying, places: list[tuple[int, int]]
    ) -> Any:
        """An artifact for all sizes that meet what the compiler relied on."""
        leaves = [
            (shown(inputs[i], which), is_size)
            for (i, which), (_, is_size) in zip(places, varying.leaves, strict=True)
        ]
        # Numbers that only tensors show are inputs of their own, too: a backward graph gets no others to compute with.
        extra = [k for k, (_, which) in enumerate(places) if which != -1]
        examples, conditions = open_inputs(
            [*(leaves[k][0] for k in extra), *inputs], leaves, [*(("leaf", k) for k in extra), *varying.inputs]
        )
        numbers, examples = examples[: len(extra)], examples[len(extra) :]
        try:
            with_numbers = with_inputs_before(graph, len(extra))
            artifact, mutates = self._compiler(with_numbers, [*numbers, *(examples[i] for i in self._others)])
        except Exception:  # a compiler that doesn't know symbols, perhaps; if not, it raises again
            if varying.unbacked:
                raise
            return self._make_closed(inputs)
        read = [(self._others.index(places[k][0]), places[k][1]) for k in extra]

        def run(*given: Any) -> Any:
            return artifact(*[shown(given[at], which) for at, which in read], *given)

        compiled = run if extra else artifact, mutates
        condition = conditions()
        if condition is None:
            return None, compiled

        def holds(given: Sequence[Any]) -> bool:
            return condition(*[shown(given[i], which) for i, which in places])

        return holds, compiled

    def _make_unbacked(self, graph: torch.fx.GraphModule, inputs: Sequence[Any], varying: Varying) -> Any:
        """An artifact of a graph that gives numbers; many a compiler wants to know them, and then it runs as it is."""
        try:
            if self._places is None:
                raise LookupError("a size that no input shows")
            return self._make_open(graph, inputs, varying, self._places)
        except Exception as error:
            reason = str(error).partition("\n")[0]
            logs.warn_once(
                ("unbacked", type(error), reason),
                "a graph whose results' sizes depend on values can't be compiled, and runs operation by operation:\n"
                f"  {type(error).__name__}: {reason}",
            )
            return None, (graph.forward, False)

    def _make_closed(self, inputs: Sequence[Any]) -> Any:
        """An artifact for these very sizes and ints."""
        ints = [i for i in self._others if type(inputs[i]) is int]
        graph = with_constants(self._gm, {i: inputs[i] for i in (*self._numbers, *ints)})
        artifact, mutates = self._compiler(graph, [inputs[i] for i in self._others if i not in ints])
        places = [at for at, i in enumerate(self._others) if i not in ints]

        def run(*given: Any) -> Any:
            return artifact(*[given[at] for at in places])

        return same_sizes(inputs), (run, mutates)


def open_floats(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> dict[int, torch.dtype]:
    """The floats that may be tensors of that dtype instead: each operation that they are in gives the same with one."""
    nodes = [node for node in gm.graph.nodes if node.op == "placeholder"]
    found = {}
    for i, (node, value) in enumerate(zip(nodes, example_inputs, strict=True)):
        dtypes = {_other_dtype(user) for user in node.users} if type(value) is float else set()
        if len(dtypes) == 1 and dtypes <= {torch.float32, torch.float64}:
            found[i] = dtypes.pop()
    return found


#: operators on a tensor and a number that take a tensor without dimensions for the number
WITH_A_NUMBER = frozenset("add sub mul truediv div eq ne lt le gt ge iadd isub imul itruediv".split())


def _other_dtype(node: torch.fx.Node) -> torch.dtype | None:
    """The dtype of the tensor that an operation combines with one number; None where it is another operation."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    operands = [argument for argument in node.args if isinstance(argument, torch.fx.Node)]
    if name.strip("_") not in WITH_A_NUMBER or len(node.args) != 2 or node.kwargs or len(operands) != 2:
        return None
    if name.strip("_") in ("truediv", "div", "itruediv") and "example_value" not in operands[0].meta:
        return None  # a number divided by a tensor is multiplied with the reciprocal
    tensors = [operand.meta["example_value"] for operand in operands if "example_value" in operand.meta]
    return tensors[0].dtype if len(tensors) == 1 else None


def same_sizes(inputs: Sequence[Any]) -> Callable[[Sequence[Any]], bool]:
    """Whether tensors are laid out as these are, and ints are the same."""
    tensors = [(i, x.shape, x.stride()) for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)]
    ints = [(i, x) for i, x in enumerate(inputs) if type(x) is int]

    def holds(given: Sequence[Any]) -> bool:
        return all(given[i].shape == shape and given[i].stride() == stride for i, shape, stride in tensors) and all(
            given[i] == value for i, value in ints
        )

    return holds


def _key(value: Any) -> Any:
    """Equal for numbers that no operation tells apart: 1, 1.0 and True differ, as do 0.0 and -0.0."""
    return type(value), repr(value)


def share_memory(inputs: Sequence[Any]) -> bool:
    """Whether two of the tensors among these have one storage, or tell nothing of theirs."""
    seen = set()
    for value in inputs:
        if isinstance(value, torch.Tensor):
            try:
                key = storage_key(value)
            except (NotImplementedError, RuntimeError):
                return True
            if key in seen:
                return True
            seen.add(key)
    return False


def with_inputs_before(gm: torch.fx.GraphModule, count: int) -> torch.fx.GraphModule:
    """A copy of the graph with so many more inputs, which it doesn't use, before its own."""
    graph = torch.fx.Graph()
    for k in range(count):
        graph.placeholder(f"number{k}")
    graph.output(graph.graph_copy(gm.graph, {}))
    return torch.fx.GraphModule(gm, graph)


def with_constants(gm: torch.fx.GraphModule, constants: Mapping[int, Any]) -> torch.fx.GraphModule:
    """A copy of the graph in which the inputs at these positions are constants."""
    placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
    graph = torch.fx.Graph()
    output = graph.graph_copy(gm.graph, {placeholders[i]: value for i, value in constants.items()})
    graph.output(output)
    return graph_module(gm, graph)
