#!/usr/bin/env python3
"""--sums=running: parts of an update add up one after the other, in one partial sum.

    tests/whole/running_sums.py LOWERSET
"""
import os
import re
import sys
import tempfile

import linear_net as net
from command_checks import finish, must, run


def dump(program, data, steps, *more):
    run("./" + program, "--data", data, "--no-shuffle", f"--steps={steps}", "--progress=none",
        "--dump=out.npz", *more)
    return {k: v for k, v in net.npz_read("out.npz").items()
            if k.split("/")[0] in ("param", "moment", "stat") and not k.endswith(".grad")}


def order(lowerset):
    """1, e, e, e with 1 + e = 1 add up to 1 one after the other, and to 1 + 2 e in a tree."""
    e = 2.0 ** -24
    with open("net.onnx", "wb") as f:
        f.write(net.model({"w": ((1,), [0.0])}))
    net.npz_write("net.npz", {"x_w": ((4, 1), [1.0, e, e, e])})
    for words, sum_ in ((), 1 + 2 * e), (("--sums=tree",), 1 + 2 * e), (("--sums=running",), 1.0), \
            (("--sums=running", "--clip-norm=9"), 1.0):
        run(lowerset, "compile", "net.onnx", "-q", "-O0", "--batch=1", "--accumulate=4",
            "--loss=graph", "--optimizer=sgd:lr=1", "-o", "net", *words)
        got = dump("net", "net.npz", 1)["param/w"][1][0]
        must(f"{' '.join(words)}: {got * -4!r}", got == -sum_ / 4)


def bits(lowerset):
    words = ["compile", "unet.onnx", "-q", "-O0", "--plan-effort=2", "--batch=4", "--bn=frozen",
             "--accumulate=3", "--microbatches=2", "--optimizer=adamw", "--sums=running"]
    run(lowerset, *words, "-o", "all")
    run(lowerset, *words, "--budget=min", "-o", "least")
    one = dump("all", "synthetic:16", 4)
    must("the least budget, one thread", dump("least", "synthetic:16", 4, "--threads=1") == one)
    dump("all", "synthetic:16", 2, "--save=run")
    must("a resumed run", dump("all", "synthetic:16", 4, "--save=run", "--resume=auto") == one)


def sizes(lowerset):
    """Bytes of partial sums: 63 has six binary digits."""
    said = {way: run(lowerset, "plan", "unet.onnx", "--batch=4", "--microbatches=4",
                     "--bn=frozen", "--accumulate=16", "--optimizer=adamw", "--sums=" + way)
            for way in ("tree", "running")}
    must("6 partial sums", "64 parts add up in a tree: 6 partial sums of each" in said["tree"])
    must("1 partial sum",
         "64 parts add up one after the other: 1 partial sum of each" in said["running"])
    size = {}
    for way, text in said.items():
        number, unit = re.search(r"  state +([0-9.]+) (KiB|MiB)", text).groups()
        size[way] = float(number) * {"KiB": 1, "MiB": 1024}[unit]
    must(f"state {size}: 36 and 16 bytes of a parameter",
         abs(size["tree"] / size["running"] - 36 / 16) < 0.1)


def refusals(lowerset):
    for words, why in (["--sums=running"], "one part"), \
            (["--sums=running", "--accumulate=2", "--ranks=2"], "ranks"), \
            (["--sums=running", "--microbatches=2", "--stages=2"], "stages"), \
            (["--sums=running", "--accumulate=2", "--dp=clip=1,noise=1,delta=1e-5"], "private"), \
            (["--sums=both", "--accumulate=2"], "tree running"):
        said = run(lowerset, "plan", "unet.onnx", "--batch=4", *words, code=2)
        must(said.strip(), why in said)


def main():
    lowerset = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        run(lowerset, "model", "unet", "--width=8", "--size=16", "--depth=1", "-o", "unet.onnx")
        order(lowerset)
        bits(lowerset)
        sizes(lowerset)
        refusals(lowerset)
        os.chdir("/")
    finish()


if __name__ == "__main__":
    main()
