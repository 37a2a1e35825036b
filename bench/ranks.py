#!/usr/bin/env python3
"""Two ranks of one thread beside one process of one thread: the same batches, the same results.

    ./dev bench ranks [--net NAME]... [--batch N] [--steps N] [--rounds R] [--options "OPTION..."]

Networks: ResNet-18 with 8 images of 224 x 224, as in ./dev bench cpu, and a GPT. All take turns; a
step's time is the median over a run's steps, as its log has them, and a row shows the least over
the rounds, the gain over one process, and the processor time of both ranks together over that of
one process, which other work on the machine disturbs less. Ranks are processes that share memory
("2 ranks"), or send all bytes over TCP ("sockets"). Rows "late" exchange gradients only after the
backward part (--late-exchange): what is missing there to the row above is what the overlap of
exchange and backward part brings. The last row has two copies of the one process that train at the
same time, each for itself: what is missing there to 1 is the machine's, which shares memory and
caches. Ranks are never more than cores. Where other programs run as well, the table says so.
"""
import argparse
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile

NETS = {"resnet18": (["resnet18"], 8),
        "gpt": (["gpt", "--depth=4", "--heads=4", "--width=256", "--context=128", "--vocab=512"],
                16)}
RANKS = 2
LATE = ["--late-exchange"]


def said(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}\n{done.stderr}")
    return done.stdout


def peers():
    """Options by which ranks of this machine meet: ports that are free now."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(RANKS)]
    where = ",".join(f"127.0.0.1:{one.getsockname()[1]}" for one in held)
    for one in held:
        one.close()
    return [["--peers", where, "--rank", str(k)] for k in range(RANKS)]


class Way:
    """Processes that train: of a program, with options of their own."""

    def __init__(self, program, options=(), copies=1, sockets=False):
        self.program, self.options = program, list(options)
        self.copies, self.sockets = copies, sockets

    def processes(self):
        return [self.options + own for own in (peers() if self.sockets else [[]] * self.copies)]


WAYS = {"1 rank": Way("./ranks1"), f"{RANKS} ranks": Way(f"./ranks{RANKS}"),
        f"{RANKS} ranks, late": Way(f"./ranks{RANKS}", LATE),
        "sockets": Way(f"./ranks{RANKS}", sockets=True),
        "sockets, late": Way(f"./ranks{RANKS}", LATE, sockets=True),
        f"{RANKS} copies": Way("./ranks1", copies=RANKS)}


def spent(way, batch, steps):
    """Seconds of the processor that a run takes, or several at the same time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    runs = [subprocess.Popen([way.program, "--data", f"synthetic:{batch * 4}",
                              "--steps", str(steps), "--epochs", "100000",
                              "--progress", "none", "--threads", "1", "--log", f"log{k}", *own],
                             stdout=subprocess.DEVNULL)
            for k, own in enumerate(way.processes())]
    if any([one.wait() for one in runs]):
        sys.exit(f"failed: {way.program}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(way, batch, steps):
    """Milliseconds of a step, and of the processor for it, of one copy."""
    start = spent(way, batch, 1)
    busy = (spent(way, batch, steps + 1) - start) / way.copies
    with open("log0", encoding="utf-8") as file:
        times = [row["time"] for row in map(json.loads, file) if "loss" in row and "step" in row]
    return statistics.median(b - a for a, b in zip(times, times[1:])) * 1e3, busy / steps * 1e3


def measure(lowerset, name, a):
    model, batch = NETS[name]
    batch = a.batch or batch
    said(lowerset, "model", *model, "-o", "net.onnx")
    for ranks, way in {1: f"--microbatches={RANKS}", RANKS: f"--ranks={RANKS}"}.items():
        said(lowerset, "compile", "-q", "net.onnx", f"--batch={batch}", way, *a.options.split(),
             "-o", f"ranks{ranks}")
    took = {way: [] for way in WAYS}
    for _ in range(a.rounds):
        for way, rows in took.items():
            rows.append(run(WAYS[way], batch, a.steps))
    one = [min(row[k] for row in took["1 rank"]) for k in (0, 1)]
    for way, rows in took.items():
        wall, busy = (min(row[k] for row in rows) for k in (0, 1))
        print(f"{name:10} {way:13} {wall:9.2f} ms {one[0] / wall:6.2f} x   processor {busy:9.2f} "
              f"ms {busy / one[1]:6.2f} x",
              flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
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
