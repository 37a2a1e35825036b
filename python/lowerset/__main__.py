"""The command line: `python -m lowerset plan net.onnx` is `lowerset plan net.onnx`. One option is
this package's own: `data pack TEXT... -o FILE.lsd --tokenizer tokenizer.json`."""

from __future__ import annotations

import os
import sys

from ._program import environment, find_program
from .errors import LowersetError


def main() -> None:
    """Becomes the program, with the same arguments. Its exit code is the process's."""
    arguments = sys.argv[1:]
    try:
        program = find_program()
    except LowersetError as error:
        sys.exit(f"lowerset: {error}")
    try:
        if any(word.split("=")[0] == "--tokenizer" for word in arguments):
            from ._dataset import command
            arguments = command(arguments) or arguments
    except LowersetError as error:
        print(f"lowerset: {error}", file=sys.stderr)
        sys.exit(error.code)
    sys.stdout.flush()
    os.execve(program, [program, *arguments], environment())


if __name__ == "__main__":
    main()
