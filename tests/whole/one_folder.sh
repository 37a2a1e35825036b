#!/bin/sh
# Two programs of ranks at once: the second is refused the folder and the log of the first, whose
# ranks share them; and a run that is killed leaves neither held.
#   sh tests/whole/one_folder.sh BUILD-FOLDER
set -eu
lowerset=$1/lowerset
dir=$(mktemp -d)
job=
trap '[ -z "$job" ] || kill -9 $job 2>/dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAIL $1: $(cat err)"; exit 1; }
# refused WORDS OPTIONS...
refused() {
    words=$1 code=0
    shift
    ./t $run "$@" >out 2>err || code=$?
    [ "$code" = 2 ] && grep -qF -- "$words" err || fail "exit $code, not 2 with '$words'"
}
"$lowerset" model mlp --batch=0 --width=8 --size=4 -o net.onnx >said
"$lowerset" compile net.onnx --batch 8 --ranks 2 --opt 0 -q -o t
run="--data synthetic:16 --progress none --epochs 100000000"
last() { ls ck 2>said | sed -n 's/^step-0*\([0-9]*\)\.safetensors$/\1/p' | tail -n 1; }

./t $run --save ck --save-every 1 --keep-last 2 --log log >first 2>&1 &
job=$!
for wait in $(seq 600); do
    [ -z "$(last)" ] || break
    sleep 0.1
done
[ -n "$(last)" ] || fail "no checkpoint: $(cat first)"
refused "--save=ck: another run is saving its checkpoints there" --save ck --resume auto
refused "--save=ck: another run is saving its checkpoints there" --save ck --overwrite
refused "--log=log: another run is writing this log" --log log
kill -0 $job || fail "the first run has ended: $(cat first)"
kill -TERM $job
wait $job || true
job=
grep -q "interrupted after step" first || fail "no checkpoint at the end: $(cat first)"
steps=$(($(last) + 2))
./t $run --save ck --log log --resume auto --steps $steps >out 2>err \
    || fail "the folder is still held"
[ "$(last)" = $steps ] || fail "not step $steps but $(last)"
refused "--save=ck holds checkpoints of another run, up to step $steps" --save ck
echo "one folder, one run"
