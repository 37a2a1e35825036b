#!/bin/sh
# Libraries for GPUs (--emit=lib --target=cuda) on a simulated GPU: arrays that lie there, in the
# order of a stream of the caller's, give the bits of arrays of the host, and losses that stay there
# are those that the host reads. Symbols, headers.
#   sh tests/whole/library_gpu.sh BUILD-FOLDER SOURCE-FOLDER CUDA-HOME
. "$(dirname "$0")/../support/paper.sh"
export LOWERSET_PROBE=off

"$LOWERSET" targets >"$OUT/targets"
grep -q "^ *NVRTC  *[^ n]" "$OUT/targets" || command -v nvcc >/dev/null \
    || { echo "SKIP there is no compiler for GPUs here"; exit 77; }

# same NAME TOTAL STEPS MODEL-OPTION... -- OPTION...: work is done at once, and as late as possible
same() {
    name=$1 total=$2 steps=$3
    shift 3
    d=$OUT/$name
    mkdir "$d"
    model=
    while [ "$1" != -- ]; do
        model="$model $1"
        shift
    done
    shift
    # shellcheck disable=SC2086
    "$LOWERSET" model $model --batch=0 -o "$d/model.onnx" >/dev/null
    build_paper_library "$d" "$d/model.onnx" --plan-effort=1 "$@"
    for mode in now lazy; do
        LS_FAKE_CUDART=$mode LD_LIBRARY_PATH=$OUT/lib check "$name: $mode" "$d/client" "$total" \
            "$steps"
    done
}
# Short last batches, of 3 samples in 8 places; images that have their channels last; tokens, which
# are checked; targets that are reals; several batches, whose loss is on the host.
same mlp 19 7 mlp --width=16 --size=6 -- --batch=8 --optimizer=adamw
same resnet 12 4 resnet18 --size=32 --width=2 --classes=5 -- --batch=4 --optimizer=sgd
check "its images have their channels last" grep -q '{"x", LS_DT_REAL, true, 4' "$d/net.c"
same gpt 8 4 gpt --depth=1 --width=8 --heads=2 --vocab=9 --context=4 -- --batch=4
same brain 9 5 autoencoder --size=8 --width=2 --depth=4 -- --batch=4 --loss=mse --precision=bf16
same parts 32 4 cnn --size=8 --width=4 -- --batch=8 --microbatches=2 --accumulate=2

# ---- the Python package ----
d=$OUT/python
"$LOWERSET" model mlp --width=16 --size=6 --batch=0 -o "$OUT/python.onnx" >/dev/null
build_paper_library "$d" "$OUT/python.onnx" --plan-effort=1 --batch=8 --optimizer=sgd
for mode in now lazy; do
    code=0
    LS_FAKE_CUDART=$mode LIBRARY=$d/libnet.so LD_LIBRARY_PATH=$OUT/lib PYTHONDONTWRITEBYTECODE=1 \
        PYTHONPATH=$SOURCE/python sh "$SOURCE/tests/python/run.sh" "$LOWERSET" \
        "$SOURCE/tests/python/test_gpu_arrays.py" numpy || code=$?
    [ "$code" = 77 ] || check "the Python package: $mode" [ "$code" = 0 ]
done

# ---- what is linked ----
nm -g --defined-only "$OUT/mlp/libnet.a" | awk 'NF == 3 { print $3 }' >"$OUT/symbols"
check "symbols have the prefix" ends 1 grep -v '^net_' "$OUT/symbols"
check "a library for GPUs takes a stream" grep -qx net_set_stream "$OUT/symbols"
check "it says where the loss lies" grep -qx net_loss_on_gpu "$OUT/symbols"
printf '#include "net.h"\n' | tee "$OUT/h.c" >"$OUT/h.cpp"
check "its header is C11" cc -std=c11 -Wall -Wextra -pedantic -Werror -I"$OUT/mlp" -c "$OUT/h.c" \
    -o "$OUT/h.o"
"$LOWERSET" compile "$OUT/mlp/model.onnx" -q -O 0 --batch 8 --plan-effort=1 --emit=lib \
    -o "$OUT/host"
check "a library for the host has neither" ends 1 grep "stream\|on_gpu(host \|loss_on" "$OUT/host.h"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
