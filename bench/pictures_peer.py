#!/usr/bin/env python3
"""Trains one step of a U-Net on one picture or volume in PyTorch, with recomputation of each block
by torch.utils.checkpoint, and prints its seconds and loss.

usage: pictures_peer.py 2|3 SIDE WIDTH DEPTH THREADS
"""
import sys
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

DIMS = int(sys.argv[1])
CHANNELS = 3 if DIMS == 2 else 1
CONV, UP, NORM = ((nn.Conv2d, nn.ConvTranspose2d, nn.BatchNorm2d) if DIMS == 2
                  else (nn.Conv3d, nn.ConvTranspose3d, nn.BatchNorm3d))
POOL = nn.functional.max_pool2d if DIMS == 2 else nn.functional.max_pool3d
LAYOUT = torch.channels_last if DIMS == 2 else torch.channels_last_3d


def block(cin, cout):
    layers = []
    for a, b in ((cin, cout), (cout, cout)):
        layers += [CONV(a, b, 3, padding=1, bias=False), NORM(b),
                   nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        wide = [width << k for k in range(depth + 1)]
        self.inc = block(CHANNELS, width)
        self.down = nn.ModuleList(block(a, b) for a, b in zip(wide, wide[1:]))
        self.up = nn.ModuleList(UP(b, a, 2, 2) for a, b in zip(wide, wide[1:]))
        self.conv = nn.ModuleList(block(2 * a, a) for a in wide[:-1])
        self.out = CONV(width, 2, 1)

    def forward(self, x):
        def again(f, *args):
            return checkpoint(f, *args, use_reentrant=False)
        kept = [again(self.inc, x)]
        for down in self.down:
            kept.append(again(lambda v, f=down: f(POOL(v, 2)), kept[-1]))
        y = kept.pop()
        for up, conv in zip(reversed(self.up), reversed(self.conv)):
            y = again(lambda a, b, f=up, g=conv: g(torch.cat([a, f(b)], 1)), kept.pop(), y)
        return self.out(y)


def main():
    side, width, depth, threads = map(int, sys.argv[2:])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    net = UNet(width, depth).to(memory_format=LAYOUT)
    how = torch.optim.SGD(net.parameters(), 0.01, 0.9)
    x, label = torch.randn(1, CHANNELS, *[side] * DIMS), torch.randint(0, 2, (1, *[side] * DIMS))
    start = time.time()
    loss = nn.functional.cross_entropy(net(x.to(memory_format=LAYOUT)), label)
    loss.backward()
    how.step()
    print(f"{time.time() - start:.1f} {loss.item():.6f}")


main()
