#!/usr/bin/env python3
"""A part of gpu.py --part check: libraries for GPUs (--emit=lib), whose inputs, stream and losses
are the caller's.

usage: gpu_library.py LIBRARY STEPS [--host]

Makes updates over arrays of the host, and the same over tensors of torch on the GPU, each batch
written over the last one on a stream of its own. Prints one JSON line: same (bits of the state and
losses), what differs, ms a step of either way and of one that waits for no loss. --host: without a
GPU, the first way twice.
"""
import glob
import json
import os
import shlex
import sys
import time

# Network, batch, loss, precision, further options: images with channels last, tokens, which are
# checked, targets that are reals, and several batches, whose losses the host combines.
LIBRARIES = {
    "mlp": ("mlp --width=48", 8, "ce", "f32", []),
    "resnet": ("resnet18 --stem=cifar --width=8 --classes=10 --size=32", 4, "ce", "f32", []),
    "gpt": ("gpt --depth=2 --heads=2 --width=32 --context=32 --vocab=65", 4, "ce", "bf16", []),
    "autoencoder": ("autoencoder --width=4 --size=16 --depth=4", 4, "mse", "f32", []),
    "parts": ("cnn --size=24 --width=8", 4, "ce", "f32", ["--microbatches=2", "--accumulate=2"]),
}
STEPS, TOTAL = 20, 64


# ---- the part of the check ----

def includes():
    """Folders with the headers of the CUDA runtime."""
    found = ["/usr/local/cuda/include"]
    for base in sys.path:
        found += sorted(glob.glob(os.path.join(base, "nvidia", "*", "include")))
    return [d for d in found if os.path.exists(os.path.join(d, "cuda_runtime_api.h"))]


def client_of(s, folder):
    """tests/whole/library_gpu.c with the library; None where it cannot be built."""
    root = os.path.dirname(s.here)
    cudart = [p for home in (os.environ.get("LOWERSET_HOME"), s.env.get("LOWERSET_HOME")) if home
              for p in glob.glob(os.path.join(home, "lib", "lowerset", "libcudart_static.a"))]
    cudart += glob.glob("/usr/local/cuda/lib64/libcudart_static.a")
    if not includes() or not cudart:
        s.note("no headers of CUDA: the C program around libraries is left out")
        return None
    done = s.call([*shlex.split(s.env["CC"]), "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-I" + folder,
                   "-I" + os.path.join(root, "tests", "whole"), "-isystem", includes()[0],
                   os.path.join(root, "tests", "whole", "library_gpu.c"),
                   os.path.join(folder, "libnet.a"), cudart[0], "-lm", "-lpthread", "-ldl", "-lrt",
                   "-o", os.path.join(folder, "client")], 60)
    if done.rc != 0:
        s.fail(f"the C program around a library is not built: {done.tail()}")
        return None
    return os.path.join(folder, "client")


def build(s, name):
    """The folder of a library; None after a failure."""
    spec, batch, loss, precision, more = LIBRARIES[name]
    onnx = s.model("library-" + name, spec, 0)
    folder = os.path.join(s.work, "library-" + name)
    if onnx is None:
        return None
    os.makedirs(folder, exist_ok=True)
    done = s.call([s.lowerset, "compile", onnx, f"--target={s.target}", "--emit=lib",
                   f"--batch={batch}", f"--loss={loss}", f"--precision={precision}", *more,
                   *(["-O0", "--plan-effort=1"] if s.o.dry_run else []),
                   "-o", os.path.join(folder, "net")], 240)
    if done.rc != 0:
        s.fail(f"library {name}: does not compile (rc {done.rc}): {done.tail()}")
        return None
    return folder


def check_python(s, name, folder):
    root = os.path.dirname(s.here)
    done = s.call([*shlex.split(s.o.python or sys.executable), os.path.abspath(__file__),
                   os.path.join(folder, "libnet.so"), str(STEPS), *["--host"] * s.o.dry_run], 120,
                  env={**s.env, "PYTHONPATH": os.path.join(root, "python")})
    found = done.json()
    if done.rc == 77:
        s.note(f"the Python package was not tried: {done.tail(1)}")
    elif done.rc != 0 or found is None:
        s.keep_text(f"library {name} in Python", done.out)
        s.fail(f"library {name} in Python: rc {done.rc}: {done.tail()}")
    else:
        s.record("library", net=name, way="python", **found)
        if not found["same"]:
            s.fail(f"library {name} in Python: tensors of torch give other bits: "
                   f"{found['differs']}")


