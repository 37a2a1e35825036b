"""The four networks of the GPU table in plain JAX, to measure lowerset against.

Each is a pair: parameters, and apply(parameters, statistics, x) -> (scores, new statistics). Images
and convolutions are channels-last; statistics are the running ones of batch norms.
"""
import math

import jax
import jax.numpy as jnp
import numpy
from jax import lax

DIMS = ("NHWC", "HWIO", "NHWC")


class Layers:
    """Returns parameters by name; without parameters it records their shapes for make()."""

    def __init__(self, params=None, stats=None):
        self.params, self.stats = params, stats or {}
        self.wanted, self.new_stats = {}, {}

    def take(self, name, shape, how):
        if self.params is not None:
            return self.params[name]
        self.wanted[name] = (shape, how)
        return jnp.zeros(shape, jnp.float32)

    def weight(self, name, shape, scale):
        return self.take(name, shape, ("normal", scale))

    def constant(self, name, shape, value):
        return self.take(name, shape, ("constant", value))

    def make(self):
        """Parameters and initial statistics, made on the host at once."""
        random = numpy.random.default_rng(0)
        params = {name: jnp.asarray(by * random.standard_normal(shape, numpy.float32)
                                    if how == "normal" else numpy.full(shape, by, numpy.float32))
                  for name, (shape, (how, by)) in self.wanted.items()}
        stats = {name: (jnp.zeros(pair[0].shape), jnp.ones(pair[1].shape))
                 for name, pair in self.new_stats.items()}
        return params, stats

    def conv(self, name, x, out, kernel, stride=1, pad=0):
        n_in = x.shape[-1]
        w = self.weight(name, (kernel, kernel, n_in, out), math.sqrt(2 / (kernel * kernel * out)))
        return lax.conv_general_dilated(x, w, (stride, stride), [(pad, pad)] * 2,
                                        dimension_numbers=DIMS)

    def deconv(self, name, x, out):
        w = self.weight(name, (2, 2, x.shape[-1], out), math.sqrt(1 / x.shape[-1]))
        y = lax.conv_transpose(x, w, (2, 2), "VALID", dimension_numbers=DIMS)
        return y + self.constant(name + ".bias", (out,), 0)

    def norm(self, name, x):
        shape = (x.shape[-1],)
        scale, bias = self.constant(name + ".weight", shape,
                                    1), self.constant(name + ".bias", shape, 0)
        mean = x.mean((0, 1, 2))
        var = jnp.square(x).mean((0, 1, 2)) - jnp.square(mean)
        old = self.stats.get(name, (jnp.zeros(shape), jnp.ones(shape)))
        self.new_stats[name] = (.9 * old[0] + .1 * mean, .9 * old[1] + .1 * var)
        return (x - mean) * lax.rsqrt(var + 1e-5) * scale + bias

    def linear(self, name, x, out):
        w = self.weight(name, (x.shape[-1], out), 1 / math.sqrt(x.shape[-1]))
        return x @ w + self.constant(name + ".bias", (out,), 0)

    def layer_norm(self, name, x):
        shape = (x.shape[-1],)
        mean = x.mean(-1, keepdims=True)
        var = jnp.square(x - mean).mean(-1, keepdims=True)
        return ((x - mean) * lax.rsqrt(var + 1e-5) * self.constant(name + ".weight", shape, 1)
                + self.constant(name + ".bias", shape, 0))


def max_pool(x, size, stride, pad=0):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1),
                             [(0, 0), (pad, pad), (pad, pad), (0, 0)])


