#!/bin/sh
# lowerset plan GRAPH.json: the training graph of a model, written and read back, has the plan of
# the model; a file that is no graph, or an option that has no meaning for a graph, ends with a
# message and the right exit code.
#   sh tests/scheduler/plan_graph.sh BUILD-FOLDER
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
# A search that its limit cuts ends at the same place every time: its work is counted, not timed.
"$lowerset" model unet --width=6 --depth=2 --size=32 -o wide.onnx
plan wide.onnx --batch 2 --graph-json wide.json -q
for time in first second; do
    "$lowerset" plan wide.json --budget 50% --plan-time 0.1 --json >$time.txt
done
if [ -z "$(hash_of first.txt)" ] || [ "$(hash_of first.txt)" != "$(hash_of second.txt)" ]; then
    echo "FAIL two searches of one length found two plans"
    failed=1
fi
# More time continues from the usual result and improves it where possible: BLOCKS SEED BUDGET, by
# how much the overhead falls at least, and whether the least arena stays the same.
longer_is_better() {
    "$build/bench/make_graph" dag "$1" "$2" >dag.json
    "$lowerset" plan dag.json --budget "$3" --json >usual.txt
    "$lowerset" plan dag.json --budget "$3" --plan-time 4 --json >longer.txt
    if ! awk -v a="$(value_of overhead usual.txt)" -v b="$(value_of overhead longer.txt)" \
        -v by="$4" \
        -v least="$(value_of least_arena_bytes usual.txt)" \
        -v now="$(value_of least_arena_bytes longer.txt)" -v same="$5" \
        'BEGIN { exit !(b != "" && b < a - by && (same ? now == least : now < least)) }'; then
        echo "FAIL dag $1 $2: twice the time leads from an overhead of" \
            "$(value_of overhead usual.txt) to $(value_of overhead longer.txt)"
        failed=1
    fi
}
if [ -n "${LS_WHOLE:-}" ]; then
    longer_is_better 8 30 min 0.1 1
    longer_is_better 12 5 60% 0 0
fi
# A given number of moves turns this off.
"$build/bench/make_graph" dag 6 11 >dag.json
"$lowerset" plan dag.json --budget min --json >usual.txt
"$lowerset" plan dag.json --budget min --plan-time 4 --plan-effort 100 --json >counted.txt
if [ -z "$(hash_of usual.txt)" ] || [ "$(hash_of usual.txt)" != "$(hash_of counted.txt)" ]; then
    echo "FAIL the same number of moves leads to another plan with more time"
    failed=1
fi
# Without offsets the budget limits live bytes, and a packed plan within it is no cheaper.
plan net.json --budget 55% --budget-of=store-all --json >placed.txt
plan net.json --budget 55% --budget-of=store-all --json --no-offsets --plan-json live.json >live.txt
if grep -q -e offset -e arena_peak live.json \
    || ! awk -v live="$(value_of live_peak_bytes live.txt)" \
    -v most="$(value_of arena_budget_bytes live.txt)" -v a="$(value_of cost live.txt)" \
    -v b="$(value_of cost placed.txt)" \
    'BEGIN { exit !(live > 0 && live <= most && a <= b) }'; then
    echo "FAIL --no-offsets: $(value_of live_peak_bytes live.txt) bytes of" \
        "$(value_of arena_budget_bytes live.txt)"
    failed=1
fi
plan net.json --budget 55% --budget-of=store-all --no-offsets --against live.json >out \
    || { echo "FAIL a plan without places is worse than itself: $(cat out)"; failed=1; }
plan net.json --budget 100% --no-offsets --recompute=all --plan-json live.json -q >out
grep -q offset live.json && { echo "FAIL hints bring places back"; failed=1; }
"$lowerset" sweep net.json --no-offsets --plan-effort=2 --points 3 --from 60% --strategies auto \
    -o live -q >out
