#!/usr/bin/env python3
"""Attention and its gradient in isolation, in f32 and bf16, beside PyTorch's, in turns.

usage: attention.py BUILD-FOLDER [--rounds N] [--threads N]

Ours are the kernels of a program (bench/attention_bench.c), PyTorch's are
scaled_dot_product_attention and its gradient of tensors of that type. A figure is the least of the
rounds: with one thread of processor time, with several of wall time. PYTHON is one with torch.
"""
import argparse
import subprocess
import time

import torch
from torch.nn.functional import scaled_dot_product_attention

# batch, heads, heads of k and v, tokens, size of a head, causal
CASES = [(1, 14, 2, 512, 64, 1), (4, 8, 8, 256, 32, 1), (4, 12, 12, 512, 64, 1),
         (1, 16, 16, 1024, 64, 1), (1, 8, 8, 512, 128, 0), (8, 12, 12, 128, 64, 0)]


def theirs(case, dtype, clock):
    batch, heads, groups, tokens, size, causal = case

    def rows(n):        # as a product makes them: tokens before heads
        return torch.randn(batch, tokens, n, size).to(dtype).transpose(1, 2)

    q, k, v = [rows(n).requires_grad_() for n in (heads, groups, groups)]
    dy = rows(heads)
    best = [1e9, 1e9]
    for _ in range(3):
        start = clock()
        y = scaled_dot_product_attention(q, k, v, is_causal=bool(causal),
                                         enable_gqa=heads != groups)
        middle = clock()
        torch.autograd.grad(y, (q, k, v), dy)
        best = [min(best[0], middle - start), min(best[1], clock() - middle)]
    return best


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--threads", type=int, default=1)
    o = p.parse_args()
    torch.set_num_threads(o.threads)
    clock = time.process_time if o.threads == 1 else time.perf_counter
    bench = subprocess.Popen([f"{o.build}/bench/attention_bench", "-t", str(o.threads)], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    bench.stdin.write("".join(" ".join(map(str, c)) + "\n" for c in CASES) + "go\n")
    best = [[1e9] * 8 for _ in CASES]
    for _ in range(o.rounds):
        for i, case in enumerate(CASES):
            bench.stdin.write(f"{i}\n")
            bench.stdin.flush()
            now = [float(x) for x in bench.stdout.readline().split()]
            now += theirs(case, torch.float32, clock) + theirs(case, torch.bfloat16, clock)
            best[i] = [min(a, b) for a, b in zip(best[i], now)]
    bench.stdin.close()
    bench.wait()
    print(f"ms, forward + gradient, {o.threads} thread(s), least of {o.rounds} rounds\n")
    print("| batch x heads (of k, v) x tokens x size | f32 | bf16 | PyTorch f32 | PyTorch bf16 |")
    print("|---|---|---|---|---|")
    for case, row in zip(CASES, best):
        batch, heads, groups, tokens, size, causal = case
        cells = [f"{1e3 * row[k]:.2f} + {1e3 * row[k + 1]:.2f}" for k in range(0, 8, 2)]
        name = f"{batch} x {heads} ({groups}) x {tokens} x {size}{', causal' if causal else ''}"
        print(f"| {name} | " + " | ".join(cells) + " |")


main()
