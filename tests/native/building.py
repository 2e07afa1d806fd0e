"""Compiles the C module with changed sources, as another release of CPython would make them differ."""

import importlib.machinery
import importlib.util
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "packages/dynacore/csrc"
INCLUDE = sysconfig.get_path("include")
COMPILER = [*shlex.split(sysconfig.get_config_var("CC")), "-std=c11", "-O0", "-fPIC", "-w", f"-I{INCLUDE}"]


def need_compiler():
    """Skip the test where nothing can be compiled."""
    if shutil.which(COMPILER[0]) is None or not Path(INCLUDE, "Python.h").exists():
        pytest.skip("a C compiler and Python's headers are needed")


def compile_objects(sources, folder, *flags):
    """Object files of these sources, in `folder`; relative to it, they are what was compiled before there."""
    subprocess.run([*COMPILER, *flags, "-c", *map(str, sources)], cwd=folder, check=True)
    return sorted(folder.glob("*.o"))


def link(objects, target):
    """A shared library of the object files."""
    subprocess.run([*COMPILER, "-shared", "-o", str(target), *map(str, objects)], check=True)
    return target


def load(path, name="dynacore._C"):
    """The extension in this file, not kept in sys.modules."""
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, path, loader=loader))
    loader.exec_module(module)
    return module
