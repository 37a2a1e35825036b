#!/bin/sh
# The whole way of somebody with files: pictures in folders of classes, pictures with masks, and a
# file of tokens are packed, trained with augmentation, validated, ended early, predicted and
# exported. With a Python that has onnxruntime the exported models predict the same.
#   sh tests/whole/sources_to_models.sh BUILD-FOLDER [OUT [PICTURES [PAIRS [TEXT]]]]
#   OUT       a folder to keep what is made, else a temporary one
#   PICTURES  a folder of classes, PAIRS one with pictures/ and masks/, else some are made;
#             '' takes those that are made, too
#   TEXT      a file whose bytes are tokens
set -eu
build=$(cd "$1" && pwd)
kept=${2:-} pictures=${3:-} pairs=${4:-} text=${5:-}
. "$(dirname "$0")/../support/commands.sh"
lowerset=$build/lowerset
make=$build/tests/make_pictures
if [ -n "$kept" ]; then
    mkdir -p "$kept"
    cd "$kept"
fi
export LC_ALL=C
if [ -z "$pictures" ] || [ -z "$pairs" ]; then
    [ -x "$make" ] || { echo "no libjpeg or no libpng here"; exit 77; }
fi
if [ -z "$pictures" ]; then
    pictures=made
    "$make" "$pictures" 20 cat dog
fi
if [ -z "$pairs" ]; then
    pairs=pairs
    mkdir -p pairs
    "$make" --masks pairs/pictures pairs/masks 24
fi
compile="$lowerset compile --plan-effort 1 --optimizer adamw:wd=0.01 -q ${OPT--O 0}"
habits="--save-every 1000 --patience 2 --export-best --progress none"
evaluated() {
    grep -q "val_loss" out || fail "no evaluation"
    grep -q "ended after step .* (--patience)" out || fail "no early end"
    grep -q "exporting the model of step" out || fail "not the best model"
}

# ---- pictures in folders of classes
must "$lowerset" data pack "$pictures" -o pictures.lsd --size 40 --threads 2
must "$lowerset" data show pictures.lsd --check
classes=$(sed -n 's/.*classes \([0-9]*\):.*/\1/p' out)
must "$lowerset" model resnet18 --size=32 --classes="$classes" --width=8 --stem=cifar -o p.onnx
must $compile p.onnx --batch 16 --budget 70% --loss soft_ce -o p
must ./p --data pictures.lsd --augment flip,crop=2:reflect,jitter=0.2/0.2/0.2/0.05,mixup=0.2 \
    --mean auto --std auto --lr 2e-3 --val-split 20% $habits --epochs 40 \
    --keep-best val_accuracy --save run-p \
    --export pictures.onnx --export-scaling --save-weights p.safetensors --metrics all
evaluated
cp out pictures.log
must ./p --data pictures.lsd --mean auto --std auto --init-from p.safetensors --predict p.npz
must ./p --data pictures.lsd --mean auto --std auto --init-from p.safetensors --predict p.csv
[ "$(wc -l <p.csv)" -gt "$classes" ] || fail "the table of predictions"

# ---- pictures with masks
must "$lowerset" data pack "$pairs/pictures" --masks "$pairs/masks" -o pairs.lsd --size 40
must "$lowerset" data show pairs.lsd --check
must "$lowerset" model unet --size=32 --classes=16 --width=4 --depth=1 -o m.onnx
must $compile m.onnx --batch 4 --loss ce -o m
must ./m --data pairs.lsd --augment flip,vflip,resized-crop=0.5-1 --lr 5e-3 $habits \
    --val-split 20% --mean auto --std auto --epochs 40 --keep-best val_iou \
    --metrics iou,dice --save run-m \
    --export pairs.onnx --export-scaling --save-weights m.safetensors
evaluated
cp out pairs.log
must ./m --data pairs.lsd --mean auto --std auto --init-from m.safetensors --predict m.npz
must ./m --data pairs.lsd --mean auto --std auto --init-from m.safetensors --predict masks/
[ "$(ls masks | wc -l)" -ge 20 ] || fail "masks"

