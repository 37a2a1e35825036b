#!/usr/bin/env python3
"""The column of PyTorch in promises.py: the same promises, by PyTorch's own means.

usage: promises_torch.py FOLDER

FOLDER is for files. Prints one JSON line: a sentence for each row, and the version.
"""
import copy
import json
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

PARTS = 4


class Net(nn.Module):
    """Two blocks of convolution, batch norm, ReLU and dropout; `again`: they run again."""

    def __init__(self, dropout=0.5):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
                          nn.Dropout(dropout)) for a, b in ((1, 8), (8, 8)))
        self.last = nn.Linear(8 * 64, 10)
        self.again, self.keeps_masks = False, True

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False,
                           preserve_rng_state=self.keeps_masks) if self.again else block(x)
        return self.last(x.flatten(1))


def net(seed=1, dropout=0.5):
    torch.manual_seed(seed)
    return Net(dropout)


def batch(n=16):
    g = torch.Generator().manual_seed(2)
    return torch.rand(n, 1, 8, 8, generator=g), torch.randint(10, (n,), generator=g)


def gradients(of, x, y):
    torch.manual_seed(3)
    F.cross_entropy(of(x), y).backward()
    return [p.grad for p in of.parameters()]


def differ(a, b):
    return sum(int((x != y).sum()) for x, y in zip(a, b)), sum(x.numel() for x in a)


def apart(a, b):
    return max(float((x - y).abs().max() / y.abs().max().clamp_min(1e-30)) for x, y in zip(a, b))


def dropout():
    said = []
    for keeps in (True, False):
        plain, again = net(), net()
        again.again, again.keeps_masks = True, keeps
        wrong, total = differ(gradients(again, *batch()), gradients(plain, *batch()))
        said.append(f"{wrong:,} of {total:,} elements differ"
                    + ("" if keeps else " with `preserve_rng_state=False`"))
    return "; ".join(said)


def statistics():
    moved = []
    for again in (True, False):
        n = net()
        n.again = again
        gradients(n, *batch())
        moved.append(float(n.blocks[0][1].running_mean.norm()))
    return f"{moved[0] / moved[1]:.6g} times"


def trained(n, steps, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(n.parameters(), lr=0.01, momentum=0.9)
    for _ in range(steps):
        x, y = batch()
        optimizer.zero_grad()
        F.cross_entropy(n(x), y).backward()
        optimizer.step()
    return optimizer


def bits():
    made = []
    for again in (True, False):
        n = net()
        n.again = again
        torch.manual_seed(3)
        trained(n, 3)
        made.append([v for v in n.state_dict().values() if v.is_floating_point()])
    wrong, total = differ(*made)
    return f"{wrong:,} of {total:,} elements of parameters and statistics differ"


def saved_bytes(budget):
    """Bytes that torch.compile keeps for the backward part, with that part of activations."""
    from torch._functorch import config
    torch._dynamo.reset()
    config.activation_memory_budget = budget
    kept = {}

    def pack(t):
        if not isinstance(t, nn.Parameter):
            kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    n = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(64, 64), nn.GELU())])
    x = torch.rand(256, 64)
    run = torch.compile(n, backend="aot_eager_decomp_partition")
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        run(x).sum().backward()
    return sum(kept.values())


def monotone():
    sizes = [saved_bytes(1 - k / 8) for k in range(9)]
    if len(set(sizes)) < 2:
        raise RuntimeError("the budget has no effect")
    more = sum(b > a for a, b in zip(sizes, sizes[1:]))
    over = sum(s > (1 - k / 8) * sizes[0] for k, s in enumerate(sizes))
    return (f"`activation_memory_budget` from 1 to 0: {more} with more memory, "
            f"{over} of 9 keep more than their part")


