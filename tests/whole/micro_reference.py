#!/usr/bin/env python3
"""Micro-batches beside references in double precision.

    tests/whole/micro_reference.py LOWERSET INPUTS[:INPUTS...] [NETWORK...]

INPUTS/wave2/micro has, for each network, the gradient of a batch in 4 parts, three steps of SGD,
their losses, and the running statistics, which move with every part; and the same for two ranks
with one part or two for each, where each rank has running statistics of its own. Lowerset's ranks
all have those that one process would have: these are compared with the reference of 4 parts.
Tolerances are those of the manifest. Without networks in the arguments: three of them, with
LS_WHOLE in the environment all.
"""
import array
import json
import os
import re
import struct
import sys
import zipfile

from references import check_all, run

QUICK = ["mlp_ce", "cnn_groupnorm", "tinycnn_op16"]
RATE, ULP = 0.05, 2.0 ** -23
CODE = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i", "|b1": "b", "|u1": "B"}


def load(path):
    """The members of an archive, flat."""
    found = {}
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            data = file.read(name)
            end = 10 + struct.unpack("<H", data[8:10])[0]
            code = re.search(r"'descr': '(.*?)'", data[10:end].decode()).group(1)
            values = array.array(CODE[code])
            values.frombytes(data[end:])
            found[name[:-4]] = values
    return found


def most(values):
    return max((abs(v) for v in values), default=0)


class Judge:
    """Compares groups of tensors; the manifest has the rules."""

    def __init__(self, name, tolerance, zero):
        self.name, self.tolerance, self.zero, self.worst = name, tolerance, zero or [], 0

    def near(self, group, param, got, want, scale, slack=0):
        tolerance = self.tolerance[group]
        if tolerance is None:
            return
        far = max(abs(a - b) for a, b in zip(got, want)) if len(got) == len(want) else float("inf")
        limit = tolerance * scale + slack
        self.worst = max(self.worst, far / limit if limit else far)
        if not far <= limit:
            sys.exit(f"{self.name}: {group} of {param}: {far:.3g} from the reference, {limit:.3g} "
                     f"is allowed")


def taken(group, values):
    step = int(group.split("every")[1]) if ".every" in group else 1
    return values[::step]


def members(ref, kind):
    """(group, parameter, values) of a kind of members; norms of sampled tensors are left out."""
    for key, values in ref.items():
        group, _, param = key.partition("/")
        if param and group.split(".")[0] == kind and ".l2" not in group:
            yield group, param, values


def check_step(judge, ref, before, after, kind, rate):
    """Updates of the parameters over `rate`: gradients after one step, or the steps themselves."""
    wanted = []
    for group, param, values in members(ref, kind):
        start = taken(group, before["param/" + param])
        end = taken(group, after["param/" + param])
        want = values if kind == "grad" else [v - s for v, s in zip(values, start)]
        wanted.append((param, [(e - s) * rate for s, e in zip(start, end)], want, most(start)))
    largest = max(most(w[2]) for w in wanted)
    for param, got, want, size in wanted:
        if param in judge.zero:
            if kind == "grad" and most(got) > 1e-5 * largest + 4 * ULP * size:
                sys.exit(f"{judge.name}: the gradient of {param} should be 0, it is "
                         f"{most(got):.3g}")
            continue
        judge.near(kind, param, got, want, max(most(want), 1e-3 * largest), 4 * ULP * size)


def check_statistics(judge, ref, after, kind):
    for _, param, values in members(ref, kind):
        judge.near("stat", param, after["stat/" + param], values, most(values))


def train(lowerset, wave, entry, options):
    """Parameters and statistics at the start, after a step of rate 1, after three steps; the
    losses of these."""
    run(lowerset, "compile", os.path.normpath(os.path.join(wave, entry["model"])),
        "-q", "-O0", "--plan-effort=2",
        *options, "--optimizer=sgd:momentum=0.9", "-o", "net", "--batch=16")
    data = os.path.join(wave, entry["plans"]["micro4"]["reference"])
    dumps = []
    for rate, steps in ((0, 1), (1, 1), (RATE, 3)):
        run("./net", "--data", data, "--no-shuffle", "--progress", "none", "--epochs", "3",
            "--steps", str(steps), "--lr", str(rate), "--dump", "out.npz", "--log", "log")
        dumps.append(load("out.npz"))
    with open("log") as file:
        rows = [json.loads(line) for line in file]
    return dumps, [row["loss"] for row in rows if "loss" in row and "step" in row][:3]


# What is compiled, and the references that say what it computes; the first one has its statistics.
WAYS = [(["--microbatches=4"], ["micro4", "dp2_micro2"]),
        (["--ranks=2", "--microbatches=4"], ["micro4", "dp2_micro2"]), (["--ranks=2"], ["dp2"])]


def check(lowerset, wave, entry):
    name = entry["name"]
    worst = 0
    for options, plans in WAYS:
        dumps, losses = train(lowerset, wave, entry, options)
        for plan in plans:
            of = entry["plans"][plan]
            ref = load(os.path.join(wave, of["reference"]))
            judge = Judge(f"{name} {' '.join(options)}, {plan}", of["tolerance"], of["zero_grad"])
            check_step(judge, ref, dumps[0], dumps[1], "grad", -1)
            check_step(judge, ref, dumps[0], dumps[2], "sgd", 1)
            judge.near("loss", "the batch", losses, list(ref["sgd_loss"])[:3],
                       most(ref["sgd_loss"]))
            if plan == "micro4":        # the references of ranks have statistics of each rank
                check_statistics(judge, ref, dumps[0], "stat1")
                check_statistics(judge, ref, dumps[2], "stat3")
            worst = max(worst, judge.worst)
    print(f"{name}: at most {100 * worst:.0f} % of the tolerance")
    return True             # judges end the test


check_all("micro-batch", QUICK, check)
