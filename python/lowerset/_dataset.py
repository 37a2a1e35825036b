"""Packed data sets, FILE.lsd: made by the program, read as arrays that lie in the file."""

from __future__ import annotations

import json
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ._program import option_words, run
from .errors import DataError, ToolError, UsageError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Dataset", "Field", "open_dataset", "pack"]

_MAGIC = b"\x89LSD\r\n\x1a\n"
_VERSION = 1
_HEAD = 64
_BLOCK = 1 << 20


class Field(dict):
    """What the file says of a field: `name`, `role`, `kind`, `type`, `shape`, and where they are
    there `mean`, `std`, `classes`, `columns`, `alphabet`."""


class Dataset(Mapping):
    """The fields of a packed data set by their names, as arrays that are mapped: [samples, ...].

    samples: how many there are
    fields: a Field for each array
    classes: names of the classes of the labels, or None
    sources: what the file was made of
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        head, text, self._sums = _read(self.path)
        self.samples: int = text["samples"]
        self.fields = {f["name"]: Field(f) for f in text["fields"]}
        self.sources: list[str] = text.get("sources", [])
        named = [f["classes"] for f in text["fields"] if f["role"] == "label" and "classes" in f]
        self.classes: list[str] | None = named[0] if named else None
        self._arrays = {f["name"]: _array(self.path, self.samples, f) for f in text["fields"]}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{n}: {a.dtype}{list(a.shape)}" for n, a in self._arrays.items())
        return f"<lowerset.Dataset {self.path}: {shapes}>"

    def check(self) -> None:
        """Reads all values, and raises DataError where they are not as they were written."""
        at = 0
        with open(self.path, "rb") as file:
            for field in self.fields.values():
                file.seek(field["offset"])
                for begin in range(0, field["bytes"], _BLOCK):
                    block = file.read(min(_BLOCK, field["bytes"] - begin))
                    if zlib.crc32(block) != struct.unpack_from("<I", self._sums, at)[0]:
                        raise DataError(f"{self.path}: damaged: block {begin // _BLOCK} of "
                                        f"'{field['name']}' is not as it was written", code=8)
                    at += 4


def _read(path: str) -> tuple[bytes, dict, bytes]:
    """The head, the description and the checksums, once they are found right."""
    def damaged(what: str) -> DataError:
        return DataError(f"{path}: {what}", code=8)

    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
            size = file.seek(0, os.SEEK_END)
            if len(head) < _HEAD or head[:8] != _MAGIC:
                raise damaged("no packed data set (lowerset data pack makes them)")
            version, text_sum, at, length, bytes_, sums, sums_sum = \
                struct.unpack("<IIQQQQI", head[8:52])
            if version != _VERSION:
                raise damaged(f"a packed data set of version {version}; {_VERSION} is read")
            if zlib.crc32(head[:60]) != struct.unpack("<I", head[60:])[0]:
                raise damaged("damaged: the checksum of its head is wrong")
            if size != bytes_:
                raise damaged(f"{'truncated' if size < bytes_ else 'damaged'}: it was written "
                              f"with {bytes_} bytes, and has {size}")
            file.seek(sums)
            rest = file.read()
    except OSError as error:
        raise damaged(f"cannot read: {error.strerror}") from error
    text = rest[at - sums:at - sums + length]
    if zlib.crc32(text) != text_sum or zlib.crc32(rest[:at - sums]) != sums_sum:
        raise damaged("damaged: the checksum of its description is wrong")
    return head, json.loads(text), rest[:at - sums]


def _array(path: str, samples: int, field: Mapping) -> np.ndarray:
    import numpy as np
    kind = field["type"]
    if kind == "bfloat16":
        try:
            import ml_dtypes
            kind = ml_dtypes.bfloat16
        except ImportError:
            kind = "V2"
    dtype = np.dtype(kind)
    return np.memmap(path, dtype=dtype.newbyteorder("<") if dtype.kind in "iuf" else dtype,
                     mode="r", offset=field["offset"], shape=(samples, *field["shape"]))


def open_dataset(path: str | os.PathLike[str]) -> Dataset:
    """A packed data set as NumPy arrays, which are mapped and not read.

    Raises DataError if the file is cut, damaged or something else.
    """
    return Dataset(path)


def pack(*sources: str | os.PathLike[str], output: str | os.PathLike[str],
         tokenizer: str | os.PathLike[str] | None = None, **options: object) -> Dataset:
    """Makes a packed data set of sources, and opens it. Each option of `lowerset data pack` is a
    keyword: pack("photos", output="photos.lsd", size=224).

    tokenizer: a tokenizer.json, by which texts become tokens (needs the package tokenizers)
    """
    words = option_words(**options)
    if tokenizer is None:
        run(["data", "pack", *map(_word, sources), "-o", os.fspath(output), *words])
    else:
        _pack_texts(sources, output, tokenizer, words)
    return open_dataset(output)


def _word(path: str | os.PathLike[str]) -> str:
    """A path as a word that is no option."""
    path = os.fspath(path)
    return f"./{path}" if path.startswith("-") else path


def _tokenizer(path: str | os.PathLike[str]):
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ToolError("the package tokenizers is missing", code=5,
                        hint="pip install tokenizers") from error
    try:
        return Tokenizer.from_file(os.fspath(path))
    except Exception as error:          # what it raises has no class of its own
        raise DataError(f"{os.fspath(path)}: no tokenizer: {error}", code=8) from error


def _pieces(path: str | os.PathLike[str], size: int = 1 << 20) -> Iterator[str]:
    """A text in pieces of whole lines, so that it may be larger than memory."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            lines, held = [], 0
            for line in file:
                lines.append(line)
                held += len(line)
                if held >= size:
                    yield "".join(lines)
                    lines, held = [], 0
            if lines:
                yield "".join(lines)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{os.fspath(path)}: cannot be read as UTF-8 text: {error}",
                        code=8) from error


def _pack_texts(sources: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str],
                path: str | os.PathLike[str], words: Sequence[str]) -> None:
    import numpy as np
    reader = _tokenizer(path)
    kind = np.uint16 if reader.get_vocab_size() <= 1 << 16 else np.uint32
    if not sources:
        raise UsageError("pack needs a source: text files")
    folder = os.path.dirname(os.path.abspath(os.fspath(output)))
    with tempfile.TemporaryDirectory(prefix="lowerset-", dir=folder) as made:
        tokens = os.path.join(made, "tokens.bin")
        with open(tokens, "wb") as file:
            for source in sources:
                for piece in _pieces(source):
                    ids = reader.encode(piece, add_special_tokens=False).ids
                    file.write(np.asarray(ids, dtype=kind).tobytes())
        run(["data", "pack", tokens, "-o", os.fspath(output), f"--raw={np.dtype(kind).name}",
             *words])


def command(arguments: Sequence[str]) -> list[str] | None:
    """`data pack ... --tokenizer FILE`, which this package does; None: the program does."""
    if list(arguments[:2]) != ["data", "pack"]:
        return None
    rest, sources, found, output = iter(arguments[2:]), [], None, None
    words = []
    for word in rest:
        name, _, value = word.partition("=")
        if name == "--tokenizer":
            found = value or next(rest, None)
        elif name in ("--output", "-o"):
            output = value or next(rest, None)
        elif word.startswith("-"):
            words.append(word)
        else:
            sources.append(word)
    if found is None:
        return None
    if output is None:
        raise UsageError("pack needs an output: -o FILE.lsd")
    _pack_texts(sources, output, found, words)
    return ["data", "show", output]
