"""Imports run one way: between the packages, and between the layers of dynacore."""

import ast

import pytest
from hygiene.tree import PACKAGES, imports, module_name, package_files, parse, place, run_time_nodes

# Each layer may import from itself and from those below it. docs/architecture.md draws the same picture.
LAYERS = (
    ("__init__", "api", "explain"),
    ("capture", "artifacts"),
    ("emit", "guards", "graph"),
    ("machine",),
    ("objects", "library", "points"),
    ("frames",),  # a frame is data, which the object model pushes and the machine runs
    ("values",),
    ("suspended", "sources", "reasons", "recompiles"),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
LOWEST = len(LAYERS) - 1
# What surrounds a capture: every layer may use it, and it uses none of them but the lowest.
SURROUNDINGS = {
    "_C", "backends", "config", "environment", "errors", "logs", "marks", "module", "options", "shims",
    "specialise", "stats", "torch_api", "torch_memory", "torch_types",
}  # fmt: skip


def layer(name: str) -> str:
    """The part of dynacore that a dotted name belongs to."""
    parts = name.split(".")[1:] or ["__init__"]
    return ".".join(parts[:2]) if ".".join(parts[:2]) in RANK else parts[0]


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_only_downwards(package):
    above = PACKAGES[PACKAGES.index(package) + 1 :]
    wrong = [
        f"{place(path, node)}: {package} imports {name}"
        for path in package_files(package)
        for name, node in imports(path)
        if name.split(".")[0] in above
    ]
    assert not wrong, "\n".join(wrong)


def test_bytecode_models_needs_no_torch():
    wrong = [
        place(path, node)
        for path in package_files("bytecode_models")
        for name, node in imports(path)
        if name.split(".")[0] in ("torch", "numpy")
    ]
    assert not wrong, "\n".join(wrong)


def test_every_module_of_dynacore_has_a_layer():
    unknown = {layer(module_name(path)) for path in package_files("dynacore")} - RANK.keys() - SURROUNDINGS
    assert not unknown, f"give these a layer in {__file__}: {sorted(unknown)}"


def test_layers_of_dynacore_import_only_downwards():
    wrong = []
    for path in package_files("dynacore"):
        own = layer(module_name(path))
        for name, node in imports(path):
            if name.startswith("dynacore.") and RANK.get(layer(name), LOWEST) < RANK.get(own, LOWEST):
                wrong.append(f"{place(path, node)}: {own} imports {name}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_import_without_cycles(package):
    """Checked for imports at module level, which are what an import of the package runs."""
    paths = {module_name(path): path for path in package_files(package)}
    edges = {module: direct_imports(path, module, paths) for module, path in paths.items()}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " imports ".join([*trail[trail.index(module) :], module])
        if module not in done:
            for target in edges[module]:
                visit(target, (*trail, module))
            done.add(module)

    for module in edges:
        visit(module, ())


def direct_imports(path, module, known) -> set[str]:
    """The modules of the same package that running this module's body imports."""
    inside_functions = {
        id(inner)
        for node in run_time_nodes(parse(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for inner in ast.walk(node)
    }
    found = set()
    for name, node in imports(path):
        if id(node) not in inside_functions:
            target = name if name in known else name.rpartition(".")[0]
            # A package's own __init__ has started by then; `from . import sibling` asks for the sibling.
            if target in known and target != module and not module.startswith(target + "."):
                found.add(target)
    return found
