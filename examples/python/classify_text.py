"""A transformers classifier: which of two words comes first in a sentence.

    pip install torch transformers lowerset
    python classify_text.py

A small BERT with random weights, so that nothing is downloaded; for one from the hub write
BertForSequenceClassification.from_pretrained(...) instead. Its inputs go in by name.
"""
import argparse

import torch
from transformers import BertConfig, BertForSequenceClassification

import lowerset

WORDS, LENGTH = 64, 16


def sentences(n, seed=0):
    """Batches' material: token numbers and masks [n, LENGTH], and which of 5 and 6 comes first."""
    g = torch.Generator().manual_seed(seed)
    tokens = torch.randint(7, WORDS, (n, LENGTH), generator=g)
    where = torch.rand(n, LENGTH, generator=g).argsort(1)[:, :2]
    rows = torch.arange(n)
    tokens[rows, where[:, 0]] = 5
    tokens[rows, where[:, 1]] = 6
    return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}, \
        (where[:, 0] < where[:, 1]).long()


class Logits(torch.nn.Module):
    """The model's scores alone: its loss is the trainer's."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).logits


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=150)
    o = p.parse_args()
    torch.manual_seed(0)
    config = BertConfig(vocab_size=WORDS, hidden_size=64, num_hidden_layers=2,
                        num_attention_heads=4, intermediate_size=128,
                        max_position_embeddings=LENGTH, num_labels=2,
                        attn_implementation="eager")
    net = Logits(BertForSequenceClassification(config)).train()
    x, y = sentences(32 * 64)
    held, answers = sentences(256, seed=1)
    with lowerset.trainer(net, {k: v[:32] for k, v in x.items()}, loss="ce",
                          optimizer="adamw:wd=0.01", clip_norm=1) as t:
        for k in range(o.steps):
            at = slice(k % 64 * 32, k % 64 * 32 + 32)
            rate = 2e-3 * min(1, (k + 1) / 20)
            loss = t.step({n: v[at] for n, v in x.items()}, y[at], lr=rate)
            if k % 30 == 0 or k == o.steps - 1:
                print(f"step {k}: loss {loss:.3f}")
        right = (t.predict(held).argmax(1) == answers).float().mean().item()
    print(f"{100 * right:.0f} % of the held sentences are right")


if __name__ == "__main__":
    main()
