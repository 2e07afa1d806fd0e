"""The C extension; everything else is in pyproject.toml.

On a release of CPython that the C code doesn't know, the package is installed without it: there everything runs
uncompiled, or raises `UnsupportedPython`, as `dynacore.config.on_unsupported_python` says.
"""

import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

SOURCES = Path(__file__).parent / "csrc"

HEADER = SOURCES / f"cpython_{sysconfig.get_config_var('py_version_nodot')}.h"

if not HEADER.exists():
    print(f"dynacore: there is no {HEADER.name}, so nothing can be captured here; see docs/porting.md", file=sys.stderr)

setup(
    ext_modules=[
        Extension(
            "dynacore._C",
            sources=sorted(f"csrc/{path.name}" for path in SOURCES.glob("*.c")),
            depends=sorted(f"csrc/{path.name}" for path in SOURCES.glob("*.h")),
            extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden"],
        )
    ]
    if HEADER.exists()
    else []
)
