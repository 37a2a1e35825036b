#!/usr/bin/env python3
"""Trains one step of a U-Net on one large picture or volume inside a memory limit, in bands of its
rows or planes, and the same network in PyTorch with checkpointed blocks (pictures_peer.py) inside
the same limit.

usage: pictures.py BUILD-FOLDER [2|3 [SIDE [WIDTH [TILES]]]]

PYTHON is one with torch. The limit is 1.02 of the plan's bytes, by a control group (finetune.py); a
run that the limit ends is told. Wants some minutes, and 6 GiB with the defaults, 4096, 16,
4rows@1000MiB; of a volume 2 GiB: 192, 16, 8rows@200MiB.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import unet3d
from finetune import own_group, run_limited

DEFAULTS = {"2": ["4096", "16", "4rows@1000MiB"], "3": ["192", "16", "8rows@200MiB"]}
DEPTH = {"2": 4, "3": 3}


def tell(name, argv, limit):
    begin = time.time()
    code, said, peak = run_limited(argv, limit, dict(os.environ))
    how = "ended by the limit" if code == -9 else said.strip().splitlines()[-1]
    print(f"| {name} | {limit / 2 ** 20:.0f} | {peak:.0f} | {time.time() - begin:.0f} | {how} |",
          flush=True)


def write_net(build, path, dims, side, width):
    if dims == "3":
        unet3d.write(path, int(side), int(width), DEPTH[dims])
    else:
        subprocess.run([str(build / "lowerset"), "model", "unet", f"--size={side}",
                        f"--width={width}", f"--depth={DEPTH[dims]}", "--batch=0", "-o", path],
                       check=True, stdout=subprocess.DEVNULL)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    dims = sys.argv[2] if len(sys.argv) > 2 else "2"
    side, width, tiles = sys.argv[3:] + DEFAULTS[dims][len(sys.argv[3:]):]
    threads = str(os.cpu_count())
    if own_group() is None:
        print("no control group with a limit can be made here", file=sys.stderr)
        return 77
    print("| program | limit MiB | peak MiB | s | |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        model, program = folder + "/net.onnx", folder + "/net"
        write_net(build, model, dims, side, width)
        subprocess.run([str(build / "lowerset"), "compile", model, "--batch", "1", "--bn", "train",
                        "--budget", "min", "--tiles", tiles, "-q", "-o", program], check=True,
                       stdout=subprocess.DEVNULL)
        plan = subprocess.run([program, "--print-plan"], text=True, capture_output=True,
                              check=True).stdout
        limit = int(int(re.search(r"^state .* total (\d+) ", plan, re.M)[1]) * 1.02)
        tell("in bands", [program, "--data", "synthetic:1", "--steps", "1", "--threads", threads,
                          "--progress", "none"], limit)
        peer = pathlib.Path(__file__).resolve().parent / "pictures_peer.py"
        tell("PyTorch, checkpoints", [sys.executable, str(peer), dims, side, width,
                                      str(DEPTH[dims]), threads], limit)
    return 0


if __name__ == "__main__":
    sys.exit(main())
