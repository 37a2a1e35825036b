#!/usr/bin/env python3
"""Checks and measures lowerset on a machine with an NVIDIA GPU.

usage: gpu.py BUILD-FOLDER --prepare [--home DIR]     on a machine that can build: makes DIR (.gpu),
                                                      which the machine with the GPU needs beside
                                                      this tree
       gpu.py BUILD-FOLDER [--part PART] [options]    there; ends with 77 where there is no GPU
       gpu.py BUILD-FOLDER --docs FILE... [--to docs/lab/gpu.md]     the tables of results as a page

Parts, each within --limit seconds (540), what is asked for first coming first; several:
check,speed. Without --part all, one behind the other: within ten minutes with --limit 145.
  check     the device's properties; small networks against the CPU (loss, every gradient), all
            budgets bit for bit, libraries whose inputs and losses stay on the GPU,
            compute-sanitizer
  speed     our programs: four networks, precisions, budgets, a small batch
  peers     the same networks in PyTorch, torch.compile and JAX
  warm      not by itself: has torch.compile and JAX compile, for peers behind it; beside check, say
  ceilings  what the device can do at most

Results go to $OUT (or --out, or the work folder) as gpu-PART.json (with --nets or --who, those
behind it), after each figure, and gpu.md; what the libraries said when something failed, as
explained.txt. --dry-run goes through all of it without a GPU: programs for the CPU, tiny networks.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import traceback

import gpu_ceilings
import gpu_check
import gpu_report
import gpu_speed
from gpu_tools import WHO, Session, has_gpu

PARTS = {"check": gpu_check.run, "speed": gpu_speed.run_ours, "peers": gpu_speed.run_peers,
         "warm": gpu_speed.run_warm,
         "ceilings": gpu_ceilings.run}
HERE = os.path.dirname(os.path.abspath(__file__))
CARRIED = 60 << 20              # limit in bytes on the copied files


def options():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--part", default="check,speed,peers,ceilings")
    p.add_argument("--limit", type=float, default=540, help="seconds per part")
    p.add_argument("--seconds", type=float, default=3, help="of measuring per configuration")
    p.add_argument("--nets", help="comma-separated; default: all of the part")
    p.add_argument("--precisions", default="tf32,bf16,f32", help="in this order")
    p.add_argument("--budgets", default="none,75%,50%,min", help="of speed")
    p.add_argument("--no-tune", action="store_true",
                   help="speed: not also with what --tune chooses")
    p.add_argument("--who", default=WHO, help="peers; also: tune")
    p.add_argument("--merge", nargs="*", help="earlier results: join the table; PyTorch's "
                                              "peaks are "
                   "halved for a budget (if none: those measured on this machine)")
    p.add_argument("--python", help="interpreter of the peers (default: this one)")
    p.add_argument("--sanitizer", default="compute-sanitizer")
    p.add_argument("--home", default=".gpu")
    p.add_argument("--work", default=os.path.join("/tmp", f"lowerset-gpu-{os.getuid()}"))
    p.add_argument("--out")
    p.add_argument("--dry-run", action="store_true")
    p.add_argument("--prepare", action="store_true")
    p.add_argument("--docs", nargs="+")
    p.add_argument("--to", default="docs/lab/gpu.md")
    o = p.parse_args()
    for part in o.part.split(","):
        if part not in PARTS:
            p.error(f"--part {part}: there is {', '.join(PARTS)}")
    return o


def shared_libraries(program):
    """A program's libraries that not every system has: [path]. Other libraries are left out: found
    before the system's libraries, they could break its compiler."""
    out = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    paths = [line.split()[2] for line in out.splitlines() if "=> /" in line]
    return [p for p in paths if any(n in p for n in ("protobuf-c", "cjson"))]


