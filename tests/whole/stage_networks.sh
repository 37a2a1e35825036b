#!/bin/sh
# Programs of pipelines over small networks have the bits of one process: as threads, as
# processes and as ranks that meet by TCP, and once more where LOWERSET_CHECK_STAGES=1 looks at
# what stages touch.
#   sh tests/whole/stage_networks.sh BUILD-FOLDER SOURCE-FOLDER
# With LS_WHOLE=1 more networks, orders, stages and budgets; LS_RUNS=N runs each as threads so
# many times.
set -u
BUILT=$(cd "$1" && pwd)
FAULTS=$(cd "$2/tests/data/faults" && pwd)
LOWERSET=$BUILT/lowerset
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
cd "$DIR"
export XDG_CONFIG_HOME=$DIR/config
failed=0 programs=0 runs=0
fail() { echo "FAIL $*"; cat errors 2>/dev/null; failed=1; }

COMPILE="$LOWERSET compile -q -O0 --plan-effort=1"
RUN="--progress none --seed 3 --epochs 99 --steps 3 --lr 0.01 --threads 1 --no-export-notes"
# The port is in nobody's range, the address this test's own.
host=127.$(($$ / 254 % 100 + 20)).$(($$ % 254)).2

losses() { grep -o '"loss":[^,}]*' "$1"; }

# same WHAT: all weights and losses are those of one process
same() {
    runs=$((runs + 1))
    cmp -s one.onnx other.onnx && [ "$(losses one.log)" = "$(losses other.log)" ] \
        || fail "$1: other bits: $way"
    rm -f other.onnx other.log
}

by_tcp() {
    peers=$host:20201 k=1 pids=
    while [ $k -lt "$1" ]; do peers=$peers,$host:$((20201 + k)) k=$((k + 1)); done
    k=0
    while [ $k -lt "$1" ]; do
        ./other --data $data $RUN --peers $peers --rank $k --export other.onnx --log other.log \
            >out.$k 2>errors.$k &
        pids="$pids $!" k=$((k + 1))
    done
    for pid in $pids; do wait "$pid" || { cat errors.* >errors; fail "TCP: $way"; }; done
}

# pipeline STAGES OPTIONS...: the same as one process
pipeline() {
    stages=$1 way="$net $options --stages=$*"
    shift
    $COMPILE $net $options --stages=$stages "$@" -o other 2>errors || {
        fail "compile $way"
        return
    }
    programs=$((programs + 1)) run=0
    while [ $run -lt "${LS_RUNS:-2}" ]; do
        ./other --data $data $RUN --export other.onnx --log other.log >out 2>errors \
            || fail "threads: $way"
        same threads
        run=$((run + 1))
    done
    LOWERSET_CHECK_STAGES=1 ./other --data $data $RUN --export other.onnx --log other.log >out \
        2>errors || fail "checked: $way"
    same checked
    ./other --data $data $RUN --ranks $stages --export other.onnx --log other.log >out 2>errors \
        || fail "processes: $way"
    same processes
    by_tcp $stages
    same TCP
}

# one NET OPTIONS...: what the pipelines that follow are compared with
one() {
    net=$1
    shift
    options=$*
    # No part has a single sample where a batch norm's channels have one value of each.
    case $net in
    resnet18.onnx | densenet.onnx | vgg.onnx) data=synthetic:32 ;;
    *) data=synthetic:31 ;;
    esac
    $COMPILE $net $options -o one 2>errors \
        && ./one --data $data $RUN --export one.onnx --log one.log >out 2>errors \
        || fail "one process: $net $options"
}

model() { "$LOWERSET" model "$@" || fail "model $*"; }
model gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=17 --dropout=0.2 -o gpt.onnx
model unet --depth=1 --size=4 --width=2 -o unet.onnx
model mlp --width=8 --size=4 --depth=3 --classes=3 -o mlp.onnx

# A gradient that alternatives do without arrives late; sums of one micro-batch after the other.
one "$FAULTS/stages-wrong-bits/net.onnx" --optimizer=sgd --dropout=off --batch=12 --microbatches=6
pipeline 2 --order=gpipe
pipeline 2 --order=zb
# Clipping by a norm that needs all stages.
one "$FAULTS/stages-wrong-bits/mlp.onnx" --optimizer=sgd --precision=f64 --clip-norm=1 --bn=frozen \
    --batch=8 --microbatches=2
