#!/bin/sh
# Small models with all families of operators become programs for NVIDIA GPUs, linked: their device
# text compiles, for one architecture and for several. Without a GPU they say so.
#   sh tests/codegen/cuda_zoo.sh BUILD-FOLDER
# LS_WHOLE: more of them, and for more architectures; else attention and dropout, and products for
# two architectures.
set -eu
BUILD=$(cd "$1" && pwd)
OUT=$(mktemp -d)
trap 'rm -rf "$OUT"' EXIT
export XDG_CONFIG_HOME=$OUT/config XDG_CACHE_HOME=$OUT/cache
"$BUILD/lowerset" targets >"$OUT/targets"
grep -q 'programs are built here' "$OUT/targets" || {
    echo "skipped: $(sed -n 's/^cuda *//p' "$OUT/targets")"
    exit 77
}
failed=0

fail() { echo "FAIL $*"; cat "$OUT/said"; failed=1; }

# builds ARCHITECTURES MODEL OPTIONS... -- COMPILE-OPTIONS...
builds() {
    arch=$1 net=$2
    shift
    model=
    while [ "$1" != -- ]; do model="$model $1"; shift; done
    shift
    # shellcheck disable=SC2086
    "$BUILD/lowerset" model $model -o "$OUT/$net.onnx" >"$OUT/said" 2>&1 || { fail "$net"; return; }
    rm -rf "$OUT/temps"
    "$BUILD/lowerset" compile "$OUT/$net.onnx" --target=cuda --arch="$arch" \
        --save-temps="$OUT/temps" -O 1 \
        -o "$OUT/$net" "$@" >"$OUT/said" 2>&1 || { fail "$net does not compile"; return; }
    code=0
    CUDA_VISIBLE_DEVICES= "$OUT/$net" --data synthetic --steps 1 >"$OUT/said" 2>&1 || code=$?
    [ $code = 5 ] || fail "$net without a GPU ends with $code, not 5"
    grep -q NVIDIA "$OUT/said" || fail "$net does not say what it lacks"
    echo "$net: $(cat "$OUT"/temps/*.cu | grep -c '^LS_PART(') kernels for $arch"
}

builds 90a gpt --dropout=0.1 --depth=1 --heads=2 --width=32 --context=16 --vocab=64 -- --batch=2 \
    --optimizer=adamw
builds 75,100 mlp --batch=4 --width=64 -- --clip-norm=1 --precision=tf32
builds 90a mlp --batch=0 --width=64 -- --batch=4 --ranks=2 --optimizer=adam
builds 90a mlp --batch=4 --width=64 -- --clip-norm=1 --precision=f16
[ -z "${LS_WHOLE:-}" ] \
    || builds 90a unet --batch=16 --size=64 --width=64 --depth=1 -- --precision=tf32
if [ -n "${LS_WHOLE:-}" ]; then
    builds 75,90a gpt --depth=1 --heads=2 --width=32 --context=16 --vocab=64 -- --batch=2 \
        --precision=f16
    builds 80 resnet50 --batch=2 --size=64 --width=16 --classes=12 -- --precision=f16
    builds 90a unet --up=bilinear --batch=2 --size=16 --width=4 --depth=2 -- \
        --optimizer=sgd:momentum=0.9
    builds 75,80,86,89,100 mlp --batch=4 --width=64 -- --clip-norm=1 --precision=tf32
    builds 75,80 gpt --depth=1 --heads=2 --width=32 --context=16 --vocab=64 -- --batch=2 \
        --precision=tf32
    builds 90a autoencoder --batch=2 --size=16 --width=8 --depth=4 -- --loss=mse --budget=min \
        --plan-effort=1
    builds 80,90a resnet50 --batch=2 --size=64 --width=16 --classes=12 -- --precision=tf32
fi
exit $failed
