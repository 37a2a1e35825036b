"""gpu.py --part check: what no GPU has seen yet, first what everything else rests on."""
import os
import re

import gpu_device
from gpu_tools import has_gpu

# Small members of each family, so that every kind of kernel runs: (network, batch, loss).
SMALL = {
    "mlp": ("mlp --width=48", 8, "ce"),
    "cnn": ("cnn --size=24 --width=8", 4, "ce"),
    "unet": ("unet --width=6 --depth=3 --size=32", 2, "ce"),
    "unet-valid": ("unet --width=4 --depth=2 --size=60 --pad=valid --up=bilinear", 2, "ce"),
    "resnet18": ("resnet18 --stem=cifar --width=8 --classes=10 --size=32", 4, "ce"),
    "resnet50": ("resnet50 --width=8 --classes=10 --size=48", 3, "ce"),
    "densenet": ("densenet121 --width=6 --classes=10 --size=32", 4, "ce"),
    "gpt": ("gpt --depth=2 --heads=2 --width=32 --context=32 --vocab=65", 4, "ce"),
    "gpt-odd": ("gpt --depth=1 --heads=3 --width=39 --context=29 --vocab=67 --head=untied", 3, "ce"),
    "dropout": ("resnet18 --stem=cifar --width=8 --classes=10 --size=32 --dropout=0.2", 4, "ce"),
    "autoencoder": ("autoencoder --width=4", 3, "mse"),
    "googlenet": ("googlenet --width=8 --classes=10 --size=64", 2, "ce"),
    "vgg": ("vgg16_bn --width=4 --classes=10 --size=32", 2, "ce"),
    "pspnet": ("pspnet50 --width=4 --classes=5 --size=65", 1, "ce"),
}
QUICK = ["mlp", "unet", "resnet18", "gpt"]
SANITIZED = ["mlp", "unet", "densenet", "gpt"]
BUDGETS = ["none", "100%", "75%", "50%", "min"]
TOLERANCE = {"f32": 1e-4, "tf32": 1e-2}


def compare(a_path, b_path):
    """Worst difference of loss and of gradients, each relative to the tensor's largest element, but
    not to less than a thousandth of the largest of all gradients: (loss, gradient, its name)."""
    import numpy
    a, b = numpy.load(a_path), numpy.load(b_path)
    if sorted(a.files) != sorted(b.files):
        raise ValueError("the dumps hold different tensors")
    grads = [k for k in a.files if k.startswith("grad/")]
    floor = 1e-3 * max([float(numpy.abs(b[k]).max()) for k in grads if b[k].size] + [1e-30])
    worst, name = 0.0, ""
    for k in grads:
        scale = max(float(numpy.abs(b[k]).max()), floor)
        error = float(numpy.abs(a[k].astype("f8") - b[k]).max()) / scale
        if not error <= worst:          # a NaN counts
            worst, name = error, k
    loss = abs(float(a["loss"]) - float(b["loss"])) / max(abs(float(b["loss"])), 1e-30)
    return loss, worst, name


def build_all(s, nets):
    """Trainers of every network: {(net, "cpu" or "device", precision, budget): path}."""
    made, jobs, keys = {}, [], []
    variants = [("cpu", "f32", "none"), ("device", "tf32", "none")]
    variants += [("device", "f32", b) for b in BUDGETS]
    for net in nets:
        spec, batch, loss = SMALL[net]
        onnx = s.model("check-" + net, spec, batch)
        for where, precision, budget in variants if onnx else []:
            name = f"check-{net}-{where}-{precision}-{budget.strip('%')}"
            keys.append((net, where, precision, budget))
            jobs.append(lambda onnx=onnx, name=name, w=where, p=precision, b=budget, l=loss:
                        s.compile(onnx, name, "cpu" if w == "cpu" else None, p,
                                  None if b == "none" else b, l))
    for key, (path, done) in zip(keys, s.side_by_side(jobs)):
        if path is not None:
            made[key] = path
        elif "LS-E0016" not in done.out:        # that one: below the least budget
            s.fail(f"{' '.join(key)}: does not compile (rc {done.rc}): {done.tail()}")
    return made


def run_dump(s, path, name, steps):
    dump = os.path.join(s.work, name + ".npz")
    done = s.train(path, steps, more=["--lr", "0.05", "--dump", dump], limit=60)
    if done.rc != 0:
        return None, f"rc {done.rc}: {done.tail()}"
    return dump, ""


