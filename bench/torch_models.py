"""The zoo's networks in PyTorch, modules named as usual, to measure lowerset against.

Used by torch_peer.py (CPU) and gpu_peer.py. Written for PyTorch 1.13 and later.
"""
import torch
from torch import nn
from torch.nn import functional as F


def shortcut(n_in, n_out, stride):
    """A projection of a block's input to the size of its result; None if the sizes are equal."""
    if stride == 1 and n_in == n_out:
        return None
    return nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))


class Block(nn.Module):
    """Basic block of a ResNet, modules named as torchvision names them."""

    def __init__(self, n_in, n_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.downsample = shortcut(n_in, n_out, stride)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class Bottleneck(nn.Module):
    """Block of the deeper ResNets: 1x1, 3x3 with the stride, 1x1 to four times the width."""

    def __init__(self, n_in, width, stride):
        super().__init__()
        n_out = 4 * width
        self.conv1 = nn.Conv2d(n_in, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, n_out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(n_out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = shortcut(n_in, n_out, stride)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet50(nn.Module):
    def __init__(self, classes=1000, width=64):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        n_in = width
        for i, blocks in enumerate((3, 4, 6, 3)):
            stage = nn.Sequential()
            for k in range(blocks):
                stride = 2 if i > 0 and k == 0 else 1
                stage.add_module(str(k), Bottleneck(n_in, width << i, stride))
                n_in = 4 * (width << i)
            self.add_module(f"layer{i + 1}", stage)
        self.fc = nn.Linear(n_in, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


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
    def __init__(self, n_in, n_out, pad):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, padding=pad, bias=False), nn.BatchNorm2d(n_out),
            nn.ReLU(inplace=True),
            nn.Conv2d(n_out, n_out, 3, padding=pad, bias=False), nn.BatchNorm2d(n_out),
            nn.ReLU(inplace=True))

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, n_in, n_out, pad):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(n_in, n_out, pad))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, n_in, n_out, pad):
        super().__init__()
        self.up = nn.ConvTranspose2d(n_in, n_in // 2, 2, 2)
        self.conv = DoubleConv(n_in, n_out, pad)

    def forward(self, x, skip):
        x = self.up(x)
        h, w = ((skip.size(k) - x.size(k)) // 2 for k in (2, 3))
        skip = skip[:, :, h:h + x.size(2), w:w + x.size(3)]
        return self.conv(torch.cat([skip, x], 1))


class OutConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    """pad=0: the paper's form, whose output is smaller than the image."""

    def __init__(self, width=64, depth=4, classes=2, pad=1):
        super().__init__()
        self.depth = depth
        self.inc = DoubleConv(3, width, pad)
        for i in range(depth):
            self.add_module(f"down{i + 1}", Down(width << i, width << (i + 1), pad))
            self.add_module(f"up{depth - i}", Up(width << (i + 1), width << i, pad))
        self.outc = OutConv(width, classes)

    def forward(self, x):
        skips = [self.inc(x)]
        for i in range(1, self.depth + 1):
            skips.append(getattr(self, f"down{i}")(skips[-1]))
        x = skips.pop()
        for i in range(1, self.depth + 1):
            x = getattr(self, f"up{i}")(x, skips.pop())
        return self.outc(x)


class CNN(nn.Module):
    """Two convolutions and two dense layers, for images of one channel."""

    def __init__(self, size, width=32, hidden=256, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.fc1 = nn.Linear(2 * width * (size // 4) ** 2, hidden)
        self.fc2 = nn.Linear(hidden, classes)

    def forward(self, x):
        x = F.avg_pool2d(F.relu(self.conv1(x)), 2)
        x = F.avg_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


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
        if mask is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.attn_proj(y.transpose(1, 2).reshape(n, t, d))
        scores = (q @ k.transpose(2, 3)) * (d // self.heads) ** -0.5
        weights = scores.masked_fill(mask, torch.finfo(scores.dtype).min).softmax(-1)
        return self.attn_proj((weights @ v).transpose(1, 2).reshape(n, t, d))

    def forward(self, x, mask):
        x = x + self.attention(self.ln_1(x), mask)
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    """flash: attention by PyTorch's own function, which may avoid storing the scores."""

    def __init__(self, depth=4, width=256, heads=8, context=256, vocab=4096, flash=False):
        super().__init__()
        self.flash = flash
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
            x = block(x, None if self.flash else self.mask)
        return self.ln_f(x) @ self.wte.weight.t()
