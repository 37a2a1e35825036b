"""tests/export/nets.py -- small networks whose exports tests/export/make.py makes.

They cover what exporters write in different ways: norms, attention masks, shared parameters,
parameters of rank 0, buffers, frozen layers. NETS: name -> Net.
Runs with PyTorch 1.13 and later.
"""
import math
import zlib

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


# Exporters run the network in train() mode, once or more: files start with running statistics
# that 30 steps at this rate forget.
MOMENTUM = 0.3


class Mlp(nn.Module):
    """Biases start as zeros, as is usual: initializers of equal value."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(10, 12), nn.Linear(12, 12), nn.Linear(12, 5)
        for layer in (self.a, self.b, self.c):
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        return self.c(torch.relu(self.b(torch.relu(self.a(x)))))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(3, 6, 3, padding=1, bias=False)
        self.b1 = nn.BatchNorm2d(6, momentum=MOMENTUM)
        self.c2 = nn.Conv2d(6, 12, 3, padding=1, stride=2)
        self.b2 = nn.BatchNorm2d(12, momentum=MOMENTUM)
        self.drop, self.fc = nn.Dropout(0.0), nn.Linear(12, 5)

    def forward(self, x):
        x = torch.relu(self.b1(self.c1(x)))
        x = torch.relu(self.b2(self.c2(x)))
        return self.fc(self.drop(x.mean((2, 3))))


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout, momentum=MOMENTUM)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout, momentum=MOMENTUM)
        self.shortcut = nn.Sequential()
        if stride != 1 or cin != cout:
            self.shortcut = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False),
                                          nn.BatchNorm2d(cout, momentum=MOMENTUM))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class Resnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, 1, 1, bias=False)
        self.bn = nn.BatchNorm2d(6, momentum=MOMENTUM)
        self.pool = nn.MaxPool2d(2)
        self.layers = nn.Sequential(Block(6, 6, 1), Block(6, 8, 2), Block(8, 10, 2))
        self.head, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(10, 4)

    def forward(self, x):
        x = self.layers(self.pool(F.relu(self.bn(self.stem(x)))))
        return self.fc(torch.flatten(self.head(x), 1))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(13, 16)
        self.pos = nn.Parameter(torch.randn(1, 6, 16) * 0.1)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 1, norm=nn.LayerNorm(16),
                                            enable_nested_tensor=False)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.layers(self.embed(x) + self.pos).mean(1))


class Attention(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        tril = torch.tril(torch.ones(context, context))
        self.register_buffer("mask", tril.view(1, 1, context, context))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in (q, k, v))
        score = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        score = score.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        y = F.softmax(score, dim=-1) @ v
        return self.proj(y.transpose(1, 2).contiguous().view(b, t, c))


class FusedAttention(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).contiguous().view(b, t, c))


class GptBlock(nn.Module):
    def __init__(self, width, heads, context, attention):
        super().__init__()
        self.ln1, self.attn = nn.LayerNorm(width), attention(width, heads, context)
        self.ln2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(approximate="tanh"),
                                 nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Gpt(nn.Module):
    def __init__(self, tied, blocks, attention=Attention, vocab=17, context=10, width=16):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[GptBlock(width, 2, context, attention)
                                      for _ in range(blocks)])
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)
        if tied:
            self.tok.weight = self.head.weight

    def forward(self, x):
        x = self.tok(x) + self.pos(torch.arange(x.size(1), device=x.device))
        return self.head(self.ln(self.blocks(x)))


class Indexing(nn.Module):
    """Indices that arrive with the batch, as advanced indexing, gather, scatter, topk and
    einsum take them."""

    def __init__(self):
        super().__init__()
        self.tok, self.mix = nn.Embedding(9, 8), nn.Parameter(torch.randn(8, 6) * 0.3)
        self.rate, self.head = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        h = torch.cumsum(self.tok(x), 1)                        # N, 5, 8
        own = torch.gather(h, 2, (x % 4).unsqueeze(2))          # an element of each step
        there = h[torch.arange(x.size(0)).unsqueeze(1), x % 5]  # a step of the same sample
        best, _ = torch.topk(torch.einsum("ntc,ck->ntk", h, self.mix), 2, dim=2)
        spread = torch.zeros_like(h).scatter_add(2, (x % 3).unsqueeze(2), own)
        kept = torch.sigmoid(self.rate(there))
        first = F.one_hot(h.argmax(2), 8).to(h.dtype)
        return self.head((kept + spread + first).mean(1) + best.mean((1, 2)).unsqueeze(1))


class Norms(nn.Module):
    """A convolution, a norm, a head; each network has another kind of norm."""

    def __init__(self, *norms):
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(3, 8, 3, padding=1), norms[0]
        self.c2, self.n2 = nn.Conv2d(8, 8, 3, padding=1), norms[1]
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        x = F.silu(self.n1(self.c1(x)))
        x = F.silu(self.n2(self.c2(x)))
        return self.fc(x.mean((2, 3)))


class LayerNorms(nn.Module):
    """Two of equal initial values, one without parameters, Linear layers between them."""

    def __init__(self):
        super().__init__()
        self.a, self.n1 = nn.Linear(10, 8), nn.LayerNorm(8)
        self.b, self.n2 = nn.Linear(8, 8), nn.LayerNorm(8)
        self.c, self.n3 = nn.Linear(8, 8), nn.LayerNorm(8, elementwise_affine=False)
        self.d = nn.Linear(8, 4)

    def forward(self, x):
        x = F.gelu(self.n1(self.a(x)))
        x = F.gelu(self.n2(self.b(x)))
        return self.d(self.n3(self.c(x)))


class Gem(nn.Module):
    """Generalized-mean pooling."""

    def __init__(self):
        super().__init__()
        self.conv, self.p, self.fc = nn.Conv2d(3, 8,
                                               3), nn.Parameter(torch.ones(1) * 3), nn.Linear(8, 5)

    def forward(self, x):
        x = F.softplus(self.conv(x)).clamp(min=1e-6).pow(self.p)
        return self.fc(x.mean((2, 3)).pow(1.0 / self.p))


class Scalars(nn.Module):
    """Parameters of rank 0, and a PReLU: a temperature, a gain whose first value is 1."""

    def __init__(self):
        super().__init__()
        self.a, self.act = nn.Linear(10, 8), nn.PReLU()
        self.gain = nn.Parameter(torch.tensor(1.0))
        self.temperature = nn.Parameter(torch.tensor(0.7))
        self.b = nn.Linear(8, 5)

    def forward(self, x):
        return self.b(self.act(self.a(x)) * self.gain) / self.temperature


class Bounds(nn.Module):
    """Clipping at a learnable bound, a parameter of rank 0."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(10, 8), nn.Linear(8, 5)
        self.bound = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return self.b(torch.clamp(self.a(x), -self.bound, self.bound))


