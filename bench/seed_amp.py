#!/usr/bin/env python3
"""./dev seed amp: memory and time of a small network in 16 bits beside f32, and its curves
beside recorded ones.

usage: seed_amp.py BUILD-FOLDER [--inputs FOLDER] [--threads N] [--steps N] [--rounds N]
                   [--curve-steps N]
                   [--seeds 1,2,3] [--sizes 128,28] [--curve-sizes 28,128]
                   [--only table|curves] [--out PAGE.md]

The network is that of jmp's example for mixed precision: convolutions of 32 and 64 channels, each
with ReLU and average pooling, dense layers of 256 and 10, Adam, 128 images a batch. A row per size,
type and target: the plan's bytes, the resident memory of the process, the step, and the epoch of
60,000 images that it makes. GPUs are measured where nvidia-smi finds one and the type compiles.
With PYTHON (or python3) that has torch, PyTorch's rows too.

Curves: MNIST in file order by 64 images, weights by the formula of CURVES.json in FOLDER/wave2,
whose runs in f32 are the measure: its first ten losses to 1e-4 (f32 alone), the mean of the last
ones to 5 % + 0.01, accuracy to 1 point, and to half a point of this machine's f32. At 128x128 the
recorded runs have 60 steps and 500 images to test on: 3 points for both. Exit 6 if a run is
outside. Without FOLDER (default ../shared/inputs) there are no curves.
"""
import argparse
import array
import gzip
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BATCH, IMAGES = 128, 60000
CLOSE_STEPS = 10


def run(command, folder, **more):
    done = subprocess.run([str(c) for c in command], cwd=folder, capture_output=True,
                          text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ends with {done.returncode}: "
                 f"{(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout + done.stderr


def processor():
    for line in open("/proc/cpuinfo", encoding="ascii", errors="replace"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


# ---- memory and time ----
def build(folder, lowerset, size, target, precision):
    """A row of the table without its times; None where the type does not compile for the target."""
    options = ["--batch", BATCH, f"--precision={precision}", f"--target={target}",
               "--optimizer=adam", "-q"]
    if target != "cpu" and not tries([lowerset, "plan", f"cnn{size}.onnx", *options], folder):
        return None
    plan = json.loads(run([lowerset, "plan", f"cnn{size}.onnx", *options, "--json"], folder))
    run([lowerset, "compile", f"cnn{size}.onnx", *options, "-o", f"t-{target}-{precision}"], folder)
    return {"program": "Lowerset", "target": target, "type": precision,
            "arena": plan["arena_bytes"] / 2**20,
            "state": plan["state_bytes"] / 2**20, "resident": 0, "steps": []}


def timed(program, folder, samples, steps, threads):
    """(seconds of every step but the first two, largest resident MiB) of a trainer
    on synthetic data."""
    command = [f"./{program}", "--data", f"synthetic:{samples}", "--steps", str(steps),
               "--epochs", str(steps), "--progress",
               "none", "--log", "log.jsonl", "--threads", str(threads)]
    pid = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL).pid
    _, status, used = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)} fails")
    lines = [json.loads(line) for line in open(folder / "log.jsonl", encoding="utf-8")]
    times = [line["time"] for line in lines if "loss" in line]      # since the start
    return [b - a for a, b in zip(times[1:], times[2:])], used.ru_maxrss / 1024


def measure(row, folder, args):
    """Some steps of a row's program."""
    steps, resident = timed(f"t-{row['target']}-{row['type']}", folder, BATCH * 4, args.steps,
                            args.threads)
    row["steps"] += steps
    row["resident"] = max(row["resident"], resident)


def tries(command, folder):
    return subprocess.run([str(c) for c in command], cwd=folder,
                          capture_output=True).returncode == 0


def peer(target, autocast):
    """A row of PyTorch's; None without it."""
    if not has_torch():
        return None
    return {"program": "PyTorch", "target": target,
            "type": f"autocast {autocast}" if autocast else "f32",
            "autocast": autocast, "resident": 0, "steps": []}


def measure_peer(row, size, args):
    command = [os.environ.get("PYTHON", "python3"), HERE / "torch_peer.py", f"cnn{size}",
               "--device", row["target"],
               "--threads", args.threads, "--seconds", 0, "--steps", args.steps] \
        + (["--autocast", row["autocast"]] if row["autocast"] else [])
    got = json.loads(run(command, "."))
    row["resident"] = max(row["resident"], got["device_mb"] or got["peak_rss_mb"])
    row["steps"] += [got["median_ms"] / 1e3, got["best_ms"] / 1e3]


