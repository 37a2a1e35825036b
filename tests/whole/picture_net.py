"""picture_net.py OUT [2|3] [loss [nll]]: a network of pictures (2-D or 3-D), which are large enough
to be computed in bands: instance, group and batch norms, dropouts, strided, dilated, grouped and
transposed convolutions, poolings whose windows overlap or not, resizes, a split and a
concatenation, with scores per position, or with a cross-entropy of them in the file, which are then
no output. Needs nothing but Python."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiled_net import INT64, Net  # noqa: E402


class Pictures(Net):
    def __init__(self, axes):
        super().__init__()
        self.axes = axes

    def conv(self, x, cin, cout, size, group=1, stride=1, dilation=1, bias=True):
        pad = dilation * (size // 2)
        weights = [self.numbers(cout, cin // group, *[size] * self.axes)]
        return self.node("Conv", [x, *weights, *([self.numbers(cout)] if bias else [])],
                         kernel_shape=[size] * self.axes, group=group, dilations=[dilation] *
                         self.axes, pads=[pad] * 2 * self.axes, strides=[stride] * self.axes)

    def up(self, x, cin, cout):
        return self.node("ConvTranspose", [x, self.numbers(cin, cout, *[2] * self.axes),
                                           self.numbers(cout)],
                         kernel_shape=[2] * self.axes, strides=[2] * self.axes)

    def pool(self, op, x, size, stride, pad):
        return self.node(op, [x], kernel_shape=[size] * self.axes, strides=[stride] * self.axes,
                         pads=[pad] * 2 * self.axes)

    def instance_norm(self, x, channels):
        return self.node("InstanceNormalization", [x, self.numbers(channels, scale=0.1, shift=1.0),
                                                   self.numbers(channels)])

    def group_norm(self, x, channels, groups):
        return self.node("GroupNormalization", [x, self.numbers(channels, scale=0.1, shift=1.0),
                                                self.numbers(channels)], num_groups=groups)

    def exported_group_norm(self, x, sizes, channels, groups):
        """As exporters write it."""
        to, back = [0, groups, -1], [0, channels, *sizes]
        y = self.node("Reshape", [x, self.weight([3], to, INT64, "c")])
        y = self.node("InstanceNormalization",
                      [y, *(self.weight([groups], [v] * groups, prefix="c") for v in (1.0, 0.0))])
        y = self.node("Reshape", [y, self.weight([len(back)], back, INT64, "c")])
        of = [channels, *[1] * self.axes]
        y = self.node("Mul", [y, self.numbers(*of, scale=0.1, shift=1.0)])
        return self.node("Add", [y, self.numbers(*of)])

    def resize(self, x, mode, by):
        scales = self.weight([2 + self.axes], [1.0, 1.0, *[by] * self.axes], prefix="c")
        return self.node("Resize", [x, "", scales], mode=mode)


def main():
    axes = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    net = Pictures(axes)
    sizes = [80, 64] if axes == 2 else [24, 16, 16]
    x = net.input("x", ["N", 3, *sizes])
    a = net.node("Relu", [net.norm(net.conv(x, 3, 16, 3, bias=False), 16)])
    b = net.drop(net.node("Relu", [net.instance_norm(net.conv(a, 16, 16, 3), 16)]))
    left, right = net.node("Split", [b], results=2, axis=1, num_outputs=2)
    c = net.node("Concat", [net.node("Tanh", [right]), left, net.conv(a, 16, 4, 3, group=2)],
                 axis=1)
    down = net.pool("MaxPool", c, 3, 2, 1)
    down = net.node("Sigmoid", [net.group_norm(net.conv(down, 20, 16, 3, dilation=2), 16, 4)])
    half = net.conv(down, 16, 4, 1)
    down = net.conv(down, 16, 16, 3, stride=2)
    mean = net.pool("AveragePool", net.up(down, 16, 16), 2, 2, 0)
    up = net.up(net.resize(net.node("Relu", [mean]), "nearest", 2.0), 16, 8)
    wide = net.exported_group_norm(net.resize(half, "linear", 2.0), sizes, 4, 2)
    both = net.node("Concat", [up, net.pool("MaxPool", a, 3, 1, 1), wide], axis=1)
    y = net.conv(net.drop(net.node("Relu", [net.conv(both, 28, 16, 3)])), 16, 3, 1)
    if "loss" in sys.argv:
        labels = net.input("labels", ["N", *sizes], INT64)
        by = net.weight([3], [1.0, 0.5, 2.0], prefix="c")
        if "nll" in sys.argv:
            y = net.node("LogSoftmax", [y], axis=1)
        op = "NegativeLogLikelihoodLoss" if "nll" in sys.argv else "SoftmaxCrossEntropyLoss"
        loss = net.node(op, [y, labels, by], ignore_index=1)
        net.output(loss, [])
    else:
        net.output(y, ["N", 3, *sizes])
    net.write(sys.argv[1])


main()
