#!/bin/sh
# The sources of a plan's costs, as a user sets them: calibrate, --machine, --profile, --costs.
#   sh tests/whole/costs.sh BUILD-FOLDER
# LS_SANITIZED: uses the built-in machine instead of calibrating, because compiling the programs of
# calibrate with sanitizers takes minutes.
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
# Products of bfloat16 in AMX tiles: a machine of their own, where the program is made for a
# processor that has them.
own='machine cpu (built in)'
if grep -q amx_bf16 /proc/cpuinfo && grep -q amx_tile /proc/cpuinfo; then
    own='machine cpu-amx (built in, as this processor has AMX tiles)'
fi
"$LOWERSET" model cnn --size=24 -o "$OUT/cnn.onnx"
check "plans in bf16" \
    ends 0 "$LOWERSET" plan "$OUT/cnn.onnx" --plan-effort=1 --batch=8 --precision=bf16
check "take the machine of tiles for this processor" says "$own" "$OUT/out"
compile() {
    "$LOWERSET" compile "$OUT/cnn.onnx" --plan-effort=1 --batch=8 --precision=bf16 --emit=c \
        -o "$OUT/cnn.c" "$@"
}
case $own in
*amx*) check "which compile tells without being asked" ends 0 compile
    check "by its name" says 'a step of about .* ms (cpu-amx, ' "$OUT/err"
    # f32 and bf16 are told of the same machine.
    check "plans in f32" ends 0 "$LOWERSET" plan "$OUT/cnn.onnx" --plan-effort=1 --batch=8
    check "take that machine for the time, too" says \
        'a step takes .* ms (cpu-amx, .*by the costs of machine cpu (built in)' "$OUT/out" ;;
esac
check "but not in pairs" ends 0 compile -v --bf16-sums=pairs
check "which say so" says 'machine cpu (built in)' "$OUT/err"
check "nor for another processor" ends 0 compile -v -march=x86-64
check "which says so, too" says 'machine cpu (built in)' "$OUT/err"
check "there 3x3 convolutions go by Winograd's algorithm" says ls_wino "$OUT/cnn.c"
check "and in tiles not" ends 0 compile --machine=cpu-amx
check "on any host" ends 1 grep -q ls_wino_work "$OUT/cnn.c"

# The time is that of the program's threads; the probe of this computer changes what people read,
# and no file.
step() { sed -n 's/.* a step takes \([0-9.]*\) ms (\(.*\)); the plan .*/\1 \2/p' "$OUT/out"; }
export LOWERSET_PROBE=off
for n in 1 2 4; do
    check "a step with $n threads" ends 0 "$LOWERSET" plan "$OUT/mlp.onnx" --threads $n \
        --plan-json "$OUT/plan$n.json"
    step >"$OUT/step$n"
done
check "names them" says 'cpu.*, 1 thread$' "$OUT/step1"
check "as they are" says 'cpu.*, 4 threads$' "$OUT/step4"
check "and more threads take less time" awk \
    'FNR == 1 { t[FILENAME] = $1; if (NR > 1 && $1 >= last) exit 1; last = $1 }' \
    "$OUT/step1" "$OUT/step2" "$OUT/step4"
check "compile says it, too" ends 0 "$LOWERSET" compile "$OUT/mlp.onnx" --emit=c \
    -o "$OUT/mlp.c" --threads 3
check "with threads" says 'of a step of about .* ms (cpu.*, 3 threads)' "$OUT/err"
mv "$OUT/mlp.c" "$OUT/off.c"
check "without --threads all cores count" ends 0 "$LOWERSET" plan "$OUT/mlp.onnx" \
    --plan-json "$OUT/off.json"
check "all of them" says "ms (cpu.*, $(nproc) thread" "$OUT/out"
check "and no probe is said" ends 1 grep -q probed "$OUT/out"
"$LOWERSET" plan "$OUT/mlp.onnx" --json >"$OUT/off.summary"
unset LOWERSET_PROBE
check "a probe scales what is told" ends 0 "$LOWERSET" plan "$OUT/mlp.onnx" \
    --plan-json "$OUT/on.json"
check "and says so" says "ms (cpu.*, $(nproc) threads*, probed); " "$OUT/out"
check "the plan is the same" cmp "$OUT/off.json" "$OUT/on.json"
"$LOWERSET" plan "$OUT/mlp.onnx" --json >"$OUT/on.summary"
check "so is the summary" cmp "$OUT/off.summary" "$OUT/on.summary"
check "which names machine, threads and precision" says '"machine":.*"cpu"' "$OUT/on.summary"
check "compile probes" ends 0 "$LOWERSET" compile "$OUT/mlp.onnx" --emit=c \
    -o "$OUT/mlp.c" --threads 3
check "and says so" says 'of a step of about .* ms (cpu.*, 3 threads, probed)' "$OUT/err"
check "but prints the same program" cmp "$OUT/off.c" "$OUT/mlp.c"
check "a machine that is named is not scaled" ends 0 "$LOWERSET" plan "$OUT/mlp.onnx" --machine cpu
check "in its own threads" says 'ms (cpu, 2 threads); ' "$OUT/out"

# Plans by other costs are not compared.
against() { ends 2 "$LOWERSET" plan "$OUT/mlp.onnx" "$@"; }
check "another number of threads" against --threads 2 --against "$OUT/plan1.json"
check "is not comparable" says 'not comparable: its costs are of 1 thread, here of 2' "$OUT/out"
check "another machine" against --machine l4 --against "$OUT/off.json"
check "is not comparable, either" says 'not comparable: its costs are of machine cpu, here of l4' \
    "$OUT/out"
check "nor another precision" against --precision f64 --against "$OUT/off.summary"
check "in whatever bytes" says 'not comparable: ' "$OUT/out"
check "as bf16" against --machine cpu --precision bf16 --against "$OUT/off.summary"
check "by its name" says 'not comparable: it computes in f32, this plan in bf16' "$OUT/out"
check "the same is" ends 0 "$LOWERSET" plan "$OUT/mlp.onnx" --against "$OUT/off.json"

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
