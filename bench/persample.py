#!/usr/bin/env python3
"""Steps with gradients of samples, beside plain steps and beside PyTorch's torch.func.

    PYTHON=/path/to/python3 ./dev bench persample [--net NAME]... [--threads N] [--steps N]
        [--rounds R]

The Python needs torch, onnx and onnxscript; Opacus is a peer where it is there. Networks are
written by PyTorch's exporter: the CNN of PyTorch's tutorial on per-sample gradients at batch 64, a
ResNet-18 and a U-Net with group norms, a small GPT. Ways: plain (a step of SGD), norms
(--grads=per-sample-norm), clipped (--dp without noise), within (the same with a budget: at most
1.05 times the plain arena), each (--grads=per-sample), loop (batches of one, as many as samples).
Of PyTorch: plain, vmap of grad, loop, Opacus.

All ways take turns. A row: the median step in milliseconds, over our plain step, and
the planned arena.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = {
    "plain": [],
    "norms": ["--grads=per-sample-norm"],
    "clipped": ["--dp=clip=1,noise=0,delta=1e-5"],      # and an expected batch: see options_of
    "within": ["--dp=clip=1,noise=0,delta=1e-5"],
    "each": ["--grads=per-sample"],
}


def said(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}\n{done.stderr}")
    return done.stdout


def networks(torch):
    """By name: the module, a batch of inputs, its labels, the class axis."""
    from torch import nn
    sys.path.insert(0, HERE)
    import torch_models as zoo

    def grouped(module):
        for name, child in module.named_children():
            if isinstance(child, nn.BatchNorm2d):
                setattr(module, name, nn.GroupNorm(min(8, child.num_features), child.num_features))
            else:
                grouped(child)
        return module

    def images(n, *shape):
        return torch.randn(n, *shape)

    def tutorial(rate=0):
        drop = [nn.Dropout(rate)] if rate > 0 else []
        return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(),
                             nn.MaxPool2d(2), *drop, nn.Flatten(),
                             nn.Linear(9216, 128), nn.ReLU(), *drop, nn.Linear(128, 10))

    return {
        "cnn": lambda: (tutorial(), images(64, 1, 28, 28), torch.randint(10, (64,))),
        "cnn_dropout": lambda: (tutorial(0.5), images(64, 1, 28, 28), torch.randint(10, (64,))),
        "resnet18": lambda: (grouped(zoo.ResNet18()), images(8, 3, 64, 64),
                             torch.randint(1000, (8,))),
        "unet": lambda: (grouped(zoo.UNet()), images(2, 3, 64, 64), torch.randint(2, (2, 64, 64))),
        "gpt": lambda: (zoo.GPT(), torch.randint(65, (4, 256)), torch.randint(65, (4, 256))),
    }


def options_of(way, batch):
    """Private batches are drawn: of half the physical batch, so that hardly one
    needs two micro-batches."""
    options = [*WAYS.get(way, [])]
    if way in ("clipped", "within"):
        options[0] += f",expected-batch={max(1, batch // 2)}"
    return options


class Ours:
    def __init__(self, lowerset, model, way, batch, path, threads, arena=None):
        """arena: most bytes of it."""
        self.way, self.path, self.threads, self.took = way, path, threads, []
        self.samples = batch if way == "loop" else 1        # runs that make one step
        options = ["--batch", "1" if way == "loop" else str(batch), "--loss=ce", "--optimizer=sgd",
                   *options_of(way, batch)]
        if arena is not None:
            state = json.loads(said(lowerset, "plan", model, *options, "--json"))["state_bytes"]
            options += ["--budget", str(state + arena)]
        said(lowerset, "compile", model, "-q", *options, "-o", path)
        self.bytes = json.loads(said(lowerset, "plan", model, *options, "--json"))["arena_bytes"]
        self.arena = f"{self.bytes / 2**20:.2f} MiB"

    def run(self, steps):
        """Seconds of one step: the difference of two runs, so that neither start nor data count."""
        def seconds(n):
            begin = time.monotonic()
            said(self.path, "--data", "synthetic", "--steps", str(n),
                 "--threads", str(self.threads), "--progress", "none")
            return time.monotonic() - begin
        few = max(1, steps // 4)
        return (seconds(steps) - seconds(few)) / (steps - few) * self.samples


class Peer:
    """One way of PyTorch; made once, then timed step by step."""
    def __init__(self, torch, way, module, x, label):
        self.torch, self.way, self.took, self.arena = torch, way, [], "-"
        self.module, self.x, self.label = module, x, label
        from torch.nn import functional as F
        self.loss = lambda y, t: F.cross_entropy(y.reshape(-1, y.shape[-1]) if y.dim() == 3 else y,
                                                 t.reshape(-1) if y.dim() == 3 else t)
        if way in ("vmap", "vmap_same"):
            from torch.func import functional_call, grad, vmap
            self.params = {k: v.detach() for k, v in module.named_parameters()}
            one = lambda p, a, t: self.loss(functional_call(module, p, (a[None],)), t[None])
            self.each = vmap(grad(one), in_dims=(None, 0, 0),
                             randomness="same" if way == "vmap_same" else "different")
        elif way == "opacus":
            from opacus.grad_sample import GradSampleModule
            self.module = GradSampleModule(module)

    def step(self):
        if self.way in ("vmap", "vmap_same"):
            return self.each(self.params, self.x, self.label)
        groups = [(self.x, self.label)] if self.way != "loop" else zip(self.x.split(1),
                                                                       self.label.split(1))
        for x, label in groups:
            self.module.zero_grad(set_to_none=True)
            if self.way == "opacus":
                for p in self.module.parameters():
                    p.grad_sample = None
            self.loss(self.module(x), label).backward()
        return None

    def run(self, steps):
        steps = max(1, steps if self.way == "plain" else steps // 4)
        self.step()
        begin = time.monotonic()
        for _ in range(steps):
            self.step()
        return (time.monotonic() - begin) / steps


def peers(torch, module, x, label, ways=("plain", "vmap", "loop", "opacus")):
    import copy
    for way in ways:
        try:
            peer = Peer(torch, way, copy.deepcopy(module), x, label)
            peer.step()
            yield peer
        except Exception as e:                      # pylint: disable=broad-except
            print(f"(PyTorch, {way}: {type(e).__name__}: "
                  f"{str(e).splitlines()[0][:90] if str(e) else ''})")


def measure(torch, lowerset, name, make, args):
    module, x, label = make()
    module.train()
    with tempfile.TemporaryDirectory() as work:
        model = os.path.join(work, "net.onnx")
        torch.onnx.export(module, (x,), model, training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False,
                          input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "N"}},
                          opset_version=17, dynamo=False)
        ways = []
        for way in (*WAYS, "loop"):
            most = int(1.05 * ways[0].bytes) if way == "within" else None
            ways.append(Ours(lowerset, model, way, len(x), os.path.join(work, way),
                             args.threads, most))
        rows = [("ours", w) for w in ways] + [("torch", p) for p in peers(torch, module, x, label)]
        for _ in range(args.rounds):
            for who, way in rows:
                steps = args.steps if who == "torch" or way.way != "loop" else args.steps * len(x)
                way.took.append(way.run(steps))
        plain = statistics.median(ways[0].took)
        for who, way in rows:
            took = statistics.median(way.took)
            print(f"{name:10} {who:6} {way.way:8} {1e3 * took:10.1f} ms {took / plain:7.2f}   "
                  f"{way.arena}", flush=True)


def measure_peers(torch, name, make, args):
    """Prints {way: seconds of a step} of PyTorch alone."""
    module, x, label = make()
    module.train()
    print(json.dumps({p.way: p.run(args.steps)
                      for p in peers(torch, module, x, label, args.peers.split(","))}))


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--peers", help="these ways of PyTorch alone, as JSON")
    p.add_argument("--net", action="append")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--rounds", type=int, default=3)
    args = p.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("this Python has no torch: give one that has it by PYTHON=")
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    if args.peers:
        for name in args.net:
            measure_peers(torch, name, networks(torch)[name], args)
        return
    print(f"PyTorch {torch.__version__}, threads {args.threads}; load {os.getloadavg()[0]:.1f}")
    nets = networks(torch)
    for name in args.net or [n for n in nets if n != "cnn_dropout"]:
        measure(torch, os.path.join(os.path.abspath(args.build), "lowerset"), name,
                nets[name], args)


if __name__ == "__main__":
    main()
