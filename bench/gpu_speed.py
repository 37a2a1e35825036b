"""gpu.py --part speed and --part peers: the table of training steps, of lowerset and its peers."""
import glob
import json
import os
import shlex
import sys
import threading
import time

from gpu_tools import NETS, VARIANTS, median

BATCHES = 4                     # in a file: at the end of an epoch a run waits for its last step


def names(s):
    return [n for n in (s.o.nets.split(",") if s.o.nets else NETS) if n in NETS]


def batches(s, net, small):
    if s.o.dry_run:
        return 2
    return NETS[net]["small" if small else "batch"]


class Watch:
    """The most memory the device had in use while something ran, less what it was before."""

    def __init__(self):
        try:
            import pynvml
            pynvml.nvmlInit()
            self.read = lambda: pynvml.nvmlDeviceGetMemoryInfo(
                pynvml.nvmlDeviceGetHandleByIndex(0)).used
            self.read()
        except Exception:           # without NVML memory cannot be watched
            self.read = lambda: 0
        self.most = 0

    def __enter__(self):
        self.base, self.most, self.stop = self.read(), 0, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def run(self):
        while not self.stop.wait(0.02):
            self.most = max(self.most, self.read() - self.base)

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


# ---- ours ----
def data_file(s, net, batch):
    """Batches of random numbers, as both sides' networks take them; their path."""
    import numpy

    from gpu_peer import SIZES, TINY, valid_output
    path = os.path.join(s.work, f"data-{net}-{batch}.npz")
    if os.path.exists(path):
        return path
    sizes = (TINY if s.o.dry_run else SIZES)[net]
    random = numpy.random.default_rng(0)
    many = batch * BATCHES
    if net == "gpt":
        shape = (many, sizes["context"])
        x = random.integers(0, sizes["vocab"], shape)
        label = random.integers(0, sizes["vocab"], shape)
    else:
        size = 16 if s.o.dry_run and net == "resnet50" else sizes["size"]
        out = valid_output(sizes["size"])
        x = random.random((many, 3, size, size), numpy.float32)
        label = random.integers(0, sizes["classes"], (many, out, out) if net == "unet" else (many,))
    numpy.savez(path, x=x, label=label)
    return path


