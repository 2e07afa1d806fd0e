"""Rules that keep the tree portable and readable: versions, private API, sizes, paths."""

import ast
import re

import pytest
from hygiene.tree import FUNCTION, PACKAGES, ROOT, files, imports, names, package_files, parse, place

MAX_FILE, MAX_FUNCTION = 600, 60
VERSION_MODULE = re.compile(r"packages/bytecode_models/src/bytecode_models/v3\d+\.py")
VERSION_NAMES = ("sys.version_info", "sys.hexversion", "platform.python_version_tuple")
C_VERSION_FILE = re.compile(r"cpython\w*\.[ch]")
TORCH_API = "packages/dynacore/src/dynacore/torch_api.py"


def relative(path) -> str:
    return path.relative_to(ROOT).as_posix()


def package_sources():
    return [path for package in PACKAGES for path in package_files(package)]


def test_only_version_modules_ask_which_python_runs():
    wrong = [
        f"{place(path, node)}: {name}"
        for path in package_sources()
        if not VERSION_MODULE.fullmatch(relative(path))
        for name, node in names(path)
        if name.startswith(VERSION_NAMES)
    ]
    assert not wrong, "\n".join(wrong)


def test_raw_bytecode_is_known_to_bytecode_models_alone():
    wrong = [
        f"{place(path, node)}: {name}"
        for package in ("dynacore", "backend_gpu")
        for path in package_files(package)
        for name, node in imports(path)
        if name.split(".")[0] in ("dis", "opcode", "_opcode")
    ]
    assert not wrong, "\n".join(wrong)


def test_only_version_files_of_the_c_code_ask_which_python_compiles_them():
    wrong = [
        f"{relative(path)}:{number}: {line.strip()}"
        for path in files("*.[ch]")
        if not C_VERSION_FILE.fullmatch(path.name)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(r"\bPY_(VERSION_HEX|MAJOR_VERSION|MINOR_VERSION)\b", line)
    ]
    assert not wrong, "\n".join(wrong)


def test_private_torch_api_is_named_in_one_module():
    def private(name: str) -> bool:
        root, *rest = name.split(".")
        return root == "torch" and any(part.startswith("_") and not part.startswith("__") for part in rest)

    wrong = [
        f"{place(path, node)}: {name}"
        for path in package_sources()
        if relative(path) != TORCH_API
        for name, node in names(path)
        if private(name)
    ]
    assert not wrong, "\n".join(wrong)


def test_torch_dynamo_is_never_used():
    wrong = [
        f"{place(path, node)}: {name}"
        for path in package_sources()
        for name, node in names(path)
        if name == "torch._dynamo" or name.startswith("torch._dynamo.")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("pattern", ["*.py", "*.c", "*.h"])
def test_files_are_short(pattern):
    lengths = {relative(path): len(path.read_text("utf-8").splitlines()) for path in files(pattern)}
    wrong = {name: length for name, length in lengths.items() if length > MAX_FILE}
    assert not wrong, f"more than {MAX_FILE} lines: {wrong}"


def test_functions_are_short():
    wrong = [
        f"{place(path, node)}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for path in files("*.py")
        for node in ast.walk(parse(path))
        if isinstance(node, FUNCTION) and node.end_lineno - node.lineno + 1 > MAX_FUNCTION
    ]
    assert not wrong, "\n".join(wrong)


def test_no_file_names_a_path_of_one_machine():
    # Split, so that this file doesn't hold what it looks for.
    machine_path = re.compile(r"(?<![\w.:/~$}-])/(?:root|work|opt|home|tmp|Users)" + r"/[A-Za-z]")
    wrong = [
        f"{relative(path)}:{number}: {line.strip()[:100]}"
        for path in files()
        if path.suffix not in {".png", ".svg"}
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        if machine_path.search(line)
    ]
    assert not wrong, "\n".join(wrong)


def test_modules_say_what_they_are():
    wrong = [relative(path) for path in package_sources() if not ast.get_docstring(parse(path))]
    assert not wrong, f"no module docstring: {wrong}"
