"""The C extension; everything else is in pyproject.toml."""

from pathlib import Path

from setuptools import Extension, setup

SOURCES = Path(__file__).parent / "csrc"

setup(
    ext_modules=[
        Extension(
            "dynacore._C",
            sources=sorted(f"csrc/{path.name}" for path in SOURCES.glob("*.c")),
            depends=sorted(f"csrc/{path.name}" for path in SOURCES.glob("*.h")),
            extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden"],
        )
    ]
)
