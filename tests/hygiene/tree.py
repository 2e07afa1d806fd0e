"""The repository as the hygiene tests see it: its files, and what a module imports and names."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("bytecode_models", "dynacore", "backend_gpu")
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def files(pattern: str = "*") -> list[Path]:
    """Files of the repository, as git sees them, whose path matches `pattern`; ignored ones are left out."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    paths = (ROOT / name for name in sorted(set(listed.stdout.split("\0")) - {""}))
    return [path for path in paths if path.is_file() and path.relative_to(ROOT).match(pattern)]


def package_files(package: str) -> list[Path]:
    """The modules of one package."""
    source = ROOT / "packages" / package / "src" / package
    return [path for path in files("*.py") if path.is_relative_to(source)]


def module_name(path: Path) -> str:
    """`packages/x/src/x/y/z.py` is `x.y.z`; a package's `__init__.py` is the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts[3:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def parse(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"), str(path))


def place(path: Path, node: ast.AST) -> str:
    """`path:line`, relative to the repository."""
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


def run_time_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node, without what stands under `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        yield child
        yield from run_time_nodes(child)


def imports(path: Path) -> Iterator[tuple[str, ast.stmt]]:
    """The absolute dotted names that a module imports at run time; `from a import b` gives `a.b`."""
    module = module_name(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in run_time_nodes(parse(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                above = parents[: len(parents) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{base}.{alias.name}", node


def names(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """Every dotted name in a module: its imports, and each `a.b.c`, with an alias `a` replaced by its meaning."""
    yield from imports(path)
    tree = parse(path)
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases.update((alias.asname, alias.name) for alias in node.names if alias.asname)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            aliases.update((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            parts, inner = [node.attr], node.value
            while isinstance(inner, ast.Attribute):
                parts.append(inner.attr)
                inner = inner.value
            if isinstance(inner, ast.Name):
                yield ".".join([aliases.get(inner.id, inner.id), *reversed(parts)]), node
