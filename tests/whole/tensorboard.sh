#!/bin/sh
# TensorBoard's own reader finds the scalars of a run, of one that goes on from an earlier step, and
# of one that was killed.
#   sh tests/whole/tensorboard.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
lowerset=$1/lowerset reader=$2/tests/whole/events.py
if ! python3 -c 'import tensorboard' 2>/dev/null; then
    echo "skipped: python3 has no tensorboard"
    exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAIL $1"; cat out err; exit 1; }
must() { "$@" >out 2>err || fail "$*"; }
must "$lowerset" model gpt --depth=1 --heads=1 --width=8 --context=8 --vocab=26 -o net.onnx
must "$lowerset" compile net.onnx --batch 4 --loss ce --opt 0 -q -o t
awk 'BEGIN { for (i = 0; i < 900; i++) printf "%c", 97 + i * i % 26 }' >text.txt
run="./t --data text.txt --val-split 20% --progress none --schedule linear --log-grad-norm"
must $run --epochs 3 --steps 50 --tensorboard tb --save ck --save-every 10 --log log
must $run --epochs 3 --tensorboard tb --resume ck/step-000000020.safetensors --log rest
# A killed run's file ends in the middle of a record.
last=$(ls tb/* | tail -n 1)
head -c "$(($(wc -c <"$last") - 7))" "$last" >piece && mv piece "$last"
must python3 "$reader" tb
cp out found
# value FILE STEP NAME
value() { sed -n "s/^{\"step\":$2,.*\"$3\":\([^,}]*\).*/\1/p" "$1" | head -n 1; }
steps=$(sed -n 's/^{"step":\([0-9]*\),.*"loss".*/\1/p' rest | tail -n 1)
grep -q "^train/rate $steps 1 $steps" found || fail "rates: $(cat found)"
grep -q "^train/grad_norm $steps 1 $steps" found || fail "norms: $(cat found)"
grep -q "^train/tokens_per_second $steps 1 $steps" found || fail "speeds: $(cat found)"
loss=$(printf %.5g "$(value rest "$steps" loss)")
grep -qF "train/loss $steps 1 $steps $loss" found || fail "loss $loss: $(cat found)"
grep -q "^val/accuracy" found || grep -q "^val/loss" found || fail "no evaluation: $(cat found)"
echo "TensorBoard reads the events"
