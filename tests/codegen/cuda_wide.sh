#!/bin/sh
# The kernels in which programs for NVIDIA GPUs spend their time read and write global memory 16
# bytes at a time, where channels or classes are a multiple of four; elements of 16 bits where they
# are a multiple of eight.
#   sh tests/codegen/cuda_wide.sh BUILD-FOLDER SOURCE-FOLDER NVCC
set -eu
BUILD=$(cd "$1" && pwd)
SOURCE=$2
NVCC=$3
OUT=$(mktemp -d)
trap 'rm -rf "$OUT"' EXIT
export XDG_CONFIG_HOME=$OUT/config XDG_CACHE_HOME=$OUT/cache
wrong=0

# compiled NAME MODEL-OPTIONS... [-- COMPILE-OPTIONS...]: NAME.ptx
compiled() {
    name=$1 model=
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do model="$model $1"; shift; done
    [ $# = 0 ] || shift
    "$BUILD/lowerset" model $model -o "$OUT/$name.onnx" >/dev/null
    "$BUILD/lowerset" compile "$OUT/$name.onnx" "$@" --target=cuda --arch=90a --no-epilogues -q \
        --emit=c --plan-effort=1 \
        -o "$OUT/$name.c"
    "$NVCC" -ptx -arch=sm_90a -fmad=false -I"$SOURCE" "$OUT/$name.cu" -o "$OUT/$name.ptx"
}

# accesses NAME KERNEL LOADS STORES TYPES VECTORS: all such kernels read vectors of these types, and
# read and write at most LOADS and STORES single elements of TYPES (expressions).
accesses() {
    awk -v kernel="_$2_part" -v loads="$3" -v stores="$4" -v types="$5" -v vectors="$6" '
        function check() {
            if (part == "") return
            found++
            if (v4 == 0 || ld > loads || st > stores) {
                print part ": " v4 " vectors, " ld " single loads, " st " single stores of " types
                bad = 1
            }
        }
        /[.]visible [.]entry/ {
            check()
            part = index($0, kernel) > 0 ? substr($3, 1, length($3) - 1) : ""
            v4 = ld = st = 0
        }
        $0 ~ "ld[.]global.*v4[.]" vectors { v4++ }
        $0 ~ "ld[.]global[.a-z]*[.]" types { ld++ }
        $0 ~ "st[.](global[.])?" types { st++ }
        END { check(); if (found == 0) { print kernel ": none"; bad = 1 } exit bad }' \
            "$OUT/$1.ptx" || wrong=1
}
wide() { accesses "$@" "[fb]32" "[fb]32"; }
eights() { accesses "$@" "[bu]16" "[fbu]32"; }

compiled resnet resnet18 --batch=2 --size=64 --width=16 --classes=12
for kernel in relu maxpool norm_dx; do wide resnet $kernel 0 0; done
# their sums one by one; a pool's gradient
for kernel in reducemean norm_dot; do wide resnet $kernel 0 16; done
wide resnet moments 4 16                # the first of each channel once more
wide resnet xent_grad 4 1               # the loss, the label once more
compiled half unet --batch=2 --size=16 --width=8 --depth=1 -- --precision=bf16
for kernel in relu maxpool norm_dx norm_dot; do eights half $kernel 0 0; done
eights half moments 8 0                 # the first of each channel once more
compiled taps unet --batch=16 --size=64 --width=64 --depth=1 -- --precision=tf32
wide taps conv_dw_own 0 16                # its sums, once a block
compiled gpt gpt --depth=1 --heads=2 --width=32 --context=16 --vocab=64 --batch=2
for kernel in gelu gelu_grad; do wide gpt $kernel 0 0; done

if [ -n "${LS_WHOLE:-}" ]; then
    compiled halves gpt --depth=1 --heads=2 --width=32 --context=16 --vocab=64 --batch=2 -- \
        --precision=f16
    for kernel in gelu layernormalization layer_norm_grad; do eights halves $kernel 0 0; done
    compiled googlenet googlenet --batch=1 --size=64 --classes=12
    wide googlenet max_pool_grad 0 0
fi
exit $wrong
