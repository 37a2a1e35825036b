#!/bin/sh
# The sources of a plan's costs, as a user sets them: calibrate, --machine, --profile, --costs.
#   sh tests/whole/costs.sh BUILD-FOLDER
# LS_SANITIZED: uses the built-in machine instead of calibrating, because compiling the programs of calibrate with
# sanitizers takes minutes.
set -eu
LOWERSET=$(cd "$1" && pwd)/lowerset
OUT=$(mktemp -d)
trap 'rm -rf "$OUT"' EXIT
XDG_CONFIG_HOME=$OUT/config
export XDG_CONFIG_HOME
passed=0
failed=0

check() {       # NAME COMMAND...
    name=$1
    shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL $name"; fi
}
says() { grep -q -- "$1" "$2"; }
ends() {        # CODE COMMAND...: its exit code
    want=$1
    shift
    got=0
    "$@" >"$OUT/out" 2>"$OUT/err" || got=$?
    [ "$got" = "$want" ]
}

"$LOWERSET" model mlp --batch=16 --width=64 -o "$OUT/mlp.onnx"
"$LOWERSET" model mlp --batch=32 --width=64 -o "$OUT/other.onnx"

check "plans say which costs" ends 0 "$LOWERSET" plan "$OUT/mlp.onnx"
check "the built-in machine is the default" says 'machine cpu (built in)' "$OUT/out"
# Products of bfloat16 in AMX tiles: a machine of their own, where the program is made for a processor that has them.
own='machine cpu (built in)'
if grep -q amx_bf16 /proc/cpuinfo && grep -q amx_tile /proc/cpuinfo; then
    own='machine cpu-amx (built in, as this processor has AMX tiles)'
fi
"$LOWERSET" model cnn --size=24 -o "$OUT/cnn.onnx"
check "plans in bf16" ends 0 "$LOWERSET" plan "$OUT/cnn.onnx" --batch=8 --precision=bf16
check "take the machine of tiles for this processor" says "$own" "$OUT/out"
compile() { "$LOWERSET" compile "$OUT/cnn.onnx" --batch=8 --precision=bf16 -S -o "$OUT/cnn.c" "$@"; }
case $own in
*amx*) check "which compile tells without being asked" ends 0 compile
    check "by its name" says 'a step of about .* by machine cpu-amx' "$OUT/err" ;;
esac
check "but not in pairs" ends 0 compile -v --bf16-sums=pairs
check "which say so" says 'machine cpu (built in)' "$OUT/err"
check "nor for another processor" ends 0 compile -v -march=x86-64
check "which says so, too" says 'machine cpu (built in)' "$OUT/err"
check "there 3x3 convolutions go by Winograd's algorithm" says ls_wino "$OUT/cnn.c"
check "and in tiles not" ends 0 compile --machine=cpu-amx
check "on any host" ends 1 grep -q ls_wino_work "$OUT/cnn.c"

if [ -n "${LS_SANITIZED:-}" ]; then
    mkdir -p "$OUT/config/lowerset"
    sed 's/^name .*/name calibrated/' "$(dirname "$0")/../../compiler/machines/cpu.machine" \
        >"$OUT/config/lowerset/machine"
else
    check "calibrate writes where plans look" ends 0 "$LOWERSET" calibrate --quick
fi
check "its file is there" [ -s "$OUT/config/lowerset/machine" ]
check "plans find it" ends 0 "$LOWERSET" plan "$OUT/mlp.onnx"
check "and say so" says 'machine calibrated (.*/config/lowerset/machine)' "$OUT/out"
check "a name overrules it" ends 0 "$LOWERSET" plan "$OUT/mlp.onnx" --machine=l4 --json
check "in JSON too" says '"costs":.*machine l4 (built in)' "$OUT/out"
check "no such machine is a usage error" ends 2 "$LOWERSET" plan "$OUT/mlp.onnx" --machine=abacus
check "that names those there are" says 'cpu cpu-amx h200 h100 a100 l4 rtx4090' "$OUT/err"

"$LOWERSET" compile "$OUT/mlp.onnx" -O1 -o "$OUT/mlp"
"$OUT/mlp" --data synthetic --steps 20 --progress none --profile "$OUT/mlp.json" >/dev/null
check "a profile gives costs" ends 0 "$LOWERSET" plan "$OUT/mlp.onnx" --costs="$OUT/mlp.json"
check "every node is found" says 'measured in .* (\([0-9]*\) of \1 nodes' "$OUT/out"
check "another batch is refused" ends 2 "$LOWERSET" plan "$OUT/other.onnx" --costs="$OUT/mlp.json"
check "with both batches" says 'with batch 16, this is 32' "$OUT/err"

echo 'lowerset-machine 7' >"$OUT/config/lowerset/machine"
check "a broken machine file is an error" ends 2 "$LOWERSET" plan "$OUT/mlp.onnx"
check "with its line" says 'machine:1: a version' "$OUT/err"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
