#!/usr/bin/env python3
"""Moments in 8 and 4 bits: the codes are those of torchao, to the bit.

    tests/whole/optimizer_codes.py LOWERSET INPUTS[:INPUTS...]

INPUTS/wave3/adam8/adam_low_bit.npz has the steps of AdamW8bit and AdamW4bit; the file is taken from
the first folder that has it, and that of tests/data/inputs has one tensor with codes, and no codes
of the steps before the last. The net is linear_net: its gradients are its inputs. Then: the bytes
of state, other bits by no budget, threads or parts, a resumed run, and what is refused.
"""
import os
import re
import sys
import tempfile

import linear_net as net
from command_checks import finish, must, run

HYPER = "beta1=0.9,beta2=0.99,eps=1e-8,wd=0.1,lr=1e-3"
BYTES = {"adam8": 2 + 8 / 256, "adam4": 1 + 8 / 128}


def steps_of(ref, kind):
    return sorted({int(k.split("/")[3]) for k in ref
                   if re.match(kind + r"/exp_avg/\w+/\d+(/codes)?$", k)})


def far(got, want):
    return max(abs(a - b) for a, b in zip(got, want))


def compare(ref, kind, step, out):
    for key, (_, want) in ref.items():
        part, what, name, *rest = (key.split("/") + ["", ""])[:5]
        if part != kind or what == "map" or name == "map" or rest[0] != str(step):
            continue
        if what == "p":
            got, near = out["param/" + name][1], 1e-6
        elif rest[1] == "":
            got, near = out[f"moment/{name}.{'m' if what == 'exp_avg' else 'v'}"][1], 1e-6
        else:
            mine = "m" if what == "exp_avg" else "v"
            mine += "_scale" if rest[1] == "scale" else ""
            got, near = out[f"moment/{name}.{mine}"][1], 0
        must(f"{key}: {len(want)} numbers", len(got) == len(want) and far(got, want) <= near)


def beside_torchao(lowerset, ref):
    start = {k[3:]: v for k, v in ref.items() if k.startswith("p0/")}
    last = max(int(k.split("/")[2]) for k in ref if k.startswith("g/"))
    with open("net.onnx", "wb") as f:
        f.write(net.model(start))
    net.npz_write("net.npz", {
        "x_" + t: ([last + 1] + list(shape),
                   [x for s in range(last + 1) for x in ref[f"g/{t}/{s}"][1]])
        for t, (shape, _) in start.items()})
    for kind in BYTES:
        run(lowerset, "compile", "net.onnx", "-q", "-O0", "--batch=1", "--loss=graph",
            "--no-decay=none", f"--optimizer={kind}:{HYPER}", "-o", "net")
        for step in steps_of(ref, kind):
            run("./net", "--data", "net.npz", "--no-shuffle", f"--steps={step + 1}",
                "--progress=none", "--dump", "out.npz")
            compare(ref, kind, step, net.npz_read("out.npz"))


def compiled(lowerset, kind, name, *more, model="unet.onnx"):
    run(lowerset, "compile", model, "-q", "-O0", "--plan-effort=2", "--batch=4",
        f"--optimizer={kind}", "-o", name, *more)


def dump(program, steps, *more):
    run("./" + program, "--data=synthetic:16", f"--steps={steps}", "--progress=none",
        "--dump=out.npz", *more)
    return {k: v for k, v in net.npz_read("out.npz").items()
            if k.split("/")[0] in ("param", "moment", "average") and not k.endswith(".grad")}


def same(what, lowerset, kind, left, right, left_runs=(), right_runs=(), model="unet.onnx"):
    """Two programs, and how they are run, give the same bits of state."""
    compiled(lowerset, kind, "one", *left, model=model)
    compiled(lowerset, kind, "other", *right, model=model)
    one, other = dump("one", 3, *left_runs), dump("other", 3, *right_runs)
    must(f"{kind}: {what}", one == other and coded(one))


def coded(state):
    """Some tensor has codes, of more than a few kinds."""
    return any(k + "_scale" in state and len(set(v[1])) > 8 for k, v in state.items())


