#!/usr/bin/env python3
"""What fine-tuning fits into 4, 8 and 16 GiB, by `lowerset plan`, as a table for
docs/lab/finetune.md.

usage: fits.py BUILD-FOLDER [--nets NAMES] [--tokens N,N] [--work FOLDER]

Networks like Llama of the sizes of published ones, one sample; adapters of rank 8 on q_proj and
v_proj. Their weights are files of holes: a plan reads none. For each way of keeping the frozen
weights, the memory of the whole program at its least, and what recomputation costs there.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

MAKE = pathlib.Path(__file__).resolve().parent.parent / "tests/whole/large_model.py"
NETS = {"0.7 billion": "layers=24 width=896 hidden=4864 vocab=151936 heads=14",
        "1.6 billion": "layers=16 width=2048 hidden=8192 vocab=128256 heads=32",
        "4.0 billion": "layers=28 width=3072 hidden=8192 vocab=128256 heads=24",
        "7.0 billion": "layers=32 width=4096 hidden=11008 vocab=64000 heads=32"}
TABLES = "bf16:embed_tokens,lm_head"
WAYS = {"float32": [], "bf16": ["--quantize-frozen", "bf16", "--quantize-frozen", TABLES],
        "int8": ["--quantize-frozen", "int8", "--quantize-frozen", TABLES],
        "nf4": ["--quantize-frozen", "nf4-double", "--quantize-frozen", TABLES]}
GIB = 2 ** 30


def planned(build, model, ways):
    """Bytes in all, and the share of a step that is run again; None: there is no such plan."""
    argv = [str(build / "lowerset"), "plan", model, "--lora", "r=8:q_proj,v_proj", "--optimizer",
            "adamw", "--loss", "ce", "--head-chunks", "auto", "--budget", "min", "--plan-effort",
            "2", *ways]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    total = re.search(r"^ *total +([0-9.]+) (KiB|MiB|GiB)", done.stdout, re.M)
    again = re.search(r"recomputation costs +([0-9.-]+) %", done.stdout)
    if done.returncode != 0 or not total or not again:
        print(done.stderr.strip()[-300:], file=sys.stderr)
        return None
    return float(total[1]) * {"KiB": 2 ** 10, "MiB": 2 ** 20, "GiB": GIB}[total[2]], float(again[1])


def cell(found):
    if found is None:
        return "?"
    room = next((f"{n} GiB" for n in (4, 8, 16) if found[0] <= n * GIB * 0.95), "more")
    return f"{found[0] / GIB:.2f} GiB, {found[1]:.0f} % ({room})"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--nets", default=",".join(NETS))
    p.add_argument("--tokens", default="512,2048")
    p.add_argument("--work")
    o = p.parse_args()
    print("| parameters | tokens | " + " | ".join(WAYS) + " |")
    print("|---" * (2 + len(WAYS)) + "|")
    with tempfile.TemporaryDirectory(dir=o.work) as folder:
        for net in o.nets.split(","):
            for tokens in o.tokens.split(","):
                model = f"{folder}/net.onnx"
                subprocess.run([sys.executable, str(MAKE), model, *NETS[net].split(),
                                f"tokens={tokens}"], check=True)
                cells = [cell(planned(o.build, model, way)) for way in WAYS.values()]
                print(f"| {net} | {tokens} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
