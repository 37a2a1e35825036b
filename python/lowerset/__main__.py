"""The command line: `python -m lowerset plan net.onnx` is `lowerset plan net.onnx`."""

from __future__ import annotations

import os
import sys

from ._program import environment, find_program
from .errors import LowersetError


def main() -> None:
    """Becomes the program, with the same arguments. Its exit code is the process's."""
    try:
        program = find_program()
    except LowersetError as error:
        sys.exit(f"lowerset: {error}")
    sys.stdout.flush()
    os.execve(program, [program, *sys.argv[1:]], environment())


if __name__ == "__main__":
    main()
