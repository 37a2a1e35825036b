#!/usr/bin/env python3
"""Times of planning: bench/plan.py BUILD SHARED [--long] [--only dp|auto|least|offsets|scale|live]
                                          [--graph FILE ...]

Seconds are by the clock, for the whole program, graph reading included; the best of three runs if
a run takes less than a second. CPU seconds are the sum over all threads. Reference
implementations are the judge's, in Python with SciPy's HiGHS, over the same sweep of budgets;
they are stopped after a minute of CPU time, with --long after five, which also adds the largest
graphs. Figures that authors state for their own program are quoted and marked with *. --graph:
more graphs for `live`; those of Moccasin's repository are not kept here (an importer of the
interchange format makes them), and are known by the names that its paper gives them: cm1.json,
cm2.json, rl2.json, rl3.json, rl4.json.
"""
import argparse
import glob
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time

# Seconds of Kusumoto's program (C++), one solve at given budgets, on a machine of this class
AUTHORS_DP = {"googlenet": "43-185 *", "pspnet": "9-138 *"}

# Overhead in percent of live bytes / seconds by Checkmate, Moccasin and FastSA, as FastSA's authors
# print them (NeurIPS 2023); budgets in percent of the store-all peak
PUBLISHED = {
    ("cm1", 90): ("0.0 / 6.3", "0.0 / 3.1", "0.1 / 9.4"),
    ("cm1", 80): ("0.1 / 5.6", "0.1 / 3.1", "0.1 / 9.7"),
    ("cm1", 70): ("-", "-", "3.0 / 9.7"),
    ("cm2", 90): ("0.1 / 434", "0.2 / 65", "0.2 / 11"),
    ("cm2", 80): ("0.3 / 485", "0.3 / 69", "0.4 / 11"),
    ("cm2", 70): ("-", "-", "0.8 / 11"),
    ("rl2", 90): ("0.9 / 685", "0.9 / 55", "0.0 / 15"),
    ("rl2", 80): ("none", "4.9 / 640", "0.0 / 15"),
    ("rl3", 90): ("none", "0.7 / 1803", "0.03 / 21"),
    ("rl3", 80): ("none", "3.4 / 1805", "2.3 / 21"),
    ("rl4", 90): ("none", "0.7 / 3613", "0.4 / 36"),
    ("rl4", 80): ("none", "3.4 / 3612", "2.5 / 36"),
    ("rl4", 70): ("none", "-", "7.4 / 37"),
}


def run(command, limit):
    """(exit code or None at the limit of CPU time, seconds, of CPU time, peak KiB,
    what it printed)."""
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+") as out:
        p = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, preexec_fn=lambda:
                             resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)))
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return (None if p.returncode < 0 else p.returncode, time.monotonic() - begin,
                used.ru_utime + used.ru_stime, used.ru_maxrss, out.read())


class Bench:
    def __init__(self, a):
        self.a = a
        self.lowerset = os.path.join(a.build, "lowerset")
        self.judge = os.path.join(a.shared, "judge")
        self.limit = 600 if a.long else 120

    def plan(self, graph, *options):
        """Seconds by the clock, CPU seconds and the summary; None if there is no plan."""
        best, least, text = math.inf, math.inf, ""
        for _ in range(3):
            code, seconds, cpu, _, text = run([self.lowerset, "plan", graph, "--json", *options],
                                         self.limit)
            if code is None:
                return None, None, None
            best, least = min(best, seconds), min(least, cpu)
            if best > 1:
                break
        return best, least, json.loads(text) if text.startswith("{") else None

    def reference(self, program, graph, *options):
        """Seconds of a program of the judge; a dash where it cannot run (it needs SciPy)."""
        limit = 300 if self.a.long else 60
        code, seconds, _, _, text = run([sys.executable, os.path.join(self.judge, program), graph,
                                      *options], limit)
        return f"> {limit}" if code is None else f"{seconds:.1f}" if text else "-"

    def make(self, path, family, *arguments):
        """Writes a generated graph."""
        with open(path, "w", encoding="utf-8") as f:
            subprocess.run([os.path.join(self.a.build, "bench", "make_graph"), family,
                            *map(str, arguments)], stdout=f, check=True)

    def graphs(self, folder):
        return sorted(glob.glob(os.path.join(self.judge, folder, "*.json")))


