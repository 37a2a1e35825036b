#!/usr/bin/env python3
"""Optimizers of compiled programs: beside references in double precision, and beside formulas
over 1,000 steps.

    tests/whole/optimizers.py LOWERSET INPUTS[:INPUTS...]

The net is linear_net: its gradients are its inputs. INPUTS/wave2/optim/opt_vectors.ref.npz has 8
steps of the optimizers of PyTorch and optax; beside it are those of a perceptron and of a ResNet. A
difference is the largest of an element's over the largest change of its tensor: at most 1e-6 of it
in double precision, at most what the references' own rule allows in float. The formulas are those
of optimizer_models; without LS_WHOLE in the environment one case of each optimizer is compared with
them, one is compared on the ResNet, and no program in float with the references. A file of
references is taken from the first of the folders that has it; tests/data/inputs has no ResNet.
"""
import array
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import linear_net as net
import optimizer_models as models
from command_checks import finish, wrong

# Name in the references or None, optimizer, settings beside the rate, the rate. All
# parameters decay.
CASES = [
    (None, "sgd", {}, 0.01),
    (None, "sgd", {"momentum": 0.9, "wd": 0.01}, 0.01),
    ("ema", "sgd", {"momentum": 0.9, "ema": 0.999}, 0.05),
    (None, "adamw", {"ema": 0.9}, 0.01),
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
    ("lamb", "lamb", {"wd": 0.01}, 0.01),
    (None, "lamb", {"ema": 0.9}, 0.01),
    (None, "lamb", {"apex": True, "wd": 0.01, "eps": 1e-4}, 0.01),
    (None, "lamb", {"apex": True, "clip": 3.0}, 0.01),
    (None, "lamb", {"apex": True, "nvlamb": True, "clip": 0.0}, 0.01),
    (None, "lars", {"wd": 0.01}, 0.1),
    (None, "lars", {"nesterov": True, "momentum": 0.8, "trust": 0.02, "eps": 0.1}, 0.1),
    ("adafactor", "adafactor", {}, 0.01),
    (None, "adafactor", {"wd": 0.1, "decay_rate": 0.5, "d": 0.5, "eps2": 0.1, "ema": 0.9}, 0.1),
    (None, "apollo", {"rank": 2}, 0.001),
    (None, "apollo", {"rank": 1, "gap": 7, "tensor": True, "wd": 0.1, "growth": 0.0, "ema": 0.9},
     0.001),
    (None, "apollo", {"rank": 1, "scale": 4.0, "front": True, "raw": True, "eps": 1e-4,
                      "beta2": 0.9}, 0.001),
    (None, "apollo-mini", {"wd": 0.1}, 0.001),
    ("muon", "muon", {}, 0.02),
    (None, "muon", {"momentum": 0.8, "adam_lr": 0.01, "adam_wd": 0.1, "wd": 0.2, "ema": 0.9}, 0.05),
    (None, "schedule-free-sgd", {"wd": 0.01}, 0.01),
    (None, "schedule-free-sgd", {"beta": 0.8, "r": 1.0, "schedule": "linear:warmup=300"}, 0.01),
    (None, "schedule-free-adamw", {"wd": 0.01}, 0.002),
    (None, "radam", {"wd": 0.1, "decoupled": True, "beta2": 0.99}, 0.001),
]
STEPS = 1000
QUICK_RESNET = ["lamb"]                 # what LS_WHOLE is not needed for


def whole():
    return os.environ.get("LS_WHOLE") or len(sys.argv) > 3


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr or done.stdout}")
    return done.stdout + done.stderr


def spec(name, settings, rate):
    words = [key if value is True else f"{key}={value!r}" for key, value in settings.items()
             if key not in ("ema", "schedule")]
    return name + ":" + ",".join(words + [f"lr={rate!r}"])


