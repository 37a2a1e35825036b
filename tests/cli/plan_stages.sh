#!/bin/sh
# lowerset plan --stages: cuts of networks of the zoo are within 5 % of the proven bound and never
# slower than cuts in list order; budgets are kept; pictures, tables and JSON say the same; what has
# no meaning is refused.
#   sh tests/cli/plan_stages.sh BUILD-FOLDER
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C XDG_CONFIG_HOME=$dir/config
cd "$dir"
passed=0
fail() { echo "FAIL $1"; shift; [ "$#" = 0 ] || cat "$@"; exit 1; }
pass() { passed=$((passed + 1)); }

# number FILE NAME: the first number of that name
number() { sed -n "s/.*\"$2\":[^0-9.-]*\([0-9.e+-]*\).*/\1/p" "$1" | head -1; }
# holds EXPRESSION
holds() { awk "BEGIN { exit !($1) }"; }

model() { "$lowerset" model "$@" --weights=none >/dev/null; }
model unet --size=64 --width=8 -o unet.onnx
model unet --size=16 --width=4 --depth=2 -o small.onnx
model googlenet --size=64 --width=16 -o googlenet.onnx
model resnet18 --size=64 --width=16 -o resnet.onnx
model mlp --depth=8 --width=64 -o mlp.onnx
model gpt --depth=3 --width=32 --heads=2 --context=16 --vocab=64 -o gpt.onnx

# plan MODEL STAGES OPTIONS...
plan() {
    file=$1.onnx stages=$2
    shift 2
    "$lowerset" plan "$file" -q --stages "$stages" --microbatches 8 --batch 16 --plan-effort 1 "$@"
}

for m in unet googlenet resnet mlp gpt; do
    for k in 2 4 8; do
        [ $k = 8 ] || [ $m = unet ] || [ -n "${LS_WHOLE:-}" ] || continue
        plan $m $k --json --order 1f1b --recompute none >$m.json || fail "$m in $k stages" $m.json
        best=$(number $m.json best_cut_ns) list=$(number $m.json list_order_ns)
        holds "$(number $m.json gap) <= 0.05" || fail "$m in $k stages: a gap above 5 %" $m.json
        holds "$best <= 1.001 * $list" \
            || fail "$m in $k stages: $best ns, and in list order $list ns"
        echo "$m in $k stages: gap $(number $m.json gap), in list order $list / $best"
        pass
    done
done
plan unet 8 --json --order 1f1b --recompute none >u.json
holds "$(number u.json best_cut_ns) < 0.98 * $(number u.json list_order_ns)" \
    || fail "no better than list order on U-Net" u.json
pass

# Tied weights are shared by the first and the last stage; nothing else is, as no other parameter
# has readers so far apart.
plan gpt 4 --json --order 1f1b --recompute none >g.json
[ "$(grep -c '"tensor":' g.json)" = 1 ] && grep -q '"tensor":.*transformer.wte.weight' g.json \
    || fail "tied weights" g.json
plan gpt 4 --order 1f1b --recompute none |
    grep -q "stage 3 reads 'transformer.wte.weight' of stage 0" || fail "the copy"
pass

# All orders and modes side by side; zb has the smallest bubbles.
plan small 2 >table || fail "the table" table
[ "$(grep -cE '^  (gpipe|1f1b|zb) ' table)" = 12 ] || fail "not 3 orders with 4 modes" table
# field ORDER MODE COLUMN
field() { awk -v o="$1" -v m="$2" -v k="$3" '$1 == o && $2 == m { print $k }' table; }
for order in gpipe 1f1b zb; do
    none=$(field $order none 3) one=$(field $order except-last 3) all=$(field $order all 3)
    holds "$none < $one && $one < $all" \
        || fail "$order: a step of none, except-last, all: $none, $one, $all ms" table
done
# What is kept lies where the others run things again: far less than one micro-batch beside the
# others.
kib() {
    awk -v m="$1" '$1 == "gpipe" && $2 == m { print $7 * ($8 == "MiB" ? 1024 : $8 == "KiB") }' table
}
holds "0 < $(kib all) && $(kib except-last) < ($(kib all) + $(kib none)) / 2" \
    || fail "except-last takes too much" table
bubble() { awk -v o="$1" '$1 == o && $2 == "none" { print $5 }' table; }
holds "$(bubble zb) < $(bubble 1f1b)" || fail "zb fills no bubbles" table
grep -q 'no deadlock' table || fail "the orders were not checked" table
grep -qE '^ +1 .* loss$' table || fail "the stages are not shown" table
pass

# A budget is that of a rank: within it things run again, or there is no cut.
plan small 2 --json --order gpipe --recompute auto >free.json
most=$(number free.json rank_bytes)
some=$((most * 9 / 10))
plan small 2 --json --order gpipe --recompute auto --budget $some >tight.json \
    || fail "a budget of 90 %" tight.json
holds "$(number tight.json rank_bytes) <= $some" || fail "a rank exceeds $some bytes" tight.json
holds "$(number tight.json bottleneck_ns) >= $(number free.json bottleneck_ns)" \
    || fail "less memory in less time" tight.json
