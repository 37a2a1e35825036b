#!/usr/bin/env python3
"""One run of python.py: a network trained by lowerset.trainer, or by a loop in PyTorch.

usage: python_run.py NET WAY [--threads N] [--steps N]

WAY: lowerset, lowerset-min (the least budget), lowerset-bf16; eager, channels-last, compile,
autocast (bfloat16), autocast-compile. Both read the same DataLoader. Prints one JSON line: ms of
the median step from one to the next, loss of the first and the last step, MiB of the process before
training, and at its peak in training: Linux's own mark (VmHWM), set back before the first step.
"""
import argparse
import json
import re
import time

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from torch_models import GPT, MLP, ResNet18, UNet

WARM = 3                        # steps that do not count: caches, compilation, moments


def case(name):
    """Network, optimizer's maker, inputs and targets of four batches, samples of a batch."""
    g = torch.Generator().manual_seed(1)
    images = lambda n, *shape: torch.rand(n, *shape, generator=g)               # noqa: E731
    labels = lambda most, *shape: torch.randint(most, shape, generator=g)       # noqa: E731
    sgd = lambda net: torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)  # noqa: E731
    adamw = lambda net: torch.optim.AdamW(net.parameters(), lr=1e-3)            # noqa: E731
    if name == "resnet18":
        return ResNet18(), sgd, images(32, 3, 224, 224), labels(1000, 32), 8
    if name == "unet":
        return UNet(), sgd, images(8, 3, 128, 128), labels(2, 8, 128, 128), 2
    if name == "gpt":
        return GPT(), adamw, labels(4096, 16, 256), labels(4096, 16, 256), 4
    return MLP(width=16), sgd, images(1024, 1, 28, 28), labels(10, 1024), 1


def kib(name):
    with open("/proc/self/status", encoding="ascii") as f:
        return int(re.search(rf"{name}:\s+(\d+)", f.read())[1])


def forget_peak():
    with open("/proc/self/clear_refs", "w", encoding="ascii") as f:
        f.write("5")


class Clock:
    """Times of steps, each from the end of the one before."""

    def __init__(self, steps):
        self.left, self.ms, self.losses, self.last = steps + WARM, [], [], time.perf_counter()

    def __call__(self, loss):
        now = time.perf_counter()
        self.ms.append((now - self.last) * 1e3)
        self.losses.append(loss)
        self.last = now
        self.left -= 1
        return self.left > 0


class Enough(Exception):
    """As many steps as were asked for."""


def by_lowerset(way, net, optimizer, x, y, batch, steps, threads):
    import lowerset
    options = {"budget": "min"} if way == "lowerset-min" else {}
    if way == "lowerset-bf16":
        options["precision"] = "bf16"
    t = lowerset.trainer(net, x[:batch], loss="ce", optimizer=optimizer(net), batch=batch,
                         threads=threads, check=False, **options)
    loader = DataLoader(TensorDataset(x, y), batch_size=batch)
    before = kib("VmRSS")
    forget_peak()
    clock = Clock(steps)

    def tell(at):
        if not clock(at["loss"]):
            raise Enough

    try:
        t.fit(loader, epochs=steps + WARM, progress=tell)
    except Enough:
        pass
    return clock, before


def by_torch(way, net, optimizer, x, y, batch, steps):
    opt, cast = optimizer(net), way.startswith("autocast")
    if way == "channels-last" and x.dim() == 4:
        net = net.to(memory_format=torch.channels_last)
    run = torch.compile(net) if way.endswith("compile") else net
    loader = DataLoader(TensorDataset(x, y), batch_size=batch)
    before = kib("VmRSS")
    forget_peak()
    clock = Clock(steps)
    while True:
        for a, b in loader:
            opt.zero_grad(set_to_none=True)
            with torch.autocast("cpu", torch.bfloat16, enabled=cast):
                out = run(a)
                loss = F.cross_entropy(out.flatten(0, 1) if out.dim() == 3 else out,
                                       b.flatten() if out.dim() == 3 else b)
            loss.backward()
            opt.step()
            if not clock(loss.item()):
                return clock, before


def main():
    p = argparse.ArgumentParser()
    p.add_argument("net")
    p.add_argument("way")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--steps", type=int, default=12)
    o = p.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(o.threads)
    net, optimizer, x, y, batch = case(o.net)
    net.train()
    if o.way.startswith("lowerset"):
        clock, before = by_lowerset(o.way, net, optimizer, x, y, batch, o.steps, o.threads)
    else:
        clock, before = by_torch(o.way, net, optimizer, x, y, batch, o.steps)
    ms = sorted(clock.ms[WARM:])
    print(json.dumps({"net": o.net, "way": o.way, "ms": ms[len(ms) // 2], "first": clock.losses[0],
                      "last": clock.losses[-1], "before_mib": before / 1024,
                      "peak_mib": kib("VmHWM") / 1024}))


if __name__ == "__main__":
    main()
