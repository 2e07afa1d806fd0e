"""The module and the interpreter that loads it: what it finds out, and where it refuses."""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from native import building
from native.extension import C

# -- capabilities ------------------------------------------------------------------------------------------------------


def test_capabilities_are_probed():
    assert set(C.capabilities) == {"dict_versions", "instance_dict_versions", "type_versions"}
    assert all(type(value) is bool for value in C.capabilities.values())
    assert C.capabilities["type_versions"]


# -- a layout that drifted ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the sources and the object file of each."""
    building.need_compiler()
    folder = tmp_path_factory.mktemp("built") / "csrc"
    shutil.copytree(building.SOURCES, folder)
    building.compile_objects(sorted(folder.glob("*.c")), folder)
    return folder


def variant(built, folder, pattern, old, new):
    """The module with a change in the files that match `pattern`."""
    changed = folder / "csrc"
    shutil.copytree(built, changed)
    touched = 0
    for path in changed.glob(pattern):
        text = path.read_text("utf-8")
        path.write_text(text.replace(old, new), "utf-8")
        touched += old in text
    assert touched
    objects = building.compile_objects([*changed.glob("cpython*.c"), changed / "iterators.c"], changed)
    return building.link(objects, folder / "_C.so")


def test_unchanged_sources_load(built, tmp_path):
    module = building.load(variant(built, tmp_path, "cpython.h", "#endif", "#endif"))
    assert module.capabilities == C.capabilities
    assert module.peek(iter([1])) == 1


@pytest.mark.parametrize(
    ("pattern", "old", "new", "complaint"),
    [
        ("cpython_selfcheck.c", "PY_VERSION_HEX >> 16", "0x030A", "another release runs"),
        ("cpython.h", "    Py_ssize_t index;", "    Py_ssize_t index, more;", "objects have other sizes"),
        (
            "cpython.h",
            "    Py_ssize_t index;\n    PyObject *sequence;",
            "    PyObject *sequence;\n    Py_ssize_t index;",
            "iterators over lists lie differently",
        ),
        ("cpython_*.h", "*number = ", "*number = 1 + ", "iterators over ranges lie differently"),
        ("cpython_dict.h", "&entries[i].me_value", "&entries[i].me_key", "dicts lie differently"),
        ("cpython_dict.h", "->values[i]", "->values[i + 1]", "instances keep their attributes differently"),
        ("cpython.c", "item->exc_value = exception;", "", "exceptions are kept differently"),
    ],
)
def test_objects_that_lie_differently_are_noticed_at_import(built, tmp_path, pattern, old, new, complaint):
    library = variant(built, tmp_path, pattern, old, new)
    with pytest.raises(ImportError, match=rf"compiled for CPython [\d.]+.* doesn't fit CPython.*{complaint}.*porting"):
        building.load(library)


# -- where it doesn't work ---------------------------------------------------------------------------------------------


def test_free_threaded_builds_are_refused(built, tmp_path):
    flags = ["-DPy_GIL_DISABLED=1"]
    if "Py_GIL_DISABLED" in Path(building.INCLUDE, "object.h").read_text("utf-8"):
        # These headers would give every object another layout, so that what is built can't be loaded here.
        compiled = building.compile_objects([built / "module.c"], tmp_path, *flags)[0]
        assert b"free-threaded builds of CPython" in compiled.read_bytes()
        return
    shutil.copytree(built, tmp_path / "csrc")
    objects = building.compile_objects([tmp_path / "csrc/module.c"], tmp_path / "csrc", *flags)
    with pytest.raises(ImportError, match="doesn't support free-threaded builds"):
        building.load(building.link(objects, tmp_path / "_C.so"))


SUBINTERPRETER = """
    import sys
    sys.path[:] = {path!r}
    try:
        import native.extension
    except ImportError as error:
        message = str(error)
    else:
        message = "it was imported"
    print("dynacore" in message and "subinterpreters" in message, message)
"""


@pytest.mark.parametrize("options", [{}, {"isolated": False}], ids=["default", "shared lock"])
def test_subinterpreters_are_refused(options):
    code = textwrap.dedent(SUBINTERPRETER).format(path=sys.path)
    program = f"""
import importlib, sys
sys.path[:] = {sys.path!r}
for name in ("_interpreters", "_xxsubinterpreters"):
    try:
        interpreters = importlib.import_module(name)
        break
    except ImportError:
        pass
options = {options!r}
try:
    made = interpreters.create(**options)
except TypeError:
    made = interpreters.create("legacy")
interpreters.run_string(made, {code!r})
"""
    output = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True)
    assert output.stdout.startswith("True"), output


def test_a_second_load_gives_the_same_objects():
    again = building.load(C.__file__)
    assert again is not C
    assert (again.UNBOUND, again.NULL, again.Point) == (C.UNBOUND, C.NULL, C.Point)
    assert again.capabilities == C.capabilities


UNKNOWN_RELEASE = """
import runpy, sys, sysconfig
real = sysconfig.get_config_var
sysconfig.get_config_var = lambda name: "399" if name == "py_version_nodot" else real(name)
import setuptools
setuptools.setup = lambda ext_modules: print(len(ext_modules))
runpy.run_path(sys.argv[1])
"""


def test_the_package_installs_on_an_unknown_release_without_the_module():
    pytest.importorskip("setuptools")
    command = [sys.executable, "-c", UNKNOWN_RELEASE, str(building.SOURCES.parent / "setup.py")]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.stdout == "0\n", result
    assert "no cpython_399.h, so nothing can be captured here; see docs/porting.md" in result.stderr
