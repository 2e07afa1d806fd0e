"""dynacore from scratch: a small capture engine that runs, to be read from top to bottom.

It captures functions of tensors and numbers into `torch.fx` graphs, guards what it relied on, and leaves what it can't
express to the interpreter. Everything is here that makes the approach work; dynacore is this, done for all of Python.
Each part says where dynacore does the same. Run it with `python docs/from_scratch.py`; the test suite does.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import torch

from bytecode_models import NULL, UNBOUND, Instr, Op, decode, resume_function

# ---- 1. Programs ----------------------------------------------------------------------------------------------------
#
# CPython compiles a function to bytecode, another one in each release. `bytecode_models` reads it as *neutral*
# instructions, which are the same everywhere, so nothing below knows which Python runs.


def example(x, n):
    y = torch.sin(x) * n
    return y.sum() + 1


def show(function: FunctionType) -> None:
    """Print the neutral instructions."""
    for ins in decode(function.__code__).instrs:
        print(f"  {ins.index:3} line {ins.line}: {ins.op.name} {'' if ins.a is None else ins.a!r}")


# ---- 2. Values ------------------------------------------------------------------------------------------------------
#
# We execute the instructions one by one, as the interpreter would, but on *values* that stand for objects. What is
# known now and stays so as long as the guards hold is `Known`. A tensor is `Traced`: a node of the graph, with a tensor
# on the device "meta", which has a shape and a dtype but no data. (dynacore: values.py, with many classes.)


@dataclass(frozen=True)
class Known:
    obj: Any


@dataclass(frozen=True)
class Traced:
    node: torch.fx.Node
    meta: torch.Tensor


@dataclass
class Steps:
    """An iterator over numbers that are known: where it stands is a fact of the capture, not of the call."""

    items: range
    at: int = 0


class Break(Exception):
    """This instruction can't be captured. Not an error: the interpreter will run it."""


# ---- 3. Guards ------------------------------------------------------------------------------------------------------
#
# Whatever capture reads from outside, it relies on. Each fact becomes a guard: a function of the call's arguments.
# (dynacore: sources.py keeps them as a tree, csrc/guard_tree.c walks it, guards/twin.py is the same in Python.)

NUMBERS = (int, float, bool, str, type(None))
Guard = Callable[[tuple], bool]


def guard_tensor(index: int, seen: torch.Tensor) -> Guard:
    """The argument is a tensor with the same metadata."""
    facts = (seen.shape, seen.stride(), seen.dtype, seen.device, seen.requires_grad)

    def holds(args: tuple) -> bool:
        x = args[index]
        return type(x) is type(seen) and (x.shape, x.stride(), x.dtype, x.device, x.requires_grad) == facts

    return holds


def guard_number(index: int, seen: Any) -> Guard:
    """The argument is the same constant, not only an equal one: 1 isn't True."""
    return lambda args: type(args[index]) is type(seen) and args[index] == seen


def guard_global(function: FunctionType, name: str, seen: Any) -> Guard:
    """The name still means that object."""
    return lambda args: lookup(function, name) is seen


def lookup(function: FunctionType, name: str) -> Any:
    """A global of the function, or else a builtin."""
    namespace = function.__globals__
    return namespace[name] if name in namespace else function.__builtins__[name]  # type: ignore[attr-defined]


# ---- 4. The machine -------------------------------------------------------------------------------------------------
#
# It has what a frame has: slots for local variables, a value stack, a position. It also has the graph that grows, and
# the guards. (dynacore: frames.py, machine/core.py. Its handlers hold no semantics: those are in objects/, once.)


