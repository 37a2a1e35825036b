"""gpu.py --part check: checks of programs on the GPU; the most important checks come first."""
import os
import re

import gpu_device
import gpu_library
from gpu_tools import IN_TURN, find_tool, has_gpu

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
    "gpt-odd": ("gpt --depth=1 --heads=3 --width=39 --context=29 --vocab=67 --head=untied", 3,
                "ce"),
    "dropout": ("resnet18 --stem=cifar --width=8 --classes=10 --size=32 --dropout=0.2", 4, "ce"),
    "autoencoder": ("autoencoder --width=4", 3, "mse"),
    "googlenet": ("googlenet --width=8 --classes=10 --size=64", 2, "ce"),
    "vgg": ("vgg16_bn --width=4 --classes=10 --size=32", 2, "ce"),
    "pspnet": ("pspnet50 --width=4 --classes=5 --size=96", 2, "ce"),
}
QUICK = ["mlp", "unet", "resnet18", "gpt"]      # these first
WAVE = 5                        # networks that are compiled together
SANITIZED = [("mlp", "f32", "50%"), ("unet", "f32", "50%"), ("densenet", "f32", "50%"),
             ("gpt", "f32", "50%")]
BUDGETS = ["none", "100%", "75%", "50%", "min", IN_TURN]
PRECISIONS = ["f32", "tf32", "bf16", "f16"]
ON_CPU = ["f64", "f32", "bf16", "f16"]
NUMBERS = [("cpu", p, "none") for p in ON_CPU] + [("device", p, "none") for p in PRECISIONS]
BUDGETED = [("device", "f32", b) for b in BUDGETS[1:]] + [("device", "bf16", "50%")]
# Tolerances of the loss, of the worst tensor and of the median tensor. Different rounding flips the
# sign of a ReLU's operand in a few places, which changes all gradients before it; such differences
# are no error.
LIMITS = {"f32": (1e-3, 2e-2, 5e-3), "tf32": (2e-2, .5, .1), "f16": (2e-2, .5, .1),
          "bf16": (5e-2, 1, .3)}
# If a network's floats are this far from doubles, its gradients in TF32 or 16 bits prove nothing:
# TF32 rounds 2^13 times as coarsely.
TOUCHY = 1e-5
KEYS = ("loss", "worst", "median")


