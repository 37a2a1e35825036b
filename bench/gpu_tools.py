"""Shared by the parts of gpu.py: commands with a time limit, trainers, results that are written to
disk at once."""
import concurrent.futures
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback

# Networks of the table: the zoo's name and options, batch, a small batch, optimizer, and what is
# counted per second. tiny: stands in for it in a dry run, with the same code paths. Rates are those
# of gpu_peer.py.
NETS = {
    "resnet50": {"model": "resnet50", "batch": 256, "small": 4, "unit": "img", "lr": "0.01",
                 "tiny": "resnet50 --stem=cifar --width=4 --classes=10 --size=16"},
    "densenet121": {"model": "densenet121", "batch": 128, "small": 4, "unit": "img", "lr": "0.01",
                    "tiny": "densenet121 --width=4 --classes=10 --size=32"},
    "unet": {"model": "unet --pad=valid --size=572", "batch": 16, "small": 1, "unit": "img",
             "lr": "0.01", "tiny": "unet --pad=valid --width=2 --size=188"},
    "gpt": {"model": "gpt", "batch": 16, "small": 1, "unit": "tok", "per_sample": 1024,
            "optimizer": "adamw:wd=0.01", "lr": "1e-3",
            "tiny": "gpt --depth=2 --width=32 --heads=2 --context=32 --vocab=64"},
}
WHO = "eager,compile,graphs,jax"            # peers, by default
# Used in place of budgets: no budget, with options whose effect is shown beside.
IN_TURN = "in-turn"
VARIANTS = {IN_TURN: ["--no-overlap"]}
VARIANT_WORDS = {IN_TURN: "without overlap"}
TITLES = {"resnet50": "ResNet-50", "densenet121": "DenseNet-121", "unet": "U-Net 572",
          "gpt": "GPT-2 124M"}

# Programs with every kind of product, odd sizes among them: see Session.probe.
PROBES = {"gpt": "gpt --depth=1 --heads=2 --width=64 --context=32 --vocab=64",
          "odd": "gpt --depth=1 --heads=3 --width=39 --context=29 --vocab=67 --head=untied",
          "mlp": "mlp --width=48"}
# Lets the driver and the libraries log their errors.
TALK = {"CUDA_LOG_FILE": "stderr", "CUDA_LAUNCH_BLOCKING": "1", "CUDNN_LOGLEVEL_DBG": "2",
        "CUDNN_LOGDEST_DBG": "stderr", "CUBLASLT_LOG_LEVEL": "3"}
MOST_EXPLAINED, MOST_TEXT = 6, 200_000


class Done:
    """A command that has ended: rc (124: out of time), seconds, its output."""

    def __init__(self, rc, seconds, out):
        self.rc, self.seconds, self.out = rc, seconds, out

    def tail(self, n=6):
        lines = [line for line in self.out.strip().splitlines() if line.strip()]
        return " | ".join(lines[-n:])[-600:]

    def json(self):
        """The last line that is a JSON object; None."""
        for line in reversed(self.out.splitlines()):
            if line.startswith("{"):
                try:
                    return json.loads(line)
                except ValueError:
                    return None
        return None


def library_folders():
    """Folders of CUDA libraries that Python packages bring along."""
    found = []
    for base in sys.path:
        found += sorted(glob.glob(os.path.join(base, "nvidia", "*", "lib")))
    return [d for d in found if glob.glob(os.path.join(d, "lib*.so*"))]


def find_tool(*names):
    """The first of these programs found in the path or in the toolkit; else the first name."""
    folders = ["/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer"]
    for name in names:
        found = shutil.which(name) or shutil.which(name, path=":".join(folders))
        if found:
            return found
    return names[0]


