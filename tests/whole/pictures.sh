#!/bin/sh
# --tiles Nrows@SIZE: values of one picture that are computed in bands of its rows have the bits of
# whole ones, in losses, gradients, statistics and weights, for every number of bands and of
# threads, in 2-D and 3-D; and they take less memory.
#   sh tests/whole/pictures.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
. "$(dirname "$0")/../support/tiled_runs.sh"

written picture_net net2.onnx 2
written picture_net net3.onnx 3
written picture_net loss2.onnx 2 loss
written picture_net loss3.onnx 3 loss
written picture_net nll2.onnx 2 loss nll
"$lowerset" model unet --size=48 --width=16 --depth=1 --batch=0 --up=bilinear -o linear.onnx >said
"$lowerset" model unet --size=48 --width=16 --depth=1 --batch=0 -o unet.onnx >said
"$lowerset" model unet --size=116 --width=16 --depth=2 --batch=0 -o odd.onnx >said
"$lowerset" model unet --size=256 --width=16 --depth=2 --batch=0 --weights=none -o large.onnx >said
samples=5
same unet.onnx "2rows@64KiB" --batch 1
few || same unet.onnx "6rows@1KiB" --batch 1 --budget min --no-alternatives
few || same odd.onnx "7rows@300KiB" --batch 1 --precision f64
on="--batch 1 --bn train --dropout on"
few || same net2.onnx "5rows@1KiB" $on
same net3.onnx "3rows@64KiB" $on
same linear.onnx "3rows@16KiB" --batch 1
few || same linear.onnx "5rows@1KiB" --batch 1 --loss mse
same loss2.onnx "2rows@16KiB 5rows@1KiB" --batch 1 --loss graph
few || same nll2.onnx "3rows@1KiB" --batch 1 --loss graph
few || same loss3.onnx "3rows@4KiB" --loss graph $on
few || same loss2.onnx "3rows@1KiB" --loss graph --batch 3 --microbatches 3 --bn train --dropout off
few || same net2.onnx "3rows@64KiB" --batch 3 --microbatches 3 --bn train --dropout off

# ---- what runs in bands ----
"$lowerset" plan loss2.onnx --batch 1 --loss graph --tiles 5rows@1KiB --plan-effort 1 -q \
    --graph-json graph.json >said 2>&1 || fail "plan of a loss in the file"
for op in Resize resize_grad xent_lse xent_part xent_grad; do
    [ "$(grep -o "\"op\": *\"$op\"" graph.json | wc -l)" -ge 5 ] || fail "$op is whole"
done

# ---- memory ----
plan() { "$lowerset" plan large.onnx --batch 1 --plan-effort 1 --json -q --budget min "$@"; }
plan >whole.json
plan --tiles 4rows@3MiB >parts.json
[ "$(arena parts.json)" -lt $(($(arena whole.json) * 19 / 20)) ] \
    || fail "the least arena in bands is $(arena parts.json), whole $(arena whole.json)"
grep -q '"parts":4,"of":"rows"' parts.json || fail "plan --json says nothing of bands"
"$lowerset" plan unet.onnx --batch 1 --budget min --plan-effort 1 --tiles auto >said 2>&1 \
    || fail "--tiles auto"
grep -q 'parts of the rows' said || fail "--tiles auto cuts no rows"

# ---- what is refused ----
refused "rows of one picture (--batch=1)" unet.onnx --batch 2 --tiles 2rows@64KiB
refused "rows of one picture" unet.onnx --batch 1 --tiles 2rows@1GiB
refused "Nrows@SIZE" unet.onnx --batch 1 --tiles 2row@64KiB
refused "Nrows@SIZE" unet.onnx --batch 1 --tiles 1rows@64KiB
echo "$passed programs in bands have the bits of whole ones"
