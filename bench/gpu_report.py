"""The tables of gpu.py: one on the terminal, and docs/lab/gpu.md."""
import textwrap

from gpu_tools import NETS, TITLES, VARIANT_WORDS

GIB = 2 ** 30
ORDER = ["lowerset", "eager", "compile", "graphs", "tune", "jax"]
WHO = {"eager": "PyTorch", "compile": "torch.compile", "graphs": "compile, graphs",
       "tune": "max-autotune", "jax": "JAX"}
# ms a step, of rows of libraries.
LIBRARY_TIMES = {"host_ms": "by the host", "gpu_ms": "on the GPU", "unwaited_ms": "not waited for"}


def latest(rows):
    """Speed rows by (model, precision, batch, who, budget): the last of each."""
    return {(r["model"], r["precision"], r["batch"], r["who"], r.get("budget", "-")): r
            for r in rows if r["kind"] == "speed"}


def rate(r):
    per = NETS[r["model"]].get("per_sample", 1)
    return r["batch"] * per / r["ms"] * 1e3


def groups(rows):
    """Groups of rows to compare: [(model, precision, batch, rows)]."""
    found = {}
    for key, r in latest(rows).items():
        found.setdefault(key[:3], []).append(r)
    def place(r):
        first = ["none", "tuned", *VARIANT_WORDS]
        at = first.index(r["budget"]) if r.get("budget") in first else len(first)
        return ORDER.index(r["who"]), at, -r["peak_bytes"]
    return [(*key, sorted(found[key], key=place))
            for key in sorted(found, key=lambda k: (list(NETS).index(k[0]), k[1] != "tf32", -k[2]))]


def label(r):
    if r["who"] != "lowerset":
        return WHO[r["who"]]
    b = r["budget"]
    if b == "none":
        return "lowerset"
    if b in VARIANT_WORDS:
        return f"lowerset, {VARIANT_WORDS[b]}"
    return "lowerset, half of PyTorch's" if b.isdigit() else f"lowerset, {b}"


def on_device(r):
    taken = r.get("device_bytes") or (r["who"] == "lowerset" and r.get("taken_bytes"))
    return f"{taken / GIB:.2f}" if taken else "-"


def table(rows):
    """Lines of one table. The ratio is the other's time divided by lowerset's time
    without a budget."""
    lines = [["network", "prec", "batch", "who", "ms/step", "per second", "peak GiB",
              "device GiB", "ours vs"]]
    for model, precision, batch, some in groups(rows):
        ours = next((r for r in some if r["who"] == "lowerset" and r["budget"] == "none"), None)
        for k, r in enumerate(some):
            against = "" if r is ours or ours is None else f"{r['ms'] / ours['ms']:.2f}x"
            lines.append([TITLES[model] if k == 0 else "", precision if k == 0 else "",
                          str(batch) if k == 0 else "", label(r), f"{r['ms']:.2f}",
                          f"{rate(r):,.0f}", f"{r['peak_bytes'] / GIB:.2f}", on_device(r), against])
    return lines


def print_table(lines):
    width = [max(len(line[c]) for line in lines) for c in range(len(lines[0]))]
    for line in lines:
        print("  ".join(t.ljust(w) if c < 4 else t.rjust(w)
                        for c, (t, w) in enumerate(zip(line, width))).rstrip())


def markdown(lines):
    out = ["| " + " | ".join(lines[0]) + " |", "|" + "---|" * 4 + "---:|" * (len(lines[0]) - 4)]
    return out + ["| " + " | ".join(line) + " |" for line in lines[1:]]


GOALS = [("at least 1.0 times torch.compile in TF32", "compile", False, 1.0),
         ("at least 1.3 times PyTorch in TF32", "eager", False, 1.3),
         ("at least 2 times PyTorch at the small batch", "eager", True, 2.0),
         ("within half of PyTorch's peak at least 0.95 times its speed", "half", False, .95)]


def goals(rows):
    """[(goal, network, ratio or None, reached)]"""
    at, out = latest(rows), []
    for text, who, small, least in GOALS:
        for net, spec in NETS.items():
            batch = spec["small" if small else "batch"]
            theirs = at.get((net, "tf32", batch, "eager" if who == "half" else who, "-"))
            ours = [at[key] for b in ("none", "tuned")
                    if (key := (net, "tf32", batch, "lowerset", b)) in at]
            ours = min(ours, key=lambda r: r["ms"], default=None)
            if who == "half":
                ours = next((r for r in at.values() if r["model"] == net and r["who"] == "lowerset"
                             and r["precision"] == "tf32" and r["budget"].isdigit()), None)
            ratio = theirs["ms"] / ours["ms"] if theirs and ours else None
            out.append((text, net, ratio, ratio is not None and ratio >= least))
    return out


def section(title, body):
    return ["", f"## {title}", "", *body] if body else []


def wrapped(line):
    """A line of the page in lines of 100 columns; rows of tables and headings stay."""
    if not line or line[0] in "|#":
        return line
    return textwrap.fill(line, 100, subsequent_indent="  " if line.startswith("- ") else "",
                         break_long_words=False, break_on_hyphens=False)


