#!/usr/bin/env python3
"""Optimizers of compiled programs: beside references in double precision, and beside formulas over 1,000 steps.

    tests/whole/optimizers.py LOWERSET INPUTS

The net is linear_net: its gradients are its inputs. INPUTS/wave2/optim/opt_vectors.ref.npz has 8 steps of the optimizers
of PyTorch and optax. A difference is the largest of an element's over the largest change of its tensor: at most 1e-6 of it
in double precision, at most what the references' own rule allows in float. The formulas are those of optimizer_models.
"""
import os
import random
import subprocess
import sys
import tempfile

import linear_net as net
import optimizer_models as models

# Name in the references or None, optimizer, settings beside the rate, the rate.
CASES = [
    (None, "sgd", {}, 0.01),
    (None, "sgd", {"momentum": 0.9, "wd": 0.01}, 0.01),
    ("sgd_nesterov", "sgd", {"momentum": 0.9, "nesterov": True}, 0.05),
    ("adam_l2", "adam", {"wd": 0.01}, 0.001),
    ("adamw", "adamw", {}, 0.001),
    ("lion", "lion", {"wd": 0.01}, 0.001),
    ("rmsprop", "rmsprop", {}, 0.001),
    ("rmsprop_centered_momentum", "rmsprop", {"centered": True, "momentum": 0.9}, 0.001),
    (None, "rmsprop", {"inside": True, "alpha": 0.9, "wd": 0.1, "eps": 1e-3}, 0.002),
    ("adagrad", "adagrad", {"lr_decay": 0.01}, 0.01),
    (None, "adagrad", {"initial": 0.1, "wd": 0.1, "eps": 1e-6}, 0.01),
    ("nadam", "nadam", {}, 0.002),
    (None, "nadam", {"wd": 0.1, "decoupled": True, "momentum_decay": 0.01, "beta1": 0.8}, 0.002),
    ("radam", "radam", {}, 0.001),
    (None, "radam", {"wd": 0.1, "decoupled": True, "beta2": 0.99}, 0.001),
]
STEPS = 1000
wrong = []


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr or done.stdout}")


def spec(name, settings, rate):
    words = [key if value is True else f"{key}={value!r}" for key, value in settings.items()]
    return name + ":" + ",".join(words + [f"lr={rate!r}"])


def trained(lowerset, model, data, optimizer, precision, steps, more=()):
    """The parameters after so many steps of one sample each."""
    run(lowerset, "compile", model, "-q", "-O0", "--plan-effort=2", "--batch=1", f"--precision={precision}", "--loss=graph",
        f"--optimizer={optimizer}", "-o", "net", *more)
    run("./net", "--data", data, "--no-shuffle", f"--steps={steps}", "--progress", "none", "--dump", "out.npz")
    return {k[6:]: v[1] for k, v in net.npz_read("out.npz").items() if k.startswith("param/")}


def farthest(got, want, start):
    """The largest difference over all tensors, as a part of the tensor's largest change; what rounding alone makes of a
    parameter that does not change counts as nothing."""
    far = 0
    for name, ref in want.items():
        change = max(abs(a - b) for a, b in zip(ref, start[name]))
        if len(got[name]) != len(ref):
            return float("inf")
        apart = max(abs(a - b) for a, b in zip(got[name], ref))
        if not apart <= far * change:       # not a number: far, too
            far = apart / change if change > 0 else float("inf")
    return far


def tell(what, far, most):
    print(f"{what:70} {far:8.1e}")
    if not far <= most:
        wrong.append(what)


def beside_references(lowerset, folder, cases):
    ref = net.npz_read(os.path.join(folder, "opt_vectors.ref.npz"))
    start = {k[3:]: v for k, v in ref.items() if k.startswith("p0/")}
    with open("vectors.onnx", "wb") as f:
        f.write(net.model(start))
    net.npz_write("vectors.npz", {"x_" + t: ref["g/" + t] for t in start})
    begin = {t: v[1] for t, v in start.items()}
    for name, kind, settings, rate in cases:
        for precision, steps in ("f64", 5), ("f64", 8), ("f32", 8):
            got = trained(lowerset, "vectors.onnx", "vectors.npz", spec(kind, settings, rate), precision, steps)
            want = {}
            for t in start:
                n = net.count(start[t][0])
                want[t] = ref[f"opt/{name}/{t}"][1][n * (steps - 1):n * steps]
            if precision == "f32":
                # the rule of the references, with the rounding of the parameter itself
                for t in start:
                    near = 4 * 2 ** -23 * max(map(abs, begin[t]))
                    got[t] = [b if abs(a - b) <= near else a for a, b in zip(got[t], want[t])]
            tell(f"{name}: {steps} steps in {precision}, reference", farthest(got, want, begin),
                 1e-6 if precision == "f64" else 1e-5)


def formula(kind, settings, rate, start, grads, steps):
    p = {name: list(data) for name, (_, data) in start.items()}
    state = {name: {} for name in start}
    for t in range(1, steps + 1):
        for name, (shape, _) in start.items():
            n = net.count(shape)
            p[name] = getattr(models, kind)(p[name], grads[name][n * (t - 1):n * t], t, shape, state[name], rate=rate,
                                            **settings)
    return p


def beside_formulas(lowerset, cases):
    dice = random.Random(3)
    shapes = {"one": (), "row": (3,), "matrix": (4, 3), "wide": (2, 5), "kernel": (2, 3, 2, 2), "zero": (2, 2)}
    start = {name: (s, [net.single(dice.gauss(0, 0.5)) if name != "zero" else 0.0 for _ in range(net.count(s))])
             for name, s in shapes.items()}
    grads = {name: [net.single(dice.gauss(0.1, 1)) for _ in range(net.count(s) * STEPS)] for name, s in shapes.items()}
    with open("own.onnx", "wb") as f:
        f.write(net.model(start))
    net.npz_write("own.npz", {"x_" + n: ((STEPS,) + s, grads[n]) for n, s in shapes.items()})
    begin = {name: data for name, (_, data) in start.items()}
    for _, kind, settings, rate in cases:
        got = trained(lowerset, "own.onnx", "own.npz", spec(kind, settings, rate), "f64", STEPS)
        want = formula(kind, settings, rate, start, grads, STEPS)
        tell(f"{spec(kind, settings, rate)}: {STEPS} steps, formula", farthest(got, want, begin), 1e-6)


def main():
    lowerset, inputs = (os.path.abspath(word) for word in sys.argv[1:3])
    cases = [c for c in CASES if len(sys.argv) < 4 or c[1] in sys.argv[3:]]
    folder = os.path.join(inputs, "wave2", "optim")
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        beside_formulas(lowerset, cases)
        if os.path.isdir(folder):
            beside_references(lowerset, folder, [c for c in cases if c[0]])
        else:
            print(f"skipped: the references, as there is no {folder}")
        os.chdir("/")
    for what in wrong:
        print(f"FAIL: {what}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