# ---- tokens, two bytes each
if [ -n "$text" ]; then od -An -v -tu1 "$text"
else awk 'BEGIN { for (i = 0; i < 3000; i++) print (i * i + i) % 37 % 26 + 97 }'
fi | awk '{ for (k = 1; k <= NF; k++) printf "%c%c", $k, 0 }' >all.bin
tail -c 1200 all.bin >later.bin
head -c -1200 all.bin >tokens.bin
must "$lowerset" data pack later.bin -o later.lsd
must "$lowerset" data pack tokens.bin -o tokens.lsd
must "$lowerset" data show tokens.lsd --check
must "$lowerset" model gpt --batch=0 --width=32 --depth=1 --heads=2 --context=16 --vocab=256 \
    -o t.onnx
must $compile t.onnx --batch 8 --loss ce -o t
must ./t --data tokens.lsd --val later.lsd --random-windows --lr 5e-3 $habits --epochs 40 \
    --min-delta 0.05 --keep-best val_loss --save run-t --export tokens.onnx \
    --save-weights t.safetensors
evaluated
cp out tokens.log
must ./t --data tokens.lsd --init-from t.safetensors --predict t.npz
must ./t --init-from t.safetensors --generate 12 --prompt "97 98" --temperature 0
cp out tokens.said
[ "$(wc -w <tokens.said)" = 12 ] || fail "12 tokens"

cat >compare.py <<'END'
"""Exported models in onnxruntime beside the programs' own predictions of the same data files."""
import json
import struct
import sys
import numpy as np
import onnxruntime as ort

def field(path, role):
    with open(path, "rb") as f:
        head = f.read(64)
        at, n = struct.unpack("<QQ", head[16:32])
        f.seek(at)
        text = json.loads(f.read(n))
    of = next(f for f in text["fields"] if f["role"] == role)
    return np.memmap(path, of["type"], "r", of["offset"], (text["samples"], *of["shape"]))

def centre(v, n):
    y, x = (v.shape[-2] - n) // 2, (v.shape[-1] - n) // 2
    return v[..., y:y + n, x:x + n]

def chances(v, axis):
    v = np.exp(v.astype("f8") - v.max(axis, keepdims=True))
    return v / v.sum(axis, keepdims=True)

def windows(v, n):
    return v[:(len(v) - 1) // n * n].reshape(-1, n).astype("i8")

worst = 0
for name, x, rows in (("pictures", centre(field("pictures.lsd", "input"), 32), "p.npz"),
                      ("pairs", centre(field("pairs.lsd", "input"), 32), "m.npz"),
                      ("tokens", windows(field("tokens.lsd", "input"), 16), "t.npz")):
    s = ort.InferenceSession(name + ".onnx", providers=["CPUExecutionProvider"])
    want, = np.load(rows).values()
    takes = s.get_inputs()[0]
    x = np.ascontiguousarray(x if "uint8" in takes.type else
                             x.astype("i4" if "int32" in takes.type else "i8"))
    got = np.concatenate([s.run(None, {takes.name: x[k:k + 64]})[0] for k in range(0, len(x), 64)])
    assert got.shape == want.shape, (name, got.shape, want.shape)
    axis = 1 if name != "tokens" else 2
    off = np.abs(chances(got, axis) - chances(want, axis)).max()
    part = np.abs(got - want).max() / max(1, np.abs(want).max())
    print("%s: %d samples, scores up to %.3g differ by at most %.2g, probabilities by %.2g"
          % (name, len(x), np.abs(want).max(), np.abs(got - want).max(), off))
    worst = max(worst, off, part)
sys.exit(not worst <= 1e-5)
END
python=$(command -v python3 || true)
if [ -z "$python" ] || ! "$python" -c 'import numpy, onnxruntime' 2>/dev/null; then
    echo "SKIP comparison with onnxruntime: no Python that has it"
    exit 0
fi
must "$python" compare.py
cat out
