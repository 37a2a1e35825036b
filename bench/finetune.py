#!/usr/bin/env python3
"""Fine-tuning inside a memory limit, beside PyTorch with peft, as tables for docs/lab/finetune.md.

usage: finetune.py BUILD-FOLDER [--nets NAMES] [--ways NAMES] [--rounds N] [--steps N]
                   [--threads N] [--tokens N] [--work FOLDER]

PYTHON is one with torch, transformers, peft and onnx. Networks: finetune_run.py. Every program of
ours runs in a control group whose memory the kernel limits to 1.02 of the plan's bytes (where none
can be made, without: the heading says so); a run that the limit ends is told. Its resident peak is
the kernel's mark of the process. Ways run in turns, and a figure is the median of its rounds.
--work keeps the exported networks from one call to the next.
"""
import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
NETS = {"gpt2": "GPT-2, 124 million parameters", "qwen05": "Qwen2.5-0.5B, 494 million parameters"}
LORA = {"gpt2": "c_attn,c_proj", "qwen05": "q_proj,v_proj"}
TABLES = {"gpt2": "wte,lm_head,wpe", "qwen05": "embed_tokens,lm_head"}
OURS = {"full": "", "full-bf16": "--precision bf16", "lora": "{lora}",
        "lora-bf16": "{lora} --precision bf16",
        "lora-nf4": "{lora} --quantize-frozen nf4-double --quantize-frozen bf16:{tables}",
        "lora-nf4-bf16": "{lora} --quantize-frozen nf4-double --quantize-frozen bf16:{tables} "
                         "--precision bf16"}
PEER = ["full", "full-again", "lora", "lora-again", "lora-bf16", "lora-bf16-again"]
GROUPS = "/sys/fs/cgroup/memory"


def environment(o):
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    return {**env, "OMP_NUM_THREADS": str(o.threads)}


def own_group():
    """The folder of this process's group, where a group with a limit can be made; else None."""
    try:
        with open("/proc/self/cgroup", encoding="ascii") as f:
            lines = [line.strip().split(":", 2) for line in f]
        for _, names, path in lines:
            root = "/sys/fs/cgroup" if names == "" else GROUPS
            if names in ("", "memory") and os.access(root + path, os.W_OK):
                file = "memory.max" if names == "" else "memory.limit_in_bytes"
                probe = pathlib.Path(root + path) / f"lowerset-{os.getpid()}"
                probe.mkdir()
                good = (probe / file).exists()
                probe.rmdir()
                if good:
                    return pathlib.Path(root + path), file
    except OSError:
        pass
    return None


def run_limited(argv, limit, env):
    """Runs a program inside the limit. Returns exit code, output, MiB at its peak."""
    place = own_group()
    group = None
    if place is not None:
        group = place[0] / f"lowerset-{os.getpid()}"
        group.mkdir()
        (group / place[1]).write_text(str(limit))

    def enter():
        if group is not None:
            (group / "cgroup.procs").write_text("0")
    p = subprocess.Popen(argv, env=env, preexec_fn=enter, text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT)
    said = p.stdout.read()
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    if group is not None:
        group.rmdir()
    return p.returncode, said, usage.ru_maxrss / 1024


def compiled(o, build, net, way, model, folder):
    """The program of one way at its least budget that costs little, and the plan's bytes."""
    options = OURS[way].format(lora=f"--lora r=8,alpha=16:{LORA[net]}", tables=TABLES[net]).split()
    program = f"{folder}/{net}-{way}"
    argv = [str(build / "lowerset"), "compile", model, *options, "--optimizer", "adamw",
            "--loss", "ce", "--head-chunks", "8", "--budget", o.budget, "-o", program]
    done = subprocess.run(argv, text=True, capture_output=True, env=environment(o), check=False)
    if done.returncode != 0:
        print(f"{net} {way}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    plan = subprocess.run([program, "--print-plan"], text=True, capture_output=True, check=True)
    return program, int(re.search(r"^state .* total (\d+) ", plan.stdout, re.M)[1])


def ours(o, program, total):
    env = environment(o)
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/log"
        code, said, peak = run_limited(
            [program, "--data", "synthetic:8", "--steps", str(o.steps + 1), "--lr", "1e-4",
             "--threads", str(o.threads), "--progress", "none", "--log", log],
            int(total * 1.02), env)
        if code != 0:
            return {"failed": said.strip()[-200:] or f"ended by the limit ({code})"}
        with open(log, encoding="utf-8") as f:
            rows = [json.loads(line) for line in f]
    times = [r["time"] for r in rows if "lr" in r]
    losses = [r["loss"] for r in rows if "lr" in r]
    steps = [1e3 * (b - a) for a, b in zip(times, times[1:])]
    return {"ms": statistics.median(steps), "peak_mib": peak, "first": losses[0],
            "last": losses[-1]}


def peer(o, net, way):
    done = subprocess.run([sys.executable, str(HERE / "finetune_run.py"), "train", net, way,
                           "--steps", str(o.steps), "--threads", str(o.threads), "--tokens",
                           str(o.tokens)], env=environment(o), text=True, capture_output=True,
                          check=False)
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or ["?"])[-1][-200:]}
    return json.loads(done.stdout.splitlines()[-1])


def row(name, plan, rows):
    good = [r for r in rows if "failed" not in r]
    if not good:
        print(f"| {name} | {plan} | {rows[0]['failed'] if rows else 'did not run'} | | |",
              flush=True)
        return
    middle = {k: statistics.median(r[k] for r in good) for k in ("ms", "peak_mib", "first")}
    print(f"| {name} | {plan} | {middle['peak_mib']:.0f} | {middle['ms']:.0f} | "
          f"{middle['first']:.4f} |", flush=True)


def table(o, build, net, folder):
    model = f"{o.work or folder}/{net}-{o.tokens}.onnx"
    if not os.path.exists(model):
        subprocess.run([sys.executable, str(HERE / "finetune_run.py"), "export", net, model,
                        "--tokens", str(o.tokens)], check=True, capture_output=True)
    made = {w: compiled(o, build, net, w, model, folder) for w in OURS if w in o.ways}
    runs = [("ours", w) for w in made if made[w]] + [("peft", w) for w in PEER
                                                     if f"peft-{w}" in o.ways]
    seen = {r: [] for r in runs}
    for _ in range(o.rounds):
        for who, way in runs:
            seen[who, way].append(ours(o, *made[way]) if who == "ours" else peer(o, net, way))
    print(f"\n{NETS[net]}, 1 x {o.tokens} tokens, r = 8 on {LORA[net]}, AdamW:\n")
    print("| way | plan, MiB | resident peak, MiB | ms a step | first loss |")
    print("|---|---|---|---|---|")
    for (who, way), rows in seen.items():
        plan = f"{made[way][1] / 2**20:.0f}" if who == "ours" else ""
        row(f"{who}: {way}", plan, rows)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--nets", default=",".join(NETS))
    p.add_argument("--ways", default=",".join([*OURS, *(f"peft-{w}" for w in PEER)]))
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--tokens", type=int, default=512)
    p.add_argument("--budget", default="40%")
    p.add_argument("--work")
    o = p.parse_args()
    o.ways = o.ways.split(",")
    limited = "by a control group" if own_group() else "not, as no control group can be made"
    print(f"{o.threads} threads, {o.steps} steps, {o.rounds} rounds; memory is limited {limited}")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(dir=o.work) as folder:
        for net in o.nets.split(","):
            table(o, o.build.resolve(), net, folder)


if __name__ == "__main__":
    sys.exit(main())
