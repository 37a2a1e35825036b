#!/usr/bin/env python3
"""What values in parts of the samples, or of the rows of one picture, save: least arenas with whole
values and in parts, and what both cost, by `lowerset plan`.

usage: tiles.py BUILD-FOLDER [NET,...]
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import unet3d

NETS = {"resnet18": ("resnet18", 32, "auto"), "vgg16": ("vgg16", 32, "auto"),
        "unet": ("unet --size=256", 8, "auto"), "resnet50": ("resnet50", 32, "auto"),
        "densenet121": ("densenet121", 32, "auto"),
        "picture": ("unet --size=4096 --width=16", 1, "4rows@1000MiB"),
        "cube": ("3-D unet, 192³, width 16", 1, "4rows@400MiB")}
MIB = 2 ** 20


def plan(build, folder, batch, *more):
    done = subprocess.run([str(build / "lowerset"), "plan", folder + "/net.onnx", "--batch",
                           str(batch), "--bn", "train", "--budget", "min", "--json", "-q", *more],
                          capture_output=True, text=True, check=False)
    return json.loads(done.stdout)


def write(build, folder, net):
    words = NETS[net][0]
    if net == "cube":
        unet3d.write(folder + "/net.onnx", 192, 16, 3)
        return
    subprocess.run([str(build / "lowerset"), "model", *words.split(), "--batch=0",
                    "--weights=none", "-o", folder + "/net.onnx"], check=True,
                   stdout=subprocess.DEVNULL)


def row(build, folder, net):
    words, batch, tiles = NETS[net]
    write(build, folder, net)
    whole = plan(build, folder, batch)
    tiled = plan(build, folder, batch, "--tiles", tiles)
    of = tiled.get("tiles")
    cells = [words, str(batch)]
    cells += [f"{p['arena_bytes'] / MIB:.1f}, {100 * p['overhead']:.0f} %" for p in (whole, tiled)]
    cells += [f"{tiled['least_peak_lower_bound_bytes'] / MIB:.1f}",
              f"{of['parts']} of the {of['of']}, {of['least_bytes'] / MIB:.1f} MiB" if of
              else "none"]
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    build = pathlib.Path(sys.argv[1])
    names = sys.argv[2].split(",") if len(sys.argv) > 2 else list(NETS)
    print("| network | batch | whole: least MiB, overhead | in parts | no plan of these parts "
          "below | parts |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for net in names:
            row(build, folder, net)


if __name__ == "__main__":
    sys.exit(main())
