"""Rows of a table of pipelines: a program, what its plan predicts from times of kernels, and
its measured steps."""
import json
import os
import statistics
import sys

from seed_amp import run, timed, tries


def only(options, *names):
    return [o for o in options if o.split("=")[0] in names]


def profiled(folder, lowerset, net, batch, options):
    """The file with the times of single kernels: of a pipeline that keeps all, with the same parts,
    stages and order. So they are those of kernels beside which another rank computes. Without
    stages: of one process."""
    way = only(options, "--stages", "--microbatches", "--order")
    costs = "costs" + "".join([net[0], f"--batch={batch}", *way]).replace("/", "_") + ".json"
    if not (folder / costs).exists():
        parts = [int(o.split("=")[1]) for o in only(way, "--microbatches")] or [1]
        kept = ["--recompute=none"] if only(options, "--stages") else []
        run([lowerset, "compile", *net, f"--batch={batch}", *way, *kept, "-q", "-o", "profiled"],
            folder)
        run(["./profiled", "--data", f"synthetic:{batch * 4}", "--steps", max(8, 64 // parts[0]),
             "--epochs", 1024, "--threads", 1, "--progress", "none", "--profile", costs], folder)
    return costs


def build(folder, lowerset, net, name, batch, options, program, measured=False):
    """A row of the table without its times. net: the model's file and options that
    all rows have."""
    if not tries([lowerset, "compile", *net, f"--batch={batch}", *options, "-q", "-o", program],
                 folder):
        print(f"{name}: not compiled", file=sys.stderr)
        return None
    costs = [f"--costs={profiled(folder, lowerset, net, batch, options)}"] if measured else []
    plan = json.loads(run([lowerset, "plan", *net, f"--batch={batch}", *options, *costs,
                           "-q", "--json"], folder))
    return {"name": name, "batch": batch, "program": program, "plan": plan, "steps": []}


def predicted(row):
    """(seconds of a step, bubble, MiB of the largest rank) of the plan."""
    plan = row["plan"]
    staged = plan.get("pipeline")
    if staged is None:
        return plan["step_ns"] / 1e9, 0, (plan["arena_bytes"] + plan["persistent_bytes"]) / 2**20
    chosen = staged["plans"][staged["chosen"]]
    return chosen["step_ns"] / 1e9, chosen["bubble"], chosen["rank_bytes"] / 2**20


def measure(rows, folder, rounds, steps_of):
    """Adds the steps of some rounds, in turns, as other programs disturb some rounds more than
    others. row["step"] is the median, in seconds. steps_of: batch -> steps of a round."""
    for _ in range(rounds):
        for row in rows:
            steps, _ = timed(row["program"], folder, row["batch"] * 4, steps_of(row["batch"]) + 2,
                             1)
            row["steps"] += steps
    for row in rows:
        row["step"] = statistics.median(row["steps"])


def busy():
    """Processors that other programs had in the last minute."""
    return f"{min(os.getloadavg()[0], os.cpu_count()):.1f}"