def number(x, digits=2):
    return "-" if x is None else f"{x:.{digits}f}"


def name_of(path):
    return os.path.splitext(os.path.basename(path))[0]


def bench_dp(b):
    """The DP over all lower sets, and over the pruned family, at 70 % of the store-all peak."""
    print("\nThe paper's DPs: seconds for one graph\n")
    print("| graph | nodes | exact | pruned | lower sets | judge's exact, Python | "
          "authors' exact |")
    print("|---|---|---|---|---|---|---|")
    for path in b.graphs("published"):
        with open(path, encoding="utf-8") as f:
            nodes = len(json.load(f)["nodes"])
        exact, _, summary = b.plan(path, "--strategy=exact", "--budget=70%",
                                   "--budget-of=store-all")
        pruned, _, _ = b.plan(path, "--strategy=approx", "--budget=70%", "--budget-of=store-all")
        note = next((r.get("note", "") for r in (summary or {}).get("strategies", [])
                     if r["strategy"] == "exact"), "-")
        small = name_of(path) in ("vgg19", "unet", "resnet50")
        theirs = b.reference("lowerset_ref.py", path, "--method=exact", "--step=0.12") \
            if small or b.a.long else "-"
        print(f"| {name_of(path)} | {nodes} | {number(exact)} | {number(pruned)} | {note} | "
              f"{theirs} | {AUTHORS_DP.get(name_of(path), '-')} |", flush=True)


def bench_solves(b):
    """One solve of the formulas' optimum, where the table above sweeps many budgets."""
    program = os.path.join(b.a.build, "bench", "paper_dp")
    print("\nOne solve of the paper's DP, CPU time\n", flush=True)
    subprocess.run([program, os.path.join(b.judge, "published")], check=False)


def bench_auto(b):
    """auto with its bound at 60 % of the store-all peak, beside the MILP and
    the reference bound."""
    print("\nauto at 60 % of the store-all peak: overhead and proven gap in percent, seconds\n")
    print("| graph | nodes | overhead | gap | seconds | CPU s | judge's MILP, in place, s | "
          "judge's bound, s |")
    print("|---|---|---|---|---|---|---|---|")
    for path in b.graphs("graphs") + b.graphs("published"):
        with open(path, encoding="utf-8") as f:
            nodes = len(json.load(f)["nodes"])
        seconds, cpu, s = b.plan(path, "--strategy=auto", "--budget=60%", "--budget-of=store-all")
        found = s is not None and s["feasible"]         # else nothing fits, often proven
        milp = b.reference("optimal.py", path, "0.6", "--inplace", "--time-limit=60") \
            if b.a.long or nodes < 50 else "-"
        bound = b.reference("bound.py", path, "0.6", "--inplace", "--stages=20", "--lp") \
            if b.a.long or nodes < 100 else "-"
        print(f"| {name_of(path)} | {nodes} | {number(100 * s['overhead'] if found else None)} | "
              f"{number(100 * s['gap'] if found else None)} | {number(seconds)} | {number(cpu)} | "
              f"{milp} | {bound} |",
              flush=True)


def bench_least(b):
    """The least arena of each strategy, and the lower bound for any plan."""
    print("\nThe least memory, in percent of the store-all peak; auto's overhead there, seconds\n")
    named = ("auto", "exact", "approx", "chen", "none")
    print(f"| graph | bound | {' | '.join(named)} | overhead | seconds |")
    print("|---|---|" + "---|" * (len(named) + 2))
    for path in b.graphs("graphs") + b.graphs("published"):
        seconds, _, s = b.plan(path, "--strategy=auto", "--budget=min")
        if s is None:
            print(f"| {name_of(path)} |{' - |' * (len(named) + 3)}", flush=True)
            continue
        percent = 100 / s["store_all_peak_bytes"]
        least = {r["strategy"]: percent * r["least_arena_bytes"] for r in s["strategies"]}
        print(f"| {name_of(path)} | {number(percent * s['least_peak_lower_bound_bytes'], 1)} | "
              f"{' | '.join(number(least[name], 1) for name in named)} | "
              f"{number(100 * s['overhead'])} | {number(seconds)} |", flush=True)