pipeline 4 --order=zb --budget=min
# More micro-batches than the search for waits looks at.
one "$FAULTS/stages-gpipe-loss-scale/mlp.onnx" --batch=16 --microbatches=8 --loss-scale=128
pipeline 2 --order=gpipe
one "$FAULTS/stages-gpipe-bn/net.onnx" --loss=mse --batch=18 --microbatches=9 --bn=train
pipeline 2 --order=gpipe
# A gradient that is made before the stage of its parameter.
one "$FAULTS/stages-bf16-depthwise-bn/net.onnx" --batch=8 --microbatches=2 \
    --precision=bf16 --bn=frozen
pipeline 2 --order=1f1b
# Sums of weights of classes that all updates wait for.
one mlp.onnx --class-weights=1,2,3 --loss-scale=torch:init=1e3,period=3 --batch=8 --microbatches=4
pipeline 3 --order=1f1b
one unet.onnx --clip-norm=1 --batch=8 --microbatches=4
pipeline 3 --order=gpipe
one gpt.onnx --optimizer=adam --batch=8 --microbatches=4
pipeline 3 --order=zb --recompute=except-last

if [ -n "${LS_WHOLE:-}" ]; then
    model autoencoder --size=8 --width=2 -o autoencoder.onnx
    model digits --size=12 --width=2 --dropout=0 -o digits.onnx
    model resnet18 --size=16 --width=2 --classes=4 -o resnet18.onnx
    model densenet121 --size=32 --width=2 --classes=3 -o densenet.onnx
    model vgg16_bn --size=32 --width=2 --classes=3 --dropout=0 -o vgg.onnx
    model gpt --depth=2 --heads=1 --width=8 --context=6 --vocab=11 --dropout=0 -o gpt2.onnx
    model mlp --width=16 --size=5 --depth=6 --classes=4 -o deep.onnx
    for row in "$FAULTS/stages-wrong-bits/net.onnx --dropout=off" \
        "$FAULTS/stages-wrong-bits/net.onnx --precision=bf16" \
        "$FAULTS/stages-wrong-bits/net.onnx --clip-norm=0.5" \
        "$FAULTS/stages-wrong-bits/mlp.onnx --bn=frozen" \
        "$FAULTS/stages-wrong-bits/mlp.onnx --bn=frozen --precision=f64 --clip-norm=1 \
            --ignore-index=1" \
        "$FAULTS/stages-wrong-bits/mlp.onnx --bn=frozen --loss-scale=128" \
        "$FAULTS/stages-gpipe-loss-scale/mlp.onnx --precision=f16" \
        "$FAULTS/stages-gpipe-loss-scale/mlp.onnx --loss-scale=dynamic" \
        "$FAULTS/stages-gpipe-bn/net.onnx --loss=mse --bn=train" \
        "$FAULTS/stages-gpipe-bn/net.onnx --loss=mse --bn=frozen --clip-norm=1" \
        "$FAULTS/stages-gpipe-bn/net.onnx --bn=frozen --precision=bf16" \
        "$FAULTS/stages-bf16-depthwise-bn/net.onnx --precision=bf16 --bn=frozen" \
        "$FAULTS/stages-bf16-depthwise-bn/net.onnx --bn=frozen" \
        "mlp.onnx --class-weights=1,2,3 --loss-scale=256" "mlp.onnx --optimizer=lion" \
        "mlp.onnx --label-smoothing=0.1 --clip-norm=0.1" \
        "deep.onnx --optimizer=adam" "deep.onnx --precision=bf16" \
        "deep.onnx --precision=f16 --clip-norm=1" "deep.onnx --ema=0.9" \
        "unet.onnx" "unet.onnx --clip-norm=1 --optimizer=adamw" "gpt.onnx --optimizer=adam" \
        "gpt2.onnx --precision=bf16" \
        "gpt2.onnx --clip-norm=1 --loss-scale=64" "autoencoder.onnx --loss=mse" "digits.onnx" \
        "resnet18.onnx" "densenet.onnx" "vgg.onnx"; do
        for micros in 4 9; do
            one $row --batch=$((2 * micros)) --microbatches=$micros
            pipeline 2 --order=gpipe
            pipeline 3 --order=1f1b --budget=min
            pipeline 2 --order=zb
            pipeline 3 --order=zb --recompute=except-last
        done
    done
fi
echo "$programs programs, $runs runs"
exit $failed
