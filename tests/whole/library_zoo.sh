#!/bin/sh
# Libraries (--emit=lib) of every network of the zoo, and of the reference models that tests have:
# 20 updates by a library leave the bits of 20 updates by the trainer, whatever precision, parts of
# an update and budget. Without LS_WHOLE a network of each kind, in one setting each.
#   sh tests/whole/library_zoo.sh BUILD-FOLDER SOURCE-FOLDER [NETWORK...]
set -eu
. "$(dirname "$0")/library_runs.sh"
shift 2
export CLASSES=3
shares= frozen= rate=0.002      # deep networks diverge with more

# Small members of the zoo.
spec() {
    case $1 in
    autoencoder) echo "--size=8 --width=2 --depth=4" ;;
    cnn | digits) echo "--size=12 --width=4" ;;
    gpt) echo "--depth=1 --width=8 --heads=2 --vocab=9 --context=4 --dropout=0.1" ;;
    mlp) echo "--size=6 --width=16 --dropout=0.3" ;;
    unet) echo "--width=2 --depth=1 --size=8 --classes=5" ;;
    resnet*) echo "--stem=cifar --width=2 --size=8 --classes=5" ;;
    densenet* | googlenet | vgg*) echo "--width=2 --size=32 --classes=5" ;;
    pspnet*) echo "--width=2 --size=41 --classes=5" ;;
    vit) echo "--depth=1 --width=8 --heads=2 --size=8 --patch=4 --classes=5 --dropout=0.1" ;;
    *) fail "a network of the zoo that this test does not know: $1" ;;
    esac
}

# What else a compilation needs.
needs() {
    case $1 in
    autoencoder) echo "--loss mse --loss-input x_hat" ;;
    mlp_mse_loss_in_graph) echo "--loss graph" ;;
    tinycnn_op16_train_dynamic) echo "--dim N=4" ;;
    esac
}

# Nine settings in which each two of a precision, the parts of an update and a budget meet once, and
# private training, for which batch norms take running statistics. Losses of f16 are scaled. 50%: or
# the least of 70, 90 and 100 % that has a plan.
setting() {
    case $1 in
    1) echo "--budget 100%" ;;
    2) echo "--budget 50% --microbatches 2" ;;
    3) echo "--budget min --accumulate 2" ;;
    4) echo "--precision bf16 --budget 50% --optimizer adamw" ;;
    5) echo "--precision bf16 --budget min --microbatches 2 --ema 0.9" ;;
    6) echo "--precision bf16 --budget 100% --accumulate 2 --clip-norm 0.5" ;;
    7) echo "--precision f16 --budget min --loss-scale 1024" ;;
    8) echo "--precision f16 --budget 100% --microbatches 2 --optimizer lion" ;;
    9) echo "--precision f16 --budget 50% --accumulate 2 --loss-scale dynamic:init=512" ;;
    10) echo "--dp clip=1,noise=0.5,delta=1e-3,expected-batch=6 --randomness different $frozen
        --budget 50% --optimizer adam" ;;
    esac
}

# agrees FILE.onnx TOTAL OPTION...
agrees() {
    file=$1 total=$2
    shift 2
    if [ "${*#*50%}" != "$*" ]; then
        for share in 50 70 90 100; do
            options=$(echo "$*" | sed "s/50%/$share%/")
            # shellcheck disable=SC2086
            ! "$lowerset" plan "$file" -q --plan-effort 1 $options >said 2>&1 || break
            grep -q LS-E0016 said || fail "plan $file $options"
        done
        # shellcheck disable=SC2086
        set -- $options
        shares="$shares $share"
    fi
    same "$file" "$total" 20 "$@"
}

# zoo NETWORK SETTING...
zoo() {
    net=$1
    shift
    # shellcheck disable=SC2046
    "$lowerset" model "$net" $(spec "$net") --batch=0 -o "$net.onnx" >said 2>&1 || fail "$net"
    frozen=
    ! "$lowerset" inspect "$net.onnx" --batch 4 | grep -q BatchNormalization || frozen="--bn frozen"
    for k in "$@"; do
        # shellcheck disable=SC2046
        agrees "$net.onnx" 16 --batch 4 $(needs "$net") $(setting "$k")
    done
    rm -f "$net.onnx"
}

# reference FILE SETTING...: with the batch of the file
reference() {
    file=$1 net=$(basename "$1" .onnx)
    shift
    for k in "$@"; do
        options="$(needs "$net") $(setting "$k")"
        case $options in
        *--microbatches* | *--dp*) continue ;;      # these files have a fixed batch
        esac
        # shellcheck disable=SC2086
        agrees "$file" 96 $options
    done
}

all="1 2 3 4 5 6 7 8 9 10"
whole() {
    for net in "$@"; do
        zoo "$net" $all
        echo "$net: $passed so far"
    done
}
if [ $# -gt 0 ]; then
    whole "$@"
elif [ -n "${LS_WHOLE:-}" ]; then
    # shellcheck disable=SC2046
    whole $("$lowerset" model --list | awk '{ print $1 }')
    for file in "$source"/tests/data/inputs/models/*.onnx \
        "$source"/tests/data/inputs/models/opsets/*.onnx; do
        reference "$file" $all
    done
else
    zoo autoencoder 2
    zoo digits 7
    zoo gpt 5 10
    zoo vgg16_bn 3
    zoo resnet18 9 10
    reference "$source/tests/data/inputs/models/mlp_mse_loss_in_graph.onnx" 6
fi
halves=$(echo "$shares" | tr ' ' '\n' | sort | uniq -c |
    awk 'NF == 2 { printf "%s%d of %s %%", sep, $1, $2; sep = ", " }')
echo "$passed settings have the bits of the trainer; budgets of a half: $halves"
[ "$passed" -gt 0 ]