def check_c(s, name, folder):
    client = client_of(s, folder)
    if client is None:
        return
    done = s.call([client, str(TOTAL), str(STEPS)], 60)
    s.record("library", net=name, way="c", same=done.rc == 0)
    if done.rc != 0:
        s.fail(f"library {name} in C: rc {done.rc}: {done.tail()}")


def check_one(s, name, folder):
    if folder is None or s.left() < 15:
        return
    check_python(s, name, folder)
    if not s.o.dry_run:
        check_c(s, name, folder)


def check(s, names=tuple(LIBRARIES)):
    names = list(names)[:1] if s.o.dry_run else list(names)
    folders = s.side_by_side([lambda n=n: build(s, n) for n in names])
    for name, folder in zip(names, folders):
        s.guarded("library " + name, check_one, s, name, folder)


# ---- in a process of its own ----

def arrays_of(net, k):
    """Batch k of all inputs."""
    import numpy
    draw, samples = numpy.random.default_rng(k), net.batch
    found = []
    for t in net.inputs:
        shape = (samples * max(net.rows_of_sample(t), 1), *t.shape[1:])
        found.append(draw.random(shape, "f4").astype(t.dtype) if t.dtype.kind == "f"
                     else draw.integers(0, 5, shape).astype(t.dtype))
    return found


def timed(steps, run):
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) / steps * 1e3


def results(net, losses):
    return {"losses": losses, **{t.name: net.read(t.name) for t in net.state}}


def by_the_host(net, steps, batches):
    net.begin(3)
    return results(net, [net.step(batches[k], 0.05) for k in range(steps)])


def by_the_gpu(net, steps, batches):
    import torch
    net.begin(3)
    with torch.cuda.stream(torch.cuda.Stream()):
        there = [[torch.as_tensor(a).cuda() for a in batch] for batch in batches]
        place = [torch.empty_like(a) for a in there[0]]
        losses = []
        for k in range(steps):
            for to, array in zip(place, there[k]):
                to.copy_(array)
            losses.append(net.step(place, 0.05, wait=False))
            for to in place:
                to.zero_()
        last = net.wait()
        losses = [None if x is None else float(x.cpu()) for x in losses]
    return results(net, losses if losses[0] is not None else [last])


def differences(a, b):
    import numpy
    n = len(b["losses"])
    near = numpy.allclose(a["losses"][-n:], b["losses"], rtol=1e-6, atol=0)
    return ["losses"] * (not near) + [k for k in a if k != "losses"
                                      and a[k].tobytes() != b[k].tobytes()]


def times(net, steps, batches):
    import torch
    there = [[torch.as_tensor(a).cuda() for a in batch] for batch in batches]
    cases = {"host_ms": (batches, True), "gpu_ms": (there, True), "unwaited_ms": (there, False)}

    def run(arrays, wait):
        for k in range(steps):
            net.step(arrays[k], 1e-4, wait=wait)
        net.wait()
    for arrays, wait in cases.values():
        run(arrays, wait)
    return {name: timed(steps, lambda c=case: run(*c)) for name, case in cases.items()}


def main():
    path, steps, host = sys.argv[1], int(sys.argv[2]), "--host" in sys.argv
    try:
        import numpy        # noqa: F401
        if not host:
            import torch
            if not torch.cuda.is_available():
                raise ImportError("torch sees no GPU")
    except ImportError as e:
        print(e)
        sys.exit(77)
    from lowerset._library import Net
    with Net(path) as net:
        batches = [arrays_of(net, k) for k in range(steps)]
        want = by_the_host(net, steps, batches)
        got = (by_the_host if host else by_the_gpu)(net, steps, batches)
        differs = differences(want, got)
        print(json.dumps({"same": not differs, "differs": differs[:3],
                          **({} if host else times(net, steps, batches))}))


if __name__ == "__main__":
    main()
