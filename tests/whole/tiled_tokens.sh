#!/bin/sh
# --tiles Ntokens@SIZE: values of tokens that are computed in parts which need not end where samples
# do have the bits of whole ones, in losses, gradients and weights: of one sample, and of samples of
# 197 tokens, for every number of parts, precision and budget.
#   sh tests/whole/tiled_tokens.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
. "$(dirname "$0")/../support/tiled_runs.sh"
samples=5
steps=3

for depth in 1 2; do
    "$lowerset" model gpt --depth=$depth --width=64 --heads=2 --context=1280 --vocab=100 \
        --dropout=0.1 --batch=0 -o gpt$depth.onnx >said
done
"$lowerset" model vit --size=112 --patch=8 --width=32 --heads=2 --depth=1 --classes=5 \
    --dropout=0.1 --batch=0 -o vit.onnx >said
"$lowerset" model vit --size=112 --patch=8 --width=32 --heads=2 --depth=2 --classes=5 --batch=0 \
    -o plain.onnx >said
written tiled_rows_net rows.onnx
written tiled_rows_net patches.onnx patches
"$lowerset" model gpt --depth=1 --width=32 --heads=2 --context=700 --vocab=60 --batch=0 \
    -o long2.onnx >said
"$lowerset" model gpt --depth=1 --width=32 --heads=2 --context=128 --vocab=50 --batch=0 \
    -o short.onnx >said

# ---- one sample ----
on="--batch 1 --dropout on"
same gpt1.onnx "2tokens@1B 5tokens@256KiB" $on
few || same gpt1.onnx "3tokens@1B" $on
same gpt1.onnx "2tokens@1B" $on --loss soft_ce     # data for classes of probabilities
same gpt2.onnx "4tokens@256KiB" $on --budget min
few || same gpt2.onnx "3tokens@256KiB" $on --budget 60%
few || same gpt1.onnx "3tokens@128KiB" $on --head-chunks 4
few || same gpt1.onnx "5tokens@1B" $on --precision f64 --optimizer adamw --clip-norm 1
same gpt1.onnx "5tokens@128KiB" $on --precision bf16
few || same gpt1.onnx "3tokens@1B" $on --precision bf16 --bf16-sums tiles
few || same gpt1.onnx "3tokens@256KiB" $on --accumulate 2
few || same gpt1.onnx "3tokens@256KiB" --batch 2 --dropout off --microbatches 2

# ---- samples that end within parts: attention has whole ones ----
on="--batch 5 --dropout on"
samples=13      # an epoch ends with a short batch
same vit.onnx "3tokens@1B" $on
few || same vit.onnx "2tokens@64KiB" $on
few || same vit.onnx "3tokens@64KiB" $on --budget min
few || same vit.onnx "3tokens@64KiB" $on --no-alternatives --no-inplace
few || same vit.onnx "2tokens@32KiB" --batch 8 --dropout on --precision bf16
few || same vit.onnx "3tokens@32KiB" --batch 8 --dropout off --ranks 2
few || same plain.onnx "3tokens@1B" --batch 5 --budget min
few || same plain.onnx "2tokens@1B" --batch 10 --microbatches 2
few || same rows.onnx "3tokens@1B" $on
same patches.onnx "3tokens@1B" $on      # the channels of pictures are taken for tokens
same long2.onnx "2tokens@1B 5tokens@1B" --batch 2       # some parts have no sample

evaluated() {
    ./net --data synthetic:13 --eval --progress none 2>&1 | grep -o 'val_loss [-0-9.e]*'
}
for way in "" "--tiles 3tokens@1B"; do
    "$lowerset" compile vit.onnx -q -O 0 $on $way -o net >said 2>&1 || fail "compile $way"
    evaluated
done >eval
[ "$(sort -u eval | wc -l)" = 1 ] && [ -s eval ] || fail "evaluation in parts"

# ---- memory: the hidden units and the scores of one sample never lie in memory as a whole ----
"$lowerset" model gpt --depth=2 --width=32 --heads=2 --context=4096 --vocab=1000 --batch=0 \
    --weights=none -o long.onnx >said
least_arenas long.onnx 1 "" "--head-chunks 16" "--head-chunks 16 --tiles 16tokens@1MiB" \
    "--head-chunks auto --tiles auto"
set -- $(cat arenas)
[ "$2" -lt "$1" ] && [ "$3" -lt "$2" ] && [ "$4" -lt "$2" ] \
    || fail "least arenas: whole $1, head in chunks $2, parts $3, chosen $4"

# ---- what cannot be ----
refused "parts of the tokens" short.onnx --batch 1 --tiles 2tokens@1B
refused "parts of the tokens" plain.onnx --batch 1 --tiles 2tokens@1B
refused "Ntokens@SIZE" vit.onnx --batch 1 --tiles 2token@1B
refused "do not go together with --grads" vit.onnx --batch 1 --tiles 2tokens@1B --grads per-sample
echo "$passed programs in parts have the bits of whole ones; least arenas: $(echo $(cat arenas))"
