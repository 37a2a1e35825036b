#!/usr/bin/env python3
"""./dev seed guide: the thirteen techniques of PyTorch's performance tuning guide (Migacz, ECCV
2020), each switched off and on where it can be measured here.

usage: seed_guide.py BUILD-FOLDER [--threads N] [--steps N] [--rounds N] [--opt N] [--quick]
                     [--only 1,6,...] [--out PAGE.md]

A row has two programs, or two ways to run one, timed in turns: ms of a step (or of a sample, where
the batches differ), and MiB of the plan. Where threads or processes run side by side, ms are those
of a clock; else those of the processor, which other programs on the machine disturb less. A
technique that has no switch has a sentence, with what was counted. Nothing here depends on PyTorch.
--quick compiles without optimisation: its times mean nothing. Exit 6 if a result that must be the
same is another.
"""
import argparse
import array
import json
import os
import pathlib
import re
import resource
import sys
import tempfile
import time
import zipfile

from seed_amp import finish, processor, run
from seed_persample import members

MIB = 2 ** 20
RESNET = "resnet18 --width=8 --stem=cifar --size=32 --classes=10"
UNET = "unet --width=8 --depth=2 --size=64"


class Row:
    """off, on: what they are called; ms, mib: pairs, or None; said: a sentence; good: it holds."""

    def __init__(self, off, on, ms=None, mib=None, said="", good=True):
        self.off, self.on, self.ms, self.mib, self.said, self.good = off, on, ms, mib, said, good


