#!/bin/sh
# The device text is valid CUDA, for floats and doubles, for old and new devices. Its accesses to
# global memory are of 16 bytes, and none is generic except the stores of ls_put4.
#
#   sh tests/codegen/cuda_text.sh SOURCE-FOLDER NVCC
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
wrong=0
for flags in '-arch=sm_80' '-arch=sm_90a' '-arch=sm_90a -DLS_F64'; do
    kernels=8
    case $flags in *LS_F64) kernels=7 ;; esac       # doubles have no products on tensor cores
    # shellcheck disable=SC2086
    "$2" -ptx $flags -fmad=false -Werror all-warnings -I"$1" "$1/tests/codegen/cuda_text.cu" \
        -o "$dir/text.ptx"
    [ "$(grep -c '^[.]visible [.]entry [a-z_]*_part' "$dir/text.ptx")" = "$kernels" ] || {
        echo "$flags: not all kernels are there"
        wrong=1
    }
    for wide in 'ld.global.v[24]' 'st.global.v[24]'; do
        grep -q "$wide" "$dir/text.ptx" || { echo "$flags: no $wide"; wrong=1; }
    done
    awk '/entry channels_part/, /^}/' "$dir/text.ptx" >"$dir/channels"
    grep -q 'ld.global.v[24]' "$dir/channels" || {
        echo "$flags: no wide loads by channels"
        wrong=1
    }
    if grep -E '	st\.[a-z.]*[fbu](32|64)' "$dir/channels" | grep -v 'st[.]v'; then
        echo "$flags: small stores by channels"
        wrong=1
    fi
    awk '/entry tensor_part/, /^}/' "$dir/text.ptx" >"$dir/tensor"
    products=$(grep -c 'mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32' "$dir/tensor") || true
    [ "$products" = $((64 * (kernels - 7))) ] || {
        echo "$flags: $products products on tensor cores"
        wrong=1
    }
    if grep -E '[.]local|(ld|st)[.](v4[.]|f32|u32|b32)' "$dir/tensor"; then
        echo "$flags: fragments that are not in registers, or generic accesses to tiles"
        wrong=1
    fi
    if awk '/entry (channels|functions|tensor)_part/, /^}/ {next} {print}' "$dir/text.ptx" \
        | grep -En '	(ld|st)\.(global\.)?(f32|b32|u32|u64)'; then
        echo "$flags: small or generic accesses"
        wrong=1
    fi
    if awk '/entry (pointwise|update)_part/, /^}/' "$dir/text.ptx" | grep fma; then
        echo "$flags: a product contracted with its sum"
        wrong=1
    fi
done
exit $wrong