def check_net(s, net, made):
    """The GPU against the CPU; then all budgets against one another."""
    cpu = made.get((net, "cpu", "f32", "none"))
    if cpu is None:
        return
    want, why = run_dump(s, cpu, f"{net}-cpu", 1)
    if want is None:
        s.fail(f"{net}: the CPU trainer: {why}")
        return
    for precision in ("f32", "tf32"):
        path = made.get((net, "device", precision, "none"))
        if path is None:
            continue
        got, why = run_dump(s, path, f"{net}-{precision}", 1)
        if got is None:
            s.fail(f"{net} {precision}: {why}")
            continue
        try:
            loss, grad, name = compare(got, want)
        except (ValueError, KeyError, OSError) as e:
            s.fail(f"{net} {precision}: {e}")
            continue
        s.record("numbers", net=net, precision=precision, loss=loss, gradient=grad, worst=name)
        if not (loss <= TOLERANCE[precision] and grad <= TOLERANCE[precision]):
            s.fail(f"{net} {precision}: loss {loss:.1e}, {name} {grad:.1e} from the CPU's")
    first = None
    for budget in BUDGETS:
        path = made.get((net, "device", "f32", budget))
        if path is None:
            continue
        got, why = run_dump(s, path, f"{net}-{budget.strip('%')}", 5)
        if got is None:
            s.fail(f"{net} at {budget}: {why}")
            continue
        with open(got, "rb") as f:
            bits = f.read()
        first = bits if first is None else first
        s.record("budget", net=net, budget=budget, same=bits == first, **s.memory_of(path))
        if bits != first:
            s.fail(f"{net} at {budget}: other bits than without a budget")
    again = made.get((net, "device", "f32", "none"))
    if again is not None and first is not None:
        got, _ = run_dump(s, again, f"{net}-again", 5)
        with open(got, "rb") as f:
            if f.read() != first:
                s.fail(f"{net}: a second run has other bits")


def sanitize(s, net, trainer):
    """compute-sanitizer over two steps. Races are looked for in our own kernels only."""
    tool = s.o.sanitizer
    version = s.call([tool, "--version"], 20)
    if version.rc != 0:
        s.note(f"no {tool}: nothing was sanitized")
        return
    usage = s.call([tool, "--help"], 20).out
    ours = ["--kernel-name", "kernel_substring=_part"] if "--kernel-name" in usage else \
           ["--kernel-regex", "kns=_part"] if "--kernel-regex" in usage else []
    for kind in ("memcheck", "racecheck", "synccheck"):
        before = [tool, "--tool", kind, "--error-exitcode", "66", *(ours if kind != "memcheck" else [])]
        done = s.train(trainer, 2, limit=90, before=before)
        found = re.findall(r"(?:ERROR SUMMARY|RACECHECK SUMMARY): .*", done.out)
        s.record("sanitizer", net=net, tool=kind, rc=done.rc, seconds=done.seconds,
                 summary=found[-1] if found else done.tail(2))
        if done.rc == 124:
            s.note(f"{kind} of {net} was ended after {done.seconds:.0f} s")
        elif done.rc != 0:
            s.fail(f"{net}: {kind}: rc {done.rc}: {found[-1] if found else done.tail()}")


def run(s):
    gpu_device.describe(s)
    nets = s.o.nets.split(",") if s.o.nets else QUICK if s.o.dry_run else list(SMALL)
    nets = [n for n in nets if n in SMALL] or QUICK
    s.probe()
    s.say(f"compiling {len(nets)} small networks, 7 programs each")
    made = build_all(s, nets)
    for k, net in enumerate(nets):
        if s.left() < 20:
            s.note(f"no time for {', '.join(nets[k:])}")
            return
        s.say(net)
        check_net(s, net, made)
    for net in SANITIZED:
        path = made.get((net, "device", "f32", "50%")) or made.get((net, "device", "f32", "none"))
        if path is None:
            continue
        if s.left() < 30:
            s.note(f"no time to sanitize {net}")
            continue
        if has_gpu(s) and not s.o.dry_run:
            sanitize(s, net, path)
        else:
            s.note("compute-sanitizer needs a GPU")
