#!/bin/sh
# lowerset plan GRAPH.json: the training graph of a model, written and read back, has the plan of the model;
# what is no graph, or an option that means nothing for one, ends with a message and the right exit code.
#   sh tests/plan_graph.sh BUILD-FOLDER
set -eu
build=$(cd "$1" && pwd)
lowerset=$build/lowerset
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0

plan() { "$lowerset" plan --plan-effort=2 "$@"; }
# The first value of that name, without quotes.
value_of() { sed -n "s/.*\"$1\":[[:space:]]*\"\{0,1\}\([^\",]*\).*/\1/p" "$2" | head -n 1; }
hash_of() { value_of plan "$1"; }

# fails WANTED-EXIT-CODE WANTED-TEXT ARGUMENT...
fails() {
    want=$1 text=$2 code=0
    shift 2
    command=$1
    shift
    case "$*" in *--plan-effort*) effort= ;; *) effort=--plan-effort=2 ;; esac
    "$lowerset" "$command" $effort "$@" >out 2>&1 || code=$?
    if [ "$code" != "$want" ] || ! grep -q -- "$text" out; then
        echo "FAIL lowerset $command $*: exit $code, not $want with '$text': $(head -n 2 out)"
        failed=1
    fi
}

"$lowerset" model unet --width=4 --depth=1 --classes=2 --size=16 -o net.onnx
for budget in none 80% 60% min; do
    plan net.onnx --batch 4 --budget $budget --json --graph-json net.json >model.txt
    plan net.json --budget $budget --json --plan-json plan.json >graph.txt
    if [ -z "$(hash_of model.txt)" ] || [ "$(hash_of model.txt)" != "$(hash_of graph.txt)" ]; then
        echo "FAIL at $budget the graph has another plan than its model"
        failed=1
    fi
done
plan net.json --budget 100% --budget-of=store-all --json >graph.txt
all=$(value_of store_all_peak_bytes graph.txt)
budget=$(value_of arena_budget_bytes graph.txt)
if [ -z "$all" ] || [ "$all" != "$budget" ]; then
    echo "FAIL 100 % of the store-all peak of '$all' bytes is a budget of '$budget'"
    failed=1
fi
# A search that its time cuts ends at the same place every time: what it has done is counted, not timed.
"$lowerset" model unet --width=6 --depth=2 --size=32 -o wide.onnx
plan wide.onnx --batch 2 --graph-json wide.json -q
for time in first second; do
    "$lowerset" plan wide.json --budget 50% --plan-time 0.1 --json >$time.txt
done
if [ -z "$(hash_of first.txt)" ] || [ "$(hash_of first.txt)" != "$(hash_of second.txt)" ]; then
    echo "FAIL two searches of one length found two plans"
    failed=1
fi
# More time goes on from what the usual finds, and finds more where there is more to be found: BLOCKS SEED BUDGET, by how much
# the overhead falls at the least, and whether the least arena stays as it is.
longer_is_better() {
    "$build/bench/make_graph" dag "$1" "$2" >dag.json
    "$lowerset" plan dag.json --budget "$3" --json >usual.txt
    "$lowerset" plan dag.json --budget "$3" --plan-time 4 --json >longer.txt
    if ! awk -v a="$(value_of overhead usual.txt)" -v b="$(value_of overhead longer.txt)" -v by="$4" \
        -v least="$(value_of least_arena_bytes usual.txt)" -v now="$(value_of least_arena_bytes longer.txt)" -v same="$5" \
        'BEGIN { exit !(b != "" && b < a - by && (same ? now == least : now < least)) }'; then
        echo "FAIL dag $1 $2: twice the time leads from an overhead of $(value_of overhead usual.txt) to $(value_of overhead longer.txt)"
        failed=1
    fi
}
longer_is_better 8 30 min 0.1 1
longer_is_better 12 5 60% 0 0
# Unless the number of moves is given.
"$build/bench/make_graph" dag 6 11 >dag.json
"$lowerset" plan dag.json --budget min --json >usual.txt
"$lowerset" plan dag.json --budget min --plan-time 4 --plan-effort 100 --json >counted.txt
if [ -z "$(hash_of usual.txt)" ] || [ "$(hash_of usual.txt)" != "$(hash_of counted.txt)" ]; then
    echo "FAIL the same number of moves leads to another plan with more time"
    failed=1
fi
# Without places the budget is one of live bytes, and what is packed within it is no cheaper.
plan net.json --budget 55% --budget-of=store-all --json >placed.txt
plan net.json --budget 55% --budget-of=store-all --json --no-offsets --plan-json live.json >live.txt
if grep -q -e offset -e arena_peak live.json || ! awk -v live="$(value_of live_peak_bytes live.txt)" \
    -v most="$(value_of arena_budget_bytes live.txt)" -v a="$(value_of cost live.txt)" -v b="$(value_of cost placed.txt)" \
    'BEGIN { exit !(live > 0 && live <= most && a <= b) }'; then
    echo "FAIL --no-offsets: $(value_of live_peak_bytes live.txt) bytes of $(value_of arena_budget_bytes live.txt)"
    failed=1