awk -F, 'NR > 1 && $6 == 1 && $7 != $8 { exit 1 }' live/sweep.csv || {
    echo "FAIL a sweep brings places back"
    failed=1
}
fails 2 "for training graphs" plan net.onnx --batch 4 --no-offsets
fails 2 "unknown option" compile net.onnx --batch 4 --no-offsets
fails 1 "not a lowerset-graph" plan plan.json
echo '{"format": ' >broken.json
fails 1 "not a JSON object" plan broken.json
fails 1 "cannot open" plan nowhere.json
fails 2 "--batch is for models" plan net.json --batch 3
fails 4 "ask for --budget" plan net.json --budget 1KiB
# Both budgets have the unit of the requested budget; the hint also has bytes.
fails 4 \
    "the budget is 10.00 KiB, but the least budget found is [0-9.]* KiB, [0-9.]* KiB for state" \
    plan net.onnx --batch 400 --budget 10KiB
fails 4 "the budget is 512 B, .* found by strategy chen is [0-9]* B, " plan net.json \
    --budget 0.5KiB --strategy chen
fails 4 "the budget is [0-9]* B, but the least budget found is [0-9]* B" plan net.json --budget 3B
fails 4 "the least budget found with --recompute=all is" plan net.json --budget 1KiB --recompute all
fails 4 "the least budget found with these hints is" plan net.json --budget 1KiB --forget "*"
fails 4 "ask for --budget [0-9]* (.* B) or more" plan net.json --budget 3B
least=$(sed -n 's/.*ask for --budget \([0-9]*\) .*/\1/p' out)
fails 4 "the budget is $((least - 1)) B, but the least budget found is $least B" plan net.json \
    --budget $((least - 1))
plan net.json --budget "$least" -q >out || {
    echo "FAIL the least budget of $least does not do"
    failed=1
}
fails 2 "'magic' is not one of none" plan net.json --strategy magic
fails 2 "none store-all" plan net.json --budget 50% --budget-of=peak
fails 2 "seconds above 0" plan net.json --plan-time 0
fails 2 "from 1 to 10000" plan net.json --plan-effort=20000
fails 1 "training graph" compile net.json

# An earlier plan: equal, worse within the tolerance and beyond it, different from some run on, and
# a file that is no plan.
plan net.json --budget 70% --plan-json old.json >out
plan net.json --budget 70% --json >summary.json
for old in old.json summary.json; do
    plan net.json --budget 70% --against $old >out || { echo "FAIL worse than itself"; failed=1; }
done
plan net.json --budget 70% --strategy chen --json --against old.json >out 2>err && code=0 || code=$?
if [ $code != 6 ] \
    || ! grep -q "the plans part at run [1-9].*'.*' (node .*) then, '.*' (node .*) now" err; then
    echo "FAIL chen against auto: exit $code: $(cat err)"
    failed=1
fi
grep -q '"against":.*"verdict":"worse".*"cost":{"then":[0-9.]*,"now":[0-9.]*,"verdict":"worse"}' \
    out \
    || { echo "FAIL the summary does not say that chen is worse: $(grep against out)"; failed=1; }
plan net.json --budget 70% --json --against summary.json >out 2>err
grep -q '"against":.*"verdict":"no worse".*"arena_bytes":{[^}]*"verdict":"the same"}' out \
    || {
        echo "FAIL the summary does not say that nothing got worse: $(grep against out)"
        failed=1
    }
fails 6 "cost .* worse" plan net.json --budget 70% --strategy chen --against summary.json
# Plans of another batch, model or graph cannot be compared; plans of the same model under another
# path can.
for old in old.json summary.json; do
    fails 2 "not comparable: its inputs and state take" plan net.onnx --batch 8 --against $old
    fails 2 "not comparable: its inputs and state take" plan wide.json --against $old
done
"$lowerset" plan net.onnx --plan-effort=2 --batch 8 --json --against old.json 2>err |
    grep -q '"against":.*"verdict":"not comparable","why":"its inputs' \
    || { echo "FAIL the summary does not say that nothing can be compared"; failed=1; }
sed 's/net.onnx/other.onnx/; s/"base_cost": [0-9]/"base_cost": 7/' old.json >other.json
fails 2 "not comparable: it is for 'other.onnx'" plan net.json --against other.json
mkdir -p elsewhere && cp net.onnx elsewhere/renamed.onnx
plan elsewhere/renamed.onnx --batch 4 --budget 70% --plan-json renamed.json >out
plan net.json --budget 70% --against renamed.json >out || {
    echo "FAIL a renamed model is another: $(tail -n 3 out)"
    failed=1
}

