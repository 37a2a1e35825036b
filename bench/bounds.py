#!/usr/bin/env python3
"""Lower bounds beside the judge's linear program and the best plan: one table.

    bounds.py BUILD-FOLDER JUDGE-FOLDER [--parts 0.7,0.5] [--plans] [--no-inplace] [GRAPH.json...]

Overheads in percent of running every node once, at parts of the store-all peak. lp: bound.py
--stages 20 --lp; ours: scheduler/bounds/lower_bound.h at the usual effort, with its CPU seconds;
plan: what `lowerset plan` finds (--plans), whose budget is the same. Needs SciPy for the lp column.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import time


def percent(cost, base):
    return "x" if cost is None else f"{100 * (cost / base - 1):.2f}"


def ours(build, graph, inplace, budgets):
    out = subprocess.run([f"{build}/bench/bounds_bench", graph, str(int(inplace)), "0",
                          *map(str, budgets)], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return [(None if r[2] == "1" else float(r[1]), float(r[3])) for r in rows]


def plan(build, graph, inplace, budget):
    run = subprocess.run([f"{build}/lowerset", "plan", graph, "--budget", str(budget), "--json",
                          *([] if inplace else ["--no-inplace"])], capture_output=True, text=True)
    return json.loads(run.stdout)["cost"] if run.returncode == 0 else None


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("build")
    p.add_argument("judge")
    p.add_argument("--parts", default="0.7,0.5")
    p.add_argument("--plans", action="store_true")
    p.add_argument("--no-inplace", dest="inplace", action="store_false")
    p.add_argument("graph", nargs="*")
    a = p.parse_intermixed_args()
    sys.path[:0] = [a.judge]
    from bound import lower_bound
    from common import fraction, live_peak, read_graph
    graphs = a.graph or sorted(glob.glob(f"{a.judge}/graphs/*.json")
                               + glob.glob(f"{a.judge}/published/*.json"))
    print("| graph | nodes | part | lp | s | ours | s | plan |\n|---|---|---|---|---|---|---|---|")
    for path in graphs:
        g = read_graph(path)
        full = live_peak(g, [i for i, n in enumerate(g.nodes) if not n.get("alternative")])
        parts = [float(x) for x in a.parts.split(",")]
        budgets = [fraction(full, x) for x in parts]
        for part, budget, mine in zip(parts, budgets, ours(a.build, path, a.inplace, budgets)):
            began = time.process_time()
            theirs = lower_bound(g, budget, 20, False, a.inplace)
            took = time.process_time() - began
            best = percent(plan(a.build, path, a.inplace, budget), g.base_cost) if a.plans else ""
            print(f"| {os.path.basename(path)[:-5]} | {len(g.nodes)} | {part} | "
                  f"{percent(theirs, g.base_cost)} | {took:.2f} | "
                  f"{percent(mine[0], g.base_cost)} | {mine[1]:.2f} | {best} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
