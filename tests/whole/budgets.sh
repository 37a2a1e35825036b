#!/bin/sh
# Every budget gives the same bits: losses, gradients, running statistics, parameters after 5 steps;
# and the arena takes the planned bytes exactly. The length of the search does not matter here.
#   sh tests/whole/budgets.sh BUILD-FOLDER [MODEL...]
# LS_WHOLE: more budgets, a deep net, and programs that are optimised; else one net is optimised and
# has a budget between none and the least. LS_SANITIZED: two nets, and none is optimised.
set -eu
BUILD=$(cd "$1" && pwd)
shift
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$WORK"
passed=0
failed=0

# Small members of each family: zoo name and options, then the batch.
spec() {
    case $1 in
    unet) echo "unet --width=6 --depth=3 --classes=2 --size=32 :2:ce" ;;
    resnet) echo "resnet18 --stem=cifar --width=8 --classes=10 --size=32 :4:ce" ;;
    densenet) echo "densenet121 --width=6 --classes=10 --size=32 :4:ce" ;;
    unet16) echo "unet --width=6 --depth=3 --classes=2 --size=32 :2:ce:--precision=bf16" ;;
    gpt16) echo "gpt --depth=2 --heads=2 --width=32 --context=32 --vocab=65" \
        ":4:ce:--precision=f16" ;;
    gpt) echo "gpt --depth=2 --heads=2 --width=32 --context=32 --vocab=65 :4:ce" ;;
    dropout) echo "resnet18 --stem=cifar --width=8 --classes=10 --size=32 --dropout=0.2 :4:ce" ;;
    esac
}

# Budgets of each model: no budget first.
budgets() {
    case ${LS_WHOLE:+whole-}$1 in
    whole-densenet) echo none 60% min ;;
    whole-*) echo none 100% 80% 60% 40% min ;;
    unet) echo none 60% min ;;
    *) echo none min ;;
    esac
}

fail() { failed=$((failed + 1)); echo "FAIL $*"; }

# The net with dropouts is the residual net with dropouts added; the deep net's program takes long
# to compile.
dropout=dropout
[ -z "${LS_SANITIZED:-}" ] || dropout=
for net in ${*:-unet ${LS_WHOLE:+resnet densenet gpt16} gpt $dropout unet16}; do
    IFS=: read -r options batch loss precision <<EOF
$(spec "$net")
EOF
    case ${LS_SANITIZED:+less-}${LS_WHOLE:+whole-}$net in
    unet|whole-*) opt=1 ;;
    *) opt=0 ;;
    esac
    # shellcheck disable=SC2086
    "$BUILD/lowerset" model $options -o "$net.onnx"
    for budget in $(budgets "$net"); do
        name=$net-$(echo "$budget" | tr -d %)
        if ! "$BUILD/lowerset" compile "$net.onnx" -q "-O$opt" --plan-effort 10 --batch "$batch" \
            --loss "$loss" --budget "$budget" \
            ${precision:-} --optimizer=sgd:momentum=0.9 -v -o "$name" >"$name.log" 2>&1; then
            grep -q "lowerset\|budget" "$name.log" && code=4 || code=1
            if [ "$code" = 4 ] && grep -q 'LS-E0016' "$name.log"; then
                echo "--   $name: below the least budget"
            else
                fail "$name: does not compile: $(tail -n 3 "$name.log")"
            fi
            continue
        fi
        if ! ./"$name" --data synthetic --steps 5 --lr 0.05 --seed 3 --progress none --measure \
            --log "$name.jsonl" --dump "$name.npz" >"$name.out" 2>&1; then
            fail "$name: $(tail -n 3 "$name.out")"
            continue
        fi
        recompute=$(sed -n 's/.*recomputation \(.*\) %.*/\1/p' "$name.log")
        plan=$(sed -n 's/.*"arena_bytes":\([0-9]*\),.*/\1/p' "$name.out")
        touched=$(sed -n 's/.*"touched":\([0-9]*\),.*/\1/p' "$name.out")
        if [ "$budget" != none ] && ! cmp -s "$net-none.npz" "$name.npz"; then
            fail "$name: other bits than without a budget"
        elif [ -z "$plan" ] || [ "$touched" != "$plan" ]; then
            fail "$name: the steps touched '$touched' bytes of the arena, plan says '$plan'"
        else
            passed=$((passed + 1))
            echo "ok   $name: arena $plan bytes, recomputation $recompute %"
        fi
    done
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
