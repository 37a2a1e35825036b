"""The build backend: meson-python's, whose wheels then fit every Python 3.

meson-python takes what lies beside a package for extension modules of one Python. This package has
none: it calls a program, and loads libraries by ctypes.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from pathlib import Path

from mesonpy import (build_editable, build_sdist, get_requires_for_build_editable,
                     get_requires_for_build_sdist, get_requires_for_build_wheel)
from mesonpy import build_wheel as _build_wheel

__all__ = ["build_editable", "build_sdist", "build_wheel", "get_requires_for_build_editable",
           "get_requires_for_build_sdist", "get_requires_for_build_wheel"]


def _record_row(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def _retag(source: zipfile.ZipFile, target: zipfile.ZipFile) -> None:
    """Copies a wheel; its WHEEL says py3-none-PLATFORM, and its RECORD knows that."""
    changed: dict[str, bytes] = {}
    for item in sorted(source.infolist(), key=lambda i: i.filename.endswith("/RECORD")):
        data = source.read(item)
        if item.filename.endswith(".dist-info/WHEEL"):
            data = re.sub(rb"(?m)^Tag: [^-\n]+-[^-\n]+-", b"Tag: py3-none-", data)
            changed[item.filename] = data
        elif item.filename.endswith(".dist-info/RECORD"):
            rows = data.decode().splitlines()
            rows = [_record_row(row.split(",")[0], changed[row.split(",")[0]])
                    if row.split(",")[0] in changed else row for row in rows]
            data = ("\n".join(rows) + "\n").encode()
        target.writestr(item, data, compress_type=zipfile.ZIP_DEFLATED)


def build_wheel(wheel_directory: str, config_settings: dict | None = None,
                metadata_directory: str | None = None) -> str:
    """PEP 517: makes the wheel, and returns its name."""
    folder = Path(wheel_directory)
    made = folder / _build_wheel(wheel_directory, config_settings, metadata_directory)
    name = re.sub(r"-[^-]+-[^-]+-([^-]+[.]whl)$", r"-py3-none-\1", made.name)
    if name != made.name:
        with zipfile.ZipFile(made) as source, zipfile.ZipFile(folder / name, "w") as target:
            _retag(source, target)
        made.unlink()
    return name