class Session:
    def __init__(self, options, lowerset, home, here):
        self.o, self.lowerset, self.here = options, os.path.abspath(lowerset), here
        self.target = "cpu" if options.dry_run else "cuda"
        self.begin = time.monotonic()
        self.end = self.begin + options.limit
        self.work = os.path.abspath(options.work)
        self.out = os.environ.get("OUT") or options.out or self.work
        for folder in (self.work, self.out):
            os.makedirs(folder, exist_ok=True)
        self.rows, self.failures, self.notes = [], [], []
        self.explained = 0
        self.lock = threading.RLock()
        self.writing = {}                       # a lock for each network's file
        self.env = dict(os.environ)
        folders = library_folders() + ["/usr/local/cuda/lib64"]
        if home:
            self.env["LOWERSET_HOME"] = os.path.abspath(home)
            folders.insert(0, os.path.join(os.path.abspath(home), "lib"))
        folders += [p for p in (self.env.get("LD_LIBRARY_PATH"),) if p]
        self.env["LD_LIBRARY_PATH"] = ":".join(folders)
        self.env.setdefault("CC", find_tool("cc", "gcc", "clang"))
        self.env["XDG_CACHE_HOME"] = os.path.join(self.work, "cache")
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
            self.env.pop(name, None)

    def left(self):
        return self.end - time.monotonic()

    def say(self, text):
        print(f"[{time.monotonic() - self.begin:6.1f}] {text}", flush=True)

    # ---- results ----
    def record(self, kind, **row):
        with self.lock:
            self.rows.append({"kind": kind, **row})
            self.save()

    def fail(self, text):
        with self.lock:
            self.failures.append(text)
            self.say("FAIL " + text)
            self.save()

    def note(self, text):
        with self.lock:
            if text not in self.notes:
                self.notes.append(text)
                self.say("note: " + text)

    def save(self):
        """Also writes to a place where later calls on this machine find it, because $OUT is emptied
        before each call."""
        some = [v.replace(",", "-") for v in (self.o.nets, self.o.who) if v and v != WHO]
        name = "-".join(["gpu", self.o.part.replace(",", "-"), *some]) + ".json"
        data = {"part": self.o.part, "dry_run": self.o.dry_run, "rows": self.rows,
                "failures": self.failures, "notes": self.notes}
        with self.lock:
            for path in {os.path.join(folder, name) for folder in (self.out, self.work)}:
                with open(path + ".tmp", "w", encoding="utf-8") as f:
                    json.dump(data, f, indent=1)
                os.replace(path + ".tmp", path)

    # ---- commands ----
    def call(self, argv, limit=60, env=None, cwd=None):
        """Runs a command for at most `limit` seconds, within the time limit of the part."""
        limit = min(limit, self.left())
        if limit <= 1:
            return Done(124, 0, "no time was left")
        start = time.monotonic()
        try:
            p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 env=env or self.env,
                                 cwd=cwd or self.work, start_new_session=True, text=True,
                                 errors="replace")
        except OSError as e:
            return Done(127, 0, str(e))
        try:
            out, _ = p.communicate(timeout=limit)
            rc = p.returncode
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, _ = p.communicate()
            rc = 124
            out += f"\nended after {limit:.0f} s"
        return Done(rc, time.monotonic() - start, out)

    def side_by_side(self, jobs, workers=None):
        """Results of functions without arguments, run in threads, in their order."""
        workers = workers or max(1, min(8, (os.cpu_count() or 2) // 2))
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            return [f.result() for f in [pool.submit(job) for job in jobs]]

    def guarded(self, what, run, *args):
        """run(*args). Any error in it counts as one failure, and the script continues."""
        try:
            return run(*args)
        except Exception as e:
            self.keep_text(what, traceback.format_exc())
            self.fail(f"{what}: {type(e).__name__}: {e}")
            return None

    # ---- networks and trainers ----
    def model(self, name, spec, batch):
        """Writes the network; its path, or None after a failure."""
        path = os.path.join(self.work, name + ".onnx")
        with self.lock:
            own = self.writing.setdefault(name, threading.Lock())
        with own:                               # others wait until it is whole
            if not os.path.exists(path):
                done = self.call([self.lowerset, "model", *spec.split(), f"--batch={batch}",
                                  "-o", path], 120)
                if done.rc != 0:
                    self.fail(f"{name}: the network is not written: {done.tail()}")
                    return None
        return path

    def compile(self, onnx, name, target=None, precision="f32", budget=None, loss="ce",
                optimizer=None, lr=None, more=()):
        """A trainer and the result of its compilation: (path or None, Done)."""
        path = os.path.join(self.work, name)
        target = target or self.target
        if target == "cpu" and precision == "tf32":
            precision = "f32"
        argv = [self.lowerset, "compile", onnx, "-o", path, f"--target={target}",
                f"--precision={precision}", f"--loss={loss}", *more]
        if budget in VARIANTS:
            argv += VARIANTS[budget] if target == "cuda" else []
        elif budget:
            argv.append(f"--budget={budget}")
        argv.append(f"--optimizer={optimizer or 'sgd:momentum=0.9'}")
        if lr:
            argv.append(f"--lr={lr}")
        if self.o.dry_run:
            argv += ["-O0", "--plan-effort=1"]
        elif target == "cpu":
            argv.append("-O1")
        done = self.call(argv, 240)
        return (path if done.rc == 0 else None), done

    def probe(self):
        """Runs every kind of product once, because some may be new to this machine's libraries;
        programs note the products that libraries refuse. Runs once for all parts, unless it fails.
        False: no program runs at all, so waiting for others is useless."""
        known = os.path.join(self.work, "probed")
        if os.path.exists(known):
            return True
        wrong = 0
        jobs = [(f"probe-{name}-{precision}", self.model("probe-" + name, spec, 4), precision)
                for name, spec in PROBES.items() for precision in ("f32", "tf32", "bf16", "f16")]
        made = self.side_by_side([lambda n=n, o=o, p=p: self.compile(o, n, precision=p)
                                  for n, o, p in jobs if o is not None])
        for path, done in made:
            if path is None:
                self.fail(f"a probe does not compile: {done.tail()}")
                wrong += 1
                continue
            done = self.train(path, 2, limit=45)
            for line in re.findall("^note: (.*)", done.out, re.M):
                self.note(f"{os.path.basename(path)}: {line}")
            if done.rc != 0:
                if wrong < 2:           # the others will fail for the same reason
                    self.explain(path, 1)
                self.fail(f"{os.path.basename(path)}: rc {done.rc}: {done.tail()}")
                wrong += 1
        if wrong == 0:
            with open(known, "w", encoding="utf-8"):
                pass
        if wrong == len(jobs):
            self.fail("no program runs on this machine: the rest of this part is left out")
        return wrong < len(jobs)

    def explain(self, trainer, steps, data="synthetic", more=()):
        """Runs a failed program again, node by node, and keeps the messages of CUDA
        and its libraries."""
        with self.lock:
            if self.explained == MOST_EXPLAINED or self.target == "cpu" \
                    or not os.path.exists(trainer):
                return
            self.explained += 1
        checked = [] if "--check-numerics" in more else ["--check-numerics"]
        done = self.train(trainer, steps, data, [*more, *checked], limit=60,
                          env={**self.env, **TALK})
        self.keep_text(f"{os.path.basename(trainer)}: rc {done.rc}", done.out)

    def keep_text(self, title, text):
        with self.lock, open(os.path.join(self.out, "explained.txt"), "a", encoding="utf-8") as f:
            f.write(f"==== {title}\n{text[-MOST_TEXT:]}\n")

    def train(self, trainer, steps, data="synthetic", more=(), limit=120, before=(), env=None):
        argv = [*before, trainer, "--data", data, "--steps", str(steps), "--epochs", str(steps),
                "--progress", "none", "--seed", "3", *more]
        return self.call(argv, limit, env=env)

    def memory_of(self, trainer):
        """Bytes of the plan: {'state': …, 'arena': …, 'total': …, 'plan': hash}."""
        done = self.call([trainer, "--print-plan"], 20)
        text = done.out[:2000]
        found = {k: int(v) for k, v in re.findall(r"\b(state|arena|constants|total) (\d+)", text)}
        plan = re.search(r"plan ([0-9a-f]{6,})", text)
        over = re.search(r"overhead (-?[0-9.]+) %", text)
        found["plan"] = plan.group(1) if plan else "?"
        found["overhead"] = float(over.group(1)) if over else 0.0
        return found


def nvidia_smi(session, fields):
    """One row of nvidia-smi as {field: text}; {} where there is none."""
    if not shutil.which("nvidia-smi"):
        return {}
    done = session.call(["nvidia-smi", "--query-gpu=" + ",".join(fields),
                         "--format=csv,noheader,nounits"], 20)
    if done.rc != 0 or not done.out.strip():
        return {}
    return dict(zip(fields, [t.strip() for t in done.out.strip().splitlines()[0].split(",")]))


def has_gpu(session):
    """From nvidia-smi, or from the driver if nvidia-smi is not in the path."""
    if nvidia_smi(session, ["name"]):
        return True
    code = "import ctypes; c = ctypes.CDLL('libcuda.so.1'); n = ctypes.c_int(); " \
           "assert c.cuInit(0) == 0 and c.cuDeviceGetCount(ctypes.byref(n)) == 0 and n.value > 0"
    return session.call([sys.executable, "-c", code], 30).rc == 0


def median(values):
    v = sorted(values)
    n = len(v)
    return float("nan") if n == 0 else v[n // 2] if n % 2 else (v[n // 2 - 1] + v[n // 2]) / 2
