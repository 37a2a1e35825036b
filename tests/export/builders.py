#!/usr/bin/env python3
"""tests/export/builders.py -- makes tests/data/inputs/builders: small language models as ONNX
Runtime's model builder and optimum write them, with references of PyTorch, ONNX Runtime and peft.

    builders.py BUILDER.PY OPTIMUM-CLI FOLDER

BUILDER.PY: onnxruntime_genai/models/builder.py. OPTIMUM-CLI may be of another environment. A model
has its weights in the file; NAME.npz has `input_ids`, `label` (-100 is left out), and in double
precision `out/logits` and `grad/...` of the mean cross-entropy, under the names and in the layout
of the file's own tensors. adapter/: peft's adapter of one model before and after 20 updates of
AdamW, and their losses.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import peft
import torch
from tokenizers import Tokenizer, models
from transformers import (Gemma2Config, Gemma2ForCausalLM, LlamaConfig, LlamaForCausalLM,
                          PreTrainedTokenizerFast)

SIZES = dict(vocab_size=24, hidden_size=16, intermediate_size=16, num_attention_heads=2,
             num_key_value_heads=1, head_dim=16, max_position_embeddings=16, bos_token_id=1,
             eos_token_id=2, pad_token_id=0)
SAMPLES, TOKENS = 2, 8


def llama(layers):
    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=layers, tie_word_embeddings=False,
                                        **SIZES))


def gemma():
    kinds = ["sliding_attention", "full_attention"]
    return Gemma2ForCausalLM(Gemma2Config(
        num_hidden_layers=2, sliding_window=4, query_pre_attn_scalar=12, layer_types=kinds,
        attn_logit_softcapping=2.0, final_logit_softcapping=4.0, tie_word_embeddings=True,
        **SIZES))


def saved(model, folder):
    for p in model.parameters():
        p.data = torch.randn_like(p) * 0.3 if p.dim() > 1 else p.data + 0.1 * torch.randn_like(p)
    model.float().eval().save_pretrained(folder)
    words = Tokenizer(models.WordLevel({f"t{i}": i for i in range(24)}, unk_token="t0"))
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="t0").save_pretrained(folder)
    return model


def slim(found, to):
    """One file, without notes."""
    m = onnx.load(found)
    m.graph.ClearField("value_info")
    for n in m.graph.node:
        n.ClearField("doc_string")
    m.ClearField("metadata_props")
    onnx.save(m, to)
    return m


def by_file(m, grads):
    """Gradients under the names of the file's tensors."""
    found = {}
    for t in m.graph.initializer:
        w = onnx.numpy_helper.to_array(t)
        for name, (p, g) in grads.items():
            if p.shape == w.shape and np.array_equal(p, w):
                found[t.name] = g
            elif p.T.shape == w.shape and np.array_equal(p.T, w):
                found[t.name] = g.T
        if ".qkv_proj." in t.name:
            head = t.name.split(".attn.")[0] + ".self_attn."
            found[t.name] = np.concatenate([grads[f"{head}{k}_proj.weight"][1].T for k in "qkv"], 1)
    return found


def reference(model, m, path):
    rng = np.random.default_rng(3)
    ids = rng.integers(3, 24, (SAMPLES, TOKENS))
    label = np.concatenate([ids[:, 1:], np.full((SAMPLES, 1), -100)], 1)
    before = {k: p.detach().numpy().copy() for k, p in model.named_parameters()}
    model.double().zero_grad()
    out = model(input_ids=torch.tensor(ids), attention_mask=torch.ones(SAMPLES, TOKENS)).logits
    torch.nn.functional.cross_entropy(out.flatten(0, 1), torch.tensor(label).flatten()).backward()
    grads = {k: (before[k], p.grad.numpy()) for k, p in model.named_parameters()}
    session = onnxruntime.InferenceSession(m.SerializeToString())
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids),
             "position_ids": np.arange(TOKENS)[None].repeat(SAMPLES, 0)}
    for i in session.get_inputs():
        if i.name.startswith("past"):
            feeds[i.name] = np.zeros((SAMPLES, 1, 0, 16), "f")
    own = session.run(["logits"], {i.name: feeds[i.name] for i in session.get_inputs()})[0]
    assert abs(own - out.detach().numpy()).max() < 1e-5
    found = by_file(m, grads)
    few = [k for k in found if "down" not in k and "up_proj" not in k and "layers.1" not in k]
    np.savez(path, input_ids=ids, label=label, **{"out/logits": out.detach().numpy()},
             **{f"grad/{k}": found[k].astype("f", order="C") for k in few})
    return ids, label


def adapter(model, ids, label, folder):
    torch.manual_seed(5)
    config = peft.LoraConfig(r=2, lora_alpha=3, target_modules=["o_proj", "gate_proj"],
                             task_type="CAUSAL_LM")
    model = peft.get_peft_model(model.float(), config)
    for name, p in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, 0, 0.05)
    model.save_pretrained(folder / "start")
    model.double()
    trained = [p for p in model.parameters() if p.requires_grad]
    step = torch.optim.AdamW(trained, lr=3e-3, weight_decay=0.01)
    losses = []
    for k in range(21):
        out = model(input_ids=torch.tensor(ids)).logits
        loss = torch.nn.functional.cross_entropy(out.flatten(0, 1), torch.tensor(label).flatten())
        losses.append(loss.item())
        step.zero_grad()
        loss.backward()
        if k < 20:
            step.step()
    model.float().save_pretrained(folder / "end")
    np.savez(folder / "ref.npz", loss=np.array(losses))
    for f in folder.glob("*/README.md"):
        f.unlink()


def main(builder, optimum, folder):
    torch.manual_seed(1)
    to = pathlib.Path(folder).resolve()
    to.mkdir(parents=True, exist_ok=True)
    os.chdir(tempfile.mkdtemp())
    packed, window, plain = saved(llama(2), "packed"), saved(gemma(), "window"), saved(
        llama(1), "plain")
    for name in ("packed", "window"):
        subprocess.run([sys.executable, builder, "-m", "none", "-i", name, "-o", f"{name}.onnx",
                        "-p", "fp32", "-e", "cpu", "--extra_options", "windowed_kv_cache=false"],
                       check=True, env={**os.environ, "PYTHONPATH": os.path.dirname(builder)})
    subprocess.run([optimum, "export", "onnx", "--model", "plain", "--no-post-process", "--task",
                    "text-generation-with-past", "plain.onnx"], check=True)
    for name, model in (("window", window), ("plain", plain), ("packed", packed)):
        m = slim(f"{name}.onnx/model.onnx", to / f"{name}.onnx")
        ids, label = reference(model, m, to / f"{name}.npz")
    adapter(packed, ids, label, to / "adapter")


main(*sys.argv[1:])
