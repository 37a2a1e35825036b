#!/bin/sh
# Training over ranks on GPUs, without one: every rank is a process with a simulated GPU. Its results are those of one process
# that runs all parts on such a GPU, bit for bit, through the host's memory and with an NCCL of the tests' own.
#   sh tests/whole/gpu_ranks.sh BUILD-FOLDER SOURCE-FOLDER CUDA-HOME
# LS_WHOLE: more networks.
set -eu
. "$2/tests/support/paper.sh"
export LS_FAKE_GPUS=4 LOWERSET_NCCL=/nowhere/libnccl.so TMPDIR="$OUT"
NCCL=$BUILD/tests/libnccl-files-fake.so
RUN="--data synthetic:19 --seed 3 --lr 0.01 --progress none --epochs 100 --steps 6"

run() {         # PROGRAM OPTIONS...
    LD_LIBRARY_PATH=$OUT/lib "$@" >"$OUT/said" 2>"$OUT/err" || {
        cat "$OUT/said" "$OUT/err"
        return 1
    }
}

# train PROGRAM EXPORT OPTIONS...: trains; the losses are in EXPORT.said.
train() {
    program=$1 to=$2
    shift 2
    run "$program" $RUN --export "$to" "$@" && sed 's/ in [0-9].*//' "$OUT/said" >"$to.said"
}

# same NAME RANKS MODEL-OPTIONS... -- COMPILE-OPTIONS...: it has the bits of one process.
same() {
    name=$1 ranks=$2
    shift 2
    d=$OUT/$name
    mkdir "$d"
    model=
    while [ "$1" != -- ]; do model="$model $1"; shift; done
    shift
    "$LOWERSET" model $model -o "$d/net.onnx" >/dev/null
    build_paper "$d/one" "$d/net.onnx" "$@" --plan-effort=1
    check "$name runs in one process" train "$d/one/net" "$d/one.onnx"
    for n in $ranks; do
        build_paper "$d/$n" "$d/net.onnx" "$@" --plan-effort=1 --ranks=$n
        check "$name runs on $n ranks" train "$d/$n/net" "$d/staged.onnx"
        check "it says that there is no NCCL" grep -q "note: ranks exchange gradients through their hosts' memory: NCCL" "$OUT/err"
        check "$name has the same bits on $n ranks" cmp "$d/one.onnx" "$d/staged.onnx"
        check "and the same losses" cmp "$d/one.onnx.said" "$d/staged.onnx.said"
        rm -f "$OUT/tally"
        LS_FAKE_CUDART=lazy LS_FAKE_ORDER=7 FAKE_NCCL_TALLY=$OUT/tally LOWERSET_NCCL=$NCCL check "$name runs on $n ranks with NCCL" train "$d/$n/net" "$d/nccl.onnx"
        check "which carries the gradients" [ "$n" = "$(grep -c "of $n sent [1-9]" "$OUT/tally")" ]
        check "$name has the same bits on $n ranks with NCCL" cmp "$d/one.onnx" "$d/nccl.onnx"
        check "and the same losses" cmp "$d/one.onnx.said" "$d/nccl.onnx.said"
    done
}

# Slices of updates; parts and ranks without samples.
same mlp "2 4" mlp --batch=0 --width=8 --size=4 -- --batch=8 --microbatches=4 --optimizer=adam
# Statistics of batch norms; several parts for a rank; small buckets.
same unet "2" unet --depth=1 --size=4 --width=2 -- --batch=8 --microbatches=4 --optimizer=sgd:momentum=0.9
# Whole updates, as they need a norm; a loss scale whose updates are skipped; random numbers.
same gpt "2" gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=17 --dropout=0.2 -- --batch=4 --microbatches=2 --accumulate=2 \
    --clip-norm=1 --precision=f16 --loss-scale=torch:init=1e9,period=3
same muon "2" gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=17 -- --batch=4 --microbatches=2 --optimizer=muon
same f64 "3" mlp --batch=0 --width=8 --size=4 -- --batch=3 --microbatches=3 --optimizer=adafactor --precision=f64

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