@dataclass
class Machine:
    function: FunctionType
    slots: list[Any]
    stack: list[Any] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    graph: torch.fx.Graph = field(default_factory=torch.fx.Graph)
    inputs: list[int] = field(default_factory=list)  # which arguments the graph takes

    def pop(self, n: int) -> list[Any]:
        """The top `n` items, the lowest first."""
        items = self.stack[len(self.stack) - n :]
        del self.stack[len(self.stack) - n :]
        return items

    def argument(self, index: int, obj: Any) -> Any:
        """What stands for an argument of the call."""
        if type(obj) is torch.Tensor:
            self.guards.append(guard_tensor(index, obj))
            self.inputs.append(index)
            return Traced(self.graph.placeholder(f"x{index}"), obj.to("meta"))
        if type(obj) in NUMBERS:
            self.guards.append(guard_number(index, obj))
            return Known(obj)
        raise Break(f"an argument of type {type(obj).__name__}")

    def apply(self, function: Callable, args: list[Any], kwargs: dict[str, Any] | None = None) -> Any:
        """Call a function that only computes: on tensors it becomes a node, on known objects it is called now."""
        named = kwargs or {}
        values = [*args, *named.values()]
        if not all(isinstance(v, (Known, Traced)) for v in values):
            raise Break("a call with something else than tensors and numbers")
        real = [v.meta if isinstance(v, Traced) else v.obj for v in args]
        result = function(*real, **{k: v.meta if isinstance(v, Traced) else v.obj for k, v in named.items()})
        if not any(isinstance(v, Traced) for v in values):
            return Known(result)
        if type(result) is not torch.Tensor:
            raise Break(f"{function} gives no tensor")
        nodes = [v.node if isinstance(v, Traced) else v.obj for v in args]
        node = self.graph.call_function(
            function, tuple(nodes), {k: v.node if isinstance(v, Traced) else v.obj for k, v in named.items()}
        )
        return Traced(node, result)

    def truth(self, value: Any) -> bool:
        """A branch needs to know now. What a tensor holds is known only when the graph has run."""
        if isinstance(value, Known):
            return bool(value.obj)
        raise Break("a branch on a tensor's value")


# ---- 5. Instructions ------------------------------------------------------------------------------------------------
#
# One small function for each operation. It gets the machine and the instruction, and gives the index to go on at where
# that isn't the next one. What has no function here breaks. (dynacore: machine/handlers_*.py)

HANDLERS: dict[Op, Callable[[Machine, Instr], int | None]] = {}


def on(*ops: Op) -> Callable:
    """Register a handler."""

    def register(handler: Callable) -> Callable:
        HANDLERS.update(dict.fromkeys(ops, handler))
        return handler

    return register


@on(Op.NOP, Op.START)
def nothing(m: Machine, ins: Instr) -> None:
    pass


@on(Op.PUSH_NULL)
def push_null(m: Machine, ins: Instr) -> None:
    m.stack.append(NULL)


@on(Op.POP)
def pop(m: Machine, ins: Instr) -> None:
    m.stack.pop()


@on(Op.COPY)
def copy(m: Machine, ins: Instr) -> None:
    m.stack.append(m.stack[-ins.a])


@on(Op.SWAP)
def swap(m: Machine, ins: Instr) -> None:
    m.stack[-1], m.stack[-ins.a] = m.stack[-ins.a], m.stack[-1]


@on(Op.LOAD_CONST)
def load_const(m: Machine, ins: Instr) -> None:
    m.stack.append(Known(ins.a))


@on(Op.LOAD_LOCAL)
def load_local(m: Machine, ins: Instr) -> None:
    if m.slots[ins.a] is UNBOUND:
        raise Break("an unbound local: the interpreter knows how to say that")
    m.stack.append(m.slots[ins.a])


@on(Op.STORE_LOCAL)
def store_local(m: Machine, ins: Instr) -> None:
    m.slots[ins.a] = m.stack.pop()


@on(Op.LOAD_GLOBAL)
def load_global(m: Machine, ins: Instr) -> None:
    obj = lookup(m.function, ins.a)
    m.guards.append(guard_global(m.function, ins.a, obj))
    m.stack.append(Known(obj))


@on(Op.LOAD_ATTR)
def load_attr(m: Machine, ins: Instr) -> None:
    (owner,) = m.pop(1)
    if not (isinstance(owner, Known) and owner.obj is torch):
        raise Break("attributes of anything but torch")  # dynacore: objects/attributes.py, for every object
    m.stack.append(Known(getattr(torch, ins.a)))


