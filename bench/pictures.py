#!/usr/bin/env python3
"""Trains one step of a U-Net on one large picture inside a memory limit, in bands of its rows, and
the same network in PyTorch with checkpointed blocks (pictures_peer.py) inside the same limit.

usage: pictures.py BUILD-FOLDER [SIDE [WIDTH [TILES]]]

PYTHON is one with torch. The limit is 1.02 of the plan's bytes, by a control group (finetune.py); a
run that the limit ends is told. Wants some minutes, and 6 GiB with the defaults: 4096, 16,
4rows@1000MiB.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from finetune import own_group, run_limited

DEPTH = 4


def tell(name, argv, limit):
    begin = time.time()
    code, said, peak = run_limited(argv, limit, dict(os.environ))
    how = "ended by the limit" if code == -9 else said.strip().splitlines()[-1]
    print(f"| {name} | {limit / 2 ** 20:.0f} | {peak:.0f} | {time.time() - begin:.0f} | {how} |",
          flush=True)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    side, width, tiles = sys.argv[2:] + ["4096", "16", "4rows@1000MiB"][len(sys.argv) - 2:]
    threads = str(os.cpu_count())
    if own_group() is None:
        print("no control group with a limit can be made here", file=sys.stderr)
        return 77
    print("| program | limit MiB | peak MiB | s | |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        model, program = folder + "/net.onnx", folder + "/net"
        for argv in (["model", "unet", f"--size={side}", f"--width={width}", f"--depth={DEPTH}",
                      "--batch=0", "-o", model],
                     ["compile", model, "--batch", "1", "--budget", "min", "--tiles", tiles, "-q",
                      "-o", program]):
            subprocess.run([str(build / "lowerset"), *argv], check=True,
                           stdout=subprocess.DEVNULL)
        plan = subprocess.run([program, "--print-plan"], text=True, capture_output=True,
                              check=True).stdout
        limit = int(int(re.search(r"^state .* total (\d+) ", plan, re.M)[1]) * 1.02)
        tell("in bands", [program, "--data", "synthetic:1", "--steps", "1", "--threads", threads,
                          "--progress", "none"], limit)
        peer = pathlib.Path(__file__).resolve().parent / "pictures_peer.py"
        tell("PyTorch, checkpoints", [sys.executable, str(peer), side, width, str(DEPTH), threads],
             limit)
    return 0


if __name__ == "__main__":
    sys.exit(main())
