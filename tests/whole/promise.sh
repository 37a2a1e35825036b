#!/bin/sh
# lowerset compile delivers the plan that lowerset plan shows: the same plan, with and without a
# budget, even where plan's table has strategies that are too slow for every compilation.
#   sh tests/whole/promise.sh BUILD-FOLDER
# LS_WHOLE: the deep net for every budget, and longer searches. LS_SANITIZED: the other net alone,
# with a budget.
set -eu
LOWERSET=$1/lowerset
OUT=$(mktemp -d)
trap 'rm -rf "$OUT"' EXIT
export XDG_CONFIG_HOME=$OUT/config
failed=0
effort=3
[ -z "${LS_WHOLE:-}" ] || effort=20

same() {        # MODEL OPTIONS...
    planned=$("$LOWERSET" plan "$@" | sed -n '1s/.*: plan \([0-9a-f]*\),.*/\1/p')
    compiled=$("$LOWERSET" compile "$@" -n -v -o "$OUT/net" 2>&1 |
        sed -n 's/.*: plan \([0-9a-f]*\),.*/\1/p')
    [ -n "$planned" ] && [ "$planned" = "$compiled" ] || {
        echo "FAIL $*: planned '$planned', compiled '$compiled'"
        failed=1
    }
}

"$LOWERSET" model unet --batch=2 --size=32 --width=4 --depth=3 -o "$OUT/unet.onnx" >/dev/null
"$LOWERSET" model densenet121 --batch=2 --size=32 --width=4 --classes=10 -o "$OUT/densenet.onnx" \
    >/dev/null
nets="unet densenet"
[ -z "${LS_SANITIZED:-}" ] || nets=unet
for net in $nets; do
    case $net${LS_WHOLE:+-whole}${LS_SANITIZED:+-less} in
    densenet|*-less) budgets=60% ;;
    *) budgets="none 60% min" ;;
    esac
    for budget in $budgets; do
        if [ $budget = none ]; then
            same "$OUT/$net.onnx" --plan-effort=$effort
        else
            same "$OUT/$net.onnx" --plan-effort=$effort --budget=$budget
        fi
    done
done
"$LOWERSET" compile "$OUT/unet.onnx" --plan-effort=$effort -q -O 0 -o "$OUT/net"
hash=$("$LOWERSET" plan "$OUT/unet.onnx" --plan-effort=$effort |
    sed -n '1s/.*: plan \([0-9a-f]*\),.*/\1/p')
"$OUT/net" --print-plan | grep -q "$hash" || {
    echo "FAIL the program names another plan"
    failed=1
}
exit $failed
