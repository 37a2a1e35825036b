#!/bin/sh
# A convolutional autoencoder learns handwritten digits for 60 % of the memory; the model it exports
# is compiled once more and gives the same outputs.
#   sh demo/autoencoder.sh BUILD-FOLDER [MNIST-FOLDER]
#   MNIST-FOLDER: the four MNIST files, as they are or with .gz
set -eu
BUILD=$1
MNIST=${2:-../shared/inputs/mnist}
OUT=out
LOWERSET=$BUILD/lowerset
RUN=$OUT/autoencoder-run
mkdir -p "$OUT"

run() { printf '\n$ %s\n' "$*"; "$@"; }

# unpack NAME: the file of that name, ready to be mapped, in $OUT.
unpack() {
    if [ -f "$MNIST/$1.gz" ]; then gunzip -c "$MNIST/$1.gz" >"$OUT/$1"
    else cp "$MNIST/$1" "$OUT/$1"
    fi
}

if [ -d "$MNIST" ]; then
    unpack train-images-idx3-ubyte
    unpack t10k-images-idx3-ubyte
    train=$OUT/train-images-idx3-ubyte
    val=$OUT/t10k-images-idx3-ubyte
    what="digits of MNIST"
else
    train=synthetic:6400
    val=synthetic:640
    what="MADE-UP IMAGES, not digits: there is no folder $MNIST"
fi
printf 'Data: %s\n' "$what"

rm -rf "$RUN"
run "$LOWERSET" model autoencoder -o "$OUT/autoencoder.onnx"
run "$LOWERSET" compile "$OUT/autoencoder.onnx" --batch 64 --budget 60% --loss mse \
    --loss-input x_hat \
    --optimizer=adam --lr 1e-3 -v -o "$OUT/autoencoder"
run "$OUT/autoencoder" --data "$train" --val "$val" --label-from x --steps 400 --save "$RUN" \
    --image-grid "$OUT/autoencoder.png" --export "$OUT/autoencoder-trained.onnx"

printf \
    '\nThe exported model, compiled, beside the trained one: the same images, the same outputs.\n'
run "$LOWERSET" compile "$OUT/autoencoder-trained.onnx" --batch 64 --loss mse --loss-input x_hat \
    -o "$OUT/autoencoder-trained"
run "$OUT/autoencoder" --eval --val "$val" --label-from x --save "$RUN" --resume auto \
    --dump "$OUT/autoencoder-outputs.npz"
run "$OUT/autoencoder-trained" --eval --val "$val" --label-from x \
    --dump "$OUT/autoencoder-trained-outputs.npz"
run "$BUILD/demo/same_outputs" "$OUT/autoencoder-outputs.npz" "$OUT/autoencoder-trained-outputs.npz"

printf '\nInputs, their codes of 32 numbers, reconstructions: %s; trained model: %s (data: %s)\n' \
    "$OUT/autoencoder.png" "$OUT/autoencoder-trained.onnx" "$what"
