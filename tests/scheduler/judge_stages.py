#!/usr/bin/env python3
"""Lets the independent judge replay the plans of pipeline stages.

    tests/scheduler/judge_stages.py LOWERSET SHARED [--whole] [-v]

`lowerset plan --stages` writes a graph and a plan of each stage. Of every stage the judge replays

  - the files as they are: one micro-batch, with its claims;
  - the whole step of the rank: as many copies of the graph as there are micro-batches, their runs
    in the order of the `turns` of --json, what lies in a region moved to the copy of its
    micro-batch. Nodes that stand for messages read what is sent as late as the receiver may: right
    before the turn at which the sender waits for that.

Checked beside that: each tensor is made in one stage, each update runs in one; what a message
brings, its receiver has from it; the arena and the bytes of a rank are within what --json says,
and within the budget. Prints a row per pipeline; exit status 1 when a check fails, 77 when there
is no judge.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

MODELS = {
    "mlp": "mlp --batch=0 --depth=4 --width=16 --size=6",
    "unet": "unet --depth=1 --size=16 --width=4",
    "gpt": "gpt --depth=2 --heads=2 --width=16 --context=8 --vocab=17",
    "unet64": "unet --size=64 --width=8",
    "resnet18": "resnet18 --size=32 --width=8",
    "autoencoder": "autoencoder",
    "googlenet": "googlenet --size=64 --width=16",
}
SMALL = ["mlp", "unet", "gpt"]
QUICK = [       # network, stages, options
    ("mlp", 3, "--order zb --recompute auto --optimizer adamw --clip-norm 1"),
    ("unet", 2, "--order gpipe --recompute auto --budget 70%"),
    ("unet", 3, "--order 1f1b --recompute all --budget min"),
    ("unet", 3, "--order zb --recompute auto --budget min"),
    ("gpt", 2, "--order 1f1b --recompute auto --budget 70%"),
]
MICROS, SAMPLES = 4, 2


def whole():
    """All of them: orders, modes, budgets and numbers of stages; of large networks each order with
    some of the rest."""
    ways = ["none", "all --budget min", "auto --budget 70%", "all", "auto", "auto --budget min"]
    for name in MODELS:
        for stages in (2, 3, 4) if name in SMALL else (2, 4):
            for k, order in enumerate(("gpipe", "1f1b", "zb")):
                some = [ways[(2 * k + stages + n) % len(ways)] for n in range(2)]
                for how in ways if name in SMALL else some:
                    yield name, stages, f"--order {order} --recompute {how}"
    for order in ("gpipe", "1f1b", "zb"):
        for model in ("gpt", "unet"):
            yield model, 3, (f"--order {order} --recompute auto --budget min --optimizer adamw "
                             "--clip-norm 1")


class Fault(Exception):
    """What is wrong with a pipeline."""


def need(good, text):
    if not good:
        raise Fault(text)


class Stage:
    """One stage: its files, and what --json says of it."""

    def __init__(self, number, graph, plan, facts, messages):
        self.number, self.graph, self.plan, self.facts = number, graph, plan, facts
        self.sent = [m for m in messages if m["from"] == number]
        self.received = [m for m in messages if m["to"] == number]
        self.nodes, self.tensors = graph["nodes"], graph["tensors"]

    def made_by(self):
        """By tensor: the node that makes it, alternatives aside."""
        return {t: n for n in self.nodes if not n.get("alternative") for t in n.get("outputs", [])}

    def phases(self):
        """The steps of each phase F, B, W and L; what is freed belongs to the phase of
        the run before."""
        at, run, out = self.facts["phase_at"], -1, [[], [], [], []]
        for step in self.plan["steps"]:
            run += "compute" in step
            out[sum(run >= begin for begin in at[1:4])].append(step)
        need(run + 1 == at[4], f"{run + 1} runs, but {at[4]} are stated")
        return dict(zip("FBWL", out))


class Step:
    """A whole step of a stage's rank as a graph and a schedule for the judge."""

    def __init__(self, stage, micros):
        self.stage, self.micros = stage, micros
        self.tensors, self.nodes, self.steps = [], [], []
        self.place = [{} for _ in range(micros)]        # node of the stage: that of the micro-batch
        self.offset = [{} for _ in range(micros)]       # live tensor: offset in the first copy
        self.waiting = [[] for _ in range(micros)]      # messages that may be on their way
        # sent tensors that the stage itself no longer needs
        self.freed = [set() for _ in range(micros)]
        self.phase = None                               # that runs
        for micro in range(micros):
            self.copy(micro)

    def tensor(self, micro, t):
        return micro * len(self.stage.tensors) + t

    def add(self, node):
        self.nodes.append(dict(node, id=len(self.nodes)))
        return len(self.nodes) - 1

    def copy(self, micro):
        """The graph of a micro-batch. Only the last one has what runs once per step."""
        runs = {s["compute"] for s in self.stage.phases()["L"] if "compute" in s}
        for t in self.stage.tensors:
            self.tensors.append(dict(t, id=len(self.tensors)))
        for n in self.stage.nodes:
            if n["id"] in runs and micro + 1 < self.micros:
                continue
            new = dict(n)
            for key in ("inputs", "outputs", "updates"):
                new[key] = [self.tensor(micro, t) for t in n.get(key, [])]
            new["inplace"] = [[self.tensor(micro, t) for t in pair]
                              for pair in n.get("inplace", [])]
            self.place[micro][n["id"]] = self.add(new)

    def moved(self, offset, micro):
        """Where the bytes of the first copy of a region are for a micro-batch."""
        at = 0
        for region in self.stage.facts["regions"]:
            copies, size = region["region_copies"], region["region_bytes"]
            if at <= offset < at + size:
                return offset + micro % copies * size
            at += copies * size
        raise Fault(f"offset {offset} lies in no region")

    def run(self, micro, phase):
        for s in self.stage.phases()[phase]:
            if "free" in s:
                if s["free"] in self.offset[micro]:
                    self.free(micro, s["free"])
                continue
            # made again, the last one is sent
            for t in self.freed[micro] & {int(t) for t in s.get("offsets", {})}:
                self.freed[micro].remove(t)
                self.steps.append({"free": self.tensor(micro, t)})
            new = {"compute": self.place[micro][s["compute"]]}
            for pair in s.get("reuse", []):
                del self.offset[micro][pair[1]]
            sizes = {t: self.stage.tensors[int(t)]["bytes"] for t in s.get("offsets", {})}
            self.offset[micro].update({int(t): at for t, at in s.get("offsets", {}).items()})
            new["offsets"] = {str(self.tensor(micro, int(t))): self.moved(at, micro)
                              if sizes[t] else at for t, at in s.get("offsets", {}).items()}
            new["reuse"] = [[self.tensor(micro, t) for t in pair] for pair in s.get("reuse", [])]
            if "workspace_offset" in s:
                new["workspace_offset"] = self.moved(s["workspace_offset"], micro)
            self.steps.append(new)
        for m in self.stage.sent:
            if m["made"] == phase and (m["read"] != "L" or micro + 1 == self.micros):
                self.waiting[micro].append(m)

    def free(self, micro, t):
        """Frees it, or when it has been sent."""
        if any(m["id"] == t for m in self.waiting[micro] + self.made_in_phase(micro)):
            self.freed[micro].add(t)
            return
        self.steps.append({"free": self.tensor(micro, t)})
        del self.offset[micro][t]

    def made_in_phase(self, micro):
        """Messages of the phase that runs."""
        return [m for m in self.stage.sent if m["made"] == self.phase
                and (m["read"] != "L" or micro + 1 == self.micros)]

    def send(self, micro, which):
        """The last moment at which these messages are read."""
        for m in [m for m in self.waiting[micro] if which(m)]:
            self.waiting[micro].remove(m)
            node = {"name": f"sent: {m['name']}", "kind": "forward", "cost": 0,
                    "inputs": [self.tensor(micro, m["id"])]}
            self.steps.append({"compute": self.add(node)})
            if m["id"] in self.freed[micro] and not any(w["id"] == m["id"]
                                                        for w in self.waiting[micro]):
                self.freed[micro].remove(m["id"])
                self.free(micro, m["id"])

    def before(self, phase, micro):
        """What the sender waits for before a turn."""
        self.phase = None
        for of in range(self.micros):
            self.send(of, lambda m, of=of: m.get("until") == phase and micro - m["lag"] == of
                      or m["made"] == m["read"] == "F" and phase == "B" and micro == of)

    def replay(self):
        turns = [(t[0], int(t[1:])) for t in self.stage.facts["turns"].split()]
        phases = "FBW" if any(t[0] == "W" for t in turns) else "FB"
        need(sorted(turns) == sorted((p, m) for p in phases for m in range(self.micros)),
             "turns are missing")
        done = {}
        for phase, micro in turns:
            need(done.get(micro, "") == phases[:phases.index(phase)],
                 f"{phase} of micro-batch {micro} too early")
            self.before(phase, micro)
            self.phase = phase
            self.run(micro, phase)
            done[micro] = phases[:phases.index(phase) + 1]
            self.phase = None
            if phase == phases[-1] and micro + 1 < self.micros:
                for t in list(self.offset[micro]):
                    self.free(micro, t)
        last = self.micros - 1
        self.phase = "L"
        self.run(last, "L")
        self.phase = None
        for micro in range(self.micros):
            self.send(micro, lambda m: True)
        graph = dict(self.stage.graph, tensors=self.tensors, nodes=self.nodes,
                     required=[at[n] for at in self.place for n in self.stage.graph["required"]
                               if n in at],
                     outputs=[self.tensor(last, t) for t in self.stage.graph["outputs"]])
        return graph, dict(self.stage.plan, steps=self.steps,
                           claims={"budget": self.stage.facts["arena_bytes"]})


