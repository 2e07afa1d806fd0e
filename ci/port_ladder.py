"""The ladder of tests for a new release: each rung says what is missing, by opcode name where it can."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from models import dumps
from models.agreement import FOLDED, OTHER_EFFECT, Listed, check
from models.probe import counted, effects_of, iterator_widths, probe

from bytecode_models import decode, model_for
from bytecode_models.__main__ import nested_codes
from bytecode_models.image import CodeImage
from bytecode_models.model import VersionModel

SHOWN = 25  # failed tests


class Rung(NamedTuple):
    """Its name, and what is missing for it to hold: nothing where it does."""

    name: str
    missing: Callable[[], list[str]]


def data_rungs(release: tuple[int, int], folder: Path) -> Iterator[Rung]:
    """What the dumps tell, on any interpreter."""
    yield Rung("tables", lambda: tables(model_for(release), dumps.read("opcodes", release, folder)))
    yield Rung("stack effects", lambda: stack_effects(model_for(release), dumps.read("opcodes", release, folder)))
    yield Rung("code objects", lambda: code_objects(model_for(release), dumps.read("codes", release, folder)))


def interpreter_rungs(python: str, root: Path) -> Iterator[Rung]:
    """What takes the interpreter itself: its own tests of the model, then the C module, then the core."""
    yield Rung("models on the interpreter", lambda: tests(python, root, "tests/models"))
    yield Rung("C module", lambda: build(python, root))
    yield Rung("concrete mode", lambda: tests(python, root, "tests/machine/test_concrete.py", "torch"))
    yield Rung("cut everywhere", lambda: tests(python, root, "tests/machine", "torch"))
    yield Rung("core suite", lambda: tests(python, root, "tests", "torch"))


def tables(model: VersionModel, facts: dict[str, Any]) -> list[str]:
    """Numbers, cache sizes, and a rule for every opcode."""
    numbers = facts["numbers"]
    return [
        *(f"{name}: number {numbers[name]}" for name in numbers if model.numbers.get(name) != numbers[name]),
        *(f"{name}: isn't an opcode" for name in sorted(model.numbers.keys() - numbers.keys())),
        *(
            f"{name}: {facts['caches'].get(name, 0)} units of cache, not {model.caches.get(name, 0)}"
            for name in sorted(numbers)
            if facts["caches"].get(name, 0) != model.caches.get(name, 0)
        ),
        *(f"{name}: no rule" for name in sorted(numbers.keys() - model.rules.keys() - model.internal)),
        *operand_values(model, facts),
    ]


def operand_values(model: VersionModel, facts: dict[str, Any]) -> Iterator[str]:
    """Operands that number something, and what the model takes that for."""
    numbered = {
        "LOAD_COMMON_CONSTANT": facts["constants"],
        "LOAD_SPECIAL": list(map(repr, facts["specials"])),
        **{f"CALL_INTRINSIC_{n}": list(map(intrinsic, names)) for n, names in enumerate(facts["intrinsics"], 1)},
    }
    for name in sorted(numbered.keys() & model.numbers.keys() & model.rules.keys()):
        for number, value in enumerate(numbered[name]):
            try:
                ours = repr(probe(model, name, number)[0].a)
            except ValueError:
                ours = "nothing"
            if ours != value:
                yield f"{name} {number}: {value}, not {ours}"


def intrinsic(name: str) -> str:
    """What the models call one: the name without its prefix, the operator for one that is one."""
    short = name.removeprefix("INTRINSIC_")
    return {"1_INVALID": "None", "2_INVALID": "None", "UNARY_POSITIVE": repr("+")}.get(short, repr(short))


def stack_effects(model: VersionModel, facts: dict[str, Any]) -> list[str]:
    """Opcodes whose neutral operations leave another depth than `dis` says; OTHER_EFFECT lists those that may."""
    widths = iterator_widths(model)
    missing = [
        f"{name}: an iterator is {width} stack items, but GET_ITER makes it {widths['GET_ITER']}"
        for name, width in sorted(widths.items())
        if width != widths["GET_ITER"]
    ]
    for name in sorted(model.numbers.keys() - model.internal - OTHER_EFFECT.keys() - FOLDED):
        for at, arg in enumerate(dumps.OPERANDS[:4] if name in facts["flags"]["hasarg"] else (0,)):
            theirs = tuple(counted(facts, name, at, jump) for jump in (False, True))
            try:
                ours = effects_of(model, name, arg)
            except ValueError:
                continue  # an operand that means nothing
            if None not in theirs and ours != theirs and name != "BUILD_SLICE":
                missing.append(f"{name} {arg}: effects {ours}, dis says {theirs}")
    return missing


def code_objects(model: VersionModel, modules: list[dict[str, Any]]) -> list[str]:
    """Code objects of the corpus that are decoded otherwise than `dis` lists them, counted by the opcode to blame."""
    names = {number: name for name, number in model.numbers.items()}
    blamed: Counter[str] = Counter()
    count = 0
    for module in modules:
        for code, facts in zip(nested_codes(CodeImage(module["image"])), module["facts"], strict=True):
            count += 1
            try:
                check(decode(code, model), model, facts)
            except Exception as error:
                blamed[opcode_of(error, names)] += 1
    return [f"{name}: in {times} of {count} code objects" for name, times in blamed.most_common()]


def opcode_of(error: Exception, names: dict[int, str]) -> str:
    """The opcode that an error is about."""
    if error.args and isinstance(error.args[0], Listed):
        return error.args[0].name
    number = re.match(r"opcode (\d+) ", str(error))
    return names[int(number[1])] if number else f"{type(error).__name__}: {error}"


def tests(python: str, root: Path, path: str, needs: str = "pytest") -> list[str]:
    """Tests that fail on the interpreter."""
    if subprocess.run([python, "-c", f"import {needs}"], check=False, capture_output=True).returncode:
        return [f"{needs} isn't installed for {python}"]
    paths = ":".join(str(root / "packages" / name / "src") for name in ("bytecode_models", "dynacore", "backend_gpu"))
    command = ["env", f"PYTHONPATH={paths}", python, "-m", "pytest", "-q", "-p", "no:cacheprovider", path]
    done = subprocess.run(command, check=False, cwd=root, capture_output=True, text=True)
    if not done.returncode:
        return []
    failed = re.findall(r"^(?:FAILED|ERROR) .*", done.stdout, re.MULTILINE)
    named = Counter(re.findall(r"Instr\(op=<Op\.(\w+)", done.stdout))
    blamed = [f"named by failures: {', '.join(f'{op} ({n})' for op, n in named.most_common())}"] if named else []
    more = [f"and {len(failed) - SHOWN} more"] if len(failed) > SHOWN else []
    return [*blamed, *failed[:SHOWN], *more] or [*done.stdout.splitlines()[-5:], *done.stderr.splitlines()[-5:]]


def build(python: str, root: Path) -> list[str]:
    """What the compiler says against the new header."""
    command = [python, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(command, check=False, cwd=root / "packages/dynacore", capture_output=True, text=True)
    errors = re.findall(r".*(?:error|static assertion).*", done.stderr)
    return (errors or done.stderr.splitlines()[-5:]) if done.returncode else []
