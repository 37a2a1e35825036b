"""Prints how long compiling the zoo for NVIDIA GPUs takes, and the number of kernels, as Markdown.

    python3 bench/cuda_compile.py BUILD-FOLDER [--batch N] [--arch A,B] [NET...]

Each net goes from ONNX to a linked program: planning, device text, NVRTC, C compiler, linker.
Needs the toolkit and no GPU; the caches start empty. Seconds are wall clock, and processor time
of all processes.
"""
import argparse
import glob
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

# Images as large as in the papers are too large for most GPUs; kernels hardly depend on the size.
OPTIONS = {"pspnet50": ["--size=473"], "pspnet101": ["--size=473"], "unet": ["--size=572"]}
BATCH = {"pspnet50": 8, "pspnet101": 8, "unet": 16, "gpt": 16}


def zoo(lowerset):
    text = subprocess.run([lowerset, "model", "--list"], check=True, capture_output=True,
                          text=True).stdout
    return [line.split()[0] for line in text.splitlines()]


def timed(command, env):
    """Wall and processor seconds of a command and its children; it must succeed."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(lowerset, net, options, folder):
    model, program, temps = (os.path.join(folder, x) for x in ("net.onnx", "trainer", "temps"))
    env = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"))
    os.mkdir(temps)
    timed([lowerset, "model", net, *OPTIONS.get(net, []), "-o", model], env)
    batch = options.batch or BATCH.get(net, 32)
    wall, cpu = timed([lowerset, "compile", model, "--target=cuda", f"--arch={options.arch}", "-q",
                       f"--batch={batch}", f"--save-temps={temps}", "-o", program], env)
    if subprocess.run([program, "--help"], env=env, capture_output=True).returncode != 0:
        sys.exit(f"{net}: the program does not start")
    with open(glob.glob(os.path.join(temps, "*.cu"))[0]) as f:
        device = f.read()
    with open(glob.glob(os.path.join(temps, "*.c"))[0]) as f:
        host = f.read()
    steps = re.findall(r'^    \{(k\d+_\w+), "', host, re.M)
    kernels = len(re.findall(r"^LS_PART\(", device, re.M))
    fatbin = os.path.getsize(glob.glob(os.path.join(temps, "*.fatbin"))[0])
    return f"| {net} | {batch} | {len(steps)} | {len(set(steps))} | {kernels} | " \
           f"{len(device) / 1024:.0f} | " \
           f"{fatbin / 1024:.0f} | {wall:.1f} | {cpu:.1f} |"


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build")
    p.add_argument("--batch", type=int, default=0)
    p.add_argument("--arch", default="90a")
    p.add_argument("net", nargs="*")
    options = p.parse_intermixed_args()
    lowerset = os.path.abspath(os.path.join(options.build, "lowerset"))
    print("| net | batch | steps | functions | kernels | device text KiB | fatbin KiB | s | "
          "processor s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for net in options.net or zoo(lowerset):
        with tempfile.TemporaryDirectory() as folder:
            print(measure(lowerset, net, options, folder), flush=True)


main()
