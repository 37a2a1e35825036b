#!/bin/sh
# Weights in and out by name: --init-from takes float32, float64, float16 and bfloat16 from one
# file, an index or a folder, and says what does not match; --save-weights writes what --export has.
#   sh tests/whole/weights.sh BUILD-FOLDER
set -eu
lowerset=$1/lowerset
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAIL $1"; cat out err; exit 1; }
must() { "$@" >out 2>err || fail "$*"; }
# refused CODE WORDS COMMAND...
refused() {
    want=$1 words=$2 code=0
    shift 2
    "$@" >out 2>err || code=$?
    [ "$code" = "$want" ] && grep -qF -- "$words" err \
        || fail "exit $code, not $want with '$words': $*"
}
has() { grep -qF -- "$2" "$1" || fail "no '$2' in $1"; }
hasnt() { ! grep -qF -- "$2" "$1" || fail "'$2' in $1"; }
# st FILE HEADER DATA: a safetensors file; data as printf takes them
st() {
    n=${#2}
    printf "\\$(printf %03o $((n % 256)))\\$(printf %03o $((n / 256)))\0\0\0\0\0\0" >"$1"
    printf '%s' "$2" >>"$1"
    # shellcheck disable=SC2059
    printf "$3" >>"$1"
}
# t NAME DTYPE SHAPE FROM TO: an entry of a header
t() { printf '"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%s,%s]}' "$@"; }

must "$lowerset" model mlp --size=1 --width=1 --classes=2 --batch=2 -o net.onnx
must "$lowerset" compile net.onnx --loss ce --optimizer adam --opt 0 -q -o net
must "$lowerset" compile net.onnx --loss ce --optimizer adam --ema 0.5 --opt 0 -q -o ema
must "$lowerset" compile net.onnx --loss ce --optimizer adam --precision f64 --opt 0 -q -o wide
must "$lowerset" compile net.onnx --loss ce --optimizer adam --ensemble 2 --opt 0 -q -o two
data="--data synthetic:8 --progress none"
# fc1.weight [1,1] = 0.5, fc1.bias [1] = -2, fc2.weight [2,1] = 1, 4, fc2.bias [2] = 0.25, 8
want='\0\0\0\077\0\0\0\300\0\0\200\077\0\0\200\100\0\0\200\076\0\0\0\101'
# shellcheck disable=SC2059
printf "$want" >want

# ---- types
# of BYTES DTYPE [PREFIX]: the header of all four
of() {
    a=$(t "$3fc1.weight" "$2" 1,1 0 "$1") b=$(t "$3fc1.bias" "$2" 1 "$1" $((2 * $1)))
    c=$(t "$3fc2.weight" "$2" 2,1 $((2 * $1)) $((4 * $1)))
    d=$(t "$3fc2.bias" "$2" 2 $((4 * $1)) $((6 * $1)))
    echo "{\"__metadata__\":{\"format\":\"pt\"},$a,$b,$c,$d}"
}
takes() {
    must ./net --eval $data --init-from "$@" --save-weights back.safetensors
    tail -c 24 back.safetensors | cmp - want || fail "$1: other values"
}
st f32.safetensors "$(of 4 F32 '')" "$want"
st bf16.safetensors "$(of 2 BF16 '')" '\0\077\0\300\200\077\200\100\200\076\0\101'
st f16.safetensors "$(of 2 F16 model.)" '\0\070\0\300\0\074\0\104\0\064\0\110'
takes f32.safetensors --init-strict
has err "f32.safetensors: initial values of 4 of 4 tensors"
hasnt err "another name"
takes bf16.safetensors --init-strict
takes f16.safetensors --init-strict
has err "found by another name: fc1.weight is model.fc1.weight there"
must ./wide --eval $data --init-from f32.safetensors --save-weights wide.safetensors
has wide.safetensors '"fc2.weight":{"dtype":"F64","shape":[2,1]'
takes wide.safetensors --init-strict
must ./two --eval $data --init-from f32.safetensors --save-weights two.safetensors
has two.safetensors '"fc2.weight":{"dtype":"F32","shape":[2,2,1]'
must ./two --eval $data --init-from two.safetensors --save-weights back.safetensors \
    --export-member 1
tail -c 24 back.safetensors | cmp - want || fail "a member has other values"

# ---- several files
mkdir shards
st shards/a.safetensors "{$(t fc1.weight F32 1,1 0 4),$(t fc2.weight F32 2,1 4 12)}" \
    '\0\0\0\077\0\0\200\077\0\0\200\100'
st shards/b.safetensors "{$(t fc1.bias F32 1 0 4),$(t fc2.bias F32 2 4 12)}" \
    '\0\0\0\300\0\0\200\076\0\0\0\101'
refused 8 "2 safetensors files and no index" ./net --eval $data --init-from shards
cat >shards/model.safetensors.index.json <<'END'
{"metadata": {"total_size": 24}, "weight_map": {
 "fc1.weight": "a.safetensors", "fc2.weight": "a.safetensors",
 "fc1.bias": "b.safetensors", "fc2.bias": "b.safetensors"}}
END
takes shards --init-strict
takes shards/model.safetensors.index.json --init-strict
sed 's/"fc2.bias": "b/"fc2.bias": "a/' shards/model.safetensors.index.json >shards/wrong.json
refused 8 "'fc2.bias' is not in a.safetensors" ./net --eval $data --init-from shards/wrong.json
sed 's,"a.safe,"../a.safe,' shards/model.safetensors.index.json >shards/wrong.json
refused 8 "is no name of a file beside it" ./net --eval $data --init-from shards/wrong.json
rm shards/b.safetensors
refused 8 "shards/b.safetensors: No such file" ./net --eval $data --init-from shards

# ---- what does not match
st some.safetensors "{$(t fc1.weight F32 1,1 0 4),$(t fc2.weight F32 1,2 4 12),$(
    t fc2.bias I32 2 12 20),$(t head F32 '' 20 24)}" '\0\0\0\077\0\0\200\077\0\0\200\100\0\0\0\0'