def options(kind, settings, rate):
    more = [f"--optimizer={spec(kind, settings, rate)}"]
    if settings.get("wd", kind in ("adamw", "muon")):
        more.append("--no-decay=none")
    return more + [f"--{key}={settings[key]}" for key in ("ema", "schedule") if key in settings]


def trained(lowerset, model, data, words, precision, steps, more=()):
    """The parameters after so many steps of one sample each, or their averages. words: None for
    the program before."""
    if words is not None:
        compiled(lowerset, model, words, precision)
    text = run("./net", "--data", data, "--no-shuffle", f"--steps={steps}", "--progress", "none",
               "--dump", "out.npz", *more)
    out = net.npz_read("out.npz")
    averages = {k[8:-8]: v[1] for k, v in out.items() if k.startswith("average/")}
    params = {k[6:]: v[1] for k, v in out.items() if k.startswith("param/")}
    return averages or params, params, text


def compiled(lowerset, model, words, precision):
    run(lowerset, "compile", model, "-q", "-O0", "--plan-effort=2", f"--precision={precision}",
        "-o", "net", *(words if "--loss=ce" in words else ["--batch=1", "--loss=graph", *words]))


def farthest(got, want, start):
    """The largest difference over all tensors, as a part of the tensor's largest change; what
    rounding alone makes of a parameter that does not change counts as nothing."""
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
        for precision, steps, words in ("f64", 5,
                                        options(kind, settings, rate)), ("f64", 8, None), \
                ("f32", 8, options(kind, settings, rate)):
            if precision == "f32" and not whole():
                continue
            got = trained(lowerset, "vectors.onnx", "vectors.npz", words, precision, steps)[0]
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
                 1e-6 if precision == "f64" else 0.0062 if name == "ema" else 1e-5)


def sampled(ref, name, start):
    """{parameter: (every how many elements, those of the reference)}"""
    found = {}
    for key, (_, values) in ref.items():
        kind, of, param = (key.split("/", 2) + ["", ""])[:3]
        if of == name and param in start and kind.startswith("opt") and kind != "opt.l2":
            found[param] = int(kind[len("opt.every"):] or 1), values
    return found


def by_the_rule(what, tolerance, start, got, want, losses, ref_losses):
    """The manifest's rule for programs in float, which its own run in float keeps by far."""
    moved = {p: [r - b for r, b in zip(v, start[p][::k])] for p, (k, v) in want.items()}
    apart = {p: [a - r for a, r in zip(got[p][::k], v)] for p, (k, v) in want.items()}
    largest = max(abs(d) for v in moved.values() for d in v)
    for p in want if tolerance["update"] is not None else []:
        most = tolerance["update"] * max(max(map(abs, moved[p])),
                                         1e-3 * largest) + 4 * 2 ** -23 * max(map(abs, start[p]))
        if not max(map(abs, apart[p])) <= most:
            wrong.append(f"{what}: {p}")
    total = models.norm(d for v in apart.values()
                        for d in v) / models.norm(d for v in moved.values() for d in v)
    tell(f"{what}, in float", total, tolerance["update_l2"])
    far = max(abs(a - b) / abs(b) for a, b in zip(losses, ref_losses))
    tell(f"{what}, its losses in float", far if len(losses) + 1 == len(ref_losses)
         else float("inf"), tolerance["loss"])


def logged(steps):
    with open("log") as f:
        rows = [json.loads(line) for line in f]
    return [row["loss"] for row in rows if "loss" in row and "step" in row][:steps]


