#!/usr/bin/env python3
"""tests/export/zoo_check.py -- exports the networks of zoo.py, and compares one step of training.

    zoo_check.py LOWERSET [--nets resnet,...] [--calls ts,dyn,raw] [--keep FOLDER [--reuse]]
        [--table FILE]

Each network is exported in train() mode by three calls: the TorchScript exporter in training form
(ts), the default exporter without its optimizer (raw), and with it (dyn). Each file is compiled
with the mean squared error to random targets. The loss, the gradient of every parameter and the set
of trained tensors are compared with autograd's, in float64. Outcomes as in export_check.c; also
`unmade`: the exporter has an error; `untold`: the only difference is padding_idx of embeddings, or
that a buffer is trained: files of the TorchScript exporter do not tell. The trained model is
exported and read by onnxruntime (round_trip.py). Exit 1 if any is SILENT or broken, or does not
come back. --reuse: exports that an earlier run left in FOLDER are not made again.
--table: the file of docs/lab/exports.md; rows of networks that did not run stay as they are.
"""
import argparse
import contextlib
import os
import pathlib
import re
import sys
import tempfile
import time
import warnings
import zlib

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
import torch
from torch import nn

sys.dont_write_bytecode = True
from rewrite import REWRITES, rewrite
from round_trip import DATA, round_trip, run
from zoo import ZOO

CALLS = ("ts", "raw", "dyn")
TRAINING = dict(dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)


