#!/bin/sh
# Models as ONNX Runtime's builder and optimum write them: packed q, k and v, rotation, caches of
# past tokens that are empty, masks that the data lack. Results and gradients of PyTorch; peft's
# adapters; what is refused.
#   sh tests/whole/builders.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
source=$(cd "$2" && pwd)
models=$source/tests/data/inputs/builders
compare=$source/tests/whole/adapters.py
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
export LOWERSET_PROBE=off
fail() { echo "FAIL $*"; [ ! -f said ] || tail -n 5 said; exit 1; }

sizes="--batch 2 --dim sequence_length=8"
# built PROGRAM MODEL OPTION...
built() {
    program=$1 model=$2
    shift 2
    # shellcheck disable=SC2086
    "$lowerset" compile "$model" $sizes --ignore-index -100 -O 0 --plan-effort 1 -o "$program" \
        "$@" >said 2>&1 || fail "compile $model $*"
}
ran() { "$@" --progress none --no-shuffle >said 2>&1 || fail "$*"; }
has() { grep -q -- "$1" said || fail "no '$1': $2"; }

# ---- results and gradients ----
for name in packed window plain; do
    # shellcheck disable=SC2086
    "$lowerset" inspect "$models/$name.onnx" $sizes >said 2>&1 || fail "inspect $name"
    has "inputs of past keys and values have no tokens, and" "inspect $name"
    has "nothing prevents training it" "inspect $name"
    built net "$models/$name.onnx" --store-gradients --optimizer sgd
    has "--dim past_sequence_length=N gives them a length" "compile $name"
    ran ./net --data "$models/$name.npz" --steps 1 --lr 0.1 --dump dump.npz --log log
    has "the data have no 'attention_mask': every sample has ones there" "$name"
    python3 "$compare" outputs dump.npz "$models/$name.npz" >said 2>&1 || fail "$name: results"
    python3 "$compare" gradients dump.npz "$models/$name.npz" >said 2>&1 || fail "$name: gradients"
done
# The last one has positions as an input, too. What data have is what they would have had.
built net "$models/plain.onnx" --store-gradients --optimizer sgd
ran ./net --data "$models/plain.npz" --steps 1 --lr 0 --dump lacking.npz
has "have no 'position_ids': every sample has 0, 1, 2, ... there" "positions"
python3 - "$source" "$models/plain.npz" <<'PY'
import array, io, sys, zipfile
sys.path.insert(0, sys.argv[1] + "/tests/whole")
sys.argv = ["adapters.py", "samples", sys.argv[2]]
def npy(values):
    head = "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 8), }"
    head += " " * (117 - len(head)) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() \
        + array.array("q", values).tobytes()
with zipfile.ZipFile(sys.argv[2]) as z, zipfile.ZipFile("whole.npz", "w") as to:
    for name in ("input_ids.npy", "label.npy"):
        to.writestr(name, z.read(name))
    to.writestr("attention_mask.npy", npy([1] * 16))
    to.writestr("position_ids.npy", npy(list(range(8)) * 2))
with zipfile.ZipFile("whole.npz") as z, zipfile.ZipFile("short.npz", "w") as to:
    for name in ("input_ids.npy", "label.npy", "position_ids.npy"):
        to.writestr(name, z.read(name))
    to.writestr("attention_mask.npy", npy([1] * 5 + [0] * 3 + [1] * 8))
with zipfile.ZipFile("whole.npz") as z, zipfile.ZipFile("left.npz", "w") as to:
    for name in ("input_ids.npy", "label.npy"):
        to.writestr(name, z.read(name))
    to.writestr("attention_mask.npy", npy([0] * 3 + [1] * 13))
PY
ran ./net --data whole.npz --steps 1 --lr 0 --dump given.npz
cmp -s lacking.npz given.npz || fail "ones and positions of the data have other bits"
ran ./net --data short.npz --steps 1 --lr 0 --dump given.npz
! cmp -s lacking.npz given.npz || fail "the mask of the data has no effect"

# ---- where nothing but the mask's number of ones is read, zeros are behind the tokens ----
built net "$models/packed.onnx" --store-gradients --optimizer sgd
ran ./net --data "$models/packed.npz" --steps 1 --lr 0 --dump lacking.npz
ran ./net --data short.npz --steps 1 --lr 0 --dump given.npz
cmp -s lacking.npz given.npz || fail "a causal model depends on the mask"
code=0
./net --data left.npz --steps 1 --lr 0 >said 2>&1 || code=$?
[ $code = 8 ] && has "samples are padded behind their tokens" "a mask with zeros in front"

# ---- exported models are as they were, for the runtime that generates text ----
built net "$models/packed.onnx" --optimizer sgd
ran ./net --data "$models/packed.npz" --steps 1 --lr 0.1 --export trained.onnx
# shellcheck disable=SC2086
"$lowerset" inspect trained.onnx $sizes >said 2>&1 || fail "inspect of the exported model"
has "past_key_values.1.value: float batch_sizex1xpast_sequence_length" "exported inputs"
has "present.0.key: float" "exported outputs"
has "nothing prevents training it" "exported model"
built again trained.onnx
want=$(./net --eval --data "$models/packed.npz" --progress none 2>/dev/null | grep loss)
[ "$(./again --eval --data "$models/packed.npz" --progress none 2>/dev/null | grep loss)" \
    != "$want" ] || fail "the exported model has the initial weights"

# ---- peft's adapters, by the names of peft's modules ----
built net "$models/packed.onnx" --adapter "$models/adapter/start" --optimizer adamw:wd=0.01 \
    --no-decay none
rm -f log
ran ./net --data "$models/packed.npz" --epochs 20 --lr 3e-3 --log log --export-adapter end
python3 "$compare" losses log "$models/adapter/ref.npz" >said 2>&1 || fail "losses with adapters"
python3 "$compare" files end "$models/adapter/end" >said 2>&1 || fail "the trained adapter"
for lora in r=2:qkv_proj r=2,bias=all:self_attn.o_proj,gate_proj,lm_head,embed_tokens; do
    built net "$models/packed.onnx" --lora "$lora"
done

# ---- refusals ----
refused() {     # WORDS MODEL OPTION...
    words=$1 model=$2 code=0
    shift 2
    "$lowerset" compile "$models/$model.onnx" --batch 2 -q -o no "$@" >said 2>&1 || code=$?
    [ $code != 0 ] && has "$words" "$model $*"
}
refused "is read without past tokens" packed --dim sequence_length=8 --dim past_sequence_length=2 \
    --dim kv_cache_dim=16 --dim total_sequence_length=10
refused "total_sequence_length is 9, and there are 8 tokens" packed --dim sequence_length=8 \
    --dim total_sequence_length=9
refused "cos_cache is 16x8, sin_cache is 16x8, and there are 17 tokens" packed \
    --dim sequence_length=17
refused "no module that can have an adapter is called 'q_proj'" packed --dim sequence_length=8 \
    --lora r=2:q_proj
refused "give --dim sequence_length=SIZE" packed
# Caches with a length are inputs, where nodes of ai.onnx read them.
built net "$models/plain.onnx" --dim past_sequence_length=2 \
    --dim "past_sequence_length + sequence_length=10"
code=0
./net --data "$models/plain.npz" --steps 1 --lr 0 >said 2>&1 || code=$?
[ $code = 8 ] && has "nothing for input 'past_key_values.0.key'" "caches with a length"
echo "3 models"