def check_between(full, stages, messages):
    """What the stages are to each other, beside the graph of one process."""
    made = {}
    for s in stages:
        for t, n in s.made_by().items():
            if n["op"] != "phase" and t < len(full["tensors"]):       # the rest keep phases apart
                need(t not in made, f"tensor {t} is made in two stages")
                made[t] = s
    for t in full["outputs"]:
        need(t in made, f"output {t} is made in no stage")
    updates = [(n["name"], tuple(n["updates"])) for s in stages
               for n in s.nodes if n.get("updates")]
    want = [(n["name"], tuple(n["updates"])) for n in full["nodes"] if n.get("updates")
            and not n.get("alternative")]
    need(sorted(updates) == sorted(want), "updates run in two stages or in none")
    for m in messages:
        of, to = stages[m["from"]], stages[m["to"]]
        need(made.get(m["id"]) is of, f"stage {m['from']} sends {m['name']}, and does not make it")
        need(of.tensors[m["id"]]["bytes"] == to.tensors[m["id"]]["bytes"] == m["bytes"],
             f"bytes of {m['name']}")
        need(to.made_by().get(m["id"], {}).get("op") == "phase",
             f"stage {m['to']} does not receive {m['name']}")
    for s in stages:
        arrive = {t for n in s.nodes if n["op"] == "phase"
                  for t in n["outputs"] if t < len(full["tensors"])}
        need(arrive == {m["id"] for m in s.received}, f"stage {s.number} has what nobody sends")


