#!/bin/sh
# plan, compile and the trainer say how much of a model is trained: what has an update, however it
# is made.
#   sh tests/cli/trained_share.sh BUILD-FOLDER
set -eu
lowerset=$1/lowerset
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CONFIG_HOME=$dir/config
cd "$dir"
n=0
fail() { echo "FAIL $1"; exit 1; }
# says WORDS FILE
says() { grep -qF -- "$1" "$2" || fail "no '$1' in: $(cat "$2")"; n=$((n + 1)); }
# plans WORDS OPTIONS...
plans() {
    words=$1
    shift
    "$lowerset" plan net.onnx --batch 4 --plan-effort 1 "$@" >out 2>&1 || fail "$*: $(cat out)"
    says "  trains $words" out
}

"$lowerset" model mlp --batch=0 --width=32 --size=6 -o net.onnx >said
all="4 of 4 tensors, 1,514 of 1,514 elements"
plans "$all"
plans "$all" --store-gradients
plans "$all" --optimizer adam --accumulate 2
plans "$all" --train 'fc2*'                     # which freezes nothing
plans "$all" --ranks 2 --optimizer adam
plans "$all" --ensemble 3
plans "$all" --precision bf16 --loss-scale dynamic --clip-norm 1
plans "2 of 4 tensors, 330 of 1,514 elements" --train-only 'fc2*'
plans "2 of 4 tensors, 330 of 1,514 elements" --freeze 'fc1*' --ranks 2
plans "1 of 4 tensors, 10 of 1,514 elements" --train-only 'fc2.bias' --store-gradients
plans "0 of 4 tensors, 0 of 1,514 elements" --optimizer none
# the head is the table
"$lowerset" model gpt --width=16 --depth=1 --heads=2 --context=8 --vocab=12 -o gpt.onnx >said
"$lowerset" inspect gpt.onnx >out
elements=$(sed -n 's/^  parameters  \([0-9]*\) tensors, \([0-9]*\) elements.*/\1 \2/p' out)
"$lowerset" plan gpt.onnx --batch 2 --plan-effort 1 >out
tr -d , <out |
    grep -q \
    "  trains ${elements% *} of ${elements% *} tensors ${elements#* } of ${elements#* } elements" ||
    fail "a shared table counts once: $elements: $(grep trains out)"
"$lowerset" compile net.onnx --batch 4 --train-only 'fc2*' --opt 0 -o t 2>out
says "; trains 2 of 4 tensors, 330 of 1,514 elements; next: ./t" out
./t --data synthetic:8 >out 2>err
says "trains 2 of 4 tensors, 330 of 1,514 elements" err
./t --data synthetic:8 --dump d.npz --progress none >out 2>err
[ ! -s err ] || grep -q "will lack" err || fail "not silent: $(cat err)"
if ./t --data synthetic:8 --train-only 'fc1*' 2>err; then fail "an option of the compiler"; fi
says "--train-only was fixed when the trainer was compiled" err
echo "$n times the share of the model that is trained"
