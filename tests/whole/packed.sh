#!/bin/sh
# --quantize-frozen: weights that a program keeps in few bits. Budgets and threads have the same
# bits, exports have the values of the codes, weights are no part of state or checkpoints, and what
# cannot be done is refused.
#   sh tests/whole/packed.sh BUILD-FOLDER
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
export LOWERSET_PROBE=off
fail() { echo "FAIL $*"; [ ! -f said ] || tail -n 5 said; exit 1; }
# built PROGRAM OPTION...
built() {
    program=$1
    shift
    "$lowerset" compile gpt.onnx -q -O 0 --plan-effort 1 --optimizer adamw "$@" -o "$program" \
        >said 2>&1 || fail "compile $*"
}
ran() { "$@" --progress none --data synthetic:8 >said 2>&1 || fail "$*"; }
evaluated() { ran "$@" --eval; sed -n 's/.*\(val_loss.*\)/\1/p' said; }
# refused WHAT COMMAND...
refused() {
    what=$1
    shift
    ! "$@" >said 2>&1 || fail "accepted: $*"
    grep -q -e "$what" said || fail "no word of '$what': $*"
}
# state OPTION...: bytes of state in the program's plan
state() {
    built sized "$@"
    ./sized --print-plan | sed -n 's/^state \([0-9]*\) .*/\1/p'
}

"$lowerset" model gpt --depth=2 --width=128 --heads=2 --vocab=96 --context=16 --batch=4 \
    -o gpt.onnx >/dev/null
lora="--lora r=4,alpha=8:c_attn,c_fc"

for form in nf4 nf4-double fp4 int8 bf16 f16; do
    built net $lora --quantize-frozen $form
    rm -rf one two saved
    ran ./net --epochs 2 --lr 1e-3 --threads 1 --export-adapter one --save saved --export out.onnx
    built least $lora --quantize-frozen $form --budget min
    ran ./least --epochs 2 --lr 1e-3 --threads 2 --export-adapter two
    cmp -s one/adapter_model.safetensors two/adapter_model.safetensors ||
        fail "$form: another budget has other bits"
    # The exported model has the values of the codes, and learns no more.
    want=$(evaluated ./net --resume "$(ls -d saved/*.safetensors | tail -n 1)")
    "$lowerset" compile out.onnx -q -O 0 --plan-effort 1 -o again >said 2>&1 ||
        fail "$form: export"
    [ -n "$want" ] && [ "$(evaluated ./again)" = "$want" ] || fail "$form: the export differs"
    # A checkpoint has no weights of few bits.
    saved=$(ls -d saved/*.safetensors | tail -n 1)
    [ "$(wc -c <"$saved")" -lt 200000 ] || fail "$form: checkpoint"
done

# Where the C compiler has no vectors, and in 16 bits and 64; the same network without codes learns
# something else.
built net $lora
rm -rf plain
ran ./net --epochs 2 --lr 1e-3 --export-adapter plain
built net $lora --quantize-frozen nf4
rm -rf one
ran ./net --epochs 2 --lr 1e-3 --export-adapter one
! cmp -s plain/adapter_model.safetensors one/adapter_model.safetensors || fail "nf4 changes nothing"
for precision in bf16 f64; do
    built net $lora --quantize-frozen nf4 --quantize-frozen bf16:wte --precision $precision
    ran ./net --epochs 1 --lr 1e-3
done

# Bytes: a named choice comes before one without names; half a byte and a sixteenth a weight.
full=$(state $lora)
nf4=$(state $lora --quantize-frozen nf4)
mixed=$(state $lora --quantize-frozen nf4 --quantize-frozen int8:c_fc)
[ "$nf4" -lt $((full / 3)) ] || fail "nf4 takes $nf4 bytes of $full"
[ "$mixed" -gt "$nf4" ] && [ "$mixed" -lt $((full / 2)) ] || fail "nf4 and int8 take $mixed bytes"

# A merged export: W with its adapter added, from the codes.
built net $lora --quantize-frozen nf4 --merge
ran ./net --epochs 2 --lr 1e-3 --export merged.onnx
"$lowerset" inspect merged.onnx >said 2>&1 || fail "merged"
! grep -q lora said || fail "the merged model has adapters"

# A library has the codes in its state.
built lib $lora --quantize-frozen nf4 --emit=lib

refused "the form is" "$lowerset" plan gpt.onnx --quantize-frozen nf5
refused "a module's name is missing" "$lowerset" plan gpt.onnx --quantize-frozen nf4:a,,b
refused "no product or table is named 'q_proj'" \
    "$lowerset" plan gpt.onnx $lora --quantize-frozen nf4:q_proj
refused "is trained, and codes of few bits cannot be" \
    "$lowerset" plan gpt.onnx --quantize-frozen nf4:c_fc
refused "no weight is frozen" "$lowerset" plan gpt.onnx --quantize-frozen nf4
echo "6 forms"
