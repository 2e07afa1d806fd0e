"""Why capture stopped: the `Break` that rules raise, and the table of stable reason codes behind it."""

from __future__ import annotations

import linecache
from dataclasses import dataclass

from .shims import FILENAME as SHIM_FILENAME


@dataclass(frozen=True, slots=True)
class Reason:
    """One row of the table: a stable code, what it means, and what the user can do about it."""

    code: str
    summary: str
    hint: str


class Break(Exception):
    """Raised by a rule that can't express an instruction; the instruction is then run as plain Python.

    `code` is a key of `REASONS`, `detail` names the object concerned, `hint` replaces the table's hint.
    Constructing one formats nothing, since most are caught without being shown.
    """

    def __init__(self, code: str, detail: str = "", hint: str | None = None) -> None:
        self.code = code
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code

    def __reduce__(self):
        return type(self), (self.code, self.detail, self.hint)


@dataclass(frozen=True, slots=True)
class BreakSite:
    """A break with the place where it happened; `callers` are the inlined frames around it, innermost first."""

    code: str
    detail: str
    hint: str
    file: str
    line: int
    function: str
    callers: tuple[tuple[str, int, str], ...] = ()

    @classmethod
    def of(
        cls, error: Break, file: str, line: int, function: str, callers: tuple[tuple[str, int, str], ...] = ()
    ) -> BreakSite:
        """The site of `error`, with the table's hint where the rule gave none."""
        hint = error.hint if error.hint is not None else reason(error.code).hint
        return cls(error.code, error.detail, hint, file, line, function, callers)

    @property
    def source(self) -> str:
        """The stripped source line, or an empty string where the source isn't available."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def summary(self) -> str:
        """What the reason code means, followed by the object concerned."""
        text = reason(self.code).summary
        return f"{text}: {self.detail}" if self.detail else text

    def describe(self, title: str = "graph break") -> str:
        """Several lines: the code, the place with its source, the reason and the way out."""
        lines = [f"{title} [{self.code}]"]
        for file, line, function in (*reversed(self.callers), (self.file, self.line, self.function)):
            if file == SHIM_FILENAME:
                continue
            lines.append(f'  File "{file}", line {line}, in {function}')
            if source := linecache.getline(file, line).strip():
                lines.append(f"    {source}")
        lines.append(f"  reason: {self.summary}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


def reason(code: str) -> Reason:
    """The table's row for `code`; a row without text for a code that the table lacks, so that reporting never fails."""
    return REASONS.get(code) or Reason(code, code.replace("-", " "), "")


_DISABLE = "move the call out of the compiled function, or mark it with dynacore.disable to say that this is intended"
_REPORT = "please report this with the smallest program that shows it"

