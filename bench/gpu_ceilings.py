"""gpu.py --part ceilings: the device's highest rates (copy, products, convolutions, attention),
measured with PyTorch, so that lowerset's share of them can be computed; the gain of fusing, and the
quality of the libraries' first proposals. Random numbers only: a GPU is faster on zeros."""
import glob
import json
import os
import shlex
import shutil
import sys

CONVS = [       # of ResNet-50 at batch 256: channels in, out, size, kernel, stride
    (3, 64, 224, 7, 2), (64, 64, 56, 3, 1), (64, 256, 56, 1, 1), (256, 64, 56, 1, 1),
    (128, 128, 28, 3, 1), (256, 256, 14, 3, 1), (512, 512, 7, 3, 1), (1024, 2048, 14, 1, 2),
]


def keep(s, done):
    for line in done.out.splitlines():
        if line.startswith("{"):
            r = json.loads(line)
            s.record("ceiling", **r)
            if "plans" not in r:            # hundreds
                s.say(f"{r['what']}: {r['value']:.4g} {r['unit']}")


def judge(s, name, done):
    """Reports how a command ended; what it found before is kept."""
    if done.rc == 124:
        s.note(f"{name} ended after {done.seconds:.0f} s, its limit")
    elif done.rc != 0:
        s.fail(f"{name}: rc {done.rc}: {done.tail()}")


def toolkit():
    """The folder of CUDA's headers and static runtime; None."""
    nvcc = shutil.which("nvcc")
    places = [os.environ.get("CUDA_HOME"), os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
              if nvcc else None, "/usr/local/cuda"]
    return next((p for p in places if p
                 and os.path.exists(os.path.join(p, "include", "cuda_runtime_api.h"))),
                None)


def run_c(s, name, files, arguments, limit):
    """Builds bench/NAME.c with these files of runtime/ and runs it; without a device, with
    the H200's description."""
    root, home = os.path.dirname(s.here), toolkit()
    if home is None:
        s.note(f"no CUDA toolkit: {name}.c is not built")
        return
    static = [p for d in ("lib64", "lib", "targets/x86_64-linux/lib")
              if os.path.exists(p := os.path.join(home, d, "libcudart_static.a"))]
    program = os.path.join(s.work, name)
    done = s.call([*shlex.split(s.env["CC"]), "-std=gnu11", "-D_GNU_SOURCE", "-O2", f"-I{root}",
                   "-isystem", f"{home}/include", os.path.join(s.here, name + ".c"),
                   *[os.path.join(root, "runtime", f + ".c") for f in files], *static[:1],
                   "-lpthread", "-ldl", "-lrt", "-lm", "-o", program], 60)
    if done.rc != 0:
        s.fail(f"{name}.c is not built: {done.tail()}")
        return
    described = os.path.join(root, "compiler", "machines", "h200.cudnn.json")
    done = s.call([program, *arguments] + ([described] if s.o.dry_run else []), limit)
    keep(s, done)
    if s.o.dry_run and done.rc == 5:
        s.note(done.tail(1))
    else:
        judge(s, name, done)


CUDNN = ["cuda/library", "cuda/cudnn_library", "cuda/cudnn_graph", "cuda/cudnn_conv"]


def convolutions(s):
    """The convolutions of programs planned on this machine, else some convolutions of ResNet-50, as
    lines of text."""
    found = []
    for path in sorted(glob.glob(os.path.join(s.env["XDG_CACHE_HOME"], "lowerset",
                                              "cudnn-*.plans"))):
        with open(path, encoding="utf-8") as f:
            keys = [line.split("\t")[1].split(" within ")[0] for line in f if line.count("\t") >= 2]
        found += [k for k in keys if " tf32 " in k and "+" not in k]
    for ci, co, size, kernel, stride in CONVS if not found else []:
        to, pad = (size - 1) // stride + 1, kernel // 2
        found += [f"{kind} f32 tf32 x 256,{ci},{size},{size} w {co},{ci},{kernel},{kernel} y "
                  f"256,{co},{to},{to} "
                  f"stride {stride},{stride} dilation 1,1 pad {pad},{pad} {pad},{pad}"
                  for kind in ("forward", "data", "weights")]
    path = os.path.join(s.work, "convolutions.txt")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(dict.fromkeys(found)) + "\n")
    return path


def run(s):
    argv = [*shlex.split(s.o.python or sys.executable), os.path.abspath(__file__)]
    done = s.call(argv + (["cpu"] if s.o.dry_run else []), min(280, s.o.limit))
    keep(s, done)
    judge(s, "ceilings", done)
    run_c(s, "gpu_fused", CUDNN, [], 150)       # convolutions with batch norm in them, by cuDNN
    run_c(s, "gpu_choices", CUDNN + ["cuda/cublaslt_library", "base/run_error"], [convolutions(s)],
          150)


