"""tiled_rows_net.py OUT [patches]: a block of a transformer over the patches of a picture, with
attention in products and a softmax, both kinds of norms, a gate and dropouts; or the first of the
patches alone, so that no value is larger than the picture's channels. Needs nothing but Python."""
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tiled_net  # noqa: E402
from onnx_file import INT64  # noqa: E402

TOKENS, WIDTH, HEADS = 256, 32, 2


class Net(tiled_net.Net):
    dice = random.Random(7)

    def ints(self, *values):
        return self.weight([len(values)], values, INT64, prefix="c")

    def real(self, value):
        return self.weight([], [value], prefix="c")

    def product(self, x, cin, cout):
        return self.node("MatMul", [x, self.numbers(cin, cout)])

    def layer_norm(self, x):
        return self.node("LayerNormalization", [x, self.numbers(WIDTH, shift=1.0),
                                                self.numbers(WIDTH)], axis=-1)

    def rms_norm(self, x):
        mean = self.node("ReduceMean", [self.node("Mul", [x, x]), self.ints(-1)], keepdims=1)
        root = self.node("Sqrt", [self.node("Add", [mean, self.real(1e-5)])])
        return self.node("Mul", [self.node("Div", [x, root]), self.numbers(WIDTH, shift=1.0)])

    def heads(self, x, *perm):
        x = self.node("Reshape", [x, self.ints(0, TOKENS, HEADS, WIDTH // HEADS)])
        return self.node("Transpose", [x], perm=list(perm))

    def attention(self, x):
        q = self.heads(self.product(x, WIDTH, WIDTH), 0, 2, 1, 3)
        k = self.heads(self.product(x, WIDTH, WIDTH), 0, 2, 3, 1)
        v = self.heads(self.product(x, WIDTH, WIDTH), 0, 2, 1, 3)
        scores = self.node("Mul", [self.node("MatMul", [q, k]), self.real(0.25)])
        scores = self.node("Add", [scores, self.numbers(HEADS, 1, TOKENS)])
        weights = self.drop(self.node("Softmax", [scores], axis=-1))
        y = self.node("Transpose", [self.node("MatMul", [weights, v])], perm=[0, 2, 1, 3])
        return self.product(self.node("Reshape", [y, self.ints(0, TOKENS, WIDTH)]), WIDTH, WIDTH)

    def gated(self, x):
        both = self.node("Add", [self.product(x, WIDTH, 4 * WIDTH), self.numbers(4 * WIDTH)])
        left, right = self.node("Split", [both], results=2, axis=2, num_outputs=2)
        gate = self.node("Mul", [left, self.node("Sigmoid", [left])])
        return self.product(self.drop(self.node("Mul", [gate, right])), 2 * WIDTH, WIDTH)


net = Net()
x = net.input("x", ["N", 3, 64, 64])
x = net.node("Conv", [x, net.numbers(WIDTH, 3, 4, 4), net.numbers(WIDTH)], kernel_shape=[4, 4],
             strides=[4, 4])
x = net.node("Transpose", [net.node("Reshape", [x, net.ints(0, WIDTH, TOKENS)])], perm=[0, 2, 1])
x = net.drop(net.node("Add", [x, net.numbers(TOKENS, WIDTH)]))
if sys.argv[2:] != ["patches"]:
    x = net.node("Add", [x, net.attention(net.layer_norm(x))])
    x = net.node("Add", [x, net.gated(net.rms_norm(x))])
    x = net.layer_norm(x)
first = net.node("Gather", [x, net.weight([], [0], INT64, prefix="c")], axis=1)
mean = net.node("ReduceMean", [x, net.ints(1)], keepdims=0)
x = first if sys.argv[2:] == ["patches"] else net.node("Add", [first, mean])
net.output(net.node("Gemm", [x, net.numbers(WIDTH, 5), net.numbers(5)]), ["N", 5])
net.write(sys.argv[1])
