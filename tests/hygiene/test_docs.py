"""The documentation speaks of what is there."""

import ast
import re

import pytest
from hygiene.tree import ROOT, files

from dynacore.graph.state import MATTERS

PAGES = [path for path in files("*.md") if not path.is_relative_to(ROOT / "tests")]
NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]


def anchors(text: str) -> set[str]:
    """The anchors that a page's headings get."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if target.startswith(("https://", "http://")):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists() or (anchor and anchor not in anchors(path.read_text("utf-8"))):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_python_examples_parse(page):
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        ast.parse(block)


def test_api_page_has_every_public_name():
    import dynacore

    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    named = set(re.findall(r"`(\w+)|^dynacore\.(\w+)|^## (\w+)", text, re.MULTILINE))
    assert not set(dynacore.__all__) - {name for groups in named for name in groups}


def test_api_page_has_every_setting_with_its_default():
    import dynacore

    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| `(.*?)` \|", text, re.MULTILINE))
    for name in dynacore.config.as_dict():
        default = getattr(type(dynacore.config), name)
        assert rows.get(name) == (f'"{default}"' if isinstance(default, str) else repr(default)), name


def test_logs_page_has_every_artifact():
    from dynacore import logs

    text = (ROOT / "docs" / "logs.md").read_text("utf-8")
    assert {row for row in logs.ARTIFACTS if f"| `{row}` |" not in text} == set()


def test_guards_page_says_when_each_piece_of_torchs_state_matters():
    rows = [line for line in (ROOT / "docs/guards.md").read_text().splitlines() if line.startswith("| ")]
    for name, when in MATTERS.items():
        assert any(row.startswith(f"| {when} |") and name in re.split(r" \| |, | \|", row) for row in rows), name
