#!/usr/bin/env python3
"""./dev bench promises: what recomputation and parallel training must not change, measured here,
and in PyTorch where PYTHON (or python3) has torch.

usage: promises.py BUILD-FOLDER [--no-torch] [--quick] [--only ROW,...] [--out PAGE.md]

ROW: dropout, statistics, bits, monotone, bytes, resume, accumulation, ranks.

Each row trains small networks and compares what they made: here in two ways that must agree, and
the same two ways in PyTorch. Nothing is timed, so that a busy machine shows the same. --quick
compiles without optimisation. Exit 6 if a promise is broken here.
"""
import argparse
import array
import json
import math
import os
import pathlib
import sys
import tempfile
import time

from seed_amp import HERE, finish, has_torch, processor, run
from seed_persample import members, write_batch

NET = "vgg16_bn --width=4 --size=32 --classes=10"       # batch norms, and dropout in front of two
DATA = ["--data", "synthetic:16", "--progress", "none"]
CLOSE = 1e-5                    # between sums of the same numbers in another order, relative
PARTS = 4


class Here:
    """Programs of one folder."""

    def __init__(self, args, folder):
        self.lowerset = pathlib.Path(args.build).resolve() / "lowerset"
        self.folder = pathlib.Path(folder)
        self.quick = ["-O", "0", "--plan-effort", "2"] if args.quick else []

    def model(self, name, words):
        run([self.lowerset, "model", *words.split(), "-o", f"{name}.onnx"], self.folder)

    def plan(self, net, *options):
        return json.loads(run([self.lowerset, "plan", f"{net}.onnx", "-q", "--json",
                               *self.quick[2:], *options], self.folder))

    def compile(self, net, program, *options):
        run([self.lowerset, "compile", f"{net}.onnx", "-q", *self.quick, *options, "-o", program],
            self.folder)

    def train(self, program, *options):
        return run([f"./{program}", *options], self.folder)

    def dump(self, program, *options):
        self.train(program, *options, "--dump", "out.npz")
        return {k: v[1] for k, v in members(self.folder / "out.npz").items()}

    def same_file(self, a, b):
        return (self.folder / a).read_bytes() == (self.folder / b).read_bytes()


def differ(a, b, part=""):
    """(elements whose bits differ, elements) of the values whose names begin so."""
    keys = [k for k in a if k.startswith(part)]
    if not keys or set(keys) != {k for k in b if k.startswith(part)}:
        sys.exit(f"two programs have other values {part}")
    wrong = sum(sum(x != y for x, y in zip(memoryview(a[k]).cast("B").cast("I"),
                                           memoryview(b[k]).cast("B").cast("I"))) for k in keys)
    return wrong, sum(len(a[k]) for k in keys)


def apart(a, b, part):
    """Largest distance of values, over the largest of them."""
    worst = 0
    for k in a:
        if k.startswith(part):
            most = max(max(map(abs, b[k])), 1e-30)
            worst = max(worst, max(abs(x - y) for x, y in zip(a[k], b[k])) / most)
    return worst


def of(n, total, what):
    return f"{n:,} of {total:,} {what} differ"


# ---- the rows: name, what is compared, what was seen here, whether it holds ----
def dropout(here):
    here.model("drop", "mlp --width=64 --size=8 --depth=3 --dropout=0.5")
    here.plan("drop", "--batch=8", "--forget=*", "--plan-json=plan.json", "--graph-json=graph.json")
    graph, plan = (json.loads((here.folder / f).read_text()) for f in ("graph.json", "plan.json"))
    masked = {t["id"] for t in graph["tensors"] if t["name"].startswith("dropout")}
    draws = {n["id"] for n in graph["nodes"] if masked & set(n.get("outputs", ()))}
    steps = [s["compute"] for s in plan["steps"] if s.get("compute") in draws]
    here.compile("drop", "kept", "--batch=8")
    here.compile("drop", "again", "--batch=8", "--forget=*")
    a, b = (here.dump(p, *DATA, "--steps", "3") for p in ("kept", "again"))
    wrong, total = differ(a, b, "grad/")
    again = len(steps) - len(set(steps))
    return f"{of(wrong, total, 'elements')}; {again} dropouts run again", wrong == 0 and again > 0


