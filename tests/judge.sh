#!/bin/sh
# tests/judge.sh BUILD SHARED -- plans the shared graphs at several budgets with every strategy and has the
# independent judge replay each schedule. Prints a line per graph; fails if a plan is not valid.
build=$1 judge=$2/judge
if [ ! -f "$judge/judge.py" ] || ! command -v python3 >/dev/null 2>&1; then
    echo "skipped: no $judge/judge.py, or no python3"
    exit 77
fi
plan=$(mktemp) || exit 1
trap 'rm -f "$plan"' EXIT
bad=0
for graph in "$judge"/graphs/*.json "$judge"/published/*.json; do
    name=$(basename "$graph" .json) good=0 none=0
    case $graph in
    */published/*) strategies="approx" budgets="0.7 min" ;;
    *) strategies="chen exact auto" budgets="0.8 0.55 min" ;;
    esac
    for strategy in $strategies; do
        for budget in $budgets; do
            "$build/tests/plan_graph" "$graph" "$budget" "$strategy" "$plan" >/dev/null 2>&1
            case $? in
            0)  if python3 "$judge/judge.py" "$graph" "$plan" >/dev/null; then
                    good=$((good + 1))
                else
                    echo "$name: $strategy at $budget is not valid"
                    bad=1
                fi ;;
            4)  none=$((none + 1)) ;;
            *)  echo "$name: $strategy at $budget failed"
                bad=1 ;;
            esac
        done
    done
    echo "$name: $good plans valid, $none times nothing fits"
done
exit $bad
