"""Random networks of small values; draw() makes one of any kind."""
import math

from large_networks import picture, sequence
from layers import IDS, Network, attention, batch_norm, group_norm
from onnx_file import INT64


def draw(dice):
    kind = dice.choice(["image", "image", "vector", "tokens", "picture", "picture", "sequence"])
    net = Network(dice, kind)
    {"image": image, "vector": vector, "tokens": tokens, "picture": picture,
     "sequence": sequence}[kind](net)
    return net


def vector(net):
    dice, m = net.dice, net.model
    width = dice.choice([6, 8, 13])
    x, _ = net.dense(m.input("x", ["N", 7]), 7, width)
    square = None
    for _ in range(dice.randint(2, 5)):
        step = dice.choice(["dense", "dense", "norm", "drop", "residual", "batch norm", "tied"])
        if step == "dense":
            x, _ = net.dense(net.activation(x), width, width)
        elif step == "norm":
            x = net.layer_norm(x, width)
        elif step == "drop":
            x = net.dropout(x)
        elif step == "batch norm":
            x = batch_norm(net, x, width)
        elif step == "tied":
            net.is_tied = net.is_tied or square is not None
            y, square = net.dense(net.activation(x), width, width, square)
            x = y
        else:
            y, _ = net.dense(net.activation(x), width, width)
            x = m.node("Add", [x, y])
    net.head(net.activation(x), width, ["N"])


def convolution(net, x, cin, cout, depthwise=False):
    dice, m = net.dice, net.model
    k = dice.choice([1, 3, 3, 5])
    group = cin if depthwise else 1
    inputs = [x, net.reals([cout, cin // group, k, k], 1 / math.sqrt(k * k * cin / group))]
    if dice.random() < 0.6:
        inputs.append(net.reals([cout], 0.1))
    pads = [k // 2] * 4
    return m.node("Conv", inputs, kernel_shape=[k, k], pads=pads, group=group)


def image(net):
    dice, m = net.dice, net.model
    size, cin = dice.choice([4, 6, 8]), dice.choice([1, 3])
    channels = dice.choice([4, 6])
    x = convolution(net, m.input("x", ["N", cin, size, size]), cin, channels)
    for _ in range(dice.randint(2, 5)):
        step = dice.choice(["conv", "conv", "depthwise", "batch norm", "group norm",
                            "instance norm", "drop", "residual", "pool"])
        if step == "conv":
            x = convolution(net, net.activation(x), channels, channels)
        elif step == "depthwise":
            x = convolution(net, net.activation(x), channels, channels, depthwise=True)
        elif step == "batch norm":
            x = batch_norm(net, x, channels)
        elif step == "group norm":
            x = group_norm(net, x, channels)
        elif step == "instance norm":
            x = m.node("InstanceNormalization",
                       [x, net.near_one(channels), net.reals([channels], 0.1)])
        elif step == "drop":
            x = net.dropout(x)
        elif step == "residual":
            x = m.node("Add", [x, convolution(net, net.activation(x), channels, channels)])
        elif size >= 4:
            op = dice.choice(["MaxPool", "AveragePool"])
            x = m.node(op, [x], kernel_shape=[2, 2], strides=[2, 2])
            size //= 2
    x = m.node("GlobalAveragePool", [net.activation(x)])
    net.head(m.node("Flatten", [x]), channels, ["N"])


def tokens(net):
    dice, m = net.dice, net.model
    width, net.tokens = dice.choice([6, 8]), 4
    table = net.reals([IDS, width], 0.5)
    x = m.node("Gather", [table, m.input("x", ["N", net.tokens], INT64)], axis=0)
    x = m.node("Add", [x, net.reals([net.tokens, width], 0.2)])
    for _ in range(dice.randint(1, 3)):
        step = dice.choice(["attention", "attention", "dense", "norm", "drop"])
        if step == "attention":
            x = attention(net, x, width)
        elif step == "dense":
            y, _ = net.dense(net.activation(net.dense(x, width, 2 * width)[0]), 2 * width, width)
            x = m.node("Add", [x, y])
        elif step == "norm":
            x = net.layer_norm(x, width)
        else:
            x = net.dropout(x)
    if dice.random() < 0.5:
        net.is_tied = True
        y = m.node("MatMul", [net.layer_norm(x, width), m.node("Transpose", [table], perm=[1, 0])])
        net.outputs.append((m.output(y, ["N", net.tokens, IDS]), "tokens"))
    else:
        net.head(m.node("ReduceMean", [x, net.constant([1], [1])], keepdims=0), width, ["N"])