def budgets(here):
    """Programs of the network at three budgets: [(plan, what 3 updates made)]."""
    here.model("net", NET)
    rows = []
    for k, budget in enumerate(("none", "75%", "min")):
        options = ["--batch=4", f"--budget={budget}"]
        here.compile("net", f"b{k}", *options)
        rows.append((here.plan("net", *options), here.dump(f"b{k}", *DATA, "--steps", "3")))
    return rows


def statistics(here):
    """The first update's step of running means, with recomputation over without: 1.9 would be two
    updates of momentum 0.1."""
    first = [here.dump(f"b{k}", *DATA, "--steps", "1") for k in (0, 2)]
    key = next(k for k in first[0] if k.startswith("stat/") and "mean" in k)
    moved = [math.sqrt(sum(v * v for v in f[key])) for f in first]
    wrong, total = differ(first[0], first[1], "stat/")
    return (f"{moved[1] / moved[0]:.6g} times; {of(wrong, total, 'elements')}",
            wrong == 0 and moved[0] > 0)


def bits(rows):
    pairs = [differ(rows[0][1], row[1]) for row in rows[1:]]
    again = [row[0]["recomputed_runs"] for row in rows[1:]]
    return (f"{of(sum(p[0] for p in pairs), sum(p[1] for p in pairs), 'elements')}; "
            f"{' and '.join(map(str, again))} runs again",
            all(p[0] == 0 for p in pairs) and max(again) > 0)


def bytes_kept(here, rows):
    said = []
    for k, (plan, _) in enumerate(rows):
        touched = json.loads(here.train(f"b{k}", *DATA, "--steps", "2", "--measure")
                             .strip().split("\n")[-1])["touched"]
        said.append((touched, plan["arena_bytes"]))
    return ("; ".join(f"{a:,} of {b:,}" for a, b in said) + " bytes",
            all(a == b for a, b in said))


def monotone(here):
    least = here.plan("net", "--batch=4", "--budget=min")
    most = here.plan("net", "--batch=4")
    part = 100 * least["arena_bytes"] / most["arena_bytes"]
    plans = [here.plan("net", "--batch=4", f"--budget={100 - k * (100 - part) / 8 + 0.01:.2f}%")
             for k in range(9)]
    up = sum(b["arena_bytes"] > a["arena_bytes"] for a, b in zip(plans, plans[1:]))
    down = sum(b["cost"] < a["cost"] * (1 - 1e-9) for a, b in zip(plans, plans[1:]))
    return (f"9 budgets down to {part:.0f} %: {up} with more memory, {down} with less time",
            up == 0 and down == 0)


def resume(here):
    options = [*DATA, "--lr", "0.01"]
    here.train("b2", *options, "--steps", "6", "--epochs", "2", "--no-export-notes", "--export",
               "whole.onnx")
    here.train("b2", *options, "--steps", "3", "--save", "saved")
    here.train("b2", *options, "--steps", "6", "--epochs", "2", "--save", "saved", "--resume",
               "auto", "--no-export-notes", "--export", "resumed.onnx")
    same = here.same_file("whole.onnx", "resumed.onnx")
    return ("the exported files have the same bytes" if same else "the exported files differ", same)


def uneven(here):
    """A batch of 16 images of which 4, 1, 0 and 1 labels count in its four parts."""
    images = array.array("f", [((k * 2654435761) % 1000003) / 1000003 for k in range(784 * 16)])
    labels = [0, 1, 2, 3] + [9, 3, 9, 9] + [9] * 4 + [9, 9, 4, 9]       # 9 does not count
    write_batch(here.folder / "in.npz", images, labels)
    return ["--data", "in.npz", "--no-shuffle", "--progress", "none"]


def accumulation(here):
    data = [*uneven(here), "--steps", "1"]
    here.model("digits", "digits --seed=1")
    count = ["--batch=16", "--ignore-index=9", "--optimizer=sgd", "--store-gradients"]
    here.compile("digits", "whole", *count)
    here.compile("digits", "parts", *count, f"--microbatches={PARTS}")
    # What an update takes off the weights is the rate times the gradient.
    start = here.dump("whole", *data, "--lr", "0")
    took = [{k: [x - y for x, y in zip(start[k], d[k])] for k in d if k.startswith("param/")}
            for d in (here.dump(p, *data, "--lr", "1e6") for p in ("parts", "whole"))]
    seen = apart(took[0], took[1], "param/")
    return f"{seen:.1e} apart", seen <= CLOSE


