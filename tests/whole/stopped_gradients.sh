#!/bin/sh
# Gradients that the module stops have the values of the module's own training (by PyTorch, in
# doubles): a detach() that the file's notes name, the same by --stop-gradient, and the vectors of a
# spectral norm.
#   sh tests/whole/stopped_gradients.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
lowerset=$1/lowerset
near=$1/tests/npz_near
faults=$2/tests/data/faults
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAIL $1"; exit 1; }
compile="--loss graph --batch 8 --opt 0 --optimizer sgd:momentum=0 --lr 0.1"

# loss_is WHICH FILE OPTIONS...: the loss of step 20 begins with these digits.
loss_is() {
    want=$1 file=$2
    shift 2
    "$lowerset" compile "$faults/$file" $compile -q -o t "$@" 2>err \
        || fail "compile $file $*: $(cat err)"
    ./t --data "$faults/${file%/*}/data.npz" --no-shuffle --epochs 20 --steps 20 --progress none \
        >out 2>err || fail "$(cat err)"
    grep -qF "step 20  loss $want" out || fail "$file $*: not $want: $(tail -n 1 out)"
}

# says WORDS COMMAND...
says() {
    words=$1
    shift
    "$@" >out 2>&1 || fail "$*: $(cat out)"
    grep -qF -- "$words" out || fail "$*: no '$words': $(cat out)"
}

# The first gradients and outputs are those of the reference; gradients that are stopped are no
# derivatives, and are not compared with differences.
checks() {
    file=$1
    shift
    "$lowerset" check "$faults/$file" --loss graph --batch 8 --opt 0 --optimizer sgd:momentum=0 -q \
        --data "$faults/${file%/*}/data.npz" \
        --against "$faults/${file%/*}/ref.npz" "$@" >out 2>&1 || fail "check $file $*: $(cat out)"
    grep -q '^reference *passed' out || fail "check $file $*: no reference: $(cat out)"
    grep -q 'before a stopped gradient were left out' out || fail "check $file $*: $(cat out)"
}

net=detach-simsiam/raw.onnx
loss_is -0.82183 $net
loss_is -0.82183 $net --budget min
loss_is -0.82183 $net --precision f64
loss_is -0.82183 detach-simsiam/ts.onnx --stop-gradient '/f_1/Gemm_output_0'
loss_is -0.82183 detach-simsiam/ts.onnx --stop-gradient '/f_1/G*mm' --no-alternatives
loss_is -0.97459 detach-simsiam/ts.onnx          # nothing tells of it: docs/from-pytorch.md says so
says "stopped as in the module, by the exporter's notes ('detach')" "$lowerset" inspect \
    "$faults/$net"
says "stopped by --stop-gradient ('linear')" "$lowerset" inspect "$faults/$net" \
    --stop-gradient linear
says "stopped as in the module, by the exporter's notes ('detach')" "$lowerset" compile \
    "$faults/$net" $compile -v -o t
says '"by":	"the exporter' "$lowerset" inspect "$faults/$net" --json
checks $net
checks spectral-norm/raw.onnx --stop-gradient div --stop-gradient div_1
if "$lowerset" plan "$faults/$net" --loss graph --batch 8 --stop-gradient 'nobody*' >out 2>&1; then
    fail "a glob without a match"
fi
grep -qF "nobody* matches no value and no node" out || fail "$(cat out)"
# A gradient that is stopped behind a layer trains as that layer frozen: same bits, forward
# and backward.
"$lowerset" model unet --depth=1 --size=8 --width=2 --batch=0 -o un.onnx >said
run_unet() { # FILE OPTIONS...
    to=$1
    shift
    "$lowerset" compile un.onnx --batch 4 --opt 0 --plan-effort 1 -q -o u --store-gradients \
        --optimizer adam "$@" 2>err || fail "compile $*: $(cat err)"
    ./u --data synthetic:8 --epochs 2 --dump "$to" --progress none >out 2>err \
        || fail "$*: $(cat err)"
}
like_frozen() { # VALUE PARAMETERS MEMBERS OPTIONS...
    value=$1 frozen=$2 members=$3
    shift 3
    run_unet stopped.npz --stop-gradient "$value" "$@"
    run_unet frozen.npz --freeze "$frozen" "$@"
    for m in $members; do
        "$near" stopped.npz frozen.npz 0 $m >out || fail "$value $*: $m: $(cat out)"
    done
}
like_frozen inc.double_conv.0 'inc.double_conv.0.weight' "loss param/ stat/"
# a norm with its statistics
like_frozen inc.double_conv.1 'inc.double_conv.[01].*' "loss param/ stat/" --budget min
like_frozen inc.double_conv.0 'inc.double_conv.0.weight' "loss param/" --precision bf16
like_frozen inc.double_conv.0 'inc.double_conv.0.weight' "param/ ps" --bn frozen --grads per-sample
like_frozen inc.double_conv.0 'inc.double_conv.0.weight' "param/" --bn frozen --stages 2 \
    --microbatches 2
echo "9 networks and reports as they should be"
