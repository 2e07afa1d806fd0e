"""The porting kit: `python -m nox -s port -- 3.16 PATH/TO/python`. docs/porting.md tells the job step by step.

It asks the interpreter for its opcodes and for code objects, says what differs from the newest release that is known,
writes the files of the new release where they are missing, and climbs the ladder of tests, saying at each rung what is
missing. Run it again after each edit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import port_files
import port_ladder
import port_report
from models import dumps

import bytecode_models
from bytecode_models.model import releases

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(bytecode_models.__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """The command line. Exit status: 0 when every rung that could be tried holds."""
    options = parse(arguments)
    release = options.release
    known = max(known for known in releases() if known < release)
    folder = options.dumps or make_dumps(options.python, release)
    old, new = dumps.read("opcodes", known), dumps.read("opcodes", release, folder)
    print(f"CPython {text(release)} against {text(known)}\n")
    print("\n".join(port_report.report(old, new)))
    for path in port_files.write_missing(PACKAGE, options.csrc, known, release, old, new):
        print(f"wrote {path}")
    rungs = [*port_ladder.data_rungs(release, folder)]
    if options.python:
        rungs += port_ladder.interpreter_rungs(options.python, ROOT)
    return climb(rungs)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The options; either an interpreter or a folder of its dumps is there."""
    parser = argparse.ArgumentParser(prog="port", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("release", type=lambda given: tuple(map(int, given.split("."))), help="such as 3.16")
    parser.add_argument("python", nargs="?", help="path to the release's interpreter")
    parser.add_argument("--dumps", type=Path, metavar="FOLDER", help="dumps made before, instead of an interpreter")
    parser.add_argument("--csrc", type=Path, default=ROOT / "packages/dynacore/csrc", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if not options.python and not options.dumps:
        parser.error("give the interpreter, or --dumps")
    return options


def make_dumps(python: str, release: tuple[int, int]) -> Path:
    """Have the interpreter write its dumps to where they are committed."""
    found = subprocess.run(
        [python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=True
    )
    if tuple(map(int, found.stdout.split())) != release:
        raise SystemExit(f"{python} is CPython {found.stdout.strip().replace(' ', '.')}, not {text(release)}")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(PACKAGE.parent)])}
    subprocess.run([python, "-W", "ignore", "-m", "models.dumps", str(dumps.DATA)], env=environment, check=True)
    return dumps.DATA


def climb(rungs: list[port_ladder.Rung]) -> int:
    """Try one rung after the other, up to the first that doesn't hold."""
    for number, rung in enumerate(rungs, 1):
        missing = rung.missing()
        print(f"\nrung {number}, {rung.name}: {'holds' if not missing else 'missing'}", flush=True)
        if missing:
            print("\n".join(f"  {line}" for line in missing))
            print(f"\n{len(rungs) - number} rungs above it weren't tried. docs/porting.md says what to do at each.")
            return 1
    return 0


def text(release: tuple[int, int]) -> str:
    """3.16"""
    return ".".join(map(str, release))


if __name__ == "__main__":
    sys.exit(main())
