#!/usr/bin/python3
"""Training steps of the zoo's networks in PyTorch on the CPU, to measure lowerset against.

usage: torch_peer.py MODEL [--variant plain|channels-last] [--threads N] [--seconds S] [--steps N]
                     [--coretype NAME]
       torch_peer.py MODEL --save FILE.npz      the batch, for the trainer's --data
       torch_peer.py --blas         the BLAS library that torch has loaded

One configuration per process, since peak memory is the process's. A step is: clear the gradients,
forward, loss, backward, update; all on one batch of random data that lies in memory. Prints one JSON
line: model, variant, threads, steps, median_ms, best_ms, peak_rss_mb, cpu_ms (processor time per
step), import_rss_mb, parameters, loss.

The OpenBLAS behind torch picks its kernels by OPENBLAS_* variables; they are removed here, so that a
setting left in the shell cannot slow the peer down; --coretype sets the one that matters. With fewer
threads than CPUs the process stays on as many CPUs, because that OpenBLAS would take them all.
"""
import argparse
import json
import os
import resource
import time


def options():
    p = argparse.ArgumentParser()
    p.add_argument("model", nargs="?", choices=["resnet18", "unet", "densenet121", "mlp", "gpt"])
    p.add_argument("--blas", action="store_true")
    p.add_argument("--save")
    p.add_argument("--variant", choices=["plain", "channels-last"], default="plain")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=8, help="measure at least this long")
    p.add_argument("--steps", type=int, default=5, help="and at least as many steps")
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
from torch import nn                            # noqa: E402
from torch.nn import functional as F            # noqa: E402


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def blas():
    """Path of the library behind matrix products, as the process has it mapped."""
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        paths = {line.split()[-1] for line in maps if "blas" in line}
    return " ".join(sorted(paths))


class Block(nn.Module):
    """Basic block of a ResNet, modules named as torchvision names them."""

    def __init__(self, n_in, n_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.downsample = None
        if stride != 1 or n_in != n_out:
            self.downsample = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False),
                                            nn.BatchNorm2d(n_out))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet18(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        widths = [64, 64, 128, 256, 512]
        for i in range(1, 5):
            first = Block(widths[i - 1], widths[i], 1 if i == 1 else 2)
            self.add_module(f"layer{i}", nn.Sequential(first, Block(widths[i], widths[i], 1)))
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class DenseLayer(nn.Module):
    def __init__(self, n_in, growth):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(n_in)
        self.relu = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(n_in, 4 * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * growth)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, parts):
        x = self.conv1(self.relu(self.norm1(torch.cat(parts, 1))))
        return self.conv2(self.relu(self.norm2(x)))


class DenseBlock(nn.Module):
    def __init__(self, n_in, layers, growth):
        super().__init__()
        for i in range(layers):
            self.add_module(f"denselayer{i + 1}", DenseLayer(n_in + i * growth, growth))

    def forward(self, x):
        parts = [x]
        for layer in self.children():
            parts.append(layer(parts))
        return torch.cat(parts, 1)