# Runs are counted from 1 where people read them, as on the page.
plan net.json --budget 70% --report page.html >out
run=$(value_of run summary.json)
grep -q "peak at run $((run + 1))," out && grep -q "Run $((run + 1)), node" page.html \
    || { echo "FAIL the peak is at run $run from 0, but: $(grep 'peak at' out)"; failed=1; }

# Kernels that cost less than the kernels they replace take the overhead below 0; the report
# explains it.
cat >cheaper.json <<'END'
{"format": "lowerset-graph", "version": 1, "name": "cheaper", "outputs": [1],
 "tensors": [{"id": 0, "bytes": 10, "persistent": true}, {"id": 1, "bytes": 10}],
 "nodes": [{"id": 0, "name": "y", "kind": "forward", "cost": 10, "inputs": [0], "outputs": [1]},
           {"id": 1, "name": "z", "kind": "forward", "cost": 4, "inputs": [0], "outputs": [1],
            "alternative": true}]}
END
plan cheaper.json --report cheaper.html >out
grep -q "costs -60.00 %" out \
    && grep -q "below 0, because kernels that replace others save more" out \
    && grep -q "below 0, as" cheaper.html \
    || { echo "FAIL an overhead below 0 is not explained: $(grep costs out)"; failed=1; }
plan net.json --budget 60% | grep -q "below 0" && {
    echo "FAIL an overhead above 0 is said to be below"
    failed=1
}
plan net.json --budget 70% --strategy chen --against old.json --tolerance 50% >out \
    || { echo "FAIL the tolerance is not kept"; failed=1; }
# Invalid figures in a graph or an earlier plan are errors with a sentence.
absurd() {      # FILE SED-PROGRAM WANTED-TEXT COMMAND...
    sed "$2" "$1" >absurd.json
    cmp -s "$1" absurd.json && { echo "FAIL no edit '$2' of $1"; failed=1; }
    text=$3
    shift 3
    fails 1 "$text" "$@"
}
for edit in '1e999 an.integer' '-5 negative.bytes' 'NaN not.a.JSON' '9007199254740993 can.address' \
    '140737488355329 can.address'; do
    absurd cheaper.json "s/\"bytes\": 10}/\"bytes\": ${edit% *}}/" "${edit#* }" plan absurd.json
done
for edit in '1e999 is.not.a.number' '-5 not.a.number.from.0' '1e31 are.above' '"1" not.a.number'; do
    absurd cheaper.json "s/\"cost\": 4/\"cost\": ${edit% *}/" "${edit#* }" plan absurd.json
done
for edit in 's/"cost": [0-9.e+]*/"cost": 1e999/ .cost' \
    's/"live_peak": [0-9]*/"live_peak": -7/ .live_peak' \
    's/"arena_peak": [0-9]*/"arena_peak": 1e300/ .arena_peak' \
    's/"compute": 1,/"compute": 1e99,/ names.no.node'; do
    absurd old.json "${edit% *}" "${edit##* }" plan net.json --against absurd.json
done
absurd summary.json 's/"arena_bytes":[^,]*/"arena_bytes": 1e999/' "arena_bytes" plan net.json \
    --against absurd.json
fails 6 "arena .* worse" plan net.json --budget 75% --against old.json
fails 1 "neither a lowerset-schedule" plan net.json --against net.json
fails 1 "not a JSON object" plan net.json --against broken.json
fails 1 "No such file" plan net.json --against nowhere.json
fails 2 "at least 0" plan net.json --against old.json --tolerance=-1%

# Hints: each policy reports kept and recomputed values, for a model and for its graph alike.
again() { sed -n 's/.*"recomputed_bytes":[[:space:]]*\([0-9]*\),/\1/p' "$1"; }
for policy in auto none cheap conv-saved all; do
    plan net.onnx --batch 4 --budget 100% --recompute=$policy --json >model.txt
    plan net.json --budget 100% --recompute=$policy --json >graph.txt
    if [ -z "$(again model.txt)" ] || [ "$(again model.txt)" != "$(again graph.txt)" ]; then
        echo "FAIL policy $policy makes '$(again model.txt)' bytes again, of the graph" \
            "'$(again graph.txt)'"
        failed=1
    fi
