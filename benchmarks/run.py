"""The tables of both engines, side by side from one run.

    python benchmarks/run.py [capture] [deopt] [depth] [--only TEXT] [--json FILE]

Every row and engine is a process of its own; the engines take turns row by row, so that what else the machine
does meets both of them.
"""

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import engines

TABLES = ("capture", "deopt", "depth")
TIMEOUT = 600


@dataclass(frozen=True)
class Column:
    """One measurement: its heading, its key in a row, and how it is written."""

    heading: str
    key: str
    show: Callable[[float], str]


def yes_no(value: float) -> str:
    return "yes" if value else "**no**"


EQUAL = Column("equal", "equal", yes_no)
GRAPHS = Column("graphs", "graphs", str)
CAPTURE_COLUMNS = (
    EQUAL,
    GRAPHS,
    Column("operations", "operations", str),
    Column("capture, s", "capture_s", "{:.3f}".format),
    Column("guards + dispatch, µs", "overhead_us", "{:.1f}".format),
)
DEOPT_COLUMNS = (
    EQUAL,
    GRAPHS,
    Column("recompiled when warm", "recompiled", str),
    Column("coverage", "coverage", "{:.2f}".format),
)


def programs(table: str) -> dict:
    """The programs of a table, by name."""
    import hard
    import programs

    return {"capture": programs.CAPTURE, "depth": programs.DEPTH, "deopt": hard.HARD}[table]


def measure_here(table: str, engine: str, name: str) -> dict:
    """Measure one row in this process."""
    import measure
    import torch

    torch.manual_seed(0)
    make = programs(table)[name]
    if table == "deopt":
        return measure.deoptimise(engine, make)
    program, args = make()
    return measure.capture(engine, program, args)


def measure_apart(table: str, engine: str, name: str) -> dict:
    """Measure one row in a fresh process; a row that fails says how in `error`."""
    command = [sys.executable, __file__, "--row", table, engine, name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"no end within {TIMEOUT} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": f"exit status {done.returncode}: {last[:200]}"}
    return json.loads(done.stdout.splitlines()[-1])


def print_table(table: str, only: str) -> dict[str, dict[str, dict]]:
    """Measure a table and print it in Markdown, row by row; each cell has one value per engine."""
    columns = DEOPT_COLUMNS if table == "deopt" else CAPTURE_COLUMNS
    print(f"\n### {table} ({' / '.join(engines.NAMES)})\n")
    print("| program | " + " | ".join(column.heading for column in columns) + " |")
    print("|---" * (len(columns) + 1) + "|", flush=True)
    rows = {}
    for name in programs(table):
        if only not in name:
            continue
        row = rows[name] = {engine: measure_apart(table, engine, name) for engine in engines.NAMES}
        cells = [
            " / ".join(column.show(one[column.key]) if column.key in one else "–" for one in row.values())
            for column in columns
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    for name, row in rows.items():
        for engine, one in row.items():
            if "error" in one:
                print(f"\n{name} under {engine}: {one['error']}")
    return rows


def main() -> None:
    """Read the command line; print what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="table", help=f"of {', '.join(TABLES)}; all by default")
    parser.add_argument("--only", default="", help="programs whose name holds this text")
    parser.add_argument("--json", help="also write the rows to this file")
    parser.add_argument("--row", nargs=3, metavar=("TABLE", "ENGINE", "PROGRAM"), help="measure one row here")
    options = parser.parse_args()
    if options.row:
        print(json.dumps(measure_here(*options.row)))
        return
    if unknown := set(options.tables) - set(TABLES):
        parser.error(f"no such table: {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    import torch

    print(f"CPython {platform.python_version()}, torch {torch.__version__}, {platform.machine()}")
    results = {table: print_table(table, options.only) for table in options.tables or TABLES}
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
