#!/usr/bin/env python3
"""./dev seed persample: gradients of samples beside the plain step, a loop, and PyTorch; the known
experiment as a table.

usage: seed_persample.py BUILD-FOLDER [--threads N] [--steps N] [--rounds N] [--batch N]
                         [--only checks|times] [--out PAGE.md]

The network is that of PyTorch's tutorial on gradients of samples (`lowerset model digits`), 64
images of 28x28 a batch. Checks: gradients of samples against batches of one of the same program,
within a small budget, run twice; norms alone; what becomes of dropout under each --randomness;
batch norms. Exit 6 if one fails.
Times: a row per way, in turns. Ensembles: those of ./dev bench ensemble. With PYTHON (or python3)
that has torch, PyTorch's rows too.
"""
import argparse
import array
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile

from seed_amp import HERE, finish, has_torch, processor, run, timed, tries

DROPOUT = ["--dropout=0.5"]
EACH, NORMS = "--grads=per-sample", "--grads=per-sample-norm"
REFUSED = 3
MOST = 1e-5         # between a sample's gradient and that of a batch of one, relative


def make(folder, lowerset, name, *options):
    run([lowerset, "model", "digits", "--seed=1", *options, "-o", f"{name}.onnx"], folder)


def compile_net(folder, lowerset, net, program, *options):
    """Compiles a program; returns the plan's figures."""
    common = [f"{net}.onnx", "--optimizer=sgd", "-q", *options]
    run([lowerset, "compile", *common, "-o", program], folder)
    return json.loads(run([lowerset, "plan", *common, "--json"], folder))


# ---- checks ----
def members(path):
    """An NPZ of floats: {name: (shape, values)}."""
    out = {}
    with zipfile.ZipFile(path) as z:
        for name in z.namelist():
            data = z.read(name)
            at = 10 + int.from_bytes(data[8:10], "little")
            head = eval(data[10:at].decode("latin-1"), {})      # pylint: disable=eval-used
            if head["descr"] == "<f4":
                out[name.removesuffix(".npy")] = (head["shape"], array.array("f", data[at:]))
    return out


def write_batch(path, images, labels):
    """An NPZ with images and labels, by the standard library alone."""
    def member(values, descr, shape):
        head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
        head += " " * (-(10 + len(head) + 1) % 64) + "\n"
        size = len(head).to_bytes(2, "little")
        return b"\x93NUMPY\x01\x00" + size + head.encode() + values.tobytes()

    n = len(images) // 784
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("x.npy", member(images, "<f4", (n, 1, 28, 28)))
        z.writestr("label.npy", member(array.array("q", labels), "<i8", (n,)))


def dump(folder, program, data="in.npz"):
    run([f"./{program}", "--data", data, "--no-shuffle", "--steps", "1", "--lr", "0",
         "--progress", "none", "--dump", "out.npz"],
        folder)
    return members(folder / "out.npz")


def apart(a, b):
    over = math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)))
    return over / max(math.sqrt(sum(y * y for y in b)), 1e-30)


def sample_of(gradients, key, k):
    shape, values = gradients[key]
    n = len(values) // shape[0]
    return values[k * n:(k + 1) * n]


