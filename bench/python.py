#!/usr/bin/env python3
"""t.fit of the Python package beside the same loop in PyTorch, as tables for docs/lab/python.md.

usage: python.py BUILD-FOLDER [--nets NAMES] [--ways NAMES] [--rounds N] [--steps N] [--threads N]

PYTHON is one with torch, onnx and numpy. Networks, ways and their one DataLoader: python_run.py.
Every run is a process of its own; rounds run all ways in turns, and a figure is the median of its
rounds. Before them what a step of the package costs beside the step itself: of a network so small
that its step takes microseconds, t.step beside the trainer program's own steps.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
WAYS = ["lowerset", "lowerset-min", "lowerset-bf16", "eager", "channels-last", "compile",
        "autocast", "autocast-compile"]
NETS = {"resnet18": "ResNet-18, 8x3x224x224, SGD", "unet": "U-Net, 2x3x128x128, SGD",
        "gpt": "GPT, 4 layers, d 256, 4x256 tokens, AdamW"}


def environment(build):
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    env["LOWERSET"] = str(build / "lowerset")
    env["PYTHONPATH"] = str(HERE.parent / "python")
    return env


def one(env, net, way, o):
    done = subprocess.run([sys.executable, str(HERE / "python_run.py"), net, way, "--threads",
                           str(o.threads), "--steps", str(o.steps)], env=env, text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        print(f"{net} {way}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def table(env, net, o):
    seen = {way: [] for way in o.ways}
    for _ in range(o.rounds):
        for way in o.ways:
            row = one(env, net, way, o)
            if row is not None:
                seen[way].append(row)
    print(f"\n{NETS.get(net, net)}:\n")
    print("| way | ms a step | MiB before | MiB at the peak | loss, first | last |")
    print("|---|---|---|---|---|---|")
    for way, rows in seen.items():
        middle = {k: statistics.median(r[k] for r in rows)
                  for k in ("ms", "before_mib", "peak_mib", "first", "last")} if rows else None
        print(f"| {way} | " + ("did not run | | | | |" if middle is None else
              f"{middle['ms']:.1f} | {middle['before_mib']:.0f} | {middle['peak_mib']:.0f} | "
              f"{middle['first']:.4f} | {middle['last']:.4f} |"), flush=True)


def seconds(steps, call):
    begin = time.perf_counter()
    for _ in range(steps):
        call()
    return (time.perf_counter() - begin) / steps


def overhead(env):
    """Microseconds of t.step, and of a step of the program, on one thread."""
    import numpy as np
    os.environ.update(env)
    sys.path.insert(0, env["PYTHONPATH"])
    import lowerset
    steps, options = 20000, ["--batch", "8", "--optimizer", "sgd"]
    with tempfile.TemporaryDirectory() as folder:
        file, program = f"{folder}/mlp.onnx", f"{folder}/net"
        subprocess.run([env["LOWERSET"], "model", "mlp", "--batch=0", "--width=16", "--size=4",
                        "-o", file], check=True, capture_output=True)
        subprocess.run([env["LOWERSET"], "compile", file, "-q", *options, "-o", program],
                       check=True)
        begin = time.perf_counter()
        subprocess.run([program, "--data", "synthetic:8", "--threads", "1", "--steps", str(steps),
                        "--epochs", str(steps), "--progress", "none"], check=True,
                       capture_output=True)
        own = (time.perf_counter() - begin) / steps
        with lowerset.trainer(file, batch=8, optimizer="sgd", threads=1) as t:
            x = np.random.default_rng(0).random((8, 1, 4, 4), dtype="float32")
            y = np.arange(8) % 10
            t.step(x, y)
            called = statistics.median(seconds(2000, lambda: t.step(x, y)) for _ in range(5))
    return called * 1e6, own * 1e6


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--nets", type=lambda s: s.split(","), default=list(NETS))
    p.add_argument("--ways", type=lambda s: s.split(","), default=WAYS)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--threads", type=int, default=2)
    o = p.parse_args()
    env = environment(o.build.resolve())
    called, own = overhead(env)
    print(f"A step of an MLP of 16 units on one thread: t.step {called:.1f} us, the trainer "
          f"program {own:.1f} us: {called - own:.1f} us more.")
    for net in o.nets:
        table(env, net, o)


if __name__ == "__main__":
    main()
