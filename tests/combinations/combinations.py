#!/usr/bin/env python3
"""Random small networks with random options: a program that gets other ways to compute the same
numbers has the same bits as one process, or one of the two is refused with a sentence that is true.

    combinations.py BUILD [--seed N] [--cases N] [--seconds N] [--jobs N] [--keep DIR] [-v]

Every case has a seed of its own, the first is N. Without --cases, --seconds and LS_WHOLE in the
environment, few of the first 300 run, which have nearly every operator, option and value of an
option that any of the 300 has; with LS_WHOLE 2000 run. A case that fails is printed with its
commands; --keep leaves its files in DIR. The exit status is 1 if one fails.
"""
import argparse
import collections
import concurrent.futures
import os
import random
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../support")]
import afterwards  # noqa: E402
import compare  # noqa: E402
import refusals  # noqa: E402
from networks import draw  # noqa: E402
from options import STEPS, Options  # noqa: E402

MOST = 40           # cases of the suite
LIMIT = 300         # seconds for one command, on a machine that is busy
FINE, REFUSED, WRONG = "same bits", "refused", "wrong"


class Stop(Exception):
    """The case has ended: what came of it, and a text."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind, self.text = kind, text


class Case:
    def __init__(self, build, seed, folder):
        dice = random.Random(seed)
        self.lowerset = os.path.join(os.path.abspath(build), "lowerset")
        self.seed, self.folder, self.commands = seed, folder, []
        self.net = draw(dice)
        self.net.model.write(os.path.join(folder, "net.onnx"))
        self.options = Options(dice, self.net)
        self.quick = [self.options.level, "--plan-effort", "2", "-q"]
        self.parts = set()

    def call(self, args):
        """Runs a command in the case's folder, or several that are ranks of one run."""
        many = args if isinstance(args[0], list) else [args]
        self.commands += [shlex.join(a) for a in many]
        running = [subprocess.Popen(a, cwd=self.folder, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True, errors="replace")
                   for a in many]
        said, code = "", 0
        for p in running:
            try:
                said += p.communicate(timeout=LIMIT)[0]
            except subprocess.TimeoutExpired:
                for q in running:
                    q.kill()
                raise Stop(WRONG, f"{self.commands[-1]}\n  does not end within {LIMIT} s") from None
            code = code or p.returncode
        return code, said

    def must(self, args):
        """Runs it, and returns what it said; a refusal or a failure ends the case."""
        code, said = self.call(args)
        if code == 0:
            return said
        said = said.strip()
        polite = 0 < code < 10 and said and "ssert" not in said and "anitizer" not in said
        if polite and refusals.row_of(said, self.options):
            raise Stop(REFUSED, said)
        what = "refused, and the table of true refusals has no such row" if polite else "failed"
        raise Stop(WRONG, f"{self.commands[-1]}\n  exit {code}: {what}\n  {said[:1500]}")

    def compile(self, name, options):
        self.must([self.lowerset, "compile", "net.onnx", *self.quick, *options, "-o", name])

    def run(self, name, options, peers=0):
        if not peers:
            return self.must([f"./{name}", *options])
        places = ",".join(f"127.0.0.1:{port}" for port in free_ports(peers))
        return self.must([[f"./{name}", *options, "--peers", places, "--rank", str(k)]
                          for k in range(peers)])

    def run_way(self):
        o = self.options
        usual = o.run + o.way_run + o.written("way")
        if not o.in_two:
            return self.run("way", usual + ["--steps", str(STEPS), "--dump", "way.npz"], o.peers)
        first = ("one", o.run) if o.one_begins else ("way", usual, o.peers)
        self.run(first[0], first[1] + ["--steps", str(STEPS - 1), "--save", "ck"], *first[2:])
        return self.run("way", usual + ["--steps", str(STEPS), "--save", "ck", "--resume", "auto",
                                        "--dump", "way.npz"], o.peers)

    def cut(self):
        """What parts are of, and the operators that run in them."""
        words = self.options.way_compile
        if "--tiles" not in words:
            return "", self.parts
        return re.sub("[0-9]|@.*", "", words[words.index("--tiles") + 1]) or "samples", self.parts

    def check(self):
        o = self.options
        self.compile("one", o.compile)
        self.run("one", o.run + o.written("one") + ["--steps", str(STEPS), "--threads", "1",
                                                    "--dump", "one.npz"])
        self.compile("way", o.compile + o.way_compile)
        if o.has("--tiles"):
            self.parts = afterwards.in_parts(self)
        self.run_way()
        files = [os.path.join(self.folder, f) for f in ("one.npz", "way.npz")]
        said = compare.differences(*files, o.close, o.precision, o.is_one)
        said += afterwards.written(self)
        for check in o.also:
            said = said or afterwards.CHECKS[check](self)
        if said:
            raise Stop(WRONG, "\n  ".join(said[:12]))


