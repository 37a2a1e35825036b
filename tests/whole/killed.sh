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
# kills COMMAND...: starts it again and again, and kills it after some milliseconds; after each time
# `good` looks at what lies there.
kills() {
    for ms in 2 4 6 8 11 14 18 23 29 36 45 56 70; do
        "$@" >out 2>err &
        job=$!
        sleep "0.0$(printf %02d "$ms")"
        kill -9 $job 2>/dev/null || true
        wait $job 2>/dev/null || true
        job=
        good || fail "killed after $ms ms: $*"
    done
}
# The file of before, or the whole new one.
good() { cmp -s "$at" "$old" || cmp -s "$at" "$new"; }
# replaced OLD NEW COMMAND... FILE: the command writes FILE, which has the bytes of OLD, then NEW.
replaced() {
    old=$1 new=$2
    shift 2
    for at; do :; done
    cp "$old" "$at"
    kills "$@"
    must "$@"
    cmp "$new" "$at" || fail "at its end: $*"
}
many="--data synthetic:40000 --progress none --threads 2"
for form in csv npz; do
    must ./t --data synthetic:50 --predict old.$form
    must ./t $many --predict new.$form
    replaced old.$form new.$form ./t $many --predict at.$form
done
for what in export save-weights; do
    must ./t $data --epochs 1 --$what old.$what
    must ./t $data --epochs 2 --$what new.$what
    replaced old.$what new.$what ./t $data --epochs 2 --$what at.$what
done
awk 'BEGIN { print "a,b,c"
    for (i = 0; i < 30000; i++) print i % 7 ",some words," i }' >table.csv
head -n 10 table.csv >short.csv
must "$lowerset" data pack short.csv -o old.lsd
must "$lowerset" data pack table.csv -o new.lsd
replaced old.lsd new.lsd "$lowerset" data pack table.csv -o at.lsd
# A folder of masks is there with all of them, or not at all.
good() { [ ! -e "$at" ] || { [ "$(ls "$at" | wc -l)" = 200 ] && rm -r "$at"; }; }
must "$lowerset" model unet --width=2 --depth=1 --size=8 --batch=0 --classes=3 -o unet.onnx
must "$lowerset" compile unet.onnx --batch 8 --loss ce --opt 0 --plan-effort 1 -q -o unet
at=masks
kills ./unet --data synthetic:200 --progress none --predict masks/
must ./unet --data synthetic:200 --progress none --predict masks/
good || fail "the folder of masks at its end"
echo "nothing half-written was taken for whole"
