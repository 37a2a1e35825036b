"""Compares two files of a trainer's --dump."""
import array
import re
import struct
import zipfile

PASSING = re.compile(r"^moment/.*\.(grad|parts|next)$")    # sums over the parts of one update
EPSILON = {"f64": 1e-9, "f32": 2e-4, "bf16": 6e-2, "f16": 2e-2}


def read(path):
    """{member: (header, bytes)}: nothing is converted."""
    out = {}
    with zipfile.ZipFile(path) as z:
        for name in z.namelist():
            raw = z.read(name)
            start = 10 + struct.unpack("<H", raw[8:10])[0]
            out[name.removesuffix(".npy")] = (raw[10:start].decode("latin1"), raw[start:])
    return out


def numbers(header, data):
    for code, kind in (("<f4", "f"), ("<f8", "d"), ("<i8", "q"), ("<i4", "i"), ("|u1", "B")):
        if code in header:
            return array.array(kind, data)
    return None


def distance(one, two):
    """The largest difference over the largest number; None where a type is unknown."""
    a, b = numbers(*one), numbers(*two)
    if a is None or b is None or len(a) != len(b):
        return None
    largest = max((abs(x) for x in a if x == x), default=0) or 1
    return max((abs(x - y) for x, y in zip(a, b) if x == x or y == y), default=0) / largest


def differences(first, second, close, precision, is_one):
    """Lines that say what differs between two dumps. Left out is what lives for one update; and
    where one process runs all parts of a batch, outputs and gradients are compared if both programs
    store them."""
    a, b = read(first), read(second)
    said = []
    for name in sorted(set(a) | set(b)):
        if name.startswith("moment/accumulated_") or PASSING.search(name):
            continue
        if name.startswith(("grad/", "out/")) and not (is_one and name in a and name in b):
            continue
        if name not in a or name not in b:
            said.append(f"{name} is in one file only")
        elif a[name] != b[name]:
            d = distance(a[name], b[name])
            if not close or d is None or not d <= EPSILON[precision]:
                said.append(f"{name} differs by {d:.3g}" if d is not None else f"{name} differs")
    return said
