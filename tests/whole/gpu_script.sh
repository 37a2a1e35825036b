#!/bin/sh
# The script that measures a machine with a GPU also runs without a GPU: dry runs of a check and of
# a measurement, and the page of their results.
#   sh tests/whole/gpu_script.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
BUILD=$1
SOURCE=$2
PYTHON=/usr/bin/python3
[ -x $PYTHON ] && $PYTHON -c 'import numpy' 2>/dev/null || {
    echo "skipped: no $PYTHON with numpy"
    exit 77
}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export PYTHONDONTWRITEBYTECODE=1
unset OUT

fail() { echo "FAIL $*"; cat "$WORK/out"; exit 1; }
gpu() {
    $PYTHON "$SOURCE/bench/gpu.py" "$BUILD" --work "$WORK" --limit 1000 "$@" >"$WORK/out" 2>&1
}

gpu --dry-run --part check --nets mlp || fail "check"
grep -q '^0 failed' "$WORK/out" || fail "check says that something failed"
grep -q 'budgets: \([0-9]*\) of \1 with the same bits' "$WORK/out" \
    || fail "check compares no budgets"
grep -q 'libraries: 1 of 1 with the same bits' "$WORK/out" || fail "check tries no library"
# Budgets are those of the check alone, but in whole sets.
gpu --dry-run --part speed --nets gpt --precisions f32 --seconds 0 \
    --budgets "none${LS_WHOLE:+,75%,50%,min}" || fail "speed"
grep -q 'GPT-2 124M *f32 *2 *lowerset *[0-9.]* ' "$WORK/out" || fail "speed has no row"
# Precisions come in the order asked for, and a command that its limit ends is a note.
$PYTHON - "$SOURCE/bench" >"$WORK/out" 2>&1 <<'END' || fail "order and limits"
import sys
from types import SimpleNamespace as Some
sys.path.insert(0, sys.argv[1])
import gpu_ceilings
import gpu_speed
from gpu_tools import Done
gpu_speed.is_there = lambda s, module: True
for asked in (["bf16", "tf32"], ["tf32", "f32", "bf16"]):
    s = Some(o=Some(who="eager,compile,jax", precisions=",".join(asked), nets="gpt,unet",
                    budgets="none,min", dry_run=False))
    peers = [job[2] for job in gpu_speed.peers_to_run(s)]
    ours = [job[1] for job in gpu_speed.ours_to_run(s, {}) if job[2:] == ("none", False)]
    assert list(dict.fromkeys(peers)) == list(dict.fromkeys(ours)) == asked, (peers, ours)
    assert peers == sorted(peers, key=asked.index), peers
notes, failures = [], []
s = Some(o=Some(python=None, dry_run=False, limit=9), note=notes.append, fail=failures.append,
         record=lambda *a, **k: None,
         say=print, call=lambda argv, limit: Done(124, 9, 
             '{"what": "copy", "value": 4, "unit": "TB/s"}\nended after 9 s'))
gpu_ceilings.run_c = lambda *a: None
gpu_ceilings.convolutions = lambda s: ""
gpu_ceilings.run(s)
assert failures == [] and notes == ["ceilings ended after 9 s, its limit"], (failures, notes)
END
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
