#!/usr/bin/env python3
"""Ensembles beside references in double precision.

    tests/whole/ensemble_reference.py LOWERSET INPUTS[:INPUTS...] [NETWORK...]

INPUTS/wave2/ensemble has, for ten members of each network, losses, outputs and gradients, on one batch or on a batch each,
and the weights after three steps of SGD and of Adam. Differences are judged by the manifest's rule. Without networks in the
arguments: the small ones, with LS_WHOLE in the environment all.
"""
import os
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: there is no numpy")
    sys.exit(77)

from references import check_all, run

QUICK = ["ens_mlp_ce", "ens_functorch_narrow"]
OPTIMIZER = {"sgd": ("sgd:momentum=0.9", "0.05"), "adam": ("adam:eps=1e-5", "0.001")}


def formula(entry):
    """The weights that the manifest gives by a formula (INPUTS/wave2/README.md)."""
    stack, of = {}, entry["stack_formula"]
    for j, (param, fan_in) in enumerate(zip(of["parameter_order"], of["fan_in"])):
        shape = entry["shapes"][param]
        i = np.arange(int(np.prod(shape[1:])), dtype=np.uint64)
        rows = []
        for seed in of["seeds"]:
            with np.errstate(over="ignore"):
                z = ((np.uint64(seed) << np.uint64(48)) + (np.uint64(j) << np.uint64(40)) + i + np.uint64(1)) \
                    * np.uint64(0x9E3779B97F4A7C15)
                z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
                z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
            z ^= z >> np.uint64(31)
            rows.append(((2 * ((z >> np.uint64(40)) / 16777216) - 1) / np.sqrt(fan_in)).astype(np.float32))
        stack[param] = np.stack(rows).reshape(shape)
    return stack


def sampled(got, ref, group):
    """The elements that the reference has: all, or every K-th of each member."""
    got = got.astype(np.float64).reshape(len(got), -1)
    if ".every" in group:
        got = got[:, ::int(group.split("every")[1])]
    return got, ref.astype(np.float64).reshape(len(ref), -1)


def scales(ref, kind):
    """By member: 1e-3 of the largest reference over all tensors of that kind."""
    rows = [np.abs(ref[k].reshape(len(ref[k]), -1)).max(1) for k in ref.files
            if k.partition("/")[0].split(".")[0] == kind and ".l2" not in k]
    return 1e-3 * np.max(rows, 0)


def judge_losses(got, ref, tolerance):
    return np.max(np.abs(got - ref) / np.maximum(np.abs(ref), 1e-3)) / tolerance, "loss"


def judge(out, ref, tolerance):
    """Loss, outputs and gradients of every member; the worst difference over what is allowed."""
    worst = [judge_losses(out["loss"], ref["loss"], tolerance["loss"])]
    for key in ref.files:
        group, _, param = key.partition("/")
        kind = group.split(".")[0]
        if kind not in ("out", "grad") or ".l2" in group:
            continue
        got, want = sampled(out[f"{kind}/{param}"], ref[key], group)
        most = np.maximum(np.abs(want).max(1), scales(ref, kind))
        worst.append((np.max(np.abs(got - want).max(1) / most) / tolerance[kind], key))
    return max(worst)


def judge_steps(out, ref, stack, kind, tolerance):
    """The loss before the third step, and the updates of all three."""
    worst, moved = [judge_losses(out["loss"], ref[kind + "_loss"][:, 2], tolerance["loss"])], {}
    for key in ref.files:
        group, _, param = key.partition("/")
        if group.split(".")[0] == kind and ".l2" not in group:
            got, want = sampled(out["param/" + param], ref[key], group)
            begin, _ = sampled(stack[param], ref[key], group)
            moved[param] = (got - begin, want - begin, np.abs(stack[param]).max())
    largest = max(np.abs(w).max() for _, w, _ in moved.values())
    for param, (got, want, size) in moved.items():
        most = tolerance[kind] * max(np.abs(want).max(), 1e-3 * largest) + 4 * 2.0 ** -23 * size
        worst.append((np.abs(got - want).max() / most, f"{kind}/{param}"))
    return max(worst)


def check(lowerset, folder, entry, how):
    ref = np.load(os.path.join(folder, entry["references"][how]))
    stack = dict(np.load(os.path.join(folder, entry["stack"]))) if entry["stack"] else formula(entry)
    stack = {name.removeprefix("stack/"): v for name, v in stack.items()}
    x, label, worst = ref["in/x"], ref["label"], []
    n = len(label.T) if how == "each" else len(label)
    np.savez("in.npz", x=x.reshape(-1, *x.shape[2:]) if how == "each" else x, label=label.ravel())
    np.savez("stack.npz", **stack)
    for kind, (optimizer, rate) in OPTIMIZER.items():
        run(lowerset, "compile", os.path.join(folder, entry["model"]), "-q", "-O0", "--plan-effort=2", f"--batch={n}", "--store-gradients",
            f"--ensemble={entry['members']}", f"--ensemble-batches={how}", f"--optimizer={optimizer}", "-o", "net")
        for steps in (1, 3) if kind == "sgd" else (3,):
            run("./net", "--data", "in.npz", "--steps", str(steps), "--lr", rate, "--no-shuffle", "--progress", "none",
                "--ensemble-weights", "stack.npz", "--dump", "out.npz")
            out, tolerance = np.load("out.npz"), entry["tolerance"][how]
            worst.append(judge(out, ref, tolerance) if steps == 1 else judge_steps(out, ref, stack, kind, tolerance))
    far, key = max(worst)
    print(f"{entry['name']:24} {how:7} {far:8.3f} of what is allowed  {key}")
    return far <= 1


def check_both(lowerset, folder, entry):
    return all([check(lowerset, folder, entry, how) for how in ("shared", "each")])


check_all("ensemble", QUICK, check_both)
