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
"$lowerset" model gpt --depth=1 --width=32 --heads=2 --context=128 --vocab=50 --batch=0 \
    -o short.onnx >said

# ---- one sample ----
on="--batch 1 --dropout on"
same gpt1.onnx "2tokens@1B 5tokens@256KiB" $on
few || same gpt1.onnx "3tokens@1B" $on
same gpt2.onnx "4tokens@256KiB" $on --budget min
few || same gpt2.onnx "3tokens@256KiB" $on --budget 60%
few || same gpt1.onnx "3tokens@128KiB" $on --head-chunks 4
few || same gpt1.onnx "5tokens@1B" $on --precision f64 --optimizer adamw --clip-norm 1
same gpt1.onnx "5tokens@128KiB" $on --precision bf16
few || same gpt1.onnx "3tokens@1B" $on --precision bf16 --bf16-sums tiles
few || same gpt1.onnx "3tokens@256KiB" $on --accumulate 2
few || same gpt1.onnx "3tokens@256KiB" --batch 2 --dropout off --microbatches 2

# ---- samples that end within parts ----
on="--batch 5 --dropout on"
samples=13      # an epoch ends with a short batch
same vit.onnx "2tokens@1B 3tokens@64KiB" $on
few || same vit.onnx "3tokens@64KiB" $on --budget min
few || same vit.onnx "2tokens@32KiB" $on --precision bf16
few || same vit.onnx "3tokens@64KiB" $on --no-alternatives --no-inplace
echo "$passed programs in parts have the bits of whole ones"