def bench_offsets(b):
    """minimalloc's instances, each to its stated capacity."""
    print("\nOffsets: minimalloc's instances\n")
    files = sorted(glob.glob(os.path.join(b.judge, "minimalloc", "*.csv")))
    program = os.path.join(b.a.build, "bench", "packing_bench")
    if files:
        print(run([program, *files], b.limit)[4], end="")


def bench_scale(b, work):
    """Seconds, memory and gap over the number of nodes, and the exponent between neighbours."""
    print("\nGrowth: auto at 60 % of the store-all peak\n")
    print("| graph | nodes | overhead | gap | seconds | CPU s | MiB | CPU time grows as "
          "nodes to the |")
    print("|---|---|---|---|---|---|---|---|")
    sizes = {"transformer": (2, 7, 21, 64, 208), "resnet": (4, 15, 46, 140, 455),
             "dag": (20, 65, 200, 640, 2000)}
    for family, steps in sizes.items():
        before = None
        for size in steps if b.a.long else steps[:-1]:
            path = os.path.join(work, f"{family}{size}.json")
            b.make(path, family, size)
            with open(path, encoding="utf-8") as f:
                nodes = sum('"op"' in line for line in f)
            code, seconds, cpu, kib, text = run(
                [b.lowerset, "plan", path, "--json", "--strategy=auto", "--budget=60%",
                 "--budget-of=store-all"], b.limit)
            s = json.loads(text) if code == 0 else None
            power = None if before is None or code is None else \
                math.log(cpu / before[1]) / math.log(nodes / before[0])
            before = (nodes, max(cpu, 0.01))
            print(f"| {family}{size} | {nodes} | {number(s and 100 * s['overhead'])} | "
                  f"{number(s and 100 * s['gap'])} | "
                  f"{number(seconds) if s else '> ' + number(seconds)}"
                  f" | {number(cpu)} | {kib / 1024:.0f} | {number(power)} |", flush=True)


def layered(b, work):
    """Graphs of the kind, with their names."""
    for size in (250, 500, 1000):
        for seed in (1, 2):
            path = os.path.join(work, f"layered {size} {seed}.json")
            b.make(path, "layered", size, seed)
            yield path


def bench_live(b, work):
    """Graphs that papers plan in live bytes: planned so, and with offsets within the same
    number of bytes."""
    print("\nOverhead in percent / seconds at parts of the store-all peak\n")
    print("| graph | budget | Checkmate * | Moccasin * | FastSA * | live bytes | arena | proven |")
    print("|---|---|---|---|---|---|---|---|")
    for path in b.a.graph + list(layered(b, work)):
        for budget in (90, 80, 70):
            cells, bound = [], None
            for option in (["--no-offsets"], []):
                seconds, _, s = b.plan(path, "--strategy=auto", f"--budget={budget}%",
                                       "--budget-of=store-all", *option)
                found = s is not None and s["feasible"]
                cells.append(f"{100 * s['overhead']:.2f} / {seconds:.1f}" if found
                             else f"none / {number(seconds, 1)}")
                bound = s and 100 * (s["cost_lower_bound"] / s["base_cost"] - 1)
            theirs = PUBLISHED.get((name_of(path), budget), ("-", "-", "-"))
            print(f"| {name_of(path)} | {budget} % | {' | '.join(theirs)} | {' | '.join(cells)} | "
                  f"{number(bound)} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("build")
    p.add_argument("shared")
    p.add_argument("--long", action="store_true")
    p.add_argument("--only", choices=["dp", "auto", "least", "offsets", "scale", "live"])
    p.add_argument("--graph", action="append", default=[])
    a = p.parse_args()
    b = Bench(a)
    with tempfile.TemporaryDirectory() as work:
        for name, part in (("dp", bench_dp), ("dp", bench_solves), ("auto", bench_auto),
                           ("least", bench_least), ("offsets", bench_offsets),
                           ("scale", lambda x: bench_scale(x, work)),
                           ("live", lambda x: bench_live(x, work))):
            if a.only in (None, name):
                part(b)
    return 0


if __name__ == "__main__":
    sys.exit(main())
