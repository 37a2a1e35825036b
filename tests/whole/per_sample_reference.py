#!/usr/bin/env python3
"""Per-sample gradients, norms and clipped sums beside references in double precision.

    tests/whole/per_sample_reference.py LOWERSET INPUTS [NETWORK...]

INPUTS/wave2/persample has, for each network, the gradient of every sample's own loss, their norms, and the sum of the
gradients clipped to half of the median norm. A difference is the norm of the difference over that of the reference, at
most 1e-5. Without networks in the arguments: five of them, with LS_WHOLE in the environment all.
"""
import os
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: there is no numpy")
    sys.exit(77)

from references import check_all, run

MOST = 1e-5
QUICK = ["tiny_gpt", "cnn_groupnorm", "vgg_small", "shared_conv", "gru_rows"]
LOSS = {"softmax_ce": "ce", "mse": "mse"}


def dump(lowerset, entry, folder, options, order="--no-shuffle"):
    """What the trainer's --dump has after one step at rate 0."""
    n = str(entry["samples"])
    model = os.path.join(folder, entry["model"])
    run(lowerset, "compile", model, "-q", "-O0", "--plan-effort=2", f"--batch={n}", "--store-gradients",
        f"--loss={LOSS[entry['loss_spec']['kind']]}", "-o", "net", *options)
    run("./net", "--data", "in.npz", "--steps", "1", "--lr", "0", order, "--progress", "none", "--dump", "out.npz")
    return np.load("out.npz")


def distance(got, ref, group, rows):
    """The distance between a member of the dump and of the reference, which may have every K-th element."""
    got = got.astype(np.float64)
    if ".every" in group:
        step = int(group.split("every")[1])
        got = got.reshape(rows, -1)[:, ::step]
    return np.linalg.norm(got.ravel() - ref.ravel()) / max(np.linalg.norm(ref), 1e-12)


def compare(name, out, ref, groups, worst, factor=1):
    for key in ref.files:
        group, _, param = key.partition("/")
        kind = group.split(".")[0]
        if kind not in groups or ".l2" in group:
            continue
        member = groups[kind] + ("/" + param if param else "")
        if member not in out.files:
            sys.exit(f"{name}: the dump has no {member}")
        rows = len(ref["psnorm"]) if kind == "psgrad" else 1
        far = distance(out[member] * factor, ref[key].astype(np.float64), group, rows)
        worst.append((far, key))


def check(lowerset, folder, entry):
    ref = np.load(os.path.join(folder, entry["reference"]))
    data = {key[3:]: ref[key] for key in ref.files if key.startswith("in/")}
    np.savez("in.npz", label=ref["label"], **data)
    worst = []
    each = {"psgrad": "psgrad", "psnorm": "psnorm", "grad": "grad", "loss": "loss"}
    compare(entry["name"], dump(lowerset, entry, folder, ["--grads=per-sample"]), ref, each, worst)
    del each["psgrad"]
    compare(entry["name"], dump(lowerset, entry, folder, ["--grads=per-sample-norm"]), ref, each, worst)
    clip = float(ref["dp_C"].ravel()[0])
    samples = entry["samples"]                      # all are drawn, and the sum is divided by their number
    private = [f"--dp=clip={clip!r},noise=0,delta=1e-5,expected-batch={samples}"]
    compare(entry["name"], dump(lowerset, entry, folder, private, "--noise-seed=1"), ref, {"dp_sum": "grad"}, worst, samples)
    far, key = max(worst)
    print(f"{entry['name']:20} {far:9.1e}  {key}")
    return far <= MOST


check_all("per-sample", QUICK, check)
