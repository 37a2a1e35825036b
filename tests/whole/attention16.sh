#!/bin/sh
# Attention of programs in bf16 multiplies bf16: grouped heads, masks, a GPT. Budgets and threads
# change no bit; gradients are near those of f32 and not equal; --precision-of keeps it in f32, and
# f16 multiplies in f32.
#   sh tests/whole/attention16.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$2" && pwd)
lowerset=$build/lowerset
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
export LOWERSET_PROBE=off PYTHONDONTWRITEBYTECODE=1
fail() { echo "FAIL $*"; [ ! -f said ] || tail -n 5 said; exit 1; }

# built MODEL PROGRAM OPTION...
built() {
    model=$1 program=$2
    shift 2
    [ "$model" != masked ] || set -- --freeze "mask*" "$@"
    "$lowerset" compile "$model.onnx" -q -O 0 --plan-effort 1 --batch 3 --loss ce \
        --optimizer sgd:momentum=0.9 -o "$program" "$@" >said 2>&1 || fail "compile $model $*"
}
# ran PROGRAM OPTION...: PROGRAM.out.onnx, and PROGRAM.npz with the gradients of the first step
ran() {
    program=$1
    shift
    "./$program" --data synthetic:12 --no-shuffle --steps 4 --lr 0.1 --progress none \
        --no-export-notes --export "$program.out.onnx" "$@" >said 2>&1 || fail "$program $*"
}
dumped() {
    "./$1" --data synthetic:12 --no-shuffle --steps 1 --lr 0.1 --progress none \
        --dump "$1.npz" >said 2>&1 || fail "$1 --dump"
}
same() { cmp -s "$1" "$2" || fail "$3"; }
near() { "$build/tests/npz_near" "$@" >said 2>&1; }
# has MODEL TEXT OPTION...: the program's text has these words
has() {
    model=$1 text=$2
    shift 2
    built "$model" text --emit c "$@"
    grep -q "$text" text*.c || fail "$model $*: no $text"
}

for name in grouped masked; do
    python3 "$source/tests/whole/attention16.py" $name "$source" $name.onnx
done
"$lowerset" model gpt --depth=2 --heads=2 --width=40 --context=70 --vocab=24 --batch=0 \
    -o gpt.onnx >said 2>&1 || fail "the GPT"

for name in grouped masked gpt; do
    has $name ls_attention16_back_some --precision bf16
    built $name wide --store-gradients
    built $name free --precision bf16 --store-gradients
    dumped wide
    dumped free
    near wide.npz free.npz 0.05 grad || fail "$name: gradients are far from those of f32"
    ! near wide.npz free.npz 1e-4 grad || fail "$name: gradients are those of f32"
    built $name all --precision bf16
    built $name least --precision bf16 --budget min
    ran all
    cp all.out.onnx want
    ran least
    same least.out.onnx want "$name: the least budget has other bits"
    for threads in 1 2 4; do
        ran all --threads $threads
        same all.out.onnx want "$name: $threads threads have other bits"
    done
done

has grouped "ls_attention_narrow_some\|ls_attention_some" --precision f16
! grep -q ls_attention16 text*.c || fail "f16 multiplies bf16"
has masked ls_attention_some --precision bf16 --precision-of "*=f32"
echo "attention16: passed"
