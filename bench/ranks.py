#!/usr/bin/env python3
"""Two ranks of one thread beside one process of one thread: the same batches, the same results.

    ./dev bench ranks [--net NAME]... [--steps N] [--rounds R] [--options "OPTION..."]

Networks: ResNet-18 at 64 x 64, and a GPT. All take turns; a step's time is the median over a run's steps, as its log has
them, and a row shows the least over the rounds, the gain over one process, and the processor time of both ranks together
over that of one process, which other work on the machine disturbs less. Ranks are never more than cores. Where other
programs run as well, the table says so.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

NETS = {"resnet18": (["resnet18", "--size=64"], 16),
        "gpt": (["gpt", "--depth=4", "--heads=4", "--width=256", "--context=128", "--vocab=512"], 8)}
RANKS = 2


def said(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}\n{done.stderr}")
    return done.stdout


def run(program, batch, steps):
    """Milliseconds of a step, and of the processor for it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said(program, "--data", f"synthetic:{batch * 4}", "--steps", str(steps), "--epochs", "100000", "--progress", "none",
         "--threads", "1", "--log", "log")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open("log", encoding="utf-8") as file:
        times = [row["time"] for row in map(json.loads, file) if "loss" in row and "step" in row]
    step = statistics.median(b - a for a, b in zip(times, times[1:]))
    return step * 1e3, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / steps * 1e3


def measure(lowerset, name, a):
    model, batch = NETS[name]
    said(lowerset, "model", *model, "-o", "net.onnx")
    ways = {1: [f"--microbatches={RANKS}"], RANKS: [f"--ranks={RANKS}"]}
    for ranks, way in ways.items():
        said(lowerset, "compile", "-q", "net.onnx", f"--batch={batch}", *way, *a.options.split(), "-o", f"ranks{ranks}")
    took = {ranks: [] for ranks in ways}
    for _ in range(a.rounds):
        for ranks in ways:
            took[ranks].append(run(f"./ranks{ranks}", batch, a.steps))
    wall = {ranks: min(t[0] for t in rows) for ranks, rows in took.items()}
    busy = {ranks: min(t[1] for t in rows) for ranks, rows in took.items()}
    for ranks in ways:
        print(f"{name:10} {ranks} x 1 thread {wall[ranks]:9.2f} ms {wall[1] / wall[ranks]:6.2f} x"
              f"   processor {busy[ranks]:9.2f} ms {busy[ranks] / busy[1]:6.2f} x", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--net", action="append", choices=list(NETS))
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