def document(rows, failures, notes, date):
    machine = next((r for r in reversed(rows) if r["kind"] == "machine"),
                   {"gpu": {}, "versions": {}})
    gpu = machine["gpu"]
    lines = ["# Training steps on a GPU", "",
             f"Measured {date} by `./dev gpu` on one {gpu.get('name', 'GPU')} (driver "
             f"{gpu.get('driver_version', '?')}, {gpu.get('memory.total', '?')} MiB). "
             + ", ".join(f"{k} {v}" for k, v in machine["versions"].items()) + ". "
             + "; ".join(sorted({r["versions"] for r in rows if r["kind"] == "speed"
                                 and "versions" in r}))
             + ".", "",
             "Medians after a warm-up, on random data. PyTorch runs with channels-last, "
             "cudnn.benchmark, its fused optimizer and its own attention. Its batch lies on the "
             "device; lowerset reads a batch from a file each step. Peak GiB: for lowerset all "
             "memory of the plan; for the others the most that their allocator had in use after "
             "the warm-up. Device GiB: the most by which the device's free memory fell during the "
             "run, libraries and context included. Ours vs: their time divided by the time of "
             "lowerset without a budget; above 1 lowerset is faster."]
    if any(r["kind"] == "speed" for r in rows):
        lines += ["", *markdown(table(rows))]
    lines += section("Goals",
                     [f"- {TITLES[net]}: {text}: {ratio:.2f}{'' if ok else ', short of it'}"
                      for text, net, ratio, ok in goals(rows) if ratio is not None])
    for r in rows:
        if r["kind"] == "profile":
            dearest = ", ".join(f"{name} {ms:.2f}" for name, ms in r["dearest"][:6])
            ops = ", ".join(f"{op} {ms:.1f}" for op, ms in r["ops"][:8])
            lines += ["", f"{TITLES[r['model']]} {r['precision']} b{r['batch']}, "
                          f"{r['total_ms']:.1f} ms in "
                          f"kernels, ms by kind: {ops}. Dearest: {dearest}."]
    same = [r for r in rows if r["kind"] == "numbers"]
    body = [f"- {r['net']} {r['precision']}: loss {r['loss']:.1e}, gradients "
            f"{r['median']:.1e}, worst "
            f"{r['gradient']:.1e} ({r['worst']}; "
            + (f"the CPU's {r['precision']}: {r['cpu']:.1e})" if r.get("cpu")
               else f"the CPU's floats: {r['noise']:.1e})")
            for r in same]
    lines += section("The GPU's numbers against the CPU's in doubles (relative, median and worst "
                     "of all tensors)",
                     body)
    budgets = [r for r in rows if r["kind"] == "budget"]
    if budgets:
        bad = [f"{r['net']} at {r['budget']}" for r in budgets if not r["same"]]
        lines += ["", f"Budgets: {len(budgets)} programs of {len({r['net'] for r in budgets})} "
                      f"networks, "
                      + ("all with the same bits." if not bad else "other bits: " + ", ".join(bad)
                         + ".")]
    body = [f"- {r['net']} in {r['way']}: " + ("the same bits" if r["same"] else "other bits")
            + "".join(f"; {w} {r[k]:.3f} ms" for k, w in LIBRARY_TIMES.items() if k in r)
            for r in rows if r["kind"] == "library"]
    lines += section("Libraries: arrays, a stream and losses on the GPU beside arrays of the host",
                     body)
    body = [f"- {r['net']} {r['tool']}: {r['summary']}" for r in rows if r["kind"] == "sanitizer"]
    lines += section("compute-sanitizer", body)
    body = [f"- {r['what']}: {r['value']:.4g} {r['unit']}" for r in rows
            if r["kind"] == "ceiling" and "plans" not in r]
    convs = [r for r in rows if r["kind"] == "ceiling" and "plans" in r and r["unit"] != "plans"]
    if convs:
        best = sum(min(p[0] for p in r["plans"] if p[0] > 0) for r in convs)
        body.append(f"- {len(convs)} convolutions: cuDNN's first proposals together "
                    f"{sum(r['plans'][0][0] for r in convs) / best:.3f} times the fastest plans")
    lines += section("What the device can do (PyTorch)", body)
    lines += section("What failed", ["- " + f for f in failures])
    lines += section("Notes", ["- " + n for n in dict.fromkeys(notes)])
    return "\n".join(wrapped(line) for line in lines) + "\n"


def show(rows, failures, notes):
    """Prints the summary at the end: the table, one line for each other result, and failures."""
    print()
    if any(r["kind"] == "speed" for r in rows):
        print_table(table(rows))
    numbers = [r for r in rows if r["kind"] == "numbers"]
    if numbers:
        worst = max(numbers, key=lambda r: r["gradient"])
        print(f"numbers: {len(numbers)} comparisons with the CPU, worst gradient "
              f"{worst['gradient']:.1e} "
              f"({worst['net']} {worst['precision']})")
    budgets = [r for r in rows if r["kind"] == "budget"]
    if budgets:
        print(f"budgets: {sum(r['same'] for r in budgets)} of {len(budgets)} with the same bits")
    libraries = [r for r in rows if r["kind"] == "library"]
    if libraries:
        print(f"libraries: {sum(r['same'] for r in libraries)} of {len(libraries)} with the same "
              "bits")
    tools = [r for r in rows if r["kind"] == "sanitizer"]
    if tools:
        print(f"sanitizer: {sum(r['rc'] == 0 for r in tools)} of {len(tools)} runs clean")
    for text in failures:
        print("FAIL " + text)
    print(f"{len(failures)} failed, {len(notes)} notes")
