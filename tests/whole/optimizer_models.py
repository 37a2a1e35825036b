"""Optimizers as formulas over lists of doubles: what a program's parameters are compared with.

A model is a function (p, g, t, shape, state, **settings) that returns the parameter after step t (from 1). `state` is a
dictionary of the parameter's own, empty at first; `rate` is the learning rate.
"""
import math


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
    return [x - rate * (a / (1 - beta1 ** t)) / (math.sqrt(b / (1 - beta2 ** t)) + eps) for x, a, b in zip(p, m, v)]


def adamw(p, g, t, shape, state, rate, wd=0.01, **more):
    return adam(p, g, t, shape, state, rate, wd=wd, decoupled=True, **more)


def sign(c):
    return (c > 0) - (c < 0)


def lion(p, g, t, shape, state, rate, beta1=0.9, beta2=0.99, wd=0.0):
    m = of(state, "m", len(p))
    out = [x - rate * (sign(beta1 * a + (1 - beta1) * d) + wd * x) for x, a, d in zip(p, m, g)]
    state["m"] = [beta2 * a + (1 - beta2) * d for a, d in zip(m, g)]
    return out


def rmsprop(p, g, t, shape, state, rate, alpha=0.99, eps=1e-8, momentum=0.0, wd=0.0, centered=False, inside=False):
    g = [d + wd * x for x, d in zip(p, g)]
    h, v = moments(p, g, state, alpha, alpha)
    b = of(state, "b", len(p))
    for i, d in enumerate(g):
        square = v[i] - h[i] * h[i] if centered else v[i]
        b[i] = momentum * b[i] + d / (math.sqrt(square + eps) if inside else math.sqrt(square) + eps)
    return [x - rate * y for x, y in zip(p, b)]


def adagrad(p, g, t, shape, state, rate, lr_decay=0.0, initial=0.0, eps=1e-10, wd=0.0):
    s = state.setdefault("s", [initial] * len(p))
    g = [d + wd * x for x, d in zip(p, g)]
    state["s"] = s = [a + d * d for a, d in zip(s, g)]
    return [x - rate / (1 + (t - 1) * lr_decay) * d / (math.sqrt(a) + eps) for x, d, a in zip(p, g, s)]


def nadam(p, g, t, shape, state, rate, beta1=0.9, beta2=0.999, eps=1e-8, momentum_decay=0.004, wd=0.0, decoupled=False):
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
    step *= math.sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho)) * math.sqrt(1 - beta2 ** t)
    return [x - step * a / (math.sqrt(b) + eps) for x, a, b in zip(p, m, v)]


def norm(x):
    return math.sqrt(sum(a * a for a in x))


def ratio_of(p, u, factor=1.0, eps=0.0):
    """The ratio of norms, 1 if either is 0."""
    a, b = norm(p), norm(u)
    return factor * a / (b + eps) if a > 0 and b > 0 else 1.0


def lamb(p, g, t, shape, state, rate, beta1=0.9, beta2=0.999, eps=1e-6, wd=0.0, apex=False, nvlamb=False, clip=None):
    """apex: the caller has clipped the gradients of all parameters together."""
    m, v = moments(p, g, state, beta1, beta2)
    u = [a / (1 - beta1 ** t) / (math.sqrt(b / (1 - beta2 ** t)) + eps) + wd * x for x, a, b in zip(p, m, v)]
    ratio = ratio_of(p, u) if wd != 0 or nvlamb or not apex else 1.0
    return [x - rate * ratio * y for x, y in zip(p, u)]


def lars(p, g, t, shape, state, rate, momentum=0.9, trust=0.001, eps=0.0, wd=0.0, nesterov=False):
    u = [d + wd * x for x, d in zip(p, g)]
    step = rate * ratio_of(p, u, trust, eps)
    v = state["v"] = [momentum * a + step * d for a, d in zip(of(state, "v", len(p)), u)]
    return [x - (step * d + momentum * a if nesterov else a) for x, a, d in zip(p, v, u)]