fi
plan net.json --budget 55% --budget-of=store-all --no-offsets --against live.json >out \
    || { echo "FAIL a plan without places is worse than itself: $(cat out)"; failed=1; }
plan net.json --budget 100% --no-offsets --recompute=all --plan-json live.json -q >out
grep -q offset live.json && { echo "FAIL hints bring places back"; failed=1; }
"$lowerset" sweep net.json --no-offsets --plan-effort=2 --points 3 --from 60% --strategies auto -o live -q >out
awk -F, 'NR > 1 && $6 == 1 && $7 != $8 { exit 1 }' live/sweep.csv || { echo "FAIL a sweep brings places back"; failed=1; }
fails 2 "for training graphs" plan net.onnx --batch 4 --no-offsets
fails 2 "unknown option" compile net.onnx --batch 4 --no-offsets
fails 1 "not a lowerset-graph" plan plan.json
echo '{"format": ' >broken.json
fails 1 "not a JSON object" plan broken.json
fails 1 "cannot open" plan nowhere.json
fails 2 "--batch is for models" plan net.json --batch 3
fails 4 "ask for --budget" plan net.json --budget 1KiB
fails 2 "'magic' is not one of auto" plan net.json --strategy magic
fails 2 "none store-all" plan net.json --budget 50% --budget-of=peak
fails 2 "seconds above 0" plan net.json --plan-time 0
fails 2 "from 1 to 10000" plan net.json --plan-effort=20000
fails 1 "training graph" compile net.json

# An earlier plan: as good, worse within the tolerance and beyond it, at another run, and no plan at all.
plan net.json --budget 70% --plan-json old.json >out
plan net.json --budget 70% --json >summary.json
for old in old.json summary.json; do
    plan net.json --budget 70% --against $old >out || { echo "FAIL worse than itself"; failed=1; }
done
plan net.json --budget 70% --strategy chen --json --against old.json >out 2>err && code=0 || code=$?
if [ $code != 6 ] || ! grep -q "the plans part at run [1-9].*'.*' (node .*) then, '.*' (node .*) now" err; then
    echo "FAIL chen against auto: exit $code: $(cat err)"
    failed=1
fi
fails 6 "cost .* worse" plan net.json --budget 70% --strategy chen --against summary.json
plan net.json --budget 70% --strategy chen --against old.json --tolerance 50% >out \
    || { echo "FAIL the tolerance is not kept"; failed=1; }
fails 6 "arena .* worse" plan net.json --budget 75% --against old.json
fails 1 "neither a lowerset-schedule" plan net.json --against net.json
fails 1 "not a JSON object" plan net.json --against broken.json
fails 1 "No such file" plan net.json --against nowhere.json
fails 2 "at least 0" plan net.json --against old.json --tolerance=-1%

# Hints: each policy says what it keeps and what it makes again, of a model and of its graph alike.
again() { sed -n 's/.*"recomputed_bytes":[[:space:]]*\([0-9]*\),/\1/p' "$1"; }
for policy in auto none cheap conv-saved all; do
    plan net.onnx --batch 4 --budget 100% --recompute=$policy --json >model.txt
    plan net.json --budget 100% --recompute=$policy --json >graph.txt
    if [ -z "$(again model.txt)" ] || [ "$(again model.txt)" != "$(again graph.txt)" ]; then
        echo "FAIL policy $policy makes '$(again model.txt)' bytes again, of the graph '$(again graph.txt)'"
        failed=1
    fi
done
if [ "$(again graph.txt)" -le 0 ]; then
    echo "FAIL --recompute=all makes nothing again"
    failed=1
fi
plan net.onnx --batch 4 --forget 'down1*' >out
grep -q 'kept for the backward part, .* made again' out || { echo "FAIL no word of what is kept"; failed=1; }
fails 2 "near it: 'up1.up'" plan net.json --keep up1_up
fails 2 "is there all the time" plan net.json --forget outc.conv.weight
fails 4 "no plan" plan net.json --recompute=none --budget 70%
fails 2 "none cheap" plan net.json --recompute=much

# The least that a refusal names is not refused.
"$build/bench/make_graph" layered 850 3 >layered.json
fails 4 "ask for --budget" plan layered.json --budget 50%
least=$(sed -n 's/.*ask for --budget \([0-9]*\) .*/\1/p' out)
plan layered.json --budget "$least" >out 2>&1 || { echo "FAIL $least bytes, named the least, are refused"; failed=1; }
exit $failed