def prepare(o):
    """Copies lowerset, its libraries and the runtime, as when installed."""
    home, root = os.path.abspath(o.home), os.path.dirname(HERE)
    subprocess.run(["ninja", "-C", o.build, "lowerset", "runtime/libls_runtime.a"], check=True)
    cuda = subprocess.run(["ninja", "-C", o.build, "runtime/libls_runtime_cuda.a"], check=False)
    if cuda.returncode != 0:
        sys.exit("the CUDA runtime is not part of this build (no toolkit?)")
    shutil.rmtree(home, ignore_errors=True)
    lib = os.path.join(home, "lib", "lowerset")
    os.makedirs(lib)
    os.makedirs(os.path.join(home, "bin"))
    program = os.path.join(home, "bin", "lowerset")
    shutil.copy(os.path.join(o.build, "lowerset"), program)
    subprocess.run(["strip", program], check=False)
    for path in shared_libraries(program):
        shutil.copy(path, os.path.join(home, "lib"))
    for name in sorted(os.listdir(os.path.join(o.build, "runtime"))):
        if name.endswith(".a"):
            copy_archive(os.path.join(o.build, "runtime", name), os.path.join(lib, name))
    with open(os.path.join(o.build, "build_config.h"), encoding="utf-8") as f:
        toolkit = re.search(r'#define LS_CUDA_HOME "(.+)"', f.read()).group(1)
    for folder in ("lib64", "lib", "targets/x86_64-linux/lib"):
        cudart = os.path.join(toolkit, folder, "libcudart_static.a")
        if os.path.exists(cudart):      # its version is that of the headers of the CUDA runtime
            shutil.copy(cudart, lib)
            break
    shutil.copytree(os.path.join(root, "runtime"), os.path.join(lib, "runtime"),
                    ignore=shutil.ignore_patterns("meson.build"))
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, names in os.walk(home) for f in names)
    print(f"{home}: {size / 2**20:.1f} MiB")
    if size > CARRIED:
        sys.exit("that is more than can travel")


def copy_archive(from_path, to):
    """A static library; a thin one, as meson makes them, becomes a whole one."""
    with open(from_path, "rb") as f:
        thin = f.read(8) == b"!<thin>\n"
    if not thin:
        shutil.copy(from_path, to)
    else:
        members = subprocess.run(["ar", "t", from_path], capture_output=True, text=True,
                                 check=True).stdout.split()
        subprocess.run(["ar", "rcs", to, *members], check=True)
    subprocess.run(["strip", "--strip-debug", to], check=False)


def docs(o):
    rows, failures, notes = gpu_speed.results_of(o.docs)
    with open(o.to, "w", encoding="utf-8") as f:
        f.write(gpu_report.document(rows, failures, notes, gpu_speed.now()))
    print(o.to)


def run_parts(o):
    prepared = os.path.join(o.home, "bin", "lowerset")
    home = o.home if os.path.exists(prepared) and not o.dry_run else None
    lowerset = prepared if home else os.path.join(o.build, "lowerset")
    if not os.path.exists(lowerset):
        sys.exit(f"{lowerset} is not there: build it (./dev build), or carry what --prepare makes")
    rows, failures, notes = gpu_speed.results_of(o.merge or [])
    old = len(failures)
    for part in o.part.split(","):
        o.part = part
        s = Session(o, lowerset, home, HERE)
        if not o.dry_run and not has_gpu(s):
            print("no NVIDIA GPU on this machine (nvidia-smi shows none); --dry-run goes through "
                  "the script "
                  "without one")
            return 77
        s.say(part)
        try:
            PARTS[part](s)
        except Exception:       # the other parts must still run
            s.keep_text(part, traceback.format_exc())
            s.fail(f"{part} broke off: {traceback.format_exc(limit=-1).strip().splitlines()[-1]}")
        s.save()
        s.say(f"{part} is done")
        rows, failures, notes = rows + s.rows, failures + s.failures, notes + s.notes
        with open(os.path.join(s.out, "gpu.md"), "w", encoding="utf-8") as f:
            f.write(gpu_report.document(rows, failures, notes, gpu_speed.now()))
    gpu_report.show(rows, failures, notes)
    return 1 if len(failures) > old else 0


def main():
    o = options()
    if o.prepare:
        prepare(o)
    elif o.docs:
        docs(o)
    else:
        sys.exit(run_parts(o))


if __name__ == "__main__":
    main()
