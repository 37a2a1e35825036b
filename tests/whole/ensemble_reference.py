#!/usr/bin/env python3
"""Ensembles beside references in double precision.

    tests/whole/ensemble_reference.py LOWERSET INPUTS[:INPUTS...] [NETWORK...]

INPUTS/wave2/ensemble has, for ten members of each network, losses, outputs and gradients, on one
batch or on a batch each, and the weights after three steps of SGD and of Adam. Differences are
judged by the manifest's rule. Without networks in the arguments: the small ones, with LS_WHOLE in
the environment all.
"""
import math
import os

import linear_net as net
from references import check_all, run

QUICK = ["ens_mlp_ce", "ens_functorch_narrow"]
OPTIMIZER = {"sgd": ("sgd:momentum=0.9", "0.05"), "adam": ("adam:eps=1e-5", "0.001")}


def formula(entry):
    """The weights that the manifest gives by a formula (INPUTS/wave2/README.md)."""
    stack, of, mask = {}, entry["stack_formula"], 2 ** 64 - 1
    for j, (param, fan_in) in enumerate(zip(of["parameter_order"], of["fan_in"])):
        shape, values = entry["shapes"][param], []
        for seed in of["seeds"]:
            for i in range(net.count(shape[1:])):
                z = ((seed << 48) + (j << 40) + i + 1) * 0x9E3779B97F4A7C15 & mask
                z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
                z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
                z ^= z >> 31
                values.append((2 * ((z >> 40) / 16777216) - 1) / math.sqrt(fan_in))
        stack[param] = shape, values
    return stack


def rows(tensor, every=1):
    """The members of a stack, flat; of each the elements 0, every, ..."""
    shape, values = tensor
    size = len(values) // shape[0]
    return [values[k * size:(k + 1) * size:every] for k in range(shape[0])]


def members(ref, *kinds):
    """(key, kind, parameter, every how many elements) of the reference; norms of sampled tensors
    are left out."""
    for key in ref:
        group, _, param = key.partition("/")
        kind, _, how = group.partition(".")
        if kind in kinds and param and how != "l2":
            yield key, kind, param, int(how[len("every"):] or 1)


def most(values):
    return max(map(abs, values), default=0)


def apart(got, want):
    """The largest difference; what is no number is infinitely far."""
    far = [abs(a - b) for a, b in zip(got, want)] if len(got) == len(want) else [math.inf]
    return math.inf if any(map(math.isnan, far)) else max(far)


def judge_losses(got, ref, tolerance):
    far = max(apart([a], [b]) / max(abs(b), 1e-3) for a, b in zip(got, ref))
    return (far if len(got) == len(ref) else math.inf) / tolerance, "loss"


def judge(out, ref, tolerance):
    """Loss, outputs and gradients of every member; the worst difference over what is allowed."""
    worst = [judge_losses(out["loss"][1], ref["loss"][1], tolerance["loss"])]
    for kind in "out", "grad":
        each = [(key, rows(ref[key]), rows(out[f"{kind}/{param}"], every))
                for key, _, param, every in members(ref, kind)]
        for k in range(len(each[0][1])):
            largest = max(most(want[k]) for _, want, _ in each)
            for key, want, got in each:
                limit = tolerance[kind] * max(most(want[k]), 1e-3 * largest)
                worst.append((apart(got[k], want[k]) / limit, key))
    return max(worst)


def judge_steps(out, ref, stack, kind, tolerance):
    """The loss before the third step, and the updates of all three."""
    steps = len(ref[kind + "_loss"][1]) // len(out["loss"][1])
    worst, moved = [judge_losses(out["loss"][1], ref[kind + "_loss"][1][2::steps],
                                 tolerance["loss"])], {}
    for key, _, param, every in members(ref, kind):
        got, want, begin = (sum(rows(t, k), []) for t, k in
                            ((out["param/" + param], every), (ref[key], 1), (stack[param], every)))
        moved[param] = ([a - b for a, b in zip(got, begin)], [a - b for a, b in zip(want, begin)],
                        most(stack[param][1]))
    largest = max(most(want) for _, want, _ in moved.values())
    for param, (got, want, size) in moved.items():
        limit = tolerance[kind] * max(most(want), 1e-3 * largest) + 4 * 2.0 ** -23 * size
        worst.append((apart(got, want) / limit, f"{kind}/{param}"))
    return max(worst)


def check(lowerset, folder, entry, how):
    ref = net.npz_read(os.path.join(folder, entry["references"][how]))
    stack = net.npz_read(os.path.join(folder, entry["stack"])) if entry["stack"] else formula(entry)
    stack = {name.removeprefix("stack/"): v for name, v in stack.items()}
    (shape, x), (of, label), worst = ref["in/x"], ref["label"], []
    n = of[-1] if how == "each" else of[0]
    net.npz_write("in.npz", {"x": ((shape[0] * shape[1], *shape[2:]) if how == "each" else shape,
                                   x), "label": ((len(label),), label)})
    net.npz_write("stack.npz", stack)
    for kind, (optimizer, rate) in OPTIMIZER.items():
        run(lowerset, "compile", os.path.join(folder, entry["model"]),
            "-q", "-O0", "--plan-effort=2", f"--batch={n}", "--store-gradients",
            f"--ensemble={entry['members']}", f"--ensemble-batches={how}",
            f"--optimizer={optimizer}", "-o", "net")
        for steps in (1, 3) if kind == "sgd" else (3,):
            run("./net", "--data", "in.npz", "--steps", str(steps), "--lr", rate,
                "--no-shuffle", "--progress", "none",
                "--ensemble-weights", "stack.npz", "--dump", "out.npz")
            out, tolerance = net.npz_read("out.npz"), entry["tolerance"][how]
            worst.append(judge(out, ref, tolerance) if steps == 1
                         else judge_steps(out, ref, stack, kind, tolerance))
    far, key = max(worst)
    print(f"{entry['name']:24} {how:7} {far:8.3f} of what is allowed  {key}")
    return far <= 1


def check_both(lowerset, folder, entry):
    return all([check(lowerset, folder, entry, how) for how in ("shared", "each")])


check_all("ensemble", QUICK, check_both)
