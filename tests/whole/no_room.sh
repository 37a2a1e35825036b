#!/bin/sh
# A full disk: the older file stays whole, the state is saved elsewhere, and going on from there
# gives the same bits. Needs a small file system of its own, which a user or mount namespace gives.
#   sh tests/whole/no_room.sh BUILD-FOLDER
set -eu
if [ "${2:-}" != inside ]; then
    if ! unshare -rm sh -c 'mount -t tmpfs -o size=64k none /mnt' 2>/dev/null; then
        echo "skipped: no file system can be mounted here"
        exit 77
    fi
    exec unshare -rm sh "$0" "$1" inside
fi
lowerset=$1/lowerset
dir=$(mktemp -d)
trap 'umount "$dir/small" 2>/dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAIL $1"; cat err; exit 1; }
says() { grep -qF -- "$1" err || fail "no '$1'"; }
mkdir small
mount -t tmpfs -o size=64k none small
# 19 KiB of weights, twice that with momentum
"$lowerset" model mlp --batch=4 --width=64 --size=8 -o net.onnx >said
"$lowerset" compile net.onnx --opt 0 -q -o t
run="./t --data synthetic:8 --progress none --seed 3"
$run --epochs 4 --export whole.onnx >out 2>err || fail "a run"

# Room for one checkpoint and a half.
code=0
$run --epochs 4 --save small/ck >out 2>err || code=$?
[ "$code" = 1 ] || fail "exit $code"
says "cannot write: No space left on device"
says "is now in $dir/t.unwritten.safetensors"
[ "$(ls small/ck)" = step-000000002.safetensors ] || fail "checkpoints: $(ls small/ck)"
$run --epochs 4 --resume t.unwritten.safetensors --export rest.onnx >out 2>err \
    || fail "from the rescued state"
cmp whole.onnx rest.onnx || fail "other bits from the rescued state"
$run --epochs 4 --resume small/ck/step-000000002.safetensors --export rest.onnx >out 2>err \
    || fail "from the older file"
cmp whole.onnx rest.onnx || fail "other bits from the older file"
rm t.unwritten.safetensors

# An export over an older one.
rm -r small/ck
cp whole.onnx small/net.onnx
dd if=/dev/zero of=small/fill bs=1k count=64 2>said || true
code=0
$run --epochs 3 --export small/net.onnx --log small/log --dump small/d.npz >out 2>err || code=$?
[ "$code" = 1 ] || fail "exit $code"
says "small/net.onnx: cannot write: No space left on device"
cmp whole.onnx small/net.onnx || fail "the older export is damaged"
# Two files: room for the model, but not for its weights.
rm small/fill
run_of_two="$run --epochs 3 --export small/two.onnx --export-external"
dd if=/dev/zero of=small/fill bs=1k count=40 2>said || true
code=0
$run_of_two >out 2>err || code=$?
[ "$code" = 1 ] || fail "exit $code"
says "small/two.onnx.data: cannot write: No space left on device"
[ -z "$(ls small | grep two)" ] || fail "there are $(ls small)"
rescued=$(sed -n 's/.* --resume=\([^ ]*\) continues.*/\1/p' err)
[ -n "$rescued" ] || fail "nothing was rescued"
$run --epochs 4 --resume "$rescued" --export rest.onnx >out 2>err || fail "from $rescued"
cmp whole.onnx rest.onnx || fail "other bits from $rescued"
rm -f t.unwritten.safetensors "$rescued" small/fill small/net.onnx small/log small/d.npz

# The best checkpoint has no room beside the last one, which stays.
code=0
$run --epochs 4 --val-split 2 --save small/ck --keep-best val_loss >out 2>err || code=$?
[ "$code" = 1 ] || fail "exit $code"
says "small/ck/best.safetensors: cannot write: No space left on device"
says "the trained state: --resume=small/ck/step-000000002.safetensors"
[ "$(ls small/ck)" = step-000000002.safetensors ] || fail "checkpoints: $(ls small/ck)"
rest="$run --epochs 4 --val-split 2 --export"
$rest unbroken.onnx >out 2>err || fail "an unbroken run"
$rest rest.onnx --resume small/ck/step-000000002.safetensors >out 2>err || fail "from the last one"
cmp unbroken.onnx rest.onnx || fail "other bits from the checkpoint beside the best"
rm -r small/ck

# Weights over older ones, with the log and the events full as well.
$run --epochs 1 --save-weights small/w.safetensors >out 2>err || fail "weights"
cp small/w.safetensors older.safetensors
dd if=/dev/zero of=small/fill bs=1k count=64 2>said || true
code=0
$run --epochs 4 --save-weights small/w.safetensors --log small/log >out 2>err || code=$?
[ "$code" = 1 ] || fail "exit $code"
says "cannot write: No space left on device"
cmp older.safetensors small/w.safetensors || fail "the older weights are damaged"
rescued=$(sed -n 's/.* --resume=\([^ ]*\) continues.*/\1/p' err)
[ -n "$rescued" ] || fail "nothing was rescued of the weights"
$run --epochs 4 --resume "$rescued" --export rest.onnx >out 2>err || fail "from $rescued"
cmp whole.onnx rest.onnx || fail "other bits from $rescued"
rm "$rescued" small/w.safetensors small/log small/fill
# Events: the run goes on, and what is there is whole records; the message says which file.
dd if=/dev/zero of=small/fill bs=1k count=56 2>said || true
code=0
$run --epochs 600 --tensorboard small/tb --export rest.onnx >out 2>err || code=$?
[ "$code" = 1 ] || fail "exit $code"
says "small/tb/events.out.tfevents."
says "cannot write: No space left on device"
[ -s rest.onnx ] || fail "a full disk for events cost the model"
code=0
$run --find-rate --rate-table small/t.csv >out 2>err || code=$?
[ "$code" = 1 ] && [ ! -e small/t.csv ] || fail "exit $code, a piece of a table"
says "small/t.csv: cannot write: No space left on device"
echo "nothing was lost"
