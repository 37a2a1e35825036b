#!/usr/bin/env python3
"""Runs of each optimizer: bits within a budget, over two ranks in 16 bits, a resumed run, and an
update that is skipped.

    tests/whole/optimizer_runs.py LOWERSET [OPTIMIZER...]

Programs accumulate, clip by norm and keep an average. Without names: those whose step is more than
one node, with LS_WHOLE in the environment all that `lowerset compile --help` lists.
"""
import os
import re
import subprocess
import sys
import tempfile

import linear_net as net

QUICK = ["nadam", "lamb", "adafactor", "muon", "schedule-free-adamw", "apollo:rank=3"]
wrong = []


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr or done.stdout}")
    return done.stdout


def must(what, holds):
    if not holds:
        wrong.append(what)
        print(f"FAIL: {what}")


def compiled(lowerset, optimizer, name, *more):
    run(lowerset, "compile", "net.onnx", "-q", "-O0", "--plan-effort=2", "--batch=4",
        f"--optimizer={optimizer}", "-o", name, *more)


def dump(program, steps, *more):
    run("./" + program, "--data", "synthetic:32", f"--steps={steps}", "--progress", "none",
        "--dump", "out.npz", *more)
    return net.npz_read("out.npz")


def state(members, *groups):
    return {k: v for k, v in members.items() if k.split("/")[0] in groups}


def kept(members):
    """What a skipped update must not move."""
    return {k: v for k, v in state(members, "param", "average", "moment").items()
            if "loss_scale" not in k and not k.endswith(".grad")}


def check(lowerset, kind):
    own = kind.startswith("schedule-free")
    more = ["--accumulate=2", "--clip-norm=0.5"] + ([] if own else ["--ema=0.9"])
    compiled(lowerset, kind, "all", *more)
    compiled(lowerset, kind, "least", "--budget=min", *more)
    one, other = dump("all", 4), dump("least", 4)
    must(f"{kind}: the least budget gives other bits", one == other)
    must(f"{kind}: nothing moves", any(any(v[1]) for v in state(one, "average").values()))
    compiled(lowerset, kind, "parts", "--precision=bf16", "--microbatches=2")
    compiled(lowerset, kind, "ranks", "--precision=bf16", "--microbatches=2", "--ranks=2")
    must(f"{kind}: two ranks have other bits",
         state(dump("parts", 3), "param", "moment") == state(dump("ranks", 3), "param", "moment"))
    dump("all", 2, "--save", kind)
    must(f"{kind}: a resumed run gives other bits",
         state(dump("all", 4, "--save", kind, "--resume=auto"), "param", "average", "moment")
         == state(one, "param", "average", "moment"))
    # The first update is good, and makes the scale so large that the second one is skipped.
    compiled(lowerset, kind, "half", "--precision=f16",
             "--loss-scale=dynamic:init=1,period=1,factor=1e30", *more)
    good, skipped = dump("half", 1), dump("half", 2)
    must(f"{kind}: the loss scale skips no update", skipped["moment/loss_scale.skips"][1][0] == 1)
    must(f"{kind}: a skipped update moves state", kept(good) == kept(skipped))


def main():
    lowerset = os.path.abspath(sys.argv[1])
    known = re.findall(r"^    ([a-z-]+):[a-z0-9_]+=",
                       run(lowerset, "compile", "--help").split("Settings of --optimizer")[1]
                       .split("Kinds of --loss-scale")[0], re.M)
    names = sys.argv[2:] or (known if os.environ.get("LS_WHOLE") else QUICK)
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        run(lowerset, "model", "mlp", "--batch=4", "--width=24", "--size=4", "-o", "net.onnx")
        for kind in names:
            check(lowerset, kind)
        os.chdir("/")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