class Here:
    def __init__(self, args, folder):
        self.lowerset = pathlib.Path(args.build).resolve() / "lowerset"
        self.folder = pathlib.Path(folder)
        self.args = args
        self.quick = ["-O", "0" if args.quick else str(args.opt)]
        self.effort = ["--plan-effort", "1"] if args.quick else []

    def model(self, name, words):
        run([self.lowerset, "model", *words.split(), "-o", f"{name}.onnx"], self.folder)

    def compile(self, net, program, *options):
        """MiB of the plan: state and arena."""
        common = [f"{net}.onnx", "-q", *self.effort, *map(str, options)]
        run([self.lowerset, "compile", *common, *self.quick, "-o", program], self.folder)
        plan = json.loads(run([self.lowerset, "plan", *common, "--json"], self.folder))
        return (plan["arena_bytes"] + plan["state_bytes"]) / MIB

    def start(self, program, *options):
        """Trains on synthetic data, unless the options name some; processor seconds."""
        data = [] if "--data" in options else ["--data", "synthetic:64"]
        threads = [] if "--threads" in options else ["--threads", str(self.args.threads)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run([f"./{program}", *data, "--progress", "none", *threads, *options], self.folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def processor(self, program, *options):
        """Processor seconds of a step: what more steps take beyond one."""
        n = self.args.steps
        one, more = (self.start(program, "--steps", str(k), "--epochs", str(k), *options)
                     for k in (1, n + 1))
        return [max(more - one, 0) / n]

    def clock(self, program, *options):
        """Seconds of every step but the first two, by the clock."""
        n = self.args.steps + 3
        self.start(program, "--steps", str(n), "--epochs", str(n), "--log", "log.jsonl", *options)
        lines = [json.loads(line) for line in open(self.folder / "log.jsonl", encoding="utf-8")]
        at = [line["time"] for line in lines if "loss" in line]
        return [b - a for a, b in zip(at[1:], at[2:])]

    def pair(self, off, on, per=(1, 1), clock=False):
        """Least ms of both ways, each a list [program, option...], in turns."""
        seen = ([], [])
        for _ in range(self.args.rounds):
            for to, way in zip(seen, (off, on)):
                to += (self.clock if clock else self.processor)(*way)
        return tuple(1e3 * min(s) / n for s, n in zip(seen, per))

    def same(self, a, b):
        return (self.folder / a).read_bytes() == (self.folder / b).read_bytes()


def npz(path, **arrays):
    """name: (descr, shape, bytes)."""
    with zipfile.ZipFile(path, "w") as z:
        for name, (descr, shape, data) in arrays.items():
            head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
            head += " " * (-(10 + len(head) + 1) % 64) + "\n"
            z.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little")
                       + head.encode() + data)


def patterns(path, n):
    """Images whose class is the place of a bright square, in noise that is the same every time."""
    draw = 12345
    images, labels = array.array("f"), array.array("q")
    for k in range(n):
        label = k % 10
        for i in range(784):
            draw = (draw * 1103515245 + 12345) % 2147483648
            bright = label * 2 <= i // 28 - 4 < label * 2 + 3
            images.append(draw / 2147483648 * 0.5 + bright * 0.5)
        labels.append(label)
    npz(path, x=("<f4", (n, 1, 28, 28), images.tobytes()), label=("<i8", (n,), labels.tobytes()))


# ---- the techniques ----
def loading(here):
    n, shape = 64, (3, 96, 96)
    here.model("load", "cnn --size=96 --channels=3 --width=2 --depth=1")
    mib = here.compile("load", "load", "--batch=16")
    size = n * shape[0] * shape[1] * shape[2]
    npz(here.folder / "bytes.npz", x=("|u1", (n, *shape), bytes(k % 251 for k in range(size))),
        label=("<i8", (n,), bytes(8 * n)))
    data = ["load", "--data", "bytes.npz", "--mean", "0.5", "--std", "0.25", "--threads", "1"]
    ms = here.pair([*data, "--workers", "0"], [*data, "--workers", "1"], clock=True)
    return [Row("`--workers 0`", "`--workers 1`", ms, (mib, mib),
                "ms of the clock; images of bytes, 3x96x96, in front of a small network")]


def pinned(here):
    del here
    return [Row("", "", said="no switch: programs for GPUs copy batches from pinned memory where "
                             "the system allows it; those for processors copy none")]


def autotune(here):
    here.model("res", RESNET)
    off = here.compile("res", "priced", "--batch=16")
    here.start("priced", "--steps", "6", "--epochs", "6", "--profile", "costs.json")
    on = here.compile("res", "timed", "--batch=16", "--costs=costs.json")
    return [Row("kernels by predicted costs", "by measured costs: `--profile`, `--costs`",
                here.pair(["priced"], ["timed"]), (off, on),
                "ResNet-18, 8 channels; with GPUs `--tune` times cuDNN's and cuBLASLt's kernels")]


def larger_batch(here):
    here.model("res", RESNET)
    off, on = (here.compile("res", f"batch{n}", f"--batch={n}") for n in (4, 32))
    most = max_batch(here, "res", "64MiB")
    return [Row("batch 4", "batch 32", here.pair(["batch4"], ["batch32"], (4, 32)), (off, on),
                f"ms of a sample; `--max-batch` finds {most['auto']} samples in 64 MiB")]


def max_batch(here, net, budget):
    """The largest batch by strategy."""
    said = run([here.lowerset, "plan", f"{net}.onnx", "--max-batch", f"--budget={budget}", "-q",
                "--json", "--plan-effort", "1"], here.folder)
    found = json.JSONDecoder().raw_decode(said[said.index("{"):])[0]
    return {row["strategy"]: row["batch"] for row in found["strategies"]}


def loss_after(here, program, *options):
    said = run([f"./{program}", "--data", "squares.npz", "--progress", "none", *options],
               here.folder)
    return float(re.findall(r"loss ([0-9.e+-]+)", said)[-1])


def large_batch_rates(here):
    patterns(here.folder / "squares.npz", 320)
    here.model("digits", "digits --width=8 --seed=1")
    small = here.compile("digits", "small", "--batch=16", "--optimizer=sgd:momentum=0.9")
    large = here.compile("digits", "lamb", "--batch=80", "--optimizer=lamb")
    here.compile("digits", "plain", "--batch=80", "--optimizer=sgd:momentum=0.9")
    epochs = ["--epochs", "3"]
    seen = [loss_after(here, "small", *epochs, "--lr", "0.01"),
            loss_after(here, "plain", *epochs, "--lr", "0.01"),
            loss_after(here, "lamb", *epochs, "--lr", "0.1", "--schedule", "cosine:warmup=2")]
    ms = here.pair(["small", "--data", "squares.npz"], ["lamb", "--data", "squares.npz"],
                   (16, 80))
    return [Row("batch 16, SGD", "batch 80, LAMB with warm-up and cosine", ms, (small, large),
                f"ms of a sample; loss of the third epoch {seen[0]:.3g} and {seen[2]:.3g}; with "
                f"batch 80 and the rate of batch 16 SGD has {seen[1]:.3g}")]


def dropped_bias(here):
    rows = []
    for name, words, batch in (("U-Net", UNET, 4), ("ResNet-18", RESNET, 16)):
        here.model("biased", f"{words} --bias=on")
        off = here.compile("biased", "with", f"--batch={batch}")
        on = here.compile("biased", "without", f"--batch={batch}", "--drop-bias")
        said = run([here.lowerset, "plan", "biased.onnx", f"--batch={batch}", "--drop-bias",
                    "--plan-effort", "1"], here.folder)
        n = re.search(r"(\d+) biases of (\d+) elements", said)
        losses = [loss_of(here, p) for p in ("with", "without")]
        near = abs(losses[0] - losses[1]) <= 1e-5 * abs(losses[0])
        rows.append(Row("biases in front of batch norms", "`--drop-bias`",
                        here.pair(["with"], ["without"]), (off, on),
                        f"{name} with {n.group(1)} such biases; losses of the first update "
                        f"{losses[0]:.8g} and {losses[1]:.8g}", near))
    return rows


def loss_of(here, program):
    """Of a first update."""
    run([f"./{program}", "--data", "synthetic:64", "--progress", "none", "--steps", "1", "--dump",
         "out.npz"], here.folder)
    return members(here.folder / "out.npz")["loss"][1][0]


def gradients_assigned(here):
    here.model("res", RESNET)
    run([here.lowerset, "compile", "res.onnx", "-q", "--batch=4", "--emit=c", *here.effort, "-o",
         "res.c"], here.folder)
    text = (here.folder / "res.c").read_text(encoding="utf-8")
    n = len(re.findall(r"\bmemset\b", text))
    return [Row("", "", said="no switch: in every step the node that makes a gradient assigns "
                             f"it; ResNet-18's program has {n} calls of memset")]


def checks_off(here):
    here.model("res", RESNET)
    mib = here.compile("res", "plain", "--batch=16")
    ms = here.pair(["plain", "--check-numerics"], ["plain"])
    return [Row("`--check-numerics`", "no checks (default)", ms, (mib, mib), "ResNet-18")]


def processes(here):
    here.model("digits", "digits --seed=1")
    one = here.compile("digits", "one", "--batch=32", "--microbatches=2")
    two = here.compile("digits", "two", "--batch=32", "--microbatches=2", "--ranks=2")
    end = ["--threads", "1"]
    ms = here.pair(["one", *end], ["two", *end], clock=True)
    for program in ("one", "two"):
        run([f"./{program}", "--data", "synthetic:64", "--progress", "none", "--steps", "3",
             "--epochs", "3", "--no-export-notes", "--export", f"{program}.onnx", *end],
            here.folder)
    same = here.same("one.onnx", "two.onnx")
    return [Row("one process of one thread", "`--ranks 2`", ms, (one, two),
                "ms of the clock, MiB of each process; there is no DataParallel of one process; "
                f"trained weights have {'the same' if same else 'OTHER'} bits", same)]


def lengths(here):
    here.model("gpt", "gpt --width=32 --depth=2 --heads=2 --context=64 --vocab=64")
    with open(here.folder / "text.jsonl", "w", encoding="ascii") as f:
        for k in range(96):
            n = 60 if k % 8 == 0 else 5 + k % 11
            f.write(json.dumps({"input_ids": [(k * 7 + i) % 64 for i in range(n)]}) + "\n")
    count = ["--batch=4", "--ignore-index=-100"]
    off = here.compile("gpt", "padded", *count)
    on = here.compile("gpt", "packed", *count, "--segments")
    seen = []
    for way in (["padded"], ["packed", "--pack"]):
        times = [epoch_of(here, way) for _ in range(here.args.rounds)]
        seen.append((min(t for t, _ in times), times[0][1]))
    return [Row("a sample a row", "`--segments`, `--pack`", (1e3 * seen[0][0], 1e3 * seen[1][0]),
                (off, on), "ms of the clock of an epoch of 96 samples of 5 to 60 tokens: "
                f"{seen[0][1]} and {seen[1][1]} steps. All steps have the same shape, so that "
                "ranks wait for none")]


def epoch_of(here, way):
    """Seconds and steps of the second epoch."""
    run([f"./{way[0]}", "--data", "text.jsonl", "--progress", "none", "--epochs", "2", "--log",
         "log.jsonl", "--threads", str(here.args.threads), *way[1:]], here.folder)
    lines = [json.loads(line) for line in open(here.folder / "log.jsonl", encoding="utf-8")]
    at = [line["time"] for line in lines if "loss" in line and "lr" in line]
    n = len(at) // 2
    return at[-1] - at[n - 1], n


def sixteen_bits(here):
    here.model("unet", UNET)
    off = here.compile("unet", "f32", "--batch=4", "--optimizer=adam")
    on = here.compile("unet", "bf16", "--batch=4", "--optimizer=adam", "--precision=bf16")
    return [Row("`--precision=f32`", "`--precision=bf16`", here.pair(["f32"], ["bf16"]), (off, on),
                "U-Net; updates and norms are single kernels in either")]


def recomputation(here):
    here.model("res", RESNET)
    most = max_batch(here, "res", "24MiB")
    off = here.compile("res", "kept", f"--batch={most['none']}", "--budget=24MiB",
                       "--recompute=none")
    on = here.compile("res", "again", f"--batch={most['auto']}", "--budget=24MiB")
    ms = here.pair(["kept"], ["again"], (most["none"], most["auto"]))
    return [Row(f"`--recompute=none`: batch {most['none']}",
                f"`--budget=24MiB`: batch {most['auto']}", ms, (off, on),
                "ResNet-18, the largest batches within 24 MiB; ms of a sample: "
                + ("faster" if ms[1] < ms[0] else "the larger batch is not faster here"))]


def fused(here):
    here.model("gpt", "gpt --width=32 --depth=2 --heads=2 --context=64 --vocab=64")
    counts = []
    for stage in ("import", "split"):
        said = run([here.lowerset, "plan", "gpt.onnx", "--batch=2", "--dump", stage, "-q",
                    "--plan-effort", "1"], here.folder)
        nodes = said.split("# after")[1].split("\n")     # the training graph is the first
        counts.append(sum(bool(re.match(r" +\d+ forward ", n)) for n in nodes))
    return [Row("", "", said="no switch: chains of pointwise nodes, such as GELU, are one kernel; "
                             f"the forward part of a GPT of two layers has {counts[0]} nodes in "
                             f"the file and {counts[1]} kernels", good=0 < counts[1] < counts[0])]


TECHNIQUES = [
    ("load data in other threads", loading), ("pinned memory", pinned),
    ("choose kernels by measurement", autotune), ("a larger batch", larger_batch),
    ("rates and optimizers for large batches", large_batch_rates),
    ("no bias in front of a batch norm", dropped_bias),
    ("gradients are assigned, not set to zero", gradients_assigned),
    ("checks are off", checks_off), ("a process for each device", processes),
    ("balance samples of different length", lengths),
    ("16 bits, fused optimizers and norms", sixteen_bits),
    ("recomputation for a larger batch", recomputation), ("fuse pointwise operations", fused),
]


def line(number, title, row):
    ms = f"{row.ms[0]:.3g} → {row.ms[1]:.3g}" if row.ms else ""
    mib = f"{row.mib[0]:.1f} → {row.mib[1]:.1f}" if row.mib else ""
    return (f"| {number} | {title} | {row.off} | {row.on} | {ms} | {mib} | {row.said}"
            f"{'' if row.good else ' **wrong**'} |")


def given():
    """The options of this run, but for the page, which ./dev names."""
    words = sys.argv[2:]
    if "--out" in words:
        at = words.index("--out")
        words = words[:at] + words[at + 2:]
    return "".join(f" {w}" for w in words)


def page(text, args, busy):
    return f"""# The techniques of a tuning guide

Made {time.strftime('%Y-%m-%d')} by `./dev seed guide{given()}` on
{processor()}, {args.threads} thread{'s' if args.threads > 1 else ''}; do not edit. At its start
{busy} of {os.cpu_count()} processors were busy with other programs.

The thirteen techniques of PyTorch's performance tuning guide, each off and on. *ms* is the least
of {args.rounds} rounds in turns, of {args.steps} steps each, on synthetic data: of the clock in the
rows of threads, processes and lengths, else of the processor. *MiB* is the plan: state and
arena.

{text}
"""


def options():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--steps", type=int, default=6, help="of a round, but for two at its start")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--opt", type=int, default=3, help="optimisation of the C compiler")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--only", default=",".join(map(str, range(1, 14))))
    p.add_argument("--out")
    return p.parse_args()


def main():
    args = options()
    only = {int(k) for k in args.only.split(",")}
    text = ["| | technique | off | on | ms | MiB | |", "|--:|---|---|---|--:|--:|---|"]
    good, busy = True, f"{min(os.getloadavg()[0], os.cpu_count()):.1f}"
    with tempfile.TemporaryDirectory() as made:
        here = Here(args, made)
        for number, (title, measure) in enumerate(TECHNIQUES, 1):
            for row in measure(here) if number in only else []:
                text.append(line(number, title, row))
                good &= row.good
                print(text[-1], flush=True)
            if args.out:                # so far
                pathlib.Path(args.out).write_text(page("\n".join(text), args, busy), "utf-8")
    return finish(args.out, page("\n".join(text), args, busy), good)


if __name__ == "__main__":
    sys.exit(main())
