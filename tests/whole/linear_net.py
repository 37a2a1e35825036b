"""A net whose gradients are its inputs: loss = sum over parameters of sum(parameter *
input). Without numpy.

For tests of optimizers: one sample is one step, and its inputs are the gradients of all parameters.
"""
import array
import ast
import math
import os
import struct
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from onnx_file import field, tensor, value_info  # noqa: E402


def node(op, inputs, output, attributes=b""):
    return b"".join(field(1, i) for i in inputs) + field(2, output) + field(3, output) \
        + field(4, op) + attributes


def model(params):
    """The ONNX file of parameters {name: (shape, values)}."""
    nodes, terms = b"", []
    for name in params:
        nodes += field(1, node("Mul", ["x_" + name, name], "y_" + name))
        keep = field(5, field(1, "keepdims") + field(3, 0) + field(20, 2))
        nodes += field(1, node("ReduceSum", ["y_" + name], "s_" + name, keep))
        terms.append("s_" + name)
    nodes += field(1, node("Sum", terms, "loss"))
    graph = nodes + field(2, "linear")
    graph += b"".join(field(5, tensor(n, shape, data)) for n, (shape, data) in params.items())
    graph += b"".join(field(11, value_info("x_" + n, [1] + list(shape)))
                      for n, (shape, _) in params.items())
    graph += field(12, value_info("loss", []))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def npz_read(path):
    """{member: (shape, values)} of reals and integers."""
    out = {}
    with zipfile.ZipFile(path) as z:
        for name in z.namelist():
            raw = z.read(name)
            size = struct.unpack("<H", raw[8:10])[0]
            head = ast.literal_eval(raw[10:10 + size].decode())
            code = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i", "|u1": "B"}[head["descr"]]
            out[name[:-4]] = (head["shape"], list(array.array(code, raw[10 + size:])))
    return out


def npz_write(path, members):
    with zipfile.ZipFile(path, "w") as z:
        for name, (shape, data) in members.items():
            head = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (tuple(shape),)
            head += " " * (-(len(head) + 11) % 64) + "\n"
            z.writestr(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head))
                       + head.encode() + array.array("f", data).tobytes())


def single(x):
    """The float nearest to x."""
    return struct.unpack("f", struct.pack("f", x))[0]


def count(shape):
    return math.prod(shape)
