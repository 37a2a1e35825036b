"""tiled_net.py OUT: convolutions with dropouts, batch norms, a channel split and a concatenation,
of pictures that are large enough to be computed in parts. Needs nothing but Python."""
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from onnx_file import INT64, Model  # noqa: E402


class Net(Model):
    dice = random.Random(5)

    def numbers(self, *dims, scale=0.2, shift=0.0):
        n = 1
        for d in dims:
            n *= d
        return self.weight(dims, [shift + scale * self.dice.uniform(-1, 1) for _ in range(n)])

    def conv(self, x, cin, cout, size, group=1, stride=1):
        pad = size // 2
        return self.node("Conv", [x, self.numbers(cout, cin // group, size, size),
                                  self.numbers(cout)], kernel_shape=[size, size], group=group,
                         pads=[pad] * 4, strides=[stride] * 2)

    def norm(self, x, channels):
        state = [self.weight([channels], [v] * channels, prefix="s") for v in (0.0, 1.0)]
        scale, bias = (self.numbers(channels, scale=0.1, shift=v) for v in (1.0, 0.0))
        return self.node("BatchNormalization", [x, scale, bias, *state], training_mode=0)

    def drop(self, x):
        ratio = self.weight([], [0.25], prefix="c")
        return self.node("Dropout", [x, ratio])


def main():
    net = Net()
    x = net.input("x", ["N", 3, 32, 32])
    a = net.node("Relu", [net.norm(net.conv(x, 3, 8, 3), 8)])
    b = net.drop(net.node("Relu", [net.conv(a, 8, 16, 3, group=2)]))
    left, right = net.node("Split", [b], results=2, axis=1, num_outputs=2)
    c = net.node("Concat", [net.node("Tanh", [right]), left, a], axis=1)
    d = net.node("Sigmoid", [net.norm(net.conv(net.drop(c), 24, 8, 1), 8)])
    pooled = net.node("MaxPool", [d], kernel_shape=[2, 2], strides=[2, 2])
    mean = net.node("AveragePool", [net.conv(pooled, 8, 8, 3)], kernel_shape=[16, 16])
    flat = net.node("Flatten", [mean])
    net.output(net.node("Gemm", [flat, net.numbers(8, 5), net.numbers(5)]), ["N", 5])
    net.write(sys.argv[1])


if __name__ == "__main__":
    main()