def on_net(lowerset, inputs, net_name, cases, precisions):
    """5 steps (RAdam: 8) of a net with its own gradients; the difference is that of all
    parameters' changes together."""
    with open(os.path.join(inputs, "wave2", "MANIFEST.json")) as f:
        entry = next(e for e in json.load(f)["entries"] if e["kind"] == "optimizers"
                     and e["name"] == net_name)
    ref = net.npz_read(os.path.join(inputs, "wave2", entry["reference"]))
    plain = net.npz_read(os.path.join(inputs, "models", net_name + ".ref.npz"))
    shape = plain["in/x"][0]
    net.npz_write("net.npz",
                  {"x": plain["in/x"],
                   "label": (plain["label"][0], [float(k) for k in plain["label"][1]])})
    words = ["--loss=ce", f"--batch={shape[0]}", "--optimizer=none"]
    model = os.path.join(inputs, "models", net_name + ".onnx")
    begin = trained(lowerset, model, "net.npz", words, "f64", 1)[1]
    for name, kind, settings, rate in cases:
        hyper, steps = entry["optimizers"][name]["hyper"], entry["optimizers"][name]["steps"]
        settings = dict(settings, **({"eps": hyper["eps"]} if "eps" in hyper
                                     and kind not in ("adafactor", "muon") else {}))
        if kind == "muon":
            settings["eps"] = hyper["rest"]["eps"]
        want = sampled(ref, name, begin)
        what = f"{name}: {steps} steps of {net_name}, reference"
        for precision in precisions:
            got = trained(lowerset, model, "net.npz", words[:2] + options(kind, settings, rate),
                          precision, steps, ["--epochs=9", "--log=log"])[0]
            if set(want) != set(entry["trainable"]) or set(got) != set(want):
                wrong.append(f"{what}: other parameters")
            elif precision == "f32":
                by_the_rule(what, entry["optimizers"][name]["tolerance"], begin, got, want,
                            logged(steps), ref[f"opt/{name}/loss"][1])
            else:
                apart = models.norm(a - b for p, (k, v) in want.items()
                                    for a, b in zip(got[p][::k], v))
                moved = models.norm(a - b for p, (k, v) in want.items()
                                    for a, b in zip(begin[p][::k], v))
                # as float
                stored = 2 ** -24 * models.norm(a for _, v in want.values() for a in v)
                tell(what, apart / moved, 1e-6 + stored / moved)


def scheduled(rate, schedule, t, steps):
    """The rate of update t, with a linear schedule with warmup, or none."""
    if schedule is None:
        return rate
    warmup = int(schedule.split("=")[1])
    return rate * t / warmup if t <= warmup else rate * (steps + 1 - t) / (steps - warmup)


def formula(kind, settings, rate, start, grads, steps, spared=()):
    """What the parameters become, or their averages. spared: names of those that do not decay."""
    settings = dict(settings)
    ema, schedule = settings.pop("ema", 0), settings.pop("schedule", None)
    model = getattr(models, kind.replace("-", "_"))
    average = {name: list(data) for name, (_, data) in start.items()}
    p = {name: list(data) for name, (_, data) in start.items()}
    state = {name: {"name": name} for name in start}
    clip = settings.get("clip", 1.0) if "apex" in settings else 0
    for t in range(1, steps + 1):
        size = {name: net.count(shape) for name, (shape, _) in start.items()}
        g = {name: grads[name][n * (t - 1):n * t] for name, n in size.items()}
        total = models.norm(d for data in g.values() for d in data)
        if clip and total > clip:
            g = {name: [d * clip / total for d in data] for name, data in g.items()}
        for name, (shape, _) in start.items():
            mine = dict(settings, wd=0) if name in spared else settings
            p[name] = model(p[name], g[name], t, shape, state[name],
                            rate=scheduled(rate, schedule, t, steps), **mine)
            average[name] = state[name].get("evaluated") or [ema * a + (1 - ema) * x
                                                             for a, x in zip(average[name],
                                                                             p[name])]
    return average


