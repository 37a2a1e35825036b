#!/usr/bin/env python3
"""Lets the independent judge replay lowerset's plans over a sweep of budgets.

    tests/scheduler/judge.py BUILD SHARED [GRAPH...] [--points 17] [--strategies auto]
        [--effort PERCENT]
                   [--time SECONDS] [--large] [--zoo] [--quick] [--csv FILE]

Without graphs: those of SHARED/judge/graphs and SHARED/judge/published. tests/data is a SHARED that
has what --quick takes, and no published ones. --large adds what graphs/gen.py makes of 600 to
13,000 nodes, --zoo the training graphs of `lowerset model`; --quick is a short selection, shorter
without LS_WHOLE in the environment. Budgets run from 20 to 100 % of the store-all peak.

Checked for every plan: the judge calls it valid; its claims of peak, arena, cost and budget hold
and its lower bound is not above its cost; the summary states the same figures. Checked for every
sweep: a larger budget never costs more; at the store-all peak nothing is recomputed; no budget
above the least arena of any strategy is called infeasible; auto is never worse than a named
strategy. Prints a row per graph; exit status 1 when a check fails, 77 when there is no judge.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

QUICK = ["unet2", "dense4", "dag5", "chain6opt", "transformer1"]
QUICK_WHOLE = QUICK + ["chain8", "res1", "sp16"]
ZOO = {
    "mlp": ["mlp", "--batch=32"],
    "cnn": ["cnn", "--batch=16"],
    "resnet18": ["resnet18", "--batch=8"],
    "resnet50": ["resnet50", "--batch=8"],
    "unet": ["unet", "--batch=2"],
    "vgg16": ["vgg16", "--batch=8"],
    "densenet121": ["densenet121", "--batch=8"],
    "googlenet": ["googlenet", "--batch=8"],
    "gpt": ["gpt", "--batch=2"],
    "pspnet50": ["pspnet50", "--batch=2"],
}
CLOSE = 1e-9
WHOLE = "LS_WHOLE" in os.environ


class Sweep:
    """One graph over all budgets with one strategy."""

    def __init__(self, tools, path, strategy):
        self.tools, self.path, self.strategy = tools, path, strategy
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.faults, self.rows = [], []
        self.graph = tools.judge.Graph(tools.judge.load(path), path)

    def fault(self, budget, text):
        self.faults.append(f"{self.name}: {self.strategy} at {budget}: {text}")

    def run(self, points):
        if points == 1:
            fractions = [1.0]
        else:
            fractions = [0.2 + 0.8 * k / (points - 1) for k in range(points)]
        whole = self.store_all()
        for f in fractions:
            self.rows.append(self.plan(f, -int(-whole * round(f, 4) // 1024) * 1024))
        self.check_sweep()

    def store_all(self):
        seq = [i for i, n in enumerate(self.graph.nodes) if not n.get("alternative")]
        return self.tools.common.live_peak(self.graph, seq)

    def plan(self, fraction, budget):
        """One row: the figures of the summary, after the judge has agreed."""
        tools = self.tools
        command = [tools.lowerset, "plan", self.path, "--json", "--budget", str(budget),
                   "--strategy", self.strategy, "--plan-json", tools.plan] + tools.options
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        row = {"fraction": fraction, "budget": budget, "feasible": done.returncode == 0,
               "seconds": ended.ru_utime - began.ru_utime, "graph": self.name,
               "strategy": self.strategy}
        if done.returncode not in (0, 4):
            self.fault(budget, f"exit {done.returncode}: {done.stderr.strip()[:300]}")
            return row
        row.update(json.loads(done.stdout))
        if row["feasible"]:
            self.agree(row)
        return row

    def agree(self, row):
        """The judge's replay against the claims and the summary."""
        judge = self.tools.judge
        try:
            schedule = judge.load(self.tools.plan)
            report = judge.judge(self.graph, schedule)
            wrong = judge.check_claims(report, schedule, row["budget"])
        except (judge.Invalid, judge.BadFile) as e:
            self.fault(row["budget"], f"not valid: {e}")
            return
        claims = schedule.get("claims", {})
        arena = "live_peak" if "--no-offsets" in self.tools.options else "arena_peak"
        for key in ("live_peak", arena, "cost", "cost_lower_bound", "budget"):
            if key not in claims:
                wrong.append(f"claims no {key}")
        for ours, theirs in (("live_peak_bytes", "live_peak"), ("arena_bytes", arena),
                             ("overhead", "overhead")):
            if abs(row[ours] - report[theirs]) > CLOSE * max(1, abs(report[theirs])):
                wrong.append(f"states {ours} {row[ours]}, it is {report[theirs]}")
        for text in wrong:
            self.fault(row["budget"], text)

    def check_sweep(self):
        before, least = None, None
        for row in self.rows:
            for other in row.get("strategies", []):
                if other["least_arena_bytes"] > 0:
                    least = min(least or other["least_arena_bytes"], other["least_arena_bytes"])
        for row in self.rows:
            cost = row.get("cost") if row["feasible"] else None
            if cost is None:
                if before is not None:
                    self.fault(row["budget"], "infeasible, and a smaller budget is not")
                if self.strategy == "auto" and least is not None and least <= row["budget"]:
                    self.fault(row["budget"], f"infeasible, and a plan of {least} bytes is known")
                continue
            if before is not None and cost > before * (1 + CLOSE):
                self.fault(row["budget"], f"costs {cost}, and {before} at a smaller budget")
            if row["fraction"] >= 1 and row["overhead"] > CLOSE:
                self.fault(row["budget"], f"overhead {row['overhead']} at the store-all peak")
            before = cost if before is None else min(before, cost)
            for other in row["strategies"] if self.strategy == "auto" else []:
                if other["feasible"] and other["overhead"] < row["overhead"] - CLOSE:
                    self.fault(row["budget"], f"{other['strategy']} has overhead "
                                              f"{other['overhead']}, auto {row['overhead']}")


