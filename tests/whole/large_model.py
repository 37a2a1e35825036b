"""large_model.py OUT [layers=N width=N hidden=N vocab=N heads=N tokens=N type=f32|f16|bf16
fill=zeros|numbers tied=0|1]: a network like Llama, whose weights lie in OUT.data. Zeros are a hole
in that file, so that it takes no room however large it is. Numbers are the same in all types. Needs
nothing but Python."""
import array
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from onnx_file import FLOAT, INT64, attribute, field, tensor, value_info  # noqa: E402

TYPES = {"f32": (FLOAT, 4), "f16": (10, 2), "bf16": (16, 2)}


class Llama:
    def __init__(self, out, o):
        self.kind, self.bytes = TYPES[o["type"]]
        self.name, self.numbers = os.path.basename(out) + ".data", o["fill"] == "numbers"
        self.data, self.at, self.seed = open(out + ".data", "wb"), 0, 1
        self.nodes, self.weights, self.count = [], [], 0

    def values(self, n):
        """Multiples of 1/256 within 1/4, which all types have."""
        numbers = []
        for _ in range(n):
            self.seed = (self.seed * 1103515245 + 12345) & 0x7FFFFFFF
            numbers.append(((self.seed >> 16) % 129 - 64) / 256)
        return self.packed(numbers)

    def packed(self, numbers):
        if self.kind == FLOAT:
            return array.array("f", numbers).tobytes()
        if self.kind == 10:
            return struct.pack(f"<{len(numbers)}e", *numbers)
        return b"".join(struct.pack("<f", v)[2:] for v in numbers)

    def weight(self, name, *dims):
        n = 1
        for d in dims:
            n *= d
        self.at = (self.at + 4095) // 4096 * 4096
        if self.numbers:
            self.data.seek(self.at)
            self.data.write(self.values(n))
        place = (("location", self.name), ("offset", str(self.at)),
                 ("length", str(n * self.bytes)))
        body = b"".join(field(1, d) for d in dims) + field(2, self.kind) + field(8, name)
        body += b"".join(field(13, field(1, k) + field(2, v)) for k, v in place) + field(14, 1)
        self.weights.append(body)
        self.at += n * self.bytes
        return name

    def constant(self, name, number):
        self.weights.append(field(2, self.kind) + field(8, name) + field(9, self.packed([number])))
        return name

    def integers(self, name, *numbers):
        self.weights.append(tensor(name, [len(numbers)], numbers, INT64))
        return name

    def node(self, op, *inputs, out=None, **attributes):
        self.count += 1
        out = out or f"/{op}_{self.count}"
        body = b"".join(field(1, i) for i in inputs) + field(2, out) + field(4, op)
        self.nodes.append(body + b"".join(attribute(k, v) for k, v in attributes.items()))
        return out

    def norm(self, x, name, width):
        mean = self.node("ReduceMean", self.node("Mul", x, x), axes=[-1], keepdims=1)
        root = self.node("Sqrt", self.node("Add", mean, "eps"))
        return self.node("Mul", self.node("Div", x, root), self.weight(name, width))

    def layer(self, x, name, d, hidden):
        n = self.norm(x, name + "input_layernorm.weight", d)
        heads = [self.node("Transpose", self.node("Reshape", self.node(
            "MatMul", n, self.weight(f"{name}self_attn.{k}_proj.weight", d, d)), "split"),
            perm=[0, 2, 1, 3]) for k in "qkv"]
        scores = self.node("MatMul", heads[0],
                           self.node("Transpose", heads[1], perm=[0, 1, 3, 2]))
        part = self.node("Softmax", self.node("Mul", scores, "scale"), axis=-1)
        y = self.node("Reshape", self.node("Transpose", self.node("MatMul", part, heads[2]),
                                           perm=[0, 2, 1, 3]), "join")
        x = self.node("Add", x, self.node(
            "MatMul", y, self.weight(name + "self_attn.o_proj.weight", d, d)))
        n = self.norm(x, name + "post_attention_layernorm.weight", d)
        gate = self.node("MatMul", n, self.weight(name + "mlp.gate_proj.weight", d, hidden))
        up = self.node("MatMul", n, self.weight(name + "mlp.up_proj.weight", d, hidden))
        m = self.node("Mul", self.node("Mul", gate, self.node("Sigmoid", gate)), up)
        return self.node("Add", x, self.node(
            "MatMul", m, self.weight(name + "mlp.down_proj.weight", hidden, d)))

    def head(self, x, d, vocab, tied):
        """tied: a second tensor with the numbers of the table, turned, as some exporters have."""
        weight = self.weight("lm_head.weight", d, vocab)
        if tied:
            size, at = self.bytes, self.at - d * vocab * self.bytes
            self.data.flush()
            with open(self.data.name, "rb") as f:
                table = f.read(vocab * d * size)
            part = [table[k * size:(k + 1) * size] for k in range(vocab * d)]
            self.data.seek(at)
            self.data.write(b"".join(part[j * d + i] for i in range(d) for j in range(vocab)))
        self.node("MatMul", x, weight, out="logits")


def write(out, o):
    d, heads, tokens, vocab = (o[k] for k in ("width", "heads", "tokens", "vocab"))
    m = Llama(out, o)
    m.constant("eps", 2.0 ** -16)
    m.constant("scale", 0.25)
    m.integers("split", 1, tokens, heads, d // heads)
    m.integers("join", 1, tokens, d)
    x = m.node("Gather", m.weight("model.embed_tokens.weight", vocab, d), "input_ids")
    for k in range(o["layers"]):
        x = m.layer(x, f"model.layers.{k}.", d, o["hidden"])
    m.head(m.norm(x, "model.norm.weight", d), d, vocab, o["tied"])
    m.data.truncate(m.at)
    m.data.close()
    graph = b"".join(field(1, n) for n in m.nodes) + field(2, "llama")
    graph += b"".join(field(5, w) for w in m.weights)
    graph += field(11, value_info("input_ids", [1, tokens], INT64))
    graph += field(12, value_info("logits", [1, tokens, vocab], m.kind))
    with open(out, "wb") as f:
        f.write(field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)))


options = dict(layers=2, width=64, hidden=160, vocab=96, heads=4, tokens=16, type="f32",
               fill="zeros", tied=0)
for given in sys.argv[2:]:
    key, value = given.split("=")
    options[key] = type(options[key])(value)
write(sys.argv[1], options)