def resumed(folder, whole, with_random):
    """Elements that differ after 3 + 3 updates; with_random: of which the state was kept, too."""
    path = os.path.join(folder, "state.pt")
    torch.manual_seed(3)
    half = net()
    torch.manual_seed(3)
    optimizer = trained(half, 3)
    torch.save({"net": half.state_dict(), "optimizer": optimizer.state_dict(),
                "random": torch.get_rng_state()}, path)
    state = torch.load(path)
    again = net(5)
    again.load_state_dict(state["net"])
    torch.manual_seed(4)                # another process
    if with_random:
        torch.set_rng_state(state["random"])
    optimizer = torch.optim.SGD(again.parameters(), lr=0.01, momentum=0.9)
    optimizer.load_state_dict(state["optimizer"])
    trained(again, 3, optimizer)
    return differ([p.detach() for p in again.parameters()],
                  [p.detach() for p in whole.parameters()])


def resume(folder):
    whole = net()
    torch.manual_seed(3)
    trained(whole, 6)
    (wrong, total), (left, _) = (resumed(folder, whole, kept) for kept in (False, True))
    return (f"{wrong:,} of {total:,} elements differ with `state_dict` of net and optimizer; "
            f"{left:,} where `get_rng_state` is kept by hand, too")


def uneven():
    """Labels of which 4, 1, 0 and 1 count in the four parts."""
    x, y = batch()
    y[[4, 6, 7, 8, 9, 10, 11, 12, 13, 15]] = -100
    return x, y


def accumulated(x, y):
    whole, parts = net(dropout=0).eval(), net(dropout=0).eval()
    want = gradients(whole, x, y)
    for xs, ys in zip(x.chunk(PARTS), y.chunk(PARTS)):
        loss = F.cross_entropy(parts(xs), ys) / PARTS
        if torch.isfinite(loss):        # a part without a label that counts: 0 / 0
            loss.backward()
    return apart([p.grad for p in parts.parameters()], want)


def accumulation():
    return (f"{accumulated(*uneven()):.1e} apart with `(loss / {PARTS}).backward()`, parts without "
            f"labels left out; {accumulated(*batch()):.1e} where all labels count")


def rank(k, folder):
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=k, world_size=2)
    n = nn.parallel.DistributedDataParallel(net(dropout=0).eval())
    optimizer = torch.optim.SGD(n.parameters(), lr=0.05)
    x, y = uneven()
    for _ in range(4):
        optimizer.zero_grad()
        F.cross_entropy(n(x.chunk(2)[k]), y.chunk(2)[k]).backward()
        optimizer.step()
    if k == 0:
        torch.save([p.detach() for p in n.parameters()], f"{folder}/ranks.pt")
    dist.destroy_process_group()


def ranks(folder):
    import torch.multiprocessing as mp
    mp.spawn(rank, (folder,), nprocs=2)
    one = net(dropout=0).eval()
    optimizer = torch.optim.SGD(one.parameters(), lr=0.05)
    for _ in range(4):
        x, y = uneven()
        optimizer.zero_grad()
        F.cross_entropy(one(x), y).backward()
        optimizer.step()
    two = torch.load(f"{folder}/ranks.pt")
    mine = [p.detach() for p in one.parameters()]
    wrong, total = differ(two, mine)
    return (f"{wrong:,} of {total:,} elements differ, {apart(two, mine):.1e} apart: "
            "each process divides by its own labels")


def main():
    folder = sys.argv[1]
    torch.set_num_threads(1)
    rows = {"version": torch.__version__.split("+")[0]}
    for row, ask in (("dropout", dropout), ("statistics", statistics), ("bits", bits),
                     ("monotone", monotone), ("resume", lambda: resume(folder)),
                     ("accumulation", accumulation), ("ranks", lambda: ranks(folder))):
        try:
            rows[row] = ask()
        except Exception as e:          # pylint: disable=broad-except
            rows[row] = f"not measured: {type(e).__name__}: {str(e).splitlines()[0][:120]}"
    rows["bytes"] = "not there: a budget is a part of the activations"
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
