"""Writes a network with attention of grouped heads, or with a mask.

usage: attention16.py grouped|masked SOURCE-FOLDER FILE
"""
import random
import sys

sys.path.insert(0, sys.argv[2] + "/tests/support")
import onnx_file  # noqa: E402

TOKENS, WIDTH, SIZE, CLASSES = 70, 12, 20, 5


def main():
    heads, groups = (6, 2) if sys.argv[1] == "grouped" else (2, 2)
    rng = random.Random(46)
    m = onnx_file.Model()

    def matrix(rows, cols):
        return m.weight([rows, cols], [rng.gauss(0, 1) / rows ** 0.5 for _ in range(rows * cols)])

    x = m.input("x", ["N", TOKENS, WIDTH])
    q, k, v = [m.node("MatMul", [x, matrix(WIDTH, n * SIZE)]) for n in (heads, groups, groups)]
    mask = []
    if sys.argv[1] == "masked":
        hidden = [rng.choice([0., -3., -1e9]) if i % (TOKENS + 1) else 0.
                  for i in range(TOKENS * TOKENS)]
        mask = [m.weight([TOKENS, TOKENS], hidden, prefix="mask")]
    y = m.node("Attention", [q, k, v] + mask, q_num_heads=heads, kv_num_heads=groups,
               is_causal=0 if mask else 1)
    m.output(m.node("MatMul", [y, matrix(heads * SIZE, CLASSES)]), ["N", TOKENS, CLASSES])
    m.write(sys.argv[3], opset=23)


main()