def own_net():
    """Writes the net and its data; returns start, gradients and the start's values."""
    dice = random.Random(3)
    shapes = {"one": (), "row": (3,), "matrix": (4, 3), "wide": (2, 5), "kernel": (2, 3, 2, 2),
              "zero": (2, 2)}
    start = {name: (s, [net.single(dice.gauss(0, 0.5)) if name != "zero" else 0.0
                        for _ in range(net.count(s))])
             for name, s in shapes.items()}
    grads = {name: [net.single(dice.gauss(0.1, 1)) for _ in range(net.count(s) * STEPS)]
             for name, s in shapes.items()}
    with open("own.onnx", "wb") as f:
        f.write(net.model(start))
    net.npz_write("own.npz", {"x_" + n: ((STEPS,) + s, grads[n]) for n, s in shapes.items()})
    return start, grads, {name: data for name, (_, data) in start.items()}


def beside_formulas(lowerset, cases):
    start, grads, begin = own_net()
    for _, kind, settings, rate in cases:
        got = trained(lowerset, "own.onnx", "own.npz", options(kind, settings, rate),
                      "f64", STEPS)[0]
        want = formula(kind, settings, rate, start, grads, STEPS)
        tell(f"{' '.join(options(kind, settings, rate))}: {STEPS} steps, formula",
             farthest(got, want, begin), 1e-6)


def groups(lowerset):
    """Which parameters decay: biases and norms do not, nor those of --no-decay; the average is
    evaluated and exported."""
    start, grads, begin = own_net()
    for words, spared in ([], ["one", "row"]), (["--no-decay=ker*"], ["one", "row", "kernel"]), \
            (["--no-decay=none", "--no-decay=wide"], ["wide"]):
        got = trained(lowerset, "own.onnx", "own.npz", ["--optimizer=adamw:wd=0.5,lr=0.01", *words],
                      "f64", 20)[0]
        want = formula("adamw", {"wd": 0.5}, 0.01, start, grads, 20, spared)
        tell(f"decay groups {' '.join(words)}", farthest(got, want, begin), 1e-6)
    average, raw, text = trained(lowerset, "own.onnx", "own.npz",
                                 ["--optimizer=sgd:lr=0.01", "--ema=0.9"], "f64", 20,
                                 ["--val", "own.npz", "--export", "made.onnx"])
    with open("made.onnx", "rb") as f:
        made = f.read()
    as_bytes = lambda v: array.array("f", v).tobytes()
    if any(as_bytes(v) not in made for v in average.values()) or as_bytes(raw["wide"]) in made:
        wrong.append("--export does not have the averages")
    want = sum(sum(x * g for x, g in zip(average[n] * STEPS, grads[n])) for n in start) / STEPS
    said = float(re.search(r"val_loss (\S+)", text).group(1))
    tell("loss of the averages", abs(said - want) / abs(want), 1e-6)


def main():
    lowerset = os.path.abspath(sys.argv[1])
    folders = [os.path.abspath(word) for word in sys.argv[2].split(":")]
    first_with = lambda name: next((f for f in folders if os.path.exists(os.path.join(f, name))),
                                   None)
    cases = [c for c in CASES if len(sys.argv) < 4 or c[1] in sys.argv[3:]]
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        beside_formulas(lowerset, cases if whole() else list({c[1]: c for c in cases}.values()))
        groups(lowerset)
        vectors = first_with("wave2/optim/opt_vectors.ref.npz")
        beside_references(lowerset, os.path.join(vectors, "wave2", "optim"),
                          [c for c in cases if c[0]])
        # In float a ReLU of the ResNet flips within these steps or does not, by the order of a sum.
        for name, of, precisions in ("mlp_ce", cases, ["f64", "f32"] if whole() else ["f64"]), \
                ("resnet18_w6", [c for c in cases if whole() or c[0] in QUICK_RESNET], ["f64"]):
            inputs = first_with(f"wave2/optim/{name}.opt.ref.npz")
            if inputs is None:
                print(f"skipped: no folder of inputs has references of {name}")
            else:
                on_net(lowerset, inputs, name, [c for c in of if c[0]], precisions)
        os.chdir("/")
    finish()


if __name__ == "__main__":
    main()
