#!/usr/bin/env python3
"""tests/export/round_trip.py -- what a trainer exports, read by onnxruntime.

    round_trip.py LOWERSET FOLDER [OPTION...]

FOLDER/NET/CALL.onnx and data.npz: as make.py writes them. Each file is compiled (with OPTIONs) and
trained for a few steps. The program's --export must pass onnx.checker with full_check, keep the
names of inputs, outputs and initializers, and give in onnxruntime the outputs of the program's own
--eval, to 1e-3 of the largest; with --export-precision, to a hundredth in f16 and a tenth in bf16.
Prints a row a file; exit 1 if one differs.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx

STEPS = 3
DATA = ["--no-shuffle", "--progress", "none", "--threads", "1"]


def run(command, folder, log):
    """The exit code; 124 for a command that takes too long."""
    with open(folder / log, "wb") as out:
        try:
            return subprocess.run(command, cwd=folder, stdout=out, stderr=out,
                                  timeout=240).returncode
        except subprocess.TimeoutExpired:
            return 124


def names(model):
    """(inputs, outputs, initializers)."""
    g = model.graph
    kept = {t.name for t in g.initializer}
    return [v.name for v in g.input if v.name not in kept], [v.name for v in g.output], kept


def lost_names(source, made):
    """What the exported file does not have under its name, or "". A copy of another initializer may
    be a node of the same name."""
    a, b = names(source), names(made)
    nodes = {t for n in made.graph.node for t in n.output}
    lost = sorted(a[2] - b[2] - nodes)
    if a[:2] != b[:2]:
        return f"inputs and outputs are {b[:2]}, not {a[:2]}"
    return f"{lost[0]} is no initializer (of {len(lost)})" if lost else ""


def by_onnxruntime(path, x):
    import onnxruntime
    o = onnxruntime.SessionOptions()
    o.log_severity_level, o.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(str(path), o, providers=["CPUExecutionProvider"])
    wanted = [i.name for i in session.get_inputs()]
    out = session.run(None, {k: x[k] for k in wanted})
    return dict(zip([o.name for o in session.get_outputs()], out))


def said(error):
    return f"{type(error).__name__}: " + " ".join(str(error).split())[:160]


def checked(path, x):
    onnx.checker.check_model(str(path), full_check=True)
    return by_onnxruntime(path, x)


def refused(source, x, error):
    """The source file has the same fault, by the exporter."""
    try:
        checked(source, x)
    except Exception as e:
        return said(e) == said(error)
    return False


def distance(got, want):
    """The worst difference of an output, over its largest element."""
    worst = 0.0
    for k, y in want.items():
        if k not in got:
            return np.inf
        d = np.abs(np.asarray(got[k],
                              np.float64).reshape(-1) - np.asarray(y, np.float64).reshape(-1)).max()
        worst = max(worst, d / max(np.abs(y).max(), 1e-6)) if np.isfinite(d) else np.inf
    return worst


def round_trip(source, folder, data, lr):
    """Of the trainer `t` in folder, compiled from source. What is wrong, or ""."""
    shutil.rmtree(folder / "saved", ignore_errors=True)     # of an earlier call
    code = run(["./t", "--data", data, *DATA, "--lr", f"{lr:.6g}", "--steps", str(STEPS),
                "--epochs", str(STEPS),
                "--save", "saved", "--export", "trained.onnx"], folder, "export.log")
    if code != 0:
        return f"training ends with {code}"
    newest = max((folder / "saved").iterdir())
    code = run(["./t", "--data", data, *DATA, "--eval", "--resume", newest, "--dump", "eval.npz"],
               folder, "eval.log")
    if code != 0:
        return f"--eval ends with {code}"
    lost = lost_names(onnx.load(source, load_external_data=False),
                      onnx.load(folder / "trained.onnx"))
    if lost:
        return lost
    with np.load(folder / data) as x, np.load(folder / "eval.npz") as dump:
        try:
            got = checked(folder / "trained.onnx", x)
        except Exception as e:      # of the checker or of onnxruntime: any kind
            return "" if refused(source, x, e) else said(e)
        want = {k[4:]: dump[k] for k in dump if k.startswith("out/")}
        off = distance(got, want)
        if off > 1e-3:
            return f"outputs are off by {off:.1e}"
        return narrow(folder, data, newest, x, want)


def narrow(folder, data, newest, x, want):
    """The same for weights in 16 bits."""
    for kind, limit in (("f16", 1e-2), ("bf16", 1e-1)):
        code = run(["./t", "--data", data, *DATA, "--eval", "--resume", newest,
                    "--export", "narrow.onnx", f"--export-precision={kind}"], folder, "narrow.log")
        if code == 2 and "from opset" in (folder / "narrow.log").read_text():
            continue
        if code != 0:
            return f"--export-precision={kind} ends with {code}"
        try:
            off = distance(checked(folder / "narrow.onnx", x), want)
        except Exception as e:
            return f"{kind}: {said(e)}"
        if not off <= limit:
            return f"outputs in {kind} are off by {off:.1e}"
    return ""


def main():
    lowerset, root = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    bad = 0
    for path in sorted(root.glob("*/*.onnx")):
        with tempfile.TemporaryDirectory() as made:
            folder, data = pathlib.Path(made), path.parent / "data.npz"
            with np.load(data) as x:
                batch = str(len(x["x"]))
            dynamic = any(d.dim_param
                          for d in onnx.load(path).graph.input[0].type.tensor_type.shape.dim[:1])
            code = run([lowerset, "compile", path, "-O0", "--strategy=none",
                        "--optimizer=sgd:momentum=0", "-o", "t",
                        *(["--batch", batch] if dynamic else []), *sys.argv[3:]], folder,
                       "compile.log")
            wrong = round_trip(path, folder, data,
                               0.01) if code == 0 else f"the compiler ends with {code}"
        print(f"{path.parent.name:16} {path.stem:13} {wrong or 'equal'}", flush=True)
        bad += wrong != ""
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
