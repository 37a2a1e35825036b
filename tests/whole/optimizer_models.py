"""Optimizers as formulas over lists of doubles: what a program's parameters are compared with.

A model is a function (p, g, t, shape, state, **settings) that returns the parameter after
step t (from 1). `state` is a dictionary of the parameter's own, empty at first; `rate` is
the learning rate.
"""
import math
import statistics


def of(state, key, n):
    return state.setdefault(key, [0.0] * n)


def moments(p, g, state, beta1, beta2):
    m, v = of(state, "m", len(p)), of(state, "v", len(p))
    for i, d in enumerate(g):
        m[i] += (1 - beta1) * (d - m[i])
        v[i] += (1 - beta2) * (d * d - v[i])
    return m, v


def decayed(p, g, rate, wd, decoupled):
    """Parameter and gradient after weight decay."""
    if decoupled:
        return [x * (1 - rate * wd) for x in p], g
    return p, [d + wd * x for x, d in zip(p, g)]


def sgd(p, g, t, shape, state, rate, momentum=0.0, wd=0.0, nesterov=False):
    b = of(state, "b", len(p))
    out = []
    for i, x in enumerate(p):
        d = g[i] + wd * x
        b[i] = momentum * b[i] + d
        out.append(x - rate * (d + momentum * b[i] if nesterov else b[i]))
    return out


def adam(p, g, t, shape, state, rate, beta1=0.9, beta2=0.999, eps=1e-8, wd=0.0, decoupled=False):
    p, g = decayed(p, g, rate, wd, decoupled)
    m, v = moments(p, g, state, beta1, beta2)
    return [x - rate * (a / (1 - beta1 ** t)) / (math.sqrt(b / (1 - beta2 ** t)) + eps)
            for x, a, b in zip(p, m, v)]


def adamw(p, g, t, shape, state, rate, wd=0.01, **more):
    return adam(p, g, t, shape, state, rate, wd=wd, decoupled=True, **more)


def sign(c):
    return (c > 0) - (c < 0)


def lion(p, g, t, shape, state, rate, beta1=0.9, beta2=0.99, wd=0.0):
    m = of(state, "m", len(p))
    out = [x - rate * (sign(beta1 * a + (1 - beta1) * d) + wd * x) for x, a, d in zip(p, m, g)]
    state["m"] = [beta2 * a + (1 - beta2) * d for a, d in zip(m, g)]
    return out


def rmsprop(p, g, t, shape, state, rate, alpha=0.99, eps=1e-8, momentum=0.0, wd=0.0, centered=False,
            inside=False):
    g = [d + wd * x for x, d in zip(p, g)]
    h, v = moments(p, g, state, alpha, alpha)
    b = of(state, "b", len(p))
    for i, d in enumerate(g):
        square = v[i] - h[i] * h[i] if centered else v[i]
        b[i] = momentum * b[i] + d / (math.sqrt(square + eps) if inside else math.sqrt(square)
                                      + eps)
    return [x - rate * y for x, y in zip(p, b)]


def adagrad(p, g, t, shape, state, rate, lr_decay=0.0, initial=0.0, eps=1e-10, wd=0.0):
    s = state.setdefault("s", [initial] * len(p))
    g = [d + wd * x for x, d in zip(p, g)]
    state["s"] = s = [a + d * d for a, d in zip(s, g)]
    return [x - rate / (1 + (t - 1) * lr_decay) * d / (math.sqrt(a) + eps)
            for x, d, a in zip(p, g, s)]


def nadam(p, g, t, shape, state, rate, beta1=0.9, beta2=0.999, eps=1e-8, momentum_decay=0.004,
          wd=0.0, decoupled=False):
    p, g = decayed(p, g, rate, wd, decoupled)
    m, v = moments(p, g, state, beta1, beta2)
    now = beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay))
    after = beta1 * (1 - 0.5 * 0.96 ** ((t + 1) * momentum_decay))
    product = state["product"] = state.get("product", 1.0) * now
    out = []
    for x, d, a, b in zip(p, g, m, v):
        down = math.sqrt(b / (1 - beta2 ** t)) + eps
        x -= rate * (1 - now) / (1 - product) * d / down
        out.append(x - rate * after / (1 - product * after) * a / down)
    return out


def radam(p, g, t, shape, state, rate, beta1=0.9, beta2=0.999, eps=1e-8, wd=0.0, decoupled=False):
    p, g = decayed(p, g, rate, wd, decoupled)
    m, v = moments(p, g, state, beta1, beta2)
    most = 2 / (1 - beta2) - 1
    rho = most - 2 * t * beta2 ** t / (1 - beta2 ** t)
    step = rate / (1 - beta1 ** t)
    if rho <= 5:
        return [x - step * a for x, a in zip(p, m)]
    step *= math.sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho)) \
        * math.sqrt(1 - beta2 ** t)
    return [x - step * a / (math.sqrt(b) + eps) for x, a, b in zip(p, m, v)]


def norm(x):
    return math.sqrt(sum(a * a for a in x))


