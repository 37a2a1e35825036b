#!/usr/bin/env python3
"""Cuts of networks into stages of a pipeline: how far the slowest stage is from the proven bound,
and what a cut in list order into equal times would take.
   python3 bench/pipeline.py BUILD-FOLDER [--mode MODE] [--order ORDER] [MODEL.onnx ...]
Without models: those of the zoo."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

STAGES = (2, 4, 8)
ZOO = [("autoencoder", []), ("cnn", []), ("densenet121", []), ("densenet201", []), ("digits", []),
       ("googlenet", []),
       ("gpt", ["--context=256"]), ("mlp", ["--depth=8"]), ("pspnet50", ["--size=233"]),
       ("resnet18", []), ("resnet50", []),
       ("resnet152", []), ("unet", ["--size=256"]), ("vgg16_bn", []), ("vgg19", [])]


def plan(lowerset, model, stages, args):
    command = [lowerset, "plan", model, "--json", "--quiet", f"--stages={stages}",
               "--plan-effort=2", f"--order={args.order}", f"--recompute={args.mode}"]
    run = subprocess.run([*command, f"--microbatches={2 * stages}", f"--batch={4 * stages}"],
                         capture_output=True, text=True)
    if "the file fixes the first dimension" in run.stderr:
        # a cut does not depend on their number
        run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        return None, run.stderr.strip().splitlines()[0] if run.stderr else "?"
    line = json.loads(run.stdout)["pipeline"]
    return line, line["plans"][line["chosen"]].get("note", "")


def row(lowerset, name, model, args):
    out, notes = [name], []
    for stages in STAGES:
        start = time.time()
        line, note = plan(lowerset, model, stages, args)
        if line is None:
            out += ["-", "-", "-", ""]
        else:
            best = line["plans"][line["chosen"]]
            out += [f"{best['bottleneck_ns'] * 1e-6:.4g} ms",
                    f"{100 * best['gap']:.2f} %" if "gap" in best else "no proof",
                    f"{100 * (line['list_order_ns'] / line['best_cut_ns'] - 1):.1f} %"]
            print(f"{name} {stages}: {time.time() - start:.1f} s", file=sys.stderr)
        if note:
            notes.append(f"{stages}: {note}")
    print("| " + " | ".join(x for x in out if x != "") + " |", flush=True)
    for note in notes:
        print(note, file=sys.stderr)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--mode", default="auto")
    p.add_argument("--order", default="1f1b")
    p.add_argument("models", nargs="*")
    args = p.parse_intermixed_args()
    lowerset = str(args.build / "lowerset")
    print("| network |" + "".join(f" slowest of {k} | gap | list order |" for k in STAGES))
    print("|---|" + "---|" * 3 * len(STAGES))
    for model in args.models:
        row(lowerset, pathlib.Path(model).stem, model, args)
    with tempfile.TemporaryDirectory() as folder:
        for name, options in ZOO if not args.models else []:
            model = f"{folder}/{name}.onnx"
            subprocess.run([lowerset, "model", name, "--weights=none", "-o", model, *options],
                           check=True, stdout=subprocess.DEVNULL)
            row(lowerset, name, model, args)


if __name__ == "__main__":
    main()