class DenseNet121(nn.Module):
    def __init__(self, growth=32, classes=1000):
        super().__init__()
        c = 2 * growth
        f = self.features = nn.Sequential()
        f.add_module("conv0", nn.Conv2d(3, c, 7, 2, 3, bias=False))
        f.add_module("norm0", nn.BatchNorm2d(c))
        f.add_module("relu0", nn.ReLU(inplace=True))
        f.add_module("pool0", nn.MaxPool2d(3, 2, 1))
        for i, layers in enumerate((6, 12, 24, 16)):
            f.add_module(f"denseblock{i + 1}", DenseBlock(c, layers, growth))
            c += layers * growth
            if i < 3:
                t = nn.Sequential()
                t.add_module("norm", nn.BatchNorm2d(c))
                t.add_module("relu", nn.ReLU(inplace=True))
                t.add_module("conv", nn.Conv2d(c, c // 2, 1, bias=False))
                t.add_module("pool", nn.AvgPool2d(2))
                f.add_module(f"transition{i + 1}", t)
                c //= 2
        f.add_module("norm5", nn.BatchNorm2d(c))
        self.classifier = nn.Linear(c, classes)

    def forward(self, x):
        x = F.relu(self.features(x), inplace=True)
        return self.classifier(F.adaptive_avg_pool2d(x, 1).flatten(1))


class DoubleConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out),
            nn.ReLU(inplace=True),
            nn.Conv2d(n_out, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out),
            nn.ReLU(inplace=True))

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(n_in, n_out))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.up = nn.ConvTranspose2d(n_in, n_in // 2, 2, 2)
        self.conv = DoubleConv(n_in, n_out)

    def forward(self, x, skip):
        return self.conv(torch.cat([skip, self.up(x)], 1))


class OutConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    def __init__(self, width=64, depth=4, classes=2):
        super().__init__()
        self.depth = depth
        self.inc = DoubleConv(3, width)
        for i in range(depth):
            self.add_module(f"down{i + 1}", Down(width << i, width << (i + 1)))
            self.add_module(f"up{depth - i}", Up(width << (i + 1), width << i))
        self.outc = OutConv(width, classes)

    def forward(self, x):
        skips = [self.inc(x)]
        for i in range(1, self.depth + 1):
            skips.append(getattr(self, f"down{i}")(skips[-1]))
        x = skips.pop()
        for i in range(1, self.depth + 1):
            x = getattr(self, f"up{i}")(x, skips.pop())
        return self.outc(x)


class MLP(nn.Module):
    def __init__(self, width=2048):
        super().__init__()
        self.fc1 = nn.Linear(784, width)
        self.fc2 = nn.Linear(width, 10)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class GPTBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.c_attn = nn.Linear(width, 3 * width)
        self.attn_proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, 4 * width)
        self.mlp_proj = nn.Linear(4 * width, width)

    def attention(self, x, mask):
        n, t, d = x.shape
        q, k, v = (y.view(n, t, self.heads, d // self.heads).transpose(1, 2)
                   for y in self.c_attn(x).split(d, 2))
        scores = (q @ k.transpose(2, 3)) * (d // self.heads) ** -0.5
        weights = scores.masked_fill(mask, torch.finfo(torch.float32).min).softmax(-1)
        return self.attn_proj((weights @ v).transpose(1, 2).reshape(n, t, d))

    def forward(self, x, mask):
        x = x + self.attention(self.ln_1(x), mask)
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, depth=4, width=256, heads=8, context=256, vocab=4096):
        super().__init__()
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.ModuleList([GPTBlock(width, heads) for _ in range(depth)])
        self.ln_f = nn.LayerNorm(width)
        for table in (self.wte, self.wpe):
            nn.init.normal_(table.weight, std=0.02)
        mask = torch.ones(context, context, dtype=torch.bool).triu(1)
        self.register_buffer("mask", mask, persistent=False)
        self.register_buffer("positions", torch.arange(context), persistent=False)

    def forward(self, x):
        x = self.wte(x) + self.wpe(self.positions)
        for block in self.h:
            x = block(x, self.mask)
        return self.ln_f(x) @ self.wte.weight.t()


def case(model):
    """The network, one batch and its target, for a cross-entropy over dimension 1 or the last."""
    if model == "resnet18":
        return ResNet18(), torch.rand(8, 3, 224, 224), torch.randint(1000, (8,))
    if model == "unet":
        return UNet(), torch.rand(2, 3, 128, 128), torch.randint(2, (2, 128, 128))
    if model == "densenet121":
        return DenseNet121(), torch.rand(4, 3, 112, 112), torch.randint(1000, (4,))
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
    if args.variant == "channels-last" and x.dim() == 4:
        net = net.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    if args.model == "gpt":
        opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    else:
        opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    net.train()

    def step():
        opt.zero_grad(set_to_none=True)
        y = net(x)
        if args.model == "gpt":
            y = y.flatten(0, 1)
        loss = F.cross_entropy(y, target.flatten() if args.model == "gpt" else target)
        loss.backward()
        opt.step()
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
        "cpu_ms": round(cpu / len(times) * 1e3, 2), "import_rss_mb": round(import_mb, 1),
        "parameters": sum(p.numel() for p in net.parameters()), "loss": round(loss.item(), 4),
    }), flush=True)


if __name__ == "__main__":
    if args.blas:
        print(blas())
    elif args.save:
        save()
    else:
        main()