def check_gradients(folder, lowerset, batch):
    """Rows [what, wanted, seen, good] of the gradients themselves."""
    images = array.array("f", [((k * 2654435761) % 1000003) / 1000003 for k in range(784 * batch)])
    write_batch(folder / "in.npz", images, [k % 10 for k in range(batch)])
    plan = compile_net(folder, lowerset, "net", "each", EACH, f"--batch={batch}")
    compile_net(folder, lowerset, "net", "one", "--batch=1", "--store-gradients")
    each, worst = dump(folder, "each"), 0
    for k in {0, 1, batch // 2, batch - 1}:
        write_batch(folder / "one.npz", images[784 * k:784 * (k + 1)], [k % 10])
        one = dump(folder, "one", "one.npz")
        worst = max([worst] + [apart(sample_of(each, "ps" + key, k), one[key][1])
                               for key in one if key.startswith("grad/")])
    yield ["gradient of a sample, and of a batch of one", f"at most {MOST:.0e} apart",
           f"{worst:.1e}", worst <= MOST]
    again = dump(folder, "each")
    yield ["two runs", "same bits", "", all(again[k][1] == each[k][1] for k in each)]
    within = compile_net(folder, lowerset, "net", "within", EACH, f"--batch={batch}",
                         "--budget=min")
    yield ["within the least arena", "same bits",
           f"{within['arena_bytes'] / 2**20:.1f} of {plan['arena_bytes'] / 2**20:.1f} MiB, "
           f"{100 * within['overhead']:.1f} % more work",
           all(each[k][1] == v[1] for k, v in dump(folder, "within").items())]
    small = compile_net(folder, lowerset, "net", "norms", NORMS, f"--batch={batch}")
    norms, worst = dump(folder, "norms"), 0
    for k in {0, batch - 1}:
        square = sum(v * v for key in each if key.startswith("psgrad/")
                     for v in sample_of(each, key, k))
        worst = max(worst, abs(norms["psnorm"][1][k] / math.sqrt(square) - 1))
    samples = 4 * batch * sum(len(v[1]) for k, v in each.items() if k.startswith("grad/"))
    yield ["norms alone, and those of the gradients", "at most 1e-06 apart", f"{worst:.1e}",
           worst <= 1e-6]
    yield ["arena of the norms, and samples x parameters", "no such buffer",
           f"{small['arena_bytes'] / 2**20:.1f} MiB, "
           f"{samples / 2**20:.1f} MiB", small["arena_bytes"] < samples / 4]


def check_randomness(folder, lowerset):
    """Every sample of the batch is the same image, so that only masks make gradients differ."""
    image = array.array("f", [((k * 40503) % 65537) / 65537 for k in range(784)])
    write_batch(folder / "in.npz", image * 4, [0] * 4)
    refused = subprocess.run([lowerset, "compile", "drop.onnx", EACH, "--batch=4",
                              "-q", "-o", "no"], cwd=folder,
                             capture_output=True, text=True, check=False)
    yield ["dropout, `--randomness` not given", "refused, with the node's name",
           re.sub(".*: error [^:]*: ", "", refused.stderr
.split("\n")[0]), refused.returncode == REFUSED and "'dropout1'" in refused.stderr]
    for mode, wanted in (("same", "one mask for all samples"),
                         ("different", "another mask for every sample")):
        compile_net(folder, lowerset, "drop", mode, EACH, "--batch=4", f"--randomness={mode}")
        got = dump(folder, mode)
        rows = [sample_of(got, "psgrad/fc2.weight", k) for k in range(4)]
        equal = sum(apart(rows[i], rows[j]) < MOST for i in range(4) for j in range(i))
        yield [f"`--randomness={mode}`", wanted, f"{equal} of 6 pairs are equal",
               equal == (6 if mode == "same" else 0)]


def check_norms_of_batches(folder, lowerset):
    run([lowerset, "model", "resnet18", "--width=8", "--stem=cifar", "--size=32", "--classes=10",
         "-o", "bn.onnx"], folder)
    refused = subprocess.run([lowerset, "compile", "bn.onnx", EACH, "--batch=4", "-q", "-o", "no"],
                             cwd=folder, capture_output=True, text=True, check=False)
    frozen = tries([lowerset, "plan", "bn.onnx", EACH, "--batch=4", "-q", "--bn=frozen"], folder)
    yield ["batch norms", "refused, with ways out",
           re.search("hint: (.*)", refused.stderr + "hint: none").group(1),
           refused.returncode == REFUSED and "--bn=frozen" in refused.stderr]
    yield ["batch norms, `--bn=frozen`", "taken", "", frozen]


def checks(folder, lowerset, batch):
    rows = [*check_gradients(folder, lowerset, batch), *check_randomness(folder, lowerset),
            *check_norms_of_batches(folder, lowerset)]
    text = ["| what | wanted | seen | |", "|---|---|---|---|"]
    text += [f"| {what} | {wanted} | {seen} | {'yes' if good else '**no**'} |"
             for what, wanted, seen, good in rows]
    return "\n".join(text), all(row[3] for row in rows)


# ---- times ----
def programs(batch):
    """[network, way, options, samples of a step]; the first is the measure of all."""
    private = f"--dp=clip=1,noise=0,delta=1e-5,expected-batch={batch // 2}"
    return [["net", "plain step", [], batch], ["net", "norms", [NORMS], batch],
            ["net", "clipped sums", [private], batch],
            ["net", "gradients of samples", [EACH], batch],
            ["net", f"{batch} batches of one", [], 1],
            ["drop", "plain step", [], batch],
            ["drop", "gradients, masks `same`", [EACH, "--randomness=same"], batch],
            ["drop", "gradients, masks `different`", [EACH, "--randomness=different"], batch]]


PEERS = {"net": {"plain": "PyTorch: plain step", "vmap": "PyTorch: `vmap` of `grad`",
                 "loop": "PyTorch: batches of one"},
         "drop": {"plain": "PyTorch: plain step", "vmap_same": "PyTorch: `vmap`, masks `same`",
                  "vmap": "PyTorch: `vmap`, masks `different`"}}
PEER_NET = {"net": "cnn", "drop": "cnn_dropout"}


def measure_peers(net, rows, args):
    said = run([os.environ.get("PYTHON", "python3"), HERE / "persample.py", ".",
                "--net", PEER_NET[net], "--peers",
                ",".join(PEERS[net]), "--steps", args.steps, "--threads", args.threads], ".")
    for way, seconds in json.loads(said.strip().split("\n")[-1]).items():
        rows[way]["steps"].append(seconds)


def times(folder, lowerset, args):
    rows, peers = [], {}
    for k, (net, way, options, samples) in enumerate(programs(args.batch)):
        plan = compile_net(folder, lowerset, net, f"t{k}", *options, f"--batch={samples}")
        rows.append({"net": net, "way": way, "program": f"t{k}", "samples": samples,
                     "arena": plan["arena_bytes"] / 2**20, "steps": []})
    for net, ways in PEERS.items() if has_torch() else []:
        peers[net] = {way: {"net": net, "way": name, "steps": []} for way, name in ways.items()}
    # in turns, as other programs disturb some rounds more than others
    for _ in range(args.rounds):
        for row in rows:
            turns = args.batch // row["samples"]
            steps, _ = timed(row["program"], folder, args.batch * 4,
                             args.steps * (8 if turns > 1 else 1) + 2, args.threads)
            row["steps"] += [s * turns for s in steps]
        for net, mine in peers.items():
            measure_peers(net, mine, args)
    return rows + [row for mine in peers.values() for row in mine.values()]


def table(rows, net):
    mine = [r for r in rows if r["net"] == net]
    plain = statistics.median(mine[0]["steps"])
    text = ["| way | step, ms | least | over our plain step | arena, MiB |",
            "|---|--:|--:|--:|--:|"]
    for r in mine:
        step = statistics.median(r["steps"])
        arena = f"{r['arena']:.1f}" if "arena" in r else ""
        text.append(f"| {r['way']} | {1e3 * step:.1f} | {1e3 * min(r['steps']):.1f} | "
                    f"{step / plain:.2f} | {arena} |")
    return "\n".join(text)


def ensembles(args):
    """Ten models in one program, beside ten programs and, where PYTHON has torch, beside vmap."""
    python = os.environ.get("PYTHON", "python3") if has_torch() else sys.executable
    said = run([python, HERE / "ensemble.py", args.build, "--json", "--steps", args.steps,
                "--rounds", args.rounds], ".")
    words = {"torch vmap": "PyTorch: `vmap` of all", "torch singly": "PyTorch: one after the other"}
    text = ["| network | way | step of all, processor ms | over ten single steps | memory |",
            "|---|---|--:|--:|---|"]
    text += [f"| {net} | {words.get(way, way)} | {ms:.1f} | {over:.2f} | {more} |"
             for net, way, ms, over, more in json.loads(next(line for line in said.split("\n")
                                                             if line.startswith("[[")))]
    return "\n".join(text)


def page(parts, args, busy):
    return f"""# Gradients of samples of a small network

Made {time.strftime('%Y-%m-%d')} by `./dev seed persample` on {processor()}, {args.threads}
thread{'s' if args.threads > 1 else ''}; do not edit. At its start {busy} of {os.cpu_count()}
processors were busy with other programs.

The network is that of PyTorch's tutorial on gradients of samples: convolutions of 32 and 64
channels without padding, a max pool, dense layers of 128 and 10; SGD, {args.batch} images of 28x28
a batch. *Clipped sums* are those of `--dp` with half the batch expected. *Arena* is the plan's. A
step is the median of {args.rounds} rounds in turns, of {args.steps} steps each, on synthetic data.
[samples.md](../samples.md) says how they are computed.

{parts}"""


def options():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--steps", type=int, default=8, help="of a round, but for two at its start")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--only", choices=["checks", "times", "ensembles"])
    p.add_argument("--out")
    return p.parse_args()


