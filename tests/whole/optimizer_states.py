#!/usr/bin/env python3
"""Optimizers with little state: projected moments (apollo), and moments in bfloat16.

    tests/whole/optimizer_states.py LOWERSET

What changes no bit: budgets, threads, ranks, stages, ensembles, how a gradient is made, a resumed
run. What changes bits: the seed of a run. Then what each keeps, what it refuses, and that a second
moment in bfloat16 goes on where rounding to the nearest would hold it.
"""
import os
import random
import struct
import sys
import tempfile

import linear_net as net
from command_checks import finish, must, run

PARTS = ["--microbatches=2"]


def compiled(lowerset, optimizer, name, *more, model="net.onnx"):
    run(lowerset, "compile", model, "-q", "-O0", "--plan-effort=2", "--batch=4",
        f"--optimizer={optimizer}", "-o", name, *more)


def dump(program, steps, *more):
    run("./" + program, "--data=synthetic:16", f"--steps={steps}", "--progress=none",
        "--dump=out.npz", *more)
    return {k: v for k, v in net.npz_read("out.npz").items()
            if k.split("/")[0] in ("param", "moment", "average") and not k.endswith(".grad")}


def same(what, lowerset, optimizer, left, right, left_runs=(), right_runs=(), model="net.onnx"):
    compiled(lowerset, optimizer, "one", *left, model=model)
    compiled(lowerset, optimizer, "other", *right, model=model)
    one, other = dump("one", 3, *left_runs), dump("other", 3, *right_runs)
    must(f"{optimizer}: {what}", one == other and any(
        any(v[1]) for k, v in one.items() if k.startswith("moment/")))


def seeded(seed):
    """What `one` makes of data that do not depend on the seed."""
    run("./one", "--data=net.npz", "--no-shuffle", "--steps=3", "--progress=none", f"--seed={seed}",
        "--dump=out.npz")
    return net.npz_read("out.npz")


