#!/bin/sh
# --head-chunks: a cross-entropy over a vocabulary by chunks of positions has the bits of the whole
# head, in its losses and in what is trained, for every number of chunks, budget and number of
# threads; and takes less memory.
#   sh tests/whole/head_chunks.sh BUILD-FOLDER
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
export LOWERSET_PROBE=off
fail() { echo "FAIL $*"; [ ! -f said ] || tail -n 5 said; exit 1; }

"$lowerset" model gpt --depth=1 --width=8 --heads=2 --vocab=24 --context=6 --batch=0 \
    -o gpt.onnx >said
"$lowerset" model mlp --batch=0 --width=8 --size=4 -o mlp.onnx >said

# trained NAME MODEL THREADS OPTION...: NAME.onnx and NAME.losses of 8 updates; a short last batch
trained() {
    name=$1 model=$2 threads=$3
    shift 3
    "$lowerset" compile "$model" --batch "$batch" -q -O 0 --plan-effort 1 "$@" -o net >said 2>&1 \
        || fail "compile $*"
    # shellcheck disable=SC2086
    ./net --data "synthetic:$samples" --seed 3 --threads "$threads" --lr 0.1 --epochs 2 --log log \
        $program --no-export-notes --progress none --export "$name.onnx" >said 2>&1 \
        || fail "the program of $*"
    grep -o '"loss":[^,}]*' log >"$name.losses"
    ./net --data "synthetic:$samples" --eval --progress none 2>&1 | grep -o 'val_loss [-0-9.e]*' \
        >>"$name.losses"
    rm -f log
}
few() { [ -z "${LS_WHOLE:-}" ]; }
passed=0 batch=4 samples=14 way= program=
# same MODEL CHUNKS OPTION...
same() {
    model=$1 chunks=$2
    shift 2
    trained whole "$model" 2 "$@"
    for n in $chunks; do
        # shellcheck disable=SC2086
        trained parts "$model" 1 "$@" $way --head-chunks "$n"
        cmp -s whole.losses parts.losses || fail "$n chunks, $*: other losses"
        cmp -s whole.onnx parts.onnx || fail "$n chunks, $*: other weights"
        passed=$((passed + 1))
    done
}
head="--freeze transformer.wte.weight"
same gpt.onnx "1 2 7 24" $head
same gpt.onnx 5 $head --ignore-index 3 --budget min
same gpt.onnx 3 $head --class-weights "$(seq -s, 1 24)" --ignore-index 7
same gpt.onnx 4 $head --label-smoothing 0.1
same gpt.onnx 3 $head --microbatches 2 --accumulate 2 --optimizer adamw
same gpt.onnx 3 $head --precision bf16
same gpt.onnx 3 $head --precision f16 --loss-scale 1024
same gpt.onnx 3 --lora r=2
same mlp.onnx 2 --freeze 'fc2.*'

# ---- a trained head: chunks end where the blocks of its gradient's sums do ----
"$lowerset" model gpt --depth=1 --width=8 --heads=2 --vocab=24 --context=192 --batch=0 \
    -o long.onnx >said
"$lowerset" model gpt --depth=1 --width=8 --heads=2 --vocab=24 --context=384 --batch=0 \
    -o longer.onnx >said
"$lowerset" model gpt --depth=1 --width=8 --heads=2 --vocab=24 --context=401 --batch=0 \
    -o odd.onnx >said
same long.onnx 3
same long.onnx 3 --optimizer adamw --budget min --accumulate 2
same longer.onnx 3 --precision bf16             # of sums in pairs and in tiles
same longer.onnx 2 --precision bf16 --bf16-sums pairs
same long.onnx 3 --precision f16 --loss-scale 1024
same long.onnx 5 --precision f64
same long.onnx 2 --ignore-index 3 --label-smoothing 0.1 --microbatches 2
same odd.onnx "2 5"
batch=600 samples=1400
same mlp.onnx 2 --freeze fc2.bias           # its update makes the gradient of the whole head
same mlp.onnx 2 --freeze fc2.bias --store-gradients
batch=4 samples=14
! grep -q "adds up by chunks" said || fail "chunks at ends of blocks are told of"

# ---- another number of chunks is told of; its own numbers are those of every budget ----
"$lowerset" compile gpt.onnx --batch 4 -O 0 --plan-effort 1 --head-chunks 3 -o net >said 2>&1
grep -q "'transformer.wte.weight' is trained, and its gradient adds up by chunks" said \
    || fail "a trained head is not told of"
"$lowerset" compile mlp.onnx --batch 600 -O 0 --plan-effort 1 --head-chunks 2 -o net >said 2>&1
grep -q "'fc2.bias' is trained, and its gradient adds up by chunks" said \
    || fail "a trained bias is not told of"
! grep -q "'fc2.weight' is trained" said || fail "a weight with the bits of the whole is told of"
trained one gpt.onnx 1 --head-chunks 3
trained other gpt.onnx 2 --head-chunks 3 --budget min
cmp -s one.onnx other.onnx || fail "a budget changes the bits of a trained head in chunks"

# ---- the gradient in parts, which the update makes: chunks end anywhere ----
"$lowerset" model gpt --depth=1 --width=32 --heads=2 --vocab=100 --context=24 --batch=0 \
    -o tied.onnx >said