def main(device):
    import torch
    from torch.nn import functional as F

    cuda = device == "cuda"
    f = 1 if cuda else 64               # sizes are divided by this in a dry run
    types = {"bf16": torch.bfloat16, "fp16": torch.float16, "tf32": torch.float32,
             "f32": torch.float32}

    def seconds(run, least=0.3 if cuda else 0.0):
        """Median of groups of runs, each of about 30 ms."""
        import time
        wait = torch.cuda.synchronize if cuda else (lambda: None)
        for _ in range(3):
            run()
        wait()
        start = time.perf_counter()
        run()
        wait()
        group = max(1, int(0.03 / max(time.perf_counter() - start, 1e-6)))
        times, end = [], time.perf_counter() + least
        while len(times) < 5 or time.perf_counter() < end:
            start = time.perf_counter()
            for _ in range(group):
                run()
            wait()
            times.append((time.perf_counter() - start) / group)
        return sorted(times)[len(times) // 2]

    def tell(what, value, unit):
        print(json.dumps({"what": what, "value": value, "unit": unit}), flush=True)

    def tf32(on):
        torch.backends.cuda.matmul.allow_tf32 = on
        torch.backends.cudnn.allow_tf32 = on

    def rand(*shape, dtype=torch.float32, grad=False):
        return torch.randn(*shape, device=device).to(dtype).requires_grad_(grad)

    torch.backends.cudnn.benchmark = True
    def copied(n):
        a = rand(n)
        b = torch.empty_like(a)
        return 8 * n / seconds(lambda: b.copy_(a)) / 1e12

    tell("copy", copied((1 << 30) // f), "TB/s, read and written")
    for name, t in types.items():
        if not cuda and t != torch.float32:
            continue
        tf32(name == "tf32")
        n = 8192 // f
        x, y = rand(n, n, dtype=t), rand(n, n, dtype=t)
        tell(f"product {n} {name}", 2 * n ** 3 / seconds(lambda: x @ y) / 1e12, "TFLOP/s")
    n = 256 // f
    for ci, co, size, kernel, stride in CONVS:
        for name in ("tf32", "f32", "fp16") if cuda else ("f32",):
            t = types[name]
            tf32(name == "tf32")
            x = rand(n, ci, size, size,
                     dtype=t).to(memory_format=torch.channels_last).requires_grad_(ci > 3)
            w = rand(co, ci, kernel, kernel,
                     dtype=t).to(memory_format=torch.channels_last).requires_grad_()
            y = F.conv2d(x, w, stride=stride, padding=kernel // 2)
            g = torch.randn_like(y)
            flop = 2 * y.numel() * ci * kernel * kernel
            where = f"conv {kernel}x{kernel}/{stride} {ci}->{co} @{size} {name}"
            with torch.no_grad():
                tell(where,
                     flop / seconds(lambda: F.conv2d(x, w, stride=stride,
                                                     padding=kernel // 2)) / 1e12,
                     "TFLOP/s")
            wanted = [x, w] if ci > 3 else [w]
            back = seconds(lambda: torch.autograd.grad(y, wanted, g, retain_graph=True))
            tell(where + " backward", len(wanted) * flop / back / 1e12, "TFLOP/s")
    if hasattr(F, "scaled_dot_product_attention"):
        for batch in (16, 64) if cuda else (1,):
            for name in ("bf16", "tf32") if cuda else ("f32",):
                tf32(name == "tf32")
                shape = (batch, 12 // (1 if cuda else 6), 1024 // f, 64)
                q, k, v = (rand(*shape, dtype=types[name], grad=True) for _ in range(3))

                def both():
                    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                    torch.autograd.grad(y.sum(), (q, k, v))
                tell(f"attention forward and backward, causal, b{batch} {name}",
                     seconds(both) * 1e3, "ms")
    # cost of batch norm and ReLU beside a convolution: fused patterns may save this much
    if cuda:
        for ci, co, size, kernel, stride in CONVS[1:6]:
            x = rand(n, ci, size, size, dtype=torch.float16).to(memory_format=torch.channels_last)
            w = rand(co, ci, kernel, kernel,
                     dtype=torch.float16).to(memory_format=torch.channels_last)
            bn = torch.nn.BatchNorm2d(co).to(device).half()
            y = F.conv2d(x, w, stride=stride, padding=kernel // 2)
            tell(f"batch norm and ReLU behind {kernel}x{kernel} {ci}->{co} @{size}, of the "
                 f"convolution's time",
                 seconds(lambda: F.relu(bn(y), inplace=False))
                 / seconds(lambda: F.conv2d(x, w, stride=stride, padding=kernel // 2)), "times")


if __name__ == "__main__":
    main("cpu" if "cpu" in sys.argv[1:] else "cuda")
