#!/bin/sh
# Training over ranks on GPUs, without one: every rank is a process with a simulated GPU. Its
# results are those of one process that runs all parts on such a GPU, bit for bit, through the
# host's memory and with an NCCL of the tests' own.
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
    run "$program" $RUN $SAMPLES --no-export-notes --export "$to" "$@" \
        && sed 's/ in [0-9].*//' "$OUT/said" >"$to.said"
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
    build_paper "$d/any" "$d/net.onnx" "$@" --plan-effort=1 --ranks=any
    for n in $ranks; do
        LS_FAKE_CUDART=lazy LS_FAKE_ORDER=5 check "$name runs on $n ranks" train "$d/any/net" \
            "$d/staged.onnx" --ranks $n --bucket 5000
        check "it says that there is no NCCL" grep \
            -q "note: ranks exchange gradients through their hosts' memory: NCCL" "$OUT/err"
        check "$name has the same bits on $n ranks" cmp "$d/one.onnx" "$d/staged.onnx"
        check "and the same losses" cmp "$d/one.onnx.said" "$d/staged.onnx.said"
        rm -f "$OUT/tally"
        LS_FAKE_CUDART=lazy LS_FAKE_ORDER=7 FAKE_NCCL_TALLY=$OUT/tally LOWERSET_NCCL=$NCCL check \
            "$name runs on $n ranks with NCCL" train "$d/any/net" "$d/nccl.onnx" \
            --ranks $n --bucket 5000
        check "which carries the gradients" [ "$n" = "$(grep -c "of $n sent [1-9]" "$OUT/tally")" ]
        check "$name has the same bits on $n ranks with NCCL" cmp "$d/one.onnx" "$d/nccl.onnx"
        check "and the same losses" cmp "$d/one.onnx.said" "$d/nccl.onnx.said"
    done
}

# Slices of updates; parts and ranks without samples.
SAMPLES=
same mlp "2 4" mlp --batch=0 --width=8 --size=4 -- --batch=8 --microbatches=4 --optimizer=adam
# Statistics of batch norms, which must have whole batches on GPUs; several parts for a rank.
SAMPLES="--drop-last"
same unet 2 unet --depth=1 --size=4 --width=2 -- --batch=8 --microbatches=4 \
    --optimizer=sgd:momentum=0.9
same whole 2 unet --depth=1 --size=4 --width=2 -- --batch=4 --microbatches=2 \
    --optimizer=sgd:momentum=0.9 --clip-norm=1
SAMPLES=
# Whole updates, as they need a norm; a loss scale whose updates are skipped; random numbers.
same gpt 2 gpt --depth=1 --heads=2 --width=40 --context=8 --vocab=17 --dropout=0.2 -- --batch=4 \
    --microbatches=2 --accumulate=2 \
    --clip-norm=1 --precision=f16 --loss-scale=torch:init=2e5,period=3
if [ -n "${LS_WHOLE:-}" ]; then
    same muon 2 gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=17 -- --batch=4 \
        --microbatches=2 --optimizer=muon
    same f64 3 mlp --batch=0 --width=8 --size=4 -- --batch=3 --microbatches=3 \
        --optimizer=adafactor --precision=f64
    same bf16 "2 4" gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=17 -- --batch=8 \
        --microbatches=4 --optimizer=nadam \
        --precision=bf16
fi

check "parts of a batch have steps that may run at the same time" grep -q "[.]wait = train_wait" \
    "$OUT/gpt/any/net.c"
check "buckets leave in the course of the last part" [ 3 \
    -le "$("$OUT/gpt/any/net" --print-plan --ranks 2 --bucket 5000 |
    grep -o "step [0-9]*, [0-9]* bytes" | wc -l)" ]
check "also where steps are not recorded" train "$OUT/gpt/any/net" "$OUT/gpt/checked.onnx" \
    --ranks 2 --bucket 5000 --check-numerics
check "with the same bits" cmp "$OUT/gpt/one.onnx" "$OUT/gpt/checked.onnx"