class WeightNorm(nn.Module):
    """Weights are computed from parameters."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(10, 8)
        self.v, self.g = nn.Parameter(torch.randn(5, 8)), nn.Parameter(torch.ones(5, 1))
        self.bias = nn.Parameter(torch.zeros(5))

    def forward(self, x):
        w = self.g * self.v / self.v.norm(dim=1, keepdim=True)
        return F.linear(torch.tanh(self.a(x)), w, self.bias)


class Frozen(nn.Module):
    """A layer that requires no gradient, a table of positions and an additive mask as buffers."""

    def __init__(self):
        super().__init__()
        self.first, self.mid, self.fc = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 4)
        self.first.requires_grad_(False)
        angle = torch.arange(5.0)[:, None] / 10.0 ** torch.linspace(0, 1, 8)[None]
        self.register_buffer("table", torch.sin(angle))
        self.register_buffer("bias", torch.linspace(-1, 0, 25).view(5, 5))

    def forward(self, x):
        x = torch.tanh(self.first(x)) + self.table
        score = torch.softmax(x @ x.transpose(1, 2) / math.sqrt(8.0) + self.bias, -1)
        return self.fc(torch.tanh(self.mid(score @ x)).mean(1))


class Lstm(nn.Module):
    """Two layers, both directions."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(10, 4)

    def forward(self, x):
        return self.fc(self.lstm(x)[0].mean(1))


class Gru(nn.Module):
    """From a state that is a parameter; the final state is read."""

    def __init__(self):
        super().__init__()
        self.start = nn.Parameter(torch.linspace(-1, 1, 6))
        self.gru, self.fc = nn.GRU(4, 6), nn.Linear(6, 4)

    def forward(self, x):
        start = self.start.expand(1, x.shape[0], 6)
        return self.fc(self.gru(x.transpose(0, 1), start.contiguous())[1][0])


class PackedRnn(nn.Module):
    """Token 0 fills up the shorter sentences, which are not to be read further."""

    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(9, 5)
        self.rnn = nn.RNN(5, 6, nonlinearity="relu", batch_first=True, bidirectional=True)
        self.fc = nn.Linear(12, 4)

    def forward(self, x):
        length = (x != 0).sum(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(self.tok(x), length, batch_first=True)
        y, h = self.rnn(packed)
        y = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0]
        return self.fc(torch.cat((h[0], h[1]), 1) + y.sum(1))


