#!/usr/bin/env python3
"""Steps of pipelines of two beside those that the simulator predicts.

    ./dev bench stages [--net NAME]... [--order ORDER]... [--rounds R] [--steps N]

Networks: the autoencoder of digits with parts of 32 images, and a U-Net with parts of one image of
128 x 128; 8 parts a step. Stages are threads of one process, of one thread each. Predictions come
from the times of single kernels, measured in a pipeline with `none`. All rows take turns; a step is
the median over all rounds. Where other programs run as well, the head says so.
"""
import argparse
import os
import pathlib
import sys
import tempfile

from seed_amp import run
from stage_rows import build, busy, measure, predicted

NETS = {"autoencoder": ([], ["--loss=mse", "--loss-input=x_hat", "--optimizer=adam"], 256),
        "unet": (["--size=128"], ["--optimizer=adam"], 8)}
ORDERS = ("gpipe", "1f1b", "zb")


def ways(orders):
    return [("one process", [])] + [
        (f"{order}, {mode}", ["--stages=2", f"--order={order}", f"--recompute={mode}"])
        for order in orders for mode in ("none", "except-last", "all")]


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--net", action="append", choices=list(NETS))
    p.add_argument("--order", action="append", choices=ORDERS)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=4)
    a = p.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("two stages need two cores")
    print(f"{busy()} processors were busy with other programs")
    print(f"{'network':12} {'way':20} {'step, ms':>9} {'predicted':>10} {'':>8} {'bubble':>8} "
          f"{'rank, MiB':>10}")
    lowerset = pathlib.Path(a.build).resolve() / "lowerset"
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        for name in a.net or NETS:
            model, options, batch = NETS[name]
            run([lowerset, "model", name, *model, "-o", f"{name}.onnx"], folder)
            rows = [build(folder, lowerset, [f"{name}.onnx", *options], way, batch,
                          ["--microbatches=8", *more], f"t{k}", True)
                    for k, (way, more) in enumerate(ways(a.order or ORDERS))]
            rows = [row for row in rows if row]
            measure(rows, folder, a.rounds, lambda batch: a.steps)
            for row in rows:
                step, bubble, rank = predicted(row)
                print(f"{name:12} {row['name']:20} {1e3 * row['step']:9.1f} {1e3 * step:10.1f} "
                      f"{step / row['step'] - 1:+8.1%} "
                      f"{bubble:8.1%} {rank:10.1f}", flush=True)


if __name__ == "__main__":
    main()
