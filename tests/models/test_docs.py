"""docs/operations.md says what ops.py says; `python tests/models/test_docs.py` writes it."""

import inspect
import re
from pathlib import Path

from bytecode_models import Op, ops

DOCUMENT = Path(__file__).parents[2] / "docs" / "operations.md"
HEAD = """\
# Neutral operations

What each operation means, on every release. Stack pictures read bottom to top, `before -> after`; what lies below is
untouched. `a`, `b` and `c` name the instruction's operands, `x(a)` means a of them. A slot is an index into the frame's
locals, cells and free variables, in this order. NULL is an empty stack item; only `POP`, `COPY`, `SWAP`, `STORE_LOCAL`,
calls and iteration meet one. Jumps say where in `target`.

This page is written from `ops.py`; a test holds both together.
"""


def sections():
    """(what the operations have in common, [(name, meaning)])"""
    found = []
    for line in inspect.getsource(ops.Op).splitlines():
        if operation := re.fullmatch(r"    (\w+) = auto\(\)  # (.*)", line):
            found[-1][1].append(list(operation.groups()))
        elif more := re.fullmatch(r"    #  +(.*)", line):
            found[-1][1][-1][1] += " " + more[1]
        elif title := re.fullmatch(r"    # (.*)", line):
            found.append((title[1], []))
    return found


def escaped(meaning):
    """Without what Markdown would take for its own."""
    return meaning.replace("|", "\\|").replace("__", "\\_\\_")


def text():
    """The page."""
    lines = [HEAD]
    for title, operations in sections():
        lines += [f"## {title[0].upper()}{title[1:]}", "", "| operation | meaning |", "|---|---|"]
        lines += [f"| `{name}` | {escaped(meaning)} |" for name, meaning in operations]
        lines.append("")
    return "\n".join(lines)


def test_every_operation_is_described():
    assert [name for _, operations in sections() for name, _ in operations] == [op.name for op in Op]


def test_the_page_is_up_to_date():
    assert DOCUMENT.read_text("utf-8") == text()


if __name__ == "__main__":
    DOCUMENT.write_text(text(), "utf-8")
