"""Numbers of an adapter's run beside those of peft, with the standard library alone.

usage: adapters.py losses LOG REF.npz            losses of updates, to 1e-5 of their size
       adapters.py gradients DUMP.npz REF.npz    gradients of the first update, to 1e-4
       adapters.py outputs DUMP.npz REF.npz      results of the model, to 1e-5
       adapters.py files DIR REF-DIR             tensors of adapters by key, to 1e-4, keys equal
       adapters.py drawn DIR                     A within +-1 / sqrt(in), B zeros
       adapters.py samples DATA.npz              the number of samples
"""
import ast
import io
import json
import math
import struct
import sys
import zipfile


def npz(path):
    """Arrays of an archive: shape and a flat tuple, by name."""
    found = {}
    with zipfile.ZipFile(path) as z:
        for name in z.namelist():
            f = io.BytesIO(z.read(name))
            f.read(8)
            head = ast.literal_eval(f.read(struct.unpack("<H", f.read(2))[0]).decode())
            data, kind = f.read(), head["descr"][1:]
            code = {"f4": "f", "f8": "d", "i8": "q", "i4": "i"}.get(kind)
            if code:
                n = len(data) // int(kind[1])
                found[name[:-4]] = head["shape"], struct.unpack(f"<{n}{code}", data)
    return found


def safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    head.pop("__metadata__", None)
    found = {}
    for key, t in head.items():
        a, b = (8 + n + k for k in t["data_offsets"])
        found[key] = tuple(t["shape"]), struct.unpack(f"<{(b - a) // 4}f", data[a:b])
    return found


def off(a, b):
    """The largest difference over the largest magnitude."""
    most = max((abs(x) for x in b), default=0)
    return max((abs(x - y) for x, y in zip(a, b)), default=0) / (most or 1)


def must(limit, worst, what):
    print(f"{what}: off by {worst:.1e}, limit {limit:.0e}")
    if not worst <= limit:
        sys.exit(1)


def losses(log, ref):
    with open(log, encoding="utf-8") as f:
        found = [x["loss"] for x in map(json.loads, f) if "loss" in x and "lr" in x]
    want = npz(ref)["loss"][1]
    assert len(found) >= 20, len(found)
    must(1e-5, max(abs(a - b) / abs(b) for a, b in zip(found, want)), "losses")


def gradients(dump, ref):
    found, want = npz(dump), npz(ref)
    names = [k for k in want if k.startswith("grad/")]
    assert names
    worst = 0
    for name in names:
        own = name.replace(".lora_A.default.", ".lora_A.").replace(".lora_B.default.", ".lora_B.")
        own = own.replace(".base_layer.", ".").replace("base_model.model.", "")
        own = own.replace(".modules_to_save.default.", ".").replace("_vector.default.weight",
                                                                    "_vector")
        assert own in found, (own, sorted(found))
        worst = max(worst, off(found[own][1], want[name][1]))
    must(1e-4, worst, f"{len(names)} gradients")


def outputs(dump, ref):
    found, want = npz(dump), npz(ref)
    names = [k for k in want if k.startswith("out/")]
    assert names
    for name in names:
        assert found[name][0] == want[name][0], (name, found[name][0], want[name][0])
        must(1e-5, off(found[name][1], want[name][1]), name)


def files(folder, ref):
    found = safetensors(f"{folder}/adapter_model.safetensors")
    want = safetensors(f"{ref}/adapter_model.safetensors")
    assert sorted(found) == sorted(want), sorted(set(found) ^ set(want))
    for key in want:
        assert found[key][0] == want[key][0], (key, found[key][0], want[key][0])
    must(1e-4, max(off(found[k][1], want[k][1]) for k in want), f"{len(want)} tensors")
    with open(f"{folder}/adapter_config.json", encoding="utf-8") as f:
        own = json.load(f)
    with open(f"{ref}/adapter_config.json", encoding="utf-8") as f:
        theirs = json.load(f)
    for key in ("peft_type", "r", "lora_alpha", "lora_dropout", "use_rslora", "use_dora", "bias",
                "rank_pattern", "alpha_pattern"):
        assert own[key] == theirs[key], (key, own[key], theirs[key])
    for key in ("target_modules", "modules_to_save"):
        assert sorted(own[key] or []) == sorted(theirs[key] or []), key


def drawn(folder):
    found = safetensors(f"{folder}/adapter_model.safetensors")
    for key, (shape, values) in found.items():
        if key.endswith("lora_A.weight"):
            bound = 1 / math.sqrt(math.prod(shape[1:]))
            assert all(abs(v) <= bound for v in values) and max(map(abs, values)) > 0.7 * bound, key
            assert abs(sum(values) / len(values)) < bound / 2, key
        elif key.endswith("lora_B.weight"):
            assert not any(values), key


def main(what, *paths):
    if what == "samples":
        print(npz(paths[0])["x"][0][0])
    else:
        {"losses": losses, "gradients": gradients, "outputs": outputs, "files": files,
         "drawn": drawn}[what](*paths)


if __name__ == "__main__":
    main(*sys.argv[1:])