class Scripted(nn.Module):
    """A loop over the steps, and a branch in it: torch.jit.script keeps both."""

    def __init__(self):
        super().__init__()
        self.x, self.h, self.fc = nn.Linear(4, 6), nn.Linear(6, 6), nn.Linear(6, 4)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 6)
        for t in range(x.shape[1]):
            h = torch.tanh(self.x(x[:, t]) + self.h(h))
            if t == 2:
                h = h * 2.0
        return self.fc(h)


class Net:
    """make: the module; shape: of the input, batch first; classes: of the labels;
    tokens: size of the vocabulary of an integer input, or 0; label: its shape beyond the batch;
    shrinks: each row has one more zero at its end than the row before."""

    def __init__(self, make, shape, classes, tokens=0, label=(), lr=0.1, freeze=(), since=(),
                 shrinks=False):
        self.make, self.shape, self.classes, self.shrinks = make, shape, classes, shrinks
        self.tokens, self.label, self.lr, self.freeze = tokens, label, lr, freeze
        self.since = since

    def module(self, name):
        """Random weights come from NumPy: they are the same with every version of PyTorch."""
        torch.manual_seed(1)
        m = self.make()
        for key, p in m.named_parameters():
            if p.numel() > 1 and p.min() != p.max():
                rng = np.random.RandomState(zlib.crc32((name + "." + key).encode()))
                bound = 1 / math.sqrt(p.numel() / p.shape[0]) if p.dim() > 1 else 0.3
                with torch.no_grad():
                    p.copy_(torch.from_numpy(rng.uniform(-bound, bound, p.shape)))
        return m

    def batch(self, name):
        rng = np.random.RandomState(zlib.crc32(name.encode()))
        x = (rng.randint(0, self.tokens, self.shape).astype(np.int64) if self.tokens
             else rng.standard_normal(self.shape).astype(np.float32))
        if self.shrinks:
            x = np.tril(1 + x % (self.tokens - 1), 1)[::-1].copy()
        label = rng.randint(0, self.classes, self.shape[:1] + self.label).astype(np.int64)
        return x, label


def norms(make):
    return lambda: Norms(make(), make())


IMAGE = (6, 3, 8, 8)
TEXT = dict(tokens=17, label=(8,), lr=0.02)
NETS = {
    "mlp": Net(Mlp, (8, 10), 5, lr=0.3),
    "cnn": Net(Cnn, (6, 3, 10, 10), 5),
    "resnet": Net(Resnet, (5, 3, 16, 16), 4, lr=0.02),
    "encoder": Net(Encoder, (6, 6), 4, tokens=13),
    "gpt": Net(lambda: Gpt(False, 2), (4, 8), 17, **TEXT),
    "gpt_tied": Net(lambda: Gpt(True, 1), (4, 8), 17, **TEXT),
    "gpt_sdpa": Net(lambda: Gpt(False, 1, FusedAttention), (4, 8), 17, since=(2, 0), **TEXT),
    "indexing": Net(Indexing, (6, 5), 4, tokens=9),
    "batchnorm_plain": Net(norms(lambda: nn.BatchNorm2d(8, momentum=MOMENTUM, affine=False)),
                           IMAGE, 4, lr=0.1),
    "batchnorm_batch": Net(norms(lambda: nn.BatchNorm2d(8, track_running_stats=False)),
                           IMAGE, 4, lr=0.1),
    "groupnorm": Net(norms(lambda: nn.GroupNorm(2, 8)), IMAGE, 4, lr=0.1),
    "instancenorm": Net(lambda: Norms(nn.InstanceNorm2d(8, affine=True), nn.InstanceNorm2d(8)),
                        IMAGE, 4, lr=1.0),
    "layernorm": Net(LayerNorms, (8, 10), 4, lr=0.05),
    "gem": Net(Gem, IMAGE, 5, lr=0.3),
    "scalars": Net(Scalars, (8, 10), 5, lr=0.02),
    "bounds": Net(Bounds, (8, 10), 5, lr=0.3),
    "weightnorm": Net(WeightNorm, (8, 10), 5, lr=0.3),
    "frozen": Net(Frozen, (6, 5, 6), 4, lr=0.5, freeze=("first.*", "table", "bias")),
    "lstm": Net(Lstm, (6, 5, 4), 4, lr=0.5),
    "gru": Net(Gru, (6, 5, 4), 4, lr=0.5),
    "scripted": Net(lambda: torch.jit.script(Scripted()), (6, 4, 4), 4, lr=0.5),
    "rnn_packed": Net(PackedRnn, (5, 6), 4, tokens=9, lr=0.05, shrinks=True),
}
