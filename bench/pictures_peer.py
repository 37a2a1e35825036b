#!/usr/bin/env python3
"""Trains one step of a U-Net on one picture in PyTorch, with recomputation of each block by
torch.utils.checkpoint, and prints its seconds and loss.

usage: pictures_peer.py SIDE WIDTH DEPTH THREADS
"""
import sys
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def block(cin, cout):
    layers = []
    for a, b in ((cin, cout), (cout, cout)):
        layers += [nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b),
                   nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        wide = [width << k for k in range(depth + 1)]
        self.inc = block(3, width)
        self.down = nn.ModuleList(block(a, b) for a, b in zip(wide, wide[1:]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(wide, wide[1:]))
        self.conv = nn.ModuleList(block(2 * a, a) for a in wide[:-1])
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        def again(f, *args):
            return checkpoint(f, *args, use_reentrant=False)
        kept = [again(self.inc, x)]
        for down in self.down:
            kept.append(again(lambda v, f=down: f(nn.functional.max_pool2d(v, 2)), kept[-1]))
        y = kept.pop()
        for up, conv in zip(reversed(self.up), reversed(self.conv)):
            y = again(lambda a, b, f=up, g=conv: g(torch.cat([a, f(b)], 1)), kept.pop(), y)
        return self.out(y)


def main():
    side, width, depth, threads = map(int, sys.argv[1:])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    net = UNet(width, depth).to(memory_format=torch.channels_last)
    how = torch.optim.SGD(net.parameters(), 0.01, 0.9)
    x, label = torch.randn(1, 3, side, side), torch.randint(0, 2, (1, side, side))
    start = time.time()
    loss = nn.functional.cross_entropy(net(x.to(memory_format=torch.channels_last)), label)
    loss.backward()
    how.step()
    print(f"{time.time() - start:.1f} {loss.item():.6f}")


main()
