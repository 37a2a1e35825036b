#!/bin/sh
# The initial weights take no memory of their own: plan does not read them, compile copies them in
# parts, and a program has the memory of its plan, when it starts and when it exports, however it
# was linked. They stay in a program that is stripped, and a program that lost them says so.
#   sh tests/whole/weights_once.sh BUILD-FOLDER PEAK-MEMORY
# LS_WHOLE: also with more than 2 GiB of weights, where disk and memory suffice.
set -eu
. "$(dirname "$0")/../support/link_flags.sh"
BUILD=$(cd "$1" && pwd)
LOWERSET=$BUILD/lowerset
peak=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
cd "$DIR"
export XDG_CONFIG_HOME=$DIR/config XDG_CACHE_HOME=$DIR/cache TMPDIR=$DIR
fail() { echo "FAIL $*"; cat said 2>/dev/null; exit 1; }

# takes MIB WHAT COMMAND...: at most so much memory
takes() {
    most=$1 what=$2
    shift 2
    "$peak" kib "$@" >said 2>&1 || fail "$what"
    [ "$(cat kib)" -le $((most * 1024)) ] \
        || fail "$what takes $(($(cat kib) / 1024)) MiB, more than $most"
    echo "$what: $(($(cat kib) / 1024)) MiB of at most $most"
}

steps="--data synthetic:4 --seed 1 --steps 1 --threads 2 --progress none"
"$LOWERSET" model mlp --width=6144 --size=4 --depth=2 --batch=0 -o in.onnx
"$LOWERSET" model mlp --width=6144 --size=4 --depth=2 --batch=0 --weights=external -o beside.onnx
how="--batch 2 --optimizer sgd --budget=min --plan-effort 2"
for model in in beside; do          # 145 MiB of weights
    takes 48 "plan of $model.onnx" "$LOWERSET" plan $model.onnx $how
    takes 112 "compile of $model.onnx" "$LOWERSET" compile $model.onnx $how -O 0 -v -o $model
done
# as_planned PROGRAM OPTIONS...: 16 MiB beside the plan are for code, stacks and what reads data
as_planned() {
    program=$1
    shift
    plan=$("$program" --print-plan | sed -n 's/^state .* total \([0-9]*\) .*/\1/p')
    takes $((plan / 1048576 + 17)) "$program $*" "$program" $steps "$@"
}

"$LOWERSET" compile beside.onnx $how -O 0 -q --emit=obj -o net.o >said 2>&1 || fail "an object"
cc net.o "$BUILD/runtime/libls_runtime.a" $(link_flags "$BUILD") -lm -lpthread -o linked \
    >said 2>&1 \
    || fail "linking an object"
for program in ./in ./beside ./linked; do
    as_planned $program --export $program.trained.onnx
done
cmp beside.trained.onnx linked.trained.onnx \
    || fail "an object that is linked by hand trains other weights"
as_planned ./in --export narrow.onnx --export-precision bf16

if command -v strip >/dev/null && command -v objcopy >/dev/null; then
    strip -o stripped in
    as_planned ./stripped --export stripped.onnx
    cmp in.trained.onnx stripped.onnx || fail "a stripped program trains other weights"
    objcopy --remove-section .lowerset.onnx in lost
    ! ./lost $steps >said 2>&1 || fail "a program without weights trains"
    grep -q 'the initial weights, [0-9]* bytes, are not in the program' said \
        || fail "a program without weights does not say so"
fi
[ -n "${LS_WHOLE:-}" ] || exit 0
rm -f in* beside* linked stripped lost net.o *.onnx
free=$(($(df -k . | sed -n '2s/ *[^ ]* *[^ ]* *[^ ]* *\([0-9]*\).*/\1/p') / 1024))
memory=$(($(sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo) / 1024))
[ $free -gt 9000 ] && [ $memory -gt 5000 ] || {
    echo "2.2 GiB of weights are left out: $memory MiB of memory, $free of disk"
    exit 0
}
"$LOWERSET" model mlp --width=17408 --size=4 --depth=3 --batch=0 --weights=external -o large.onnx
takes 192 "compile of large.onnx" "$LOWERSET" compile large.onnx $how -O 0 -v -o large
as_planned ./large --export large.trained.onnx      # two files: one would have more than 2 GiB
[ "$(wc -c <large.trained.onnx.data)" -gt 2147483647 ] || fail "an export of more than 2 GiB"
rm large large.trained.onnx large.trained.onnx.data
"$LOWERSET" compile large.onnx $how -O 0 -q --emit=obj -o net.o >said 2>&1 || fail "an object"
cc net.o "$BUILD/runtime/libls_runtime.a" $(link_flags "$BUILD") -lm -lpthread -o linked \
    >said 2>&1 \
    || fail "linking an object of 2.2 GiB"
as_planned ./linked
