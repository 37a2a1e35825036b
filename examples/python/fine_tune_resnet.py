"""A torchvision ResNet fine-tuned: frozen but for its last stage, norms in evaluation mode.

    pip install torch torchvision lowerset
    python fine_tune_resnet.py [--weights] [--budget 300MiB]

Without --weights the network starts at random, and nothing is downloaded. The pictures are made
here: bars that lie, stand or cross, in three classes.
"""
import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import ResNet18_Weights, resnet18

import lowerset


def pictures(n, size=64, seed=0):
    """n pictures [n, 3, size, size] with noise, and their classes."""
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(3, (n,), generator=g)
    x = 0.3 * torch.randn(n, 3, size, size, generator=g)
    at = torch.randint(8, size - 8, (n, 2), generator=g)
    for k in range(n):
        if kind[k] != 1:
            x[k, :, at[k, 0]:at[k, 0] + 4, :] += 1.5
        if kind[k] != 0:
            x[k, :, :, at[k, 1]:at[k, 1] + 4] += 1.5
    return TensorDataset(x, kind)


def network(weights):
    """ResNet-18 with a head for three classes; its stem and first three stages stay as they are."""
    net = resnet18(weights=ResNet18_Weights.DEFAULT if weights else None)
    net.fc = torch.nn.Linear(net.fc.in_features, 3)
    for name, p in net.named_parameters():
        p.requires_grad = name.startswith(("layer4", "fc"))
    net.train()
    for name, module in net.named_modules():
        if isinstance(module, torch.nn.BatchNorm2d) and not name.startswith("layer4"):
            module.eval()               # statistics of the frozen part stay, too
    return net


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--weights", action="store_true", help="start from ImageNet's weights")
    p.add_argument("--budget", help="limit on all memory, such as 300MiB")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--samples", type=int, default=192)
    o = p.parse_args()
    torch.manual_seed(0)
    net = network(o.weights)
    train = DataLoader(pictures(o.samples), batch_size=16, shuffle=True)
    held = pictures(64, seed=1)
    x, y = held.tensors
    with lowerset.trainer(net, x[:16], loss="ce", optimizer="adamw:wd=0.01", lr=1e-3,
                          budget=o.budget) as t:
        for row in t.fit(train, epochs=o.epochs, val=(x, y)):
            print(f"epoch {row['epoch']}: loss {row['loss']:.3f}, of held pictures "
                  f"{row['val_loss']:.3f}, {row['seconds']:.1f} s")
        t.load_into(net)
    net.eval()
    with torch.no_grad():
        right = (net(x).argmax(1) == y).float().mean().item()
    print(f"the module itself now tells {100 * right:.0f} % of the held pictures right")


if __name__ == "__main__":
    main()
