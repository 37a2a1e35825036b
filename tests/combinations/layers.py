"""Layers of random networks, and what the options must know of a network."""
import math

from onnx_file import INT64, Model

CLASSES, IDS = 4, 11


class Network:
    """kind: image, vector, tokens, picture or sequence. outputs: (name, kind of target) in the
    order of the file, where the kind is classes, tokens, reals or graph, a loss. The flags say what
    options can act on."""

    def __init__(self, dice, kind):
        self.dice, self.kind = dice, kind
        self.model = Model()
        self.outputs = []
        self.has_norm = self.has_dropout = self.is_tied = self.has_mixing = False
        self.tokens = self.sizes = None     # of a sample

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


def attention(net, x, width):
    """One or two heads over the tokens of a sample."""
    m = net.model
    heads = net.dice.choice([1, 2])
    parts = []
    split = net.constant([4], [0, net.tokens, heads, width // heads])
    for turn in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        y, _ = net.dense(x, width, width)
        parts.append(m.node("Transpose", [m.node("Reshape", [y, split])], perm=turn))
    scale = m.weight([], [1 / math.sqrt(width / heads)], prefix="r")
    scores = m.node("Mul", [m.node("MatMul", parts[:2]), scale])
    y = m.node("MatMul", [m.node("Softmax", [scores], axis=-1), parts[2]])
    y = m.node("Transpose", [y], perm=[0, 2, 1, 3])
    y = m.node("Reshape", [y, net.constant([3], [0, net.tokens, width])])
    return m.node("Add", [x, net.dense(y, width, width)[0]])
