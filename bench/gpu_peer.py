#!/usr/bin/env python3
"""Training steps of one network in PyTorch or JAX, to measure lowerset against on a GPU.

usage: gpu_peer.py MODEL WHO [--precision f32|tf32|bf16] [--batch N] [--seconds S]
                   [--device cuda|cpu] [--tiny]
  MODEL  resnet50, densenet121, unet (the paper's, 572 pixels) or gpt (GPT-2, 124 million)
  WHO    eager    PyTorch: channels-last, cudnn.benchmark, fused optimizer, its own attention
         compile  the same through torch.compile; graphs: with CUDA graphs; tune: max-autotune
         jax      jitted step, donated state

In bf16 PyTorch runs the forward part and the loss under autocast. JAX casts parameters and
images to bf16 and scores back to f32. Parameters and optimizers are f32 in both; what is left in
f32 may use TF32.

One configuration per process, since peak memory is the process's. The batch lies on the device and
is random. After a warm-up, steps are timed in groups between two waits for the device; the figure
is the median over the groups. Prints one JSON line: ms (per step), best_ms, groups, first_s (until
the first step was done, compilation included), peak_bytes (what the framework's allocator had in
use at most, once warm), first_peak_bytes (likewise from the start, with what was tried when kernels
were chosen), reserved_bytes (what it had taken from the device), taken_bytes (what the device had
less of at the end), loss (of the last step), parameters, versions.
"""
import argparse
import json
import os
import sys
import time

SIZES = {       # image, classes, tiny image; or the GPT's
    "resnet50": {"size": 224, "classes": 1000}, "densenet121": {"size": 224, "classes": 1000},
    "unet": {"size": 572, "classes": 2},
    "gpt": {"depth": 12, "width": 768, "heads": 12, "context": 1024, "vocab": 50257},
}
TINY = {
    "resnet50": {"size": 32, "classes": 10, "width": 4},
    "densenet121": {"size": 32, "classes": 10, "growth": 4},
    "unet": {"size": 188, "classes": 2, "width": 2},
    "gpt": {"depth": 2, "width": 32, "heads": 2, "context": 32, "vocab": 64},
}


def options():
    p = argparse.ArgumentParser()
    p.add_argument("model", choices=list(SIZES))
    p.add_argument("who", choices=["eager", "compile", "graphs", "tune", "jax"])
    p.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="tf32")
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--seconds", type=float, default=4)
    p.add_argument("--device", default="cuda")
    p.add_argument("--tiny", action="store_true")
    return p.parse_args()


