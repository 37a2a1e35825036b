#!/usr/bin/python3
"""Training steps of the zoo's networks in PyTorch on the CPU, to measure lowerset against.

usage: torch_peer.py MODEL [--variant plain|channels-last] [--threads N] [--seconds S] [--steps N]
                     [--coretype NAME] [--autocast bf16|f16] [--device cuda]
       torch_peer.py MODEL --save FILE.npz      the batch, for the trainer's --data
       torch_peer.py --blas         the BLAS library that torch has loaded

One configuration per process, since peak memory is the process's. A step is: clear the gradients,
forward, loss, backward, update; all on one batch of random data that lies in memory. Prints one
JSON line: model, variant, threads, steps, median_ms, best_ms, peak_rss_mb, cpu_ms (processor time
per step), import_rss_mb, parameters, loss.

The OpenBLAS behind torch chooses its kernels by OPENBLAS_* variables. They are removed here,
so that a setting left in the shell cannot slow the peer down; --coretype sets
OPENBLAS_CORETYPE. With fewer threads than CPUs the process stays on as many CPUs, because that
OpenBLAS would take them all.
"""
import argparse
import json
import os
import resource
import time


def options():
    p = argparse.ArgumentParser()
    p.add_argument("model", nargs="?", choices=["resnet18", "unet", "densenet121", "mlp", "gpt",
                                                "cnn28", "cnn128"])
    p.add_argument("--blas", action="store_true")
    p.add_argument("--save")
    p.add_argument("--variant", choices=["plain", "channels-last"], default="plain")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=8, help="measure at least this long")
    p.add_argument("--steps", type=int, default=5, help="and at least as many steps")
    p.add_argument("--autocast", choices=["bf16", "f16"],
                   help="forward and loss under torch.autocast; f16 with torch.amp.GradScaler")
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--coretype", help="OPENBLAS_CORETYPE, for a CPU that it does not recognise")
    o = p.parse_args()
    if o.model is None and not o.blas:
        p.error("a model is wanted")
    return o


args = options()
for name in [n for n in os.environ if n.startswith("OPENBLAS_")]:
    del os.environ[name]        # before torch is loaded: its libraries look once
if args.coretype:
    os.environ["OPENBLAS_CORETYPE"] = args.coretype
cpus = sorted(os.sched_getaffinity(0))
if args.threads < len(cpus):
    os.sched_setaffinity(0, cpus[:args.threads])

import numpy                                    # noqa: E402
import torch                                    # noqa: E402  (after the environment is set)
from torch.nn import functional as F            # noqa: E402

from torch_models import CNN, GPT, MLP, DenseNet121, ResNet18, UNet  # noqa: E402


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def blas():
    """Path of the library for matrix products that the process has mapped."""
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        paths = {line.split()[-1] for line in maps if "blas" in line}
    return " ".join(sorted(paths))


def case(model):
    """The network, one batch and its target, for a cross-entropy over dimension 1 or the last."""
    if model == "resnet18":
        return ResNet18(), torch.rand(8, 3, 224, 224), torch.randint(1000, (8,))
    if model == "unet":
        return UNet(), torch.rand(2, 3, 128, 128), torch.randint(2, (2, 128, 128))
    if model == "densenet121":
        return DenseNet121(), torch.rand(4, 3, 112, 112), torch.randint(1000, (4,))
    if model.startswith("cnn"):
        size = int(model[3:])
        return CNN(size), torch.rand(128, 1, size, size), torch.randint(10, (128,))
    if model == "mlp":
        return MLP(), torch.rand(256, 1, 28, 28), torch.randint(10, (256,))
    return GPT(), torch.randint(4096, (4, 256)), torch.randint(4096, (4, 256))


def save():
    _, x, target = case(args.model)
    numpy.savez(args.save, x=x.numpy(), label=target.numpy())


def main():
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    import_mb = peak_mb()
    net, x, target = case(args.model)
    net, x, target = net.to(args.device), x.to(args.device), target.to(args.device)
    kind = torch.float16 if args.autocast == "f16" else torch.bfloat16
    scaler = torch.amp.GradScaler(args.device, enabled=args.autocast == "f16")
    if args.variant == "channels-last" and x.dim() == 4:
        net = net.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    if args.model == "gpt":
        opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    elif args.model.startswith("cnn"):
        opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    else:
        opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    net.train()

    def step():
        opt.zero_grad(set_to_none=True)
        with torch.autocast(args.device, kind, enabled=args.autocast is not None):
            y = net(x)
            if args.model == "gpt":
                y = y.flatten(0, 1)
            loss = F.cross_entropy(y, target.flatten() if args.model == "gpt" else target)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        if args.device == "cuda":
            torch.cuda.synchronize()
        return loss

    for _ in range(2):          # caches, and the optimizer's state
        loss = step()
    times = []
    cpu = time.process_time()
    end = time.monotonic() + args.seconds
    while (time.monotonic() < end or len(times) < args.steps) and len(times) < 1000:
        start = time.perf_counter()
        loss = step()
        times.append((time.perf_counter() - start) * 1e3)
    cpu = time.process_time() - cpu
    times.sort()
    print(json.dumps({
        "model": args.model, "variant": args.variant, "threads": args.threads,
        "steps": len(times), "median_ms": round(times[len(times) // 2], 2),
        "best_ms": round(times[0], 2), "peak_rss_mb": round(peak_mb(), 1),
        "device_mb": round(torch.cuda.max_memory_reserved() / 2**20, 1) if args.device == "cuda"
        else None, "cpu_ms": round(cpu / len(times) * 1e3, 2), "import_rss_mb": round(import_mb, 1),
        "parameters": sum(p.numel() for p in net.parameters()), "loss": round(loss.item(), 4),
    }), flush=True)


if __name__ == "__main__":
    if args.blas:
        print(blas())
    elif args.save:
        save()
    else:
        main()
