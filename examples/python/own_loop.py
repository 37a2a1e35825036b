"""An own loop: a DataLoader with workers, a schedule, checkpoints, and a run that goes on.

    pip install torch lowerset
    python own_loop.py

The second half of the run starts from the checkpoint of the first one, in another trainer, and ends
with the bits of a run that was never interrupted.
"""
import math
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import lowerset


class Waves(Dataset):
    """Sums of two sines, and the frequency of the first."""

    def __len__(self):
        return 512

    def __getitem__(self, k):
        g = torch.Generator().manual_seed(k)
        t = torch.linspace(0, 2 * math.pi, 64)
        own = int(torch.randint(1, 9, (), generator=g))
        other = 8 + 8 * float(torch.rand((), generator=g))
        return torch.sin(own * t)[None] + 0.5 * torch.sin(other * t)[None], own - 1


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv1d(1, 16, 5, padding=2), nn.GELU(), nn.MaxPool1d(2),
                         nn.Conv1d(16, 32, 5, padding=2), nn.GELU(), nn.Flatten(),
                         nn.Dropout(0.1), nn.Linear(32 * 32, 8))


def trainer(net):
    return lowerset.trainer(net, torch.zeros(32, 1, 64), loss="ce", optimizer="adamw:wd=0.01",
                            seed=1)


def run(t, loader, updates, of):
    """Updates up to number `updates` of a run of `of`, at a rate that falls like a cosine."""
    loss = math.nan
    while t.updates < updates:
        for x, y in loader:
            rate = 3e-3 * 0.5 * (1 + math.cos(math.pi * t.updates / of))
            loss = t.step(x, y, lr=rate)
            if t.updates == updates:
                break
    return loss


def main():
    loader = DataLoader(Waves(), batch_size=32, num_workers=2)  # 16 batches
    with tempfile.TemporaryDirectory() as folder, trainer(network()) as whole:
        run(whole, loader, 64, 64)
        saved = os.path.join(folder, "half.safetensors")
        with trainer(network()) as first:
            print(f"loss after 32 updates: {run(first, loader, 32, 64):.4g}")
            first.save(saved)
        with trainer(network()) as second:
            second.resume(saved)
            print(f"loss after 64 updates: {run(second, loader, 64, 64):.4g}")
            same = all(torch.equal(a, b) for a, b in zip(whole.state_dict().values(),
                                                         second.state_dict().values()))
    print("the interrupted run has the bits of the other" if same else "OTHER BITS")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
