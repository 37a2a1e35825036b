"""The compiler as a program: where it is, and one run of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path


class LowersetError(Exception):
    """What the compiler or a library of it refused.

    code: the exit code of the program, or the number of a library's error
    node: the ONNX node that the message is about, or None
    hint: what to do about it, or None
    """

    def __init__(self, text: str, *, code: int = 1, node: str | None = None,
                 hint: str | None = None):
        super().__init__(text)
        self.code = code
        self.node = node
        self.hint = hint


def find_program() -> str:
    """The path of `lowerset`: $LOWERSET, the package's own, or the one of $PATH."""
    own = Path(__file__).parent / "bin" / "lowerset"
    for path in (os.environ.get("LOWERSET"), str(own), shutil.which("lowerset")):
        if path and os.access(path, os.X_OK):
            return path
    raise LowersetError("there is no program `lowerset`: install the package's wheel, or set "
                        "LOWERSET to the path of one", code=1)


def run(arguments: Sequence[str], *, cwd: str | os.PathLike[str] | None = None) -> str:
    """What `lowerset ARGUMENTS` prints on its standard output.

    Raises LowersetError if it fails, with the message that it printed.
    """
    done = subprocess.run([find_program(), *map(str, arguments)], cwd=cwd, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        raise LowersetError(done.stderr.strip() or f"lowerset ended with {done.returncode}",
                            code=done.returncode)
    return done.stdout
