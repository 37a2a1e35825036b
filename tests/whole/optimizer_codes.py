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
import subprocess
import sys
import tempfile

import linear_net as net

HYPER = "beta1=0.9,beta2=0.99,eps=1e-8,wd=0.1,lr=1e-3"
BYTES = {"adam8": 2 + 8 / 256, "adam4": 1 + 8 / 128}
wrong = []


def run(*words, code=0):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"{' '.join(words)}: exit {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout + done.stderr


def must(what, holds):
    print(f"{'ok' if holds else 'FAIL'}: {what}")
    if not holds:
        wrong.append(what)


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


def main():
    lowerset = os.path.abspath(sys.argv[1])
    files = [os.path.join(os.path.abspath(f), "wave3/adam8/adam_low_bit.npz")
             for f in sys.argv[2].split(":")]
    ref = net.npz_read(next(f for f in files if os.path.exists(f)))
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        beside_torchao(lowerset, ref)
        os.chdir("/")
    for what in wrong:
        print(f"FAIL: {what}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
