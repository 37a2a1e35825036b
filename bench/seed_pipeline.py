#!/usr/bin/env python3
"""./dev seed pipeline: an autoencoder on two ranks in a pipeline beside one device; the known
experiment as a table.

usage: seed_pipeline.py BUILD-FOLDER [--inputs FOLDER] [--steps N] [--rounds N]
                        [--order gpipe|1f1b|zb]
                        [--only checks|times|picture] [--out PAGE.md]

The network is the convolutional autoencoder of digits (`lowerset model autoencoder`), with Adam and
squared errors. Rows: one device; split in two, one batch at a time; a pipeline of two with 8, 16
and 32 micro-batches, `except-last`, `all` and `none`. Once at the batches of the known experiment,
and once at equal updates, all at one batch. Each rank has one thread. Checks: weights after some
steps, byte for byte those of one device with as many micro-batches. Picture: MNIST (FOLDER/mnist,
default ../shared/inputs), 3 epochs of 2,048 images. Exit 6 if a check fails.
"""
import argparse
import gzip
import os
import pathlib
import re
import sys
import tempfile
import time

from seed_amp import HERE, finish, processor, run
from stage_rows import build, busy, measure, only, predicted

IMAGES, EPOCHS = 60000, 10
# name, seconds of 10 epochs in the known experiment, options of the pipeline, batch there
ROWS = [["one device", 103.67, [], 32],
        ["split in two, no overlap", 112.99, ["--stages=2"], 32],
        ["pipeline, except-last, 8", 130.96,
         ["--stages=2", "--microbatches=8", "--recompute=except-last"], 256],
        ["pipeline, all, 8", None, ["--stages=2", "--microbatches=8", "--recompute=all"], 256],
        ["pipeline, none, 8", 87.23, ["--stages=2", "--microbatches=8", "--recompute=none"], 256],
        ["pipeline, none, 16", 79.36, ["--stages=2", "--microbatches=16", "--recompute=none"], 512],
        ["pipeline, none, 32", 75.99, ["--stages=2", "--microbatches=32", "--recompute=none"],
         1024]]
EQUAL = 256             # batch of the rows at equal updates
CHECKED = 20            # steps after which weights are compared


NET = ["autoencoder.onnx", "--loss=mse", "--loss-input=x_hat", "--optimizer=adam"]


def options_of(row, args):
    return [*row[2], *([f"--order={args.order}"] if "--stages=2" in row[2] else [])]


# ---- times ----
def table(rows, with_seed):
    head = "| row | batch | step, ms | predicted, ms | bubble | 10 epochs, s | of one device |"
    text = [head + (" known experiment, s | of one GPU |" if with_seed else "")
            + " largest rank, MiB |",
            "|---|--:|--:|--:|--:|--:|--:|" + ("--:|--:|" if with_seed else "") + "--:|"]
    for r in rows:
        step, bubble, rank = predicted(r)
        line = f"| {r['name']} | {r['batch']} | {1e3 * r['step']:.1f} | {1e3 * step:.1f} | " \
               f"{100 * bubble:.1f} % | " \
            f"{r['epochs']:.1f} | {r['epochs'] / rows[0]['epochs']:.2f} |"
        if with_seed:
            line += (f" {r['seed']:.2f} | {r['seed'] / rows[0]['seed']:.2f} |" if r["seed"]
                     else " | |")
        text.append(line + f" {rank:.1f} |")
    return "\n".join(text)


def names_in_order(rows, key):
    return " < ".join(r["name"] for r in sorted(rows, key=key))


