#!/bin/sh
# Weights that a file keeps in 4 or 8 bits: losses of 10 updates beside references in float64, the
# same bits at the least budget, exports, adapters beside them, and what is refused.
#   sh tests/whole/low_bit.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
source=$(cd "$2" && pwd)
files=$source/tests/data/inputs/wave3/low_bit
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
export LOWERSET_PROBE=off
fail() { echo "FAIL $*"; [ ! -f said ] || tail -n 5 said; exit 1; }
# built PROGRAM MODEL OPTION...
built() {
    program=$1
    shift
    "$lowerset" compile "$@" --batch 10 --loss ce -q -O 0 --plan-effort 1 -o "$program" \
        >said 2>&1 || fail "compile $*"
}
ran() { "$@" --progress none --no-shuffle --data "$files/data.npz" >said 2>&1 || fail "$*"; }
evaluated() { ran "$@" --eval; sed -n 's/.*\(val_loss.*\)/\1/p' said; }
# refused WHAT COMMAND...
refused() {
    what=$1
    shift
    ! "$@" >said 2>&1 || fail "accepted: $*"
    grep -q "$what" said || fail "no word of '$what': $*"
}

for model in matmul_nbits dequantize_blocks dequantize_int8 matmul_bnb4; do
    built net "$files/$model.onnx" --optimizer sgd
    rm -f log
    ran ./net --epochs 11 --lr 0.1 --log log --no-export-notes --export out.onnx
    python3 - log "$files/ref.npz" "$model" >said 2>&1 <<'END' \
        || fail "$model: losses"
import ast, io, json, struct, sys, zipfile
with open(sys.argv[1], encoding="utf-8") as f:
    found = [x["loss"] for x in map(json.loads, f) if "loss" in x and "lr" in x]
with zipfile.ZipFile(sys.argv[2]) as z:
    f = io.BytesIO(z.read(sys.argv[3] + "/loss.npy"))
f.read(8)
head = ast.literal_eval(f.read(struct.unpack("<H", f.read(2))[0]).decode())
assert head["descr"] == "<f8"
want = struct.unpack("<11d", f.read())
assert len(found) == 11, found
worst = max(abs(a - b) / b for a, b in zip(found, want))
print(worst)
sys.exit(not worst <= 1e-5)
END
    built least "$files/$model.onnx" --optimizer sgd --budget min
    ran ./least --epochs 11 --lr 0.1 --no-export-notes --export least.onnx
    cmp -s out.onnx least.onnx || fail "$model: another budget has other bits"
    # The exported model has the weight as float32.
    built again out.onnx --optimizer sgd
    want=$(evaluated ./again)
    [ -n "$want" ] || fail "$model: nothing was evaluated"
    rm -rf saved
    ran ./net --epochs 11 --lr 0.1 --save saved
    [ "$(evaluated ./net --resume saved/step-000000011.safetensors)" = "$want" ] \
        || fail "$model: the export differs"
    refused "stored in 4 or 8 bits: it cannot be trained" \
        "$lowerset" plan "$files/$model.onnx" --batch 10 --loss ce --train '*'
    built tuned "$files/$model.onnx" --lora r=2 --optimizer sgd
    ran ./tuned --epochs 2 --lr 0.1 --export-adapter adapter
    grep -q "loss" said || fail "$model: an adapter beside it"
    "$lowerset" inspect "$files/$model.onnx" -v >said 2>&1 || fail "$model: inspect"
    grep -q "stored in 4 or 8 bits" said || fail "$model: inspect does not say why"
done

# Attributes that are missing.
sed 's/block_size/block_sizf/' "$files/matmul_bnb4.onnx" >bad.onnx
refused "K, N and block_size must be positive" "$lowerset" inspect bad.onnx
sed 's/quant_type/quant_typf/' "$files/matmul_bnb4.onnx" >bad.onnx
refused "its quant_type is neither" "$lowerset" inspect bad.onnx
sed 's/block_size/block_sizf/' "$files/dequantize_blocks.onnx" >bad.onnx
refused "its scales do not fit" "$lowerset" inspect bad.onnx
# K is the one attribute of that name: the field name, "K", and the type.
python3 - "$files/matmul_bnb4.onnx" bad.onnx <<'END'
import sys
data = open(sys.argv[1], "rb").read()
old = b"\x0a\x01K\x18\x40"
assert data.count(old) == 1
open(sys.argv[2], "wb").write(data.replace(old, b"\x0a\x01K\x18\x7f"))
END
refused "fewer codes than K and N say" "$lowerset" inspect bad.onnx
echo "4 models"
