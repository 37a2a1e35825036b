#!/usr/bin/env python3
"""What values in parts of the samples save: least arenas with and without `--tiles auto`, and what
both cost, by `lowerset plan`.

usage: tiles.py BUILD-FOLDER [NET,...]
"""
import json
import pathlib
import subprocess
import sys
import tempfile

NETS = {"resnet18": ("resnet18", 32), "vgg16": ("vgg16", 32), "unet": ("unet --size=256", 8),
        "resnet50": ("resnet50", 32), "densenet121": ("densenet121", 32), "gpt": ("gpt", 8)}
# A vocabulary head would need more than all that parts save.
MORE = {"gpt": ("--head-chunks", "auto")}
MIB = 2 ** 20


def plan(build, folder, batch, *more):
    done = subprocess.run([str(build / "lowerset"), "plan", folder + "/net.onnx", "--batch",
                           str(batch), "--budget", "min", "--json", "-q", *more],
                          capture_output=True, text=True, check=False)
    return json.loads(done.stdout)


def row(build, folder, net):
    words, batch = NETS[net]
    subprocess.run([str(build / "lowerset"), "model", *words.split(), "--batch=0",
                    "--weights=none", "-o", folder + "/net.onnx"], check=True,
                   stdout=subprocess.DEVNULL)
    more = MORE.get(net, ())
    whole = plan(build, folder, batch, *more)
    tiled = plan(build, folder, batch, *more, "--tiles", "auto")
    of = tiled.get("tiles")
    cells = [words, str(batch)]
    cells += [f"{p['arena_bytes'] / MIB:.1f}, {100 * p['overhead']:.0f} %" for p in (whole, tiled)]
    cells += [f"{tiled['least_peak_lower_bound_bytes'] / MIB:.1f}",
              f"{of['parts']} of {of['least_bytes'] / MIB:.1f} MiB" if of else "none"]
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