printf '\0\0\0\0\0\0\0\0' >>some.safetensors
must ./net --eval $data --init-from some.safetensors
has err "some.safetensors: initial values of 1 of 4 tensors"
has err "  not in the file: fc1.bias"
has err "  of another shape or type: fc2.weight (1x2, here 2x1), fc2.bias (I32)"
has err "  only in the file: head"
refused 8 "--init-strict: some.safetensors: not in the file: fc1.bias" \
    ./net --eval $data --init-from some.safetensors --init-strict
st none.safetensors "{$(t other F32 1 0 4)}" '\0\0\0\077'
refused 8 "none of its 1 tensors has the name and the shape" \
    ./net --eval $data --init-from none.safetensors
head -c 40 f32.safetensors >short.safetensors
refused 8 "it ends in its header (truncated?)" ./net --eval $data --init-from short.safetensors
head -c "$(($(wc -c <f32.safetensors) - 1))" f32.safetensors >short.safetensors
refused 8 "damaged safetensors file: what it says of 'fc2.bias'" \
    ./net --eval $data --init-from short.safetensors
st both.safetensors "{$(t model.fc1.bias F32 1 0 4),$(t module.fc1.bias F32 1 0 4),$(
    t fc2.bias F32 2 0 8)}" '\0\0\0\077\0\0\0\077'
must ./net --eval $data --init-from both.safetensors
has err "  not in the file: fc1.weight, fc1.bias, fc2.weight"

# ---- weights of a run
must ./net $data --init-from f32.safetensors --save ck --save-weights w.safetensors --export w.onnx
must ./net --eval $data --init-from ck/step-000000004.safetensors --init-strict \
    --save-weights again.safetensors
cmp w.safetensors again.safetensors || fail "a checkpoint has other weights"
# A run that begins with them is that of a model that has them.
must "$lowerset" compile w.onnx --loss ce --optimizer adam --opt 0 -q -o after
must ./net $data --init-from w.safetensors --save-weights a.safetensors
must ./after $data --save-weights b.safetensors
tail -c 24 a.safetensors >a
tail -c 24 b.safetensors | cmp - a || fail "another run from the same weights"
# A run goes on where its checkpoint is, whatever it began with.
must ./net $data --init-from f32.safetensors --epochs 2 --save-weights a.safetensors
must ./net $data --init-from f32.safetensors --epochs 2 --save ck --resume auto \
    --save-weights b.safetensors
cmp a.safetensors b.safetensors || fail "--init-from after --resume"
# Averages are exported, and their parameters are there on request; both begin alike.
must ./ema $data --save-weights avg.safetensors --export avg.onnx
must ./ema $data --save-weights raw.safetensors --weights-of trained
must ./net $data --save-weights plain.safetensors
cmp raw.safetensors plain.safetensors || fail "--weights-of trained"
! cmp -s avg.safetensors raw.safetensors || fail "no averages"
must "$lowerset" compile avg.onnx --loss ce --opt 0 -q -o of-average
must ./of-average --eval $data --save-weights b.safetensors
tail -c 24 avg.safetensors >a
tail -c 24 b.safetensors | cmp - a || fail "--export has other averages"
must ./ema --eval $data --init-from f32.safetensors --save-weights back.safetensors
tail -c 24 back.safetensors | cmp - want || fail "averages keep their old values"

refused 2 "--init-strict is for --init-from" ./net $data --init-strict
refused 2 "--weights-of is for --save-weights" ./ema $data --weights-of average
refused 2 "keeps no averages" ./net $data --save-weights x --weights-of average
refused 2 "must be average or trained" ./ema $data --save-weights x --weights-of best
refused 2 "both set the initial weights" ./two $data --init-from a --ensemble-weights b
refused 2 "both write" ./net $data --save-weights x --export x

# ---- their own reader
if python3 -c 'import safetensors.numpy, onnx' 2>/dev/null; then
    python3 - <<'END' >out 2>err || fail "python"
import onnx
from onnx import numpy_helper
from safetensors.numpy import load_file
model = {i.name: numpy_helper.to_array(i) for i in onnx.load("avg.onnx").graph.initializer}
of = load_file("avg.safetensors")
assert set(of) == {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}, of
for name, value in of.items():
    assert value.shape == model[name].shape and (value == model[name]).all(), name
assert load_file("wide.safetensors")["fc2.weight"].dtype == "float64"
END
fi
echo "weights by name"
