"""Writes small ONNX files. Needs nothing but Python."""
import array
import struct

FLOAT, INT64 = 1, 7


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    """An attribute of an integer, a real, a text or a list of integers."""
    out = field(1, name)
    if isinstance(value, float):
        out += varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)
    elif isinstance(value, int):
        out += field(3, value) + field(20, 2)
    elif isinstance(value, str):
        out += field(4, value) + field(20, 3)
    else:
        out += b"".join(field(8, v) for v in value) + field(20, 7)
    return field(5, out)


def tensor(name, dims, data, kind=FLOAT):
    raw = array.array("f" if kind == FLOAT else "q", data).tobytes()
    head = b"".join(field(1, d) for d in dims)
    return head + field(2, kind) + field(8, name) + field(9, raw)


def value_info(name, dims, kind=FLOAT):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


class Model:
    """A graph that grows node by node; names of values are v0, v1 ... unless given."""

    def __init__(self):
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self.parameters, self.ops = [], set()
        self.names = 0

    def name(self, prefix="v"):
        self.names += 1
        return f"{prefix}{self.names}"

    def node(self, op, inputs, results=1, **attributes):
        """Appends a node, and returns the name of its result, or the names of several."""
        out = [self.name() for _ in range(results)]
        body = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in out)
        body += field(3, "node_" + out[0]) + field(4, op)
        body += b"".join(attribute(k, v) for k, v in attributes.items())
        self.nodes.append(body)
        self.ops.add(op)
        return out[0] if results == 1 else out

    def weight(self, dims, data, kind=FLOAT, prefix="p"):
        name = self.name(prefix)
        self.weights.append(tensor(name, dims, data, kind))
        if prefix == "p":
            self.parameters.append(name)
        return name

    def input(self, name, dims, kind=FLOAT):
        self.inputs.append(value_info(name, dims, kind))
        return name

    def output(self, name, dims):
        """Gives the last value of that name another one by an Identity, as an output."""
        out = f"y{len(self.outputs)}"
        body = field(1, name) + field(2, out) + field(3, "node_" + out) + field(4, "Identity")
        self.nodes.append(body)
        self.outputs.append(value_info(out, dims))
        return out

    def write(self, path, opset=18):
        graph = b"".join(field(1, n) for n in self.nodes) + field(2, "net")
        graph += b"".join(field(5, w) for w in self.weights)
        graph += b"".join(field(11, i) for i in self.inputs)
        graph += b"".join(field(12, o) for o in self.outputs)
        model = field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, opset))
        with open(path, "wb") as f:
            f.write(model)