def check_stage(judge, stage, micros):
    """One micro-batch with its claims, then all of them. Returns the bytes of arena that
    the judge counts."""
    report = judge.judge(judge.Graph(stage.graph), stage.plan)
    wrong = judge.check_claims(report, stage.plan, None)
    for key in ("live_peak", "arena_peak", "cost"):
        need(key in stage.plan["claims"], f"no claim of {key}")
    graph, schedule = Step(stage, micros).replay()
    all_of = judge.judge(judge.Graph(graph), schedule)
    wrong += judge.check_claims(all_of, schedule, None)
    need(not wrong, "; ".join(wrong))
    facts = stage.facts
    need(facts["arena_bytes"] == sum(r["region_copies"] * r["region_bytes"]
                                     for r in facts["regions"]), "arena_bytes")
    need(facts["rank_bytes"] == facts["state_bytes"] + facts["arena_bytes"], "rank_bytes")
    return all_of["arena_peak"]


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def plan(lowerset, model, stages, options):
    """The summary and the stages; None: nothing fits."""
    for k in range(stages):
        for name in (f"g.{k}.json", f"p.{k}.json"):
            if os.path.exists(name):
                os.unlink(name)
    done = subprocess.run([lowerset, "plan", model, "-q", "--stages", str(stages),
                           "--microbatches", str(MICROS), "--batch",
                           str(MICROS * SAMPLES), "--plan-effort", "1",
                           "--json", "--graph-json", "g.json", "--plan-json",
                           "p.json", *options.split()], capture_output=True, text=True, check=False)
    need(done.returncode in (0, 4), f"exit {done.returncode}: {done.stderr.strip()[:300]}")
    line = json.loads(done.stdout)["pipeline"]
    if done.returncode == 4:
        return line, None
    return line, [Stage(k, load(f"g.{k}.json"), load(f"p.{k}.json"), line["of_stage"][k],
                        line["messages"])
                  for k in range(stages)]