# One rank, small buckets, other engines. And a program that has its number of ranks.
d=$OUT/mlp/any
build_paper "$d/four" "$OUT/mlp/net.onnx" --batch=8 --microbatches=4 --optimizer=adam \
    --plan-effort=1 --ranks=4
like_one() { check "$1" cmp "$OUT/mlp/one.onnx" "$d/to.onnx"; }
check "one rank trains alone" train "$d/net" "$d/to.onnx" --ranks 1
like_one "with the same bits"
check "small buckets" train "$d/four/net" "$d/to.onnx" --bucket 100
like_one "give the same bits"
LOWERSET_NCCL=$NCCL check "with NCCL, too" train "$d/net" "$d/to.onnx" --ranks 4 \
    --bucket 100 --comm=nccl
like_one "small buckets give the same bits with NCCL"
LOWERSET_NCCL=$NCCL FAKE_NCCL_TALLY=$OUT/none check "--comm=local has no NCCL" train "$d/net" \
    "$d/to.onnx" --ranks 2 --comm=local
check "indeed" [ ! -e "$OUT/none" ]
like_one "--comm=local gives the same bits"
host=127.$(($$ / 254 % 100 + 130)).$(($$ % 254)).1
for nccl in /nowhere "$NCCL"; do
    LOWERSET_NCCL=$nccl train "$d/net" "$d/other.onnx" --peers $host:20101,$host:20102 --rank 1 \
        >"$OUT/peer" 2>&1 &
    LOWERSET_NCCL=$nccl check "ranks that meet by TCP train" train "$d/net" "$d/to.onnx" \
        --peers $host:20101,$host:20102 --rank 0
    check "all of them" wait $!
    like_one "with the same bits by TCP, NCCL from $nccl"
done

# Runs that go on with other ranks, from slices of the optimizer's state.
check "two ranks save" run "$d/net" $RUN --steps 2 --ranks 2 --save "$d/saved" --save-every 2
LOWERSET_NCCL=$NCCL check "four go on" run "$d/net" $RUN --steps 4 --ranks 4 --save "$d/saved" \
    --save-every 2 --resume auto
check "one ends" train "$d/net" "$d/to.onnx" --ranks 1 --save "$d/saved" --resume auto
like_one "as if nothing had been"
check "the last checkpoint is evaluated" run "$d/net" --eval --data synthetic:19 \
    --resume "$d/saved/$(ls "$d/saved" | tail -1)"
check "evaluation beside training" train "$d/net" "$d/to.onnx" --ranks 2 --val synthetic:9 \
    --check-numerics
check "rank 0 evaluates" grep -q val_loss "$OUT/said"
like_one "and changes nothing"
check "times are written" run "$d/net" $RUN --ranks 2 --profile "$d/profile.json"
check "of the steps of a part" grep -q local_sum "$d/profile.json"

# GPUs that are too few, and requests that cannot be met.
says() { check "$1" grep -q "$2" "$OUT/errors"; }
LS_FAKE_GPUS=1 check "a GPU for two ranks is refused" ends 5 "$d/net" $RUN --ranks 2
says "with the ranks" "error: .*ranks 0 and 1 have the same GPU (Paper GPU): .*--share-gpus"
check "once" [ 1 = "$(grep -c error "$OUT/errors")" ]
LS_FAKE_GPUS=1 LOWERSET_NCCL=$NCCL check "ranks may share it" train "$d/net" "$d/to.onnx" \
    --ranks 4 --share-gpus
check "without NCCL" grep -q "note: .*through their hosts' memory: they share GPUs" "$OUT/err"
like_one "with the same bits"
LS_FAKE_GPUS=1 LOWERSET_NCCL=$NCCL check "NCCL wants a GPU for each" ends 5 "$d/net" $RUN \
    --ranks 2 --share-gpus --comm=nccl
says "which is said" "comm=nccl: ranks 0 and 1 have the same GPU"
check "NCCL that is not there is refused" ends 5 "$d/net" $RUN --ranks 2 --comm=nccl
says "with the reason" \
    "comm=nccl: rank 0: NCCL: /nowhere/libnccl.so, named by LOWERSET_NCCL, does not open"
