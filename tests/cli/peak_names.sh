#!/bin/sh
# plan names what lives at the peak by its name in the file or by the layer that makes it, and by
# its shape: in its table, its JSON, its page, and where a budget is too small.
#   sh tests/cli/peak_names.sh BUILD-FOLDER
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export LOWERSET_PROBE=off
n=0
fail() { echo "FAIL $1"; exit 1; }
"$lowerset" model gpt --depth=2 --width=16 --heads=2 --vocab=300 --context=16 --batch=0 \
    -o gpt.onnx >said
"$lowerset" model cnn --batch=0 --width=4 --size=8 -o cnn.onnx >said
# The lines behind the peak's, but for the sum of all others.
peak() { sed -n '/^peak at run/,$p' said | sed '1d; / in [0-9]* more$/d'; }
for options in "gpt.onnx" "gpt.onnx --budget min" "gpt.onnx --head-chunks 4" \
    "gpt.onnx --lora r=2 --precision bf16" "cnn.onnx --optimizer adam" "cnn.onnx --store-gradients"
do
    # shellcheck disable=SC2086
    "$lowerset" plan $options --batch 4 -q --plan-effort 1 --report page.html >said
    [ "$(peak | wc -l)" -ge 2 ] || fail "$options: no values at the peak"
    peak | grep -Evq '\[[0-9x]+\]( \((bf16|f16)\))?$|\[scalar\]$|its workspace$' \
        && fail "$options: without a shape: $(peak)"
    peak | grep -q '%' && fail "$options: a number for a name: $(peak)"
    grep -q 'class="l name">%' page.html && fail "$options: a number for a name in the page"
    # shellcheck disable=SC2086
    "$lowerset" plan $options --batch 4 -q --plan-effort 1 --json | grep '"label"' >labels
    grep -q '%' labels && fail "$options: a number for a label: $(grep % labels)"
    n=$((n + $(wc -l <labels)))
done
"$lowerset" plan gpt.onnx --batch 4 -q --plan-effort 1 --strategy none >said
peak | grep -q " backward of loss \[4x16x300\]$" || fail "no scores: $(peak)"
"$lowerset" plan gpt.onnx --batch 4 -q --plan-effort 1 --budget 1000 2>said \
    && fail "a plan within 1000 bytes"
grep -Eq "the largest '[^%']* \[[0-9x]+\]' of" said || fail "a budget too small: $(cat said)"
echo "$n values at peaks have names and shapes"
