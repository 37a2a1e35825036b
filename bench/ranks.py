#!/usr/bin/env python3
"""Two ranks of one thread beside one process of one thread: the same batches, the same results.

    ./dev bench ranks [--net NAME]... [--batch N] [--steps N] [--rounds R] [--options "OPTION..."]

Networks: ResNet-18 with 8 images of 224 x 224, as in ./dev bench cpu, and a GPT. All take turns; a step's time is the median over a run's steps, as its log has
them, and a row shows the least over the rounds, the gain over one process, and the processor time of both ranks together
over that of one process, which other work on the machine disturbs less. The last row has two copies of the one process that
train at the same time, each for itself: what is missing there to 1 is the machine's, which shares memory and caches. Ranks
are never more than cores. Where other programs run as well, the table says so.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

NETS = {"resnet18": (["resnet18"], 8),
        "gpt": (["gpt", "--depth=4", "--heads=4", "--width=256", "--context=128", "--vocab=512"], 16)}
RANKS = 2


def said(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}\n{done.stderr}")
    return done.stdout


def spent(program, batch, steps, copies=1):
    """Seconds of the processor that a run takes, or several at the same time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    runs = [subprocess.Popen([program, "--data", f"synthetic:{batch * 4}", "--steps", str(steps), "--epochs", "100000",
                              "--progress", "none", "--threads", "1", "--log", f"log{k}"], stdout=subprocess.DEVNULL)
            for k in range(copies)]
    if any([one.wait() for one in runs]):
        sys.exit(f"failed: {program}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(program, batch, steps, copies=1):
    """Milliseconds of a step, and of the processor for it, of one copy."""
    start = spent(program, batch, 1, copies)
    busy = (spent(program, batch, steps + 1, copies) - start) / copies
    with open("log0", encoding="utf-8") as file:
        times = [row["time"] for row in map(json.loads, file) if "loss" in row and "step" in row]
    return statistics.median(b - a for a, b in zip(times, times[1:])) * 1e3, busy / steps * 1e3


def measure(lowerset, name, a):
    model, batch = NETS[name]
    batch = a.batch or batch
    said(lowerset, "model", *model, "-o", "net.onnx")
    ways = {1: [f"--microbatches={RANKS}"], RANKS: [f"--ranks={RANKS}"]}
    for ranks, way in ways.items():
        said(lowerset, "compile", "-q", "net.onnx", f"--batch={batch}", *way, *a.options.split(), "-o", f"ranks{ranks}")
    took = {"1 rank": [], f"{RANKS} ranks": [], f"{RANKS} copies": []}
    for _ in range(a.rounds):
        for way, ranks, copies in zip(took, (1, RANKS, 1), (1, 1, RANKS)):
            took[way].append(run(f"./ranks{ranks}", batch, a.steps, copies))
    one = [min(row[k] for row in took["1 rank"]) for k in (0, 1)]
    for way, rows in took.items():
        wall, busy = (min(row[k] for row in rows) for k in (0, 1))
        print(f"{name:10} {way:9} {wall:9.2f} ms {one[0] / wall:6.2f} x   processor {busy:9.2f} ms {busy / one[1]:6.2f} x",
              flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--net", action="append", choices=list(NETS))
    p.add_argument("--batch", type=int)
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--options", default="--optimizer=adam")
    a = p.parse_args()
    if len(os.sched_getaffinity(0)) < RANKS:
        sys.exit(f"{RANKS} ranks need {RANKS} cores")
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"other programs run: {load:.1f} on average, so times mean little")
    lowerset = os.path.join(os.path.abspath(a.build), "lowerset")
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for name in a.net or NETS:
            measure(lowerset, name, a)


main()
