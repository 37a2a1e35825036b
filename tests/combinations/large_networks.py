"""Random networks with values that are large enough to be computed in parts: of the rows of one
picture, of the tokens of all samples, or of the samples."""
import math

from layers import CLASSES, IDS, attention, batch_norm, group_norm
from onnx_file import INT64


# ---- pictures: as a U-Net, 2-D or 3-D ----
class Picture:
    """A value [N, channels, sizes ..] of a network."""

    def __init__(self, net, name, channels, sizes):
        self.net, self.name, self.channels, self.sizes = net, name, channels, sizes

    def then(self, name, channels=None, sizes=None):
        return Picture(self.net, name, channels or self.channels, sizes or self.sizes)

    def node(self, op, *more, **attributes):
        return self.then(self.net.model.node(op, [self.name, *more], **attributes))


def windows(axes, kernel, stride=1, pad=0, **more):
    return {"kernel_shape": [kernel] * axes, "strides": [stride] * axes, "pads": [pad] * 2 * axes,
            **more}


def convolution(x, to, kernel=None, stride=1):
    """Strided, dilated, grouped or depthwise; a stride of 2 halves the sizes."""
    net, axes = x.net, len(x.sizes)
    dice = net.dice
    kernel = kernel or dice.choice([1, 3, 3, 3, 5] if axes == 2 else [1, 3, 3])
    dilation = dice.choice([1, 1, 1, 1, 2]) if stride == 1 else 1
    group = dice.choice([g for g in (1, 1, 1, 2, to) if x.channels % g == 0 and to % g == 0])
    dims = [to, x.channels // group] + [kernel] * axes
    more = [net.reals(dims, 1 / math.sqrt(math.prod(dims[1:])))]
    if dice.random() < 0.6:
        more.append(net.reals([to], 0.1))
    y = x.node("Conv", *more, group=group, dilations=[dilation] * axes,
               **windows(axes, kernel, stride, dilation * (kernel // 2)))
    return y.then(y.name, to, [-(-n // stride) for n in x.sizes])


def norm(x):
    net = x.net
    which = net.dice.choice(["batch", "instance", "group", "exported group", "none"])
    if which == "batch":
        return x.then(batch_norm(net, x.name, x.channels))
    if which == "instance":
        return x.node("InstanceNormalization", net.near_one(x.channels),
                      net.reals([x.channels], 0.1))
    if which == "group" and x.channels % 2 == 0:
        return x.node("GroupNormalization", net.near_one(x.channels), net.reals([x.channels], 0.1),
                      num_groups=2)
    if which == "exported group" and len(x.sizes) == 2 and x.channels % 2 == 0:
        return x.then(group_norm(net, x.name, x.channels))
    return x


def block(x, to):
    net, m = x.net, x.net.model
    x = norm(convolution(x, to))
    x = x.then(net.activation(x.name))
    if net.dice.random() < 0.2:
        x = x.then(net.dropout(x.name))
    extra = net.dice.choice(["none"] * 4 + ["residual", "gate", "squeeze", "split", "prelu",
                                            "softmax", "pool", "pad"])
    if extra == "residual":
        return x.then(m.node("Add", [x.name, convolution(x, x.channels).name]))
    if extra == "gate":
        return x.then(m.node("Mul", [x.name, m.node("Sigmoid", [convolution(x, 1).name])]))
    if extra == "squeeze":
        mean = x.then(m.node("GlobalAveragePool", [x.name]), None, [1] * len(x.sizes))
        return x.then(m.node("Mul", [x.name, m.node("Sigmoid", [
            convolution(mean, x.channels, kernel=1).name])]))
    if extra == "split" and x.channels % 2 == 0:
        left, right = m.node("Split", [x.name], results=2, axis=1, num_outputs=2)
        return x.then(m.node("Concat", [m.node("Tanh", [right]), left], axis=1))
    if extra == "prelu":
        return x.node("PRelu", net.reals([x.channels] + [1] * len(x.sizes), 0.2))
    if extra == "softmax":
        return x.node("Softmax", axis=1)
    if extra == "pool":
        return x.node(net.dice.choice(["MaxPool", "AveragePool"]),
                      **windows(len(x.sizes), 3, 1, 1))
    if extra == "pad":
        return padded(x)
    return x


def padded(x):
    """With a column of zeros on both sides, and without the first and the last one of the result of
    a convolution over them."""
    net, axes = x.net, len(x.sizes)
    ends = [0] * (1 + axes) + [1]
    y = convolution(x.node("Pad", net.constant([4 + 2 * axes], ends + ends)), x.channels, kernel=3)
    cut = [net.constant([1], [n]) for n in (1, x.sizes[-1] + 1, 1 + axes)]
    return y.node("Slice", *cut)


def down(x):
    axes = len(x.sizes)
    how = x.net.dice.choice(["max", "max overlap", "mean", "conv"])
    half = [n // 2 for n in x.sizes]
    if how == "conv":
        return convolution(x, x.channels, kernel=3, stride=2)
    y = x.node("AveragePool" if how == "mean" else "MaxPool",
               **(windows(axes, 3, 2, 1) if how == "max overlap" else windows(axes, 2, 2)))
    return y.then(y.name, None, half)


def up(x, to):
    net, axes = x.net, len(x.sizes)
    sizes = [2 * n for n in x.sizes]
    if net.dice.random() < 0.5:
        kernel, pad = net.dice.choice([(2, 0), (2, 0), (4, 1)])
        weights = net.reals([x.channels, to] + [kernel] * axes, 1 / math.sqrt(4 * x.channels))
        y = x.node("ConvTranspose", weights, *([net.reals([to], 0.1)]
                                               if net.dice.random() < 0.6 else []),
                   **windows(axes, kernel, 2, pad))
        return y.then(y.name, to, sizes)
    scales = net.model.weight([2 + axes], [1.0, 1.0] + [2.0] * axes, prefix="c")
    how = net.dice.choice([{"mode": "nearest"}, {"mode": "linear"},
                           {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
                           {"mode": "nearest", "nearest_mode": "floor",
                            "coordinate_transformation_mode": "asymmetric"}])
    y = x.node("Resize", "", scales, **how)
    return y.then(y.name, None, sizes)


def picture(net):
    dice, m = net.dice, net.model
    depth = dice.choice([0, 1, 1, 2])
    if dice.random() < 0.2:
        sizes = [dice.choice([12, 16, 20]), 8, 8]
    else:
        sizes = [dice.choice([16, 24, 32, 36, 40, 52, 64]),
                 dice.choice([8, 12, 16, 20, 24, 32])]
    cin, width = dice.choice([1, 3]), dice.choice([4, 6, 8, 12])
    x = Picture(net, m.input("x", ["N", cin] + sizes), cin, sizes)
    skips = []
    for level in range(depth):
        for _ in range(dice.choice([1, 1, 2])):
            x = block(x, width)
        skips.append(x)
        x = down(x)
    x = block(x, width)
    for skip in reversed(skips):
        x = up(x, width)
        if dice.random() < 0.7:
            x = x.then(m.node("Concat", [skip.name, x.name], axis=1), skip.channels + x.channels)
        elif skip.channels == x.channels:
            x = x.then(m.node("Add", [skip.name, x.name]))
        x = block(x, width)
    scores(net, x, sizes)


def scores(net, x, sizes):
    """Outputs for each position or for the picture; or a loss within the file."""
    dice, m = net.dice, net.model
    how = dice.choice(["positions"] * 4 + ["loss", "mean", "both"])
    if how in ("mean", "both"):
        mean = m.node("Flatten", [m.node("GlobalAveragePool", [x.name])])
        net.head(mean, x.channels, ["N"])
    if how == "mean":
        return
    y = convolution(x, CLASSES, kernel=1)
    if how == "loss":
        labels = m.input("labels", ["N"] + sizes, INT64)
        by = [m.weight([CLASSES], [1.0, 0.5, 2.0, 1.0], prefix="c")] if dice.random() < 0.5 else []
        more = {"ignore_index": 1} if dice.random() < 0.5 else {}
        if dice.random() < 0.3:
            loss = m.node("NegativeLogLikelihoodLoss",
                          [m.node("LogSoftmax", [y.name], axis=1), labels, *by], **more)
        else:
            loss = m.node("SoftmaxCrossEntropyLoss", [y.name, labels, *by], **more)
        net.outputs = [(m.output(loss, []), "graph")]
        return
    kind = dice.choice(["classes", "classes", "reals"])
    net.outputs.append((m.output(y.name, ["N", CLASSES] + sizes), kind))


# ---- tokens ----
def sequence(net):
    """A transformer over tokens, or over the patches of a picture."""
    dice, m = net.dice, net.model
    width = dice.choice([6, 8, 12])
    if dice.random() < 0.3:
        side = dice.choice([8, 10, 12, 18])
        net.tokens = side * side
        x = m.node("Conv", [m.input("x", ["N", 2, 2 * side, 2 * side]),
                            net.reals([width, 2, 2, 2], 0.4), net.reals([width], 0.1)],
                   kernel_shape=[2, 2], strides=[2, 2])
        x = m.node("Reshape", [x, net.constant([3], [0, width, net.tokens])])
        x = m.node("Transpose", [x], perm=[0, 2, 1])
        table = None
    else:
        net.tokens = dice.choice([48, 64, 96, 130, 160, 288, 320])
        table = net.reals([IDS, width], 0.5)
        x = m.node("Gather", [table, m.input("x", ["N", net.tokens], INT64)], axis=0)
    x = m.node("Add", [x, net.reals([net.tokens, width], 0.2)])
    for _ in range(dice.randint(1, 3)):
        x = token_block(net, x, width)
    if dice.random() < 0.7:
        x = net.layer_norm(x, width)
    if table and dice.random() < 0.4:
        net.is_tied = True
        y = m.node("MatMul", [x, m.node("Transpose", [table], perm=[1, 0])])
        net.outputs.append((m.output(y, ["N", net.tokens, IDS]), "tokens"))
    elif dice.random() < 0.4:
        net.head(x, width, ["N", net.tokens])
    else:
        if dice.random() < 0.3:
            x = m.node("Gather", [x, m.weight([], [0], INT64, prefix="c")], axis=1)
        else:
            x = m.node("ReduceMean", [x, net.constant([1], [1])], keepdims=0)
        net.head(x, width, ["N"])


def token_block(net, x, width):
    dice, m = net.dice, net.model
    step = dice.choice(["attention", "attention", "dense", "dense", "gated", "norm", "rms norm",
                        "drop", "mix"])
    if step == "attention":
        return attention(net, x, width)
    if step == "dense":
        y, _ = net.dense(net.activation(net.dense(net.layer_norm(x, width), width, 3 * width)[0]),
                         3 * width, width)
        return m.node("Add", [x, y])
    if step == "gated":
        both, _ = net.dense(x, width, 4 * width)
        left, right = m.node("Split", [both], results=2, axis=2, num_outputs=2)
        y = m.node("Mul", [m.node("Mul", [left, m.node("Sigmoid", [left])]), right])
        return m.node("Add", [x, net.dense(y, 2 * width, width)[0]])
    if step == "norm":
        return net.layer_norm(x, width)
    if step == "rms norm":
        mean = m.node("ReduceMean", [m.node("Mul", [x, x]), net.constant([1], [-1])], keepdims=1)
        root = m.node("Sqrt", [m.node("Add", [mean, m.weight([], [1e-5], prefix="r")])])
        return m.node("Mul", [m.node("Div", [x, root]), net.near_one(width)])
    if step == "drop":
        return net.dropout(x)
    turned = m.node("Transpose", [x], perm=[0, 2, 1])       # a mixer's product over tokens
    y, _ = net.dense(turned, net.tokens, net.tokens)
    return m.node("Add", [x, m.node("Transpose", [y], perm=[0, 2, 1])])
