#!/bin/sh
# Runs that are killed at any time, also while they save: each file that has its name is whole, and
# going on gives the bits of a run that nobody killed. SIGHUP and SIGTERM end a run with a
# checkpoint.
#   sh tests/whole/killed.sh BUILD-FOLDER
set -eu
lowerset=$1/lowerset
dir=$(mktemp -d)
job=
trap '[ -z "$job" ] || kill -9 $job 2>/dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAIL $1"; cat out err; exit 1; }
must() { "$@" >out 2>err || fail "$*"; }
must "$lowerset" model mlp --batch=0 --width=128 --size=8 -o net.onnx
must "$lowerset" compile net.onnx --batch 8 --optimizer adam -q -o t
data="--data synthetic:100 --val-split 20 --progress none"
run="./t $data --epochs 30 --val-every 3 --keep-best val_loss --save-every 1 --keep-last 2"
must $run --save whole --save-weights whole.safetensors --export-best
cp out end

# The moments of the kills differ from machine to machine; all of them must be good ones.
n=0 ended=
for ms in 12 25 9 40 17 31 60 22 80 35; do
    $run --save ck --resume auto --tensorboard tb --log log >out 2>err &
    job=$!
    sleep "0.0$(printf %02d "$ms")"
    kill -9 $job 2>/dev/null || true
    wait $job 2>/dev/null && ended=1
    job=
    n=$((n + 1))
    for file in ck/*.safetensors; do
        [ -e "$file" ] || continue
        must ./t --eval $data --resume "$file"
    done
    [ -z "$ended" ] || break
done
must $run --save ck --resume auto --save-weights rest.safetensors --export-best --tensorboard tb
cmp whole.safetensors rest.safetensors || fail "other bits after $n kills"
tail -n 1 end >last
tail -n 1 out | cmp - last || fail "another best model"
cmp whole/best.safetensors ck/best.safetensors || fail "another best checkpoint"
[ "$(ls ck)" = "$(ls whole)" ] || [ "$(ls ck | grep -v '\.tmp$')" = "$(ls whole)" ] \
    || fail "other checkpoints: $(ls ck)"

# A piece of a checkpoint under its name is refused, and with auto the one before is taken.
last=$(ls whole/step-* | tail -n 1)
head -c 5000 "$last" >piece && mv piece "$last"
must $run --save whole --resume auto --save-weights rest.safetensors --export-best
grep -q "truncated checkpoint\|lies outside the file" err || fail "a piece was not seen"
cmp whole.safetensors rest.safetensors || fail "other bits from the checkpoint before"

# Below nohup a hangup is ignored, as it is meant to be.
signals="HUP TERM"
case $(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status) in
*[13579bdf]) signals=TERM ;;
esac
for signal in $signals; do
    want=129
    [ $signal = HUP ] || want=143
    rm -rf ck
    ./t $data --epochs 100000000 --save ck --keep-best val_loss --keep-last 2 \
        --tensorboard tb$signal --log log >out 2>err &
    job=$!
    for wait in $(seq 600); do
        [ ! -e ck/best.safetensors ] || break
        sleep 0.05
    done
    kill -$signal $job
    code=0
    wait $job || code=$?
    job=
    [ "$code" = $want ] || fail "$signal: exit $code"
    grep -q "interrupted after step [0-9]*; continue with --resume=ck/step-" err \
        || fail "$signal: no word of the checkpoint"
    at=$(sed -n 's/.*--resume=\(ck[^ ]*\).*/\1/p' err)
    must ./t --eval $data --resume "$at"
    [ -s log ] && [ -s "$(ls tb$signal/*)" ] || fail "$signal: no log, or no events"
done
echo "nothing half-written was taken for whole"