def ratio_of(p, u, factor=1.0, eps=0.0):
    """The ratio of norms, 1 if either is 0."""
    a, b = norm(p), norm(u)
    return factor * a / (b + eps) if a > 0 and b > 0 else 1.0


def lamb(p, g, t, shape, state, rate, beta1=0.9, beta2=0.999, eps=1e-6, wd=0.0, apex=False,
         nvlamb=False, clip=None):
    """apex: the caller has clipped the gradients of all parameters together."""
    m, v = moments(p, g, state, beta1, beta2)
    u = [a / (1 - beta1 ** t) / (math.sqrt(b / (1 - beta2 ** t)) + eps) + wd * x
         for x, a, b in zip(p, m, v)]
    ratio = ratio_of(p, u) if wd != 0 or nvlamb or not apex else 1.0
    return [x - rate * ratio * y for x, y in zip(p, u)]


def lars(p, g, t, shape, state, rate, momentum=0.9, trust=0.001, eps=0.0, wd=0.0, nesterov=False):
    u = [d + wd * x for x, d in zip(p, g)]
    step = rate * ratio_of(p, u, trust, eps)
    v = state["v"] = [momentum * a + step * d for a, d in zip(of(state, "v", len(p)), u)]
    return [x - (step * d + momentum * a if nesterov else a) for x, a, d in zip(p, v, u)]


def rms(x):
    return norm(x) / math.sqrt(len(x))


def adafactor(p, g, t, shape, state, rate, decay_rate=0.8, eps1=2.0 ** -23, eps2=1e-3,
              d=1.0, wd=0.0):
    b = t ** -decay_rate
    square = [x * x for x in g]
    if len(shape) < 2:
        v = state["v"] = [(1 - b) * a + b * s for a, s in zip(of(state, "v", len(p)), square)]
    else:
        v = []
        rows, columns = shape[-2:]
        for k in range(0, len(p), rows * columns):      # each matrix of the last two axes
            at = square[k:k + rows * columns]
            r, c = of(state, ("row", k), rows), of(state, ("column", k), columns)
            for i in range(rows):
                r[i] = (1 - b) * r[i] + b * sum(at[i * columns:(i + 1) * columns]) / columns
            for j in range(columns):
                c[j] = (1 - b) * c[j] + b * sum(at[j::columns]) / rows
            over = max(sum(r) / rows, eps1)
            v += [r[i] * c[j] / over for i in range(rows) for j in range(columns)]
    u = [x / math.sqrt(max(a, eps1 * eps1)) for x, a in zip(g, v)]
    step = max(eps2, rms(p)) * min(rate, 1 / math.sqrt(t)) / max(1.0, rms(u) / d)
    return [x * (1 - rate * wd) - step * y for x, y in zip(p, u)]


def times(a, b):
    turned = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) for column in turned] for row in a]


def muon(p, g, t, shape, state, rate, momentum=0.95, wd=0.1, adam_lr=1e-3, beta1=0.9, beta2=0.999,
         eps=1e-8, adam_wd=0.0):
    if len(shape) != 2:
        return adamw(p, g, t, shape, state, adam_lr, wd=adam_wd, beta1=beta1, beta2=beta2, eps=eps)
    m = state["m"] = [momentum * a + (1 - momentum) * d for a, d in zip(of(state, "m", len(p)), g)]
    u = [(1 - momentum) * d + momentum * a for a, d in zip(m, g)]
    rows, columns = shape
    down = max(norm(u), 1e-7)
    x = [[u[i * columns + j] / down for j in range(columns)] for i in range(rows)]
    if rows > columns:
        x = [list(r) for r in zip(*x)]
    for _ in range(5):
        pairs = times(x, zip(*x))
        both = [[-4.775 * a + 2.0315 * b for a, b in zip(*r)]
                for r in zip(pairs, times(pairs, pairs))]
        x = [[3.4445 * a + b for a, b in zip(*r)] for r in zip(x, times(both, x))]
    if rows > columns:
        x = [list(r) for r in zip(*x)]
    step = rate * math.sqrt(max(1, rows / columns))
    return [a * (1 - rate * wd) - step * b for a, b in zip(p, (y for r in x for y in r))]


def uniform(seed, step, stream, index):
    """ls_uniform of runtime/kernels/ls_math.h."""
    full, word = 2 ** 64 - 1, 2 ** 32 - 1
    key = (seed + 0x9e3779b97f4a7c15 * (stream + 1)) & full
    key = ((key ^ key >> 30) * 0xbf58476d1ce4e5b9 + step) & full
    key = (key ^ key >> 27) * 0x94d049bb133111eb & full
    key = (key ^ key >> 31) * 0xbf58476d1ce4e5b9 & full
    x = (index * 0x9e3779b1 + (key & word)) & word
    x = (x ^ x >> 16) * 0x85ebca6b & word
    x = ((x ^ x >> 13) * 0xc2b2ae35 + (key >> 32)) & word
    x = (x ^ x >> 16) * 0x21f0aaad & word
    x = (x ^ x >> 15) * 0x735a2d97 & word
    return ((x ^ x >> 15) >> 8) / 2 ** 24


