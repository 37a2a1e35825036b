"""The compiler as a program: where it is, one run of it, and keywords as its options."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from .errors import (LowersetError, LowersetWarning, ToolError, UsageError, error_of,
                     warnings_of)

__all__ = ["LowersetError", "environment", "find_program", "option_words", "run"]


def _is_script(path: str) -> bool:
    """Whether a file is a script: such as this package's own command, which calls the program."""
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def _of_checkout() -> list[str]:
    """Where a checkout has the program, if this file lies in one: `pip install -e .` builds it in
    the second place."""
    root = Path(__file__).parents[2]
    if not (root / "meson.build").exists():
        return []
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return [str(root / "build" / "lowerset"), str(root / "build" / python / "lowerset")]


def find_program() -> str:
    """The path of `lowerset`: $LOWERSET, the package's own, that of a checkout, that of $PATH."""
    own = str(Path(__file__).parent / "bin" / "lowerset")
    for path in (os.environ.get("LOWERSET"), own, *_of_checkout()):
        if path and os.access(path, os.X_OK):
            return path
    found = shutil.which("lowerset")
    if found is not None and not _is_script(found):
        return found
    raise ToolError("there is no program `lowerset`: install the package's wheel, or set LOWERSET "
                    "to the path of one", code=5)


def _zig() -> str | None:
    """The program of the package ziglang; None: it is not installed."""
    from importlib.util import find_spec
    spec = find_spec("ziglang")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        path = os.path.join(folder, "zig")
        if os.access(path, os.X_OK):
            return path
    return None


# The oldest compilers that programs are right with: codegen/toolchain/compiler_version.h.
_LEAST = {"gcc": 12, "clang": 13}


def _is_too_old(compiler: str) -> bool:
    """Whether a compiler says that it is older than programs need."""
    try:
        said = subprocess.run([compiler, "--version"], stdin=subprocess.DEVNULL, check=False,
                              capture_output=True, encoding="utf-8", errors="replace").stdout
    except OSError:
        return False
    clang = re.search(r"clang version (\d+)", said)
    gcc = "Free Software Foundation" in said and re.search(r"\) (\d+)", said)
    return (int(clang[1]) < _LEAST["clang"] if clang else
            int(gcc[1]) < _LEAST["gcc"] if gcc else False)


def environment() -> dict[str, str]:
    """The variables that the program runs with: those of this process, and CC.

    CC stays what it is. Where it is not set, it is cc, gcc or clang, the first that is there. If
    there is none, or an old one, it is the compiler of the package ziglang, where that is
    installed (pip install lowerset[cc]). VIRTUAL_ENV is where NVIDIA's packages are looked for.
    """
    variables = dict(os.environ)
    if sys.prefix != sys.base_prefix:
        variables.setdefault("VIRTUAL_ENV", sys.prefix)
    if variables.get("CC"):
        return variables
    there = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    zig = _zig()
    if zig is not None and (there is None or _is_too_old(there)):
        folder = os.path.dirname(zig)
        if " " in folder:       # the program takes CC apart at blanks
            variables["PATH"] = f"{folder}:{variables.get('PATH', os.defpath)}"
            zig = "zig"
        # Else zig adds checks to programs of -O 0, and needs their library.
        variables["CC"] = f"{zig} cc -fno-sanitize=undefined"
    elif there is not None and os.path.basename(there) != "cc":
        variables["CC"] = os.path.basename(there)
    return variables


def _json_of(text: str) -> dict | None:
    try:
        report = json.loads(text)
    except ValueError:
        return None
    return report if isinstance(report, dict) else None


def run(arguments: Sequence[str | os.PathLike[str]], *,
        cwd: str | os.PathLike[str] | None = None, accept: Sequence[int] = (0,)) -> str:
    """What `lowerset ARGUMENTS` prints on its standard output.

    accept: exit codes that are no error. What the program warns of is warned of as
    LowersetWarning.

    Raises the LowersetError of its exit code if it fails, with the message that it printed.
    """
    done = subprocess.run([find_program(), *map(str, arguments)], cwd=cwd,
                          env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
                          check=False, encoding="utf-8", errors="backslashreplace")
    report = _json_of(done.stdout) if done.returncode != 0 else None
    if done.returncode not in accept or (done.returncode != 0 and report is None):
        error = error_of(done.returncode, done.stderr)
        error.report = report
        raise error
    for text in warnings_of(done.stderr):
        warnings.warn(text, LowersetWarning, stacklevel=3)
    return done.stdout


# Options without a value, and those that are given as --no-NAME alone: the test `python_commands`
# compares them with the program's own table.
_FLAGS = frozenset((
    "allow-nondeterministic", "check", "compiled-engines", "drop-bias", "dry-run", "json",
    "max-batch", "measure", "merge", "no-tiles", "one-hot", "pack", "prove", "quick", "quiet",
    "segments", "skip-bad", "store-gradients", "table", "tie", "update", "verbose"))
_NEGATIVES = frozenset(("alternatives", "epilogues", "inplace", "offsets", "overlap"))
# Options whose value is a list in one word, with what stands between its elements.
_JOINED = {"arch": ",", "categories": ",", "class-weights": ",", "label-shape": "x",
           "leave-out": ",", "link": ",", "loss": ",", "strategies": ","}


def _text(name: str, value: object) -> str:
    """A single value of an option as text."""
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (bool, bytes)) or value is None:
        raise UsageError(f"option {name} cannot be {value!r}")
    return str(value)


def _collected(name: str, key: object, value: object) -> str:
    """KEY=VALUE; a shape as AxBxC."""
    if isinstance(value, (list, tuple)):
        value = "x".join(_text(name, v) for v in value)
    return f"{_text(name, key)}={_text(name, value)}"


def _flag_words(name: str, value: bool) -> list[str]:
    """The words of NAME=True or NAME=False."""
    negative = name.removeprefix("no-")
    if negative in _NEGATIVES:
        is_off = value if name != negative else not value
        return [f"--no-{negative}"] if is_off else []
    if name not in _FLAGS:
        raise UsageError(f"option {name} takes a value, not {value}",
                         hint="leave it out, or give None, for its default")
    return [f"--{name}"] if value else []


def option_words(**options: object) -> list[str]:
    """Keywords as words of the command line.

    clip_norm=1 is --clip-norm=1; prove=True is --prove, and False or None is nothing; a list
    repeats the option (freeze=["a", "b"]), or is one value where the option takes one
    (class_weights=[1, 2]); a dict is NAME=VALUE each (dim={"N": 8}, shape={"x": (8, 3)}).
    inplace=False is --no-inplace. An underscore at the end is dropped: from_="20%".

    Raises UsageError for True or False where the option takes a value. What the program does not
    know it refuses itself.
    """
    words = []
    for key, value in options.items():
        name = key.rstrip("_").replace("_", "-")
        if value is None:
            continue
        if type(value).__name__ in ("bool", "bool_"):
            words += _flag_words(name, bool(value))
            continue
        if isinstance(value, Mapping):
            values = [_collected(name, k, v) for k, v in value.items()]
        elif isinstance(value, (list, tuple)):
            values = [_text(name, v) for v in value]
            if name in _JOINED and values:
                values = [_JOINED[name].join(values)]
        else:
            values = [_text(name, value)]
        if name in _FLAGS or name.removeprefix("no-") in _NEGATIVES:
            raise UsageError(f"option {name} is True or False, not {value!r}")
        words += [f"--{name}={v}" if name != "march" else f"-march={v}" for v in values]
    return words
