"""A U-Net that finds discs in pictures, trained in the least memory there is a plan for.

    pip install torch lowerset
    python segment_unet.py [--budget min] [--precision bf16]

Prints what the plan takes beside what training without recomputation would take.
"""
import argparse

import torch
from torch import nn

import lowerset


class Twice(nn.Sequential):
    """Two convolutions of 3x3, each with its norm."""

    def __init__(self, n_in, n_out):
        super().__init__(nn.Conv2d(n_in, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out),
                         nn.ReLU(), nn.Conv2d(n_out, n_out, 3, padding=1, bias=False),
                         nn.BatchNorm2d(n_out), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width=16, depth=3, classes=2):
        super().__init__()
        self.first = Twice(1, width)
        self.down = nn.ModuleList(Twice(width << k, width << k + 1) for k in range(depth))
        self.up = nn.ModuleList(nn.ConvTranspose2d(width << k + 1, width << k, 2, 2)
                                for k in reversed(range(depth)))
        self.join = nn.ModuleList(Twice(width << k + 1, width << k)
                                  for k in reversed(range(depth)))
        self.last = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        kept = [self.first(x)]
        for down in self.down:
            kept.append(down(nn.functional.max_pool2d(kept[-1], 2)))
        x = kept.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([kept.pop(), up(x)], 1))
        return self.last(x)


def discs(n, size=64, seed=0):
    """Pictures [n, 1, size, size] and, of each place, whether it is in a disc."""
    g = torch.Generator().manual_seed(seed)
    row = torch.arange(size).float()
    centre, radius = torch.rand(n, 2, generator=g) * size, 6 + 8 * torch.rand(n, generator=g)
    inside = ((row[None, :, None] - centre[:, 0, None, None]) ** 2
              + (row[None, None, :] - centre[:, 1, None, None]) ** 2) < radius[:, None, None] ** 2
    noise = torch.randn(n, size, size, generator=g)
    return (inside + 0.7 * noise)[:, None], inside.long()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--budget", default="min")
    p.add_argument("--precision", default=None)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--samples", type=int, default=96)
    o = p.parse_args()
    torch.manual_seed(0)
    net, (x, y), (held, truth) = UNet(), discs(o.samples), discs(16, seed=1)
    batches = [(x[k:k + 8], y[k:k + 8]) for k in range(0, o.samples, 8)]
    with lowerset.trainer(net, x[:8], loss="ce", optimizer="adam", lr=2e-3, budget=o.budget,
                          precision=o.precision) as t:
        mib = {k: v / 2**20 for k, v in t.plan.items() if k.endswith("_bytes")}
        print(f"temporary values take {mib['arena_bytes']:.1f} MiB; "
              f"{mib['no_recompute_arena_bytes']:.1f} without recomputation, "
              f"{mib['store_all_peak_bytes']:.1f} if everything were kept")
        for row in t.fit(batches, epochs=o.epochs, val=(held, truth)):
            print(f"epoch {row['epoch']}: loss {row['loss']:.3f}, held {row['val_loss']:.3f}")
        found = t.predict(held).argmax(1).bool()
    both, any_ = (found & truth.bool()).sum().item(), (found | truth.bool()).sum().item()
    print(f"intersection over union of the discs: {both / any_:.2f}")


if __name__ == "__main__":
    main()
