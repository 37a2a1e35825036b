"""picture_net.py OUT [2|3]: a network of pictures (2-D or 3-D), which are large enough to be
computed in bands: instance, group and batch norms, dropouts, strided, dilated, grouped and
transposed convolutions, poolings whose windows overlap or not, a split and a concatenation, with
scores per position. Needs nothing but Python."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiled_net import Net  # noqa: E402


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
    down = net.conv(down, 16, 16, 3, stride=2)
    mean = net.pool("AveragePool", net.up(down, 16, 16), 2, 2, 0)
    up = net.up(net.up(net.node("Relu", [mean]), 16, 16), 16, 8)
    both = net.node("Concat", [up, net.pool("MaxPool", a, 3, 1, 1)], axis=1)
    y = net.conv(net.drop(net.node("Relu", [net.conv(both, 24, 16, 3)])), 16, 3, 1)
    net.output(y, ["N", 3, *sizes])
    net.write(sys.argv[1])


main()