def main():
    args = options()
    lowerset = pathlib.Path(args.build).resolve() / "lowerset"
    parts, good, busy = [], True, f"{min(os.getloadavg()[0], os.cpu_count()):.1f}"
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        make(folder, lowerset, "net")
        make(folder, lowerset, "drop", *DROPOUT)
        if args.only in (None, "checks"):
            text, good = checks(folder, lowerset, args.batch)
            parts.append(f"## Checks\n\n{text}\n")
            print(parts[-1], flush=True)
        if args.only in (None, "times"):
            rows = times(folder, lowerset, args)
            parts.append(f"## Times\n\n{table(rows, 'net')}\n\nWith dropout of 0.5 behind the pool "
                         f"and the first dense layer:\n\n"
                         f"{table(rows, 'drop')}\n")
            print(parts[-1], flush=True)
        if args.only in (None, "ensembles"):
            parts.append(f"## Ensembles\n\nA batch of 64 for ten models with SGD and momentum: an "
                         f"MLP 784-512-10 and the network above. "
                         f"Least processor time of {args.rounds} rounds in turns, one "
                         f"thread.\n\n{ensembles(args)}\n")
            print(parts[-1], flush=True)
    return finish(args.out, page("\n".join(parts), args, busy), good)


if __name__ == "__main__":
    sys.exit(main())