def ranks(here):
    if not (here.folder / "parts").exists():
        accumulation(here)
    data = [*uneven(here), "--steps", "4", "--epochs", "4", "--lr", "0.05"]
    here.compile("digits", "ranks", "--batch=16", "--ignore-index=9", "--optimizer=sgd",
                 f"--microbatches={PARTS}", "--ranks=2")
    here.train("parts", *data, "--no-export-notes", "--export", "one.onnx")
    here.train("ranks", *data, "--no-export-notes", "--export", "two.onnx")
    same = here.same_file("one.onnx", "two.onnx")
    return ("the exported files have the same bytes" if same else "the exported files differ", same)


WHAT = {
    "dropout": ("Dropout draws the same mask when it runs again",
                "gradients with and without recomputation"),
    "statistics": ("Batch norms move their running statistics once",
                   "first move of a running mean, with recomputation over without"),
    "bits": ("Recomputation changes no bit",
             "all values after 3 updates, within budgets and without"),
    "monotone": ("A smaller budget never takes more memory", "plans from all memory to the least"),
    "bytes": ("The budget is kept to the byte",
              "bytes that steps use, and bytes that were planned"),
    "resume": ("A resumed run equals an unbroken one", "6 updates, and 3 + 3 of a saved run"),
    "accumulation": ("Parts of a batch make the gradient of the batch",
                     f"{PARTS} parts of which 4, 1, 0 and 1 labels count, and the whole batch"),
    "ranks": ("Two processes equal one", "4 updates on the same batches"),
}


def measure(here, only):
    at = budgets(here) if only & {"statistics", "bits", "monotone", "bytes", "resume"} else []
    ways = {"dropout": lambda: dropout(here), "statistics": lambda: statistics(here),
            "bits": lambda: bits(at), "monotone": lambda: monotone(here),
            "bytes": lambda: bytes_kept(here, at), "resume": lambda: resume(here),
            "accumulation": lambda: accumulation(here), "ranks": lambda: ranks(here)}
    return {row: way() for row, way in ways.items() if row in only}


def peers(here):
    """{row: what PyTorch shows}, its version under "version"; empty without it."""
    python = os.environ.get("PYTHON", "python3")
    said = run([python, HERE / "promises_torch.py", here.folder], ".")
    return json.loads(said.strip().split("\n")[-1])


def table(rows, peer):
    text = [f"| promise | compared | here | holds | PyTorch {peer.get('version', '')} |",
            "|---|---|---|---|---|"]
    for key, (seen, good) in rows.items():
        what, compared = WHAT[key]
        text.append(f"| {what} | {compared} | {seen} | {'yes' if good else '**no**'} | "
                    f"{peer.get(key, 'not there')} |")
    return "\n".join(text)


def page(text):
    return f"""# What recomputation and parallel training must not change

Made {time.strftime('%Y-%m-%d')} by `./dev bench promises {" ".join(sys.argv[2:])}`
on {processor()}; do not edit. `PYTHON` names a Python with torch.

Every figure was measured: small networks were trained in the two ways that the row compares. The
network of most rows is VGG-16 with batch norms and dropout, 4 channels wide. PyTorch's column does
the same by its own means: `torch.utils.checkpoint`, `state_dict`, a loop that accumulates, and
DistributedDataParallel by gloo. *Not there* is what has no counterpart, or was not measured.

{text}
"""


def options():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--no-torch", action="store_true")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--only", default=",".join(WHAT))
    p.add_argument("--out")
    args = p.parse_args()
    args.only = set(args.only.split(","))
    if not args.only <= set(WHAT):
        p.error(f"--only: rows are {', '.join(WHAT)}")
    return args


def main():
    args = options()
    with tempfile.TemporaryDirectory() as made:
        here = Here(args, made)
        rows = measure(here, args.only)
        peer = {} if args.no_torch or not has_torch() else peers(here)
    text = table(rows, peer)
    print(text, flush=True)
    return finish(args.out, page(text), all(good for _, good in rows.values()),
                  "all promises hold", "a promise is broken")


if __name__ == "__main__":
    sys.exit(main())