def compare(a_path, b_path):
    """Distance of b's tensors from a's: {"loss", "worst", "median", "name"}, by the
    norms of gradients, each relative to the tensor's norm, but at least to a thousandth
    of the largest norm."""
    import numpy
    a, b = numpy.load(a_path), numpy.load(b_path)
    if {k for k in a.files if "loss_scale" not in k} != set(b.files):
        raise ValueError("the dumps hold different tensors")
    grads = {k: (a[k].astype("f8"), b[k].astype("f8")) for k in a.files if k.startswith("grad/")}
    floor = 1e-3 * max([float(numpy.sqrt(numpy.square(y).mean())) for _, y in grads.values()
                        if y.size] + [1e-30])
    error = {k: float(numpy.linalg.norm(x - y) / max(numpy.linalg.norm(y),
                                                     floor * numpy.sqrt(y.size)))
             for k, (x, y) in grads.items() if y.size}
    error = {k: v if v == v else float("inf") for k, v in error.items()} or {"": 0.0}
    name = max(error, key=error.get)
    ours, theirs = (float(x["loss"].reshape(-1)[0]) for x in (a, b))
    loss = abs(ours - theirs) / max(abs(theirs), 1e-30)
    return {"loss": loss if loss == loss else float("inf"), "worst": error[name],
            "median": sorted(error.values())[len(error) // 2], "name": name}


def close(precision, got, noise):
    """Whether a result is acceptable if results on the CPU are noise[precision] from doubles."""
    if precision != "f32" and noise["f32"]["median"] > TOUCHY:
        return got["worst"] < float("inf") and \
               got["loss"] <= max(LIMITS[precision][0],
                                  5 * noise.get(precision, noise["f32"])["loss"])
    same = noise.get(precision, noise["f32"])       # the CPU has no TF32
    return all(got[k] <= max(limit, (5 if precision == "f32" else 3) * same[k])
               for k, limit in zip(KEYS, LIMITS[precision]))


def build_all(s, nets, variants):
    """Trainers of these networks: {(net, "cpu" or "device", precision, budget): path}."""
    made, jobs, keys = {}, [], []
    for net in nets:
        spec, batch, loss = SMALL[net]
        onnx = s.model("check-" + net, spec, batch)
        for where, precision, budget in variants if onnx else []:
            name = f"check-{net}-{where}-{precision}-{budget.strip('%')}"
            keys.append((net, where, precision, budget))
            jobs.append(lambda onnx=onnx, name=name, w=where, p=precision, b=budget, l=loss:
                        s.compile(onnx, name, "cpu" if w == "cpu" else None, p,
                                  None if b == "none" else b, l,
                                  more=["--loss-scale=128"] * (p == "f16")
                                  + ["--store-gradients"] * (w == "cpu" or s.o.dry_run)))
    for key, (path, done) in zip(keys, s.side_by_side(jobs)):
        if done.rc == 124 and s.left() < 2:
            continue
        if path is not None:
            made[key] = path
        elif "LS-E0016" not in done.out:        # this budget is below the least
            s.fail(f"{' '.join(key)}: does not compile (rc {done.rc}): {done.tail()}")
    return made


def run_dump(s, path, name, steps, more=()):
    """The dump of a run's last step; None and why."""
    dump = os.path.join(s.work, name + ".npz")
    more = ["--lr", "0.05", "--dump", dump, *more]
    done = s.train(path, steps, more=more, limit=60)
    if done.rc != 0:
        s.explain(path, steps, more=more)
        return None, f"rc {done.rc}: {done.tail()}"
    return dump, ""


def bits_of(path):
    with open(path, "rb") as f:
        return f.read()


def numbers(s, net, precision, path, want, noise):
    got, why = run_dump(s, path, f"{net}-{precision}", 1)
    if got is None:
        s.fail(f"{net} {precision}: {why}")
        return
    found = compare(got, want)
    s.record("numbers", net=net, precision=precision, loss=found["loss"], gradient=found["worst"],
             median=found["median"], worst=found["name"], noise=noise["f32"]["worst"],
             cpu=noise.get(precision, {}).get("worst"))
    far = f"loss {found['loss']:.1e}, median {found['median']:.1e}, {found['name']} " \
          f"{found['worst']:.1e} from doubles"
    for kind in sorted({precision, "f32"} & set(noise)):
        far += f"; {kind} on the CPU: " + ", ".join(f"{noise[kind][k]:.1e}"
                                                    for k in ("loss", "median", "worst"))
    if not close(precision, found, noise):
        s.fail(f"{net} {precision}: {far}")
    else:
        s.say(f"{net} {precision}: {far}")


def reference(s, net, made):
    """The CPU's dump in doubles, and the distances of its other results by precision; None
    after a failure."""
    dump = {}
    for precision in ON_CPU:
        path = made.get((net, "cpu", precision, "none"))
        if path is None:
            return None, None
        dump[precision], why = run_dump(s, path, f"{net}-cpu-{precision}", 1)
        if dump[precision] is None:
            s.fail(f"{net}: the CPU trainer in {precision}: {why}")
            return None, None
    return dump["f64"], {p: compare(dump[p], dump["f64"]) for p in ON_CPU[1:]}


def check_numbers(s, net, made):
    """The GPU against the CPU."""
    want, noise = reference(s, net, made)
    for precision in PRECISIONS if want else ():
        path = made.get((net, "device", precision, "none"))
        if path is not None:
            numbers(s, net, precision, path, want, noise)


def check_half(s, net, made):
    """Compares bf16 within half of the memory with bf16."""
    bits = []
    for budget in ("none", "50%"):
        path = made.get((net, "device", "bf16", budget))
        got, why = run_dump(s, path, f"{net}-bf16-{budget.strip('%')}", 5) if path else (None, "")
        if got is not None:
            bits.append(bits_of(got))
        elif path:
            s.fail(f"{net} in bf16 at {budget}: {why}")
    if len(bits) == 2:
        s.record("budget", net=net, budget="bf16, 50%", same=bits[0] == bits[1],
                 **s.memory_of(made[net, "device", "bf16", "50%"]))
        if bits[0] != bits[1]:
            s.fail(f"{net} in bf16 at 50%: other bits than without a budget")


def check_budgets(s, net, made):
    """Compares all budgets with each other, and replays with steps launched one by one."""
    first = None
    check_half(s, net, made)
    for budget in BUDGETS:
        path = made.get((net, "device", "f32", budget))
        if path is None:
            continue
        got, why = run_dump(s, path, f"{net}-{budget.strip('%')}", 5)
        if got is None:
            s.fail(f"{net} at {budget}: {why}")
            if why.startswith("rc 124"):        # a program that hangs once hangs again
                return
            continue
        bits = bits_of(got)
        first = bits if first is None else first
        s.record("budget", net=net, budget=budget, same=bits == first, **s.memory_of(path))
        if bits != first:
            s.fail(f"{net} at {budget}: other bits than without a budget")
    again = made.get((net, "device", "f32", "none"))
    for name, more in (("again", ()),
                       ("replayed", ("--check-numerics",))) if again and first else ():
        got, why = run_dump(s, again, f"{net}-{name}", 5, more)
        if got is None:
            s.fail(f"{net} {name}: {why}")
        elif bits_of(got) != first:
            s.fail(f"{net}: " + ("a second run has other bits" if name == "again" else
                                 "a step that is replayed has other bits than one that is not"))


def filter_of(s):
    """Options that limit compute-sanitizer to lowerset's kernels; None: the tool is missing."""
    s.o.sanitizer = find_tool(s.o.sanitizer)
    done = s.call([s.o.sanitizer, "--help"], 20)
    if done.rc != 0:
        s.note(f"no {s.o.sanitizer}: nothing was sanitized")
        return None
    return ["--kernel-name", "kernel_substring=_part"] if "--kernel-name" in done.out else \
           ["--kernel-regex", "kns=_part"] if "--kernel-regex" in done.out else []


def sanitize(s, net, trainer, kind, ours):
    """compute-sanitizer over two steps. It looks for races in lowerset's kernels only."""
    before = [s.o.sanitizer, "--tool", kind, "--error-exitcode", "66",
              *(ours if kind != "memcheck" else [])]
    done = s.train(trainer, 2, limit=90, before=before)
    found = re.findall(r"(?:ERROR SUMMARY|RACECHECK SUMMARY): .*", done.out)
    s.record("sanitizer", net=net, tool=kind, rc=done.rc, seconds=done.seconds,
             summary=found[-1] if found else done.tail(2))
    if done.rc == 124:
        s.note(f"{kind} of {net} was ended after {done.seconds:.0f} s")
    elif done.rc != 0:
        s.keep_text(f"{kind} of {net}", done.out)
        s.fail(f"{net}: {kind}: rc {done.rc}: {found[-1] if found else done.tail()}")


def sanitize_all(s, made, until):
    """Runs until this many seconds are left."""
    ours = filter_of(s) if has_gpu(s) and not s.o.dry_run else s.note("compute-sanitizer "
                                                                      "needs a GPU")
    for kind in ("memcheck", "racecheck", "synccheck") if ours is not None else ():
        for net, precision, budget in SANITIZED:
            path = made.get((net, "device", precision,
                             budget)) or made.get((net, "device", precision, "none"))
            if path is not None and s.left() < until:
                s.note(f"no time for {kind} of {net}")
            elif path is not None:
                sanitize(s, net, path, kind, ours)


def check_one(s, net, made, check):
    if s.left() < 15:
        s.note(f"no time for {net}")
        return
    s.guarded(net, check, s, net, made)


def in_waves(s, nets, variants, made, check):
    for k in range(0, len(nets), WAVE):         # the first results soon
        some = nets[k:k + WAVE]
        if s.left() < 30:
            s.note(f"no time for {check.__name__} of {', '.join(nets[k:])}")
            return
        s.say(f"compiling {', '.join(some)}, {len(variants)} programs each")
        made.update(build_all(s, some, variants))
        s.side_by_side([lambda net=net: check_one(s, net, made, check) for net in some])


def run(s):
    """Most important first: right numbers, then the same numbers under every budget
    and in replays."""
    s.guarded("the device", gpu_device.describe, s)
    nets = s.o.nets.split(",") if s.o.nets else QUICK if s.o.dry_run else list(SMALL)
    nets = sorted([n for n in nets if n in SMALL] or QUICK, key=lambda n: n not in QUICK)
    quick = [n for n in nets if n in QUICK]
    if not s.probe():
        return
    made = {}
    in_waves(s, nets, NUMBERS, made, check_numbers)
    in_waves(s, quick, BUDGETED, made, check_budgets)
    s.guarded("libraries", gpu_library.check, s)
    sanitize_all(s, made, s.left() * 0.4)
    in_waves(s, [n for n in nets if n not in quick], BUDGETED, made, check_budgets)
