#!/usr/bin/env python3
"""Arenas in 16 bits beside those in f32, as a table for docs/lab/bf16.md: nothing is trained.

usage: precision_memory.py BUILD-FOLDER [--effort PERCENT] [--types bf16,f16] [MODEL...]

For each network: bytes kept for the backward part without recomputation, and the arena without a
budget, within half of it, and the least. A figure in brackets is the share of f32's. The search is
short by default (--effort 10), as each network is planned six times.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

NETS = {
    "unet": ("U-Net 2x3x256x256", ["unet", "--size=256"], 2),
    "resnet18": ("ResNet-18 32x3x224x224", ["resnet18"], 32),
    "resnet50": ("ResNet-50 32x3x224x224", ["resnet50"], 32),
    "densenet121": ("DenseNet-121 32x3x224x224", ["densenet121"], 32),
    "vgg16": ("VGG-16 32x3x224x224", ["vgg16"], 32),
    "gpt": ("GPT 12 layers, d 768, T 512, B 4",
            ["gpt", "--depth=12", "--heads=12", "--width=768", "--context=512",
           "--vocab=50257"], 4),
}


def plan(lowerset, model, batch, precision, effort, budget=None):
    command = [lowerset, "plan", model, "--batch", str(batch), f"--precision={precision}",
               f"--plan-effort={effort}",
               "--loss-scale=none", "--json"] + ([f"--budget={budget}"] if budget else [])
    out = subprocess.run(command, capture_output=True, text=True)
    if out.returncode == 4:     # no plan keeps within the budget
        return None
    if out.returncode != 0:
        sys.exit(f"{' '.join(command)}: {out.stderr.strip().splitlines()[-1:]}")
    return json.loads(out.stdout)


def figures(lowerset, model, batch, precision, effort):
    free = plan(lowerset, model, batch, precision, effort)
    half = plan(lowerset, model, batch, precision, effort, "50%")
    least = plan(lowerset, model, batch, precision, effort, "min")
    return [free["kept_bytes"], free["arena_bytes"], half and half["arena_bytes"],
            least["arena_bytes"]]


def text(bytes_, of=None):
    share = f" ({bytes_ / of:.2f})" if bytes_ and of else ""
    return f"{bytes_ / 2**20:.1f}{share}" if bytes_ else "none"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--effort", type=int, default=10)
    p.add_argument("--types", default="bf16")
    p.add_argument("models", nargs="*")
    args = p.parse_intermixed_args()
    lowerset = str(pathlib.Path(args.build) / "lowerset")
    print("| network | type | kept, MiB | arena, MiB | within 50 % | least "
          "|\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in args.models or list(NETS):
            title, options, batch = NETS[name]
            model = f"{folder}/{name}.onnx"
            subprocess.run([lowerset, "model", *options, "--weights=none", "-o", model], check=True,
                           capture_output=True)
            wide = figures(lowerset, model, batch, "f32", args.effort)
            print(f"| {title} | f32 | " + " | ".join(map(text, wide)) + " |", flush=True)
            for precision in args.types.split(","):
                narrow = figures(lowerset, model, batch, precision, args.effort)
                print(f"| | {precision} | " + " | ".join(map(text, narrow, wide)) + " |",
                      flush=True)


if __name__ == "__main__":
    main()
