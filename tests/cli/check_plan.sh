#!/bin/sh
# lowerset check PLAN.json --graph GRAPH.json: sound plans pass. Each kind of broken plan ends with
# exit code 6 and its sentence; a file that is no plan, or a plan for another graph, ends with 1.
#   sh tests/cli/check_plan.sh LOWERSET
set -eu
lowerset=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0

fail() { failed=1; echo "FAIL $*"; }
plan() { "$lowerset" plan --plan-effort=2 -q "$@" >/dev/null; }

# says WANTED-EXIT-CODE WANTED-TEXT FILE [ARGUMENT...]
says() {
    want=$1 text=$2 code=0
    shift 2
    "$lowerset" check "$@" >out 2>&1 || code=$?
    if [ "$code" != "$want" ] || ! grep -q -- "$text" out; then
        fail "check $*: exit $code, not $want with '$text': $(head -n 2 out)"
    fi
}

# broken TEXT AWK-PROGRAM: the plan with an edit is refused with that text.
broken() {
    awk "$2" plan.json >broken.json
    cmp -s plan.json broken.json && fail "no edit for '$1'"
    says 6 "$1" broken.json --graph net.json
}

"$lowerset" model unet --width=4 --depth=1 --classes=2 --size=16 -o net.onnx
"$lowerset" model mlp --width=8 -o other.onnx
plan other.onnx --batch 4 --graph-json other.json
plan net.onnx --batch 4 --graph-json net.json
for budget in none 70% min; do
    plan net.onnx --batch 4 --budget $budget --plan-json plan.json
    says 0 "plan.json: sound: plan $(sed -n 's/.*"hash": "\([0-9a-f]*\)".*/\1/p' plan.json)" \
        plan.json --graph net.json
done
plan net.json --budget 70% --no-offsets --plan-json live.json
says 0 "sound" live.json --graph net.json
plan net.onnx --batch 4 --budget 70% --plan-json plan.json
says 0 '"passed": true' plan.json --graph net.json --json

# The second value lies where the first value lies; the first run is missing; an update is missing;
# a value is freed as soon as it is made; a value is made again while it is live; stated figures are
# wrong. shellcheck disable=SC2016
{
    broken "overlaps" \
        '/"offsets"/ && ++n == 1 { match($0, /"offsets": {"[0-9]+": [0-9]+/)
        first = substr($0, RSTART, RLENGTH)
        sub(/.*: /, "", first) } /"offsets"/ && n == 2 { sub(/": [0-9]+}/, "\": " first "}") } 1'
    broken "which is not live" '/"compute"/ && ++n == 1 { next } 1'
    broken "must run and never does" '/"compute"/ && !/"offsets"/ && ++n == 1 { next } 1'
    broken "which is not live" \
        '1; /"offsets"/ && ++n == 1 { match($0, /"offsets": {"[0-9]+/)
        t = substr($0, RSTART, RLENGTH)
        sub(/.*"/, "", t); print " {\"free\": " t "}," }'
    broken "which is still live" '1; /"offsets"/ && ++n == 1 { print }'
    broken "runs a second time" '1; /"compute"/ && !/"offsets"/ && ++n == 1 { print }'
    broken "states a live peak of 7" '{ sub(/"live_peak": [0-9]+/, "\"live_peak\": 7") } 1'
    broken "states an arena of 7" '{ sub(/"arena_peak": [0-9]+/, "\"arena_peak\": 7") } 1'
    broken "states a cost of inf" '{ sub(/"cost": [0-9.e+]+/, "\"cost\": 1e999") } 1'
    broken "states a cost of -5" '{ sub(/"cost": [0-9.e+]+/, "\"cost\": -5") } 1'
    broken "states a live peak of" '{ sub(/"live_peak": [0-9]+/, "\"live_peak\": 1e300") } 1'
    broken "states an arena of" '{ sub(/"arena_peak": [0-9]+/, "\"arena_peak\": -1") } 1'
    broken "states a base cost of 7" '{ sub(/"base_cost": [0-9.e+]+/, "\"base_cost\": 7") } 1'
    broken "states the hash 0000" '{ sub(/"hash": "..../, "\"hash\": \"0000") } 1'
    broken "not a multiple of" '/"offsets"/ && ++n == 1 { sub(/": [0-9]+}/, "\": 1}") } 1'
}

# No plan, no graph, half a file, invalid numbers: an error, never a crash.
says 1 "is for graph" plan.json --graph other.json
says 1 "not a lowerset-schedule" net.json --graph net.json
says 1 "not a lowerset-graph" plan.json --graph plan.json
says 1 "No such file" plan.json --graph nowhere.json
says 1 "No such file" nowhere.json --graph net.json
: >empty.json
says 1 "is empty" empty.json --graph net.json
says 1 "." net.onnx --graph net.json
bytes=$(wc -c <plan.json)
for part in 1 2 3 5 8 13 21 34 55 89 97; do
    head -c $((bytes * part / 100)) plan.json >half.json
    says 1 "not a JSON object" half.json --graph net.json
done
# shellcheck disable=SC2016
for edit in 's/"compute": 1,/"compute": -1,/' 's/"compute": 1,/"compute": 4e9,/' \
    's/"compute": 1,/"compute": "1",/' \
    's/"free": [0-9]*/"free": 1e30/' 's/"offsets": {/"offsets": {"x": 0, /' \
    's/"offsets": {[^}]*}/"offsets": 3/' \
    's/"workspace_offset": [0-9]*/"workspace_offset": -64/' 's/"version": 1/"version": 2/' \
    's/"steps"/"stages"/'; do
    sed "$edit" plan.json >broken.json
    cmp -s plan.json broken.json && fail "no edit: $edit"
    says 1 "broken.json: " broken.json --graph net.json
done

says 2 "--graph GRAPH.json" plan.json
says 2 "is for models" plan.json --graph net.json --batch 4
says 2 "--budget is for models" plan.json --graph net.json --budget 70%
says 2 "no model given" -q
[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