def step_times(path):
    """Milliseconds from step to step, without the first step."""
    with open(path, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    at = [r["time"] for r in rows if "step" in r]
    loss = [r["loss"] for r in rows if "step" in r]
    return [(b - a) * 1e3 for a, b in zip(at, at[1:])], loss


def first_step(path):
    with open(path, encoding="utf-8") as f:
        return next((json.loads(t)["time"] for t in f if '"step"' in t), float("nan"))


def make(s, net, precision, budget, small):
    """Compiles a trainer of the table: (path or None, Done, batch)."""
    batch = batches(s, net, small)
    spec = NETS[net]["tiny" if s.o.dry_run else "model"]
    onnx = s.model(f"{net}-{batch}", spec, batch)
    if onnx is None:
        return None, None, batch
    label = budget.strip("%") if isinstance(budget, str) else "half"
    path, done = s.compile(onnx, f"{net}-{batch}-{precision}-{label}", precision=precision,
                           budget=None if budget == "none" else str(budget),
                           optimizer=NETS[net].get("optimizer"), lr=NETS[net].get("lr"))
    return path, done, batch


def steps_for(s, ms):
    """The number of steps that fills the requested time, at least 12."""
    return 6 if s.o.dry_run else int(min(400, max(12, s.o.seconds * 1e3 / max(ms, 0.05))))


def measure(s, net, precision, budget, small, trainer, batch, compile_s):
    log = trainer + ".jsonl"
    data = data_file(s, net, batch)
    more = ["--log", log, "--workers", str(min(8, os.cpu_count() or 1))]
    trial = s.train(trainer, 6, data, more, limit=90)
    if trial.rc != 0:
        s.explain(trainer, 2, data)
        s.fail(f"{net} {precision} {budget} b{batch}: rc {trial.rc}: {trial.tail()}")
        return None
    times, _ = step_times(log)
    first = first_step(log)
    with Watch() as watch:
        done = s.train(trainer, 3 + steps_for(s, median(times)), data, more, limit=120)
    if done.rc != 0:
        s.fail(f"{net} {precision} {budget} b{batch}: rc {done.rc}: {done.tail()}")
        return None
    times, loss = step_times(log)
    times = times[2:]
    if not times or not loss[-1] == loss[-1]:
        s.fail(f"{net} {precision} {budget}: no times, or a loss that is not a number")
        return None
    plan = s.memory_of(trainer)
    row = {"model": net, "who": "lowerset", "precision": precision, "batch": batch,
           "budget": str(budget),
           "ms": median(times), "best_ms": min(times), "steps": len(times), "first_s": first,
           "compile_s": compile_s, "peak_bytes": plan.get("total", 0), "taken_bytes": watch.most,
           "beside_bytes": max(0, watch.most - plan.get("total", 0)),       # context and libraries
           "overhead": plan.get("overhead", 0), "plan": plan.get("plan"), "loss": loss[-1],
           "notes": [t for t in done.out.splitlines() if t.startswith("note")][:4]}
    s.record("speed", **row)
    s.say(f"{net} {precision} budget {budget} b{batch}: {row['ms']:.2f} ms, "
          f"{row['peak_bytes'] / 2**30:.2f} GiB")
    return row


def profile(s, net, precision, trainer, batch):
    """The most expensive steps of a trainer. Returns the ms of all steps; None after a failure."""
    path = trainer + ".profile.json"
    done = s.train(trainer, 6, data_file(s, net, batch), ["--profile", path], limit=90)
    if done.rc != 0:
        s.fail(f"{net} {precision}: --profile: rc {done.rc}: {done.tail()}")
        return None
    with open(path, encoding="utf-8") as f:
        data = json.load(f)
    rows = data["steps"]
    ns = [(r["ns"], f"{r['name']} ({r['op']})") for r in rows]
    total = sum(t for t, _ in ns)
    by_op = {}
    for r in rows:
        by_op[r["op"]] = by_op.get(r["op"], 0) + r["ns"]
    s.record("profile", model=net, precision=precision, batch=batch, total_ms=total / 1e6,
             dearest=[[name, t / 1e6] for t, name in sorted(ns, reverse=True)[:12]],
             ops=sorted(([k, v / 1e6] for k, v in by_op.items()), key=lambda r: -r[1]),
             steps=[[r["name"], r["op"], r["ns"] / 1e6, r["elements"]] for r in rows])
    return total / 1e6


def look_closer(s, net, precision, small, trainer, batch, row):
    """Profiles the steps, and measures again with plans chosen by the clock."""
    ms = profile(s, net, precision, trainer, batch)
    if ms and row["ms"] > 1.25 * ms:
        s.note(f"{net} {precision} b{batch}: a step takes {row['ms']:.1f} ms, its kernels "
               f"{ms:.1f}: "
               "the rest is waiting, for data or for the host")
    if s.o.no_tune:
        return
    tuned = s.train(trainer, 4, data_file(s, net, batch), ["--tune"], limit=120)
    if tuned.rc == 0:           # later runs use the stored choices
        measure(s, net, precision, "tuned", small, trainer, batch, tuned.seconds)
    elif tuned.rc == 124:
        s.note(f"{net} {precision}: --tune was ended after {tuned.seconds:.0f} s")
    else:
        s.fail(f"{net} {precision}: --tune: rc {tuned.rc}: {tuned.tail()}")


def eager_peaks(s):
    """PyTorch's peak bytes from earlier results; results on this machine if none are named:
    {(net, precision): bytes}."""
    peaks = {}
    for path in s.o.merge or sorted(glob.glob(os.path.join(s.work, "gpu-peers*.json"))):
        with open(path, encoding="utf-8") as f:
            data = json.load(f)
        for r in data["rows"] if data["dry_run"] == s.o.dry_run else []:
            if r["kind"] == "speed" and r["who"] == "eager" and r["batch"] == batches(s, r["model"],
                                                                                      False):
                peaks[r["model"], r["precision"]] = r["peak_bytes"]
    return {key: peak for key, peak in peaks.items() if peak > 0}


def ours_to_run(s, peaks):
    """Programs in the order of measuring: [(net, precision, budget, small)]."""
    budgets = [b for b in s.o.budgets.split(",") if b != "none"]
    precisions = s.o.precisions.split(",")
    todo = [(net, precision, "none", False) for precision in precisions for net in names(s)]
    todo += [(net, precision, "none", True) for precision in precisions if precision != "f32"
             for net in names(s)]
    todo += [(net, "tf32", v, small) for v in VARIANTS for small in (True, False)
             for net in names(s)]
    todo += [(net, "tf32", peaks[net, "tf32"] // 2, False)
             for net in names(s) if (net, "tf32") in peaks]
    for net in names(s):
        todo += [(net, "tf32", b, False) for b in budgets]
    return [t for t in todo if t[1] in precisions]


def run_ours(s):
    """Compiles all programs first, in parallel, in the order of measuring. Measures each as it is,
    then with the choices of --tune."""
    todo = ours_to_run(s, eager_peaks(s))
    if not s.probe():
        return
    s.say(f"compiling {len(todo)} programs")
    enough = s.left() * 0.5             # the other half of the time is for running them

    def make_in_time(t):
        made = s.guarded(" ".join(map(str, t)), make, s, *t) if s.left() > enough else None
        return made or (None, None, 0)
    made = s.side_by_side([lambda t=t: make_in_time(t) for t in todo])
    for (net, precision, budget, small), (trainer, done, batch) in zip(todo, made):
        if trainer is None:
            if done is None:
                s.note(f"no time to compile {net} {precision} at {budget}")
            elif "LS-E0016" in done.out:
                s.note(f"{net} {precision} at {budget}: below the least budget")
            else:
                s.fail(f"{net} {precision} {budget}: does not compile (rc {done.rc}): "
                       f"{done.tail()}")
            continue
        if s.left() < 15:
            s.note(f"no time for {net} {precision} at {budget}")
            continue
        what = f"{net} {precision} {budget} b{batch}"
        row = s.guarded(what, measure, s, net, precision, budget, small, trainer, batch,
                        done.seconds)
        if row and budget == "none" and s.left() > 60:
            s.guarded(what, look_closer, s, net, precision, small, trainer, batch, row)
        if budget not in ("none", *VARIANTS) and os.path.exists(trainer):
            os.remove(trainer)          # each holds its model's weights


# ---- theirs ----
def call_peer(s, net, who, precision, small, limit, seconds):
    """Keeps compiled kernels for later processes."""
    argv = [*shlex.split(s.o.python or sys.executable), os.path.join(s.here, "gpu_peer.py"), net,
            who,
            f"--precision={precision}", f"--batch={batches(s, net, small)}", f"--seconds={seconds}"]
    if s.o.dry_run:
        argv += ["--tiny", "--device=cpu"]
    env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=os.path.join(s.work, "cache", "inductor"),
               TORCHINDUCTOR_FX_GRAPH_CACHE="1", TORCHINDUCTOR_AUTOGRAD_CACHE="1",
               JAX_COMPILATION_CACHE_DIR=os.path.join(s.work, "cache", "jax"))
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        env.pop(name, None)
    return s.call(argv, limit, env=env)


def peer(s, net, who, precision, small, limit):
    batch = batches(s, net, small)
    with Watch() as watch:
        done = call_peer(s, net, who, precision, small, limit, 0 if s.o.dry_run else s.o.seconds)
    row = done.json()
    if done.rc != 0 or row is None:
        what = f"{net} {who} {precision} b{batch}"
        if done.rc == 124:
            s.note(f"{what} was ended after {done.seconds:.0f} s")
        else:
            s.fail(f"{what}: rc {done.rc}: {done.tail(2)}")
        return
    row["device_bytes"] = watch.most
    s.record("speed", budget="-", **row)
    s.say(f"{net} {who} {precision} b{batch}: {row['ms']:.2f} ms, "
          f"{row['peak_bytes'] / 2**30:.2f} GiB, "
          f"first step after {row['first_s']:.0f} s")


def is_there(s, module):
    done = s.call([*shlex.split(s.o.python or sys.executable), "-c", f"import {module}"], 120)
    if done.rc != 0:
        s.note(f"{module} is not to be had: {done.tail(1)}")
    return done.rc == 0


def peers_to_run(s):
    """Configurations by precision, in the order asked for; 16 bits are autocast. PyTorch first; the
    others take a minute to compile: [(net, who, precision, small)]."""
    module = {who: "jax" if who == "jax" else "torch" for who in s.o.who.split(",")}
    there = {name: is_there(s, name) for name in dict.fromkeys(module.values())}
    whos = [who for who in module if there[module[who]]]
    precisions = s.o.precisions.split(",")
    order = {"tf32": [("eager", False), ("eager", True), ("compile", False), ("graphs", True),
                      ("tune", False), ("jax", False)],
             "bf16": [("eager", False), ("eager", True), ("compile", False), ("jax", False)],
             "f32": [("eager", False), ("compile", False), ("tune", False), ("jax", False)]}
    return [(net, who, precision, small) for precision in precisions
            for who, small in order.get(precision, []) for net in names(s) if who in whos]


def run_warm(s):
    """Lets the peers compile, some in parallel, so that measuring them later does not wait for
    compilers. A peer that fails here fails again when it is measured, and is reported then."""
    def warm(job):
        done = call_peer(s, *job, 300, 0)
        row = done.json() or {}
        s.say(f"{' '.join(map(str, job[:3]))}: rc {done.rc}, first step after "
              f"{row.get('first_s', 0):.0f} s")
    s.side_by_side([lambda t=t: warm(t) for t in peers_to_run(s) if t[1] != "eager"], workers=3)


def run_peers(s):
    todo = peers_to_run(s)
    for k, (net, who, precision, is_small) in enumerate(todo):
        if s.left() < 15:
            s.note(f"no time for {len(todo) - k} peers, the first of them {net} {who} {precision}")
            return
        s.guarded(f"{net} {who} {precision}", peer, s, net, who, precision, is_small,
                  60 if who == "eager" else 200)


def results_of(paths):
    """All rows of result files, newest last."""
    rows, failures, notes = [], [], []
    for path in paths:
        for name in sorted(glob.glob(path)):
            with open(name, encoding="utf-8") as f:
                data = json.load(f)
            rows += data["rows"]
            failures += data["failures"]
            notes += data["notes"]
    return rows, failures, notes


def now():
    return time.strftime("%Y-%m-%d", time.gmtime())