class Picked(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net, self.pick, self.masked = net.make(), net.pick, net.masked

    def forward(self, *x):
        more = {"attention_mask": torch.ones_like(x[0])} if self.masked else {}
        return self.pick(self.net(*x, **more))


def seeded(name):
    return np.random.RandomState(zlib.crc32(name.encode()))


def module(name):
    """Every float parameter is random: parameters of equal value are one to some exporters."""
    torch.manual_seed(1)
    m = Picked(ZOO[name]).train()
    for p in m.modules():
        if isinstance(p, nn.Dropout):
            p.p = 0.0
    rng = seeded(name)
    with torch.no_grad():
        for p in m.parameters():
            p += torch.from_numpy(rng.uniform(-0.05, 0.05, tuple(p.shape))).to(p.dtype)
    return m


def batch(name):
    rng = seeded(name + " data")
    return {k: rng.randint(0, s[0], s[1]).astype(np.int64) if isinstance(s[1], tuple)
            else rng.standard_normal(s).astype(np.float32) for k, s in ZOO[name].inputs.items()}


def as_kind(x, kind):
    t = torch.from_numpy(x)
    return t.to(kind) if t.is_floating_point() else t


def by_autograd(name, x, kind, padded=True):
    """One step: labels, the loss and all gradients. Not padded: padding_idx of embeddings is
    left out, which no file has."""
    m = module(name).to(kind)
    for e in m.modules():
        if isinstance(e, nn.Embedding) and not padded:
            e.padding_idx = None
    y = m(*(as_kind(v, kind) for v in x.values()))
    want = seeded(name + " label").standard_normal(tuple(y.shape)).astype(np.float32)
    loss = ((y - torch.from_numpy(want).to(y.dtype)) ** 2).mean()
    loss.backward()
    grads = {k: p.grad.double().numpy() for k, p in m.named_parameters() if p.grad is not None}
    return want, loss.item(), grads


@contextlib.contextmanager
def quiet():
    """The TorchScript exporter prints whole graphs before it raises an error."""
    sys.stdout.flush()
    out, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(out, 1)
        os.close(out)
        os.close(nowhere)


def export(name, calls, x, folder):
    """Writes CALL.onnx; call -> the exporter's error. dyn is raw after the exporter's optimizer,
    which is its last pass but for names."""
    failed, net = {}, ZOO[name]
    args, more = tuple(torch.from_numpy(v) for v in x.values()), dict(input_names=list(x),
                                                                      output_names=["y"])
    if "ts" in calls or any(c in calls for c in REWRITES):
        axes = {"dynamic_axes": {k: {0: "N"} for k in x}} if net.dynamic else {}
        try:
            torch.onnx.export(module(name), args, str(folder / "ts.onnx"), **more,
                              **axes, **TRAINING)
        except Exception as e:      # an exporter may refuse in any way; that is an outcome
            failed["ts"] = sentence(e, 0)
    for call in REWRITES:
        if call in calls:
            try:
                rewrite(call, folder / "ts.onnx", folder / (call + ".onnx"), name)
            except Exception as e:
                failed[call] = sentence(e, 0)
    if "raw" in calls or "dyn" in calls:
        axes = {"dynamic_shapes": (tuple({0: torch.export.Dim.DYNAMIC} for _ in x),
                                   )} if net.dynamic else {}
        try:
            program = torch.onnx.export(module(name), args, dynamo=True, optimize=False,
                                        **more, **axes)
            program.save(folder / "raw.onnx", external_data=False)
            program.optimize()
            program.save(folder / "dyn.onnx", external_data=False)
        except Exception as e:
            failed.update(raw=sentence(e, -1), dyn=sentence(e, -1))
    return failed


def sentence(error, line):
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [s.strip() for s in str(error).splitlines() if s.strip()] or [""]
    return f"{type(error).__name__}: {lines[line]}"[:160]


def said(folder, log="compile.log"):
    """The first error, else warning, without the file's name."""
    lines = [s for s in (folder / log).read_text(errors="replace").splitlines()
             if re.search("error[ :]|warning: ", s)]
    lines.sort(key=lambda s: re.search("error[ :]", s) is None)
    return lines[0].split(".onnx: ", 1)[-1] if lines else ""


def far(ref, got, least=0.0):
    if ref.size != got.size:
        return np.inf
    d = np.abs(ref.reshape(-1) - got.reshape(-1)).max() if ref.size else 0.0
    return d / max(np.abs(ref).max() if ref.size else 0.0, least,
                   1e-30) if np.isfinite(d) else np.inf


def gaps(ref, got, turned):
    """name -> the error of a gradient that both have, beside its tensor's largest value.
    turned: transposed, too."""
    group = max((np.abs(g).max() for g in ref.values()), default=0.0)
    forms = (lambda g: [g, g.T]) if turned else (lambda g: [g])
    both = [k for k in ref if k in got]
    return {k: min(far(a, b, 0.01 * group) for b in forms(got[k]) for a, b in [in_use(ref[k], b)])
            for k in both}


def in_use(a, b):
    """Both; without zeros where b has only the rows of a that are in use."""
    return (a, b) if a.size == b.size else tuple(np.sort(t[t != 0]) for t in (a, b))


def compare(ref, dump, noise, turned=False):
    """(differences: list of (sentence, tensor or None), what has another name or "")."""
    _, loss, grads = ref
    got = {k[5:]: v.astype(np.float64) for k, v in dump.items() if k.startswith("grad/")}
    off = far(np.array(loss), np.asarray(dump["loss"], np.float64))
    wrong = [(f"loss is off by {off:.1e}", None)] if not off <= max(1e-4, noise) else []
    lost, more = [sorted(k for k in a if k not in b) for a, b in ((grads, got), (got, grads))]
    if not wrong:               # otherwise all gradients differ
        bad = {k: e for k, e in gaps(grads, got, turned).items() if not e <= max(1e-3, 10 * noise)}
        wrong += [(f"the gradient of {k} is off by {e:.1e}", k)
                  for k, e in sorted(bad.items(), key=lambda b: -b[1])]
        # an equal gradient, maybe transposed, is the same tensor under another name
        for k in list(lost):
            same = [m for m in more if equal(grads[k], got[m], noise)]
            if same:
                lost.remove(k)
                more.remove(same[0])
    renamed = len([k for k in grads if k not in got]) - len(lost)
    wrong += [(f"{k} is not trained", k) for k in lost if np.abs(grads[k]).max() > 0]
    wrong += [(f"{k} is trained", k) for k in more if np.abs(got[k]).max() > 0]
    return wrong, (f"{renamed} renamed" if renamed else "")


def equal(a, b, noise):
    a, b = in_use(a, b)
    return a.size == b.size and any(far(a, t) <= max(1e-3, 10 * noise)
                                    for t in ([b, b.T] if b.ndim == 2 else [b]))


def outcome(name, call, x, ref, noise, lowerset, folder):
    """(outcome, what round_trip says of the trained model or "-", why)."""
    path = folder / (call + ".onnx")
    more = ["--batch", str(len(next(iter(x.values()))))] if ZOO[name].dynamic else []
    text = path.read_bytes()
    # as docs/from-pytorch.md says: no file has requires_grad
    for k, p in module(name).named_parameters():
        more += [] if p.requires_grad or k.encode() not in text else ["--freeze", k]
    code = run([lowerset, "compile", path, "-O0", "--strategy=none",
                "--optimizer", "sgd:momentum=0", "--loss", "mse",
                "--store-gradients", "-v", "-o", "t", *more], folder, "compile.log")
    if code != 0:
        return "refused" if code < 6 else "broken", "-", \
            said(folder) or f"the compiler ends with {code}"
    code = run(["./t", "--data", "data.npz", *DATA, "--lr", "0", "--steps", "1",
                "--dump", "dump.npz"], folder, "train.log")
    if code != 0:
        return "broken", "-", \
            f"the trainer ends with {code}: " + (folder / "train.log").read_text()[-200:].strip()
    dump = dict(np.load(folder / "dump.npz"))
    steepest = max((np.abs(v).max() for k, v in dump.items() if k.startswith("grad/")), default=1.0)
    got, why = judge(name, call, x, ref, noise, dump, folder)
    back = round_trip(path, folder, "data.npz", 0.01 / max(steepest, 0.1))
    return got, "equal" if back == "" else "WRONG", \
        why if back == "" else f"{why} [the exported model: {back}]".strip()


def judge(name, call, x, ref, noise, dump, folder):
    """(outcome, why) of one step. A difference is told if a warning names the tensor, or a part of
    it under another name; a loss, if a warning names one."""
    wrong, renamed = compare(ref, dump, noise, call in REWRITES)
    if not wrong:
        return ("renamed", renamed) if renamed else ("equal", "")
    untold = beyond_the_file(name, x, ref, dump, noise) if call == "ts" or call in REWRITES else ""
    if untold:
        return "untold", untold
    told = warnings_of(folder)
    names = set(re.findall("'([^' ]+)'", " ".join(told)))
    names |= parts_of(name, folder / (call + ".onnx"), names)
    silent = [s for s, k in wrong if (k not in names if k else not names)]
    if silent:
        return "SILENT", f"{silent[0]} (of {len(silent)})"
    named = next((t for t in told if wrong[-1][1] and f"'{wrong[-1][1]}'" in t), told[0])
    return "warned", f"{named[:160]} [{wrong[0][0]} (of {len(wrong)} differences)]"


def parts_of(name, path, names):
    """Parameters of which one of these initializers is a part: rows that an optimizer looked up."""
    import onnx
    some = [onnx.numpy_helper.to_array(t).reshape(-1) for t in onnx.load(path).graph.initializer
            if t.name in names]
    some = [a for a in some if a.dtype == np.float32 and len(np.unique(a)) > 1]
    all_of = {k: p.detach().numpy().reshape(-1) for k, p in module(name).named_parameters()}
    return {k for k, p in all_of.items() for a in some
            if any(np.array_equal(p[i:i + a.size], a) for i in np.flatnonzero(p == a[0]))}


def warnings_of(folder):
    lines = (folder / "compile.log").read_text(errors="replace").splitlines()
    return [s.split(".onnx: ", 1)[-1] for s in lines if "warning: " in s]


def beyond_the_file(name, x, ref, dump, noise):
    """What the file of the TorchScript exporter does not tell, if that is all that
    differs, or ""."""
    buffers = {k for k, _ in module(name).named_buffers()}
    rest = {k: v for k, v in dump.items() if not (k.startswith("grad/") and k[5:] in buffers)}
    trained = ["the buffer " + k[5:] + " is trained" for k in dump if k not in rest]
    if not compare(ref, rest, noise, True)[0]:
        return ", ".join(trained)
    if not compare(by_autograd(name, x, torch.float64, False), rest, noise, True)[0]:
        return ", ".join(["padding_idx of an embedding", *trained])
    return ""


def check(name, calls, lowerset, folder, reuse):
    """call -> (outcome, of the exported model, why)."""
    folder.mkdir(parents=True, exist_ok=True)
    x = batch(name)
    try:
        ref, short = by_autograd(name, x, torch.float64), by_autograd(name, x, torch.float32)
    except Exception as e:
        return {c: ("unmade", "-", f"the module: {type(e).__name__}: {str(e).splitlines()[0]}")
                for c in calls}
    noise = max([*gaps(ref[2], short[2], False).values(), abs(short[1] / ref[1] - 1)])
    np.savez(folder / "data.npz", **x, label=ref[0])
    with warnings.catch_warnings(), quiet():
        warnings.simplefilter("ignore")
        made = [c for c in calls if reuse and (folder / (c + ".onnx")).exists()]
        failed = export(name, [c for c in calls if c not in made], x, folder)
    return {c: ("unmade", "-", failed[c]) if c in failed
            else outcome(name, c, x, ref, noise, lowerset, folder) for c in calls}


HEAD = """# Networks and their exports

Made DATE by `./dev export --zoo`; do not edit. Networks of `tests/export/zoo.py` (torchvision,
timm, transformers and others at small sizes, random weights), each exported in train() mode by
three calls: `ts`, the TorchScript exporter in training form; `dyn`, the default call; `raw`, the
default exporter with `optimize=False`. The loss, the gradient of every parameter and the set of
trained tensors of one step are compared with autograd's.

equal: all agree. renamed: all agree, some parameters have other names. warned: something differs,
and the compiler's warnings (with `-v`) name every tensor that differs. refused: the compiler has an
error. unmade: the exporter has an error. untold: a difference that no file of this exporter tells,
as [from-pytorch.md](../from-pytorch.md) says. There is no silent difference. Parameters with
`requires_grad=False` are given to `--freeze`.

back: the trainer's `--export` after three more steps. equal: it passes ONNX's checker, has the
names of the file's inputs, outputs and initializers, and gives the outputs of the trainer's
`--eval` in onnxruntime.

| network | call | outcome | back | why |
|---|---|---|---|---|
"""


def write_table(path, rows):
    old = {}
    if path.exists():
        cells = [s.strip("|\n ").split(" | ", 4) for s in path.read_text().splitlines()
                 if s.startswith("| ")]
        old = {(c[0], c[1]): (c[2], c[3], c[4] if len(c) > 4 else "") for c in cells if len(c) >= 4
               and c[1] in CALLS}
    old.update(rows)
    with open(path, "w") as f:
        f.write(HEAD.replace("DATE", time.strftime("%Y-%m-%d")))
        for name in ZOO:
            for call in CALLS:
                if (name, call) in old:
                    got, back, why = old[name, call]
                    f.write(f"| {name} | {call} | {got} | {back} | "
                            f"{why.strip(' |').replace('|', '/')} |\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("lowerset", type=pathlib.Path)
    p.add_argument("--nets", default=",".join(ZOO))
    p.add_argument("--calls", default=",".join(CALLS))
    p.add_argument("--keep", type=pathlib.Path)
    p.add_argument("--reuse", action="store_true")
    p.add_argument("--table", type=pathlib.Path)
    a = p.parse_args()
    torch.set_num_threads(1)
    bad, made = 0, tempfile.TemporaryDirectory()
    for name in a.nets.split(","):
        rows = check(name, a.calls.split(","), a.lowerset.resolve(),
                     (a.keep or pathlib.Path(made.name)).resolve() / name, a.reuse)
        for call, (got, back, why) in rows.items():
            print(f"{name:20} {call:4} {got:8} {back:5} {why}", flush=True)
            bad += got in ("SILENT", "broken") or back == "WRONG"
        if a.table is not None:
            write_table(a.table, {(name, c): v for c, v in rows.items()})
    return 1 if bad else 0


sys.exit(main())