code=0
plan small 2 --budget 0.00001% --order 1f1b --recompute none >out 2>&1 || code=$?
[ $code = 4 ] || fail "less than a byte of an arena is a limit, too: exit $code" out
code=0
plan small 2 --budget 100K --order 1f1b --recompute none >out 2>&1 || code=$?
[ $code = 4 ] && grep -q 'no cut into 2 stages was found whose ranks keep 100.00 KiB' out \
    || fail "100 KiB are enough" out
pass

# The picture and the table of who runs what.
plan mlp 3 --order zb --recompute none --timeline t.svg >/dev/null
grep -q '^<svg ' t.svg && [ "$(tail -1 t.svg)" = '</svg>' ] || fail "no picture" t.svg
[ "$(grep -c '<rect class="f-[a-z]* s-page"' t.svg)" = 72 ] \
    || fail "not F, B and W of 8 micro-batches in 3 rows"
plan mlp 3 --order zb --recompute none --timeline t.txt >/dev/null
[ "$(grep -vc '^#' t.txt)" = 72 ] || fail "not 72 lines" t.txt
plan mlp 3 --order gpipe --recompute none --timeline t.txt >/dev/null
[ "$(grep -c 'BW' t.txt)" = 24 ] || fail "gpipe runs B and W together" t.txt
# Files of the stages: graph and plan of a micro-batch, which lowerset check replays, for which a
# budget of 1 KiB is too small.
plan gpt 3 --order 1f1b --recompute none --graph-json out.d.json --plan-json p --json >g.json \
    || fail "files of stages" g.json
for k in 0 1 2; do
    "$lowerset" check p.$k --graph out.d.$k.json >out 2>&1 \
        || fail "stage $k is not what its file says" out
    grep -q "\"arena_peak\": " p.$k || fail "stage $k claims no arena" p.$k
done
[ ! -e p.3 ] && [ ! -e p ] || fail "a file of no stage"
[ "$(grep -c '"turns":' g.json)" = 3 ] && grep -q '"turns":.*"F0 F1 F2 B0 F3 ' g.json \
    || fail "turns of the first stage" g.json
code=0
plan mlp 2 --order 1f1b --recompute none --graph-json no/such/g.json >out 2>&1 || code=$?
[ $code = 1 ] && grep -q 'no/such/g' out || fail "a file that cannot be written" out
pass
# Links that take time make the step longer; runs are the same every time.
plan mlp 3 --json --order 1f1b --recompute none --link none >none.json
plan mlp 3 --json --order 1f1b --recompute none --link 1MB,500 >slow.json
holds "$(number slow.json step_ns) > $(number none.json step_ns) + 2000000" \
    || fail "slow links take no time" slow.json
plan mlp 3 --json --order 1f1b --recompute none --link none | cmp -s - none.json \
    || fail "two runs differ"
pass

# What stages send others receive; what happens once a step is not of a micro-batch.
plan small 3 --json --order 1f1b --recompute none --clip-norm 1 >m.json
both=$(sed -n 's/.*"\(received\|sent\)_bytes":[^0-9]*\([0-9]*\).*/\1 \2/p' m.json |
    awk '{ sum[$1] += $2 } END { print (sum["received"] == sum["sent"] && sum["sent"] > 0) }')
[ "$both" = 1 ] || fail "stages receive other bytes than are sent" m.json
pass

refuses() {
    code=0
    words=$1
    shift
    "$lowerset" plan "$@" >out 2>&1 || code=$?
    [ $code = 2 ] && grep -qF -- "$words" out || fail "$*: exit $code, or no '$words'" out
    pass
}
refuses "64 stages are too many: the forward part has" mlp.onnx --batch 4 --stages 64
refuses "--grads shows the samples of a whole batch" mlp.onnx --batch 4 --stages 2 \
    --grads per-sample
refuses "leave --dp out" mlp.onnx --batch 4 --stages 2 --dp clip=1,noise=1,delta=1e-5
refuses "leave --ensemble out" mlp.onnx --batch 4 --stages 2 --ensemble 2
refuses "is for --target=cpu so far" mlp.onnx --batch 4 --stages 2 --target cuda
refuses "leave --accumulate out" mlp.onnx --batch 4 --stages 2 --accumulate 2
refuses "leave --strategy out" mlp.onnx --batch 4 --stages 2 --strategy chen
refuses "leave --keep and --forget out" mlp.onnx --batch 4 --stages 2 --keep '*'
refuses "leave --no-offsets out" mlp.onnx --batch 4 --stages 2 --no-offsets
refuses "leave the other reports out" mlp.onnx --batch 4 --stages 2 --report p.html
refuses "--budget: 'much'" mlp.onnx --batch 4 --stages 2 --budget much
refuses "--link: 'fast'" mlp.onnx --batch 4 --stages 2 --link fast
refuses "--link: '1G,x'" mlp.onnx --batch 4 --stages 2 --link 1G,x
refuses "'best' is not one of" mlp.onnx --batch 4 --stages 2 --order best
refuses "--order is for pipelines: it needs --stages" mlp.onnx --batch 4 --order zb
refuses "--link is for pipelines: it needs --stages" mlp.onnx --batch 4 --link none
"$lowerset" plan mlp.onnx --batch 4 --graph-json g.json >/dev/null
refuses "needs a model, not a training graph" g.json --stages 2
echo "$passed passed, 0 failed"