done
if [ "$(again graph.txt)" -le 0 ]; then
    echo "FAIL --recompute=all makes nothing again"
    failed=1
fi
plan net.onnx --batch 4 --forget 'down1*' >out
grep -q 'kept for the backward part, .* made again' out || {
    echo "FAIL no word of what is kept"
    failed=1
}
fails 2 "near it: 'up1.up'" plan net.json --keep up1_up
fails 2 "is there all the time" plan net.json --forget outc.conv.weight
fails 4 "no plan" plan net.json --recompute=none --budget 70%
fails 2 "none|cheap|" plan net.json --recompute=much

# Planning ends for any number of in-place pairs of one kernel: PAIRS values, a kernel that reads
# them all and makes as many results, each in the place of a value, and a gradient for each.
wide() {
    awk -v n="$1" \
        'function list(from) { s = from; for (j = 1; j < n; j++) s = s ", " from + j; return s }
    BEGIN {
        print "{\"format\": \"lowerset-graph\", \"version\": 1, \"name\": \"wide\", " \
            "\"alignment\": 1,"
        print "\"outputs\": [" list(2 * n + 3) "], " \
            "\"tensors\": [{\"id\": 0, \"name\": \"x\", \"bytes\": 1000, \"persistent\": true}"
        for (k = 1; k < 3 * n + 3; k++)
            printf ", {\"id\": %d, \"name\": \"t%d\", \"bytes\": %d, \"persistent\": false}\n",
                k, k, 1000 + 10 * ((k > n ? k - n : k) % 40)
        print "], \"nodes\": ["
        for (k = 1; k <= n; k++)
            printf "{\"id\": %d, \"name\": \"f%d\", \"op\": \"F\", \"kind\": \"forward\", " \
                "\"cost\": 10, \"inputs\": [0], \"outputs\": [%d]},\n", k - 1, k, k
        for (k = 1; k <= n; k++)
            pairs = pairs (k > 1 ? ", " : "") "[" n + k ", " k "]"
        printf "{\"id\": %d, \"name\": \"w\", \"op\": \"W\", \"kind\": \"forward\", " \
            "\"cost\": 100, \"inputs\": [%s], \"outputs\": [%s], \"inplace\": [%s]},\n", n,
            list(1), list(n + 1), pairs
        printf "{\"id\": %d, \"name\": \"y\", \"op\": \"Y\", \"kind\": \"forward\", " \
            "\"cost\": 10, \"inputs\": [%s], \"outputs\": [%d]},\n", n + 1, list(n + 1), 2 * n + 1
        printf "{\"id\": %d, \"name\": \"g\", \"op\": \"G\", \"kind\": \"backward\", " \
            "\"cost\": 10, \"inputs\": [%d], \"outputs\": [%d]}", n + 2, 2 * n + 1, 2 * n + 2
        for (k = 1; k <= n; k++)
            printf ",\n{\"id\": %d, \"name\": \"b%d\", \"op\": \"B\", \"kind\": \"backward\", " \
                "\"cost\": 10, \"inputs\": [%d, %d], \"outputs\": [%d]}",
                n + 2 + k, k, 2 * n + 2, k, 2 * n + 2 + k
        print "]}"
    }'
}
for pairs in 40 200; do
    wide $pairs >wide.json
    "$lowerset" plan wide.json --budget min --plan-time 0.05 --plan-json wide-plan.json \
        -q >out 2>&1 \
        || { echo "FAIL no plan for $pairs pairs: $(head -n 2 out)"; failed=1; }
    "$lowerset" check wide-plan.json --graph wide.json >out 2>&1 \
        || { echo "FAIL the plan for $pairs pairs: $(head -n 2 out)"; failed=1; }
done

# The least budget that a refusal names is accepted.
nodes=400
[ -z "${LS_WHOLE:-}" ] || nodes=850
"$build/bench/make_graph" layered $nodes 3 >layered.json
fails 4 "ask for --budget" plan layered.json --budget 50%
least=$(sed -n 's/.*ask for --budget \([0-9]*\) .*/\1/p' out)
plan layered.json --budget "$least" >out 2>&1 || {
    echo "FAIL $least bytes, named the least, are refused"
    failed=1
}
exit $failed
