#!/usr/bin/env python3
"""What values in parts save: arenas with and without them, by `lowerset sweep`.

usage: tiles.py BUILD-FOLDER [--nets NAME,...] [--precisions f32,bf16] [--points N] [--quick]

For each network and precision: the least arena found, and the least one whose step takes at most 5,
10 and 20 % longer than that of whole values without recomputation, with whole values and with
those of the ways of PARTS, the best of them; the way of the least arena is named. --quick takes the
first two ways.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import unet3d

NETS = {"unet": ("unet --size=256", 8), "resnet18": ("resnet18", 32), "resnet50": ("resnet50", 32),
        "resnet152": ("resnet152", 32), "densenet121": ("densenet121", 32),
        "densenet201": ("densenet201", 32), "vgg16": ("vgg16", 32), "gpt": ("gpt", 8),
        "vit": ("vit", 32), "picture": ("unet --size=4096 --width=16", 1),
        "cube": ("3-D unet, 128³, width 16", 1)}
# A whole vocabulary head, or its gradient, would need more than all that parts save.
MORE = {"gpt": ("--head-chunks", "64", "--head-gradient", "parts")}
# Of the largest value.
PARTS = ["8@1/4", "4@1/2", "16@1/4", "8@1/2", "16@1/2", "32@1/4"]
BANDS = ["8rows@1/4", "16rows@1/4", "4rows@1/2", "8rows@1/2"]        # of one picture
TOKENS = ["8tokens@1/4", "8@1/4", "4tokens@1/4", "16@1/4"]
ALLOWED = [0.05, 0.10, 0.20]
MIB = 2 ** 20


def sweep(o, folder, net, precision, tiles):
    """Points of one way, its least one last: (bytes, time of a step). None: it has no plan."""
    out = pathlib.Path(folder) / "sweep"
    how = [folder + "/net.onnx", "--batch", str(NETS[net][1]), "--quiet", "--precision", precision,
           *MORE.get(net, ()), "--tiles", tiles]
    done = subprocess.run(
        [str(o.build / "lowerset"), "sweep", *how, "--strategies", "auto", "--points",
         str(o.points), "--from", o.least, "-o", str(out)], capture_output=True, text=True,
        check=False)
    if done.returncode != 0:
        print(f"{tiles}: {done.stderr.strip().splitlines()[0]}", file=sys.stderr)
        return []
    said = json.loads((out / "sweep.json").read_text(encoding="utf-8"))
    points = [(s["arena_bytes"], said["base_cost"] * (1 + s["overhead"]))
              for p in said["points"] for s in p["strategies"] if s["feasible"]]
    done = subprocess.run(
        [str(o.build / "lowerset"), "plan", *how, "--budget", "min", "--json"],
        capture_output=True, text=True, check=True)
    low = json.loads(done.stdout)
    return [*points, (low["arena_bytes"], said["base_cost"] * (1 + low["overhead"]))]


def largest(o, folder, net, precision):
    """Bytes of the largest value that is in the graph."""
    graph = folder + "/graph.json"
    subprocess.run([str(o.build / "lowerset"), "plan", folder + "/net.onnx", "--batch",
                    str(NETS[net][1]), *MORE.get(net, ()), "--precision", precision, "--quiet",
                    "--plan-effort", "1", "--graph-json", graph], capture_output=True, check=True)
    with open(graph, encoding="utf-8") as f:
        return max(t["bytes"] for t in json.load(f)["tensors"] if not t.get("persistent"))


def least(points, most):
    fit = [p[0] for p in points if p[1] <= most]
    return f"{min(fit) / MIB:.1f}" if fit else "none"


def row(o, folder, net, precision):
    words, batch = NETS[net]
    if net == "cube":
        unet3d.write(folder + "/net.onnx", 128, 16, 3)
    else:
        subprocess.run([str(o.build / "lowerset"), "model", *words.split(), "--batch=0",
                        "--weights=none", "-o", folder + "/net.onnx"], check=True,
                       stdout=subprocess.DEVNULL)
    whole = sweep(o, folder, net, precision, "off")
    base = min(p[1] for p in whole)
    top = largest(o, folder, net, precision)
    parts = []
    ways = BANDS if batch == 1 else TOKENS if net in ("gpt", "vit") else PARTS
    for way in ways[:2] if o.quick else ways:
        count, part = way.split("@1/")
        parts += [(*p, f"{count}@{top // int(part) / MIB:.1f}MiB")
                  for p in sweep(o, folder, net, precision, f"{count}@{top // int(part)}")]
    for name, points in (("whole", whole), ("parts", whole + parts)):
        low = min(points)
        cells = [f"{low[0] / MIB:.1f}", f"{100 * (low[1] / base - 1):.0f} %"]
        cells += [least(points, (1 + a) * base) for a in ALLOWED]
        print("| " + " | ".join([f"{words}, {batch}", precision, name, *cells,
                                 low[2] if len(low) > 2 else ""]) + " |", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--nets", default=",".join(NETS))
    p.add_argument("--precisions", default="f32")
    p.add_argument("--points", type=int, default=9)
    p.add_argument("--least", default="12%")
    p.add_argument("--quick", action="store_true")
    o = p.parse_args()
    o.build = o.build.resolve()
    print("| network, batch | precision | values | least MiB | its time | at 5 % | 10 % | 20 % | "
          "of the least |\n|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for net in o.nets.split(","):
            for precision in o.precisions.split(","):
                row(o, folder, net, precision)


if __name__ == "__main__":
    sys.exit(main())
