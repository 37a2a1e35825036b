"""Modules that are trained by torch and by lowerset, side by side: test_torch.py.

A row of ZOO makes a Case: the module in the form in which it is trained, inputs of one batch and
targets. The weights are random ones of a seed; nothing is downloaded. Dropouts that draw are in no
module here, as both sides draw other numbers.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F

warnings.simplefilter("ignore")


@dataclass
class Case:
    module: nn.Module
    inputs: object              # a tensor, or a dict by the names of forward's arguments
    target: torch.Tensor
    loss: object = field(default_factory=nn.CrossEntropyLoss)
    lr: float = 0.02            # of plain SGD
    steps: int = 20             # that are compared
    adam_lr: float = 1e-3       # of AdamW, for five steps; 0: not compared
    options: dict = field(default_factory=dict)

    def forward(self):
        return self.module(**self.inputs) if isinstance(self.inputs, dict) else self.module(
            self.inputs)

    def scores(self):
        """The first output, classes second."""
        out = self.forward()
        out = out.logits if hasattr(out, "logits") else out
        if isinstance(self.loss, nn.CrossEntropyLoss) and out.ndim == 3:
            out = out.movedim(-1, 1)
        return out

    def torch_loss(self):
        return self.loss(self.scores(), self.target)


def _classes(count: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, count, shape)


def resnet18() -> Case:
    """Three steps: a rounding changes the sign before a ReLU, and norms over few samples make that
    large. From the fourth step on torch in f32 is 1e-4 away from torch in f64. AdamW takes signs
    of gradients, and is not compared."""
    import torchvision
    return Case(torchvision.models.resnet18(num_classes=10), torch.randn(4, 3, 64, 64),
                _classes(10, 4), lr=3e-5, steps=3, adam_lr=0)


def resnet18_smooth() -> Case:
    """The same with SiLU in the place of ReLU, for all 20 steps."""
    case = resnet18()
    for one in case.module.modules():
        if isinstance(getattr(one, "relu", None), nn.ReLU):
            one.relu = nn.SiLU()
    case.lr, case.steps, case.adam_lr = 3e-4, 20, 1e-5
    return case


def densenet_frozen_norms() -> Case:
    """A network whose norms all use their running statistics, as in fine-tuning."""
    import torchvision
    m = torchvision.models.DenseNet(8, (2, 2, 2), 16, num_classes=5)
    for one in m.modules():
        if isinstance(one, nn.BatchNorm2d):
            one.running_mean.uniform_(-0.5, 0.5)
            one.running_var.uniform_(0.5, 2)
            one.eval()
    return Case(m, torch.randn(6, 3, 32, 32), _classes(5, 6))


class UNet(nn.Module):
    def __init__(self, width: int = 8):
        super().__init__()

        def block(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b),
                                 nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b),
                                 nn.ReLU())
        self.down1, self.down2 = block(3, width), block(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.last = block(2 * width, width)
        self.head = nn.Conv2d(width, 4, 1)

    def forward(self, image):
        a = self.down1(image)
        b = self.up(self.down2(F.max_pool2d(a, 2)))
        return self.head(self.last(torch.cat([a, b], 1)))


def unet() -> Case:
    return Case(UNet(), torch.randn(4, 3, 16, 16), _classes(4, 4, 16, 16))


def bert() -> Case:
    import transformers
    config = transformers.BertConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=16, num_labels=3,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    mask = torch.ones(6, 12, dtype=torch.int64)
    mask[1, 7:] = 0
    mask[4, 3:] = 0
    return Case(transformers.BertForSequenceClassification(config),
                {"input_ids": _classes(60, 6, 12), "attention_mask": mask}, _classes(3, 6))


def gpt2_tied_head() -> Case:
    import transformers
    config = transformers.GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2,
                                     resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    return Case(transformers.GPT2LMHeadModel(config), {"input_ids": _classes(50, 4, 12)},
                _classes(50, 4, 12))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embedding = nn.Embedding(40, 12)
        self.cells = kind(12, 16, num_layers=2, batch_first=True)
        self.head = nn.Linear(16, 5)

    def forward(self, tokens):
        return self.head(self.cells(self.embedding(tokens))[0][:, -1])


def lstm() -> Case:
    return Case(Recurrent(nn.LSTM), _classes(40, 6, 9), _classes(5, 6), lr=0.1)


def gru() -> Case:
    return Case(Recurrent(nn.GRU), _classes(40, 6, 9), _classes(5, 6), lr=0.1)


def convnext() -> Case:
    import transformers
    config = transformers.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 2], num_stages=2,
                                         patch_size=4, image_size=32, num_labels=4,
                                         drop_path_rate=0.0)
    return Case(transformers.ConvNextForImageClassification(config),
                {"pixel_values": torch.randn(4, 3, 32, 32)}, _classes(4, 4))


def vit() -> Case:
    import transformers
    config = transformers.ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                    intermediate_size=32, image_size=16, patch_size=4,
                                    num_labels=4, hidden_dropout_prob=0.0,
                                    attention_probs_dropout_prob=0.0)
    return Case(transformers.ViTForImageClassification(config),
                {"pixel_values": torch.randn(4, 3, 16, 16)}, _classes(4, 4))


def mlp_partly_frozen() -> Case:
    m = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))
    m[0].weight.requires_grad_(False)
    m[2].bias.requires_grad_(False)
    return Case(m, torch.randn(10, 12), _classes(3, 10), lr=0.1)


def one_norm_in_eval() -> Case:
    m = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8, momentum=0.3), nn.ReLU(),
                      nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8, eps=1e-3), nn.ReLU(),
                      nn.Dropout(0.5), nn.Flatten(), nn.Linear(8 * 8 * 8, 4))
    m[4].running_mean.uniform_(-0.5, 0.5)
    m[4].running_var.uniform_(0.5, 2)
    m[4].eval()
    m[6].eval()
    return Case(m, torch.randn(6, 3, 8, 8), _classes(4, 6))


def group_norms() -> Case:
    m = nn.Sequential(nn.Conv1d(4, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.GELU(),
                      nn.Conv1d(8, 8, 3, stride=2), nn.InstanceNorm1d(8, affine=True), nn.SiLU(),
                      nn.Flatten(), nn.Linear(8 * 7, 3))
    return Case(m, torch.randn(5, 4, 16), _classes(3, 5))


def autoencoder() -> Case:
    m = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ELU(), nn.Flatten(),
                      nn.Linear(4 * 16, 6), nn.LayerNorm(6), nn.Linear(6, 64), nn.Unflatten(
                          1, (1, 8, 8)), nn.ConvTranspose2d(1, 4, 3, padding=1), nn.ReLU(),
                      nn.Conv2d(4, 1, 3, padding=1))
    x = torch.rand(6, 1, 8, 8)
    return Case(m, x, x, nn.MSELoss(), lr=0.1)


ZOO = {make.__name__: make for make in (
    resnet18, resnet18_smooth, densenet_frozen_norms, unet, bert, gpt2_tied_head, lstm, gru,
    convnext, vit, mlp_partly_frozen, one_norm_in_eval, group_norms, autoencoder)}


def case(name: str) -> Case:
    torch.manual_seed(5)
    made = ZOO[name]()
    if not any(not m.training for m in made.module.modules()):
        made.module.train()
    return made
