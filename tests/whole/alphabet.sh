#!/bin/sh
# Characters keep the numbers of training, whatever text the model reads later.
#   sh tests/whole/alphabet.sh BUILD-FOLDER
set -eu
lowerset=$1/lowerset
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
passed=0
fail() { echo "FAIL $1"; exit 1; }
pass() { passed=$((passed + 1)); }
val_loss() { sed -n 's/.*val_loss \([0-9.]*\).*/\1/p'; }
# refused TEXT COMMAND...: the trainer ends with 8 and says TEXT.
refused() {
    text=$1
    shift
    code=0
    "$@" >out 2>err || code=$?
    [ "$code" = 8 ] && grep -qF "$text" err || fail "exit $code, not 8 with '$text': $(cat err)"
}

"$lowerset" model gpt --width=16 --depth=1 --heads=2 --context=8 --vocab=12 -o m.onnx >/dev/null
"$lowerset" compile m.onnx --batch 2 --opt 0 --plan-effort 1 -q -o t --lr 0.1 >/dev/null 2>&1
for k in 1 2 3 4 5 6 7 8; do printf 'abcd efgh ijk '; done >a.txt       # numbers 0 to 11
# this text alone would give other numbers
for k in 1 2 3 4 5 6 7 8; do printf 'fgh ijk '; done >b.txt
./t --data a.txt --val b.txt --epochs 3 --save ck --export t.onnx >out 2>err || fail "$(cat err)"
right=$(tail -n 1 out | val_loss)
[ -n "$right" ] || fail "no val_loss in: $(cat out)"
last=$(ls ck/* | tail -n 1)

# --eval of the other text alone, from the checkpoint and from the exported model.
[ "$(./t --eval --data b.txt --resume "$last" 2>err | val_loss)" = "$right" ] \
    || fail "--eval renumbers"
[ "$(./t --eval --val b.txt --resume "$last" 2>err | val_loss)" = "$right" ] \
    || fail "--val renumbers"
pass
"$lowerset" compile t.onnx --batch 2 --opt 0 --plan-effort 1 -q -o t2 --lr 0.1 >/dev/null 2>&1
[ "$(./t2 --eval --data b.txt 2>err | val_loss)" = "$right" ] || fail "the exported model renumbers"
pass

# Further training on the other text keeps the numbers, and so does its export.
./t2 --data b.txt --export t3.onnx --save ck3 >out 2>err || fail "$(cat err)"
[ "$(grep -ac lowerset.alphabet t3.onnx)" = 1 ] || fail "the metadata are not there once"
grep -aq '"alphabet":"32,97,98,99,100,101,102,103,104,105,106,107"' ck3/* \
    || fail "the checkpoint lost it"
./t --data b.txt --resume "$last" --epochs 9 --save ck4 >out 2>err || fail "$(cat err)"
grep -aq '"alphabet":"32,97,98' "$(ls ck4/* | tail -n 1)" || fail "resuming lost it"
pass

# A character that the model has never seen is named.
echo 'fgh ijk xyz fgh ijk' >c.txt
refused "c.txt: character 10 is not among the 12" ./t --eval --data c.txt --resume "$last"
printf 'fgh ijk xyz fgh ijk' >c.txt
refused "c.txt: character 'x' (120) is not among the 12" ./t --eval --data c.txt --resume "$last"
refused "c.txt: character 'x' (120)" ./t --data c.txt --resume "$last"
refused "c.txt: character 'x' (120)" ./t --data a.txt --val c.txt
refused "c.txt: character 'x' (120)" ./t2 --data c.txt
./t --data c.txt --save ck5 >out 2>err
refused "the checkpoint has 10 characters, and the model was trained on 12 others" \
    ./t2 --data b.txt --resume "$(ls ck5/* | tail -n 1)"
pass

# One flipped bit of the alphabet is a damaged checkpoint.
sed 's/"alphabet":"32,97,98/"alphabet":"33,97,98/' "$last" >bad.safetensors
refused "damaged checkpoint" ./t --data b.txt --resume bad.safetensors
pass
echo "$passed passed, 0 failed"