def against(named, auto):
    """Faults of auto where a strategy asked for by name does better."""
    out = []
    for n, a in zip(named.rows, auto.rows):
        if n["feasible"] and (not a["feasible"] or a["cost"] > n["cost"] * (1 + CLOSE)):
            out.append(f"{n['graph']}: auto at {n['budget']}: "
                       f"{a.get('cost', 'nothing')}, {n['strategy']} has {n['cost']}")
    return out


def percent(x):
    return "-" if x is None else f"{100 * x:.2f}"


def at(rows, fraction, key):
    """The row nearest to a fraction, if it is within the sweep's step."""
    row = min(rows, key=lambda r: abs(r["fraction"] - fraction))
    return row.get(key) if row["feasible"] and abs(row["fraction"] - fraction) < 0.026 else None


HEAD = (f"{'graph':18s} {'strategy':8s} {'nodes':>6s} {'plans':>6s} {'least%':>7s}"
        + "".join(f"{'ovh' + str(p):>8s}{'gap' + str(p):>8s}" for p in (80, 60, 40))
        + f" {'frag':>6s} {'max s':>6s} {'faults':>6s}")


def line(sweep):
    rows, fit = sweep.rows, [r for r in sweep.rows if r["feasible"]]
    least = min((r["least_arena_bytes"] for r in rows if "least_arena_bytes" in r), default=0)
    whole = max((r.get("store_all_peak_bytes", 0) for r in rows), default=0)
    frag = max((r["arena_bytes"] / max(1, r["live_peak_bytes"]) for r in fit), default=1)
    cells = "".join(f"{percent(at(rows, p, 'overhead')):>8s}{percent(at(rows, p, 'gap')):>8s}"
                    for p in (0.8, 0.6, 0.4))
    return (f"{sweep.name:18s} {sweep.strategy:8s} {len(sweep.graph.nodes):6d}"
            f" {len(fit):3d}/{len(rows):<2d}"
            f" {100 * least / whole if whole else 0:7.1f}{cells} {frag:6.3f}"
            f" {max(r['seconds'] for r in rows):6.2f} {len(sweep.faults):6d}")


def published_optima(shared):
    """{(graph, fraction): least overhead proven or found by the judge's tools} of RESULTS.md."""
    best, path = {}, os.path.join(shared, "judge", "RESULTS.md")
    if not os.path.exists(path):
        return best
    with open(path, encoding="utf-8") as f:
        for text in f:
            cell = [c.strip() for c in text.strip().strip("|").split("|")]
            if len(cell) < 11 or not cell[1].isdigit():
                continue
            found = [float(c.lstrip(">")) for c in cell[3:10] if c.lstrip(">")[:1].isdigit()]
            exact = cell[9][:1].isdigit()       # with in-place reuse, and proven
            best[cell[0], float(cell[2])] = (min(found) if found else None, exact)
    return best