# A byte less than what two ranks need: their slices are the last that they take.
low=0 high=1048576
while [ $((high - low)) -gt 1 ]; do
    room=$(((low + high) / 2))
    if LS_FAKE_ROOM=$room run "$d/net" $RUN --steps 1 --ranks 2 >/dev/null; then high=$room
    else low=$room
    fi
done
LD_LIBRARY_PATH=$OUT/lib LS_FAKE_ROOM=$low check "a GPU without room for slices is refused" \
    ends 5 "$d/net" $RUN --ranks 2
says "with what would help" "Paper GPU has no [0-9]* bytes left for training over ranks: compile"
LS_FAKE_GPUS=0 check "no GPU is an error" ends 5 "$d/net" $RUN --ranks 2
says "as for one process" "there is an NVIDIA driver here, but no GPU"
check "once" [ 1 = "$(grep -c error "$OUT/errors")" ]
LS_FAKE_KINDS=1 check "GPUs of different kinds are refused" ends 5 "$d/net" $RUN --ranks 4
says "with their names" "rank 1 has another kind of GPU (Paper GPU ) than rank 0 (Paper GPU)"
check "ranks do not choose kernels by their own clocks" ends 2 "$d/net" $RUN --ranks 2 --tune
says "which is said" "tune: ranks must choose the same kernels"
check "one rank does" train "$d/net" "$d/to.onnx" --ranks 1 --tune
check "stages on GPUs are refused" ends 2 "$LOWERSET" compile "$OUT/mlp/net.onnx" --batch=8 \
    --stages=2 --target=cuda -o "$d/t"
check "ranks of private training, too" ends 2 "$LOWERSET" compile "$OUT/mlp/net.onnx" --batch=8 \
    --ranks=2 --target=cuda --dp=clip=1,noise=1,delta=1e-5 -o "$d/t"
"$LOWERSET" compile "$OUT/mlp/net.onnx" -q -O0 --batch=8 --ranks=2 -o "$d/cpu"
check "a program without a GPU has no NCCL" ends 2 "$d/cpu" $RUN --comm=nccl
says "which is said" "comm=nccl: this program runs on no GPU"
check "and shares none" ends 2 "$d/cpu" $RUN --share-gpus
check "a plan says what a rank holds and sends" "$LOWERSET" plan "$OUT/mlp/net.onnx" -q \
    --target=cuda --batch=8 --microbatches=4 --ranks=2 --optimizer=adam >"$OUT/said"
check "of slices" grep -q "each rank updates a slice of every parameter" "$OUT/said"

# So does an error, whatever the others wait for.
for nccl in /nowhere "$NCCL"; do
    LD_LIBRARY_PATH=$OUT/lib LOWERSET_NCCL=$nccl check "runs that diverge end" ends 7 "$d/net" \
        --data synthetic:19 --progress none --lr 1e30 --epochs 50 --ranks 4
    check "with one message" [ 1 = "$(grep -c error "$OUT/errors")" ]
    says "of the step" "training has diverged"
done

# A rank that dies ends the others, with one message.
for nccl in /nowhere "$NCCL"; do
    : >"$OUT/said"              # of the run before
    LD_LIBRARY_PATH=$OUT/lib LOWERSET_NCCL=$nccl "$d/net" --data synthetic:19 --seed 3 \
        --progress none --epochs 3000 --ranks 4 >"$OUT/said" 2>"$OUT/err" &
    starter=$!
    until grep -q epoch "$OUT/said" || ! kill -0 $starter 2>/dev/null; do sleep 0.02; done
    for victim in $(cut -d' ' -f3 /proc/$starter/task/$starter/children); do kill -9 "$victim"; done
    code=0
    wait $starter || code=$?
    check "a killed rank ends all" [ $code = 9 ]
    check "with one message" [ "1 1" = \
        "$(grep -c error "$OUT/err") $(grep -c "error: rank 2 was killed by signal 9" "$OUT/err")" ]
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