def rows_of(folder, lowerset, size, args):
    run([lowerset, "model", "cnn", f"--size={size}", "-o", f"cnn{size}.onnx"], folder)
    gpu = shutil.which("nvidia-smi") and tries(["nvidia-smi"], folder)
    rows = []
    for target in ["cpu"] + (["cuda"] if gpu else []):
        types = ["f32", "bf16", "f16"] if target == "cpu" else ["f32", "tf32", "bf16", "f16"]
        rows += [build(folder, lowerset, size, target, t) for t in types]
        rows += [peer(target, a)
                 for a in ([None, "bf16"] if target == "cpu" else [None, "bf16", "f16"])]
    rows = [r for r in rows if r]
    # in turns, as other programs disturb some rounds more than others
    for _ in range(args.rounds):
        for row in rows:
            if row["program"] == "PyTorch":
                measure_peer(row, size, args)
            else:
                measure(row, folder, args)
    for row in rows:
        row["step"], row["least"] = statistics.median(row["steps"]), min(row["steps"])
    return rows


def table(rows):
    def cell(row, key, form="{:.1f}", factor=1):
        return form.format(row[key] * factor) if key in row else ""

    text = ["| program | target | type | arena, MiB | state, MiB | in memory, MiB | step, ms | "
            "least | epoch, s |",
            "|---|---|---|--:|--:|--:|--:|--:|--:|"]
    for r in rows:
        text.append(f"| {r['program']} | {r['target']} | {r['type']} | {cell(r, 'arena')} | "
                    f"{cell(r, 'state')} | "
                    f"{cell(r, 'resident', '{:.0f}')} | {cell(r, 'step', factor=1e3)} | "
                    f"{cell(r, 'least', factor=1e3)} | "
                    f"{r['step'] * (IMAGES // BATCH):.1f} |")
    return "\n".join(text)


# ---- curves ----
def formula(seed, tensor, count, fan_in):
    """The weights of one tensor, float32."""
    mask = (1 << 64) - 1
    base, root = (seed << 48) + (tensor << 40) + 1, fan_in ** 0.5
    out = array.array("f")
    for i in range(count):
        z = (base + i) * 0x9E3779B97F4A7C15 & mask
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        z ^= z >> 31
        out.append((2 * ((z >> 40) / 16777216) - 1) / root)
    return out


