#!/bin/sh
# ONNX's own tests of Attention, which came with opset 23, later than the test data of
# distributions: a selection that covers every supported form.
#   sh tests/compiler/attention_nodes.sh ONNX-NODES ARCHIVE
#   exits 77 when the archive is missing
set -eu
program=$1
export LS_WHOLE=1          # all requested cases of the archive
archive=$2
[ -f "$archive" ] || { echo "skipped: $archive is missing"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for name in 3d_gqa_causal 3d_diff_heads_sizes_attn_mask 4d_gqa 4d_attn_mask_bool_4d \
    4d_attn_mask_3d_causal \
    4d_diff_heads_sizes_scaled; do
    echo "node/test_attention_$name"
done >"$work/list"
tar -xJf "$archive" -C "$work" -T "$work/list"
"$program" "$work/node" >"$work/out" || { cat "$work/out"; exit 1; }
tail -n 1 "$work/out"
grep -q '^6 passed, 0 failed, 0 skipped' "$work/out"