def same_bits(lowerset, kind):
    same("the least budget, one thread", lowerset, kind, [], ["--budget=min"], [],
         ["--threads=1"])
    same("clipped sums of batches, in the least budget", lowerset, kind,
         ["--accumulate=3", "--clip-norm=0.1", "--ema=0.9"],
         ["--accumulate=3", "--clip-norm=0.1", "--ema=0.9", "--budget=min"])
    frozen = ["--bn=frozen", "--accumulate=2"]
    same("two ranks are one process", lowerset, kind, frozen + ["--microbatches=2"],
         frozen + ["--ranks=2"])
    parts = ["--bn=frozen", "--microbatches=2"]
    same("two stages are one process", lowerset, kind, parts, parts + ["--stages=2"])


def tiles(lowerset, kind):
    """A large weight, whose gradient is made in tiles, or stored."""
    run(lowerset, "model", "mlp", "--batch=4", "--width=1024", "--size=16", "-o", "wide.onnx")
    same("gradients in tiles", lowerset, kind, [], ["--store-gradients"], ["--threads=2"],
         ["--threads=1"], "wide.onnx")
    must("one is applied as it is computed", "1 gradient" in run(
        "./one", "--data=synthetic:8", "--steps=1", "--progress=none", "--dump=x.npz"))


def checkpoints(lowerset, kind):
    compiled(lowerset, kind, "net")
    whole = dump("net", 4)
    dump("net", 2, f"--save={kind}")
    must(f"{kind}: a resumed run", dump("net", 4, f"--save={kind}", "--resume=auto") == whole)
    compiled(lowerset, "adamw", "other")
    dump("other", 2, "--save=adamw", "--overwrite")
    for program, of in ("other", kind), ("net", "adamw"):
        held = next(f for f in sorted(os.listdir(of)) if f.endswith(".safetensors"))
        said = run("./" + program, "--data=synthetic:16", "--steps=1", f"--resume={of}/{held}",
                   code=8)
        must(f"{kind}: {said.strip()}", "another optimizer" in said)


def skips(lowerset, kind):
    """The first update is good, and makes the scale so large that the second one is skipped."""
    compiled(lowerset, kind, "half", "--precision=f16",
             "--loss-scale=dynamic:init=1,period=1,factor=1e30")
    good, bad = dump("half", 1), dump("half", 2)
    must(f"{kind}: the loss scale skips an update", bad["moment/loss_scale.skips"][1][0] == 1)
    must(f"{kind}: which moves no state", coded(good) and all(
        v == bad[k] for k, v in good.items() if "loss_scale" not in k))


def members(lowerset, kind):
    """A member of an ensemble is the program alone."""
    compiled(lowerset, kind, "two", "--ensemble=2")
    compiled(lowerset, kind, "net")
    both, alone = dump("two", 3), dump("net", 3)
    must(f"{kind}: members are the program alone",
         coded(alone) and all(both[k][1] == v[1] * 2 for k, v in alone.items()))


def state_bytes(lowerset, kind):
    """One parameter, all of it in codes."""
    with open("one.onnx", "wb") as f:
        f.write(net.model({"w": ((64, 64), [0.0] * 4096)}))
    said = run(lowerset, "plan", "one.onnx", "--batch=1", "--loss=graph", f"--optimizer={kind}")
    want = f"optimizer {kind}: {BYTES[kind]:.5g} bytes of state per parameter"
    must(want, want in said)


def main():
    lowerset = os.path.abspath(sys.argv[1])
    files = [os.path.join(os.path.abspath(f), "wave3/adam8/adam_low_bit.npz")
             for f in sys.argv[2].split(":")]
    ref = net.npz_read(next(f for f in files if os.path.exists(f)))
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        beside_torchao(lowerset, ref)
        run(lowerset, "model", "unet", "--batch=4", "--width=8", "--size=16", "--depth=2",
            "-o", "unet.onnx")
        for kind in BYTES:
            state_bytes(lowerset, kind)
            checkpoints(lowerset, kind)
        same_bits(lowerset, "adam8")
        tiles(lowerset, "adam4")
        members(lowerset, "adam4")
        skips(lowerset, "adam4")
        os.chdir("/")
    finish()


if __name__ == "__main__":
    main()
