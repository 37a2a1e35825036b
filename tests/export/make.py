#!/usr/bin/env python3
"""tests/export/make.py -- exports the networks of nets.py by every call, with references.

    make.py FOLDER [--prefix P] [--calls ts,dyn,...] [--nets mlp,...] [--no-reference]

FOLDER/NET/CALL.onnx: the exports; a call that fails leaves CALL.failed with its last line.
FOLDER/NET/data.npz: one batch, `x` and `label`. FOLDER/NET/ref.npz, by the module itself in
train() mode, in float64 from weights in float32: `loss` [31] before each of steps 0..30 of plain
SGD (cross entropy, rate `lr`), `grad/PARAMETER` of step 0, `param/NAME` and `stat/NAME` after 30.

Calls of rewrite.py read ts.onnx, which must be there or come before them.

tests/export/fixtures are some of them by PyTorch 2.15, and with the prefix deb_ by 1.13.
"""
import argparse
import pathlib
import warnings

import numpy as np
import torch
from torch.nn import functional as F

from nets import NETS
from rewrite import REWRITES, rewrite

STEPS = 30
VERSION = tuple(int(v) for v in torch.__version__.split("+")[0].split(".")[:2])


def legacy(m, x, path, **more):
    """The TorchScript exporter, under its name in this version of PyTorch."""
    if VERSION >= (2, 5):
        more["dynamo"] = False
    try:
        torch.onnx.export(m, (x,), path, input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "N"}}, **more)
    except AssertionError:      # batch norms without running statistics: known shapes only
        torch.onnx.export(m, (x,), path, input_names=["x"], output_names=["y"], **more)


def by_ts(m, x, path):
    """README's call for earlier versions."""
    legacy(m, x, path, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)


def by_eval(m, x, path):
    """The TorchScript exporter with its defaults: evaluation form."""
    legacy(m, x, path)


def by_dyn(m, x, path):
    """The default call of today's PyTorch."""
    torch.onnx.export(m, (x,), path, input_names=["x"], output_names=["y"], external_data=False)


def by_dyn_eval(m, x, path):
    by_dyn(m.eval(), x, path)


def by_raw(m, x, path):
    """The same exporter without its optimizer."""
    torch.onnx.export(m, (x,), path, input_names=["x"], output_names=["y"], external_data=False,
                      optimize=False)


def by_raw_n(m, x, path):
    """README's call: the same, with a batch of any size."""
    torch.onnx.export(m, (x,), path, input_names=["x"], output_names=["y"], external_data=False,
                      dynamo=True, optimize=False, dynamic_shapes=({0: "N"},))


CALLS = {"ts": by_ts, "eval": by_eval}
if VERSION >= (2, 9):
    CALLS.update(dyn=by_dyn, raw=by_raw, raw_n=by_raw_n, dyn_eval=by_dyn_eval)


# The exporter's notes for people at each node: the place in the source. They are most of a file.
NOTES = ("pkg.torch.onnx.stack_trace", "pkg.torch.onnx.class_hierarchy", "namespace")


def shorten(path):
    import onnx
    m = onnx.load(path)
    for thing in [*m.graph.node, *m.graph.value_info]:
        kept = [p for p in getattr(thing, "metadata_props", ()) if p.key not in NOTES]
        if kept or getattr(thing, "metadata_props", ()):
            del thing.metadata_props[:]
            thing.metadata_props.extend(kept)
    onnx.save(m, path)


def export(name, net, call, folder, prefix):
    path, failed = (folder / (prefix + call + end) for end in (".onnx", ".failed"))
    for old in (path, failed):
        old.unlink(missing_ok=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if call in REWRITES:
                rewrite(call, folder / (prefix + "ts.onnx"), path, name)
                return
            CALLS[call](net.module(name).train(), torch.from_numpy(net.batch(name)[0]), str(path))
        shorten(str(path))
    except Exception as e:      # an exporter may refuse in any way; that is an outcome
        path.unlink(missing_ok=True)
        lines = [s for s in str(e).splitlines() if s.strip()] or [""]
        failed.write_text(f"{type(e).__name__}: {lines[0]}\n")


def train(name, net, kind):
    """30 steps of plain SGD in train() mode: all losses, and the members of ref.npz."""
    x, label = net.batch(name)
    m = net.module(name).to(kind).train()
    xs = torch.from_numpy(x) if net.tokens else torch.from_numpy(x).to(kind)
    want, losses, out = torch.from_numpy(label).reshape(-1), [], {}
    trained = [(k, p) for k, p in m.named_parameters() if p.requires_grad]
    for step in range(STEPS):
        y = m(xs)
        loss = F.cross_entropy(y.reshape(-1, y.shape[-1]), want)
        losses.append(loss.item())
        m.zero_grad()
        loss.backward()
        if step == 0:
            out.update({"grad/" + k: p.grad.numpy().copy() for k, p in trained})
        with torch.no_grad():
            for _, p in trained:
                p -= net.lr * p.grad
    out.update({"param/" + k: p.detach().numpy().copy() for k, p in trained})
    out.update({"stat/" + k: b.numpy().copy() for k, b in m.named_buffers() if "running_" in k})
    with torch.no_grad():
        y = m(xs)
    losses.append(F.cross_entropy(y.reshape(-1, y.shape[-1]), want).item())
    return np.array(losses), out


def reference(name, net, folder):
    x, label = net.batch(name)
    np.savez(folder / "data.npz", x=x, label=label)
    losses, out = train(name, net, torch.float64)
    short = train(name, net, torch.float32)[0]
    off = np.abs(short / losses - 1).max()
    if off > 1e-5:      # such a curve proves nothing
        raise SystemExit(f"{name}: rounding decides this curve: float32 is {off:.1e} off")
    np.savez(folder / "ref.npz", loss=losses, lr=np.array([net.lr]),
             **{k: v.astype(np.float32) for k, v in out.items()})


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--prefix", default="")
    p.add_argument("--calls", default=",".join(CALLS))
    p.add_argument("--nets", default=",".join(NETS))
    p.add_argument("--no-reference", action="store_true")
    a = p.parse_args()
    for name in a.nets.split(","):
        net, folder = NETS[name], a.folder / name
        if VERSION < net.since:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        if not a.no_reference:
            reference(name, net, folder)
        for call in a.calls.split(","):
            export(name, net, call, folder, a.prefix)
            print(name, a.prefix + call, flush=True)


main()