def same_bits(lowerset, optimizer):
    same("the least budget, two threads", lowerset, optimizer, [], ["--budget=min"],
         ["--threads=1"], ["--threads=2"])
    more = ["--accumulate=3", "--clip-norm=0.1", "--ema=0.9"]
    same("clipped sums of batches, in the least budget", lowerset, optimizer, more,
         more + ["--budget=min"])
    same("two ranks are one process", lowerset, optimizer, PARTS, ["--ranks=2"])
    same("two stages are one process", lowerset, optimizer, PARTS, PARTS + ["--stages=2"])
    compiled(lowerset, optimizer, "two", "--ensemble=2")
    compiled(lowerset, optimizer, "one")
    both, alone = dump("two", 3), dump("one", 3)
    must(f"{optimizer}: members differ by their seeds", any(
        v[1][:len(v[1]) // 2] != v[1][len(v[1]) // 2:] for v in both.values()))
    both = dump("two", 3, "--member-seeds=0,0")
    must(f"{optimizer}: a member is the program alone",
         all(both[k][1] == v[1] * 2 for k, v in alone.items()))
    must(f"{optimizer}: the seed decides", seeded("0") != seeded("1"))


def resumed(lowerset, optimizer):
    compiled(lowerset, optimizer, "one")
    whole = dump("one", 4)
    dump("one", 2, f"--save={optimizer}")
    must(f"{optimizer}: a resumed run",
         dump("one", 4, f"--save={optimizer}", "--resume=auto") == whole)


def of_another(lowerset, optimizer, other):
    """Neither takes the checkpoint of the other."""
    compiled(lowerset, optimizer, "one")
    compiled(lowerset, other, "two")
    for program, of in ("one", "theirs"), ("two", "mine"):
        dump("two" if program == "one" else "one", 2, f"--save={of}", "--overwrite")
        held = next(f for f in sorted(os.listdir(of)) if f.endswith(".safetensors"))
        said = run("./" + program, "--data=synthetic:16", "--steps=1", f"--resume={of}/{held}",
                   code=8)
        must(f"{optimizer}: {said.strip()}", "in this program it is" in said)


def told(lowerset, optimizer, words):
    said = run(lowerset, "plan", "square.onnx", "--batch=1", "--loss=graph",
               f"--optimizer={optimizer}")
    must(f"{optimizer}: {words}", f"optimizer {words}" in said)


def refused(lowerset, optimizer, words):
    said = run(lowerset, "plan", "square.onnx", "--loss=graph", f"--optimizer={optimizer}", code=2)
    must(f"{said.strip()}", words in said)


def square(lowerset):
    """One matrix of 64 x 64, whose gradients are all 1."""
    with open("square.onnx", "wb") as f:
        f.write(net.model({"w": ((64, 64), [0.0] * 4096)}))
    net.npz_write("ones.npz", {"x_w": ([2000, 64, 64], [1.0] * (2000 * 4096))})
    told(lowerset, "apollo:rank=4", "apollo: 0.50098 bytes of state per parameter (m, v, norm)")
    told(lowerset, "apollo-mini", "apollo-mini: 0.12598 bytes of state")
    told(lowerset, "apollo", "apollo: 8 bytes of state per parameter (m, v)")
    told(lowerset, "adamw:bf16", "adamw: 4 bytes of state per parameter (m, v)")
    told(lowerset, "lion:bf16", "lion: 2 bytes of state")
    told(lowerset, "sgd:momentum=0.9,bf16", "sgd: 2 bytes of state")
    refused(lowerset, "apollo:rank=0", "rank=0: must be a whole number of at least 1")
    refused(lowerset, "apollo-mini:gap=1.5", "gap=1.5: must be a whole number of at least 1")
    refused(lowerset, "apollo-mini:tensor", "apollo-mini takes no 'tensor'")
    refused(lowerset, "sgd:bf16", "bf16 needs a momentum above 0")
    refused(lowerset, "adagrad:bf16", "adagrad takes no 'bf16'")


def goes_on(lowerset):
    """beta2 0.999 adds less than half a step of bfloat16 to a v above 1/4: it reaches what it
    reaches in f32, on average and nearly in every element."""
    run(lowerset, "compile", "square.onnx", "-q", "-O0", "--batch=1", "--loss=graph",
        "--optimizer=adam:bf16,lr=1e-3", "-o", "one")
    run("./one", "--data=ones.npz", "--no-shuffle", "--steps=2000", "--progress=none",
        "--dump=out.npz")
    out = net.npz_read("out.npz")
    want, v = 1 - 0.999 ** 2000, out["moment/w.v"][1]
    mean = sum(v) / len(v)
    must(f"v is {mean:.4f} on average, in f32 {want:.4f}", abs(mean - want) < 0.004)
    must(f"v lies in {min(v):.3f} .. {max(v):.3f}", want - 0.2 < min(v) and max(v) < want + 0.2)
    must("its elements are bfloat16", all(
        struct.unpack("I", struct.pack("f", x))[0] & 0xffff == 0 for x in v))
    moved = [-x for x in out["param/w"][1]]
    must(f"steps have the length of the rate: {min(moved):.3f} .. {max(moved):.3f} in 2000",
         all(1.9 < x < 2.1 for x in moved))


def main():
    lowerset = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        run(lowerset, "model", "mlp", "--batch=4", "--width=24", "--size=4", "-o", "net.onnx")
        run(lowerset, "model", "mlp", "--batch=4", "--width=1024", "--size=16", "-o", "wide.onnx")
        dice = random.Random(1)
        net.npz_write("net.npz", {"x": ([16, 1, 4, 4], [dice.gauss(0, 1) for _ in range(256)]),
                                  "label": ([16], [float(k % 10) for k in range(16)])})
        square(lowerset)
        goes_on(lowerset)
        compiled(lowerset, "adamw", "one")
        must("without draws the seed decides nothing", seeded("0") == seeded("1"))
        same_bits(lowerset, "apollo:rank=3,gap=2")
        same_bits(lowerset, "adamw:bf16")
        for optimizer in "apollo-mini", "lion:bf16", "sgd:momentum=0.9,nesterov,bf16":
            resumed(lowerset, optimizer)
        of_another(lowerset, "adamw:bf16", "adamw")
        of_another(lowerset, "apollo:rank=3", "adamw")
        same("gradients in tiles", lowerset, "adamw:bf16", [], ["--store-gradients"],
             ["--threads=2"], ["--threads=1"], "wide.onnx")
        must("one is applied as it is computed", "1 gradient" in run(
            "./one", "--data=synthetic:8", "--steps=1", "--progress=none", "--dump=x.npz"))
        os.chdir("/")
    finish()


if __name__ == "__main__":
    main()
