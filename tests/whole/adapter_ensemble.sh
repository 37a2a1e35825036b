#!/bin/sh
# K adapters on one frozen base: member k of an ensemble has the bits of a program of its own with
# the seed or the folder of its own, in all that is exported; the base exists once.
#   sh tests/whole/adapter_ensemble.sh BUILD-FOLDER
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
export LOWERSET_PROBE=off
n=0
fail() { echo "FAIL $*"; [ ! -f said ] || tail -n 5 said; exit 1; }

"$lowerset" model gpt --depth=2 --width=16 --heads=2 --vocab=24 --context=6 --batch=0 \
    -o gpt.onnx >said
"$lowerset" model cnn --batch=0 --width=4 --size=8 -o conv.onnx >said

compiled() { "$lowerset" compile "$model" --batch 4 -q -O 0 --plan-effort 1 "$@" >said 2>&1 \
    || fail "compile $*"; }
run() { "$@" --data synthetic:14 --seed 3 --epochs 2 --progress none >said 2>&1 \
    || fail "$*"; }
# same MODEL SPEC OPTION...: three members of seeds 7, 8, 9 beside three programs
same() {
    model=$1 spec=$2
    shift 2
    compiled --lora "seed=7,$spec" --ensemble 3 "$@" -o many
    [ $# -lt 1 ] || [ "$1" != --ensemble-lanes ] || shift 2
    rm -rf many.d
    run ./many --threads 2 --member-rates 0.1,0.05,0.2 --export-adapter many.d
    for k in 0 1 2; do
        compiled --lora "seed=$((7 + k)),$spec" "$@" -o one
        rate=$(echo 0.1 0.05 0.2 | cut -d ' ' -f $((k + 1)))
        run ./one --threads 1 --lr "$rate" --export-adapter "one.$k"
        cmp -s "many.d/$k/adapter_model.safetensors" "one.$k/adapter_model.safetensors" \
            || fail "$model $spec $*: member $k is not a program of its own"
        cmp -s "many.d/$k/adapter_config.json" "one.$k/adapter_config.json" || fail "config of $k"
        n=$((n + 1))
    done
    cmp -s many.d/0/adapter_model.safetensors many.d/1/adapter_model.safetensors \
        && fail "$model $spec: two members are the same"
    return 0
}
same gpt.onnx r=2
same gpt.onnx r=2:h.1.mlp.c_proj --optimizer adamw
same gpt.onnx r=2,dora,bias=lora_only:c_attn --accumulate 2
same gpt.onnx r=2:c_attn,wpe --precision bf16
same gpt.onnx r=2 --ensemble-lanes 2
same conv.onnx r=2 --budget min

# ---- one member of its own; a merged model; each member from a folder of its own ----
model=gpt.onnx
compiled --lora seed=7,r=2 --ensemble 3 -o many
rm -rf all
run ./many --lr 0.1 --export-adapter all
run ./many --lr 0.1 --export-adapter alone --export-member 2
cmp -s all/2/adapter_model.safetensors alone/adapter_model.safetensors || fail "the member 2 alone"
run ./many --lr 0.1 --export model.onnx --export-member 1
compiled --lora seed=7,r=2 --ensemble 3 --merge -o merging
run ./merging --lr 0.1 --no-export-notes --export merged.onnx --export-member 1
compiled --lora seed=8,r=2 --merge -o merging
run ./merging --lr 0.1 --no-export-notes --export own.onnx
cmp -s merged.onnx own.onnx || fail "the merged member is not a program's"
compiled --adapter all/0,all/1,all/2 --ensemble 3 -o more
rm -rf next
run ./more --lr 0.1 --export-adapter next
for k in 0 1 2; do
    compiled --adapter "all/$k" -o one
    run ./one --lr 0.1 --export-adapter "one.$k"
    cmp -s "next/$k/adapter_model.safetensors" "one.$k/adapter_model.safetensors" \
        || fail "member $k does not begin from its folder"
    n=$((n + 1))
done
# one folder for all: members begin alike
compiled --adapter all/0 --ensemble 2 -o more
rm -rf next
run ./more --lr 0.1 --export-adapter next
cmp -s next/0/adapter_model.safetensors next/1/adapter_model.safetensors || fail "not alike"

# ---- the base exists once ----
state() { "$lowerset" plan gpt.onnx --batch 4 -q --strategy none --json "$@" | tr -d '\t ' \
    | grep -o '^"state_bytes":[0-9]*' | grep -o '[0-9]*$'; }
one=$(state --lora r=2) five=$(state --lora r=2 --ensemble 5)
all=$("$lowerset" plan gpt.onnx --batch 4 -q --strategy none --json --lora r=2 \
    | grep -o '"trained_elements":[0-9]*' | head -n 1 | grep -o '[0-9]*$')
[ "$five" -lt $((one + 4 * 3 * 4 * all)) ] || fail "the base is stacked: $one, $five"

# ---- what no member changes is computed once in a step, and exists once ----
shared() { "$lowerset" plan gpt.onnx --batch 4 -q --plan-effort 1 --json "$@" \
    | grep -o '"shared":.*' | grep -o '"bytes":[0-9]*' | grep -o '[0-9]*$'; }
few=$(shared --lora 'r=2:transformer.h.1.*' --ensemble 3)
[ "$few" = "$(shared --lora 'r=2:transformer.h.1.*' --ensemble 9)" ] || fail "grows with members"
# the input of the last layer, and of its norm and first product what members read: 24 x (1 + 1 + 3)
# channels of 16 numbers
[ "$few" -eq $((24 * 5 * 16 * 4)) ] || fail "$few bytes are shared"
[ -z "$(shared --lora r=2 --ensemble 3 --ensemble-batches each)" ] || fail "batches differ"
[ -z "$(shared --ensemble 3)" ] || fail "all is trained"
# not where its results do not fit
least=$("$lowerset" plan gpt.onnx --batch 4 -q --plan-effort 1 --budget min --ensemble 3 \
    --lora r=2 | sed -n 's/^  total *\([0-9.]*\) KiB.*/\1/p' | awk '{print int($1 * 1024) + 64}')
"$lowerset" plan gpt.onnx --batch 4 -q --plan-effort 1 --ensemble 3 --lora r=2 \
    --budget "$least" >said 2>&1 || fail "the least budget of $least has no plan"
! grep -q "^  shared" said || fail "the least memory has nothing that outlives a member's steps"

# ---- parts of a model that are frozen otherwise ----
model=gpt.onnx
compiled --ensemble 2 --train-only 'transformer.ln_f.*' --optimizer adamw -o pair
run ./pair --member-rates 0.1,0.02 --no-export-notes --export two.onnx --export-member 1
compiled --train-only 'transformer.ln_f.*' --optimizer adamw -o one
run ./one --lr 0.02 --no-export-notes --export one.onnx
cmp -s one.onnx two.onnx || fail "an ensemble of norms is not a program's"

# ---- refusals ----
refused() {
    words=$1
    shift
    code=0
    "$@" >said 2>&1 || code=$?
    [ $code -ne 0 ] && grep -q -- "$words" said || fail "not refused: $*"
}
lower() { "$lowerset" compile gpt.onnx --batch 4 -q -o no "$@"; }
refused "2 folders for 3 members" lower --adapter all/0,all/1 --ensemble 3
mkdir -p other
sed 's/"r":[^0-9]*2/"r": 3/' all/1/adapter_config.json >other/adapter_config.json
cp all/1/adapter_model.safetensors other
refused "says otherwise than that of" lower --adapter all/0,other --ensemble 2
refused "numbered from 0 to 2" ./many --data synthetic:14 --export-adapter x --export-member 3
refused "none is given" ./many --data synthetic:14 --export-member 1
echo "$n members have the bits of programs of their own"