def times(folder, lowerset, args):
    parts = []
    for title, batch_of in (("At the batches of the known experiment", lambda row: row[3]),
                            ("At equal updates", lambda row: EQUAL)):
        rows = [build(folder, lowerset, NET, row[0], batch_of(row), options_of(row, args),
                      f"t{k}", True)
                for k, row in enumerate(ROWS)]
        rows = [{**row, "seed": seed[1]} for row, seed in zip(rows, ROWS) if row]
        measure(rows, folder, args.rounds, lambda batch: args.steps * max(1, 256 // batch))
        for row in rows:
            row["epochs"] = row["step"] * -(-IMAGES // row["batch"]) * EPOCHS
        with_seed = title != "At equal updates"
        parts.append(f"## {title}\n\n{table(rows, with_seed)}\n\nBy the simulator: "
                     f"{names_in_order(rows, lambda r: predicted(r)[0] / r['batch'])}.\n\n"
                     f"Measured: "
                     f"{names_in_order(rows, lambda r: r['step'] / r['batch'])}.\n")
        print(parts[-1], flush=True)
    return parts


# ---- checks ----
def weights(folder, program):
    run([f"./{program}", "--data", "synthetic:1024", "--steps", CHECKED, "--threads", "1",
         "--lr", "1e-3", "--progress", "none", "--export", f"{program}.out.onnx"], folder)
    return (folder / f"{program}.out.onnx").read_bytes()


def checks(folder, lowerset, args):
    """Rows [what, good]."""
    rows = []
    for row in ROWS[2:]:
        micros = only(row[2], "--microbatches")
        if not build(folder, lowerset, NET, row[0], 128, options_of(row, args), "piped"):
            continue
        build(folder, lowerset, NET, "one device", 128, micros, "alone")
        rows.append([f"{row[0]}: weights after {CHECKED} steps are those of one device with "
                     f"`{micros[0]}`",
                     weights(folder, "piped") == weights(folder, "alone")])
    text = ["| check | |", "|---|---|"] + [f"| {what} | {'yes' if good else '**no**'} |"
                                           for what, good in rows]
    return "\n".join(text), all(good for _, good in rows)


# ---- picture ----
def picture(folder, lowerset, inputs, out, args):
    """Trains on MNIST in a pipeline; the losses of its epochs, or None without the data."""
    if not (inputs / "mnist").is_dir():
        return None
    images = gzip.decompress((inputs / "mnist/train-images-idx3-ubyte.gz").read_bytes())
    images = images[:16 + 2048 * 784]
    (folder / "some.idx").write_bytes(images[:4] + (2048).to_bytes(4, "big") + images[8:])
    test = gzip.decompress((inputs / "mnist/t10k-images-idx3-ubyte.gz").read_bytes())
    (folder / "test.idx").write_bytes(test)
    build(folder, lowerset, NET, "digits", 32,
          ["--stages=2", "--microbatches=4", f"--order={args.order}"], "digits")
    said = run(["./digits", "--data", "some.idx", "--val", "test.idx", "--label-from", "x",
                "--epochs", "3", "--threads", "1", "--lr", "1e-3",
                "--progress", "none", "--image-grid", out], folder)
    return [float(x) for x in re.findall(r"val_loss ([0-9.e-]+)", said)]


def page(parts, args, load):
    return f"""# An autoencoder in a pipeline of two

Made {time.strftime('%Y-%m-%d')} by `./dev seed pipeline` on {processor()}; do not edit. At its
start {load} of {os.cpu_count()} processors were busy with other programs.

The network is a convolutional autoencoder of digits, 2.4 million parameters, a code of 32 numbers;
squared errors, Adam. Ranks are threads of one process, of one thread each, in the order
`{args.order}`. The known experiment ran on two RTX 3090 under PyTorch 2.1. It took larger batches
for more micro-batches, and so made fewer updates. A step is the median of {args.rounds} rounds in
turns on synthetic data; 10 epochs are its steps for 60,000 images. *Predicted* and *bubble* are
those of the simulator ([micro-batches.md](../micro-batches.md)), from times of single kernels,
measured in a pipeline with `none` and the same parts (`--profile`, `--costs`).

{parts}"""


def options():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--inputs", default=str(HERE.parent.parent / "shared/inputs"))
    p.add_argument("--steps", type=int, default=4,
                   help="of a round, but for two at its start; more for small batches")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--order", default="gpipe", choices=["gpipe", "1f1b", "zb"])
    p.add_argument("--only", choices=["checks", "times", "picture"])
    p.add_argument("--out")
    return p.parse_args()


def main():
    args = options()
    lowerset = pathlib.Path(args.build).resolve() / "lowerset"
    parts, good, load = [], True, busy()
    image = pathlib.Path(args.out).with_suffix(".png") if args.out \
        else pathlib.Path("autoencoder.png")
    image = image.resolve()
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        run([lowerset, "model", "autoencoder", "-o", "autoencoder.onnx"], folder)
        if args.only in (None, "checks"):
            text, good = checks(folder, lowerset, args)
            parts.append(f"## Checks\n\n{text}\n")
            print(parts[-1], flush=True)
        if args.only in (None, "times"):
            parts += times(folder, lowerset, args)
        losses = picture(folder, lowerset, pathlib.Path(args.inputs), image,
                         args) if args.only in (None, "picture") else None
    if losses:
        parts.append(f"## Picture\n\nTest images, their codes, and what the decoder makes of them, "
                     f"after 3 epochs of 2,048 images of "
                     f"MNIST; loss of the test images after each: "
                     f"{', '.join(f'{x:.4f}' for x in losses)}.\n\n"
                     f"![inputs, codes, outputs]({image.name})\n")
        print(parts[-1], flush=True)
    return finish(args.out, page("\n".join(parts), args, load), good)


if __name__ == "__main__":
    sys.exit(main())