_TABLE = (
    # Calls
    Reason("call-unknown-c-function", "a function written in C whose behaviour isn't known was called", _DISABLE),
    Reason("call-disabled", "a function marked with dynacore.disable was called",
           "remove the mark if the function can be captured"),
    Reason("function-transform", "a transform of torch.func, or what torch.compile made, runs a function its own way",
           "its call runs as plain Python and costs nothing more; compile the function within if it is large"),
    Reason("call-unknown-callable", "an object was called whose type's behaviour isn't known", _DISABLE),
    Reason("call-arguments", "the call's arguments can't be bound to a function under capture", _DISABLE),
    Reason("call-autograd-function", "an autograd function of the program's own is called on what needs a gradient",
           "none is needed in inference, which takes its forward into the graph; in training write it as operations"),
    Reason("graph-break-requested", "dynacore.graph_break() was called", "remove the call"),
    Reason("recursion-depth", "calls are nested deeper than config.inline_depth_limit",
           "raise dynacore.config.inline_depth_limit, or use a loop"),
    Reason("code-too-large", "so many instructions were executed that capture would take too long",
           "compile a smaller part of the program"),
    # Tensors that Python looks into
    Reason("tensor-truth", "Python branches on the value of a tensor",
           "use torch.where or torch.cond, or accept that both sides become their own graphs"),
    Reason("tensor-to-python", "the value of a tensor is made a Python object",
           "keep the value in a tensor, or read it once, outside the compiled function"),
    Reason("data-dependent-shape", "an operation's output shape depends on the values of a tensor",
           "use a form whose shape is known, as torch.where with three arguments in place of nonzero, or set "
           "dynacore.config.capture_dynamic_output_shape_ops"),
    Reason("tensor-subclass", "a tensor subclass or wrapper that isn't supported is used",
           "unwrap it before the compiled function"),
    Reason("tensor-storage", "an operation reaches the memory behind a tensor",
           "do this outside the compiled function"),
    Reason("op-failed-on-meta", "the operation can't be run on metadata alone, or fails there",
           "if it fails in plain Python too, the program is wrong; else mark the caller with dynacore.disable"),
    Reason("op-unsupported", "a tensor operation can't be part of a graph", _DISABLE),
    Reason("graph-input", "the value can't be handed to a graph", _DISABLE),
    Reason("torch-state", "a call changes state of torch that a graph can't carry",
           "set it before the compiled function is called"),
    Reason("autograd", "backward, autograd.grad or an autograd hook runs here", "run it outside the compiled function"),
    Reason("random-state", "the state of a random number generator is read or set",
           "seed the generator before the compiled function is called"),
    Reason("numpy", "a NumPy function or array that isn't supported is used",
           "use the torch function of the same name, or convert outside the compiled function"),
    # Python values only known when the program runs
    Reason("host-value-branch", "Python branches on a number or string that is only known when the program runs",
           "pass it as an argument that doesn't vary, or accept that both sides become their own graphs"),
    Reason("not-constant", "a value is needed as a constant, and isn't one",
           "pass it as an argument that doesn't vary"),
    Reason("unknown-value", "an object is used that is only known when the program runs", _DISABLE),
    Reason("iterate-unknown", "iteration over an object whose elements aren't known",
           "iterate over a list, tuple, dict or range"),
    Reason("loop-resumed", "a loop goes on behind a break, with the iterator that the interpreter holds",
           "none is needed: taking the next item is one instruction; without the break the loop would be captured"),
    # The object model
    Reason("attribute-unknown", "an attribute is read whose lookup runs code that isn't known", _DISABLE),
    Reason("setattr-unknown", "an attribute is set or deleted by code that isn't known", _DISABLE),
    Reason("operator-unknown", "an operator is used on types whose behaviour isn't known", _DISABLE),
    Reason("subscript-unknown", "an item is read, set or deleted by code that isn't known", _DISABLE),
    Reason("compare-unknown", "objects are compared by code that isn't known", _DISABLE),
    Reason("hash-unknown", "an object is hashed by code that isn't known", "use strings, numbers or tuples as keys"),
    Reason("format-unknown", "an object is turned into text by code that isn't known",
           "format outside the compiled function"),
    Reason("construct-unknown", "an object is made of a class whose construction isn't known", _DISABLE),
    Reason("class-body", "a class is defined here", "define the class outside the compiled function"),
    Reason("metaclass", "a class with its own metaclass is used in a way that isn't known", _DISABLE),
    Reason("mutation-outside", "an object outside the program is changed in a way that can't be delayed", _DISABLE),
    Reason("weakref", "a weak reference is made or read", "use an ordinary reference"),
    Reason("finalizer", "an object with a __del__ method would be freed here", "free it outside the compiled function"),
    # Statements
    Reason("generator-unsupported", "a generator is used in a way that can't be captured",
           "consume it in the function that made it, or use a list"),
    Reason("async-unsupported", "async code is run", "compile the synchronous functions that it calls"),
    Reason("exception-uncaught", "an exception leaves the compiled function",
           "none is needed: it is raised as in plain Python"),
    Reason("exception-unknown", "an exception is handled in a way that can't be followed", _DISABLE),
    Reason("import", "a module is imported", "import at the top of the file"),
    Reason("locals-inspection", "the frame's variables are inspected (locals, vars, sys._getframe, eval, exec)",
           "name the variables that you need"),
    Reason("caller-inspection", "a function called here looks at the frames of its callers",
           "pass it what it needs to know"),
    Reason("unsupported-instruction", "a bytecode instruction isn't supported", _REPORT),
    Reason("output", "text is printed or logged", "none is needed: it is written in order"),
    Reason("environment", "the process's environment, clock or files are read or changed",
           "do this outside the compiled function"),
    Reason("thread", "a lock is taken or a thread is started", "do this outside the compiled function"),
    # Around capture
    Reason("forced", "a break was asked for here, by dynacore.config.testing_cut or after an internal error",
           "unset testing_cut"),
)  # fmt: skip

REASONS: dict[str, Reason] = {row.code: row for row in _TABLE}