def compare_optima(shared, sweeps):
    """Where the judge's tools have an optimum: how far auto is from it, in points."""
    best, worse, missing, n = published_optima(shared), [], [], 0
    for s in sweeps:
        for row in s.rows if s.strategy == "auto" else []:
            known, _ = best.get((s.name, round(row["fraction"], 4)), (None, False))
            if known is None:
                continue
            n += 1
            if not row["feasible"]:
                missing.append(f"{s.name} at {row['fraction']:.2f}: none, {known:.1f} % is known")
            else:
                worse.append((100 * row["overhead"] - known, s.name, row["fraction"], known))
    if not n:
        return
    mean = statistics.mean(max(0, w[0]) for w in worse) if worse else 0
    print(f"\nagainst the best of judge/RESULTS.md on {n} pairs: no plan for {len(missing)}, "
          f"mean excess {mean:.2f} points, {sum(w[0] < -0.05 for w in worse)} times better")
    for text in missing:
        print("  " + text)
    for excess, name, fraction, known in sorted(worse, reverse=True)[:12]:
        if excess > 0.05:
            print(f"  {name} at {fraction:.2f}: {known + excess:.1f} %, {known:.1f} % is known")


class Tools:
    def __init__(self, a, work):
        sys.path.insert(0, os.path.join(a.shared, "judge"))
        import common
        import judge
        self.judge, self.common = judge, common
        self.lowerset = os.path.join(a.build, "lowerset")
        self.plan = os.path.join(work, "plan.json")
        self.options = ([f"--plan-effort={a.effort}"] if a.effort else []) \
            + ([f"--plan-time={a.time}"] if a.time else []) + a.option


def graphs(a, work):
    if a.graph:
        return a.graph
    judge = os.path.join(a.shared, "judge")
    if a.quick:
        names = QUICK_WHOLE if WHOLE else QUICK
        return [os.path.join(judge, "graphs", n + ".json") for n in names]
    out = [os.path.join(judge, d, n) for d in ("graphs", "published")
           for n in sorted(os.listdir(os.path.join(judge, d))) if n.endswith(".json")]
    if a.large:
        subprocess.run([sys.executable, os.path.join(judge, "graphs", "gen.py"), "--large",
                        "--out", work], check=True, stdout=subprocess.DEVNULL)
        out += [os.path.join(work, n) for n in sorted(os.listdir(work)) if n.endswith(".json")]
    for name, options in ZOO.items() if a.zoo else []:
        model, graph = os.path.join(work, name + ".onnx"), os.path.join(work, f"zoo-{name}.json")
        lowerset = os.path.join(a.build, "lowerset")
        subprocess.run([lowerset, "model", options[0], "-o", model], check=True)
        subprocess.run([lowerset, "plan", model, "--strategy=none", "--json", "--graph-json",
                        graph] + options[1:], check=True, stdout=subprocess.DEVNULL)
        os.unlink(model)
        out.append(graph)
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("build")
    p.add_argument("shared")
    p.add_argument("graph", nargs="*")
    p.add_argument("--points", type=int, default=17)
    p.add_argument("--strategies", default="auto", help="comma-separated; auto last")
    p.add_argument("--effort", type=int, help="--plan-effort of every plan")
    p.add_argument("--time", type=float, help="--plan-time of every plan")
    p.add_argument("--option", action="append", default=[], help="one more for lowerset plan")
    for flag in ("--large", "--zoo", "--quick"):
        p.add_argument(flag, action="store_true")
    p.add_argument("--csv", help="all rows")
    a = p.parse_args()
    if a.quick and not WHOLE:
        a.points = min(a.points, 4)
    if not os.path.exists(os.path.join(a.shared, "judge", "judge.py")):
        print(f"skipped: no {a.shared}/judge/judge.py")
        return 77
    sweeps, faults, csv = [], [], []
    with tempfile.TemporaryDirectory() as work:
        tools = Tools(a, work)
        print(HEAD)
        for path in graphs(a, work):
            mine = []
            for strategy in a.strategies.split(","):
                s = Sweep(tools, path, strategy)
                s.run(a.points)
                mine.append(s)
                print(line(s), flush=True)
                faults += s.faults
                csv += s.rows
            if mine[-1].strategy == "auto":
                for s in mine[:-1]:
                    faults += against(s, mine[-1])
            sweeps += mine
    gaps = [r["gap"] for s in sweeps for r in s.rows if s.strategy == "auto" and r["feasible"]
            and abs(r["fraction"] - 0.6) < 0.026]
    print(f"{len(csv)} plans asked for, {sum(r['feasible'] for r in csv)} made, "
          f"{len(faults)} faults; median gap of auto at 60 %: "
          f"{percent(statistics.median(gaps) if gaps else None)} points")
    compare_optima(a.shared, sweeps)
    for text in faults:
        print("FAULT " + text)
    if a.csv:
        keys = ["graph", "strategy", "fraction", "budget", "feasible", "live_peak_bytes",
                "arena_bytes", "cost", "overhead", "gap", "seconds"]
        with open(a.csv, "w", encoding="utf-8") as f:
            f.write(",".join(keys) + "\n")
            for r in csv:
                f.write(",".join(str(r.get(k, "")) for k in keys) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
