"""A 3-D U-Net with batch norms as an ONNX file, for plans: all its weights are one number."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "support"))
from onnx_file import Model  # noqa: E402

CUBE = 3


class Net(Model):
    def numbers(self, *dims, value=0.01):
        n = 1
        for d in dims:
            n *= d
        return self.weight(dims, [value] * n)

    def conv(self, x, cin, cout, size):
        return self.node("Conv", [x, self.numbers(cout, cin, *[size] * CUBE)],
                         kernel_shape=[size] * CUBE, pads=[size // 2] * 2 * CUBE)

    def norm(self, x, channels):
        state = [self.weight([channels], [v] * channels, prefix="s") for v in (0.0, 1.0)]
        own = [self.numbers(channels, value=v) for v in (1.0, 0.0)]
        return self.node("Relu", [self.node("BatchNormalization", [x, *own, *state],
                                            training_mode=0)])

    def block(self, x, cin, cout):
        for a in (cin, cout):
            x = self.norm(self.conv(x, a, cout, 3), cout)
        return x


def write(path, side, width, depth):
    net = Net()
    kept, channels = [], 1
    x = net.input("x", ["N", 1, side, side, side])
    for level in range(depth + 1):
        if level > 0:
            kept.append(x)
            x = net.node("MaxPool", [x], kernel_shape=[2] * CUBE, strides=[2] * CUBE)
        x, channels = net.block(x, channels, width << level), width << level
    while kept:
        half = channels // 2
        up = net.node("ConvTranspose", [x, net.numbers(channels, half, *[2] * CUBE)],
                      kernel_shape=[2] * CUBE, strides=[2] * CUBE)
        x, channels = net.block(net.node("Concat", [kept.pop(), up], axis=1), channels, half), half
    net.output(net.conv(x, channels, 2, 1), ["N", 2, side, side, side])
    net.write(path)
