#!/bin/sh
# Augmentation has the same bits for any number of threads, workers, ranks and micro-batches, and
# after a run was resumed in the middle of an epoch; and what does not fit is refused.
#   sh tests/whole/augmented_runs.sh BUILD-FOLDER
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
export LOWERSET_PROBE=off XDG_CONFIG_HOME="$out/config"
fail() { echo "FAIL $*"; [ ! -f said ] || tail -n 5 said; exit 1; }

# idx FILE LIMIT DIM...: an IDX file of bytes below LIMIT
idx() {
    file=$1 limit=$2 count=1
    shift 2
    text='\000\000\010'$(printf '\\%03o' $#)
    for dim; do
        text=$text'\000\000'$(printf '\\%03o\\%03o' $((dim / 256)) $((dim % 256)))
        count=$((count * dim))
    done
    body=$(awk -v n=$count -v limit="$limit" 'BEGIN {
        for (v = 7; n-- > 0; v = (v * 1103 + 12345) % 65521) printf "\\%03o", v % limit }')
    # shellcheck disable=SC2059
    printf "$text$body" >"$file"
}
idx pictures 256 22 1 18 17
idx labels 10 22
idx masks 2 22 18 17
idx tokens.raw 64 517
tail -c 517 tokens.raw >bytes
od -An -v -tu1 bytes | awk '{ for (k = 1; k <= NF; k++) printf "\\%03o\\000", $k }' >text
# shellcheck disable=SC2059
printf "$(cat text)" >tokens.bin

# built PROGRAM MODEL OPTION...
built() {
    program=$1
    shift
    "$lowerset" compile "$@" -q -O 0 --plan-effort 1 --optimizer sgd -o "$program" >said 2>&1 \
        || fail "compile $*"
}
# ran NAME PROGRAM OPTION...: NAME.onnx and the losses NAME.losses
ran() {
    name=$1 program=$2
    shift 2
    rm -f log
    "./$program" "$@" --lr 0.05 --progress none --log log --no-export-notes \
        --export "$name.onnx" >said 2>&1 \
        || fail "$program $*"
    grep -o '"loss":[^,}]*' log >"$name.losses"
}
same() { cmp -s "$1.onnx" "$2.onnx" && cmp -s "$1.losses" "$2.losses" || fail "$1 and $2 differ"; }
differ() { ! cmp -s "$1.onnx" "$2.onnx" || fail "$1 and $2 are the same"; }
refused() {
    words=$1
    shift
    code=0
    "$@" >said 2>&1 || code=$?
    [ $code -eq 2 ] && grep -q -- "$words" said || fail "not refused ($code, '$words'): $*"
}

"$lowerset" model resnet18 --size=16 --channels=1 --classes=10 --width=4 --stem=cifar -o net.onnx \
    >said
"$lowerset" model unet --size=16 --channels=1 --classes=2 --width=4 -o maps.onnx >said

# ---- the same bits, whoever makes the batches ----
all=resized-crop=0.3-1,flip,vflip,rotate=20,jitter=0.4/0.4,mixup=0.4,cutmix=1
built net net.onnx --batch 8 --loss soft_ce
data="--data pictures,labels --seed 5 --epochs 3"
# shellcheck disable=SC2086
{
    ran one net $data --augment $all --threads 1 --workers 0
    for workers in 1 4; do
        ran other net $data --augment $all --threads $workers --workers $workers
        same one other
    done
    ran other net $data --augment resized-crop=0.3-1,flip --threads 2
    differ one other

    # resumed after 4 of 9 updates: in the middle of the second epoch
    ran part net $data --augment $all --steps 4 --save folder --save-every 4
    ran rest net $data --augment $all --save folder --resume auto
    cmp -s rest.onnx one.onnx || fail "a run resumed in the middle of an epoch has other bits"
    [ "$(tail -n 5 one.losses)" = "$(cat rest.losses)" ] || fail "resumed: other losses"

    # micro-batches, ranks and accumulation cut the same samples
    built halves net.onnx --batch 4 --accumulate 2 --loss soft_ce
    built parts net.onnx --batch 8 --microbatches 2 --loss soft_ce
    built ranks net.onnx --batch 8 --microbatches 2 --ranks any --loss soft_ce
    ran parts parts $data --augment $all
    ran other ranks $data --augment $all --ranks 1
    same parts other
    ran other ranks $data --augment $all --ranks 2
    same parts other
    ran other halves $data --augment $all
    same parts other
}

# ---- maps move with their pictures ----
built maps maps.onnx --batch 4 --loss ce
data="--data pictures,masks --seed 5 --epochs 2"
# shellcheck disable=SC2086
{
    ran one maps $data --augment resized-crop,flip,vflip,rotate=9 --workers 0
    ran other maps $data --augment resized-crop,flip,vflip,rotate=9 --workers 3 --threads 2
    same one other
}

# ---- evaluation takes the middle ----
./net --data pictures,labels --eval >said || fail "--eval of larger pictures"
grep -q "val_accuracy" said || fail "no accuracy with labels of probabilities"

# ---- windows of tokens ----
"$lowerset" model gpt --depth=1 --width=8 --heads=2 --vocab=64 --context=16 --batch=0 -o gpt.onnx \
    >said
built gpt gpt.onnx --batch 4
ran fixed gpt --data tokens.bin --epochs 3
ran one gpt --data tokens.bin --epochs 3 --random-windows --workers 0
ran other gpt --data tokens.bin --epochs 3 --random-windows --workers 3
same one other
differ one fixed

# ---- what is refused ----
built hard net.onnx --batch 8 --loss ce
refused "'x' is 18x17 in the data, and the program takes 16x16; --augment resized-crop" \
    ./hard --data pictures,labels
refused "resized-crop or crop takes a part of each" ./hard --data pictures,labels --augment flip
refused "'label' has integer labels; compile with --loss soft_ce" \
    ./hard --data pictures,labels --augment crop,mixup=0.2
refused "pictures of 3 channels" ./hard --data pictures,labels --augment crop,jitter=0/0/0.4
refused "'blur': is not one of flip" ./hard --data pictures,labels --augment blur
idx small 2 22 16 16
code=0
./maps --data pictures,small --augment resized-crop >said 2>&1 || code=$?
[ $code -eq 8 ] && grep -q "'label' is 16x16, but '.*' is 18x17" said \
    || fail "maps that are smaller than their pictures are not refused"
refused "crop and resized-crop both choose" ./hard --data pictures,labels \
    --augment crop,resized-crop
refused "--eval takes the data as they are" ./hard --data pictures,labels --eval --augment crop
refused "the data are no stream of tokens" ./hard --data pictures,labels --augment crop \
    --random-windows
refused "the program takes no pictures" ./gpt --data tokens.bin --augment flip
refused "mixup mixes targets, and\|has integers" ./gpt --data tokens.bin --augment mixup=1
built private net.onnx --batch 8 --loss soft_ce --bn frozen --dp clip=1,noise=1,delta=1e-3
refused "the guarantee of private training is for each sample alone" \
    ./private --data pictures,labels --augment crop,mixup=0.2
ran private private --data pictures,labels --augment crop,flip --steps 2 --noise-seed 3 --workers 0
ran other private --data pictures,labels --augment crop,flip --steps 2 --noise-seed 3 --workers 3
same private other
refused "--ignore-index is for --loss=ce and nll" \
    "$lowerset" compile net.onnx --batch 8 --loss soft_ce --ignore-index 3 -q -o no
