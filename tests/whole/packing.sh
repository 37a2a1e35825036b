#!/bin/sh
# --segments and the data of language models: samples that share rows compute what they do in rows
# of their own; the mean over the labels of an update; streams of tokens; and what is refused.
#   sh tests/whole/packing.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
compare=$(cd "$2" && pwd)/tests/whole/packing.py
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
export LOWERSET_PROBE=off PYTHONDONTWRITEBYTECODE=1
fail() { echo "FAIL $*"; [ ! -f said ] || tail -n 5 said; exit 1; }

# built PROGRAM MODEL OPTION...
built() {
    program=$1
    shift
    "$lowerset" compile "$@" -q -O 0 --plan-effort 1 -o "$program" >said 2>&1 \
        || fail "compile $*"
}
ran() { "$@" --progress none --no-shuffle >said 2>&1 || fail "$*"; }
near() { python3 "$compare" near "$1" "$2" || fail "$3"; }

python3 "$compare" models
python3 "$compare" data
"$lowerset" model gpt --depth=2 --width=16 --heads=2 --vocab=24 --context=16 --batch=0 -o gpt.onnx \
    >said

# ---- packed = one by one: learned, rotary and given positions; masks that are computed ----
label="--ignore-index -100"
for model in gpt rotary masked; do
    # shellcheck disable=SC2086
    built apart $model.onnx --batch 10 $label
    # shellcheck disable=SC2086
    built packed $model.onnx --batch 4 $label --segments
    ran ./apart --data apart.npz --steps 1 --dump apart.dump.npz
    ran ./packed --data packed.npz --steps 1 --dump packed.dump.npz
    near packed.dump.npz apart.dump.npz "$model: packed arrays"
    ran ./apart --data samples.jsonl --steps 1 --dump lines.npz
    cmp -s lines.npz apart.dump.npz || fail "$model: JSON lines are other rows than arrays"
    ran ./packed --data samples.jsonl --pack --steps 1 --dump lines.npz
    near lines.npz apart.dump.npz "$model: packed lines"
    ran ./packed --data merged.npz --steps 1 --dump merged.npz.dump
    ! python3 "$compare" near merged.npz.dump apart.dump.npz >said 2>&1 \
        || fail "$model: one segment in each row has the gradients of several"
done

# ---- the mean over the labels of an update, however it is cut; bits of budgets and threads ----
# trained NAME OPTION...: NAME.onnx, and NAME.losses of three updates
trained() {
    name=$1
    shift
    # shellcheck disable=SC2086
    built net gpt.onnx $label --segments "$@"
    rm -f log
    # shellcheck disable=SC2086
    ran ./net --data samples.jsonl --pack --epochs 3 --lr 0.1 --log log --no-export-notes \
        --export "$name.onnx" $run
    grep -o '"loss":[^,}]*' log >"$name.losses"
    [ "$(wc -l <"$name.losses")" -eq 3 ] || fail "$name: not three updates"
}
same() {
    cmp -s "$1.onnx" "$2.onnx" && cmp -s "$1.losses" "$2.losses" || fail "$1 and $2 differ"
}
run="--threads 1" && trained whole --batch 4
run="--threads 2" && trained small --batch 4 --budget min && same whole small
trained halves --batch 2 --accumulate 2
trained parts --batch 4 --microbatches 2 && same halves parts
trained stages --batch 4 --microbatches 2 --stages 2 && same halves stages
python3 "$compare" losses halves.losses whole.losses || fail "accumulation of unequal rows"
trained quarters --batch 1 --accumulate 4 --sums=running
python3 "$compare" losses quarters.losses whole.losses || fail "a running sum of unequal rows"
trained narrow --batch 4 --precision bf16
trained less --batch 4 --precision bf16 --budget min && same narrow less

# ---- streams of tokens: both headers, and bare numbers ----
built net gpt.onnx --batch 3
# losses NAME FILE OPTION...
stream() {
    name=$1
    shift
    rm -f log
    ran ./net --lr 0.1 --log log --data "$@"
    grep -o '"loss":[^,}]*' log >"$name.losses"
}
stream arrays windows.npz
for file in tokens.bin llmc.bin llmc32.bin "tokens32.bin --raw uint32"; do
    # shellcheck disable=SC2086
    stream one $file
    cmp -s one.losses arrays.losses || fail "$file has other windows"
done
stream arrays overlapping.npz
stream one tokens.bin --stride 5
cmp -s one.losses arrays.losses || fail "other windows with --stride"

# ---- what is refused ----
refused() {
    words=$1
    shift
    code=0
    "$@" >said 2>&1 || code=$?
    [ $code -ne 0 ] && grep -q -- "$words" said || fail "not refused: $*"
}
model() {
    words=$1 file=$2
    shift 2
    refused "$words" "$lowerset" compile "$file.onnx" --batch 4 -q -o no --segments "$@"
}
model "CumSum combines the tokens of a row" mixing
model "ReduceMean takes the tokens of a row together" pooled
model "makes a mask of which is not known that it depends on the distance" uneven
model "an input 'segments' already" named
model "kernels of GPUs do not keep" gpt --target=cuda
refused "--pack: the program does not keep the samples of a row apart" \
    ./net --data samples.jsonl --pack
refused "compile the program with --ignore-index -100" ./net --data samples.jsonl
refused "wide.bin: token 57: 24 for 'x' does not lie in" ./net --data wide.bin --no-shuffle
# shellcheck disable=SC2086
built net gpt.onnx --batch 2 $label
refused "--pack: the program does not keep the samples" ./net --data samples.jsonl --pack
refused "wide.jsonl:2: 24 for 'x' does not lie in" ./net --data wide.jsonl --no-shuffle
refused "--stride: the data are no stream" ./net --data samples.jsonl --stride 3
refused "--pack: the data are no JSON lines" ./net --data tokens.bin --pack
# shellcheck disable=SC2086
built net gpt.onnx --batch 2 $label --segments
ran ./net --data tokens.bin --steps 1
ran ./net --data synthetic:4 --steps 1
echo "samples that share rows are those in rows of their own"
