#!/usr/bin/env python3
"""What finetune.py runs in processes of its own.

usage: finetune_run.py export NET FILE [--tokens N]
       finetune_run.py train NET WAY [--tokens N] [--steps N] [--threads N]

Networks have random weights and real sizes: gpt2 (124 million parameters), qwen05 (494 million,
those of Qwen2.5-0.5B). export writes the network by torch's ONNX exporter. train is PyTorch with
peft: full or lora, with -bf16 (weights and products) and -again (gradient checkpointing) behind it.
It prints one JSON line: ms of the median step, MiB of the process at its peak in training, losses
of the first and the last step.
"""
import argparse
import json
import statistics
import sys
import time

import torch
import transformers

from python_run import forget_peak, kib

WARM = 1


def network(name, tokens):
    torch.manual_seed(0)
    if name == "gpt2":
        config = transformers.GPT2Config(n_positions=max(tokens, 1024), resid_pdrop=0, embd_pdrop=0,
                                         attn_pdrop=0, use_cache=False)
        return transformers.GPT2LMHeadModel(config)
    config = transformers.Qwen2Config(
        vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
        num_attention_heads=14, num_key_value_heads=2, max_position_embeddings=2048,
        tie_word_embeddings=True, use_cache=False)
    return transformers.Qwen2ForCausalLM(config)


def modules(name):
    return ["c_attn", "c_proj"] if name == "gpt2" else ["q_proj", "v_proj"]


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(input_ids=x, use_cache=False).logits


def export(o):
    x = torch.zeros(1, o.tokens, dtype=torch.long)
    program = torch.onnx.export(Logits(network(o.net, o.tokens)), (x,), dynamo=True, optimize=False,
                                verbose=False)
    program.save(o.way, external_data=True)


def tuned(o):
    model = network(o.net, o.tokens)
    if "bf16" in o.way:
        model = model.to(torch.bfloat16)
    if o.way.startswith("lora"):
        import peft
        model = peft.get_peft_model(model, peft.LoraConfig(r=8, lora_alpha=16,
                                                           target_modules=modules(o.net)))
    if o.way.endswith("again"):
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.enable_input_require_grads()
    return model.train()


def train(o):
    torch.set_num_threads(o.threads)
    model = tuned(o)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    g = torch.Generator().manual_seed(1)
    x = torch.randint(model.config.vocab_size, (4, 1, o.tokens), generator=g)
    ms, losses = [], []
    forget_peak()
    for step in range(o.steps + WARM):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = model(input_ids=x[step % 4], labels=x[step % 4]).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        ms.append((time.perf_counter() - begin) * 1e3)
    print(json.dumps({"ms": statistics.median(ms[WARM:]), "peak_mib": kib("VmHWM") / 1024,
                      "first": losses[0], "last": losses[-1]}))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["export", "train"])
    p.add_argument("net", choices=["gpt2", "qwen05"])
    p.add_argument("way")
    p.add_argument("--tokens", type=int, default=512)
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    o = p.parse_args()
    (export if o.what == "export" else train)(o)


if __name__ == "__main__":
    sys.exit(main())