way="--head-gradient parts"
same tied.onnx "1 7"
same tied.onnx 3 --optimizer adamw --budget min --ema 0.9 --clip-value 0.001
same tied.onnx 5 --optimizer adam8 --ignore-index 3
few || same tied.onnx 3 --label-smoothing 0.1 --precision f64
few || same tied.onnx 2 --class-weights "$(seq -s, 1 100)" --ignore-index 7
same tied.onnx 3 --precision bf16
few || same tied.onnx 3 --precision bf16 --bf16-sums pairs
program="--export-member 1"
same tied.onnx 2 --ensemble 2 --randomness different
program=
few || same tied.onnx "2 3" --freeze 'transformer.h.*'
same mlp.onnx 2 --freeze fc2.bias
"$lowerset" plan tied.onnx --batch 4 --head-chunks 7 $way -q --plan-effort 1 --graph-json g.json \
    >said || fail "plan"
! grep -q 'matmul_part\|"op": *"gather_grad"' g.json || fail "the gradient is a value"
way=

# ---- memory ----
"$lowerset" model gpt --depth=1 --width=8 --heads=2 --vocab=4000 --context=32 --batch=0 \
    -o big.onnx >said
least() {
    "$lowerset" plan big.onnx --batch 4 --plan-effort 1 $head --budget min --json -q "$@" \
        | grep -o '"arena_bytes":[^0-9]*[0-9]*' | head -n 1 | grep -o '[0-9]*$'
}
whole=$(least) parts=$(least --head-chunks 8)
[ $((parts * 3)) -lt "$whole" ] || fail "chunks take $parts bytes, the whole head $whole"

# ---- as many chunks as a budget needs ----
"$lowerset" model gpt --depth=1 --width=8 --heads=2 --vocab=400 --context=192 --batch=0 \
    -o wide.onnx >said
gradient=whole
planned() {
    "$lowerset" plan wide.onnx --batch 4 --plan-effort 1 --head-gradient $gradient "$@" \
        >said 2>err
}
# The bytes that the plan takes in all, rounded up.
in_all() { awk '$1 == "total" {print int(($2 + 0.01) * ($3 == "MiB" ? 1048576 : 1024))}' said; }
planned --budget min --head-chunks 2
few=$(in_all)
planned --budget min --head-chunks 3
more=$(in_all)
[ "$more" -lt "$few" ] || fail "3 chunks take $more bytes, 2 take $few"
planned --budget "$few" || fail "no plan of 2 chunks within $few"
grep -q "computed in 2 chunks of positions" err || fail "chunks are not told of: $(cat err)"
planned --budget "$more" || fail "no plan of 3 chunks within $more"
grep -q "computed in 3 chunks of positions" err || fail "not 3 chunks: $(cat err)"
! planned --budget "$more" --head-chunks off || fail "a whole head within $more"
planned --budget min --head-chunks auto
grep -q "computed in 3 chunks of positions" err || fail "not the least: $(cat err)"
planned --budget 1GiB
! grep -q chunks err || fail "chunks where the whole head fits"
! planned --budget 1000 || fail "a plan within 1000 bytes"
grep -q "least budget found with the vocabulary head in 3 chunks" err || fail "said: $(cat err)"
gradient=auto
planned --budget min --head-chunks auto
grep -q "chunks of positions, and the gradient of its weight in parts" err || fail "no parts"
least=$(in_all)
[ "$least" -lt $((more * 8 / 10)) ] || fail "the gradient in parts takes $least, else $more"
planned --budget "$more" || fail "no plan within $more"
! grep -q "in parts" err || fail "the gradient in parts where that is not needed"
same wide.onnx 3
trained by_budget wide.onnx 2 --budget "$least"
cmp -s whole.onnx by_budget.onnx || fail "a budget that needs parts changes the bits"
trained by_budget wide.onnx 2 --budget "$more"
cmp -s whole.onnx by_budget.onnx || fail "a budget changes the bits"

# ---- refusals ----
refused() {
    words=$1
    shift
    code=0
    "$lowerset" compile "$@" -q -o no >said 2>&1 || code=$?
    [ $code -ne 0 ] && grep -q -- "$words" said || fail "not refused: $*"
}
refused "the loss is not one cross-entropy" mlp.onnx --batch 4 --head-chunks 2 --loss mse
refused "5 chunks of 4 rows" mlp.onnx --batch 4 --head-chunks 5
refused "a chunk has positions of several samples" gpt.onnx --batch 4 --head-chunks 2 \
    --grads per-sample
in_parts="--head-chunks 3 --head-gradient parts"
refused "goes with --head-chunks" gpt.onnx --batch 4 --head-gradient parts
refused "is not one of auto whole parts" gpt.onnx --batch 4 --head-chunks 2 --head-gradient some
refused "no update reads the gradient" gpt.onnx --batch 4 $in_parts $head
refused "adds up over several batches" gpt.onnx --batch 4 $in_parts --accumulate 2
refused "adds up over several batches" gpt.onnx --batch 4 $in_parts --microbatches 2
refused "no update reads the gradient" gpt.onnx --batch 4 $in_parts --clip-norm 1
refused "needs the whole gradient" gpt.onnx --batch 4 $in_parts --optimizer lamb
refused "a loss scale do" gpt.onnx --batch 4 $in_parts --precision f16 --loss-scale 1024
refused "do not go together" gpt.onnx --batch 4 $in_parts --stages 2
refused "do not go together" gpt.onnx --batch 4 $in_parts --store-gradients
refused "leave --head-gradient out" gpt.onnx --batch 4 $in_parts --ranks 2
refused "only programs for the CPU" gpt.onnx --batch 4 $in_parts --target cuda
echo "$passed settings have the bits of the whole head; $whole bytes become $parts"