def projection(name, period, rows, columns, seed=0):
    """Normal numbers of the stream that the parameter's name gives."""
    key = 0
    for letter in name.encode():
        key = (key * 31 + letter) % 2 ** 32
    stream = 0x800000 + (key * 2654435761 % 2 ** 32 >> 9)
    plain = statistics.NormalDist()
    draw = [plain.inv_cdf(uniform(seed, period, stream, i) + 2 ** -25)
            for i in range(rows * columns)]
    return [draw[i * columns:(i + 1) * columns] for i in range(rows)]


def late_adamw(p, g, t, state, rate, beta1, beta2, eps, wd, raw):
    """AdamW as in Transformers: eps stands before the correction, the decay after the step."""
    m, v = moments(p, g, state, beta1, beta2)
    step = rate if raw else rate * math.sqrt(1 - beta2 ** t) / (1 - beta1 ** t)
    p = [x - step * a / (math.sqrt(b) + eps) for x, a, b in zip(p, m, v)]
    return [x * (1 - rate * wd) for x in p]


def apollo(p, g, t, shape, state, rate, rank=256, scale=1.0, gap=200, growth=1.01, beta1=0.9,
           beta2=0.999, eps=1e-6, wd=0.0, front=False, raw=False, tensor=False):
    """APOLLOAdamW of apollo-torch, with a projection of our numbers."""
    if len(shape) != 2 or min(shape) <= rank:
        return late_adamw(p, g, t, state, rate, beta1, beta2, eps, wd, raw)
    rows, columns = shape
    grad = [g[i * columns:(i + 1) * columns] for i in range(rows)]
    if rows < columns:                  # the projection shortens the shorter axis
        grad = [list(c) for c in zip(*grad)]
    period = (t - 1) // gap
    if state.get("period") != period:
        n = len(grad[0])
        made = projection(state["name"], period, *((rank, n) if rows >= columns else (n, rank)))
        state["period"] = period
        state["by"] = made if rows >= columns else [list(c) for c in zip(*made)]
    low = [[sum(a * b for a, b in zip(row, by)) / math.sqrt(rank) for by in state["by"]]
           for row in grad]
    m, v = moments([0.0] * (len(low) * rank), [x for row in low for x in row], state, beta1, beta2)
    way = [a / (math.sqrt(b) + eps) for a, b in zip(m, v)]
    if tensor:
        factor = [norm(way) / (norm(x for row in low for x in row) + 1e-8)] * len(low)
    else:
        factor = [norm(way[i * rank:(i + 1) * rank]) / (norm(row) + 1e-8)
                  for i, row in enumerate(low)]
    u = [[x * f for x in row] for row, f in zip(grad, factor)]
    if front:
        u = [[x * math.sqrt(scale) for x in row] for row in u]
    size = norm(x for row in u for x in row)
    over = max(size / (state["norm"] + 1e-8), growth) / growth if t > 1 and growth else 1.0
    state["norm"] = size / over
    step = rate / over * (1 if front else math.sqrt(scale))
    step *= 1 if raw else math.sqrt(1 - beta2 ** t) / (1 - beta1 ** t)
    if rows < columns:
        u = [list(c) for c in zip(*u)]
    return [(x - step * y) * (1 - rate * wd) for x, y in zip(p, (y for row in u for y in row))]


def apollo_mini(p, g, t, shape, state, rate, rank=1, scale=128.0, **more):
    return apollo(p, g, t, shape, state, rate, rank=rank, scale=scale, tensor=True, **more)


def free_step(p, u, t, state, rate, beta, wd, r, power):
    """The schedule-free step along u, as its authors' program makes it: on p and z alone."""
    z = state.setdefault("z", list(p))
    state["largest"] = max(state.get("largest", 0.0), rate)
    weight = t ** r * state["largest"] ** power
    state["sum"] = state.get("sum", 0.0) + weight
    c = weight / state["sum"]
    u = [d + wd * y for y, d in zip(p, u)]
    p = [y + c * (b - y) + d * rate * (beta * (1 - c) - 1) for y, b, d in zip(p, z, u)]
    state["z"] = z = [b - rate * d for b, d in zip(z, u)]
    state["evaluated"] = [y + (1 - 1 / beta) * (b - y) for y, b in zip(p, z)]
    return p


def schedule_free_sgd(p, g, t, shape, state, rate, beta=0.9, wd=0.0, r=0.0, power=2.0):
    return free_step(p, g, t, state, rate, beta, wd, r, power)


def schedule_free_adamw(p, g, t, shape, state, rate, beta1=0.9, beta2=0.999, eps=1e-8, wd=0.0,
                        r=0.0, power=2.0):
    v = state["v"] = [beta2 * a + (1 - beta2) * d * d for a, d in zip(of(state, "v", len(p)), g)]
    u = [d / (math.sqrt(a / (1 - beta2 ** t)) + eps) for d, a in zip(g, v)]
    return free_step(p, u, t, state, rate, beta1, wd, r, power)
