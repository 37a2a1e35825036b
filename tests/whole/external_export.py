"""external_export.py ONE TWO: TWO, whose data lie in TWO.data, says what the file ONE says."""
import os
import sys


def varint(b, at):
    value = shift = 0
    while True:
        value |= (b[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if b[at - 1] < 128:
            return value, at


def fields(b):
    at = 0
    while at < len(b):
        tag, at = varint(b, at)
        if tag & 7 == 2:
            n, at = varint(b, at)
            yield tag >> 3, b[at:at + n]
            at += n
        elif tag & 7 == 0:
            value, at = varint(b, at)
            yield tag >> 3, value
        else:
            n = 4 if tag & 7 == 5 else 8
            yield tag >> 3, b[at:at + n]
            at += n


RAW, EXTERNAL, LOCATION = 9, 13, 14


def tensor(b, path):
    """Its fields, with data that lie in another file; and whether they do."""
    own = list(fields(b))
    place = dict(tuple(v.decode() for _, v in fields(e)) for k, e in own if k == EXTERNAL)
    rest = [f for f in own if f[0] not in (RAW, EXTERNAL, LOCATION)]
    raw = b"".join(v for k, v in own if k == RAW)
    if place:
        assert dict(own)[LOCATION] == 1 and not raw
        with open(os.path.join(os.path.dirname(path), place["location"]), "rb") as f:
            f.seek(int(place["offset"]))
            raw = f.read(int(place["length"]))
        assert len(raw) == int(place["length"]) and int(place["offset"]) % 64 == 0
    return sorted(map(repr, rest)) + [raw], bool(place)


def model(path):
    with open(path, "rb") as f:
        whole = list(fields(f.read()))
    graph = list(fields(dict(whole)[7]))
    tensors = [tensor(v, path) for k, v in graph if k == 5]
    others = [f for f in whole if f[0] != 7], [f for f in graph if f[0] != 5]
    return others, [t for t, _ in tensors], sum(beside for _, beside in tensors)


one, two = (model(path) for path in sys.argv[1:])
assert one[2] == 0 and two[2] > 10, f"{one[2]} and {two[2]} tensors lie beside the models"
assert one[0] == two[0], "something besides tensors differs"
assert one[1] == two[1], "tensors differ"
