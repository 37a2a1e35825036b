#!/bin/sh
# The main job on a small scale: a U-Net for half the memory it would take, trained to find discs
# in noise.
#   sh demo/unet.sh BUILD-FOLDER
set -eu
BUILD=$1
OUT=out
LOWERSET=$BUILD/lowerset
mkdir -p "$OUT"

run() { printf '\n$ %s\n' "$*"; "$@"; }

run "$BUILD/demo/make_shapes" 512 64 1 "$OUT/shapes.npz"
run "$BUILD/demo/make_shapes" 64 64 2 "$OUT/shapes-val.npz"
run "$LOWERSET" model unet --width=16 --depth=3 --size=64 -o "$OUT/unet.onnx"
run "$LOWERSET" plan "$OUT/unet.onnx" --batch 8 --budget 50% --optimizer=adam \
    --timeline "$OUT/unet-memory.svg"
run "$LOWERSET" compile "$OUT/unet.onnx" --batch 8 --budget 50% --optimizer=adam --lr 2e-3 \
    -o "$OUT/unet"
run "$OUT/unet" --data "$OUT/shapes.npz" --val "$OUT/shapes-val.npz" --epochs 5 \
    --save "$OUT/unet-run" --overwrite \
    --export "$OUT/unet-trained.onnx"
printf '\nTrained model: %s, memory over time: %s\n' "$OUT/unet-trained.onnx" "$OUT/unet-memory.svg"
