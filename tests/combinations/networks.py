"""Random small networks, and what the options must know of them."""
import math

from onnx_file import INT64, Model

CLASSES, IDS, TOKENS = 4, 11, 4


class Network:
    """kind: image, vector or tokens. outputs: (name, kind of target) in the order of the file,
    where the kind is classes or reals. The flags say what options can act on."""

    def __init__(self, dice):
        self.dice = dice
        self.model = Model()
        self.outputs = []
        self.has_norm = self.has_dropout = self.is_tied = self.has_mixing = False
        self.kind = dice.choice(["image", "image", "vector", "tokens"])
        {"image": image, "vector": vector, "tokens": tokens}[self.kind](self)

    # ---- parts of all kinds ----
    def reals(self, dims, scale):
        count = math.prod(dims)
        return self.model.weight(dims, [self.dice.gauss(0, scale) for _ in range(count)])

    def near_one(self, n):
        return self.model.weight([n], [1 + self.dice.gauss(0, 0.1) for _ in range(n)])

    def zeros(self, n):
        return self.model.weight([n], [0.0] * n)

    def constant(self, dims, data, kind=INT64):
        return self.model.weight(dims, data, kind, "c")

    def activation(self, x):
        m = self.model
        which = self.dice.choice(["Relu", "Tanh", "silu", "Elu", "gelu", "Sigmoid", "LeakyRelu"])
        if which == "silu":
            return m.node("Mul", [x, m.node("Sigmoid", [x])])
        if which == "gelu":
            return m.node("Mul", [x, m.node("Erf", [x])])
        return m.node(which, [x])

    def dropout(self, x):
        self.has_dropout = True
        ratio = self.model.weight([], [0.25], prefix="r")
        return self.model.node("Dropout", [x, ratio])

    def dense(self, x, wide, narrow, shared=None):
        """x times a matrix, with a bias most of the time; `shared`: the matrix of
        an earlier one."""
        m = self.model
        w = shared or self.reals([wide, narrow], 1 / math.sqrt(wide))
        y = m.node("MatMul", [x, w])
        return (m.node("Add", [y, self.reals([narrow], 0.1)]) if self.dice.random() < 0.8 else y), w

    def layer_norm(self, x, n):
        m = self.model
        return m.node("LayerNormalization", [x, self.near_one(n), self.reals([n], 0.1)], axis=-1)

    def head(self, x, width, dims):
        """One or two outputs of a value [.., width]; dims: the sizes before it."""
        for _ in range(self.dice.choice([1, 1, 1, 2])):
            kind = self.dice.choice(["classes", "classes", "reals"])
            y, _ = self.dense(x, width, CLASSES)
            self.outputs.append((self.model.output(y, dims + [CLASSES]), kind))


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


def batch_norm(net, x, channels):
    net.has_norm = True
    spread = net.model.weight([channels], [1 + net.dice.random() for _ in range(channels)])
    mean = net.reals([channels], 0.1)
    inputs = [x, net.near_one(channels), net.reals([channels], 0.1), mean, spread]
    return net.model.node("BatchNormalization", inputs)


def group_norm(net, x, channels):
    """As today's exporter writes it: an instance norm of groups, then a factor for each channel."""
    m = net.model
    groups = net.dice.choice([1, 2])
    to = net.constant([3], [0, groups, -1])
    y = m.node("Reshape", [x, to])
    y = m.node("InstanceNormalization", [y, m.weight([groups], [1.0] * groups, prefix="c"),
                                         m.weight([groups], [0.0] * groups, prefix="c")])
    y = m.node("Reshape", [y, m.node("Shape", [x])])
    factor = m.weight([channels, 1, 1], [1 + net.dice.gauss(0, 0.1) for _ in range(channels)])
    return m.node("Add", [m.node("Mul", [y, factor]), net.reals([channels, 1, 1], 0.1)])


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


def attention(net, x, width):
    """One or two heads over the tokens of a sample."""
    m = net.model
    heads = net.dice.choice([1, 2])
    parts = []
    split = net.constant([4], [0, TOKENS, heads, width // heads])
    for turn in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        y, _ = net.dense(x, width, width)
        parts.append(m.node("Transpose", [m.node("Reshape", [y, split])], perm=turn))
    scale = m.weight([], [1 / math.sqrt(width / heads)], prefix="r")
    scores = m.node("Mul", [m.node("MatMul", parts[:2]), scale])
    y = m.node("MatMul", [m.node("Softmax", [scores], axis=-1), parts[2]])
    y = m.node("Transpose", [y], perm=[0, 2, 1, 3])
    y = m.node("Reshape", [y, net.constant([3], [0, TOKENS, width])])
    return m.node("Add", [x, net.dense(y, width, width)[0]])


def tokens(net):
    dice, m = net.dice, net.model
    width = dice.choice([6, 8])
    table = net.reals([IDS, width], 0.5)
    x = m.node("Gather", [table, m.input("x", ["N", TOKENS], INT64)], axis=0)
    x = m.node("Add", [x, net.reals([TOKENS, width], 0.2)])
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
        net.outputs.append((m.output(y, ["N", TOKENS, IDS]), "tokens"))
    else:
        net.head(m.node("ReduceMean", [x, net.constant([1], [1])], keepdims=0), width, ["N"])
