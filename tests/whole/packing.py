"""Samples that share rows of tokens, beside the same samples in rows of their own.

usage: packing.py models               writes rotary.onnx, masked.onnx, and some to be refused
       packing.py data                 writes apart.npz, packed.npz, merged.npz (one segment a row),
                                       samples.jsonl, and streams of tokens
       packing.py near A.npz B.npz     losses and gradients of two dumps, to 1e-6 of their size
       packing.py losses A B           losses of updates, likewise
"""
import array
import json
import math
import os
import random
import struct
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import adapters
from onnx_file import FLOAT, INT64, Model

TOKENS, WORDS, WIDTH, HEADS = 16, 24, 8, 2
LENGTHS = [5, 3, 8, 1, 9, 4, 2, 16, 6, 10]
ROWS = [[0, 1, 2], [4, 3, 5, 6], [7], [8, 9]]        # sums of at most 16, one of them less


# ---- models ----
def drawn(seed, n, scale):
    rng = random.Random(seed)
    return [rng.gauss(0, scale) for _ in range(n)]


class Net(Model):
    def linear(self, x, inner, outer, seed):
        w = self.weight([inner, outer], drawn(seed, inner * outer, 1 / math.sqrt(inner)))
        return self.node("MatMul", [x, w])

    def ints(self, *values):
        return self.weight([len(values)], values, INT64, "c")

    def heads(self, x):
        shape = self.ints(0, TOKENS, HEADS, WIDTH // HEADS)
        return self.node("Transpose", [self.node("Reshape", [x, shape])], perm=[0, 2, 1, 3])

    def joined(self, x):
        x = self.node("Transpose", [x], perm=[0, 2, 1, 3])
        return self.node("Reshape", [x, self.ints(0, TOKENS, WIDTH)])

    def embedded(self, words, seed):
        table = self.weight([words, WIDTH], drawn(seed, words * WIDTH, 1.0))
        return lambda x: self.node("Gather", [table, x])


def causal(n, low):
    return [0.0 if j <= i else low for i in range(n) for j in range(n)]


def rotary(path):
    """Angles as constants, and attention as one node of the file."""
    m = Net()
    x = m.embedded(WORDS, 1)(m.input("x", ["N", TOKENS], INT64))
    half = WIDTH // HEADS // 2
    angle = [t / 10 ** k for t in range(TOKENS) for k in range(half)]
    cos = m.weight([1, TOKENS, half], [math.cos(a) for a in angle], FLOAT, "c")
    sin = m.weight([1, TOKENS, half], [math.sin(a) for a in angle], FLOAT, "c")
    q, k, v = (m.heads(m.linear(x, WIDTH, WIDTH, s)) for s in (2, 3, 4))
    q, k = (m.node("RotaryEmbedding", [p, cos, sin]) for p in (q, k))
    y = m.joined(m.node("Attention", [q, k, v], is_causal=1))
    x = m.node("Add", [x, m.linear(y, WIDTH, WIDTH, 5)])
    m.output(m.linear(x, WIDTH, WORDS, 6), ["N", TOKENS, WORDS])
    m.write(path, 23)


def masked(path, bias=None):
    """Inputs attention_mask and position_ids; single nodes; the mask is a sum."""
    m = Net()
    ids = m.input("input_ids", ["N", TOKENS], INT64)
    seen = m.input("attention_mask", ["N", TOKENS], INT64)
    places = m.input("position_ids", ["N", TOKENS], INT64)
    x = m.node("Add", [m.embedded(WORDS, 1)(ids), m.embedded(TOKENS, 7)(places)])
    types = m.node("Cast", [m.node("ConstantOfShape", [m.node("Shape", [ids])])], to=INT64)
    x = m.node("Add", [x, m.embedded(2, 8)(types)])         # all are of one type
    q, k, v = (m.heads(m.linear(x, WIDTH, WIDTH, s)) for s in (2, 3, 4))
    low, one, half = (m.node("Constant", [], value_float=v) for v in (-1e30, 1.0, 0.5))
    far = m.node("Cast", [m.node("Reshape", [seen, m.ints(0, 1, 1, TOKENS)])], to=FLOAT)
    far = m.node("Mul", [m.node("Sub", [one, far]), low])
    ahead = m.weight([1, 1, TOKENS, TOKENS], bias or causal(TOKENS, -1e30), FLOAT, "c")
    scores = m.node("MatMul", [q, m.node("Transpose", [k], perm=[0, 1, 3, 2])])
    scores = m.node("Mul", [scores, half])
    scores = m.node("Add", [scores, m.node("Add", [far, ahead])])
    y = m.joined(m.node("MatMul", [m.node("Softmax", [scores], axis=-1), v]))
    x = m.node("Add", [x, m.linear(y, WIDTH, WIDTH, 5)])
    m.output(m.linear(x, WIDTH, WORDS, 6), ["N", TOKENS, WORDS])
    m.write(path)


def mixing(path, name="x"):
    """A running sum over the tokens."""
    m = Net()
    x = m.embedded(WORDS, 1)(m.input(name, ["N", TOKENS], INT64))
    x = m.node("CumSum", [x, m.weight([], [1], INT64, "c")])
    m.output(m.linear(x, WIDTH, WORDS, 6), ["N", TOKENS, WORDS])
    m.write(path)


def pooled(path):
    m = Net()
    x = m.embedded(WORDS, 1)(m.input("x", ["N", TOKENS], INT64))
    x = m.node("ReduceMean", [x, m.ints(1)], keepdims=0)
    m.output(m.linear(x, WIDTH, WORDS, 6), ["N", WORDS])
    m.write(path)


# ---- data ----
def samples():
    """Tokens of each sample, and how many of the first ones get no label."""
    rng = random.Random(5)
    return [([rng.randrange(WORDS) for _ in range(n)], rng.randrange(n)) for n in LENGTHS]


def row(of):
    """x, label, segments, positions, 1 for a token, of samples that share a row."""
    x, label, segment, place = [], [], [], []
    for number, (tokens, prompt) in enumerate(of):
        x += tokens
        label += [t if k + 1 >= prompt else -100 for k, t in enumerate(tokens[1:])] + [-100]
        segment += [number] * len(tokens)
        place += range(len(tokens))
    pad = TOKENS - len(x)
    return (x + [0] * pad, label + [-100] * pad, segment + [len(of)] * pad,
            place + list(range(pad)), [1] * len(x) + [0] * pad)


def npy(values, dims, code):
    head = str({"descr": f"<{'i4' if code == 'i' else 'i8'}", "fortran_order": False,
                "shape": tuple(dims)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
            + struct.pack(f"<{len(values)}{code}", *values))


def archive(path, rows, names=("x", "label", "segments", "position_ids", "attention_mask")):
    with zipfile.ZipFile(path, "w") as z:
        for k, name in enumerate(names):
            flat = [v for r in rows for v in r[k]]
            code = "i" if name == "segments" else "q"
            z.writestr(name + ".npy", npy(flat, [len(rows), TOKENS], code))
            if name == "x":
                z.writestr("input_ids.npy", npy(flat, [len(rows), TOKENS], code))


def streams():
    """The same tokens in every form, and their windows as arrays."""
    rng = random.Random(1)
    t = [rng.randrange(WORDS) for _ in range(100)]
    wide = t[:57] + [WORDS] + t[58:]
    for name, kind, head, of in (("tokens", "H", None, t), ("tokens32", "I", None, t),
                                 ("llmc", "H", (20240520, 1), t), ("llmc32", "I", (20240801, 7), t),
                                 ("wide", "H", None, wide)):
        with open(name + ".bin", "wb") as f:
            if head:
                f.write(struct.pack("<256i", *head, len(of), *[0] * 253))
            f.write(array.array(kind, of).tobytes())
    for name, stride in (("windows", TOKENS), ("overlapping", 5)):
        at = range(0, len(t) - TOKENS, stride)
        archive(name + ".npz", [(t[k:k + TOKENS], t[k + 1:k + 1 + TOKENS]) for k in at],
                ("x", "label"))


def data():
    of = samples()
    streams()
    archive("apart.npz", [row([s]) for s in of])
    packed = [row([of[k] for k in r]) for r in ROWS]
    archive("packed.npz", packed)
    archive("merged.npz", [(x, y, [0] * TOKENS, p, seen) for x, y, _, p, seen in packed])
    with open("wide.jsonl", "w", encoding="utf-8") as f:
        print(json.dumps({"input_ids": [1, 2]}), json.dumps({"input_ids": [1, WORDS]}), sep="\n",
              file=f)
    with open("samples.jsonl", "w", encoding="utf-8") as f:
        for tokens, prompt in of:
            print(json.dumps({"input_ids": tokens, "prompt_length": prompt}), file=f)


def near(a, b):
    a, b = adapters.npz(a), adapters.npz(b)
    names = [k for k in b if k == "loss" or k.startswith("grad/")]
    assert len(names) > 3 and sorted(names) == sorted(
        k for k in a if k == "loss" or k.startswith("grad/")), (sorted(a), sorted(b))
    for k in names:
        assert any(b[k][1]), k
    worst = max(adapters.off(a[k][1], b[k][1]) for k in names)
    adapters.must(1e-6, worst, f"the loss and {len(names) - 1} gradients")


if sys.argv[1] == "models":
    rotary("rotary.onnx")
    masked("masked.onnx")
    prefix = [0.0 if k % TOKENS < 4 else v for k, v in enumerate(causal(TOKENS, -1e30))]
    masked("uneven.onnx", prefix)
    mixing("mixing.onnx")
    mixing("named.onnx", "segments")
    pooled("pooled.onnx")
elif sys.argv[1] == "data":
    data()
elif sys.argv[1] == "losses":
    both = []
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as f:
            both.append([float(line.split(":")[1]) for line in f])
    adapters.must(1e-6, adapters.off(*both), f"{len(both[0])} losses")
else:
    near(sys.argv[2], sys.argv[3])