def average_pool(x):
    return lax.reduce_window(x, 0., lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


def resnet50(f, x, width=64, classes=1000):
    relu = jax.nn.relu
    x = max_pool(relu(f.norm("bn1", f.conv("conv1", x, width, 7, 2, 3))), 3, 2, 1)
    for i, blocks in enumerate((3, 4, 6, 3)):
        for k in range(blocks):
            at, stride, w = f"layer{i + 1}.{k}.", 2 if i > 0 and k == 0 else 1, width << i
            y = relu(f.norm(at + "bn1", f.conv(at + "conv1", x, w, 1)))
            y = relu(f.norm(at + "bn2", f.conv(at + "conv2", y, w, 3, stride, 1)))
            y = f.norm(at + "bn3", f.conv(at + "conv3", y, 4 * w, 1))
            if k == 0:
                x = f.norm(at + "down.bn", f.conv(at + "down", x, 4 * w, 1, stride))
            x = relu(x + y)
    return f.linear("fc", x.mean((1, 2)), classes)


def densenet121(f, x, growth=32, classes=1000):
    relu = jax.nn.relu
    c = 2 * growth
    x = max_pool(relu(f.norm("norm0", f.conv("conv0", x, c, 7, 2, 3))), 3, 2, 1)
    for i, layers in enumerate((6, 12, 24, 16)):
        for k in range(layers):
            at = f"block{i}.{k}."
            y = f.conv(at + "conv1", relu(f.norm(at + "norm1", x)), 4 * growth, 1)
            y = f.conv(at + "conv2", relu(f.norm(at + "norm2", y)), growth, 3, 1, 1)
            x = jnp.concatenate([x, y], -1)
        if i < 3:
            at = f"transition{i}."
            x = average_pool(f.conv(at + "conv", relu(f.norm(at + "norm", x)), x.shape[-1] // 2, 1))
    return f.linear("classifier", relu(f.norm("norm5", x)).mean((1, 2)), classes)


def unet(f, x, width=64, depth=4, classes=2):
    def twice(at, x, out):
        for k in range(2):
            x = jax.nn.relu(f.norm(f"{at}.bn{k}", f.conv(f"{at}.conv{k}", x, out, 3)))
        return x
    skips = [twice("inc", x, width)]
    for i in range(1, depth + 1):
        skips.append(twice(f"down{i}", max_pool(skips[-1], 2, 2), width << i))
    x = skips.pop()
    for i in range(depth - 1, -1, -1):
        x, skip = f.deconv(f"up{i}.up", x, width << i), skips.pop()
        h = (skip.shape[1] - x.shape[1]) // 2
        skip = skip[:, h:h + x.shape[1], h:h + x.shape[2]]
        x = twice(f"up{i}", jnp.concatenate([skip, x], -1), width << i)
    return f.conv("outc", x, classes, 1) + f.constant("outc.bias", (classes,), 0)


def gpt(f, x, depth=12, width=768, heads=12, context=1024, vocab=50257):
    wte = f.weight("wte", (vocab, width), .02)
    n, t = x.shape
    y = wte[x] + f.weight("wpe", (context, width), .02)
    for i in range(depth):
        at = f"h{i}."
        qkv = f.linear(at + "attn", f.layer_norm(at + "ln1", y), 3 * width)
        q, k, v = (z.reshape(n, t, heads, width // heads) for z in jnp.split(qkv, 3, -1))
        z = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        y = y + f.linear(at + "proj", z.reshape(n, t, width), width)
        z = jax.nn.gelu(f.linear(at + "fc", f.layer_norm(at + "ln2", y), 4 * width),
                        approximate=False)
        y = y + f.linear(at + "mlp", z, width)
    return f.layer_norm("ln", y) @ wte.T


NETS = {"resnet50": resnet50, "densenet121": densenet121, "unet": unet, "gpt": gpt}


def train_step(model, sizes, x, rate=.01, brain=False):
    """Jitted step(state, x, target) -> (state, loss) and a first state. SGD with momentum; AdamW
    for the GPT. The batch is an argument, because the compiler would fold a constant batch. brain:
    the network computes in bf16, over parameters that are kept in f32."""
    net = NETS[model]
    first = Layers()
    jax.eval_shape(lambda x: net(first, x, **sizes), x)     # which parameters and statistics
    params, stats = first.make()
    adam = model == "gpt"
    zeros = jax.tree_util.tree_map(jnp.zeros_like, params)
    moments = (zeros, jax.tree_util.tree_map(jnp.zeros_like, params)) if adam else zeros

    def loss_of(params, stats, x, target):
        if brain:
            params = jax.tree_util.tree_map(lambda p: p.astype(jnp.bfloat16), params)
            x = x if model == "gpt" else x.astype(jnp.bfloat16)
        f = Layers(params, stats)
        score = net(f, x, **sizes).astype(jnp.float32)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(score), target[..., None], -1)
        return -chosen.mean(), f.new_stats

    def sgd(params, moments, grads, _):
        moments = jax.tree_util.tree_map(lambda m, g: .9 * m + g, moments, grads)
        return jax.tree_util.tree_map(lambda p, m: p - rate * m, params, moments), moments

    def adamw(params, moments, grads, count):
        m = jax.tree_util.tree_map(lambda a, g: .9 * a + .1 * g, moments[0], grads)
        v = jax.tree_util.tree_map(lambda a, g: .999 * a + .001 * g * g, moments[1], grads)
        c1, c2 = 1 - .9 ** count, 1 - .999 ** count
        new = jax.tree_util.tree_map(
            lambda p, a, b: p - 1e-3 * (.01 * p + a / c1 / (jnp.sqrt(b / c2) + 1e-8)), params, m, v)
        return new, (m, v)

    def step(state, x, target):
        params, stats, moments, count = state
        (loss, stats), grads = jax.value_and_grad(loss_of, has_aux=True)(params, stats, x, target)
        params, moments = (adamw if adam else sgd)(params, moments, grads, count + 1)
        return (params, stats, moments, count + 1), loss

    state = (params, stats, moments, jnp.float32(0))
    return jax.jit(step, donate_argnums=0), state
