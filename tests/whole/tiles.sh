#!/bin/sh
# --tiles: values that are computed in parts of the samples have the bits of whole ones, in losses,
# gradients, statistics and weights, for every number of parts, budget and number of threads; and a
# budget that whole values do not keep has a plan.
#   sh tests/whole/tiles.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
. "$(dirname "$0")/../support/tiled_runs.sh"
judge=$tests/data/judge/judge.py

written tiled_net small.onnx
"$lowerset" model unet --size=48 --width=16 --depth=1 --batch=0 -o unet.onnx >said
"$lowerset" model resnet18 --size=32 --width=16 --stem=cifar --batch=0 -o resnet.onnx >said
"$lowerset" model vgg16 --size=64 --width=8 --classes=10 --batch=0 -o vgg.onnx >said

samples=17      # an epoch ends with a short batch
on="--batch 7 --bn train --dropout on"
few || same small.onnx "2@16KiB 7@16KiB 5@1B" $on
same small.onnx "3@16KiB" $on --budget min
"$lowerset" model unet --size=24 --width=8 --depth=1 --batch=0 --up=bilinear -o linear.onnx >said
same linear.onnx "3@1KiB" --batch 4
few || same small.onnx "3@16KiB" $on --no-alternatives --no-inplace
few || same small.onnx "3@16KiB" $on --precision f64
same small.onnx "3@8KiB" $on --precision bf16
few || same small.onnx "3@8KiB" $on --precision f16
samples=20
few || same small.onnx "2@16KiB" --batch 6 --bn train --dropout on --microbatches 2 --ema 0.9
same small.onnx "3@16KiB" --batch 6 --bn train --dropout off --accumulate 2 --clip-norm 1 \
    --optimizer adamw
few || same small.onnx "2@16KiB" --batch 8 --bn train --dropout off --ranks 2
samples=8
same unet.onnx "2@64KiB" --batch 3
few || same unet.onnx "3@128KiB" --batch 3 --budget min
few || same resnet.onnx "2@100KiB" --batch 3 --budget 60%
samples=17
[ -z "${LS_WHOLE-}" ] || for net in small unet resnet vgg; do
    same $net.onnx "2@16KiB 3@16KiB 7@16KiB" --batch 7
done

# ---- evaluation is in parts, too ----
"$lowerset" compile small.onnx -q -O 0 $on --tiles 3@16KiB -o net >said 2>&1 || fail "compile"
./net --data synthetic:17 --eval --progress none 2>&1 | grep -o 'val_loss [-0-9.e]*' >parts.eval
"$lowerset" compile small.onnx -q -O 0 $on -o net >said 2>&1 || fail "compile"
./net --data synthetic:17 --eval --progress none 2>&1 | grep -o 'val_loss [-0-9.e]*' >whole.eval
[ -s whole.eval ] && cmp -s whole.eval parts.eval || fail "evaluation in parts"

# ---- memory ----
"$lowerset" plan vgg.onnx --batch 8 --budget min --plan-effort 1 --json -q >whole.json
"$lowerset" plan vgg.onnx --batch 8 --budget min --plan-effort 1 --json -q --tiles 8@512KiB \
    >parts.json
whole=$(arena whole.json) parts=$(arena parts.json)
[ "$parts" -lt $((whole * 8 / 10)) ] || fail "the least arena in parts is $parts, whole $whole"
[ "$(number parts.json parts)" = 8 ] || fail "plan --json says nothing of the parts"
region=$(number parts.json whole_bytes)
[ "$region" = $((8 * $(number parts.json part_bytes))) ] || fail "plan --json: regions of $region"
"$lowerset" plan vgg.onnx --batch 8 --plan-effort 1 -q --tiles 8@512KiB >said
grep -q 'features.0 to .*: the largest kernel reads and writes .* whole, .* in parts' said \
    || fail "plan says nothing of the region"
"$lowerset" plan vgg.onnx --batch 8 --budget min --plan-effort 1 --json -q --tiles auto \
    >auto.json 2>said || fail "--tiles auto"
[ "$(arena auto.json)" -le "$parts" ] || fail "--tiles auto finds $(arena auto.json), not $parts"
total=$(number auto.json bytes_without)
less=$((total - (whole - parts) / 2))
"$lowerset" plan vgg.onnx --batch 8 --budget $less --plan-effort 1 >said 2>&1 \
    || fail "no plan within a budget that parts keep"
grep -q 'parts of the samples' said || fail "nothing is said of parts"
if "$lowerset" plan vgg.onnx --batch 8 --budget $less --plan-effort 1 --tiles off >said 2>&1; then
    fail "--tiles=off has a plan of $less bytes"
fi
if "$lowerset" plan vgg.onnx --batch 8 --budget $less --plan-effort 1 --no-tiles >said 2>&1; then
    fail "--no-tiles has a plan of $less bytes"
fi

# ---- another program replays plans in parts, and knows nothing of parts ----
for budget in min 60%; do
    "$lowerset" plan small.onnx $on --budget $budget --plan-effort 5 -q --tiles 3@16KiB \
        --plan-json tiled.plan.json --graph-json tiled.graph.json >said || fail "plan --plan-json"
    "${PYTHON:-python3}" "$judge" tiled.graph.json tiled.plan.json >said 2>&1 \
        || fail "the judge refuses a plan in parts at $budget"
done
# Strategies for values in parts go by passes: statistics of batch norms are between them.
passes=$(grep -o '"pass": *[0-9]*' tiled.graph.json | sort -u | wc -l)
[ "$passes" -ge 4 ] || fail "the graph has $passes passes"

# ---- what is refused ----
for other in "--stages 2" "--grads per-sample" \
    "--dp clip=1,noise=1,delta=1e-5"; do
    refused "do not go together with ${other%% *}" small.onnx $on --tiles 2@16KiB $other
done
refused "N@SIZE" small.onnx $on --tiles 1@16KiB
refused "N@SIZE" small.onnx $on --tiles 16KiB
refused "N@SIZE" small.onnx $on --tiles 2@
refused "opposite of --tiles" small.onnx $on --tiles 2@16KiB --no-tiles
refused "no value of 1073741824 bytes" small.onnx $on --tiles 2@1GiB
echo "$passed programs in parts have the bits of whole ones"