@on(Op.LOAD_METHOD)
def load_method(m: Machine, ins: Instr) -> None:
    (owner,) = m.pop(1)
    if isinstance(owner, Traced):
        pair = [Known(getattr(torch.Tensor, ins.a)), owner]
    elif isinstance(owner, Known) and owner.obj is torch:
        pair = [NULL, Known(getattr(torch, ins.a))] if ins.b == "null_first" else [Known(getattr(torch, ins.a)), NULL]
    else:
        raise Break("a method of anything but a tensor")
    m.stack += pair


@on(Op.UNARY)
def unary(m: Machine, ins: Instr) -> None:
    function = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "not": operator.not_}[ins.a]
    (x,) = m.pop(1)
    m.stack.append(Known(not m.truth(x)) if ins.a == "not" else m.apply(function, [x]))


BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "@": operator.matmul,
          "**": operator.pow, "//": operator.floordiv, "%": operator.mod}  # fmt: skip
COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
           "!=": operator.ne}  # fmt: skip


@on(Op.BINARY, Op.COMPARE)
def binary(m: Machine, ins: Instr) -> None:
    function = (BINARY if ins.op is Op.BINARY else COMPARE).get(ins.a)
    x, y = m.pop(2)
    if function is None or ins.op is Op.BINARY and ins.b and isinstance(x, Traced):
        raise Break("this operator, or one that changes a tensor in place")
    result = m.apply(function, [x, y])
    m.stack.append(Known(m.truth(result)) if ins.op is Op.COMPARE and ins.b else result)


@on(Op.TO_BOOL)
def to_bool(m: Machine, ins: Instr) -> None:
    (x,) = m.pop(1)
    m.stack.append(Known(m.truth(x)))


@on(Op.CALL)
def call(m: Machine, ins: Instr) -> None:
    first, second, *args = m.pop(ins.a + 2)
    # A method comes with its object; for a function one of both items is NULL: the instruction's shape says which.
    function, args = (first, [second, *args]) if NULL not in (first, second) else (
        second if first is NULL else first, args)  # fmt: skip
    if not (isinstance(function, Known) and (is_pure(function.obj) or function.obj is range)):
        raise Break(f"a call of {function}")  # dynacore: Python functions are entered, C functions have rules
    names = ins.b or ()
    kwargs = dict(zip(names, args[len(args) - len(names) :]))
    m.stack.append(m.apply(function.obj, args[: len(args) - len(names)], kwargs))


def is_pure(function: Any) -> bool:
    """Whether a function of torch only computes: those that change a tensor end in an underscore."""
    name = getattr(function, "__name__", "_")
    return getattr(torch, name, None) is function or getattr(torch.Tensor, name, None) is function


@on(Op.GET_ITER)
def get_iter(m: Machine, ins: Instr) -> None:
    (x,) = m.pop(1)
    if not (isinstance(x, Known) and type(x.obj) is range):
        raise Break("a loop over anything but a range")
    m.stack.append(Steps(x.obj))


@on(Op.FOR_ITER)
def for_iter(m: Machine, ins: Instr) -> int | None:
    steps = m.stack[-ins.a]  # an iterator of 3.15 is two stack items, itself and a NULL
    if steps.at == len(steps.items):
        if ins.b:
            m.pop(ins.a)
        return ins.target
    m.stack.append(Known(steps.items[steps.at]))
    m.stack[-ins.a - 1] = Steps(steps.items, steps.at + 1)
    return None


@on(Op.POP_ITER)
def pop_iter(m: Machine, ins: Instr) -> None:
    m.pop(ins.a)


@on(Op.JUMP)
def jump(m: Machine, ins: Instr) -> int | None:
    return ins.target


@on(Op.JUMP_IF)
def jump_if(m: Machine, ins: Instr) -> int | None:
    (x,) = m.pop(1)
    none = isinstance(x, Known) and x.obj is None
    if ins.a in ("none", "not_none"):
        return ins.target if none == (ins.a == "none") else None
    return ins.target if m.truth(x) == (ins.a == "true") else None


# ---- 6. One capture -------------------------------------------------------------------------------------------------
#
# Run until the function returns, or until an instruction breaks: then the machine is put back to before it. Either way
# what the frame holds is rebuilt from the graph's outputs. Behind a return there is a result. Behind a break there is a
# frame in its middle, and `resume_function` makes a function of it, which the *interpreter* runs.
# (dynacore: emit/ writes all this as Python code. It runs only the one instruction that breaks and captures on behind
# it: docs/deoptimisation.md.)


