"""Everything that is done to this repository, by name: ``python -m nox --list``.

Sessions run on the interpreter that runs nox; ``tests-3.11`` to ``tests-3.15`` are the matrix, and two more run the
suite beside the oldest and the newest PyTorch. ``bash ci/interpreters.sh 3.11 … 3.15`` gets the interpreters.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]
# At a desk a missing interpreter is a warning. In CI it would be a green run that tested nothing.
nox.options.error_on_missing_interpreters = "CI" in os.environ

PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
PACKAGES = ("bytecode_models", "dynacore", "backend_gpu")
GROUPS = nox.project.load_toml("pyproject.toml")


def show_interpreters() -> None:
    """Let nox and uv find what `ci/interpreters.sh` found or fetched.

    pyenv's shims hide the versions that aren't selected, so each of the matrix is selected; what was fetched is linked
    in one folder, which goes behind the rest of PATH.
    """
    root = Path(os.environ.setdefault("PYENV_ROOT", str(Path.home() / ".pyenv")))
    installed = [path.name for version in PYTHONS for path in sorted(root.glob(f"versions/{version}.*"))]
    if installed:
        selected = os.environ.get("PYENV_VERSION", "").split(":")
        os.environ["PYENV_VERSION"] = ":".join(filter(None, dict.fromkeys([*selected, *installed])))
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    fetched = os.environ.get("DYNACORE_INTERPRETERS") or f"{cache}/dynacore/interpreters"
    os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], f"{fetched}/bin"])


show_interpreters()


def install_groups(session: nox.Session, *groups: str) -> None:
    """Install dependency groups of pyproject.toml.

    Where pip has been told of a folder of wheels (PIP_FIND_LINKS), uv is told too: a CPU build of torch that lies
    there spares gigabytes of CUDA.
    """
    links = os.environ.get("UV_FIND_LINKS") or os.environ.get("PIP_FIND_LINKS")
    session.install(
        *nox.project.dependency_groups(GROUPS, *groups),
        env={"UV_FIND_LINKS": links} if links else {},
    )


def install_packages(session: nox.Session, *names: str, options: Sequence[str] = ()) -> None:
    """Build and install packages of this tree; always anew, since a cached build would be the last edit's."""
    for name in names:
        shutil.rmtree(f"packages/{name}/build", ignore_errors=True)
    anew = [f"--reinstall-package={name.replace('_', '-')}" for name in names] if session.venv_backend == "uv" else []
    session.install(*options, *anew, *(f"./packages/{name}" for name in names))


def run_tests(session: nox.Session, torch: str = "torch") -> None:
    """The whole suite; arguments behind ``--`` go to pytest."""
    install_groups(session, torch, "programs", "test")
    install_packages(session, *PACKAGES)
    session.run("pytest", "-n", "2", "--timeout", "300", *session.posargs)


nox.session(run_tests, name="tests")
for version in PYTHONS:
    nox.session(run_tests, name=f"tests-{version}", python=version)


@nox.session(name="tests-torch-oldest", python="3.12")
def run_tests_on_oldest(session: nox.Session) -> None:
    """The suite beside the oldest PyTorch that it declares, with that one's Triton."""
    run_tests(session, "torch-oldest")


@nox.session(name="tests-torch-newest", python="3.14")
def run_tests_on_newest(session: nox.Session) -> None:
    """The suite beside the newest PyTorch that it has been run with."""
    run_tests(session, "torch-newest")


@nox.session(python="3.12")
def kernels(session: nox.Session) -> None:
    """Every kernel that the tests of the GPU backend generate, compiled for each named target instead of one."""
    install_groups(session, "torch", "programs", "test")
    install_packages(session, *PACKAGES)
    options = session.posargs or ["-n", "2", "--timeout", "300"]
    session.run("pytest", "tests/gpu", *options, env={"BACKEND_GPU_TARGETS": "all"})


@nox.session
def demo(session: nox.Session) -> None:
    """Capture a LLaMA whole, then a loop with a break in it, with torch.compile beside it."""
    install_groups(session, "torch", "programs")
    install_packages(session, "bytecode_models", "dynacore")
    session.run("python", "examples/demo.py", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """The tables of both engines, side by side from one run; ``-- --help`` tells what can be chosen."""
    install_groups(session, "torch", "programs")
    install_packages(session, "bytecode_models", "dynacore")
    session.run("python", "benchmarks/run.py", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, imports and likely bugs."""
    install_groups(session, "lint")
    session.run("ruff", "check", *session.posargs)


@nox.session
def types(session: nox.Session) -> None:
    """Static types of the packages."""
    install_groups(session, "types")
    session.run("mypy", *session.posargs)


@nox.session
def wheels(session: nox.Session) -> None:
    """Build a source distribution and, from it, a wheel of each package into dist/; install them and capture once."""
    install_groups(session, "torch", "build")
    shutil.rmtree("dist", ignore_errors=True)
    for name in PACKAGES:
        session.run("python", "-m", "build", "--installer", "uv", "--outdir", "dist", f"packages/{name}")
    session.install("--no-deps", "--force-reinstall", *map(str, sorted(Path("dist").glob("*.whl"))))
    capture = "dynacore.compile(lambda x: torch.sin(x) + 1, fullgraph=True)(torch.ones(3))"
    session.run("python", "-c", f"import torch, {', '.join(PACKAGES)}; print({capture})")


@nox.session
def tox(session: nox.Session) -> None:
    """Each package alone, from its wheel; ``-- -e py314-dynacore-torch213`` chooses others than bytecode_models."""
    install_groups(session, "tox")
    environments = [f"py{version.replace('.', '')}-bytecode_models" for version in PYTHONS]
    session.run("tox", "run", *(session.posargs or ["-e", ",".join(environments)]))


@nox.session
def port(session: nox.Session) -> None:
    """Port to a CPython release: ``-- 3.16 PATH/TO/python`` says what is missing; docs/porting.md is the job."""
    paths = [str(Path(path).resolve()) for path in ("packages/bytecode_models/src", "tests")]
    session.run("python", "ci/port.py", *session.posargs, env={"PYTHONPATH": os.pathsep.join(paths)})


@nox.session
def valgrind(session: nox.Session) -> None:
    """The tests of the C module under valgrind's memcheck. They need no torch, which would take most of the time."""
    if shutil.which("valgrind") is None:
        session.error("valgrind isn't installed: `apt-get install valgrind`, or your system's equivalent")
    install_groups(session, "test")
    install_packages(session, "bytecode_models", "dynacore", options=["--no-deps"])
    session.run(
        "valgrind", "--quiet", "--error-exitcode=9", "--suppressions=ci/valgrind.supp",
        "--undef-value-errors=no",  # CPython's own code has false ones; invalid reads, writes and frees remain
        "python", "-m", "pytest", "--noconftest", "-p", "no:cacheprovider", *(session.posargs or ["tests/native"]),
        env={"PYTHONMALLOC": "malloc"}, external=True,
    )  # fmt: skip
