#!/bin/sh
# --export-external: the model in two files is the model in one, with adapters as nodes, merged and
# in 16 bits; and what is refused before a run begins.
#   sh tests/whole/external_export.sh BUILD-FOLDER SOURCE-FOLDER
# LS_WHOLE: also with more than 2 GiB of weights, where disk and memory suffice.
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
inside=$(cd "$2" && pwd)/tests/whole/external_export.py
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
export LOWERSET_PROBE=off XDG_CONFIG_HOME="$out/config"
fail() { echo "FAIL $*"; [ ! -f said ] || tail -n 5 said; exit 1; }
run="--data synthetic:8 --seed 1 --steps 2 --lr 1e-2 --progress none"

built() {
    program=$1
    shift
    "$lowerset" compile "$@" -q -O 0 --plan-effort 1 -o "$program" >said 2>&1 || fail "compile $*"
}
evaluated() {
    built reader "$1" --batch 4
    ./reader --data synthetic:8 --seed 3 --eval --progress none 2>said | grep val_loss
}

# in_two PROGRAM OPTION...: what the pair says is what the file says, and lowerset reads it
in_two() {
    # shellcheck disable=SC2086
    "./$@" $run --export one.onnx >said 2>&1 || fail "$*"
    rm -rf two
    mkdir two
    # shellcheck disable=SC2086
    "./$@" $run --export two/model.onnx --export-external >said 2>&1 || fail "$*: two files"
    [ "$(ls two)" = "model.onnx
model.onnx.data" ] || fail "$*: there are $(ls two)"
    [ "$(wc -c <two/model.onnx)" -lt 40000 ] || fail "$*: the model has its weights"
    python3 "$inside" one.onnx two/model.onnx >said 2>&1 || fail "$*: $(cat said)"
    [ -n "$(evaluated one.onnx)" ] && [ "$(evaluated one.onnx)" = "$(evaluated two/model.onnx)" ] \
        || fail "$*: the pair computes something else"
}

"$lowerset" model gpt --depth=2 --width=32 --heads=2 --vocab=96 --context=16 --batch=0 -o gpt.onnx \
    >said
built full gpt.onnx --batch 4
in_two full
in_two full --export-precision f16
in_two full --export-precision bf16
built nodes gpt.onnx --batch 4 --lora r=4 --optimizer adamw
in_two nodes
built merged gpt.onnx --batch 4 --lora r=4 --optimizer adamw --merge
in_two merged
built packed gpt.onnx --batch 4 --lora r=4 --quantize-frozen nf4 --merge
in_two packed
built averaged gpt.onnx --batch 4 --ema 0.9
in_two averaged

refused() {     # WHAT OPTION...
    what=$1
    shift
    # shellcheck disable=SC2086
    ! ./full $run "$@" >said 2>&1 || fail "$* is not refused"
    grep -qF -- "$what" said || fail "$*: no '$what'"
}
refused "--export-external is for --export FILE" --export-external
refused "is a device or a pipe" --export /dev/null --export-external
ln -s one.onnx link.onnx
refused "link.onnx is a link" --export link.onnx --export-external
refused "writes its weights to m.onnx.data, and --log writes it" --export m.onnx \
    --export-external --log m.onnx.data
[ ! -e m.onnx ] && [ ! -e m.onnx.data ] || fail "a refused run left files"
echo "two files are as one"
[ -n "${LS_WHOLE:-}" ] || exit 0

free=$(($(df -k . | sed -n '2s/ *[^ ]* *[^ ]* *[^ ]* *\([0-9]*\).*/\1/p') / 1024))
memory=$(($(sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo) / 1024))
[ $free -gt 9000 ] && [ $memory -gt 5000 ] || {
    echo "2.2 GiB of weights are left out: $memory MiB of memory, $free of disk"
    exit 0
}
"$lowerset" model mlp --width=17408 --size=4 --depth=3 --batch=0 --weights=external -o large.onnx
"$lowerset" compile large.onnx --batch 2 --optimizer sgd -O 0 -q -o large
./large --data synthetic:4 --steps 1 --progress none --export trained.onnx >said 2>&1 \
    || fail "an export of more than 2 GiB"
[ "$(wc -c <trained.onnx)" -lt 100000 ] || fail "the weights are in the model"
[ "$(wc -c <trained.onnx.data)" -gt 2147483647 ] || fail "the weights are not beside the model"
"$lowerset" plan trained.onnx --batch 2 -q >said 2>&1 || fail "the large model is not read"
