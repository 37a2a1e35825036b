#!/bin/sh
# The script that measures a machine with a GPU also runs without a GPU: dry runs of a check and of a measurement, and
# the page of their results.
#   sh tests/whole/gpu_script.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
BUILD=$1
SOURCE=$2
PYTHON=/usr/bin/python3
[ -x $PYTHON ] && $PYTHON -c 'import numpy' 2>/dev/null || { echo "skipped: no $PYTHON with numpy"; exit 77; }
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export PYTHONDONTWRITEBYTECODE=1
unset OUT

fail() { echo "FAIL $*"; cat "$WORK/out"; exit 1; }
gpu() { $PYTHON "$SOURCE/bench/gpu.py" "$BUILD" --work "$WORK" --limit 1000 "$@" >"$WORK/out" 2>&1; }

gpu --dry-run --part check --nets mlp || fail "check"
grep -q '^0 failed' "$WORK/out" || fail "check says that something failed"
grep -q 'budgets: \([0-9]*\) of \1 with the same bits' "$WORK/out" || fail "check compares no budgets"
# Budgets are those of the check alone, but in whole sets.
gpu --dry-run --part speed --nets gpt --precisions f32 --seconds 0 --budgets "none${LS_WHOLE:+,75%,50%,min}" || fail "speed"
grep -q 'GPT-2 124M *f32 *2 *lowerset *[0-9.]* ' "$WORK/out" || fail "speed has no row"
# Without PyTorch this part fails, and the script continues. Only whole sets look for a PyTorch.
peers=false
[ -z "${LS_WHOLE:-}" ] || peers=$PYTHON
gpu --dry-run --part ceilings --python "$peers" || true
grep -q "gpu_[a-z]*.c is not built" "$WORK/out" && fail "a program that asks cuDNN"
gpu --docs "$WORK/gpu-check-mlp.json" "$WORK/gpu-speed-gpt.json" --to "$WORK/gpu.md" || fail "docs"
grep -q '^| GPT-2 124M | f32 | 2 | lowerset |' "$WORK/gpu.md" || fail "the page has no table"
if ! command -v nvidia-smi >/dev/null 2>&1; then
    code=0
    gpu --part check || code=$?
    [ $code = 77 ] || fail "without a GPU it ends with $code, not 77"
fi
gpu --part nonsense && fail "an unknown part is taken"
echo "the script for GPUs goes through"
