#!/usr/bin/env python3
"""Steps of an ensemble, beside steps of as many single models and beside PyTorch's vmap.

    PYTHON=/path/to/python3 ./dev bench ensemble [--net NAME]... [--members K] [--batch N]
        [--steps N] [--rounds R] [--json]

Networks: an MLP (784-512-10) and a small CNN at 28 x 28. Processor time of a step on one thread,
which other work on the machine disturbs little: that of runs of many steps less that of a run of
one step. All take turns. A row: the least over the rounds, in milliseconds, and its ratio to K
steps of the single model; bytes in all. PyTorch (where PYTHON has torch):
torch.func.stack_module_state with vmap of grad, and K single models; SGD with momentum, both.
"""
import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

NETS = {"mlp": ["mlp", "--width=512"], "cnn": ["cnn", "--size=28"]}


def said(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}\n{done.stderr}")
    return done.stdout + done.stderr


def spent(program, steps):
    """Seconds of the processor that a run takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said(program, "--data", "synthetic:640", "--steps", str(steps), "--progress", "none",
         "--threads", "1")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def step_of(program, steps):
    return (spent(program, steps + 1) - spent(program, 1)) / steps * 1e3


def torch_module(nn, name):
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))


def torch_steps(name, members, batch):
    """Functions that make a step: of all members by vmap, and of K modules one after the other."""
    import torch
    from torch import nn
    from torch.func import functional_call, grad, stack_module_state, vmap
    torch.set_num_threads(1)
    x, y = torch.randn(batch, 1, 28, 28), torch.randint(10, (batch,))
    modules = [torch_module(nn, name) for _ in range(members)]
    base = torch_module(nn, name)
    params, buffers = stack_module_state(modules)
    params = {k: v.detach() for k, v in params.items()}
    moments = {k: torch.zeros_like(v) for k, v in params.items()}

    def loss(p, b):
        return nn.functional.cross_entropy(functional_call(base, (p, b), (x,)), y)

    each = vmap(grad(loss))

    def stacked():
        grads = each(params, buffers)
        for k, g in grads.items():
            moments[k].mul_(0.9).add_(g)
            params[k].sub_(moments[k], alpha=0.01)

    optimizers = [torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9) for m in modules]

    def singly():
        for m, o in zip(modules, optimizers):
            o.zero_grad()
            nn.functional.cross_entropy(m(x), y).backward()
            o.step()

    return {"torch vmap": stacked, "torch singly": singly}


def timed(step, steps):
    step()
    start = time.process_time()
    for _ in range(steps):
        step()
    return (time.process_time() - start) / steps * 1e3


def measure(lowerset, name, a):
    """Rows [network, way, ms of a step, over as many single steps, bytes]."""
    said(lowerset, "model", *NETS[name], "-o", "net.onnx")
    compiled = {way: said(lowerset, "compile", "net.onnx", "--batch", str(a.batch),
                          "-o", way, *more)
                for way, more in (("ensemble", [f"--ensemble={a.members}"]), ("single", []))}
    size = {way: re.search(r"takes ([\d.]+ \w+)", text).group(1) for way, text in compiled.items()}
    try:
        peers = torch_steps(name, a.members, a.batch)
    except ImportError:
        peers = {}
    took = {}
    for _ in range(a.rounds):
        took.setdefault("ensemble", []).append(step_of("./ensemble", a.steps))
        took.setdefault("single", []).append(a.members * step_of("./single", a.steps * a.members))
        for way, step in peers.items():
            took.setdefault(way, []).append(timed(step, a.steps))
    single = min(took["single"])
    named = [("ensemble", "ensemble", size["ensemble"]),
             ("single", f"{a.members} x single", f"{a.members} x {size['single']}")]
    return [[name, label, min(took[way]), min(took[way]) / single, more]
            for way, label, more in named + [(way, way, "") for way in peers]]


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--net", action="append", choices=list(NETS))
    p.add_argument("--members", type=int, default=10)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--json", action="store_true", help="one line: a list of rows")
    a = p.parse_args()
    lowerset = os.path.join(os.path.abspath(a.build), "lowerset")
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        all_rows = []
        for net in a.net or NETS:
            rows = measure(lowerset, net, a)
            all_rows += rows
            for name, way, ms, over, more in rows if not a.json else []:
                print(f"{name:6} {way:14} {ms:9.2f} ms {over:6.2f} {more}", flush=True)
        if a.json:
            print(json.dumps(all_rows))


main()