@dataclass
class Entry:
    guards: list[Guard]
    graph: torch.fx.GraphModule
    run: Callable[[tuple], Any]


def capture(function: FunctionType, args: tuple) -> Entry:
    """Execute one call symbolically."""
    program = decode(function.__code__)
    m = Machine(function, [UNBOUND] * len(program.names))
    m.slots[: len(args)] = [m.argument(i, obj) for i, obj in enumerate(args)]
    at = 0
    while (ins := program.instrs[at]).op is not Op.RETURN:
        saved = list(m.stack)
        try:
            target = HANDLERS.get(ins.op, refuse)(m, ins)
        except Break:
            m.stack = saved
            return finish(m, at)
        at = at + 1 if target is None else target
    return finish(m, None)


def refuse(m: Machine, ins: Instr) -> None:
    raise Break(ins.op.name)


def finish(m: Machine, at: int | None) -> Entry:
    """The entry: a graph of all tensors that are still needed, and what comes behind it."""
    values = m.stack[-1:] if at is None else [*m.slots, *m.stack]
    outputs = [v for v in values if isinstance(v, Traced)]
    m.graph.output(tuple(v.node for v in outputs))
    graph = torch.fx.GraphModule({}, m.graph)
    n = len(m.slots)

    def run(args: tuple) -> Any:
        tensors = iter(graph(*[args[i] for i in m.inputs]))
        objects = [real(v, tensors) for v in values]
        if at is None:
            return objects[0]
        return resume_function(m.function.__code__, at, m.function.__globals__, objects[:n], objects[n:])()

    return Entry(m.guards, graph, run)


def real(value: Any, tensors: Any) -> Any:
    """The object that a value stands for, in this call."""
    if isinstance(value, Traced):
        return next(tensors)
    if isinstance(value, Steps):
        return iter(value.items[value.at :])
    return value.obj if isinstance(value, Known) else value


# ---- 7. compile -----------------------------------------------------------------------------------------------------
#
# A call uses the first entry whose guards hold; else it makes one. (dynacore: csrc/compiled.c, capture.py)


def compile(function: FunctionType) -> Any:
    """`function`, captured for each kind of call. Positional arguments only."""
    entries: list[Entry] = []

    def compiled(*args: Any) -> Any:
        for entry in entries:
            if all(holds(args) for holds in entry.guards):
                return entry.run(args)
        try:
            entries.insert(0, capture(function, args))
        except Break:
            return function(*args)  # not even the arguments can be expressed
        return entries[0].run(args)

    compiled.entries = entries  # type: ignore[attr-defined]
    return compiled


# ---- 8. Does it work? -----------------------------------------------------------------------------------------------
#
# Plain Python is the oracle, here as in all of dynacore's tests.


def branches(x, n):
    for i in range(n):
        x = x * 2 + i
    if x.sum() > 10:
        return x - 1
    return x


def check(function: FunctionType, *calls: tuple) -> Any:
    """Compare both on every call."""
    compiled = compile(function)
    for args in calls:
        assert torch.equal(compiled(*args), function(*args)), (function, args)
    return compiled


def main() -> None:
    print("The neutral instructions of `example`:")
    show(example)
    x = torch.arange(3.0)
    compiled = check(example, (x, 2), (x + 1, 2), (x, 3), (torch.ones(5), 2))
    print(f"{len(compiled.entries)} entries; the graph of the first call:")
    print(compiled.entries[-1].graph.code.strip())
    assert len(compiled.entries) == 3  # other values of a tensor are no reason to capture anew; n = 3 and sizes are

    compiled = check(branches, (x, 3), (-x, 3), (x * 10, 3))
    print("`branches` up to the test of a tensor, its loop unrolled; the interpreter runs the rest:")
    print(compiled.entries[0].graph.code.strip())
    assert len(compiled.entries) == 1 and not any(n.op == "call_method" for n in compiled.entries[0].graph.graph.nodes)


if __name__ == "__main__":
    main()
