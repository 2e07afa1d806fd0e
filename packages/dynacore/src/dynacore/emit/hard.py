"""The hard instruction as plain Python: one template per neutral operation.

A template sees the operands as expressions and says how many it pops, the statements that run it, and what lies on the
stack afterwards. An operation without a template is run by the interpreter together with the rest of its frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bytecode_models import Instr, Op

from ..frames import NULL


@dataclass
class Hard:
    """`lines` run the instruction; `results` are the expressions it pushes, the last one handed to the continuation."""

    pops: int
    lines: list[str]
    results: list[str] = field(default_factory=list)
    branch: str = ""  # a condition: true goes to the jump's target
    exhausted: str = ""  # a condition: true leaves the loop
    raises: bool = False  # never goes on
    again: bool = False  # raises what was raised before: no traceback line is added for the frame


Template = Callable[[Callable[[int], str], list, Instr], Hard]
HARD: dict[Op, Template] = {}


def template(*ops: Op) -> Callable[[Template], Template]:
    """Register the template of neutral operations: `f(operand, stack, instr)`; operand(1) is the top of the stack."""

    def register(function: Template) -> Template:
        for op in ops:
            HARD[op] = function
        return function

    return register


def value(pops: int, text: str) -> Hard:
    """An instruction that pushes one result."""
    return Hard(pops, [f"r = {text}"], ["r"])


def effect(pops: int, text: str) -> Hard:
    """An instruction that pushes nothing."""
    return Hard(pops, [text])


#: operations whose text depends on their operands alone: how many are popped and the expression that is pushed
VALUES = {
    Op.LOAD_ATTR: (1, "{1}.{a}"),
    Op.LOAD_ITEM: (2, "{2}[{1}]"),
    Op.UNARY: (1, "{a} {1}"),
    Op.TO_BOOL: (1, "True if {1} else False"),
    Op.IS: (2, "{2} is {not_a}{1}"),
    Op.CONTAINS: (2, "{2} {not_a}in {1}"),
    Op.CONVERT: (1, "{a}({1})"),
    Op.GET_ITER: (1, "iter({1})"),
}
#: the same for those that push nothing: the statement
EFFECTS = {
    Op.STORE_ATTR: (2, "{1}.{a} = {2}"),
    Op.DELETE_ATTR: (1, "del {1}.{a}"),
    Op.STORE_ITEM: (3, "{2}[{1}] = {3}"),
    Op.DELETE_ITEM: (2, "del {2}[{1}]"),
}


@template(*VALUES, *EFFECTS)
def by_text(x: Any, stack: list, i: Instr) -> Hard:
    pops, text = VALUES.get(i.op) or EFFECTS[i.op]
    filled = text.format(None, *[x(k) for k in range(1, pops + 1)], a=i.a, not_a="not " if i.a is True else "")
    return value(pops, filled) if i.op in VALUES else effect(pops, filled)


@template(Op.LOAD_METHOD)
def load_method(x: Any, stack: list, i: Instr) -> Hard:
    if i.b == "null_first":
        return Hard(1, [f"r = {x(1)}.{i.a}"], ["NULL", "r"])
    return Hard(1, [f"r = {x(1)}.{i.a}"], ["r", "NULL"])


@template(Op.LOAD_SUPER)
def load_super(x: Any, stack: list, i: Instr) -> Hard:
    text = f"r = {x(3)}({x(2)}, {x(1)}).{i.a}"
    if not i.b[0]:
        return Hard(3, [text], ["r"])
    return Hard(3, [text], ["NULL", "r"] if i.c == "null_first" else ["r", "NULL"])


@template(Op.BINARY)
def binary(x: Any, stack: list, i: Instr) -> Hard:
    if i.b:
        return Hard(2, [f"r = {x(2)}", f"r {i.a}= {x(1)}"], ["r"])
    return value(2, f"{x(2)} {i.a} {x(1)}")


@template(Op.COMPARE)
def compare(x: Any, stack: list, i: Instr) -> Hard:
    text = f"{x(2)} {i.a} {x(1)}"
    return value(2, f"True if {text} else False" if i.b else text)


@template(Op.POP)
def pop(x: Any, stack: list, i: Instr) -> Hard:
    return Hard(1, ["pass"])


@template(Op.POP_ITER)
def pop_iter(x: Any, stack: list, i: Instr) -> Hard:
    return Hard(i.a, ["pass"])


@template(Op.STORE_LOCAL)
def store_local(x: Any, stack: list, i: Instr) -> Hard:
    return effect(1, f"s[{i.a}] = {'UNBOUND' if stack[-1] is NULL else x(1)}")


BUILDERS = {"tuple": "({})", "list": "[{}]", "set": "{{*({})}}", "string": "''.join(({}))", "slice": "slice({})"}


@template(Op.BUILD)
def build(x: Any, stack: list, i: Instr) -> Hard:
    n = i.b
    if i.a == "dict":
        return value(2 * n, "{" + ", ".join(f"{x(2 * k)}: {x(2 * k - 1)}" for k in range(n, 0, -1)) + "}")
    if i.a == "const_key_dict":
        return value(n + 1, f"dict(zip({x(1)}, ({', '.join(x(k) for k in range(n + 1, 1, -1))},)))")
    return value(n, BUILDERS[i.a].format("".join(f"{x(k)}, " for k in range(n, 0, -1))))


@template(Op.APPEND)
def append(x: Any, stack: list, i: Instr) -> Hard:
    if i.a == "dict":
        return effect(2, f"{x(2 + i.b)}[{x(2)}] = {x(1)}")
    return effect(1, f"{x(1 + i.b)}.{'append' if i.a == 'list' else 'add'}({x(1)})")


@template(Op.EXTEND)
def extend(x: Any, stack: list, i: Instr) -> Hard:
    owner = x(1 + i.b)
    if i.a == "dict_update":
        return effect(1, f"{owner}.update({{**{x(1)}}})")
    if i.a == "dict_merge":
        function, _ = callee(x, stack, i.b + 2, "callable_first" if stack[-i.b - 3] is NULL else "null_first")
        return Hard(1, [f"f = stand_in({function})", f"{owner}.update(f(**{owner}, **{x(1)}))"])
    return effect(1, f"{owner}.extend([*{x(1)}])" if i.a == "list" else f"{owner}.update({x(1)})")


@template(Op.UNPACK)
def unpack(x: Any, stack: list, i: Instr) -> Hard:
    total = i.a + (0 if i.b is None else i.b + 1)
    names = [f"r{k}" for k in range(total)]
    if not names:
        return effect(1, f"[] = {x(1)}")
    targets = [f"*{name}" if i.b is not None and k == i.a else name for k, name in enumerate(names)]
    return Hard(1, [f"{', '.join(targets)}, = {x(1)}"], names[::-1])


@template(Op.FORMAT)
def format_(x: Any, stack: list, i: Instr) -> Hard:
    return value(2, f"format({x(2)}, {x(1)})") if i.a else value(1, f"format({x(1)}, '')")


def callee(x: Any, stack: list, at: int, shape: str) -> tuple[str, list[str]]:
    """The callable and receiver below `at` arguments."""
    second, first = stack[-at - 1], stack[-at - 2]
    if shape == "null_first":
        return (x(at + 1), []) if first is NULL else (x(at + 2), [x(at + 1)])
    return (x(at + 2), []) if second is NULL else (x(at + 2), [x(at + 1)])


@template(Op.CALL)
def call(x: Any, stack: list, i: Instr) -> Hard:
    function, args = callee(x, stack, i.a, i.c)
    args += [x(k) for k in range(i.a, 0, -1)]
    names = i.b or ()
    if names:
        args[-len(names) :] = [f"{name}={text}" for name, text in zip(names, args[-len(names) :])]
    return value(i.a + 2, f"{function}({', '.join(args)})")


@template(Op.CALL_EX)
def call_ex(x: Any, stack: list, i: Instr) -> Hard:
    at = 2 if i.a else 1
    function, args = callee(x, stack, at, i.c)
    args.append(f"*{x(at)}")
    if i.a:
        args.append(f"**{x(1)}")
    return value(at + 2, f"{function}({', '.join(args)})")


@template(Op.IMPORT_NAME)
def import_name(x: Any, stack: list, i: Instr) -> Hard:
    return value(2, f"__import__({i.a!r}, GLOBALS, None, {x(1)}, {x(2)})")


@template(Op.FOR_ITER)
def for_iter(x: Any, stack: list, i: Instr) -> Hard:
    return Hard(0, [f"r = next({x(i.a)}, END)"], ["r"], exhausted="r is END")


@template(Op.JUMP_IF)
def jump_if(x: Any, stack: list, i: Instr) -> Hard:
    condition = {"true": "{}", "false": "not {}", "none": "{} is None", "not_none": "{} is not None"}[i.a]
    return Hard(1, [f"r = {condition.format(x(1))}"], branch="r")


@template(Op.RAISE)
def raise_(x: Any, stack: list, i: Instr) -> Hard:
    if i.a == 0:
        return Hard(0, ["raise"], raises=True, again=True)
    return Hard(i.a, [f"raise {x(1)}" if i.a == 1 else f"raise {x(2)} from {x(1)}"], raises=True)


@template(Op.RERAISE)
def reraise(x: Any, stack: list, i: Instr) -> Hard:
    return Hard(1, [f"failed = {x(1)}"], raises=True, again=True)


@template(Op.ENTER_WITH)
def enter_with(x: Any, stack: list, i: Instr) -> Hard:
    names = ("__enter__", "__exit__")
    lines = [f"(r, r0), e = special_methods({x(1)}, {names})", "if e is not None:", "    raise e", "r = r()"]
    return Hard(1, lines, ["r0", "r"])


@template(Op.LOAD_SPECIAL)
def load_special(x: Any, stack: list, i: Instr) -> Hard:
    lines = [f"(r,), e = special_methods({x(1)}, {(i.a,)})", "if e is not None:", "    raise e"]
    return Hard(1, lines, ["r", "NULL"])


@template(Op.CALL_EXIT)
def call_exit(x: Any, stack: list, i: Instr) -> Hard:
    receiver = f"{x(i.a - 1)}, " if i.b and stack[-i.a + 1] is not NULL else ""
    return value(0, f"{x(i.a)}({receiver}type({x(1)}), {x(1)}, {x(1)}.__traceback__)")


def special_methods(manager: Any, names: tuple[str, ...]) -> tuple[tuple[Any, ...], BaseException | None]:
    """Methods of a context manager, found on its type as by `with`, and None; or the error that `with` raises."""
    cls = type(manager)
    methods = []
    for name in names:
        for base in cls.__mro__:
            if name in base.__dict__:
                method = base.__dict__[name]
                methods.append(method.__get__(manager, cls) if hasattr(type(method), "__get__") else method)
                break
        else:
            return (None,) * len(names), error_of_with(manager)
    return tuple(methods), None


def error_of_with(manager: Any) -> BaseException:
    """What the interpreter says of something that is no context manager, none of whose methods it calls."""
    try:
        with manager:
            raise AssertionError(f"{manager!r} is a context manager")
    except BaseException as error:
        return error.with_traceback(None)


def stand_in(function: Any) -> Any:
    """A function that errors about keyword arguments call by the name of `function`."""

    def f(**keywords: Any) -> dict[str, Any]:
        return keywords

    f.__module__ = getattr(function, "__module__", None) or "builtins"
    f.__qualname__ = getattr(function, "__qualname__", None) or str(function)
    return f