def free_ports(n):
    held = [socket.socket() for _ in range(n)]
    for s in held:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


FREE = {"--batch", "--data", "--seed", "--steps", "--freeze", "--train-only", "--loss"}


def drawn(seed):
    """What the case of a seed has: its operators and options, with their values where these are a
    choice of few."""
    dice = random.Random(seed)
    net = draw(dice)
    o = Options(dice, net)
    has = {("op", op) for op in net.model.ops}
    has |= {("mode", o.mode), ("in two", o.in_two), ("peers", o.peers > 0)} | set(o.also)
    for words in o.compile, o.way_compile, o.run, o.way_run, o.files:
        option = None
        for word in words:
            option = word if word.startswith("--") else option
            has.add(option if word == option or option in FREE else (option, word))
    return has


def covering(seeds):
    """No more than MOST of the seeds, which have most that any of them has: the next is the one
    that adds most."""
    left = {seed: drawn(seed) for seed in seeds}
    chosen = []
    while any(left.values()) and len(chosen) < MOST:
        best = max(left, key=lambda seed: len(left[seed]))
        now = left.pop(best)
        chosen.append(best)
        for has in left.values():
            has -= now
    return chosen


def try_case(build, seed, keep):
    folder = tempfile.mkdtemp(prefix=f"combination-{seed}-")
    case, kind, text = None, FINE, ""
    try:
        case = Case(build, seed, folder)
        case.check()
    except Stop as stop:
        kind, text = stop.kind, stop.text
    commands, cut = (case.commands, case.cut()) if case else ([], ("", set()))
    if kind == WRONG and keep:
        shutil.copytree(folder, os.path.join(keep, str(seed)), dirs_exist_ok=True)
    shutil.rmtree(folder)
    return seed, kind, text, commands, cut


def report(seed, kind, text, commands, verbose):
    if kind == WRONG:
        print(f"--seed {seed}: WRONG\n  " + text)
        print("".join(f"    {c}\n" for c in commands), end="", flush=True)
    elif verbose:
        print(f"--seed {seed}: {kind} {text}\n    " + "\n    ".join(commands[-2:]), flush=True)


class Tally:
    """Cases by what came of them: refusals by their row, values in parts by what the parts are of,
    and by the operators that run in them."""

    def __init__(self):
        self.kinds = collections.Counter({FINE: 0, REFUSED: 0, WRONG: 0})
        self.rows, self.asked = collections.Counter(), collections.Counter()
        self.cut, self.ops = collections.Counter(), collections.Counter()

    def add(self, kind, text, cut):
        of, ops = cut
        self.kinds[kind] += 1
        if kind == REFUSED:
            self.rows[refusals.row_of(text, None)] += 1
        if of:
            self.asked[of] += 1
            self.cut[of] += bool(ops)
            self.ops.update(ops)

    def show(self):
        for text, n in sorted(self.rows.items()):
            print(f"  refused {n:4}  {text}")
        for of, n in sorted(self.asked.items()):
            print(f"  parts of {of}: {self.cut[of]} programs of {n}")
        if self.ops:
            print("  in parts: " + ", ".join(f"{op} {n}" for op, n in sorted(self.ops.items())))
        print(", ".join(f"{n} {kind}" for kind, n in self.kinds.items()))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--cases", type=int, default=2000 if os.environ.get("LS_WHOLE") else 0)
    p.add_argument("--seconds", type=float, default=0)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--keep")
    p.add_argument("-v", action="store_true")
    a = p.parse_args()
    tally = Tally()
    end = time.monotonic() + a.seconds if a.seconds else None
    if a.cases or end:
        seeds = iter(range(a.seed, a.seed + (a.cases if not end else 1 << 60)))
    else:
        seeds = iter(covering(range(a.seed, a.seed + 300)))
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        waiting = set()
        while True:
            while len(waiting) < a.jobs and (not end or time.monotonic() < end):
                seed = next(seeds, None)
                if seed is None:
                    break
                waiting.add(pool.submit(try_case, a.build, seed, a.keep))
            if not waiting:
                break
            done, waiting = concurrent.futures.wait(waiting, return_when="FIRST_COMPLETED")
            for f in done:
                seed, kind, text, commands, cut = f.result()
                tally.add(kind, text, cut)
                report(seed, kind, text, commands, a.v)
    tally.show()
    return 1 if tally.kinds[WRONG] or not tally.kinds[FINE] else 0


if __name__ == "__main__":
    sys.exit(main())
