#!/bin/sh
# What is stored in 16 bits is what tests/cli/precision_table.txt says, for both types.
#   sh tests/cli/precision_table.sh LOWERSET TABLE
# A change of meaning: lowerset ops --precision=bf16 >tests/cli/precision_table.txt
set -eu
OUT=$(mktemp -d)
trap 'rm -rf "$OUT"' EXIT
"$1" ops --precision=bf16 >"$OUT/bf16"
diff "$2" "$OUT/bf16" || { echo "FAIL bf16 has another meaning"; exit 1; }
"$1" ops --precision=f16 | sed 's/f16/bf16/g' | tr -s ' ' >"$OUT/f16"
tr -s ' ' <"$2" | diff - "$OUT/f16" || { echo "FAIL f16 has another meaning"; exit 1; }