def groups_of_steps(step, wait, seconds):
    """Median and best ms per step, number of groups; step() returns the value that
    wait() waits for."""
    for _ in range(3):
        wait(step())
    start = time.perf_counter()
    wait(step())
    one = max(time.perf_counter() - start, 1e-6)
    group = max(1, min(50, int(0.2 / one)))
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 500):
        start = time.perf_counter()
        for _ in range(group):
            last = step()
        wait(last)
        times.append((time.perf_counter() - start) / group * 1e3)
    times.sort()
    return times[len(times) // 2], times[0], len(times)


def valid_output(size, depth=4):
    """Size of the U-Net's output."""
    for _ in range(depth):
        size = (size - 4) // 2
    size -= 4
    for _ in range(depth):
        size = 2 * size - 4
    return size


def by_torch(o, sizes):
    import torch
    from torch.nn import functional as F

    import torch_models

    cuda = o.device == "cuda"
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = o.precision != "f32"
    torch.backends.cudnn.allow_tf32 = o.precision != "f32"
    torch.backends.cudnn.benchmark = True
    begin = time.perf_counter()
    sizes = dict(sizes)
    free = torch.cuda.mem_get_info()[0] if cuda else 0
    if o.model == "gpt":
        flash = hasattr(F, "scaled_dot_product_attention")
        net = torch_models.GPT(**sizes, flash=flash)
        x = torch.randint(sizes["vocab"], (o.batch, sizes["context"]))
        target = torch.randint(sizes["vocab"], (o.batch * sizes["context"],))
    else:
        size = sizes.pop("size")
        x = torch.rand(o.batch, 3, size, size)
        make = {"resnet50": torch_models.ResNet50, "densenet121": torch_models.DenseNet121,
                "unet": lambda **k: torch_models.UNet(pad=0, **k)}[o.model]
        net = make(**sizes).to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
        shape = (o.batch,)
        if o.model == "unet":
            out = valid_output(size)
            shape = (o.batch, out, out)
        target = torch.randint(sizes["classes"], shape)
    net, x, target = net.to(o.device), x.to(o.device), target.to(o.device)
    net.train()
    fused = {"fused": True} if cuda else {}
    if o.model == "gpt":
        opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=.01, **fused)
    else:
        opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, **fused)

    def loss_of(x, target):
        with torch.autocast(o.device, torch.bfloat16, enabled=o.precision == "bf16"):
            y = net(x)
            return F.cross_entropy(y.flatten(0, 1) if o.model == "gpt" else y, target)

    mode = {"compile": None, "graphs": "reduce-overhead", "tune": "max-autotune"}
    forward = torch.compile(loss_of, mode=mode[o.who]) if o.who in mode else loss_of

    def step():
        opt.zero_grad(set_to_none=True)
        loss = forward(x, target)
        loss.backward()
        opt.step()
        return loss.detach()

    def wait(_):
        if cuda:
            torch.cuda.synchronize()

    wait(step())
    first = time.perf_counter() - begin
    for _ in range(2):
        wait(step())
    first_peak = torch.cuda.max_memory_allocated() if cuda else 0
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    ms, best, n = groups_of_steps(step, wait, o.seconds)
    loss = float(step())
    return {"ms": ms, "best_ms": best, "groups": n, "first_s": first, "loss": loss,
            "peak_bytes": torch.cuda.max_memory_allocated() if cuda else 0,
            "first_peak_bytes": first_peak,
            "reserved_bytes": torch.cuda.max_memory_reserved() if cuda else 0,
            "taken_bytes": free - torch.cuda.mem_get_info()[0] if cuda else 0,
            "parameters": sum(p.numel() for p in net.parameters()),
            "versions": f"torch {torch.__version__}"
                        + (f", cuDNN {torch.backends.cudnn.version()}" if cuda else "")}


def by_jax(o, sizes):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if o.device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp

    import jax_models

    jax.config.update("jax_default_matmul_precision",
                      "float32" if o.precision == "f32" else "tensorfloat32")
    begin = time.perf_counter()
    sizes = dict(sizes)
    key, key2 = jax.random.split(jax.random.PRNGKey(0))
    if o.model == "gpt":
        shape = (o.batch, sizes["context"])
        x = jax.random.randint(key, shape, 0, sizes["vocab"])
        target = jax.random.randint(key2, shape, 0, sizes["vocab"])
    else:
        size = sizes.pop("size")
        x = jax.random.uniform(key, (o.batch, size, size, 3), jnp.float32)
        out = valid_output(size)
        shape = (o.batch, out, out) if o.model == "unet" else (o.batch,)
        target = jax.random.randint(key2, shape, 0, sizes["classes"])
    step_fn, state = jax_models.train_step(o.model, sizes, x, brain=o.precision == "bf16")
    count = sum(v.size for v in jax.tree_util.tree_leaves(state[0]))

    def step():
        nonlocal state
        state, loss = step_fn(state, x, target)
        return loss

    step().block_until_ready()
    first = time.perf_counter() - begin
    ms, best, n = groups_of_steps(step, lambda loss: loss.block_until_ready(), o.seconds)
    stats = jax.local_devices()[0].memory_stats() or {}
    return {"ms": ms, "best_ms": best, "groups": n, "first_s": first, "loss": float(step()),
            "peak_bytes": stats.get("peak_bytes_in_use", 0),
            "reserved_bytes": stats.get("peak_bytes_reserved", 0), "parameters": int(count),
            "versions": f"jax {jax.__version__}, {jax.local_devices()[0].platform}"}


def main():
    o = options()
    sizes = (TINY if o.tiny else SIZES)[o.model]
    row = {"model": o.model, "who": o.who, "precision": o.precision, "batch": o.batch}
    row.update(by_jax(o, sizes) if o.who == "jax" else by_torch(o, sizes))
    print(json.dumps(row), flush=True)
    if row["loss"] != row["loss"]:
        sys.exit("the loss is not a number")


if __name__ == "__main__":
    main()