def check(judge, lowerset, name, stages, options):
    line, of = plan(lowerset, name + ".onnx", stages, options)
    if of is None:
        return "nothing fits"
    check_between(load(name + ".json"), of, line["messages"])
    counted = []
    for s in of:
        try:
            counted.append(check_stage(judge, s, MICROS))
        except judge.Invalid as e:
            raise Fault(f"stage {s.number}: {e}") from None
        except (judge.BadFile, Fault) as e:
            raise Fault(f"stage {s.number}: {e}") from None
    copies = [[r["region_copies"] for r in s.facts["regions"]] for s in of]
    return f"{len(line['messages'])} messages, copies {copies}, arenas {counted}"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("lowerset")
    p.add_argument("shared")
    p.add_argument("--whole", action="store_true", default="LS_WHOLE" in os.environ)
    a = p.parse_args()
    if not os.path.exists(os.path.join(a.shared, "judge", "judge.py")):
        print(f"skipped: no {a.shared}/judge/judge.py")
        return 77
    sys.path.insert(0, os.path.abspath(os.path.join(a.shared, "judge")))
    import judge
    lowerset = os.path.abspath(a.lowerset)
    todo = list(whole()) if a.whole else QUICK
    faults = 0
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for name in {t[0] for t in todo}:
            subprocess.run([lowerset, "model", *MODELS[name].split(), "--weights=none",
                            "-o", name + ".onnx"], check=True,
                           stdout=subprocess.DEVNULL)
        for name, stages, options in todo:
            optimizer = options.partition("--optimizer")[1:]
            subprocess.run([lowerset, "plan", name + ".onnx", "-q", "--strategy=none",
                            "--microbatches", str(MICROS), "--batch",
                            str(MICROS * SAMPLES), "--graph-json", name + ".json",
                            *"".join(optimizer).split()], check=True,
                           stdout=subprocess.DEVNULL)
            try:
                print(f"{name} in {stages}, {options}: "
                      f"{check(judge, lowerset, name, stages, options)}", flush=True)
            except Fault as e:
                faults += 1
                print(f"FAULT {name} in {stages}, {options}: {e}", flush=True)
        os.chdir("/")
    print(f"{len(todo)} pipelines, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
