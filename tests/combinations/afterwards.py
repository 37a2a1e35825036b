"""What both programs of a case do beside their training: evaluations, predictions, exports, logs,
the same updates as a library; and which nodes run in parts."""
import hashlib
import json
import os
import re
import struct

import compare

HERE = os.path.dirname(os.path.abspath(__file__))
TIMES = ("time", "seconds", "samples_per_second", "tokens_per_second")
PLANNED = re.compile(r"\s*\d+\s+(\d+)\s+(?:yes\s+)?([A-Za-z_0-9]+)\s+\d+\s+\d+\s")
OF_PLAN = ("plan", "model", "arena", "threads", "ranks")


def file_of(case, name):
    return os.path.join(case.folder, name)


def contents(case, name):
    with open(file_of(case, name), "rb") as f:
        return f.read()


def evaluation(case):
    """With the initial weights."""
    said = [case.run(name, ["--data", "synthetic:7", "--seed", "3", "--progress", "none", "--eval",
                            "--metrics", "all", "--threads", threads])
            for name, threads in (("one", "1"), ("way", "2"))]
    return ["evaluations differ", *said] if said[0] != said[1] else []


def prediction(case):
    """Of some samples, which are no multiple of a batch."""
    for name, threads in ("one", "1"), ("way", "3"):
        case.run(name, ["--data", "synthetic:7", "--seed", "3", "--progress", "none",
                        "--predict", f"{name}.out.npz", "--threads", threads])
    a, b = (compare.read(file_of(case, f"{name}.out.npz")) for name in ("one", "way"))
    return ["predictions differ"] if a != b else []


def logged(case, name):
    """Lines of a log without what a machine's speed and a plan decide."""
    out = []
    for line in contents(case, name).decode().splitlines():
        row = json.loads(line)
        out.append({k: v for k, v in row.items() if k not in TIMES + OF_PLAN})
    return out


def written(case):
    """The models and logs that both programs wrote in training."""
    files, said = case.options.files, []
    if "--export" in files and contents(case, "one.onnx") != contents(case, "way.onnx"):
        said.append("exported models differ")
    if "--log" in files and logged(case, "one.log") != logged(case, "way.log"):
        said.append("logs differ")
    return [] if case.options.close else said


def tensors(data):
    """{name: hash} of a safetensors file."""
    size, = struct.unpack("<Q", data[:8])
    head = json.loads(data[8:8 + size])
    head.pop("__metadata__", None)
    out = {}
    for name, t in head.items():
        first, end = t["data_offsets"]
        out[name] = hashlib.sha256(data[8 + size + first:8 + size + end]).hexdigest()
    return out


def library(case):
    """The updates of one, by a library of the other way."""
    o = case.options
    case.must([case.lowerset, "compile", "net.onnx", *case.quick, *o.compile, *o.way_compile,
               "--lr", "0.05", "--emit", "lib", "-o", "net"])
    case.compile("trainer", o.compile + ["--lr", "0.05"])
    tests = os.path.join(HERE, "../whole")
    case.must(["cc", "-std=c11", "-I.", "-I" + tests, os.path.join(tests, "library_client.c"),
               "libnet.a", "-lm", "-lpthread", "-o", "client"])
    total = str(o.batch * o.accumulate * 2)
    case.must(["env", "CLASSES=4", "./client", "make", total])
    files = ",".join(f"{f[:-4]}={f}" for f in sorted(os.listdir(case.folder))
                     if f.endswith(".npy"))
    case.run("trainer", ["--data", files, "--seed", "3", "--threads", "2", "--progress", "none",
                         "--epochs", "9", "--no-shuffle", "--steps", "3", "--save", "saved"])
    case.must(["env", "CLASSES=4", "./client", "train", total, "3", "0.05", "3", "3",
               "net.safetensors"])
    saved = sorted(f for f in os.listdir(file_of(case, "saved")) if f.endswith(".safetensors"))
    one = tensors(contents(case, os.path.join("saved", saved[-1])))
    way = tensors(contents(case, "net.safetensors"))
    return [f"the library has another {k}" for k in sorted(set(one) | set(way))
            if one.get(k) != way.get(k)]


CHECKS = {"evaluation": evaluation, "prediction": prediction, "library": library}


def in_parts(case):
    """Operators that have more nodes in the other program than in one."""
    def nodes(name):
        out = {}
        for line in case.run(name, ["--print-plan"]).splitlines():
            row = PLANNED.match(line)
            if row:
                out.setdefault(row[2], set()).add(row[1])
        return out
    one, way = nodes("one"), nodes("way")
    return {op for op in way if len(way[op]) > len(one.get(op, ()))}
