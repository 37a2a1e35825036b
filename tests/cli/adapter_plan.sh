#!/bin/sh
# plan puts adapters beside full tuning: the figures are those of the plans of both, and what the
# adapters keep is r numbers for each position of each module.
#   sh tests/cli/adapter_plan.sh BUILD-FOLDER
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export LOWERSET_PROBE=off
n=0
fail() { echo "FAIL $1"; exit 1; }
"$lowerset" model gpt --depth=2 --width=32 --heads=2 --vocab=96 --context=16 --batch=0 \
    -o gpt.onnx >said
plan() { "$lowerset" plan gpt.onnx --batch 4 -q --plan-effort 1 "$@"; }
# whole NAME FILE: the first number of that name; of NAME FILE, of the row of adapters; full, of all
whole() { tr -d '\t ' <"$2" | grep -o "^\"$1\":[0-9]*" | head -n 1 | grep -o '[0-9]*$'; }
row() { grep -o '"adapters":.*' "$2" | sed 's/"full_tuning".*//' | grep -o "\"$1\":[0-9]*" \
    | grep -o '[0-9]*$'; }
full() { grep -o '"full_tuning":.*' "$2" | grep -o "\"$1\":[0-9]*" | grep -o '[0-9]*$'; }
same() { [ "$2" = "$3" ] || fail "$1: $2 and $3"; n=$((n + 1)); }

for options in "--optimizer adamw" "--ensemble 3" "--precision bf16 --optimizer adam8"; do
    # shellcheck disable=SC2086
    plan $options --lora r=4:c_attn,c_proj --strategy none --json >lora.json
    # shellcheck disable=SC2086
    plan $options --strategy none --json >all.json
    # shellcheck disable=SC2086
    plan $options --strategy chen --json >least.json
    for name in state_bytes kept_bytes no_recompute_arena_bytes; do
        same "$options: $name of adapters" "$(row $name lora.json)" "$(whole $name lora.json)"
        same "$options: $name of all" "$(full $name lora.json)" "$(whole $name all.json)"
    done
    same "$options: least of all" "$(full least_arena_bytes lora.json)" \
        "$(whole least_arena_bytes least.json)"
    ! grep -q '"adapters"' all.json || fail "$options: there are no adapters"
done
# three modules in each of two layers, 4 x 16 positions
plan --lora r=4:c_attn,c_proj --json >lora.json
same "of adapters" "$(row kept_of_adapters_bytes lora.json)" $((6 * 4 * 16 * 4 * 4))
same modules "$(row modules lora.json)" 6
plan --lora r=8:c_attn,c_proj --budget min --json >lora.json
same "of adapters, whatever the budget" "$(row kept_of_adapters_bytes lora.json)" \
    $((6 * 4 * 16 * 8 * 4))

plan --lora r=8:c_attn,c_proj >said
grep -q "^6 adapters, without recomputation; of what they keep, 12.00 KiB are between A and B" \
    said || fail "no sentence: $(cat said)"
grep -Eq "^  adapters +5632 " said || fail "no row of the adapters"
grep -Eq "^  all +29056 " said || fail "no row of full tuning"
# an option that names what only adapters have
plan --lora r=8:c_attn --freeze '*lora_A*' >said
grep -q "with these options there is no program without the adapters" said || fail "no full tuning"
echo "$n figures are those of the plans"
