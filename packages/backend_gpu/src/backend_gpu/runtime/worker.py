"""A process that compiles kernels: a request a line on its input, the compiler's facts or its error a line back."""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Serve requests until the input ends."""
    out = sys.stdout
    sys.stdout = sys.stderr  # what the compiler prints isn't an answer
    from backend_gpu.runtime.compiling import Request, compile_request, facts

    for line in sys.stdin:
        try:
            answer = facts(compile_request(Request.of_text(line)))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