def fields(data, at, end):
    """(number, start, end) of the length-delimited fields of a protocol buffer's message."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                return value, at

    while at < end:
        tag, at = varint(at)
        if tag & 7 == 0:
            _, at = varint(at)
        elif tag & 7 == 2:
            n, at = varint(at)
            yield tag >> 3, at, at + n
            at += n
        else:
            at += 8 if tag & 7 == 1 else 4


def set_weights(path, seed, size):
    """Overwrites the initializers: their order is that of the formula's tensors."""
    data, fan_in, tensor = bytearray(path.read_bytes()), 1, 0
    graph = next((a, b) for number, a, b in fields(data, 0, len(data)) if number == 7)
    for number, a, b in fields(data, *graph):
        if number != 5:
            continue
        raw = next((x, y) for field, x, y in fields(data, a, b) if field == 9)
        count = (raw[1] - raw[0]) // 4
        if tensor % 2 == 0:                     # a weight; the bias behind it has the same fan_in
            fan_in = [9, 9 * 32, 64 * (size // 4) ** 2, 256][tensor // 2]
        data[raw[0]:raw[1]] = formula(seed, tensor, count, fan_in).tobytes()
        tensor += 1
    path.write_bytes(data)


def resized(rows, size):
    """An image of size x size numbers from 28 rows: bilinear, half-pixel centres, edges clamped, as
    array of floats."""
    places = []
    for i in range(size):
        at = (i + 0.5) * 28 / size - 0.5
        low = min(max(math.floor(at), 0), 27)
        places.append((low, min(low + 1, 27), at - low if 0 < at < 27 else 0.0))
    wide = [[row[a] + (row[b] - row[a]) * t for a, b, t in places] for row in rows]
    out = array.array("f")
    for a, b, t in places:
        out.extend([x + (y - x) * t for x, y in zip(wide[a], wide[b])])
    return out


def write_data(folder, inputs, size, samples):
    """IDX files of the first images and labels: {"train": (images, labels), "t10k": ...}; samples:
    how many of each."""
    files = {}
    for part, n in samples.items():
        images = gzip.decompress((inputs / f"mnist/{part}-images-idx3-ubyte.gz").read_bytes())
        labels = gzip.decompress((inputs / f"mnist/{part}-labels-idx1-ubyte.gz").read_bytes())
        images, labels = images[16:16 + 784 * n], labels[8:8 + n]
        files[part] = [f"{part}-{size}", f"{part}-{size}-labels"]
        code = 8 if size == 28 else 0x0d
        with open(folder / files[part][0], "wb") as to:
            to.write(bytes([0, 0, code, 3])
                     + b"".join(d.to_bytes(4, "big") for d in (n, size, size)))
            if size == 28:
                to.write(images)
            for k in range(n if size != 28 else 0):
                rows = [[v / 255 for v in images[at:at + 28]]
                        for at in range(784 * k, 784 * (k + 1), 28)]
                image = resized(rows, size)
                if sys.byteorder == "little":
                    image.byteswap()
                to.write(image.tobytes())
        (folder / files[part][1]).write_bytes(bytes([0, 0, 8, 1]) + n.to_bytes(4, "big") + labels)
    return files


def train(folder, lowerset, precision, model, files, steps):
    run([lowerset, "compile", model, "--batch", 64, f"--precision={precision}",
         "--optimizer=adam:eps=1e-8", "--lr=1e-3", "-q", "-o", "t"], folder)
    shutil.rmtree(folder / "ck", ignore_errors=True)
    common = ["--threads", "1", "--progress", "none", "--no-shuffle", "--save", "ck"]
    run(["./t", "--data", ",".join(files["train"]), "--steps", steps, "--log", "log.jsonl",
         *common], folder)
    losses = [json.loads(line) for line in open(folder / "log.jsonl", encoding="utf-8")]
    losses = [line["loss"] for line in losses if "loss" in line]
    said = run(["./t", "--data", ",".join(files["t10k"]), "--eval", "--resume=auto", *common],
               folder)
    return {"losses": losses,
            "accuracy": float(re.search(r"val_accuracy ([0-9.]+)", said).group(1))}


def judge(got, own, recorded, precision, whole):
    """What is outside its bounds, as text."""
    bad = []
    first = recorded["loss_before_step"]
    for k in range(CLOSE_STEPS if precision == "f32" else 0):
        want = first.get(str(k))
        if want is not None and abs(got["losses"][k] - want) > 1e-4 * want:
            bad.append(f"loss {k} is {got['losses'][k]:.6f}, not {want:.6f}")
    small = recorded["size"] == 28
    if whole:
        want = recorded["mean_of_last"][1]
        if abs(got["mean"] - want) > 0.05 * want + 0.01:
            bad.append(f"mean loss {got['mean']:.4f}, not {want:.4f}")
        if abs(got["accuracy"] - recorded["test_accuracy"]) > (0.01 if small else 0.03):
            bad.append(f"accuracy {got['accuracy']:.4f}, not {recorded['test_accuracy']:.4f}")
    if abs(got["accuracy"] - own["accuracy"]) > (0.005 if small else 0.03):
        bad.append(f"accuracy {got['accuracy']:.4f} beside {own['accuracy']:.4f} in f32")
    return "; ".join(bad)


def curve_steps(runs, args):
    return min(args.curve_steps, max(r["steps"] for r in runs))


def curves(folder, lowerset, inputs, size, args):
    """(table, whether all is within its bounds) of a size; None without recorded runs."""
    if not (inputs / "wave2/CURVES.json").exists():
        return None
    recorded = json.loads((inputs / "wave2/CURVES.json").read_text())["runs"]
    recorded = {r["seed"]: r for r in recorded if (r["size"], r["mode"]) == (size, "f32")}
    steps = curve_steps(recorded.values(), args)
    files = write_data(folder, inputs, size,
                       {"train": 64 * steps,
                        "t10k": max(r["test_images"] for r in recorded.values())})
    last = max(r["mean_of_last"][0] for r in recorded.values())
    shown = [k for k in (0, 10, 20, 50, 100, 200) if k < steps]
    text = [f"| seed | type | loss at step {' | '.join(map(str, shown))} | mean of the last {last} "
            f"| recorded, f32 | accuracy | "
            "recorded, f32 | |", "|--:|---|" + "--:|" * (len(shown) + 4) + "---|"]
    good = True
    for seed in [s for s in map(int, args.seeds.split(",")) if s in recorded]:
        model, want, own = f"s{size}-{seed}.onnx", recorded[seed], None
        run([lowerset, "model", "cnn", f"--size={size}", "-o", model], folder)
        set_weights(folder / model, seed, size)
        for precision in ["f32", "bf16", "f16"]:
            got = train(folder, lowerset, precision, model, files, steps)
            got["mean"] = statistics.mean(got["losses"][-last:])
            own = own or got
            bad = judge(got, own, want, precision, steps == want["steps"])
            good &= bad == ""
            at = [f"{got['losses'][k]:.4f}" for k in shown]
            text.append(f"| {seed} | {precision} | {' | '.join(at)} | {got['mean']:.4f} | "
                        f"{want['mean_of_last'][1]:.4f} | "
                        f"{100 * got['accuracy']:.2f} % | {100 * want['test_accuracy']:.2f} % | "
                        f"{bad or 'within'} |")
            print(text[-1], flush=True)
    return f"### {size}x{size}, {steps} steps\n\n" + "\n".join(text) + "\n", good


def has_torch():
    return tries([os.environ.get("PYTHON", "python3"), "-c", "import torch"], ".")


def page(parts, args, busy):
    return f"""# Mixed precision of a small network

Made {time.strftime('%Y-%m-%d')} by `./dev seed amp` on {processor()}, {args.threads}
thread{'s' if args.threads > 1 else ''}; do not edit. At its start {busy} of {os.cpu_count()}
processors were busy with other programs.

The network is that of jmp's example: convolutions of 32 and 64 channels with ReLU and average
pooling, dense layers of 256 and 10, Adam, batches of 128 images. *Arena* and *state* are the
plan's; *in memory* is the largest resident size of the process, on a GPU what the process reserves
there. A step is the median of {args.rounds} rounds in turns, of {args.steps} steps each, on
synthetic data; an epoch is {IMAGES // BATCH} steps.

{parts}"""


def finish(out, text, good, yes="all as wanted", no="something is not as wanted"):
    """Writes the page, if a file is given; the exit code."""
    if out:
        pathlib.Path(out).write_text(text, encoding="utf-8")
    print(yes if good else no, flush=True)
    return 0 if good else 6


def options():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--inputs", default=str(HERE.parent.parent / "shared/inputs"))
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--steps", type=int, default=5, help="of a round, but for two at its start")
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--curve-steps", type=int, default=300)
    p.add_argument("--seeds", default="1,2,3")
    p.add_argument("--sizes", default="128,28")
    p.add_argument("--curve-sizes", default="28,128")
    p.add_argument("--only", choices=["table", "curves"])
    p.add_argument("--out")
    return p.parse_args()


def main():
    args = options()
    lowerset = pathlib.Path(args.build).resolve() / "lowerset"
    parts, good, busy = [], True, f"{min(os.getloadavg()[0], os.cpu_count()):.1f}"
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        for size in args.sizes.split(",") if args.only != "curves" else []:
            parts.append(f"## Images of "
                         f"{size}x{size}\n\n{table(rows_of(folder, lowerset, int(size), args))}\n")
            print(parts[-1], flush=True)
        made = [curves(folder, lowerset, pathlib.Path(args.inputs), int(size), args)
                for size in args.curve_sizes.split(",") if args.only != "table"]
    if made and made[0]:
        good = all(ok for _, ok in made)
        parts.append("## Curves\n\nMNIST in file order, 64 images a batch, beside runs of PyTorch "
                     "with the same weights. At 128x128 "
                     "images are resized bilinearly.\n\n" + "\n".join(text for text, _ in made))
    elif args.only != "table":
        print("no curves: there are no recorded ones", file=sys.stderr)
    return finish(args.out, page("\n".join(parts), args, busy), good, "within bounds",
                  "outside the bounds")


if __name__ == "__main__":
    sys.exit(main())
