#!/usr/bin/env python3
"""Per-sample gradients, norms and clipped sums beside references in double precision.

    tests/whole/per_sample_reference.py LOWERSET INPUTS[:INPUTS...] [NETWORK...]

INPUTS/wave2/persample has, for each network, the gradient of every sample's own loss, their norms,
and the sum of the gradients clipped to half of the median norm. A difference is the norm of the
difference over that of the reference, at most 1e-5. Without networks in the arguments: five of
them, with LS_WHOLE in the environment all.
"""
import math
import os
import sys

import linear_net as net
from references import check_all, run

MOST = 1e-5
QUICK = ["tiny_gpt", "cnn_groupnorm", "vgg_small", "shared_conv", "gru_rows"]
LOSS = {"softmax_ce": "ce", "mse": "mse"}


def dump(lowerset, entry, folder, options, order="--no-shuffle"):
    """What the trainer's --dump has after one step at rate 0."""
    n = str(entry["samples"])
    model = os.path.join(folder, entry["model"])
    run(lowerset, "compile", model, "-q", "-O0", "--plan-effort=2", f"--batch={n}",
        "--store-gradients", f"--loss={LOSS[entry['loss_spec']['kind']]}", "-o", "net", *options)
    run("./net", "--data", "in.npz", "--steps", "1", "--lr", "0", order, "--progress", "none",
        "--dump", "out.npz")
    return {name: values for name, (_, values) in net.npz_read("out.npz").items()}


def distance(got, ref, group, rows):
    """The distance between a member of the dump and of the reference, which may have every K-th
    element of each row."""
    if ".every" in group:
        step, size = int(group.split("every")[1]), len(got) // rows
        got = [v for row in range(rows) for v in got[row * size:(row + 1) * size:step]]
    if len(got) != len(ref):
        return math.inf
    return math.dist(got, ref) / max(math.hypot(*ref), 1e-12)


def compare(name, out, ref, groups, worst, factor=1):
    for key in ref:
        group, _, param = key.partition("/")
        kind = group.split(".")[0]
        if kind not in groups or ".l2" in group:
            continue
        member = groups[kind] + ("/" + param if param else "")
        if member not in out:
            sys.exit(f"{name}: the dump has no {member}")
        rows = len(ref["psnorm"]) if kind == "psgrad" else 1
        worst.append((distance([v * factor for v in out[member]], ref[key], group, rows), key))


def check(lowerset, folder, entry):
    read = net.npz_read(os.path.join(folder, entry["reference"]))
    ref = {key: values for key, (_, values) in read.items()}
    data = {key[3:]: read[key] for key in read if key.startswith("in/")}
    net.npz_write("in.npz", dict(data, label=read["label"]))
    worst = []
    each = {"psgrad": "psgrad", "psnorm": "psnorm", "grad": "grad", "loss": "loss"}
    compare(entry["name"], dump(lowerset, entry, folder, ["--grads=per-sample"]), ref, each, worst)
    del each["psgrad"]
    compare(entry["name"], dump(lowerset, entry, folder, ["--grads=per-sample-norm"]), ref,
            each, worst)
    # all are drawn, and the sum is divided by their number
    clip, samples = ref["dp_C"][0], entry["samples"]
    private = [f"--dp=clip={clip!r},noise=0,delta=1e-5,expected-batch={samples}"]
    compare(entry["name"], dump(lowerset, entry, folder, private, "--noise-seed=1"), ref,
            {"dp_sum": "grad"}, worst, samples)
    far, key = max(worst, key=lambda w: math.inf if math.isnan(w[0]) else w[0])
    print(f"{entry['name']:20} {far:9.1e}  {key}")
    return far <= MOST


check_all("per-sample", QUICK, check)
