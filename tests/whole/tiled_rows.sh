#!/bin/sh
# --tiles in transformers: products, norms, softmax and attention that run in parts of the samples
# have the bits of whole ones, in losses, gradients and weights, for every number of parts,
# precision and budget; the gradient of a weight goes on from part to part; and a vocabulary head in
# chunks goes together with parts.
#   sh tests/whole/tiled_rows.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
. "$(dirname "$0")/../support/tiled_runs.sh"
samples=11      # an epoch ends with a short batch
steps=3

written tiled_rows_net rows.onnx
for depth in 1 2; do
    "$lowerset" model gpt --depth=$depth --width=64 --heads=2 --context=256 --vocab=300 \
        --dropout=0.1 --batch=0 -o gpt$depth.onnx >said
done

"$lowerset" model gpt --depth=1 --width=64 --heads=2 --context=64 --vocab=100 --batch=0 \
    -o short.onnx >said

on="--batch 7 --dropout on"
# Blocks of sums over 7 x 64 rows end at 224: these sums go on from no part to another.
same short.onnx "3@1B" --batch 7
few || same rows.onnx "2@1B 3@200KiB" $on
same gpt2.onnx "3@256KiB" $on --budget min
few || same gpt1.onnx "2@1B" $on --precision f64 --optimizer adamw --accumulate 2 --clip-norm 1
same gpt1.onnx "3@128KiB" $on --precision bf16 --bf16-sums pairs
few || same gpt1.onnx "7@1B" $on --precision bf16 --bf16-sums tiles
few || same gpt1.onnx "2@256KiB" --batch 4 --dropout on --microbatches 2
few || same gpt1.onnx "2@256KiB" --batch 4 --dropout off --ranks 2
few || same gpt1.onnx "3@256KiB" $on --head-chunks 2
more="--export-member 1"
few || same gpt1.onnx "3@256KiB" $on --ensemble 2 --randomness different
more=

# ---- gradients of weights go on, and updates compute none of their own ----
"$lowerset" plan gpt2.onnx $on -q --tiles 3@256KiB --graph-json parts.json >said || fail "plan"
parts=$(grep -c '"op": *"matmul_part"' parts.json) || fail "no gradient of a weight is in parts"
[ "$parts" -ge 24 ] || fail "$parts parts of gradients of weights"

# ---- memory: a head in chunks, and parts beside it ----
"$lowerset" model gpt --depth=2 --width=64 --heads=2 --context=256 --vocab=1000 --batch=0 \
    --weights=none -o deep.onnx >said
least_arenas deep.onnx 8 "" "--head-chunks 8" "--head-chunks 8 --tiles 8@512KiB" \
    "--head-chunks auto --tiles auto"
set -- $(cat arenas)
[ "$2" -lt "$1" ] && [ "$3" -lt $(($2 * 8 / 10)) ] && [ "$4" -lt $(($2 * 8 / 10)) ] \
    || fail "least arenas: whole $1, head in chunks $2, parts $3, chosen $4"
echo "$passed programs in parts have the bits of whole ones; least arenas: $*"
